# SPDX-License-Identifier: BSD-2-Clause
"""Reassembly: captured RDMA packets in, whole messages out."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from typing import IO, Any, NamedTuple, Union, cast

from . import _ndx, _pcap
from ._dissected import Dissected
from ._enums import (
    ChunkKind,
    EventType,
    EvictionReason,
    HoleKind,
    LinkType,
    OrphanKind,
    Transport,
)
from ._pcap import CaptureError, Packet


class Endpoint:
    """One side of a captured connection: `address` as text, and `number`, the queue pair number
    or TCP port; None: not known."""

    __slots__ = ("address", "number")

    def __init__(self, family: int, address: bytes, number: int | None) -> None:
        self.number = number
        if family == 4:
            self.address = socket.inet_ntoa(address[12:])
        elif family == 8:
            self.address = f"lid {int.from_bytes(address[14:], 'big')}"
        else:
            self.address = socket.inet_ntop(socket.AF_INET6, address)

    def __repr__(self) -> str:
        return f"{self.address}:{self.number}"


class Connection(NamedTuple):
    """A captured connection. Direction 0 is from side 0 to side 1."""

    id: int
    transport: Transport
    side0: Endpoint
    side1: Endpoint


class Event:
    """What every event has.

    type       -- EventType
    direction  -- 0: from side 0 of the connection to side 1; 1: back
    packet     -- number of the packet that caused the event, from 1
    time_ns    -- of that packet
    connection -- Connection, or None
    """

    __slots__ = ("type", "direction", "packet", "time_ns", "connection")

    def __init__(self, head: tuple[EventType, int, int, int, Connection | None]) -> None:
        self.type, self.direction, self.packet, self.time_ns, self.connection = head

    @property
    def time(self) -> float:
        """Time of the packet in seconds."""
        return self.time_ns / 1e9

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of packet {self.packet}>"


class Chunk:
    """Data that went beside the inline part of a message.

    kind     -- ChunkKind
    position -- read chunk: its position in the canonical message
    segments -- number of memory segments
    length   -- bytes, without padding
    data     -- memoryview
    """

    __slots__ = ("kind", "position", "segments", "length", "data")

    def __init__(
        self,
        kind: ChunkKind,
        position: int,
        segments: int,
        length: int,
        data: memoryview,
    ) -> None:
        self.kind = kind
        self.position = position
        self.segments = segments
        self.length = length
        self.data = data


class Rpc(Event):
    """An RPC call or reply over RDMA.

    xid, version, header_type, credits   -- of the RPC-over-RDMA header
    program, program_version, procedure -- of the call, also in a reply; 0: not known
    call_known, call_packet -- reply: does the capture have its call; the packet that completed it
    data    -- memoryview of the canonical message (docs/reassembly.md)
    reduced -- the inline part, after the RPC-over-RDMA header
    chunks  -- tuple of Chunk
    """

    __slots__ = (
        "xid",
        "version",
        "header_type",
        "credits",
        "program",
        "program_version",
        "procedure",
        "call_known",
        "call_packet",
        "data",
        "reduced",
        "chunks",
    )

    def __init__(
        self,
        head: tuple[EventType, int, int, int, Connection | None],
        xid: int,
        version: int,
        header_type: int,
        credits: int,  # noqa: A002 - the name of the protocol
        program: int,
        program_version: int,
        procedure: int,
        call_known: bool,
        call_packet: int,
        data: memoryview,
        reduced: bytes,
        chunks: tuple[Chunk, ...],
    ) -> None:
        self.type, self.direction, self.packet, self.time_ns, self.connection = head
        self.xid = xid
        self.version = version
        self.header_type = header_type
        self.credits = credits
        self.program = program
        self.program_version = program_version
        self.procedure = procedure
        self.call_known = call_known
        self.call_packet = call_packet
        self.data = data
        self.reduced = reduced
        self.chunks = chunks

    def __repr__(self) -> str:
        return f"<{type(self).__name__} xid {self.xid:#010x}, {len(self.data)} bytes>"


class Call(Rpc):
    """An RPC call."""

    __slots__ = ()


class Reply(Rpc):
    """An RPC reply."""

    __slots__ = ()


class Send(Event):
    """A message of one SEND: data (bytes), original (length on the wire), psn, packets,
    rpc_version (0: no such header), immediate and invalidate (None: without)."""

    __slots__ = (
        "data",
        "original",
        "psn",
        "packets",
        "rpc_version",
        "immediate",
        "invalidate",
    )

    def __init__(
        self,
        head: tuple[EventType, int, int, int, Connection | None],
        data: bytes,
        original: int,
        psn: int,
        packets: int,
        rpc_version: int,
        immediate: int | None,
        invalidate: int | None,
    ) -> None:
        super().__init__(head)
        self.data = data
        self.original = original
        self.psn = psn
        self.packets = packets
        self.rpc_version = rpc_version
        self.immediate = immediate
        self.invalidate = invalidate


class RpcError(Event):
    """An RDMA_ERROR message: xid, code (1: version, 2: chunk), low and high (versions)."""

    __slots__ = ("xid", "code", "low", "high")

    def __init__(self, head: Any, xid: int, code: int, low: int, high: int) -> None:
        super().__init__(head)
        self.xid, self.code, self.low, self.high = xid, code, low, high


class Hole(Event):
    """Bytes that the capture lacks: kind (HoleKind), xid, handle, offset, length, and the packets
    that would fill the hole (first_psn, last_psn; None: not known)."""

    __slots__ = ("kind", "xid", "handle", "offset", "length", "first_psn", "last_psn")

    def __init__(
        self,
        head: Any,
        kind: HoleKind,
        xid: int,
        handle: int,
        offset: int,
        length: int,
        first_psn: int | None,
        last_psn: int | None,
    ) -> None:
        super().__init__(head)
        self.kind, self.xid, self.handle = kind, xid, handle
        self.offset, self.length = offset, length
        self.first_psn, self.last_psn = first_psn, last_psn


class Duplicate(Event):
    """A packet that came before: psn, opcode, send (a whole message came again)."""

    __slots__ = ("psn", "opcode", "send")

    def __init__(self, head: Any, psn: int, opcode: int, send: bool) -> None:
        super().__init__(head)
        self.psn, self.opcode, self.send = psn, opcode, send


class Orphan(Event):
    """Something whose counterpart is missing: kind (OrphanKind), psn, handle, xid, length."""

    __slots__ = ("kind", "psn", "handle", "xid", "length")

    def __init__(
        self, head: Any, kind: OrphanKind, psn: int, handle: int, xid: int, length: int
    ) -> None:
        super().__init__(head)
        self.kind, self.psn, self.handle = kind, psn, handle
        self.xid, self.length = xid, length


class Eviction(Event):
    """Something incomplete was given up: reason (EvictionReason), xid, segments, bytes."""

    __slots__ = ("reason", "xid", "segments", "bytes")

    def __init__(
        self, head: Any, reason: EvictionReason, xid: int, segments: int, size: int
    ) -> None:
        super().__init__(head)
        self.reason, self.xid, self.segments, self.bytes = reason, xid, segments, size


_CLASSES: dict[str, type] = {
    c.__name__: c
    for c in (
        Call,
        Chunk,
        Connection,
        Duplicate,
        Endpoint,
        Event,
        Eviction,
        Hole,
        Orphan,
        Reply,
        RpcError,
        Send,
    )
}

MESSAGES = (EventType.CALL, EventType.REPLY)
"""The events that are reported if nothing else is asked for."""


class Reassembly(Dissected):
    """Reassembly(events=(CALL, REPLY), *, max_bytes=24 MiB, max_age=300 s, max_segments=65536,
    max_connections=4096, reorder_packets=1024, check_crc=False)

    Packets in, events out, in one pass and in bounded memory. One thread at a time. Raises
    InvalidParameterError (a limit out of range).
    """

    def __new__(
        cls,
        events: Iterable[EventType] = MESSAGES,
        *,
        max_bytes: int = 24 << 20,
        max_age: float = 300.0,
        max_segments: int = 65536,
        max_connections: int = 4096,
        reorder_packets: int = 1024,
        check_crc: bool = False,
    ) -> Reassembly:
        wanted = sum({1 << EventType(e) for e in events})
        return super().__new__(
            cls,
            _CLASSES,
            wanted,
            max_bytes,
            int(max_age * 1e9),
            max_segments,
            max_connections,
            reorder_packets,
            check_crc,
        )

    def feed(
        self,
        data: Any,
        time_ns: int = 0,
        link_type: int = LinkType.ETHERNET,
        original: int = 0,
    ) -> list[Event]:
        """Process a packet, given as any object with a buffer; the events that it causes.

        original: its length on the wire, if the capture cut it. A packet that cannot be
        understood is counted (`malformed` of stats()); it is not an error. Raises ValueError for
        a number out of range.
        """
        return self._feed(data, time_ns, link_type, original)

    def __enter__(self) -> Reassembly:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()


Source = Union[str, "os.PathLike[str]", IO[bytes], Iterable[tuple[Any, ...]]]


def _events(r: _ndx.Reassembly, source: Source, link_type: int) -> Iterator[Any]:
    """The events that the packets of the source cause."""
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            yield from _pcap.fed(file, r._feed, r._feed_pcap)
    elif hasattr(source, "read"):
        yield from _pcap.fed(cast("IO[bytes]", source), r._feed, r._feed_pcap)
    else:
        for time, data, *more in source:
            time_ns = int(time * 1e9) if isinstance(time, float) else time
            link = more[0] if more else link_type
            yield from r._feed(data, time_ns, link, more[1] if len(more) > 1 else 0)


def packets(path: str | os.PathLike[str]) -> Iterator[Packet]:
    """The packets of a pcap or pcapng file: (time_ns, data, link_type, original).

    Raises CaptureError, and EOFError where the file ends within a packet.
    """
    with open(path, "rb") as file:
        yield from _pcap.packets(file)


def reassemble(
    source: Source,
    *,
    events: Iterable[EventType] = MESSAGES,
    link_type: int = LinkType.ETHERNET,
    reassembly: Reassembly | None = None,
    **limits: Any,
) -> Iterator[Any]:
    """The calls and replies of a capture, or other events.

        for rpc in ndx.reassemble("nfs.pcap"):
            print(rpc.xid, rpc.procedure, len(rpc.data))

    source -- path or binary file of a capture (pcap, pcapng, gzip); or an iterable of
              (time, bytes[, link_type[, length on the wire]]) from anywhere. A time is an int in
              nanoseconds, or a float in seconds
    events -- EventTypes to report
    reassembly -- one to continue with, for a series of files; then `events` and limits are its own
    limits -- those of Reassembly

    At the end of the source what is incomplete is given up, as by flush(). Raises CaptureError
    (not a capture), EOFError (the file ends within a packet).
    """
    r = reassembly if reassembly is not None else Reassembly(events, **limits)
    try:
        yield from _events(r, source, link_type)
        yield from r.flush()
    finally:
        if reassembly is None:
            r.close()


__all__ = [
    "Call",
    "CaptureError",
    "Chunk",
    "Connection",
    "Duplicate",
    "Endpoint",
    "Event",
    "Eviction",
    "Hole",
    "Orphan",
    "Packet",
    "Reassembly",
    "Reply",
    "Rpc",
    "RpcError",
    "Send",
    "packets",
    "reassemble",
]
