# SPDX-License-Identifier: BSD-2-Clause
"""The type hints: mypy and stubtest of Debian."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TREE = Path(os.environ.get("NDX_BUILD", ".")) / "python"


def mypy(module: str, *arguments: str) -> str:
    """What a program of mypy says."""
    if not os.path.exists("/usr/bin/mypy") or os.environ.get("LD_PRELOAD"):
        pytest.skip("mypy is missing (install mypy), or would run under a sanitizer")
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=TREE,
        env={**os.environ, "MYPYPATH": str(TREE), "MYPY_CACHE_DIR": str(TREE / module)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    ).stdout


def test_the_module_and_the_examples_are_strict(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    files = []
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", page, re.S)):
        files.append(tmp_path / f"example_{i}.py")
        files[-1].write_text(code)
    assert "Success" in mypy("mypy", "--strict", "ndx", *map(str, files))


def test_the_stub_is_that_of_the_extension() -> None:
    said = mypy("mypy.stubtest", "ndx", "--ignore-missing-stub")
    assert "error: ndx._adapter" in said, "stubtest of Debian 12 always finds something of typing"
    assert "error: ndx._ndx" not in said
