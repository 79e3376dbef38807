# SPDX-License-Identifier: BSD-2-Clause
"""Ctrl-C in any place of a call: no event of a manager is lost."""

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
from conftest import PATIENCE
from interrupts import Interrupt

import ndx
from ndx import aio

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
