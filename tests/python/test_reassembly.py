# SPDX-License-Identifier: BSD-2-Clause
"""Captures taken apart: those made by reassembly-tool, and the real ones that $NDX_CAPTURES names."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import struct
import subprocess
from pathlib import Path

import pytest
from conftest import grows_no_more

import ndx

TOOL = Path(os.environ.get("NDX_BUILD", "")) / "bin" / "reassembly-tool"
DECODE = TOOL.with_name("ndx-decode")
CAPTURES = Path(os.environ.get("NDX_CAPTURES", "none"))


def digest(messages: list[ndx.Rpc]) -> str:
    """As ndx-decode --summary has it."""
    hashes = sorted(hashlib.sha256(m.data).hexdigest() for m in messages)
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def summary(path: Path) -> dict[str, str]:
    """What ndx-decode counts."""
    text = subprocess.run(
        [DECODE, "--summary", path], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    return dict(line.rsplit(" ", 1) for line in text.splitlines())


def compare(path: Path) -> None:
    """The module and ndx-decode take the capture apart alike."""
    wanted = summary(path)
    with ndx.Reassembly() as r:
        rpcs = list(ndx.reassemble(path, reassembly=r))
        stats = r.stats()
    calls = [m for m in rpcs if isinstance(m, ndx.Call)]
    replies = [m for m in rpcs if isinstance(m, ndx.Reply) and m.call_known]
    assert str(len(calls)) == wanted["calls"] and stats["calls"] == len(calls)
    assert str(len(replies)) == wanted["replies"]
    assert str(stats["packets"]) == wanted["packets"]
    assert digest(calls) == wanted["call digest"]
    assert digest(replies) == wanted["reply digest"]


@pytest.fixture(scope="session")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of 30 calls."""
    if not TOOL.exists():
        pytest.skip("reassembly-tool was not built")
    path = tmp_path_factory.mktemp("captures") / "synth.pcap"
    subprocess.run([TOOL, "synth", "0", "30", "1", path], check=True, capture_output=True)
    return path


@pytest.mark.parametrize("wire", range(6))
def test_made_captures(tmp_path: Path, wire: int) -> None:
    if not TOOL.exists():
        pytest.skip("reassembly-tool was not built")
    path = tmp_path / "synth.pcap"
    subprocess.run([TOOL, "synth", str(wire), "30", "2", path], check=True, capture_output=True)
    compare(path)


def truth() -> dict[str, dict[str, object]]:
    """What is known of the real captures."""
    file = CAPTURES / "expected.json"
    return json.loads(file.read_text()) if file.exists() else {}  # type: ignore[no-any-return]


@pytest.mark.skipif(not truth(), reason="$NDX_CAPTURES names no folder with expected.json")
@pytest.mark.parametrize("name", sorted(truth()))
def test_real_captures_have_their_truth(name: str) -> None:
    wanted = truth()[name]
    with ndx.Reassembly() as r:
        rpcs = list(ndx.reassemble(CAPTURES / name, reassembly=r))
        stats = r.stats()
    calls = [m for m in rpcs if isinstance(m, ndx.Call)]
    replies = [m for m in rpcs if isinstance(m, ndx.Reply) and m.call_known]
    assert len(calls) == wanted["calls"] and len(replies) == wanted["replies"]
    assert stats["packets"] == wanted["packets"]
    assert stats["calls_incomplete"] == wanted["calls_incomplete"]
    assert stats["duplicate_sends"] == wanted["dup_sends"]
    assert digest(calls) == wanted["call_digest"]
    assert digest(replies) == wanted["reply_digest"]


def test_packets_come_from_anywhere(capture: Path) -> None:
    wanted = [bytes(m.data) for m in ndx.reassemble(capture)]
    taken = list(ndx.packets(capture))
    assert [bytes(m.data) for m in ndx.reassemble(taken)] == wanted
    assert [bytes(m.data) for m in ndx.reassemble((p.time_ns, p.data) for p in taken)] == wanted
    seconds = ((p.time_ns / 1e9, bytearray(p.data), ndx.LinkType.ETHERNET) for p in taken)
    assert [bytes(m.data) for m in ndx.reassemble(seconds)] == wanted
    with open(capture, "rb") as file:
        assert [bytes(m.data) for m in ndx.reassemble(file)] == wanted
    with ndx.Reassembly() as r:
        events = [e for p in taken for e in r.feed(p.data, p.time_ns, p.link_type, p.original)]
        assert [bytes(e.data) for e in events] == wanted  # type: ignore[attr-defined]


class Trickle(io.BytesIO):
    """A source that has so many bytes at a time, as a pipe."""

    piece = 1

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.read(self.piece)


def swapped(capture: bytes) -> bytes:
    """The same capture in the other byte order."""
    out = [struct.pack(">IHHiIII", *struct.unpack("<IHHiIII", capture[:24]))]
    at = 24
    while at < len(capture):
        seconds, fraction, captured, original = struct.unpack_from("<IIII", capture, at)
        out.append(struct.pack(">IIII", seconds, fraction, captured, original))
        out.append(capture[at + 16 : at + 16 + captured])
        at += 16 + captured
    return b"".join(out)


@pytest.mark.parametrize("piece", [1, 15, 17, 100, 5000])
def test_a_live_capture_comes_in_pieces(capture: Path, piece: int) -> None:
    whole = capture.read_bytes()
    wanted = [(m.time_ns, m.packet, bytes(m.data)) for m in ndx.reassemble(capture)]
    for form in (whole, swapped(whole)):
        source = Trickle(form)
        source.piece = piece
        assert [(m.time_ns, m.packet, bytes(m.data)) for m in ndx.reassemble(source)] == wanted
        packets = [(p.time_ns, p.data, p.link_type, p.original) for p in ndx.packets(capture)]
        assert [m.time_ns for m in ndx.reassemble(packets)] == [w[0] for w in wanted]
        broken = Trickle(form[:-1])
        broken.piece = piece
        with pytest.raises(EOFError):
            list(ndx.reassemble(broken))
    long = bytearray(whole[:40])
    long[32:36] = b"\xff" * 4
    with pytest.raises(ndx.CaptureError):
        list(ndx.reassemble(Trickle(long)))


def test_a_message_has_its_parts(capture: Path) -> None:
    rpcs = list(ndx.reassemble(capture))
    with_chunks = [m for m in rpcs if m.chunks]
    assert with_chunks
    for m in with_chunks:
        for c in m.chunks:
            assert isinstance(c.kind, ndx.ChunkKind) and len(c.data) == c.length
            if isinstance(m, ndx.Call) and c.position:
                assert m.data[c.position : c.position + c.length] == c.data
                assert c.data.obj is m.data.obj
    first = rpcs[0]
    assert first.connection is not None and first.connection.transport is ndx.Transport.ROCE_V2
    assert first.packet > 0 and first.type in (ndx.EventType.CALL, ndx.EventType.REPLY)
    assert first.data.readonly and bytes(first.reduced)
    assert "xid" in repr(first) and first.connection.side0.address.count(".") == 3


def test_every_kind_of_event(capture: Path, tmp_path: Path) -> None:
    packets = list(ndx.packets(capture))
    lossy = [p for i, p in enumerate(packets) if i % 17 != 5]
    kinds = {type(e) for e in ndx.reassemble(lossy + lossy[:40], events=ndx.EventType)}
    assert {ndx.Call, ndx.Reply, ndx.Send, ndx.Hole, ndx.Duplicate, ndx.Event} <= kinds
    with ndx.Reassembly(ndx.EventType, check_crc=True) as r:
        broken = bytearray(packets[-1].data)
        broken[-1] ^= 1
        (bad,) = (e for e in r.feed(broken) if e.type is ndx.EventType.BAD_CRC)
        assert bad.packet == 1 and r.stats()["bad_crc"] == 1


def pcapng(packets: list[ndx.Packet], order: str) -> bytes:
    """As a pcapng file with two interfaces, the second one in nanoseconds."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        size = struct.pack(order + "I", len(body) + 12)
        return struct.pack(order + "I", kind) + size + body + size

    file = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    file += block(1, struct.pack(order + "HHI", 113, 0, 0))
    file += block(
        1, struct.pack(order + "HHIHHB3xHH", packets[0].link_type, 0, 0, 9, 1, 9, 0, 0)
    )
    file += block(5, bytes(12))
    for p in packets:
        head = struct.pack(
            order + "IIIII", 1, p.time_ns >> 32, p.time_ns & 0xFFFFFFFF, len(p.data), p.original
        )
        file += block(6, head + p.data)
    return file


@pytest.mark.parametrize("order", "<>")
def test_formats_of_files(capture: Path, order: str, tmp_path: Path) -> None:
    wanted = list(ndx.packets(capture))
    path = tmp_path / "capture.pcapng"
    path.write_bytes(pcapng(wanted, order))
    assert list(ndx.packets(path)) == wanted
    packed = gzip.compress(capture.read_bytes())
    path.write_bytes(packed)
    assert list(ndx.packets(path)) == wanted
    # compressed twice; another method of compression; a wrong checksum; a broken block
    broken = packed[:40] + b"\xff" * 40 + packed[80:]
    for wrong in (gzip.compress(packed), packed[:2] + b"\0" + packed[3:], packed[:-8] + bytes(8), broken):
        path.write_bytes(wrong)
        with pytest.raises(ndx.CaptureError):
            list(ndx.packets(path))
    swapped = struct.pack(order + "IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    swapped += b"".join(
        struct.pack(order + "IIII", p.time_ns // 10**9, p.time_ns // 1000 % 10**6, len(p.data), 99)
        + p.data
        for p in wanted
    )
    path.write_bytes(swapped)
    again = list(ndx.packets(path))
    assert [p.data for p in again] == [p.data for p in wanted]
    assert all(a.time_ns == p.time_ns // 1000 * 1000 for a, p in zip(again, wanted))


def test_broken_files_are_refused(capture: Path, tmp_path: Path) -> None:
    whole = capture.read_bytes()
    ng = pcapng(list(ndx.packets(capture))[:3], "<")
    for text in (b"", b"hello, world", b"\x1f\x8bno", ng[:40] + b"\xff" * 40):
        with pytest.raises((ndx.CaptureError, EOFError, OSError)):
            list(ndx.reassemble(io.BytesIO(text)))
    for cut in (30, len(whole) - 3):
        with pytest.raises(EOFError):
            list(ndx.reassemble(io.BytesIO(whole[:cut])))
    with pytest.raises(ndx.CaptureError):
        list(ndx.reassemble(io.BytesIO(whole[:32] + b"\xff" * 16)))
    with pytest.raises(FileNotFoundError):
        list(ndx.reassemble(tmp_path / "none"))
    for at in range(0, len(ng), 3):
        spoiled = bytearray(ng)
        spoiled[at] ^= 0xFF
        try:
            list(ndx.reassemble(io.BytesIO(spoiled)))
        except (ndx.CaptureError, EOFError):
            pass


def test_arguments_are_checked() -> None:
    with pytest.raises(ndx.InvalidParameterError):
        ndx.Reassembly(max_bytes=1)
    with pytest.raises(ValueError):
        ndx.Reassembly([99])  # type: ignore[list-item]
    r = ndx.Reassembly()
    with pytest.raises(TypeError):
        r.feed("text")
    assert r.feed(b"") == [] and r.feed(b"rubbish") == []
    r.close()
    r.close()
    for call in (r.flush, r.stats, lambda: r.feed(b"")):
        with pytest.raises(ndx.ClosedError):
            call()


def test_reassembly_works_in_a_forked_child(capture: Path) -> None:
    ndx.Adapter("loop").close()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if list(ndx.reassemble(capture)) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_captures_leave_no_memory_behind(capture: Path) -> None:
    packets = list(ndx.packets(capture))
    grows_no_more(lambda: list(ndx.reassemble(packets, events=ndx.EventType)), 20, 100_000)
