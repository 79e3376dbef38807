# SPDX-License-Identifier: BSD-2-Clause
"""Objects that end while something else uses them."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable

import pytest
from conftest import PATIENCE, local_address, python
from pairs import unconnected

import ndx
from ndx import aio

STAGED = "example/three-round"


def serve(adapter: ndx.Adapter, variant: ndx.Variant, **functions: Callable[..., object]) -> ndx.Server:
    """A server that gives every session a queue pair."""
    kept = []

    def give(session: ndx.Session) -> tuple[object, ...]:
        functions.get("on_open", lambda _: None)(session)
        end = unconnected(adapter)
        kept.append(end)
        return end.connector, end.qp

    return ndx.Server(
        "127.0.0.1:0", variant, on_open=give, on_closed=functions.get("on_closed", lambda _: None)
    )


def where(server: ndx.Server) -> str:
    """HOST:PORT of a server."""
    return f"{server.address[0]}:{server.address[1]}"


class Looker:
    """Threads that call a function over and over until the end of `with`."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.function = function
        self.over = threading.Event()
        self.looked = threading.Event()
        """A call has returned something else than None."""
        self.threads = [threading.Thread(target=self.run) for _ in range(2)]

    def run(self) -> None:
        while not self.over.is_set():
            try:
                seen = self.function()
            except ndx.Error:
                continue
            if seen is not None:
                self.looked.set()

    def at_work(self) -> bool:
        """Wait for a call that returns something."""
        self.looked.clear()
        return self.looked.wait(PATIENCE)

    def __enter__(self) -> Looker:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join(PATIENCE)


@pytest.fixture
def variant() -> ndx.Variant:
    return ndx.Negotiation().variant(STAGED, settings={"slots": 32})


@pytest.mark.parametrize("taker", [ndx.Receiver, ndx.Sender])
def test_a_connector_is_taken_without_operations_only(
    adapter: ndx.Adapter, taker: type[ndx.Receiver | ndx.Sender]
) -> None:
    peer = unconnected(adapter)
    kept: list[ndx.Connector] = []
    with taker(adapter) as one, ndx.Listener(adapter, local_address(adapter)) as listener:
        if isinstance(one, ndx.Receiver):
            one.prepare()
        thread = threading.Thread(target=lambda: kept.append(listener.accept(peer.qp)))
        thread.start()
        connector = ndx.Connector(adapter)
        connector.connect(one.qp, listener.address, timeout=PATIENCE)
        thread.join(PATIENCE)
        assert connector.error_text == ""
        with pytest.raises(ndx.TimedOutError):
            connector.wait_disconnected(0)
        with pytest.raises(ndx.BusyError, match="in flight"):
            one.start(connector)
        connector.cancel()
        one.start(connector)
        assert connector.closed and connector.qp is None


def test_a_session_keeps_the_queue_pair_of_a_receiver(variant: ndx.Variant) -> None:
    with ndx.Adapter("loop") as adapter, serve(adapter, variant) as server:
        receiver = ndx.Receiver(adapter)
        receiver.prepare()
        connector = ndx.Connector(adapter)
        session = ndx.Session(variant, where(server), connector=connector, qp=receiver.qp)
        with pytest.raises(ndx.BusyError):
            receiver.stop()
        with pytest.raises(ndx.BusyError):
            receiver.reset()
        receiver.close()
        session.run()
        session.close()
        assert receiver.closed


def test_a_session_keeps_the_queue_pair_of_a_sender(variant: ndx.Variant) -> None:
    with ndx.Adapter("loop") as adapter, serve(adapter, variant) as server:
        sender = ndx.Sender(adapter)
        connector = ndx.Connector(adapter)
        with ndx.Session(variant, where(server), connector=connector, qp=sender.qp) as session:
            with pytest.raises(ndx.BusyError, match="queue pair"):
                sender.reset()
            session.run()
            sender.start(connector)
            assert sender.stats()["frames"] == 0
            sender.close()


def test_a_queue_pair_is_asked_while_its_receiver_ends() -> None:
    box: list[ndx.QueuePair] = []
    with ndx.Adapter("loop") as adapter, Looker(lambda: box[0].query() if box else None) as looker:
        for _ in range(200):
            receiver = ndx.Receiver(adapter, slot_count=4, slot_size=64)
            receiver.prepare()
            box[:] = [receiver.qp]
            assert looker.at_work()
            receiver.close()


def test_a_queue_pair_object_may_be_closed_and_asked_for_again() -> None:
    with ndx.Adapter("loop") as adapter, ndx.Receiver(adapter) as receiver:
        receiver.prepare()
        first = receiver.qp
        first.close()
        assert receiver.qp.query()["state"] is ndx.QueuePairState.UNCONNECTED
        kept = receiver.qp
        with pytest.raises(ndx.StateError):
            receiver.reset()  # it did not run
        kept.query()
        with pytest.raises(ndx.ClosedError):
            first.query()


def test_a_session_of_a_server_is_looked_at_while_it_ends(variant: ndx.Variant) -> None:
    views: list[ndx.Session] = []

    def look() -> str | None:
        return views[0].snapshot() if views else None

    with ndx.Adapter("loop") as adapter, serve(
        adapter, variant, on_open=lambda view: views.__setitem__(slice(None), [view])
    ) as server, Looker(look) as looker:
        for _ in range(30):
            end = unconnected(adapter)
            with ndx.Session(
                variant, where(server), connector=end.connector, qp=end.qp
            ) as session:
                session.run()
                assert looker.at_work()


def test_a_negotiation_is_not_closed_beside_a_call_of_it() -> None:
    for _ in range(50):
        negotiation = ndx.Negotiation()
        with Looker(negotiation.discover):
            for _ in range(20):
                try:
                    negotiation.close()
                except ndx.BusyError:
                    continue
        negotiation.close()
        assert negotiation.closed


@pytest.mark.parametrize("kind", ["server", "manager"])
def test_the_collector_leaves_functions_whole_until_the_last_call(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    negotiation = ndx.Negotiation()
    variant = negotiation.variant(STAGED, settings={"slots": 32})
    told: list[bool] = []
    wrong: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: wrong.append(u.exc_type))

    def with_server() -> ndx.Session:
        """Leave a server that only the collector finds, and a session of it."""
        server = ndx.Server("127.0.0.1:0", variant, on_closed=lambda _: told.append(server.closed))
        session = ndx.Session(variant, where(server))
        session.run()
        return session

    def with_manager() -> ndx.Server:
        """Leave a manager that only the collector finds, and the server of its session."""
        up = threading.Event()

        def on_event(event: ndx.ManagedEvent) -> None:
            if event.kind is ndx.ManagedEventKind.UP:
                up.set()
            else:
                told.append(manager.closed)

        server = ndx.Server("127.0.0.1:0", variant)
        manager = ndx.SessionManager(negotiation, on_event=on_event)
        manager.add(variant, where(server))
        assert up.wait(PATIENCE)
        return server

    for _ in range(10):  # which of its objects the collector clears first is not always the same
        told.clear()
        peer = with_server() if kind == "server" else with_manager()
        deadline = time.monotonic() + PATIENCE
        while not told and not wrong and time.monotonic() < deadline:
            gc.collect()  # a function that runs still holds its object
        peer.close()
        assert told and all(told) and wrong == []


@pytest.mark.parametrize("function", ["on_open", "on_closed"])
def test_a_server_is_not_closed_in_its_own_callback(variant: ndx.Variant, function: str) -> None:
    raised: list[ndx.Error] = []
    over = threading.Event()
    box: list[ndx.Server] = []

    def close(session: ndx.Session) -> None:
        try:
            box[0].close()
        except ndx.BusyError as error:
            raised.append(error)
        over.set()

    with ndx.Adapter("loop") as adapter:
        box.append(serve(adapter, variant, **{function: close}))
        end = unconnected(adapter)
        with ndx.Session(
            variant, where(box[0]), connector=end.connector, qp=end.qp
        ) as session:
            session.run()
        assert over.wait(PATIENCE) and len(raised) == 1
        box[0].close()


class Caller:
    """A callback that calls its object until the object is closed."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.ended = False
        self.call: Callable[[], object] | None = None

    def __call__(self, unused: object) -> None:
        self.entered.set()
        deadline = time.monotonic() + PATIENCE
        while self.call is None or time.monotonic() < deadline:
            try:
                if self.call is not None:
                    self.call()
            except ndx.ClosedError:
                self.ended = True
                return


def test_a_receiver_is_closed_beside_a_call_of_its_callback(adapter: ndx.Adapter) -> None:
    for _ in range(10):
        caller = Caller()
        receiver = ndx.Receiver(adapter, on_frame=caller)
        caller.call = receiver.snapshot
        with ndx.Sender(adapter) as sender:
            with ndx.Listener(adapter, local_address(adapter)) as listener:
                thread = threading.Thread(target=receiver.accept, args=(listener,))
                thread.start()
                sender.connect(listener.address, timeout=PATIENCE)
                thread.join(PATIENCE)
            sender.send(b"x")
            assert caller.entered.wait(PATIENCE)
            receiver.close()
            assert caller.ended, "close() returns when the callback has returned"


def test_a_server_is_closed_beside_a_call_of_its_callback(variant: ndx.Variant) -> None:
    with ndx.Adapter("loop") as adapter:
        for _ in range(5):
            caller = Caller()
            server = serve(adapter, variant, on_closed=caller)
            caller.call = server.snapshot
            end = unconnected(adapter)
            with ndx.Session(
                variant, where(server), connector=end.connector, qp=end.qp
            ) as session:
                session.run()
            assert caller.entered.wait(PATIENCE)
            server.close()
            assert caller.ended, "close() returns when the callback has returned"


def test_the_base_class_closes_nothing_in_a_callback() -> None:
    raised: list[BaseException] = []
    over = threading.Event()

    def close(frame: ndx.Frame) -> None:
        try:
            ndx._ndx.Object.close(receiver)
        except ndx.BusyError as error:
            raised.append(error)
        over.set()

    with ndx.Adapter("loop") as adapter, ndx.Receiver(adapter, on_frame=close) as receiver:
        with ndx.Sender(adapter) as sender:
            with ndx.Listener(adapter, local_address(adapter)) as listener:
                thread = threading.Thread(target=receiver.accept, args=(listener,))
                thread.start()
                sender.connect(listener.address, timeout=PATIENCE)
                thread.join(PATIENCE)
            sender.send(b"x")
            assert over.wait(PATIENCE) and len(raised) == 1


def test_a_server_is_dropped_in_its_own_callback() -> None:
    negotiation = ndx.Negotiation()
    variant = negotiation.variant(STAGED, settings={"slots": 32})
    over = threading.Event()
    box: list[ndx.Server] = []

    def drop(session: ndx.Session) -> None:
        box.clear()
        over.set()

    with ndx.Adapter("loop") as adapter:
        box.append(serve(adapter, variant, on_closed=drop))
        end = unconnected(adapter)
        with ndx.Session(
            variant, where(box[0]), connector=end.connector, qp=end.qp
        ) as session:
            session.run()
        assert over.wait(PATIENCE)
        variant.close()
        for _ in range(3000):  # the main thread frees the server
            try:
                negotiation.close()
                break
            except ndx.BusyError:
                threading.Event().wait(0.01)
        assert negotiation.closed


def test_a_closed_queue_leaves_the_loop() -> None:
    async def main(adapter: ndx.Adapter) -> None:
        first = aio.CompletionQueue(adapter)
        waits = asyncio.create_task(first.wait())
        await asyncio.sleep(0)
        first.close()
        second = aio.CompletionQueue(adapter)  # gets the number of the descriptor
        waits_too = asyncio.create_task(second.wait())
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(ndx.ClosedError):
                await waits
            waits_too.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waits_too
        second.close()

    with ndx.Adapter("loop") as adapter:
        asyncio.run(main(adapter))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_closed_receiver_ends_what_is_awaited(adapter: ndx.Adapter, elsewhere: bool) -> None:
    async def main() -> None:
        receiver = aio.Receiver(adapter, slot_size=64, slot_count=4)
        with ndx.Sender(adapter, slot_size=64) as sender:
            listener = aio.Listener(adapter, local_address(adapter))
            accepts = asyncio.create_task(receiver.accept(listener))
            await asyncio.to_thread(sender.connect, listener.address)
            await accepts
            pulls = asyncio.create_task(receiver.pull())
            await asyncio.sleep(0)
            if elsewhere:
                await asyncio.to_thread(receiver.close)
            else:
                receiver.close()
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(ndx.ClosedError):
                    await pulls
            listener.close()

    asyncio.run(main())


def test_a_closed_connector_hides_no_cancellation(adapter: ndx.Adapter) -> None:
    async def main() -> None:
        end = unconnected(adapter)
        async with aio.Listener(adapter, local_address(adapter)) as listener:
            connector = aio.Connector(adapter)
            connects = asyncio.create_task(connector.connect(end.qp, listener.address))
            await asyncio.sleep(0.05)
            assert not connects.done()
            connects.cancel()
            connector.close()
            with pytest.raises(asyncio.CancelledError):
                await connects

    asyncio.run(main())


def test_a_closed_sender_ends_its_wait(adapter: ndx.Adapter) -> None:
    raised: list[ndx.Error] = []
    full = threading.Event()

    def send(sender: ndx.Sender) -> None:
        try:
            for _ in range(1000):
                try:
                    sender.send(b"x", timeout=0)
                except ndx.TimedOutError:
                    full.set()
                    sender.send(b"x", timeout=None)
        except ndx.Error as error:
            raised.append(error)

    with ndx.Receiver(adapter, slot_count=4, slot_size=64) as receiver:
        sender = ndx.Sender(adapter, slot_size=64, slot_count=4, close_timeout_ms=500)
        with ndx.Listener(adapter, local_address(adapter)) as listener:
            accepts = threading.Thread(target=receiver.accept, args=(listener,))
            accepts.start()
            sender.connect(listener.address)
            accepts.join(PATIENCE)
        sends = threading.Thread(target=send, args=(sender,), daemon=True)
        sends.start()
        assert full.wait(PATIENCE)
        sender.close()
        sends.join(PATIENCE)
        assert isinstance(raised[0], ndx.ClosedError)


def test_a_closed_queue_ends_its_wait() -> None:
    raised: list[ndx.Error] = []

    def wait(queue: ndx.CompletionQueue) -> None:
        with pytest.raises(ndx.ClosedError) as info:
            queue.wait()
        raised.append(info.value)

    with ndx.Adapter("loop") as adapter:
        queue = ndx.CompletionQueue(adapter)
        waits = threading.Thread(target=wait, args=(queue,))
        waits.start()
        threading.Event().wait(0.05)
        queue.close()
        waits.join(PATIENCE)
    assert len(raised) == 1


def test_the_end_of_the_interpreter_says_goodbye() -> None:
    code = """
import threading, ndx
r = ndx.Receiver("ofi:tcp?iface=lo", slot_size=256, slot_count=16)
r.connect("{}:{}")
threading.Thread(target=lambda: r.pull(), daemon=True).start()
threading.Event().wait(0.1)
"""
    with ndx.Adapter("ofi:tcp?iface=lo") as adapter:
        end = unconnected(adapter)
        with ndx.Listener(adapter, ("127.0.0.1", 0)) as listener:
            host, port = listener.address[:2]
            child = threading.Thread(target=python, args=(code.format(host, port),))
            child.start()
            connector = listener.accept(end.qp, timeout=PATIENCE)
            assert connector.wait_disconnected(PATIENCE) is ndx.DisconnectReason.GRACEFUL
            assert connector.error_text != ""
            child.join(PATIENCE)
            connector.close()


def test_a_queue_that_is_closed_takes_no_requests() -> None:
    with ndx.Adapter("loop") as adapter:
        end = unconnected(adapter)
        end.cq.close()
        with pytest.raises(ndx.ClosedError):
            end.qp.receive(end.region)
        end.qp.close()
