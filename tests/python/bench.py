# SPDX-License-Identifier: BSD-2-Clause
"""usage: PYTHONPATH=BUILD/python python3 bench.py BUILD [URI [BLOCKS [FRAMES]]]

Frames a second of the receiver in Python beside ndx-recv, with ndx-send as the sender of both, in
alternating blocks; and captures taken apart beside ndx-decode. Prints the ratios, with quartiles.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUILD = Path(sys.argv[1]).resolve()
URI = sys.argv[2] if len(sys.argv) > 2 else "ofi:tcp?iface=lo"
BLOCKS = int(sys.argv[3]) if len(sys.argv) > 3 else 12
FRAMES = int(sys.argv[4]) if len(sys.argv) > 4 else 20000
SIZE = 4096

RECEIVER = f"""
import sys, ndx
from ndx.__main__ import greeting
way = sys.argv[1]
with ndx.Adapter({URI!r}) as adapter:
    receiver = ndx.Receiver(adapter, slot_size=9000, slot_count=256)
    with receiver, ndx.Listener(adapter, ("127.0.0.1", 0)) as listener:
        print("listening on %s:%d" % listener.address[:2], flush=True)
        receiver.accept(listener, private_data=greeting(9000, 256), timeout=60)
        frames = size = 0
        if way == "batches":
            for batch in receiver.batches(64):
                frames += len(batch)
        else:
            for frame in receiver:
                with frame:
                    view = frame.data
                    size += view[0] & 1
                    frames += 1
        assert frames == int(sys.argv[2]), frames
"""


def measured(command: list[str | Path], frames: int = FRAMES) -> tuple[float, float]:
    """Seconds that ndx-send takes to send its frames to this receiver, and processor time of the
    receiver."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        line = receiver.stdout.readline()
        found = re.search(r"listening on (\S+)", line)
        assert found is not None, line
        send = [
            BUILD / "bin" / "ndx-send",
            found.group(1),
            "--adapter",
            URI,
            "--frames",
            str(frames),
            "--size",
            str(SIZE),
        ]
        said = subprocess.run(send, check=True, capture_output=True, text=True, timeout=300)
        receiver.stdout.read()
        _, status, usage = os.wait4(receiver.pid, 0)
        receiver.returncode = os.waitstatus_to_exitcode(status)
        assert receiver.returncode == 0
    took = re.search(r"; ([0-9.]+) s,", said.stdout)
    assert took is not None, said.stdout
    return float(took.group(1)), usage.ru_utime + usage.ru_stime


def show(name: str, ratios: list[float]) -> None:
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"{name}: {middle:.2f} ({low:.2f} .. {high:.2f})", flush=True)


def frames() -> None:
    """Receivers."""
    # Its consumer writes the frames to a file, which is less than the check of every byte.
    c: list[str | Path] = [BUILD / "bin" / "ndx-recv", "--adapter", URI, "--slots", "256"]
    c += ["--raw", "--file", "/dev/null", "--quiet"]

    def run(way: str, count: int) -> tuple[float, float]:
        if way == "ndx-recv":
            return measured(c, count)
        return measured([sys.executable, "-c", RECEIVER, way, str(count)], count)

    ways = ("ndx-recv", "batches", "views")
    ratios: dict[str, list[float]] = {way: [] for way in ways}
    costs: dict[str, list[float]] = {way: [] for way in ways}
    rates = []
    for _ in range(BLOCKS):
        base, _cpu = run("ndx-recv", FRAMES)
        rates.append(FRAMES / base)
        for way in ways:
            took, cpu = run(way, FRAMES)
            ratios[way].append(base / took)
            costs[way].append((cpu - run(way, 1)[1]) / (FRAMES - 1) * 1e6)
    print(f"{SIZE} bytes over {URI}: ndx-recv {statistics.median(rates):.0f} frames/s")
    for way in ways:
        show(f"  {way}: frames a second, ratio to ndx-recv", ratios[way])
        show(f"  {way}: processor time of a frame, us", costs[way])


def captures() -> None:
    """Decoders: the same capture, all data read."""
    import ndx

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.pcap"
        subprocess.run(
            [BUILD / "bin" / "reassembly-tool", "synth", "0", "3000", "1", path],
            check=True,
            capture_output=True,
        )
        ratios = []
        for _ in range(BLOCKS):
            begun = time.perf_counter()
            subprocess.run(
                [BUILD / "bin" / "ndx-decode", "--summary", path], check=True, capture_output=True
            )
            base = time.perf_counter() - begun
            begun = time.perf_counter()
            size = sum(len(rpc.data) for rpc in ndx.reassemble(path))
            ratios.append(base / (time.perf_counter() - begun))
        print(f"capture of {path.stat().st_size >> 20} MiB, {size >> 20} MiB of messages")
        show("  Python beside ndx-decode --summary, ratio", ratios)


if __name__ == "__main__":
    frames()
    captures()
