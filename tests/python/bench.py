# SPDX-License-Identifier: BSD-2-Clause
"""Frames a second of the receiver in Python beside ndx-recv, with ndx-send as the sender of both;
and captures taken apart beside ndx-decode. Run with PYTHONPATH=BUILD/python.

Each ratio is that of two runs one after the other, in alternating order. A run is timed by ndx-send,
from its first frame until the receiver has the last one, without start and connection; the rate is
that of the slower of sender and receiver. So the processor time of a frame at the receiver is
printed, too: that of a run less that of a run with one frame. ndx-recv beside itself shows how exact
the figures are. Prints medians with quartiles.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("build", type=lambda text: Path(text).resolve(), help="build tree")
parser.add_argument("--uri", default="ofi:tcp?iface=lo", help="adapter (%(default)s)")
parser.add_argument("--blocks", type=int, default=8, help="pairs of runs of a ratio (%(default)s)")
parser.add_argument("--frames", type=int, default=200_000, help="frames of a run (%(default)s)")
OPTIONS = parser.parse_args()
BUILD: Path = OPTIONS.build
URI: str = OPTIONS.uri
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


def measured(way: str, frames: int) -> tuple[float, float]:
    """Seconds that ndx-send takes to send its frames to this receiver, and processor time of the
    receiver."""
    command: list[str | Path] = [sys.executable, "-c", RECEIVER, way, str(frames)]
    if way == "ndx-recv":
        # Its consumer writes the frames to a file, which is less than the check of every byte.
        command = [BUILD / "bin" / "ndx-recv", "--adapter", URI, "--slots", "256"]
        command += ["--raw", "--file", "/dev/null", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        line = receiver.stdout.readline()
        found = re.search(r"listening on (\S+)", line)
        assert found is not None, line
        send = [BUILD / "bin" / "ndx-send", found.group(1), "--adapter", URI]
        send += ["--frames", str(frames), "--size", str(SIZE)]
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
    count = OPTIONS.frames
    print(f"{SIZE} bytes over {URI}, {OPTIONS.blocks} blocks of {count} frames", flush=True)
    for way in ("ndx-recv", "batches", "views"):
        start = statistics.median(measured(way, 1)[1] for _ in range(5))
        ratios = []
        costs = []
        rates = []
        for block in range(OPTIONS.blocks):
            pair = ("ndx-recv", way) if block % 2 else (way, "ndx-recv")
            took = {which: measured(name, count) for which, name in enumerate(pair)}
            mine = took[block % 2]
            base = took[1 - block % 2]
            ratios.append(base[0] / mine[0])
            rates.append(count / mine[0])
            costs.append((mine[1] - start) / (count - 1) * 1e6)
        show(f"  {way}: frames a second, ratio to ndx-recv", ratios)
        show(f"  {way}: thousands of frames a second", [rate / 1000 for rate in rates])
        show(f"  {way}: processor time of a frame, us", costs)


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
        for _ in range(OPTIONS.blocks):
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
