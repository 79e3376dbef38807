# SPDX-License-Identifier: BSD-2-Clause
"""python3 -m ndx info|recv|send|decode: the module's calls in small programs."""

from __future__ import annotations

import argparse
import json
import os
import struct
import sys
import time
from collections.abc import Callable

import ndx


def info(options: argparse.Namespace) -> int:
    """The adapters of this machine."""
    if options.uri is None:
        for entry in ndx.adapters():
            state = "usable" if entry.usable else f"{entry.status.name}: {entry.hint}"
            print(f"{entry.uri} {entry.interface or '-'} {state}")
        return 0
    with ndx.Adapter(options.uri) as adapter:
        for name, value in vars(adapter.query()).items():
            if isinstance(value, ndx.Capability):
                value = " ".join(c.name or "?" for c in ndx.Capability if c in value)
            print(f"{name} {value}")
    return 0


def first_address(adapter: ndx.Adapter) -> ndx.Address:
    """Where to listen if nothing is said."""
    for address in adapter.addresses():
        if len(address) == 2:
            return address
    return adapter.addresses()[0]


def text_of(address: ndx.Address) -> str:
    """ADDRESS:PORT"""
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    return f"{host}:{address[1]}"


def greeting(slot_size: int, slot_count: int) -> bytes:
    """What ndx-send wants to hear from a receiver."""
    return struct.pack(">8sIIIIQ", b"NDXfrm\0\1", 0, slot_size, slot_count, 0, 0)


def recv(options: argparse.Namespace) -> int:
    """Receive frames until the sender disconnects."""
    with ndx.Adapter(options.adapter) as adapter:
        receiver = ndx.Receiver(adapter, slot_size=options.size, slot_count=options.slots)
        with receiver, ndx.Listener(adapter, options.listen or first_address(adapter)) as listener:
            print(f"listening on {text_of(listener.address)}", flush=True)
            receiver.accept(
                listener,
                private_data=greeting(options.size, options.slots),
                timeout=options.timeout,
            )
            begun = time.monotonic()
            frames = size = 0
            for batch in receiver.batches():
                frames += len(batch)
                size += sum(map(len, batch))
            seconds = time.monotonic() - begun
            stats = receiver.stats()
            print(f"frames {frames}, bytes {size}, lost {stats['lost']}")
            print(f"{frames / seconds:.0f} frames/s, {receiver.cause.text}")
    return 0


def send(options: argparse.Namespace) -> int:
    """Send frames."""
    data = os.urandom(options.size)
    with ndx.Sender(options.adapter, slot_size=options.size, rate=options.rate) as sender:
        sender.connect(options.destination, timeout=options.timeout)
        for _ in range(options.frames):
            sender.send(data, timeout=options.timeout)
        sender.flush(timeout=options.timeout)
        print(f"frames {sender.stats()['frames']}")
    return 0


def line_of(rpc: ndx.Rpc) -> str:
    """One line for a call or reply."""
    side = "" if rpc.connection is None else f"#{rpc.connection.id}{'<' if rpc.direction else '>'} "
    kind = "call" if isinstance(rpc, ndx.Call) else "reply"
    return (
        f"{rpc.packet} {rpc.time_ns // 10**9}.{rpc.time_ns % 10**9:09} {side}{kind} "
        f"xid {rpc.xid:#010x} program {rpc.program} version {rpc.program_version} "
        f"procedure {rpc.procedure} {len(rpc.data)} bytes"
    )


def decode(options: argparse.Namespace) -> int:
    """The calls and replies of captures."""
    with ndx.Reassembly() as reassembly:
        for name in options.files:
            for rpc in ndx.reassemble(name, reassembly=reassembly):
                if not options.summary:
                    print(line_of(rpc))
        if options.summary:
            print(json.dumps(reassembly.stats(), indent=1))
    return 0


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python3 -m ndx", description=__doc__)
    parser.add_argument("--version", action="version", version=ndx.version())
    commands = parser.add_subparsers(required=True)

    def command(name: str, function: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=function.__doc__)
        added.set_defaults(function=function)
        added.add_argument("--timeout", type=float, default=30.0, help="seconds (default 30)")
        return added

    p = command("info", info)
    p.add_argument("uri", nargs="?", help="limits and capabilities of this adapter")
    p = command("recv", recv)
    p.add_argument("--adapter", help="URI; default: automatic")
    p.add_argument("--listen", metavar="ADDRESS:PORT", help="default: any port")
    p.add_argument("--size", type=int, default=9000, help="longest frame (default 9000)")
    p.add_argument("--slots", type=int, default=256, help="number of slots (default 256)")
    p = command("send", send)
    p.add_argument("destination", metavar="ADDRESS:PORT")
    p.add_argument("--adapter", help="URI; default: automatic")
    p.add_argument("--frames", type=int, default=1000, help="number (default 1000)")
    p.add_argument("--size", type=int, default=4096, help="bytes (default 4096)")
    p.add_argument("--rate", type=int, default=0, help="frames per second; default: no limit")
    p = command("decode", decode)
    p.add_argument("files", nargs="+", metavar="FILE", help="pcap, pcapng, also compressed by gzip")
    p.add_argument("--summary", action="store_true", help="the counters as JSON")
    return parser


def main(argv: list[str] | None = None) -> int:
    """The program."""
    options = arguments().parse_args(argv)
    try:
        return int(options.function(options))
    except (ndx.Error, ndx.CaptureError, OSError, EOFError) as error:
        print(f"ndx: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
