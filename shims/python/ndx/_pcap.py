# SPDX-License-Identifier: BSD-2-Clause
"""Packets of capture files: pcap and pcapng, also compressed by gzip.

Every length of the file is checked before anything is read for it.
"""

from __future__ import annotations

import contextlib
import gzip
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple, cast

PACKET_MOST = 1 << 28
"""Longest packet or block that is taken for one."""
CHUNK = 1 << 18
"""Bytes of a classic capture that are read at once."""
SECTION = b"\x0a\x0d\x0d\x0a"
"""A pcapng file begins so."""
CLASSIC = (
    b"\xa1\xb2\xc3\xd4",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x4d\x3c\xb2\xa1",
)
"""A classic capture begins so: either byte order, microseconds or nanoseconds."""

FeedPcap = Callable[[bytes, bool, int, int], tuple[list[Any], int]]


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


def _pcap_head(file: IO[bytes], magic: bytes) -> tuple[str, int, int]:
    """Byte order, nanoseconds of a unit of time, and link type."""
    order = ">" if magic[0] == 0xA1 else "<"
    scale = 1 if b"\x3c" in magic else 1000
    link_type = struct.unpack(order + "HHiIII", _exactly(file, 20))[5] & 0x0FFFFFFF
    return order, scale, link_type


def _pcap(file: IO[bytes], magic: bytes) -> Iterator[Packet]:
    order, scale, link_type = _pcap_head(file, magic)
    head = struct.Struct(order + "IIII")
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
        """A time stamp of this interface; 0: before the epoch; at most what 64 bits hold."""
        time = ((high << 32 | low) * 10**9) // self.units + self.offset * 10**9
        return min(max(0, time), 2**64 - 1)


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


def _fed_pcap(file: IO[bytes], magic: bytes, feed_pcap: FeedPcap) -> Iterator[Any]:
    """As _pcap(), but the records are taken apart by `feed_pcap`, many with one call."""
    order, scale, link_type = _pcap_head(file, magic)
    read = getattr(file, "read1", file.read)  # a live source gives what there is
    data = read(CHUNK)
    while data:
        events, used = feed_pcap(data, order == ">", scale, link_type)
        yield from events
        data = data[used:]
        if not data:
            data = read(CHUNK)
        elif len(data) < 16:
            data += _exactly(file, 16 - len(data))
        else:
            (captured,) = struct.unpack_from(order + "I", data, 8)
            if captured > PACKET_MOST:
                raise CaptureError(f"a packet of {captured} bytes")
            data += _exactly(file, 16 + captured - len(data))


@contextlib.contextmanager
def _plain(file: IO[bytes]) -> Iterator[tuple[IO[bytes], bytes]]:
    """The file, or what is compressed in it; and the first 4 bytes, which are taken."""
    magic = file.read(4)
    if magic[:2] != b"\x1f\x8b":
        yield file, magic
        return
    if not file.seekable():
        raise CaptureError("a compressed capture has to be a file")
    file.seek(-len(magic), 1)
    try:
        with gzip.open(file) as inner:
            magic = inner.read(4)
            if magic[:2] == b"\x1f\x8b":
                raise CaptureError("a capture that is compressed twice")
            yield cast("IO[bytes]", inner), magic
    except (gzip.BadGzipFile, zlib.error) as error:
        raise CaptureError(f"broken gzip: {error}") from None


def packets(file: IO[bytes]) -> Iterator[Packet]:
    """The packets of an open capture file.

    Raises CaptureError (no capture, or broken), EOFError (it ends within a packet: all packets
    before were yielded).
    """
    with _plain(file) as (plain, magic):
        if magic == SECTION:
            yield from _pcapng(plain)
        elif magic in CLASSIC:
            yield from _pcap(plain, magic)
        else:
            raise CaptureError("neither pcap nor pcapng")


def fed(file: IO[bytes], feed: Callable[..., list[Any]], feed_pcap: FeedPcap) -> Iterator[Any]:
    """The events that packets() of the file cause: `feed` takes one packet, `feed_pcap` a part of a
    classic capture. Raises as packets()."""
    with _plain(file) as (plain, magic):
        if magic == SECTION:
            for packet in _pcapng(plain):
                yield from feed(packet.data, packet.time_ns, packet.link_type, packet.original)
        elif magic in CLASSIC:
            yield from _fed_pcap(plain, magic, feed_pcap)
        else:
            raise CaptureError("neither pcap nor pcapng")
