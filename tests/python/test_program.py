# SPDX-License-Identifier: BSD-2-Clause
"""python3 -m ndx, and the examples of docs/python*.md as the pages have them."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("NDX_BUILD", "")) / "bin" / "reassembly-tool"
NDX = [sys.executable, "-m", "ndx"]


def run(*arguments: str | Path, ok: bool = True) -> str:
    """What the program prints."""
    ran = subprocess.run(
        [*NDX, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode == 0) is ok, ran.stderr
    return ran.stdout + ran.stderr


def capture(path: Path) -> int:
    """Make a capture; the number of its calls."""
    if not TOOL.exists():
        pytest.skip("reassembly-tool was not built")
    made = subprocess.run(
        [TOOL, "synth", "0", "30", "1", path], check=True, capture_output=True, text=True
    )
    calls = re.search(r"^calls (\d+)$", made.stdout, re.M)
    assert calls is not None
    return int(calls.group(1))


def test_info_lists_adapters() -> None:
    assert re.search(r"^loop \S+ usable$", run("info"), re.M)
    assert re.search(r"^capabilities .*LOOPBACK", run("info", "loop"), re.M)
    assert "NOT_FOUND" in run("info", "nothing:here", ok=False)
    assert re.match(r"\d+\.\d+\.\d+$", run("--version").strip())


def test_recv_and_send() -> None:
    uri = "ofi:tcp?iface=lo"
    with subprocess.Popen(
        [*NDX, "recv", "--adapter", uri], stdout=subprocess.PIPE, text=True
    ) as receiver:
        assert receiver.stdout is not None
        address = receiver.stdout.readline().removeprefix("listening on ").strip()
        assert "frames 500" in run("send", address, "--adapter", uri, "--frames", "500")
        said = receiver.stdout.read()
        assert receiver.wait(60) == 0
    assert f"frames 500, bytes {500 * 4096}, lost 0" in said and "disconnected" in said


def test_recv_from_the_program_in_c() -> None:
    uri = "ofi:tcp?iface=lo"
    send = TOOL.with_name("ndx-send")
    with subprocess.Popen(
        [*NDX, "recv", "--adapter", uri], stdout=subprocess.PIPE, text=True
    ) as receiver:
        assert receiver.stdout is not None
        address = receiver.stdout.readline().removeprefix("listening on ").strip()
        subprocess.run(
            [send, address, "--adapter", uri, "--frames", "500"], check=True, timeout=60
        )
        said = receiver.stdout.read()
        assert receiver.wait(60) == 0
    assert f"frames 500, bytes {500 * 4096}, lost 0" in said


def test_decode(tmp_path: Path) -> None:
    file = tmp_path / "a.pcap"
    calls = capture(file)
    lines = run("decode", file).splitlines()
    assert sum(" call xid " in line for line in lines) == calls > 0
    assert f'"calls": {calls},' in run("decode", "--summary", file)
    assert "neither pcap" in run("decode", __file__, ok=False)


PAGES = ("python.md", "python-reassembly.md", "python-negotiation.md")
PAGE = "\n".join((ROOT / "docs" / page).read_text() for page in PAGES)
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.S)


NAMES = ["frames", "asyncio", "capture", "dissected", "negotiation", "device", "manager"]


@pytest.mark.parametrize("code, output", EXAMPLES, ids=NAMES)
def test_examples_of_the_page(code: str, output: str, tmp_path: Path) -> None:
    for module in ("numpy", "matplotlib", "pandas"):
        if f"import {module}" in code and importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is missing")
    if "ndx_plugin" in code and os.environ.get("LD_PRELOAD"):
        pytest.skip("the host of Python plugins does not run under a sanitizer")
    if "nfs.pcap" in code:
        capture(tmp_path / "nfs.pcap")
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == output
    for picture in re.findall(r'savefig\("(.*?)"\)', code):
        assert "</svg>" in (tmp_path / picture).read_text()
        if "NDX_PICTURES" in os.environ:  # to renew those of the page
            shutil.copy(tmp_path / picture, os.environ["NDX_PICTURES"])
