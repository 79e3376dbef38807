# SPDX-License-Identifier: BSD-2-Clause
"""Shared receive queues: receives of several queue pairs."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest
from conftest import PATIENCE, grows_no_more
from pairs import Connection, End

import ndx


class Memory(bytearray):
    """Memory that can be watched."""


@pytest.fixture(name="able")
def _able(adapter: ndx.Adapter) -> ndx.Adapter:
    """An adapter with shared receive queues; one without says so."""
    if not adapter.query().capabilities & ndx.Capability.SRQ:
        with pytest.raises(ndx.NotSupportedError):
            ndx.SharedReceiveQueue(adapter)
        pytest.skip("the adapter has no shared receive queues")
    return adapter


def until(over: threading.Event, call: Callable[[], object]) -> None:
    """Call it over and over: what it is to end may not have begun."""
    while not over.wait(0.02):
        with suppress(ndx.ClosedError):
            call()


class Two:
    """Two connections whose passive ends share receives and a completion queue."""

    def __init__(self, adapter: ndx.Adapter, stack: ExitStack, **options: int) -> None:
        self.srq = ndx.SharedReceiveQueue(adapter, 8, **options)
        self.cq = ndx.CompletionQueue(adapter, 64)
        self.active: list[End] = []
        self.passive: list[End] = []
        for name in ("one", "two"):
            connection = SharedConnection(adapter, self.srq, self.cq, name)
            active, passive = stack.enter_context(connection)
            self.active.append(active)
            self.passive.append(passive)


class SharedConnection(Connection):
    """A connection whose passive end takes its receives from a shared queue."""

    def __init__(
        self, adapter: ndx.Adapter, srq: ndx.SharedReceiveQueue, cq: ndx.CompletionQueue, name: str
    ) -> None:
        self.shared = srq, cq, name
        super().__init__(adapter)

    def prepare(self, adapter: ndx.Adapter, end: End) -> None:
        """Replace the queue pair of the passive end."""
        srq, cq, name = self.shared
        end.qp.close()
        end.qp = ndx.QueuePair(adapter, cq, end.cq, context=name, srq=srq)


@pytest.fixture(name="two")
def _two(able: ndx.Adapter) -> Iterator[Two]:
    with ExitStack() as stack:
        yield Two(able, stack, threshold=2)


def test_receives_go_to_whoever_gets_a_message(able: ndx.Adapter, two: Two) -> None:
    region = able.register(bytearray(4 * 64))
    for i in range(4):
        two.srq.receive(region, 64 * i, 64, context=i)
    for turn, sender in enumerate((0, 1, 1, 0)):
        two.active[sender].memory[:5] = b"turn%d" % turn
        two.active[sender].qp.send(two.active[sender].region, 0, 5)
        (result,) = two.cq.wait(PATIENCE, 1)
        assert result.status is ndx.Status.OK and result.type is ndx.RequestType.RECEIVE
        assert result.context == turn and result.bytes == 5
        assert result.queue_pair == ("one", "two")[sender]
        assert bytes(region.memory[64 * turn : 64 * turn + 5]) == b"turn%d" % turn


def test_the_threshold_wakes(able: ndx.Adapter, two: Two) -> None:
    region = able.register(bytearray(64))
    two.srq.wait_low(PATIENCE)  # nothing is posted
    for _ in range(2):
        two.srq.receive(region)
    with pytest.raises(ndx.TimedOutError):
        two.srq.wait_low(0.05)
    threading.Timer(0.1, two.active[0].qp.send, (two.active[0].region, 0, 1)).start()
    two.srq.wait_low(PATIENCE)
    (result,) = two.cq.wait(PATIENCE, 1)
    assert result.queue_pair == "one"
    two.srq.modify(depth=16, threshold=1)
    with pytest.raises(ndx.TimedOutError):
        two.srq.wait_low(0)
    for end in (two.srq.cancel, two.srq.close):
        over = threading.Event()
        ends = threading.Thread(target=until, args=(over, end))
        ends.start()
        try:
            with pytest.raises((ndx.CanceledError, ndx.ClosedError)):
                two.srq.wait_low(PATIENCE)
        finally:
            over.set()
        ends.join(PATIENCE)


def test_what_a_receive_uses_lives_as_long_as_its_result_may_come(
    able: ndx.Adapter, two: Two
) -> None:
    memory = Memory(64)
    seen = weakref.ref(memory)
    for _ in range(2):
        two.srq.receive(able.register(memory), context="late")
    del memory
    two.active[1].qp.send(two.active[1].region, 0, 1)
    # One receive has a result that waits; the other is not used. Both queues go.
    assert two.active[1].cq.wait(PATIENCE, 1)
    two.srq.close()
    with pytest.raises(ndx.ClosedError):
        two.srq.receive()
    for end in two.passive:
        end.qp.close()
    gc.collect()
    assert seen() is not None
    results = two.cq.wait(PATIENCE)
    assert results[0].context == "late" and results[0].status is ndx.Status.OK
    assert results[0].queue_pair is None
    two.cq.close()
    del results
    gc.collect()
    assert seen() is None


def test_arguments_are_checked(able: ndx.Adapter) -> None:
    for options in ({"depth": 0}, {"max_sge": 0}, {"depth": 1 << 31}):
        with pytest.raises(ndx.InvalidParameterError):
            ndx.SharedReceiveQueue(able, **options)
    with pytest.raises(ValueError):
        ndx.SharedReceiveQueue(able, -1)
    region = able.register(bytearray(8))
    with ndx.SharedReceiveQueue(able, 2) as srq, ndx.CompletionQueue(able) as cq:
        with pytest.raises(ndx.InvalidParameterError):
            srq.wait_low(0)  # no threshold
        with pytest.raises(ValueError):
            srq.receive(region, 4, 5)
        with pytest.raises(TypeError):
            srq.receive(b"bytes")
        with pytest.raises(ndx.Error) as caught:
            srq.receive([(region, 0, 4), (region, 4, 4)])
        assert caught.value.status is ndx.Status.DATA_OVERRUN
        for _ in range(2):
            srq.receive(region)
        with pytest.raises(ndx.QueueFullError):
            srq.receive(region)
        with pytest.raises(TypeError):
            ndx.QueuePair(able, cq, srq=cq)  # type: ignore[arg-type]
        with ndx.QueuePair(able, cq, srq=srq) as qp, pytest.raises(ndx.Error):
            qp.receive(region)


def test_they_leave_no_memory_behind(able: ndx.Adapter) -> None:
    region = able.register(bytearray(64))

    def step() -> None:
        srq = ndx.SharedReceiveQueue(able, 4)
        cq = ndx.CompletionQueue(able)
        ndx.QueuePair(able, cq, srq=srq, context=object())
        srq.receive(region, context=bytes(1000))

    grows_no_more(step, 200, 100_000)

    cq = ndx.CompletionQueue(able)
    srq = ndx.SharedReceiveQueue(able, 4)
    grows_no_more(lambda: ndx.QueuePair(able, cq, srq=srq, context=bytes(1000)), 200, 100_000)
