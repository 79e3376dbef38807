# SPDX-License-Identifier: BSD-2-Clause
"""Packets of capture files: pcap and pcapng, also compressed by gzip.

Every length of the file is checked before anything is read for it.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from typing import IO, NamedTuple

PACKET_MOST = 1 << 28
"""Longest packet or block that is taken for one."""


class Packet(NamedTuple):
    """A captured packet. time_ns: since any origin; original: its length on the wire."""

    time_ns: int
    data: bytes
    link_type: int
    original: int


class CaptureError(ValueError):
    """The file is not a capture, or is broken."""


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise EOFError("the capture ends within a packet")
    return data


def _or_end(file: IO[bytes], size: int) -> bytes:
    """So many bytes; none at the end of the file."""
    data = file.read(size)
    if 0 < len(data) < size:
        raise EOFError("the capture ends within a packet")
    return data


def _pcap(file: IO[bytes], magic: bytes) -> Iterator[Packet]:
    order = ">" if magic[0] == 0xA1 else "<"
    scale = 1 if b"\x3c" in magic else 1000
    head = struct.Struct(order + "IIII")
    link_type = struct.unpack(order + "HHiIII", _exactly(file, 20))[5] & 0x0FFFFFFF
    while bytes_of := _or_end(file, 16):
        seconds, fraction, captured, original = head.unpack(bytes_of)
        if captured > PACKET_MOST:
            raise CaptureError(f"a packet of {captured} bytes")
        data = _exactly(file, captured)
        yield Packet(seconds * 10**9 + fraction * scale, data, link_type, original)


class _Interface:
    """An interface of a pcapng section."""

    def __init__(self, body: bytes, order: str) -> None:
        if len(body) < 8:
            raise CaptureError("an interface without its numbers")
        self.link_type: int = struct.unpack_from(order + "H", body)[0]
        self.snap: int = struct.unpack_from(order + "I", body, 4)[0]
        self.units = 10**6
        self.offset = 0
        at = 8
        while at + 4 <= len(body):
            code, length = struct.unpack_from(order + "HH", body, at)
            value = body[at + 4 : at + 4 + length]
            if code == 0:
                break
            if code == 9 and len(value) == 1:
                exponent = value[0] & 0x7F
                self.units = (2 if value[0] & 0x80 else 10) ** exponent
            elif code == 14 and len(value) == 8:
                self.offset = struct.unpack(order + "q", value)[0]
            at += 4 + (length + 3 & ~3)

    def time_ns(self, high: int, low: int) -> int:
        """A time stamp of this interface; 0: before the epoch."""
        return max(0, ((high << 32 | low) * 10**9) // self.units + self.offset * 10**9)


def _packet(kind: int, body: bytes, order: str, interfaces: list[_Interface]) -> Packet | None:
    """The packet of an enhanced (6), obsolete (2) or simple (3) packet block."""
    if kind == 3:
        if len(body) < 4 or not interfaces:
            raise CaptureError("a packet without its interface")
        original = struct.unpack_from(order + "I", body)[0]
        interface = interfaces[0]
        captured = min(original, interface.snap or original)
        start, high, low = 4, 0, 0
    else:
        if len(body) < 20:
            raise CaptureError("a packet without its head")
        form = "IIIII" if kind == 6 else "HxxIIII"
        number, high, low, captured, original = struct.unpack_from(order + form, body)
        if number >= len(interfaces):
            raise CaptureError(f"a packet of interface {number}, which was not described")
        interface = interfaces[number]
        start = 20
    if captured > len(body) - start:
        raise CaptureError("a packet longer than its block")
    data = body[start : start + captured]
    return Packet(interface.time_ns(high, low), data, interface.link_type, original)


def _pcapng(file: IO[bytes]) -> Iterator[Packet]:
    """Behind the type of the first section."""
    interfaces: list[_Interface] = []
    order = "<"
    head = b"\x0a\x0d\x0d\x0a"
    while head:
        size_bytes = _exactly(file, 4)
        begin = b""
        if head == b"\x0a\x0d\x0d\x0a":
            begin = _exactly(file, 4)
            order = ">" if begin == b"\x1a\x2b\x3c\x4d" else "<"
            if begin not in (b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a"):
                raise CaptureError("a section without byte order")
            interfaces = []
        (kind,) = struct.unpack(order + "I", head)
        (size,) = struct.unpack(order + "I", size_bytes)
        if size % 4 or not 12 + len(begin) <= size <= PACKET_MOST:
            raise CaptureError(f"a block of {size} bytes")
        body = _exactly(file, size - 8 - len(begin))[:-4]
        if kind == 1:
            interfaces.append(_Interface(body, order))
        elif kind in (2, 3, 6):
            packet = _packet(kind, body, order, interfaces)
            if packet is not None:
                yield packet
        head = _or_end(file, 4)


def packets(file: IO[bytes]) -> Iterator[Packet]:
    """The packets of an open capture file.

    Raises CaptureError (no capture, or broken), EOFError (it ends within a packet: all packets
    before were yielded).
    """
    magic = file.read(4)
    if magic[:2] == b"\x1f\x8b":
        if not file.seekable():
            raise CaptureError("a compressed capture has to be a file")
        file.seek(-len(magic), 1)
        try:
            with gzip.open(file) as inner:
                if inner.peek(2)[:2] == b"\x1f\x8b":
                    raise CaptureError("a capture that is compressed twice")
                yield from packets(inner)  # type: ignore[arg-type]
        except (gzip.BadGzipFile, zlib.error) as error:
            raise CaptureError(f"broken gzip: {error}") from None
    elif magic == b"\x0a\x0d\x0d\x0a":
        yield from _pcapng(file)
    elif magic in (
        b"\xa1\xb2\xc3\xd4",
        b"\xd4\xc3\xb2\xa1",
        b"\xa1\xb2\x3c\x4d",
        b"\x4d\x3c\xb2\xa1",
    ):
        yield from _pcap(file, magic)
    else:
        raise CaptureError("neither pcap nor pcapng")
