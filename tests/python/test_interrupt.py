# SPDX-License-Identifier: BSD-2-Clause
"""Ctrl-C in any place of a call that waits: no operation stays in flight, no event is lost."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from conftest import PATIENCE, local_address
from interrupts import Interrupt
from pairs import unconnected

import ndx
from ndx import aio

LONG_MS = 4 * int(PATIENCE * 1000)

Call = Callable[[], object]


def in_flight() -> set[ndx._ndx.Operation]:
    """All operations that are."""
    found = [o for o in gc.get_objects() if isinstance(o, ndx._ndx.Operation)]
    return {o for o in found if o.status is ndx.Status.PENDING}


def wait_until_in_flight(only: set[ndx._ndx.Operation]) -> None:
    """A session that is cancelled may take a while to tell its peer."""
    deadline = time.monotonic() + PATIENCE
    while left := in_flight() - only:
        assert time.monotonic() < deadline, f"{len(left)} operations are in flight"
        threading.Event().wait(0.01)


def interrupted_everywhere(make: Callable[[ExitStack], tuple[Call, Call | None]]) -> int:
    """What `make` makes is a call that fails by itself, if what it also makes is called when it
    waits. The number of places; a call that can be made again must fail as before."""
    for place in range(1000):
        with ExitStack() as stack:
            call, at_wait = make(stack)
            before = in_flight()
            interrupt = Interrupt(place, at_wait=at_wait)
            with pytest.raises((KeyboardInterrupt, ndx.Error)), interrupt:
                call()
            wait_until_in_flight(before)
            if not interrupt.raised:
                return place
            if at_wait is None:
                with pytest.raises(ndx.TimedOutError):
                    call()
    raise AssertionError("there is no end of places")


def test_ctrl_c_is_no_other_error() -> None:
    negotiation = ndx.Negotiation()
    variant = negotiation.variant("example/three-round")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = "127.0.0.1:%d" % silent.getsockname()[1]
        with ndx.Session(variant, address) as session, ndx.SessionManager(negotiation) as manager:
            manager.add(variant, address)
            for look in (lambda: session.failure, manager.sessions):
                for place in range(1000):
                    interrupted = False
                    interrupt = Interrupt(place)
                    try:
                        with interrupt:
                            look()
                    except KeyboardInterrupt:
                        interrupted = True
                    assert interrupted is interrupt.raised
                    if not interrupted:
                        break
                assert place > 5


def test_a_connect_is_cancelled(adapter: ndx.Adapter) -> None:
    with ndx.Listener(adapter, local_address(adapter)) as listener:

        def make(stack: ExitStack) -> tuple[Call, None]:
            end = unconnected(adapter)
            for each in (end.region, end.cq, end.connector, end.qp):
                stack.enter_context(each)
            return lambda: end.connector.connect(end.qp, listener.address, timeout=0), None

        assert interrupted_everywhere(make) > 10


def test_a_wait_for_receives_is_cancelled(adapter: ndx.Adapter) -> None:
    if not adapter.query().capabilities & ndx.Capability.SRQ:
        pytest.skip("the adapter has no shared receive queues")

    def make(stack: ExitStack) -> tuple[Call, None]:
        srq = stack.enter_context(ndx.SharedReceiveQueue(adapter, 4, threshold=1))
        srq.receive(stack.enter_context(adapter.register(bytearray(8))))
        return lambda: srq.wait_low(0), None

    assert interrupted_everywhere(make) > 10


def test_a_session_is_cancelled() -> None:
    variant = ndx.Negotiation().variant("example/three-round")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = "127.0.0.1:%d" % silent.getsockname()[1]

        def make(stack: ExitStack) -> tuple[Call, Call]:
            session = stack.enter_context(
                ndx.Session(
                    variant,
                    address,
                    connect_timeout_ms=LONG_MS,
                    stage_timeout_ms=LONG_MS,
                    session_timeout_ms=LONG_MS,
                )
            )
            return session.run, session.cancel

        assert interrupted_everywhere(make) > 10


def test_an_addition_is_cancelled_and_the_session_lives() -> None:
    variant = ndx.Negotiation().variant("example/three-round")
    may_add = threading.Event()
    may_add.set()
    with ndx.Adapter("loop") as adapter:

        def pairs(count: int) -> list[ndx.Ends]:
            ends = [unconnected(adapter) for _ in range(count)]
            return [(end.connector, end.qp, end.region) for end in ends]

        def add_many(session: ndx.SessionView, first: int, count: int) -> list[ndx.Ends]:
            may_add.wait(PATIENCE)
            return pairs(count)

        with ndx.Server(
            "127.0.0.1:0",
            variant,
            on_open_many=lambda session, count: pairs(count),
            on_add_many=add_many,
        ) as server, ndx.Session(
            variant,
            f"127.0.0.1:{server.address[1]}",
            queue_pairs=pairs(2),
            stage_timeout_ms=LONG_MS,
        ) as session:
            session.run()

            def make(stack: ExitStack) -> tuple[Call, Call]:
                may_add.clear()
                stack.callback(may_add.set)
                several = pairs(1)
                return lambda: session.add_queue_pairs(several), session.cancel

            assert interrupted_everywhere(make) > 10
            assert session.state is ndx.SessionState.CONNECTED
            assert session.queue_pair_count == 2
            session.add_queue_pairs(pairs(1))
            assert session.queue_pair_count == 3


def test_a_call_that_cannot_begin_cancels_nothing(adapter: ndx.Adapter) -> None:
    with ndx.Listener(adapter, local_address(adapter)) as listener:
        end = unconnected(adapter)
        reads = ndx._connection.READS_MOST
        op = end.connector._start_connect(end.qp, listener.address, b"", reads, reads, None)
        other = unconnected(adapter)
        with pytest.raises(ndx.Error):
            end.connector.connect(other.qp, listener.address)
        with pytest.raises(ValueError):
            end.connector.connect(other.qp, "nowhere")
        assert op.status is ndx.Status.PENDING
        end.connector.close()
        assert op.status is ndx.Status.CANCELED


class Events:
    """A manager, and a server for what it adds: each session has one event."""

    def __init__(self, kind: type[ndx._manager.BaseSessionManager], stack: ExitStack) -> None:
        negotiation = ndx.Negotiation()
        self.variant = negotiation.variant("example/three-round")
        self.server = stack.enter_context(ndx.Server("127.0.0.1:0", self.variant))
        self.kept = threading.Semaphore(0)
        self.manager = stack.enter_context(
            kind(negotiation, on_event=lambda event: self.kept.release(), max_events=1000)
        )
        self.number = 0

    def begin(self) -> None:
        """No event has come."""
        self.number = 0

    def comes(self) -> None:
        """The event comes, once. This is no place of the call under test."""
        look = sys.getprofile()
        sys.setprofile(None)
        if self.number == 0:
            self.number = self.manager.add(self.variant, f"127.0.0.1:{self.server.address[1]}")
        sys.setprofile(look)

    def is_there(self) -> None:
        """The library has the event."""
        self.comes()
        assert self.kept.acquire(timeout=PATIENCE)


@pytest.mark.parametrize("when", ["comes", "there", "kept"])
def test_no_event_of_a_manager_is_lost(when: str) -> None:
    with ExitStack() as stack:
        events = Events(ndx.SessionManager, stack)
        manager = events.manager
        assert isinstance(manager, ndx.SessionManager)
        for place in range(1000):
            events.begin()
            if when == "there":
                events.is_there()
            if when == "kept":
                with pytest.raises(KeyboardInterrupt):
                    with Interrupt(0, at_wait=events.comes, after="wait"):
                        manager.event(PATIENCE)
            interrupt = Interrupt(place, at_wait=events.comes)
            try:
                with interrupt:
                    event = manager.event(PATIENCE)
            except KeyboardInterrupt:
                events.comes()
                event = manager.event(PATIENCE)
            assert event.id == events.number, place
            if not interrupt.raised:
                break
        assert place > 5
        with pytest.raises(ndx.TimedOutError):
            manager.event(0)


def test_a_wait_without_an_event_is_cancelled() -> None:
    with ExitStack() as stack:
        manager = Events(ndx.SessionManager, stack).manager
        assert isinstance(manager, ndx.SessionManager)
        assert interrupted_everywhere(lambda _: (lambda: manager.event(0), None)) > 10


@pytest.mark.parametrize("when", ["comes", "there"])
def test_no_awaited_event_of_a_manager_is_lost(when: str) -> None:
    loop = asyncio.new_event_loop()
    with ExitStack() as stack:
        stack.callback(loop.close)
        events = Events(aio.SessionManager, stack)
        manager = events.manager
        assert isinstance(manager, aio.SessionManager)

        async def following() -> ndx.ManagedEvent:
            return await asyncio.wait_for(manager.event(), PATIENCE)

        for place in range(1000):
            events.begin()
            if when == "there":
                events.is_there()
            task = loop.create_task(manager.event())
            loop.call_soon(events.comes)
            interrupt = Interrupt(place, own=True)
            try:
                with interrupt:
                    event = loop.run_until_complete(task)
            except KeyboardInterrupt:
                task.cancel()
                loop.run_until_complete(asyncio.wait([task]))
                events.comes()
                event = loop.run_until_complete(following())
            assert event.id == events.number, place
            if not interrupt.raised:
                break
        assert place > 5


@pytest.mark.parametrize("taken", [False, True])
def test_an_awaited_event_is_not_lost_when_its_task_is_cancelled(taken: bool) -> None:
    async def main(events: Events) -> None:
        manager = events.manager
        assert isinstance(manager, aio.SessionManager)
        task = asyncio.create_task(manager.event())
        await asyncio.sleep(0)  # it has begun
        events.is_there()  # and the loop is not asked in the meantime
        if taken:
            aio._hub().take()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await asyncio.wait_for(manager.event(), PATIENCE)).id == events.number

    with ExitStack() as stack:
        asyncio.run(main(Events(aio.SessionManager, stack)))
