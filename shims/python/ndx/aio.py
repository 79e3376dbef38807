# SPDX-License-Identifier: BSD-2-Clause
"""The classes of ndx whose calls wait, for asyncio: the same names, with `await`.

    import ndx
    from ndx import aio

    async def client(adapter, qp):
        async with aio.Connector(adapter) as connector:
            await connector.connect(qp, ("10.0.0.1", 7471))
            ...
            await connector.disconnect()

Every event loop has one port of the library, whose descriptor the loop watches; no thread waits.
Time-outs are asyncio's (asyncio.timeout(), asyncio.wait_for()): a cancelled call is cancelled in
the library, too, before the CancelledError reaches the caller. close() ends what a task awaits of
the object, by ClosedError or CanceledError.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from . import _ndx
from ._adapter import Address
from ._connection import READS_MOST
from ._enums import DisconnectReason, Stage, Status
from ._errors import AbortedError, CanceledError, ClosedError, Error, RefusedError, StateError
from ._event import AdapterEvent, event_of, take
from ._manager import BaseSessionManager, ManagedEvent
from ._negotiation import BaseSession, Ends
from ._stream import BaseReceiver, Batch

__all__ = [
    "CompletionQueue",
    "Connector",
    "Listener",
    "Receiver",
    "Session",
    "SessionManager",
    "adapter_event",
]

_T = TypeVar("_T", bound="_ndx.Object")


class _Hub:
    """The port of an event loop, and who waits for its operations."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.port = _ndx.Port()
        self._waiting: dict[_ndx.Operation, asyncio.Future[None]] = {}
        loop.add_reader(self.port.fileno(), self.take)

    def take(self) -> None:
        """Take the operations that are complete out of the port."""
        for op in self.port.get():
            future = self._waiting.pop(op, None)
            if future is not None and not future.done():
                future.set_result(None)

    def future(self, op: _ndx.Operation) -> asyncio.Future[None]:
        """Done when the operation is complete."""
        future = asyncio.get_running_loop().create_future()
        self._waiting[op] = future
        return future


_hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Hub] = weakref.WeakKeyDictionary()


def _hub() -> _Hub:
    loop = asyncio.get_running_loop()
    hub = _hubs.get(loop)
    if hub is None:
        hub = _hubs[loop] = _Hub(loop)
    return hub


async def _outcome(
    start: Callable[[_ndx.Port], _ndx.Operation], cancel: Callable[[], object]
) -> int:
    """The result of an operation; if the task is cancelled, so is the operation."""
    hub = _hub()
    op = start(hub.port)
    try:
        await hub.future(op)
    except asyncio.CancelledError:
        with suppress(Error):  # closed: then the operation is complete
            cancel()
        raise
    return op.result()


class _Waiting(NamedTuple):
    """A task that waits for a descriptor."""

    loop: asyncio.AbstractEventLoop
    fd: int
    future: asyncio.Future[None]

    def wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class _Readable(_ndx.Object):
    """An object whose descriptor one task at a time waits for."""

    _waiting: _Waiting | None = None
    _ends = False

    async def _readable(self, fd: int) -> None:
        """Wait until the object's descriptor is readable."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(loop, fd, loop.create_future())
        loop.add_reader(fd, waiting.wake)
        self._waiting = waiting
        try:
            await waiting.future
        finally:
            if self._waiting is waiting:
                self._forget()
        if self._ends:
            raise ClosedError(Status.INVALID_DEVICE_STATE, "closed while a task waits for it")

    def _forget(self) -> None:
        """Take the descriptor out of the loop, whose thread this is."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.loop.remove_reader(waiting.fd)
            waiting.wake()

    def close(self) -> None:
        """Close the object. A task that waits for it gets ClosedError."""
        self._ends = True
        waiting = self._waiting
        # The descriptor must leave the loop before its number can be that of another one.
        if waiting is not None and waiting.loop.is_running():
            if asyncio._get_running_loop() is waiting.loop:
                self._forget()
            else:
                gone = threading.Event()

                def forget() -> None:
                    self._forget()
                    gone.set()

                with suppress(RuntimeError):  # the loop has ended
                    waiting.loop.call_soon_threadsafe(forget)
                    gone.wait(1.0)
        try:
            super().close()
        except Error:
            self._ends = False  # refused
            raise


class _Managed:
    """`async with`, beside `with`."""

    async def __aenter__(self: _T) -> _T:  # type: ignore[misc]
        return self.__enter__()

    async def __aexit__(self: _T, *unused: object) -> None:  # type: ignore[misc]
        self.close()


async def adapter_event(adapter: _ndx.Adapter) -> AdapterEvent:
    """As ndx.adapter_event(), without a time-out. If the waiting task is cancelled, the next call
    returns an event that came in that moment."""
    events = _ndx._event_events(adapter)
    while True:
        event = take(events, event_of)
        if event is not None:
            return event
        hub = _hub()
        started: list[tuple[_ndx.Operation, bytes]] = []
        try:
            _ndx._event_start(adapter, hub.port, started)
            op = started[0][0]
            await hub.future(op)
        except BaseException:
            with suppress(Error):  # closed: then the operation is complete
                _ndx._event_cancel(adapter)
            hub.take()
            raise
        finally:
            _ndx._event_end(adapter, started)
        op.result()


class CompletionQueue(_Managed, _Readable, _ndx.CompletionQueue):
    """CompletionQueue(adapter, depth=64), whose wait() is awaited by one task at a time."""

    async def wait(self, count: int = 64) -> list[_ndx.Result]:
        """At least one result, at most `count` and 64."""
        while True:
            results = self.results(count)
            if results:
                return results
            self.arm()
            results = self.results(count)
            if results:
                return results
            await self._readable(self.fileno())


class Connector(_Managed, _ndx.Connector):
    """Connector(adapter, ...): as ndx.Connector, to be awaited."""

    async def connect(
        self,
        qp: _ndx.QueuePair,
        destination: Address | str,
        *,
        private_data: Any = b"",
        inbound_reads: int = READS_MOST,
        outbound_reads: int = READS_MOST,
        complete: bool = True,
    ) -> None:
        """As ndx.Connector.connect()."""
        await _outcome(
            lambda port: self._start_connect(
                qp, destination, private_data, inbound_reads, outbound_reads, port
            ),
            self.cancel,
        )
        if complete:
            await self.complete_connect()

    async def complete_connect(self) -> None:
        """As ndx.Connector.complete_connect()."""
        await _outcome(self._start_complete, self.cancel)

    async def accept(
        self,
        qp: _ndx.QueuePair,
        *,
        private_data: Any = b"",
        inbound_reads: int = READS_MOST,
        outbound_reads: int = READS_MOST,
    ) -> None:
        """As ndx.Connector.accept()."""
        await _outcome(
            lambda port: self._start_connect(
                qp, None, private_data, inbound_reads, outbound_reads, port
            ),
            self.cancel,
        )

    async def disconnect(self) -> None:
        """As ndx.Connector.disconnect()."""
        await _outcome(self._start_disconnect, self.cancel)

    async def wait_disconnected(self) -> DisconnectReason:
        """Wait until the connection has ended, and say how.

        If the waiting task is cancelled, the library keeps the operation until the connection
        ends. Raises CanceledError when this side disconnects first.
        """
        return DisconnectReason(await _outcome(self._start_notify, lambda: None))


class Listener(_Managed, _ndx.Listener):
    """Listener(adapter, address, backlog=0): as ndx.Listener, to be awaited."""

    def __init__(self, adapter: _ndx.Adapter, address: Address | str, backlog: int = 0) -> None:
        self.adapter = adapter

    async def request(self) -> Connector:
        """As ndx.Listener.request()."""
        connector = Connector(self.adapter)
        try:
            await _outcome(
                lambda port: self._start_request(connector, port), connector.close
            )
        except BaseException:
            connector.close()
            raise
        return connector

    async def accept(self, qp: _ndx.QueuePair, *, private_data: Any = b"") -> Connector:
        """As ndx.Listener.accept()."""
        while True:
            connector = await self.request()
            try:
                await connector.accept(qp, private_data=private_data)
            except (AbortedError, RefusedError):
                connector.close()
            except BaseException:
                connector.close()
                raise
            else:
                return connector


class Receiver(_Readable, BaseReceiver):
    """Receiver(adapter=None, ...): as ndx.Receiver, to be awaited.

        async with aio.Receiver("ofi:tcp?iface=lo") as receiver:
            await receiver.connect(address)
            async for frame in receiver:
                with frame:
                    ...
    """

    async def __aenter__(self) -> Receiver:
        return self

    async def __aexit__(self, *unused: object) -> None:
        await asyncio.to_thread(self.close)

    async def connect(self, destination: Address | str, *, private_data: Any = b"") -> None:
        """As ndx.Receiver.connect()."""
        self.prepare()
        with Connector(self.adapter) as connector:
            await connector.connect(self.qp, destination, private_data=private_data)
            self.start(connector)

    async def accept(self, listener: Listener, *, private_data: Any = b"") -> None:
        """As ndx.Receiver.accept()."""
        self.prepare()
        connector = await listener.accept(self.qp, private_data=private_data)
        try:
            self.start(connector)
        finally:
            connector.close()

    async def pull(self, count: int = 64) -> Batch:
        """At least one frame. Raises CanceledError when none is left and the receiver does not
        run."""
        while True:
            frames = self._pull(count, 0)
            if frames is None:
                raise CanceledError(
                    Status.CANCELED, f"the receiver does not run: {self.cause.text}"
                )
            if frames:
                return Batch(frames)
            await self._readable(self.fileno())

    async def __aiter__(self) -> AsyncIterator[_ndx.Frame]:
        """As ndx.Receiver's iteration."""
        while (frames := self._pull(16, 0)) is not None:
            if not frames:
                await self._readable(self.fileno())
            frames.reverse()
            while frames:
                yield frames.pop()
        self.ended()

    async def stop(self) -> None:
        """As ndx.Receiver.stop(), in another thread, because it waits."""
        await asyncio.to_thread(self._stop)


class Session(BaseSession):
    """Session(variant, servers, ...): as ndx.Session, to be awaited. Close it by
    `async with`, which closes in another thread, because a plugin may have to be waited for."""

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *unused: object) -> None:
        await asyncio.to_thread(self.close)

    async def _await(self, start: Callable[[_ndx.Port], _ndx.Operation]) -> None:
        try:
            await _outcome(start, self.cancel)
        except Error as error:
            raise self.explained(error) from None

    async def connect(self) -> None:
        """As ndx.Session.connect()."""
        await self._await(self._start_connect)

    async def execute(self, stage: Stage) -> None:
        """As ndx.Session.execute()."""
        await self._await(lambda port: self._start_execute(stage, port))

    async def run(self) -> None:
        """As ndx.Session.run()."""
        await self._await(self._start_run)

    async def add_queue_pairs(self, queue_pairs: Iterable[Ends]) -> int:
        """As ndx.Session.add_queue_pairs()."""
        several = tuple(queue_pairs)
        try:
            return await _outcome(lambda port: self._start_add(several, port), self.cancel)
        except Error as error:
            raise self.explained(error, adding=True) from None
        finally:
            with suppress(ClosedError):
                self._settle()

    async def remove_queue_pairs(self, first: int, count: int = 1) -> None:
        """As ndx.Session.remove_queue_pairs(), in another thread, because a plugin may have to be
        waited for."""
        await asyncio.to_thread(self._remove, first, count)


class SessionManager(BaseSessionManager):
    """SessionManager(negotiation, *, provide=None, reclaim=None, ...): as ndx.SessionManager, whose
    events are awaited. Close it by `async with`, which closes in another thread, because the last
    events are waited for."""

    async def __aenter__(self) -> SessionManager:
        return self

    async def __aexit__(self, *unused: object) -> None:
        await asyncio.to_thread(self.close)

    _waited_for = False

    async def event(self) -> ManagedEvent:
        """As ndx.SessionManager.event(), without a time-out, by tasks of one event loop.

        If the waiting task is cancelled, the next call gets the event. Raises StateError while
        another task waits.
        """
        if self._waited_for:
            raise StateError(Status.INVALID_DEVICE_STATE, "another task waits for an event")
        events = self._events()
        while True:
            event = self._taken(events)
            if event is not None:
                return event
            await self._wait_event()

    async def _wait_event(self) -> None:
        """Wait until the list of the manager has an event."""
        hub = _hub()
        started: list[tuple[_ndx.Operation, bytes]] = []
        self._waited_for = True
        try:
            self._start_event(hub.port, started)
            if started:
                op = started[0][0]
                await hub.future(op)
                op.result()
        except BaseException:
            self._end_event(started)  # cancels, and the port gets the operation
            hub.take()
            raise
        finally:
            self._waited_for = False
            self._end_event(started)
