# SPDX-License-Identifier: BSD-2-Clause
"""Reassembly for programs that have dissected the packets already."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, Union

from . import _ndx
from ._enums import OperationKind, Transport

if TYPE_CHECKING:
    from ._capture import Endpoint, Event

Side = Union[tuple[str, Union[int, None]], "Endpoint"]
"""(address, number), or an Endpoint of a Connection. The address is a text: IPv4, IPv6, a GID, or
"lid 5". The number is the queue pair number or TCP port; None: not known."""

_UNKNOWN = 0xFFFFFFFF
_IPV4, _IPV6, _GID, _LID = 4, 6, 7, 8


def _address(text: str, transport: Transport) -> tuple[int, bytes]:
    """(family, 16 bytes) of an address."""
    try:
        if text.startswith("lid "):
            return _LID, bytes(14) + int(text[4:]).to_bytes(2, "big")
        if ":" not in text:
            return _IPV4, b"\0" * 10 + b"\xff\xff" + socket.inet_pton(socket.AF_INET, text)
        family = _IPV6 if transport in (Transport.ROCE_V2, Transport.IWARP) else _GID
        return family, socket.inet_pton(socket.AF_INET6, text)
    except (OSError, ValueError, OverflowError):
        raise ValueError(f'"{text}" is no IPv4 or IPv6 address, no GID and no "lid N"') from None


def _path(transport: Transport, source: Side, destination: Side) -> tuple[Any, ...]:
    """transport, family, and address and number of both sides."""
    sides = []
    for side in (source, destination):
        text, number = side if isinstance(side, tuple) else (side.address, side.number)
        sides.append((_address(text, transport), _UNKNOWN if number is None else number))
    ((family, one), first), ((other, two), second) = sides
    if family != other:
        raise ValueError("the two addresses are of different families")
    return transport, family, one, first, two, second


class Dissected(_ndx.Dissected):
    """What takes parts of packets: base of Reassembly. A connection comes in one form only: as
    packets, by feed_transport() or by feed_operation()."""

    def feed_transport(
        self,
        data: Any,
        source: Side,
        destination: Side,
        *,
        transport: Transport = Transport.ROCE_V2,
        time_ns: int = 0,
        length: int = 0,
        sequence: int = 0,
        acknowledged: int = 0,
        tcp_flags: int = 0,
    ) -> list[Event]:
        """Process a packet without its link and network headers; the events that it causes.

        data -- InfiniBand and RoCE: from the base transport header on, without the ICRC; IWARP: the
                payload of a TCP segment. Any object with a buffer
        source, destination -- ("10.0.0.1", 20049): address and TCP port; or an Endpoint. Of
                InfiniBand the number is not read: the base transport header has it
        length -- bytes on the wire, if the capture cut the packet
        sequence, acknowledged, tcp_flags -- IWARP: fields of the TCP header

        A packet that cannot be understood is counted (`malformed` of stats()). Raises ValueError
        (no such address, or a number out of range), InvalidParameterError (less than a base
        transport header, no port).
        """
        path = _path(Transport(transport), source, destination)
        return self._feed_transport(
            data, time_ns, *path, length, sequence, acknowledged, tcp_flags
        )

    def feed_operation(
        self,
        kind: OperationKind,
        source: Side,
        destination: Side,
        data: Any,
        *,
        handle: int = 0,
        address: int = 0,
        transport: Transport = Transport.ROCE_V2,
        time_ns: int = 0,
        length: int = 0,
        immediate: int | None = None,
        invalidate: int | None = None,
    ) -> list[Event]:
        """Process an RDMA operation, or a part of a write or read; the events that it causes.

            r.feed_operation(OperationKind.SEND, client, server, message)
            r.feed_operation(OperationKind.READ, server, client, data, handle=7, address=0x1000)

        kind -- SEND: `source` sends the message `data`. WRITE: `source` writes `data` to memory of
                `destination`. READ: `source` has read `data` from memory of `destination`
        source, destination -- ("10.0.0.1", 17): address, and queue pair number or TCP port, None
                if a queue pair's number is not known; or an Endpoint
        handle, address -- of WRITE and READ: where the data are in that memory
        length -- bytes of the operation, if the capture cut it
        immediate, invalidate -- of SEND: immediate data; handle that the receiver invalidates

        Operations of a connection come in the order in which they took effect. `psn` of an event
        is a count of them. Raises ValueError (no such address, or a number out of range),
        InvalidParameterError (no port).
        """
        path = _path(Transport(transport), source, destination)
        where = (OperationKind(kind), handle, address, immediate, invalidate)
        return self._feed_operation(data, time_ns, *path, length, *where)
