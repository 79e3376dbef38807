# SPDX-License-Identifier: BSD-2-Clause
"""Receivers, senders, frames."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from conftest import PATIENCE, grows_no_more, local_address, python

import ndx
from ndx import aio


class Stream:
    """A running receiver and its sender."""

    def __init__(self, adapter: ndx.Adapter, longest: int = 4096, **options: object) -> None:
        self.receiver = ndx.Receiver(adapter, **options)  # type: ignore[arg-type]
        self.sender = ndx.Sender(adapter, slot_size=longest)
        with ndx.Listener(adapter, local_address(adapter)) as listener:
            address = listener.address
            thread = threading.Thread(
                target=lambda: self.receiver.accept(listener, timeout=PATIENCE)
            )
            thread.start()
            self.sender.connect(address, timeout=PATIENCE)
            thread.join(PATIENCE)
        assert self.receiver.state is ndx.ReceiverState.RUNNING

    def close(self) -> None:
        self.sender.close()
        self.receiver.close()


Make = Callable[..., Stream]


def holds(receiver: ndx.Receiver, count: int) -> bool:
    """Consumers hold so many slots, soon: the receiving thread holds one while it delivers."""
    deadline = time.monotonic() + PATIENCE
    while receiver.stats()["held"] != count and time.monotonic() < deadline:
        threading.Event().wait(0.001)
    return bool(receiver.stats()["held"] == count)


@pytest.fixture
def stream(adapter: ndx.Adapter) -> Iterator[Make]:
    """Makes streams that are closed at the end."""
    made: list[Stream] = []

    def make(**options: object) -> Stream:
        made.append(Stream(adapter, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_frames_are_not_copied(stream: Make) -> None:
    """Of the memory of Python a view takes far less than its frame. (The next test compares
    addresses.)"""
    size, frames = 65536, 64
    s = stream(longest=size, slot_count=8, slot_size=size)
    data = bytes(range(256)) * (size // 256)

    def send() -> None:
        for _ in range(2 * frames):
            s.sender.send(data, timeout=PATIENCE)

    thread = threading.Thread(target=send)
    thread.start()
    tracemalloc.start()
    try:
        for _ in range(frames):
            with s.receiver.next(PATIENCE) as frame:
                assert frame.data[:256] == data[:256] and len(frame.data) == size
        left = frames
        while left > 0:
            with s.receiver.pull(4, PATIENCE) as batch:
                left -= len(batch)
                assert all(f.data[-256:] == data[-256:] for f in batch)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    thread.join(PATIENCE)
    assert peak < size // 2, f"{peak} bytes"


def test_a_frame_is_a_view_of_the_slab(stream: Make, adapter: ndx.Adapter) -> None:
    s = stream(slot_count=4, slot_size=64)
    immediate = ndx.Capability.SEND_IMMEDIATE in adapter.query().capabilities
    addresses: dict[int, set[int]] = {}
    for i in range(16):
        s.sender.send(bytes([i]) * (i + 1), channel=i)
        frame = s.receiver.next(PATIENCE)
        assert len(frame) == i + 1 and bytes(frame.data) == bytes([i]) * (i + 1)
        assert frame.data is frame.data and frame.data.readonly
        if immediate:
            assert frame.channel == i and frame.sequence == i
            assert frame.immediate == i << 8 | i
        assert frame.lost == 0 and not frame.copied and not frame.written and frame.time_ns > 0
        numpy = pytest.importorskip("numpy")
        array = numpy.frombuffer(frame, dtype="u1")
        addresses.setdefault(frame.slot, set()).add(array.__array_interface__["data"][0])
        del array
        frame.release()
    # No copy: a slot has one address, and the slots lie side by side.
    assert all(len(a) == 1 for a in addresses.values()) and len(addresses) == 4
    ordered = sorted(a.pop() for a in addresses.values())
    assert len({b - a for a, b in zip(ordered, ordered[1:])}) == 1
    stats = s.receiver.stats()
    assert stats["frames"] == 16 and stats["slots"] == 4 and holds(s.receiver, 0)
    assert s.sender.stats()["frames"] <= 16
    assert json.loads(s.receiver.snapshot())["state"] == "running"


def test_a_view_ends_with_its_frame(stream: Make) -> None:
    s = stream(slot_count=2)
    s.sender.send(b"abcd")
    frame = s.receiver.next(PATIENCE)
    with frame:
        view = frame.data
        assert view[1] == ord("b")
    assert frame.released
    with pytest.raises(ValueError):
        view[0]
    for use in (lambda: frame.data, lambda: len(frame), lambda: frame.slot, lambda: memoryview(frame)):
        with pytest.raises(ValueError):
            use()
    frame.release()
    with pytest.raises(ValueError):
        frame.__enter__()


def test_a_frame_with_other_views_is_not_released(stream: Make) -> None:
    numpy = pytest.importorskip("numpy")
    s = stream(slot_count=2)
    s.sender.send(b"abcd")
    frame = s.receiver.next(PATIENCE)
    view = frame.data
    part = view[1:3]
    array = numpy.frombuffer(frame, dtype="u1")
    with pytest.raises(BufferError):
        frame.release()
    assert not frame.released and bytes(part) == b"bc" and array[3] == ord("d")
    with pytest.raises(ValueError):
        view[0]
    assert bytes(frame.data) == b"abcd"
    assert holds(s.receiver, 1)
    del array
    with pytest.raises(BufferError):
        frame.release()
    part.release()
    frame.release()
    assert holds(s.receiver, 0)


def test_dropped_frames_are_released(stream: Make) -> None:
    s = stream(slot_count=2)
    for _ in range(20):
        s.sender.send(b"x" * 100)
        frame = s.receiver.next(PATIENCE)
        view = frame.data
        del frame
        assert view[0] == ord("x")
        del view
    assert holds(s.receiver, 0)


def test_frames_outlive_their_receiver(stream: Make) -> None:
    s = stream()
    s.sender.send(b"stays")
    frame = s.receiver.next(PATIENCE)
    view = frame.data
    s.close()
    assert bytes(view) == b"stays"
    frame.release()
    del frame, view
    gc.collect()


def test_batches_and_iteration_end_with_the_peer(stream: Make) -> None:
    s = stream(slot_count=128)
    for i in range(100):
        s.sender.send(bytes([i]))
    s.sender.flush(timeout=PATIENCE)
    first = s.receiver.pull(10, PATIENCE)
    assert 1 <= len(first) <= 10 and isinstance(first, ndx.Batch)
    seen = [f.data[0] for f in first]
    first.release()
    assert first == []
    threading.Timer(0.2, s.sender.close).start()
    for batch in s.receiver.batches(32):
        seen += [f.data[0] for f in batch]
    assert seen == list(range(100))
    assert s.receiver.state is ndx.ReceiverState.ENDED
    assert s.receiver.cause.end is ndx.ReceiverEnd.GOODBYE
    assert list(s.receiver) == []
    with pytest.raises(ndx.CanceledError, match="disconnected"):
        s.receiver.pull(timeout=PATIENCE)


def test_a_batch_releases_what_it_can() -> None:
    with ndx.Adapter("loop") as adapter:
        s = Stream(adapter)
        for i in range(3):
            s.sender.send(bytes([i]))
        frames = ndx.Batch(s.receiver.next(PATIENCE) for _ in range(3))
        part = frames[1].data[:1]
        with pytest.raises(BufferError), frames:
            pass
        assert [f.released for f in frames] == [True, False, True] and part[0] == 1
        part.release()
        frames.release()
        s.close()


def test_waits_for_frames_end_with_their_time(stream: Make) -> None:
    s = stream()
    assert s.receiver.pull(timeout=0.05) == []
    with pytest.raises(ndx.TimedOutError):
        s.receiver.next(0)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        s.receiver.next(PATIENCE)
    timer.join()


def test_a_sender_waits_for_slots(stream: Make) -> None:
    s = stream(slot_count=2)
    with pytest.raises(ndx.TimedOutError):
        for _ in range(200):
            s.sender.send(b"more", timeout=0.2)
    assert holds(s.receiver, 2)
    while frames := s.receiver.pull(64, 0.1):
        frames.release()
    for wrong in (b"", bytes(5000)):
        with pytest.raises(ndx.Error):
            s.sender.send(wrong)
    with pytest.raises(ndx.Error):
        s.sender.send(b"x", 256)


def test_functions_take_frames(stream: Make, adapter: ndx.Adapter) -> None:
    taken: list[bytes] = []
    kept: list[ndx.Frame] = []
    ends: list[ndx.ReceiverState] = []
    ended = threading.Event()

    def consume(frame: ndx.Frame) -> bool:
        taken.append(bytes(frame.data))
        if frame.data[0] == 5:
            kept.append(frame)
        return frame.data[0] != 6

    def end(state: ndx.ReceiverState) -> None:
        ends.append(state)
        ended.set()

    s = stream(on_frame=consume, on_end=end)
    for i in range(10):
        s.sender.send(bytes([i]))
    s.sender.flush(timeout=PATIENCE)
    s.sender.close()
    assert ended.wait(PATIENCE)
    assert taken == [bytes([i]) for i in range(10)] and ends == [ndx.ReceiverState.ENDED]
    stats = s.receiver.stats()
    assert stats["consumer_errors"][0] == 1 and holds(s.receiver, 1)
    assert kept[0].data[0] == 5
    kept[0].release()
    assert holds(s.receiver, 0)
    with pytest.raises(ndx.StateError):
        s.receiver.pull(timeout=0)


def test_exceptions_in_functions_are_reported(
    stream: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: seen.append(u.exc_type))
    busy: list[object] = []

    def wrong(frame: ndx.Frame) -> None:
        for call in (s.receiver.close, s.receiver.stop):
            try:
                call()
            except ndx.BusyError as error:
                busy.append(error.status)
        raise LookupError(bytes(frame.data))

    s = stream(on_frame=wrong)
    s.sender.send(b"ouch")
    s.sender.flush(timeout=PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while s.receiver.stats()["consumer_errors"][0] == 0 and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    assert seen == [LookupError] and len(busy) == 2
    assert holds(s.receiver, 0)


def test_a_receiver_that_its_own_function_drops() -> None:
    with ndx.Adapter("loop") as adapter:
        called = threading.Event()
        holder: list[Stream] = []

        def drop(frame: ndx.Frame) -> None:
            holder[0].receiver = None  # type: ignore[assignment]
            called.set()

        holder.append(Stream(adapter, on_frame=drop))
        holder[0].sender.send(b"x")
        assert called.wait(PATIENCE)
        for _ in range(100):
            threading.Event().wait(0.005)
        holder[0].sender.close()


def test_frames_go_both_ways(adapter: ndx.Adapter) -> None:
    one, two = ndx.Receiver(adapter), ndx.Receiver(adapter)
    with ndx.Listener(adapter, local_address(adapter)) as listener:
        address = listener.address
        thread = threading.Thread(target=lambda: one.accept(listener, timeout=PATIENCE))
        thread.start()
        two.connect(address, timeout=PATIENCE)
        thread.join(PATIENCE)
    there, back = ndx.Sender(receiver=one), ndx.Sender(receiver=two)
    for i in range(20):
        there.send(bytes([i]))
        back.send(bytes([100 + i]))
        assert two.next(PATIENCE).data[0] == i and one.next(PATIENCE).data[0] == 100 + i
    for each in (there, back, one, two):
        each.close()


def test_a_receiver_connects_again(stream: Make, adapter: ndx.Adapter) -> None:
    s = stream()
    s.sender.close()
    with pytest.raises(ndx.CanceledError):
        s.receiver.pull(timeout=PATIENCE)
    s.receiver.reset()
    assert s.receiver.state is ndx.ReceiverState.CREATED
    with ndx.Listener(adapter, local_address(adapter)) as listener:
        other = ndx.Sender(adapter)
        address = listener.address
        thread = threading.Thread(target=lambda: other.accept(listener, timeout=PATIENCE))
        thread.start()
        s.receiver.connect(address, timeout=PATIENCE)
        thread.join(PATIENCE)
    other.send(b"again")
    assert bytes(s.receiver.next(PATIENCE).data) == b"again"
    assert s.receiver.stats()["connections"] == 2
    other.close()


def test_a_connect_that_fails_is_tried_again(adapter: ndx.Adapter) -> None:
    receiver = ndx.Receiver(adapter)
    with ndx.Listener(adapter, local_address(adapter)) as listener:
        address = listener.address
        with pytest.raises(ndx.TimedOutError):
            receiver.connect(address, timeout=0.1)
    with pytest.raises(ndx.ConnectionFailedError):
        receiver.connect(address, timeout=PATIENCE)
    with ndx.Listener(adapter, local_address(adapter)) as listener:
        sender = ndx.Sender(adapter)
        thread = threading.Thread(target=lambda: sender.accept(listener, timeout=PATIENCE))
        thread.start()
        receiver.connect(listener.address, timeout=PATIENCE)
        thread.join(PATIENCE)
    with pytest.raises(ndx.StateError):
        receiver.connect(address, timeout=1)
    sender.send(b"works")
    assert bytes(receiver.next(PATIENCE).data) == b"works"
    sender.close()
    receiver.close()


def test_descriptions_are_exchanged_by_hand(adapter: ndx.Adapter) -> None:
    receiver = ndx.Receiver(adapter)
    sender = ndx.Sender(adapter)
    try:
        mine = json.loads(json.dumps(receiver.describe(ndx.Role.SERVER)))
        yours = json.loads(json.dumps(sender.describe(ndx.Role.CLIENT)))
    except ndx.NotSupportedError:
        pytest.skip("the adapter has no descriptions")
    if adapter.query().provider == "verbs":  # there, goodbyes would need a stream
        with pytest.raises(ndx.StateError, match="stream"):
            receiver.connect_peer(yours, timeout=PATIENCE)
        mine = {**receiver.describe(ndx.Role.SERVER), "policy": 7}  # NDX_PEER_DEVICE
        yours["policy"] = 7
    thread = threading.Thread(target=lambda: receiver.connect_peer(yours, timeout=PATIENCE))
    thread.start()
    sender.connect_peer(mine, timeout=PATIENCE)
    thread.join(PATIENCE)
    sender.send(b"by hand")
    assert bytes(receiver.next(PATIENCE).data) == b"by hand"
    for spoil in ({}, {**mine, "qpn": 1 << 40}, {**mine, "gid": "zz"}, {**mine, "stack": "s" * 99}):
        with pytest.raises(ValueError):
            receiver.connect_peer(spoil)
    sender.close()
    receiver.close()


def test_numbers_are_for_devices(adapter: ndx.Adapter) -> None:
    with ndx.Receiver(adapter) as receiver:
        if adapter.query().provider == "verbs":
            numbers = receiver.numbers()
            assert 0 < numbers["qpn"] < 1 << 24 and len(numbers["gid"]) == 16
        else:
            with pytest.raises(ndx.NotSupportedError):
                receiver.numbers()
    with ndx.Receiver(adapter) as receiver, pytest.raises(ndx.Error):
        receiver.complete_connection(gid=bytes(16), qpn=1, rq_psn=1, sq_psn=1, timeout=1)
    with ndx.Receiver(adapter) as receiver, pytest.raises(ValueError):
        receiver.complete_connection(gid=b"short", qpn=1, rq_psn=1, sq_psn=1, timeout=1)


def test_the_queue_pair_of_a_receiver_is_only_lent(adapter: ndx.Adapter) -> None:
    receiver = ndx.Receiver(adapter)
    qp = receiver.qp
    assert qp is receiver.qp and qp.query()["state"] is ndx.QueuePairState.UNCONNECTED
    with pytest.raises(ndx.StateError, match="belongs"):
        qp.receive()
    receiver.stop()
    with pytest.raises(ndx.ClosedError):
        qp.query()
    receiver.close()


def test_arguments_are_checked(adapter: ndx.Adapter) -> None:
    for options in ({"slot_size": 0}, {"slot_count": 0}, {"batch": 65}):
        with pytest.raises(ndx.InvalidParameterError):
            ndx.Receiver(adapter, **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        ndx.Receiver(adapter, on_frame=7)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        ndx.Receiver(adapter, consumers=[(print, -1)] * 9)
    with pytest.raises(TypeError):
        ndx.Frame()


def test_asyncio_awaits_frames(adapter: ndx.Adapter) -> None:
    async def main() -> None:
        async with aio.Listener(adapter, local_address(adapter)) as listener:
            async with aio.Receiver(adapter) as receiver, asyncio.timeout(PATIENCE):
                address = listener.address
                accepting = asyncio.create_task(receiver.accept(listener))
                sender = ndx.Sender(adapter)
                await asyncio.to_thread(sender.connect, address)
                await accepting
                for i in range(50):
                    sender.send(bytes([i]))
                batch = await receiver.pull()
                seen = [f.data[0] for f in batch]
                batch.release()
                asyncio.get_running_loop().call_later(
                    0.1, lambda: threading.Thread(target=sender.close).start()
                )
                async for frame in receiver:
                    with frame:
                        seen.append(frame.data[0])
                assert seen == list(range(50))
                with pytest.raises(ndx.CanceledError):
                    await receiver.pull()

    asyncio.run(main())


def test_frames_leave_no_memory_behind() -> None:
    with ndx.Adapter("loop") as adapter:
        s = Stream(adapter, slot_count=32)

        def step() -> None:
            for _ in range(16):
                s.sender.send(b"x" * 1000)
            for _ in range(16):
                with s.receiver.next(PATIENCE) as frame:
                    assert len(frame.data) == 1000

        grows_no_more(step, 300, 100_000)
        s.close()
        grows_no_more(lambda: Stream(adapter, on_frame=len).close(), 40, 200_000)


def test_the_interpreter_ends_while_frames_come() -> None:
    said = python(
        "import ndx, threading\n"
        "a = ndx.Adapter('loop')\n"
        "host = next(x[0] for x in a.addresses() if len(x) == 2)\n"
        "seen = threading.Event()\n"
        "kept = []\n"
        "r = ndx.Receiver(a, on_frame=lambda f: (kept.append(f), seen.set(), kept[:-5].clear()),"
        " slot_count=8, copy_below=4, copy_count=4)\n"
        "l = ndx.Listener(a, (host, 0))\n"
        "t = threading.Thread(target=r.accept, args=(l,))\n"
        "t.start()\n"
        "s = ndx.Sender(a)\n"
        "s.connect(l.address)\n"
        "t.join()\n"
        "def send():\n"
        "    try:\n"
        "        while True: s.send(b'x', timeout=0.1)\n"
        "    except ndx.Error: pass\n"
        "threading.Thread(target=send, daemon=True).start()\n"
        "assert seen.wait(30)\n"
        "print('alive')\n"
    )
    assert said.strip() == "alive"
