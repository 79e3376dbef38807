# SPDX-License-Identifier: BSD-2-Clause
"""The type hints: mypy and stubtest of Debian."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TREE = Path(os.environ.get("NDX_BUILD", ".")) / "python"


def mypy(module: str, *arguments: str, tree: Path = TREE) -> subprocess.CompletedProcess[str]:
    """A program of mypy, run in the folder that has the package."""
    if not os.path.exists("/usr/bin/mypy") or os.environ.get("LD_PRELOAD"):
        pytest.skip("mypy is missing (install mypy), or would run under a sanitizer")
    env = {**os.environ, "MYPYPATH": str(tree), "MYPY_CACHE_DIR": str(tree.parent / "mypy")}
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=tree,
        env={**env, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_module_and_the_examples_are_strict(tmp_path: Path) -> None:
    pages = ("python.md", "python-reassembly.md", "python-negotiation.md")
    text = "\n".join((ROOT / "docs" / page).read_text() for page in pages)
    untyped = tmp_path / "mypy.ini"  # those of Debian 12 have no hints
    sections = [f"[mypy-{m}.*]\nignore_missing_imports = True\n" for m in ("pandas", "matplotlib")]
    untyped.write_text("".join(["[mypy]\n", *sections]))
    files = []
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", text, re.S)):
        files.append(tmp_path / f"example_{i}.py")
        files[-1].write_text(code)
    assert "Success" in mypy("mypy", "--strict", "--config-file", str(untyped), "ndx", *map(str, files)).stdout


# Of classes in Python, which stubtest reads from their own source: versions of mypy differ in what
# they find there of typing and enum.
ALLOWED = r"ndx\.(?!_ndx($|\.)).*"


def stubtest(tree: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Compare the stub of the extension with the extension."""
    allowed = tmp_path / "allowed"
    allowed.write_text(ALLOWED)
    more = ["--allowlist", str(allowed), "--ignore-unused-allowlist", "--ignore-missing-stub"]
    return mypy("mypy.stubtest", "ndx", "--concise", *more, tree=tree)


def test_the_stub_is_that_of_the_extension(tmp_path: Path) -> None:
    ran = stubtest(TREE, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_wrong_stub_is_found(tmp_path: Path) -> None:
    tree = tmp_path / "python"
    shutil.copytree(TREE / "ndx", tree / "ndx")
    stub = tree / "ndx" / "_ndx.pyi"
    text = stub.read_text()
    for right, wrong in (
        ("class Frame:", "class Frames: ...\nclass Frame:"),
        ("    def fileno(", "    def file(self) -> int: ...\n    def fileno("),
    ):
        assert right in text
        text = text.replace(right, wrong, 1)
    stub.write_text(text)
    ran = stubtest(tree, tmp_path)
    assert ran.returncode != 0
    assert re.search(r"^ndx\._ndx\.Frames is not present at runtime$", ran.stdout, re.M), ran.stdout
    assert re.search(r"^ndx\._ndx\.\w+\.file is not present at runtime$", ran.stdout, re.M)
