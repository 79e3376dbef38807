# SPDX-License-Identifier: BSD-2-Clause
"""The wheel and the source archive of shims/python, against an installed NDX, in a fresh venv."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("NDX_BUILD", "build"))
SOURCE = ROOT / "shims" / "python"
SDIST = "from setuptools.build_meta import build_sdist; import sys; build_sdist(sys.argv[1])"


@dataclass
class Made:
    """What was made: the archives, and the interpreter that has the wheel."""

    sdist: Path
    wheel: Path
    python: Path
    environment: dict[str, str]

    def run(self, *command: str | Path) -> str:
        """What a program of the venv prints."""
        return run(self.python, *command, env=self.environment, cwd=self.python.parent)


def run(*command: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """What a program prints; it succeeds."""
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, env=env, cwd=cwd
    )
    assert ran.returncode == 0, f"{command}: {ran.stdout[-4000:]}{ran.stderr[-4000:]}"
    return ran.stdout


def missing() -> str:
    """Why there can be no wheel here; nothing: there can."""
    for module, package in (
        ("pip", "python3-pip"),
        ("setuptools", "python3-setuptools"),
        ("wheel", "python3-wheel"),
        ("venv", "python3-venv"),
    ):
        if importlib.util.find_spec(module) is None:
            return f"module {module} is missing (install {package})"
    for program in ("cmake", "cc", "pkg-config"):
        if shutil.which(program) is None:
            return f"{program} is missing"
    if os.environ.get("LD_PRELOAD"):
        return "a wheel of a sanitizer's build cannot be installed elsewhere"
    return ""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Install NDX into a folder; make the archive, the wheel from it, and a venv with the wheel."""
    if missing():
        pytest.skip(missing())
    folder = tmp_path_factory.mktemp("wheel")
    prefix, source, out = folder / "prefix", folder / "source", folder / "out"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    # The module of the tree stays out of this.
    environment = {n: v for n, v in os.environ.items() if not n.startswith(("PYTHON", "NDX_"))}
    (pkgconfig,) = prefix.glob("lib*/**/pkgconfig")
    environment["PKG_CONFIG_PATH"] = str(pkgconfig)
    environment["LD_LIBRARY_PATH"] = str(pkgconfig.parent)
    environment["NDX_PLUGIN_PATH"] = str(pkgconfig.parent / "ndx")
    environment["NDX_BUILD"] = str(BUILD)
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = environment["PYTHONDONTWRITEBYTECODE"] = "1"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    out.mkdir()
    run(sys.executable, "-c", SDIST, out, env=environment, cwd=source)
    (sdist,) = out.glob("ndx-*.tar.gz")
    pip = ["-m", "pip", "--quiet"]
    plain = ["--no-index", "--no-deps"]
    run(
        sys.executable, *pip, "wheel", *plain, "--no-build-isolation", "-w", out, sdist,
        env=environment, cwd=folder,
    )  # fmt: skip
    (wheel,) = out.glob("ndx-*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    run(python, *pip, "install", *plain, wheel, env=environment, cwd=folder)
    return Made(sdist, wheel, python, environment)


def sources(pattern: str) -> set[str]:
    """Names of files of the module in this tree."""
    return {str(f.relative_to(SOURCE)) for f in SOURCE.glob(pattern) if f.is_file()}


def test_the_archive_has_all_sources(made: Made) -> None:
    with tarfile.open(made.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = sources("src/*.[ch]") | sources("ndx/*.py*") | sources("ndx/py.typed")
    assert wanted | {"pyproject.toml", "setup.py", "MANIFEST.in"} <= names
    assert len(wanted) > 30


def test_the_wheel_has_the_module_and_no_more(made: Made) -> None:
    assert "-cp311-abi3-" in made.wheel.name, "the stable ABI: one wheel for later versions"
    with zipfile.ZipFile(made.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == sources("ndx/*.py*") | {"ndx/py.typed", "ndx/_ndx.abi3.so"}


def test_the_installed_module_works(made: Made) -> None:
    where = made.run("-c", "import ndx; print(ndx.__file__, ndx._ndx.__file__, ndx.version())")
    for path in where.split()[:2]:
        assert Path(path).is_relative_to(made.python.parents[1])
    assert f"ndx-{where.split()[2]}-" in made.wheel.name
    assert "frames arrive" in made.run(ROOT / "tests" / "packaging" / "module.py")


def test_the_examples_run_with_the_wheel(made: Made) -> None:
    program = ROOT / "tests" / "python" / "test_program.py"
    said = made.run("-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", program)
    assert "passed" in said and "SKIPPED" not in said, said
