# SPDX-License-Identifier: BSD-2-Clause
"""Calls and replies from what the program has dissected: transport, operations, segments."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import grows_no_more

import ndx

TOOL = Path(os.environ.get("NDX_BUILD", "")) / "bin" / "reassembly-tool"
CLIENT, SERVER = ("10.0.0.1", 17), ("10.0.0.2", 18)
PAGE = 5000


def call(xid: int, handle: int) -> bytes:
    """RPC-over-RDMA with a read chunk at position 40, and a write chunk."""
    lists = struct.pack(">4LQ", 1, 40, handle, PAGE, 0x1000) + struct.pack(">L", 0)
    lists += struct.pack(">4LQ2L", 1, 1, handle + 1, PAGE, 0x8000, 0, 0)
    return struct.pack(">4L", xid, 1, 8, 0) + lists + struct.pack(">6L16x", xid, 0, 2, 100003, 4, 1)


def reply(xid: int, handle: int) -> bytes:
    """Its reply, with the write chunk."""
    lists = struct.pack(">5LQ2L", 0, 1, 1, handle + 1, PAGE, 0x8000, 0, 0)
    return struct.pack(">4L", xid, 1, 8, 0) + lists + struct.pack(">2L16x", xid, 1)


def conversation(r: ndx.Reassembly, **options: Any) -> list[ndx.Event]:
    """A call and its reply, as operations."""
    kind, feed = ndx.OperationKind, r.feed_operation
    data, back = bytes(range(250)) * 20, bytes(range(249, -1, -1)) * 20
    events = feed(kind.SEND, CLIENT, SERVER, call(5, 7), **options)
    for part in (slice(3000, None), slice(None, 3000)):
        at = part.start or 0
        events += feed(
            kind.READ, SERVER, CLIENT, data[part], handle=7, address=0x1000 + at, **options
        )
        events += feed(
            kind.WRITE, SERVER, CLIENT, back[part], handle=8, address=0x8000 + at, **options
        )
    return events + feed(kind.SEND, SERVER, CLIENT, reply(5, 7), **options)


@pytest.mark.parametrize("transport", ndx.Transport)
def test_operations_become_calls_and_replies(transport: ndx.Transport) -> None:
    with ndx.Reassembly() as r:
        one, two = conversation(r, transport=transport, time_ns=9)
        assert isinstance(one, ndx.Call) and isinstance(two, ndx.Reply)
        assert one.data[40:] == bytes(range(250)) * 20 and one.program == 100003
        assert two.data[24:] == bytes(range(249, -1, -1)) * 20 and two.call_known
        assert one.connection == two.connection and one.time_ns == 9
        assert one.connection is not None and one.connection.transport is transport
        assert {str(one.connection.side0), str(one.connection.side1)} == {
            "10.0.0.1:17",
            "10.0.0.2:18",
        }
        assert r.flush() == [] and r.stats()["calls"] == 1
        # An endpoint of an event is a side.
        server = one.connection.side1
        send = ndx.OperationKind.SEND
        assert r.feed_operation(send, CLIENT, server, b"x", transport=transport) == []
        assert r.stats()["sends"] == 3 and r.stats()["connections"] == 1


def test_what_a_send_carries() -> None:
    with ndx.Reassembly(ndx.EventType) as r:
        events = r.feed_operation(
            ndx.OperationKind.SEND,
            ("fe80::1", None),
            ("fe80::2", None),
            b"abc",
            transport=ndx.Transport.INFINIBAND,
            length=5,
            immediate=1 << 31,
            invalidate=3,
        )
        send = next(e for e in events if isinstance(e, ndx.Send))
        assert send.data == b"abc" and send.original == 5
        assert send.immediate == 1 << 31 and send.invalidate == 3
        assert any(isinstance(e, ndx.Hole) and e.length == 2 for e in events)
        assert send.connection is not None and send.connection.side0.number is None
        (lid,) = (
            e
            for e in r.feed_operation(
                ndx.OperationKind.SEND, ("lid 5", 1), ("lid 6", 2), b"abc"
            )
            if isinstance(e, ndx.Send)
        )
        assert lid.connection is not None and lid.connection.side0.address == "lid 5"


def strip(packet: ndx.Packet) -> tuple[bytes, tuple[str, int], tuple[str, int], dict[str, int]]:
    """An Ethernet packet of IPv4 without headers: UDP's payload without ICRC, or TCP's."""
    ip = packet.data[14:]
    size = (ip[0] & 15) * 4
    ip, above = ip[: struct.unpack(">H", ip[2:4])[0]], ip[9]
    hosts = socket.inet_ntoa(ip[12:16]), socket.inet_ntoa(ip[16:20])
    inner = ip[size:]
    ports = struct.unpack(">HH", inner[:4])
    sides = (hosts[0], ports[0]), (hosts[1], ports[1])
    if above == 17:
        return inner[8:-4], *sides, {}
    sequence, acknowledged, offset, flags = struct.unpack(">LLBB", inner[4:14])
    fields = {"sequence": sequence, "acknowledged": acknowledged, "tcp_flags": flags}
    return inner[(offset >> 4) * 4 :], *sides, fields


@pytest.mark.parametrize(
    "wire, transport", [(0, ndx.Transport.ROCE_V2), (4, ndx.Transport.IWARP)]
)
def test_transport_gives_what_packets_give(
    tmp_path: Path, wire: int, transport: ndx.Transport
) -> None:
    if not TOOL.exists():
        pytest.skip("reassembly-tool was not built")
    path = tmp_path / "synth.pcap"
    subprocess.run([TOOL, "synth", str(wire), "30", "2", path], check=True, capture_output=True)
    wanted = [bytes(m.data) for m in ndx.reassemble(path)]
    got = []
    with ndx.Reassembly() as r:
        for packet in ndx.packets(path):
            data, source, destination, fields = strip(packet)
            got += r.feed_transport(data, source, destination, transport=transport, **fields)
        got += r.flush()
    assert len(wanted) >= 60
    assert [bytes(m.data) for m in got] == wanted  # type: ignore[attr-defined]


def test_arguments_are_checked() -> None:
    send = ndx.OperationKind.SEND
    with ndx.Reassembly() as r:
        for source in (("ten", 1), ("10.0.0.1", -1), ("fe80::1", 1), ("lid 70000", 1), ("::z", 1)):
            with pytest.raises(ValueError):
                r.feed_operation(send, source, SERVER, b"")
            with pytest.raises(ValueError):
                r.feed_transport(bytes(12), source, SERVER)
        for options in (
            {"handle": 1 << 32},
            {"address": 1 << 64},
            {"time_ns": -1},
            {"immediate": -1},
            {"invalidate": 1 << 32},
            {"length": 1 << 32},
            {"transport": 5},
        ):
            with pytest.raises(ValueError):
                r.feed_operation(send, CLIENT, SERVER, b"", **options)  # type: ignore[arg-type]
        with pytest.raises(ValueError):
            r.feed_operation(4, CLIENT, SERVER, b"")  # type: ignore[arg-type]
        with pytest.raises(ndx.InvalidParameterError):
            r.feed_operation(send, ("10.0.0.1", 1 << 24), SERVER, b"")
        with pytest.raises(ndx.InvalidParameterError):
            r.feed_transport(bytes(11), CLIENT, SERVER)
        for options in ({"sequence": 1 << 32}, {"tcp_flags": 256}, {"acknowledged": -1}):
            with pytest.raises(ValueError):
                r.feed_transport(
                    b"", CLIENT, SERVER, transport=ndx.Transport.IWARP, **options
                )
        with pytest.raises(TypeError):
            r.feed_operation(send, CLIENT, SERVER, "text")
        assert r.stats()["packets"] == 0
    with pytest.raises(ndx.ClosedError):
        r.feed_operation(send, CLIENT, SERVER, b"")


def test_feed_refuses_numbers_that_do_not_fit() -> None:
    with ndx.Reassembly() as r:
        for numbers in (
            {"time_ns": -1},
            {"time_ns": 1 << 64},
            {"link_type": 1 << 32},
            {"link_type": (1 << 32) + 1},
            {"original": -1},
            {"original": 1 << 32},
        ):
            with pytest.raises(ValueError):
                r.feed(b"", **numbers)
        with pytest.raises(ValueError):
            list(ndx.reassemble([(-1, b"")], reassembly=r))
        assert r.stats()["packets"] == 0
        assert r.feed(b"", (1 << 64) - 1, (1 << 32) - 1, (1 << 32) - 1) == []
        assert r.stats()["packets"] == 1


def test_a_segment_takes_data_in_three_ways() -> None:
    data = bytes(range(250)) * 10
    s = ndx.Segment(1000, len(data))
    assert len(s) == 2500 and s.address == 1000 and s.size == 0 and s.gaps() == [(0, 2500)]
    s.add_operation(0xFFFFFE, 1000, 2048)
    assert s.valid_psn(0xFFFFFF) and not s.valid_psn(0xFFFFFD)
    s.add_packet(0xFFFFFF, data[1024:2048], last=True)
    assert s.gaps() == [(0, 1024), (2048, 452)]
    s.add_packet(psn=0xFFFFFE, data=memoryview(data)[:1024])
    s.add_request(sink_handle=3, sink_offset=70, source=1000 + 2048, length=400)
    s.add_response(3, 70, data[2048:2448])
    assert s.size == 2448 and s.data()[2448:] == bytes(52)
    s.add_data(1000 + 2448, data[2448:] + b"behind the end")
    assert s.gaps() == [] and s.data() == data
    assert len(ndx.Segment(0, 5).data(padded=True)) == 8
    for wrong in (
        lambda: s.add_data(999, b"x"),
        lambda: s.add_packet(5, b"x"),
        lambda: s.add_request(3, 70, 5, 1),
        lambda: s.add_response(4, 70, b"x"),
        lambda: s.add_operation(0, 5000, 1),
    ):
        with pytest.raises(ndx.NotFoundError):
            wrong()
    for bad in (
        lambda: ndx.Segment(0, 0),
        lambda: ndx.Segment(-1, 1),
        lambda: ndx.Segment(0, 1 << 32),
        lambda: ndx.Segment((1 << 64) - 1, 2),
        lambda: s.add_operation(1 << 24, 1000, 1),
        lambda: s.add_operation(0, 1000, 1, path_mtu=1000),
        lambda: s.valid_psn(-1),
    ):
        with pytest.raises(ValueError):
            bad()
    with pytest.raises(ndx.Error) as caught:
        ndx.Segment(0, 100_000, max_bytes=2000).add_data(0, b"x")
    assert caught.value.status is ndx.Status.NO_MEMORY
    s.close()
    s.close()
    for call_of in (s.gaps, s.data, lambda: s.size, lambda: s.add_data(1000, b"x")):
        with pytest.raises(ndx.ClosedError):
            call_of()


def test_they_leave_no_memory_behind() -> None:
    def step() -> None:
        with ndx.Reassembly(ndx.EventType) as r:
            assert conversation(r)
        s = ndx.Segment(0, 100_000)
        s.add_operation(0, 0, 100_000)
        s.add_request(1, 0, 0, 9)
        s.add_data(0, bytes(70_000))

    grows_no_more(step, 300, 100_000)
