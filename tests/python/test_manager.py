# SPDX-License-Identifier: BSD-2-Clause
"""Session managers."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
import threading
import time
import weakref
from typing import Any

import pytest
from conftest import PATIENCE, grows_no_more, python
from pairs import End, unconnected

import ndx
from ndx import aio

UP, DOWN, CANCELED = (ndx.ManagedEventKind[name] for name in ("UP", "DOWN", "CANCELED"))
OVER = ndx.ManagedState.OVER


@pytest.fixture(name="negotiation")
def _negotiation() -> ndx.Negotiation:
    return ndx.Negotiation()


@pytest.fixture(name="variant")
def _variant(negotiation: ndx.Negotiation) -> ndx.Variant:
    return negotiation.variant("example/three-round")


def where(server: ndx.Server) -> str:
    return f"{server.address[0]}:{server.address[1]}"


class Accepting:
    """A server that connects each session."""

    def __init__(self, adapter: ndx.Adapter, variant: ndx.Variant) -> None:
        self.adapter = adapter
        self.ends: list[End] = []
        self.server = ndx.Server("127.0.0.1:0", variant, on_open=self.open)

    def open(self, session: ndx.SessionView) -> ndx.Ends:
        self.ends.append(unconnected(self.adapter))
        return self.ends[-1].connector, self.ends[-1].qp


class Providing:
    """The functions of a manager, and what they were told."""

    def __init__(self, adapter: ndx.Adapter) -> None:
        self.adapter = adapter
        self.given: list[End] = []
        self.told: list[tuple[object, ...]] = []

    def provide(self, id: int, context: object) -> ndx.Ends:
        self.given.append(unconnected(self.adapter))
        self.told.append(("provide", id, context))
        end = self.given[-1]
        return end.connector, end.qp, end.region

    def reclaim(self, id: int, context: object, connector: Any, qp: Any, memory: Any) -> None:
        end = self.given[-1]
        assert (connector, qp, memory) == (end.connector, end.qp, end.region)
        connector.close()
        qp.close()
        memory.close()
        self.told.append(("reclaim", id, context))


def test_a_connection_is_made_again(
    adapter: ndx.Adapter, negotiation: ndx.Negotiation, variant: ndx.Variant
) -> None:
    peer = Accepting(adapter, variant)
    mine = Providing(adapter)
    with peer.server, ndx.SessionManager(
        negotiation,
        provide=mine.provide,
        reclaim=mine.reclaim,
        backoff_ms=10,
        backoff_most_ms=50,
        stable_ms=600_000,
    ) as manager:
        number = manager.add(variant, where(peer.server), context="ctx")
        first = manager.event(PATIENCE)
        assert first[:5] == (UP, number, 1, "ctx", ndx.Status.OK)
        assert first.session is None and first.server == where(peer.server)
        (entry,) = manager.sessions()
        assert (entry.id, entry.context, entry.life) == (number, "ctx", 1)
        assert entry.state is ndx.ManagedState.UP
        peer.ends[0].connector.disconnect(timeout=PATIENCE)
        down = manager.event(PATIENCE)
        assert down[:4] == (DOWN, number, 1, "ctx") and down.text and down.pause_ms > 0
        second = manager.event(PATIENCE)
        assert second[:5] == (UP, number, 2, "ctx", ndx.Status.OK)
        manager.report(number, 2, ndx.Status.REMOTE_ERROR)
        assert manager.event(PATIENCE)[:5] == (
            DOWN, number, 2, "ctx", ndx.Status.REMOTE_ERROR)  # fmt: skip
        assert manager.event(PATIENCE)[:3] == (UP, number, 3)
        with pytest.raises(ndx.StateError):
            manager.report(number, 2, ndx.Status.REMOTE_ERROR)
        with pytest.raises(ndx.InvalidParameterError):
            manager.report(number, 3, ndx.Status.OK)
        with pytest.raises(ndx.BusyError):
            manager.remove(number)
        manager.cancel(number)
        assert manager.event(PATIENCE).kind in (CANCELED, DOWN)
        stats = manager.stats()
        assert stats["lives"] == 3 and stats["sessions"] == 1
        deadline = time.monotonic() + PATIENCE
        while manager.sessions()[0].state is not OVER:
            assert time.monotonic() < deadline
            threading.Event().wait(0.01)
        while True:
            try:
                manager.remove(number)
                break
            except ndx.BusyError:
                assert time.monotonic() < deadline
        assert manager.sessions() == []
        for call in (manager.cancel, manager.remove):
            with pytest.raises(ndx.NotFoundError):
                call(number)
    names = [what[0] for what in mine.told]
    assert names == ["provide", "reclaim"] * 3
    with pytest.raises(ndx.ClosedError):
        manager.sessions()


def test_functions_are_told(negotiation: ndx.Negotiation, variant: ndx.Variant) -> None:
    up = threading.Event()
    last = threading.Event()
    seen: list[tuple[str, bool, object]] = []
    lent: list[Any] = []

    def on_event(event: ndx.ManagedEvent) -> None:
        state = event.session.state.name if event.session is not None else None
        lent.append(event.session)
        with pytest.raises(ndx.BusyError):
            manager.close()
        seen.append((event.kind.name, state == "CONNECTED", event.context))
        if event.kind is UP:
            for call in (event.session.cancel, event.session.close):  # type: ignore[union-attr]
                with pytest.raises(ndx.StateError):
                    call()
            up.set()
        if event.kind is CANCELED:
            last.set()

    with ndx.Server("127.0.0.1:0", variant) as server:
        manager = ndx.SessionManager(negotiation, on_event=on_event)
        with pytest.raises(ndx.StateError):
            manager.event(1)  # max_events is 0
        manager.add(variant, where(server), context=42)
        assert up.wait(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while not lent[0].closed and time.monotonic() < deadline:
            threading.Event().wait(0.01)
        with pytest.raises(ndx.ClosedError):
            _ = lent[0].state
        manager.close()
        assert last.is_set()
    assert seen[0] == ("UP", True, 42) and seen[-1] == ("CANCELED", False, 42)


def test_attempts_end(
    negotiation: ndx.Negotiation, variant: ndx.Variant, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooked: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: hooked.append(u.exc_type))
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = "127.0.0.1:%d" % nobody.getsockname()[1]
    quick = {"attempts": 2, "backoff_ms": 1, "backoff_most_ms": 2}
    with ndx.SessionManager(negotiation, **quick) as manager:  # type: ignore[arg-type]
        manager.add(variant, address)
        events = [manager.event(PATIENCE) for _ in range(3)]
        assert [e.kind.name for e in events] == ["FAILED", "FAILED", "GAVE_UP"]
        assert events[0].layer is ndx.ErrorLayer.TRANSPORT and address in events[0].text
        assert events[0].status is ndx.Status.CONNECTION_REFUSED

    def provide(id: int, context: object) -> None:
        raise ndx.AccessDeniedError(ndx.Status.ACCESS_DENIED, "no", 0)

    with ndx.SessionManager(negotiation, provide=provide, **quick) as manager:  # type: ignore[arg-type]
        manager.add(variant, address)
        assert manager.event(PATIENCE).status is ndx.Status.ACCESS_DENIED
    assert hooked and set(hooked) == {ndx.AccessDeniedError}
    with pytest.raises(ndx.InvalidParameterError):
        ndx.SessionManager(negotiation, attempts=0)
    with ndx.SessionManager(negotiation, max_sessions=1, backoff_ms=30000) as manager:
        for wrong in ("no-port", []):
            with pytest.raises(ndx.Error):
                manager.add(variant, wrong)
        manager.add(variant, address)
        with pytest.raises(ndx.Error) as full:
            manager.add(variant, address)
        assert full.value.status is ndx.Status.INSUFFICIENT_RESOURCES
        manager.event(PATIENCE)
        with pytest.raises(ndx.TimedOutError):
            manager.event(0.05)


def test_a_close_ends_the_wait(negotiation: ndx.Negotiation) -> None:
    manager = ndx.SessionManager(negotiation)
    threading.Timer(0.1, manager.close).start()
    with pytest.raises((ndx.CanceledError, ndx.ClosedError)):
        manager.event(PATIENCE)


def test_one_manager_closes_another_in_its_function(
    negotiation: ndx.Negotiation, variant: ndx.Variant
) -> None:
    done = threading.Event()

    def on_event(event: ndx.ManagedEvent) -> None:
        if event.kind is UP:
            other.close()
            done.set()

    with ndx.Server("127.0.0.1:0", variant) as server:
        other = ndx.SessionManager(negotiation)
        other.add(variant, where(server))
        assert other.event(PATIENCE).kind is UP
        with ndx.SessionManager(negotiation, on_event=on_event) as manager:
            manager.add(variant, where(server))
            assert done.wait(PATIENCE)
    assert other.closed


def test_a_manager_is_dropped_in_its_own_function(
    negotiation: ndx.Negotiation, variant: ndx.Variant
) -> None:
    kept: list[ndx.SessionManager] = []
    kinds: list[ndx.ManagedEventKind] = []
    over = threading.Event()

    def on_event(event: ndx.ManagedEvent) -> None:
        kinds.append(event.kind)
        if event.kind is UP:
            kept.clear()
        elif event.kind is CANCELED:
            over.set()

    with ndx.Server("127.0.0.1:0", variant) as server:
        kept.append(ndx.SessionManager(negotiation, on_event=on_event))
        kept[0].add(variant, where(server))
        deadline = time.monotonic() + PATIENCE
        while not over.is_set():  # the main thread frees the manager, between two waits
            assert time.monotonic() < deadline
            threading.Event().wait(0.01)
    assert kinds[0] is UP and kinds[-1] is CANCELED


def test_events_are_awaited(negotiation: ndx.Negotiation, variant: ndx.Variant) -> None:
    async def main() -> None:
        with ndx.Server("127.0.0.1:0", variant) as server:
            async with aio.SessionManager(negotiation) as manager, asyncio.timeout(PATIENCE):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(manager.event(), 0.05)
                numbers = {manager.add(variant, where(server), context=i) for i in range(20)}
                events = [await manager.event() for _ in range(20)]
                assert {e.id for e in events} == numbers
                assert {e.context for e in events} == set(range(20))
                assert {e.kind for e in events} == {UP}
                waiting = asyncio.ensure_future(manager.event())
                await asyncio.sleep(0.05)
                for number in numbers:
                    manager.cancel(number)
                assert (await waiting).id in numbers

    asyncio.run(main())


def test_one_task_waits_for_an_event(negotiation: ndx.Negotiation, variant: ndx.Variant) -> None:
    async def main() -> None:
        with ndx.Server("127.0.0.1:0", variant) as server:
            async with aio.SessionManager(negotiation) as manager, asyncio.timeout(PATIENCE):
                tasks = [asyncio.create_task(manager.event()) for _ in range(3)]
                await asyncio.sleep(0)  # each has begun
                for _ in range(3):
                    manager.add(variant, where(server))
                outcomes = await asyncio.gather(*tasks, return_exceptions=True)
                assert [type(o) for o in outcomes[1:]] == [ndx.StateError] * 2
                assert isinstance(outcomes[0], ndx.ManagedEvent)
                ids = {outcomes[0].id, (await manager.event()).id, (await manager.event()).id}
                assert len(ids) == 3
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(manager.event(), 0.05)

    asyncio.run(main())


def test_the_collector_closes_a_manager(
    negotiation: ndx.Negotiation, variant: ndx.Variant
) -> None:
    class Context:
        manager: object

    with ndx.Server("127.0.0.1:0", variant) as server:
        context = Context()
        manager = ndx.SessionManager(negotiation)
        context.manager = manager
        manager.add(variant, where(server), context=context)
        assert manager.event(PATIENCE).kind is UP
        gone = weakref.ref(context)
        del manager, context
        gc.collect()
        assert gone() is None


def test_the_collector_sees_what_connects(
    negotiation: ndx.Negotiation, variant: ndx.Variant
) -> None:
    class Kept(ndx.Connector):
        manager: object

    made: list[Kept] = []
    with ndx.Adapter("loop") as adapter:

        def provide(id: int, context: object) -> ndx.Ends:
            made.append(Kept(adapter))
            return made[-1], unconnected(adapter).qp

        with Accepting(adapter, variant).server as server:
            manager = ndx.SessionManager(negotiation, provide=provide)
            manager.add(variant, where(server))
            assert manager.event(PATIENCE).kind is UP
            made.pop().manager = manager  # which holds the connector
            gone = weakref.ref(manager)
            del manager
            gc.collect()
            assert gone() is None


def test_a_status_that_the_module_does_not_know(
    negotiation: ndx.Negotiation, variant: ndx.Variant
) -> None:
    least: Any = -(2**31)
    with ndx.Server("127.0.0.1:0", variant) as server, ndx.SessionManager(negotiation) as manager:
        number = manager.add(variant, where(server))
        assert manager.event(PATIENCE).kind is UP
        manager.report(number, 1, least)
        down = manager.event(PATIENCE)
        assert down.kind is DOWN and down.status == least


@pytest.mark.parametrize("before", ["", "x"])
def test_a_text_that_was_cut_within_a_letter(
    negotiation: ndx.Negotiation, variant: ndx.Variant, before: str
) -> None:
    name = before + 100 * "\u00e4"  # longer than a name can be: nobody is asked
    texts: list[str] = []
    with ndx.Session(variant, f"{name}:7", attempts=1) as session:
        with pytest.raises(ndx.UnreachableError) as caught:
            session.run()
        texts += caught.value.text, *(t for entry in session.history for t in entry[-2:])
    with ndx.SessionManager(negotiation, attempts=1) as manager:
        manager.add(variant, f"{name}:7")
        texts.append(manager.event(PATIENCE).text)
        texts += [entry.text for entry in manager.sessions()]
    assert all("\u00e4" in text for text in texts)
    assert any("\ufffd" in text for text in texts)


def test_sessions_leave_no_memory_behind(
    negotiation: ndx.Negotiation, variant: ndx.Variant
) -> None:
    class Context:
        """What a weak reference may name."""

    with ndx.Server("127.0.0.1:0", variant) as server:
        with ndx.SessionManager(negotiation) as manager:

            def step() -> None:
                context = Context()
                gone = weakref.ref(context)
                number = manager.add(variant, where(server), context=context)
                del context
                assert manager.event(PATIENCE).kind is UP
                manager.cancel(number)
                while manager.event(PATIENCE).kind is not CANCELED:
                    pass
                while True:
                    try:
                        manager.remove(number)
                        break
                    except ndx.BusyError:
                        threading.Event().wait(0.001)
                assert gone() is None

            grows_no_more(step, 50, 100_000)
        grows_no_more(lambda: ndx.SessionManager(negotiation).close(), 50, 100_000)


def test_the_interpreter_ends_with_a_manager() -> None:
    said = python(
        "import ndx\n"
        "negotiation = ndx.Negotiation()\n"
        "variant = negotiation.variant('example/three-round')\n"
        "server = ndx.Server('127.0.0.1:0', variant)\n"
        "address = '%s:%d' % server.address[:2]\n"
        "def told(event):\n"
        "    print(event.kind.name + '\\n', end='')\n"
        "manager = ndx.SessionManager(negotiation, on_event=told)\n"
        "other = ndx.SessionManager(negotiation)\n"
        "for each in (manager, other):\n"
        "    each.add(variant, address)\n"
        "other.event(30)\n"
        "while manager.stats()['up'] != 1: pass\n"
        "print('alive\\n', end='')\n"
    )
    words = said.split()
    assert sorted(words[:2]) == ["UP", "alive"] and words[-1] == "CANCELED"
    assert set(words[2:-1]) <= {"DOWN"}, said
