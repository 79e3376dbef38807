# SPDX-License-Identifier: BSD-2-Clause
"""Connections whose calls block, with time-outs in seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from . import _ndx
from ._adapter import Address
from ._enums import DisconnectReason, Status
from ._errors import AbortedError, CanceledError, Error, RefusedError, TimedOutError

READS_MOST = 0xFFFFFFFF
"""Read limit: as many as the adapter can."""


class Limit:
    """A time-out that several steps share."""

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self._end = None if timeout is None else time.monotonic() + timeout

    def left(self) -> float | None:
        """Seconds that are left; None: no limit."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())


def wait_for(
    start: Callable[[list[_ndx.Operation]], object],
    limit: Limit,
    cancel: Callable[[], object],
    what: str,
) -> int:
    """The result of an operation, which `start` starts and adds to the list that it gets. When the
    time is over, or at Ctrl-C, the operation is cancelled if it was started."""
    started: list[_ndx.Operation] = []
    try:
        start(started)
        op = started[0]
        if not op.wait(limit.left()):
            with suppress(Error):  # closed: then the operation is complete
                cancel()
            if op.status in (Status.CANCELED, Status.PENDING):
                raise TimedOutError(Status.IO_TIMEOUT, f"{what}: {limit.timeout} s are over")
        return op.result()
    except BaseException as error:
        if started and not (isinstance(error, Error) and started[0].done()):
            with suppress(Error):
                cancel()
        raise


class CompletionQueue(_ndx.CompletionQueue):
    """CompletionQueue(adapter, depth=64): results of the queue pairs that use it."""

    def wait(self, timeout: float | None = None, count: int = 64) -> list[_ndx.Result]:
        """As results(), and wait up to `timeout` seconds (None: no limit) for the first result.

        An empty list when the time is over. Ctrl-C interrupts the wait. Raises ClosedError when
        another thread closes the queue. Uses the descriptor of fileno().
        """
        return self._wait(timeout, count)


class SharedReceiveQueue(_ndx.SharedReceiveQueue):
    """SharedReceiveQueue(adapter, depth=64, *, max_sge=1, threshold=0): receives that several queue
    pairs (QueuePair(..., srq=)) take from.

    A receive is of whichever queue pair gets a message; receives that no message used have no
    result. Regions and contexts of posted receives are kept until the queue, and the completion
    queues of its queue pairs, are closed.

    Raises NotSupportedError without Capability.SRQ, InvalidParameterError (a number out of range).
    """

    def wait_low(self, timeout: float | None = None) -> None:
        """Wait up to `timeout` seconds (None: no limit) until fewer receives than `threshold` are
        left; at once if that is so.

        One wait at a time: the end of one by time or Ctrl-C cancels the others. Raises
        TimedOutError, CanceledError (cancel(), or close() in another thread),
        InvalidParameterError (threshold is 0).
        """
        wait_for(self._start_notify, Limit(timeout), self.cancel, "wait_low")


class Connector(_ndx.Connector):
    """Connector(adapter, *, drain_timeout_ms=2000, disconnect_timeout_ms=5000,
    connect_timeout_ms=..., psn=...): connects one queue pair, and ends the connection.

    A connection cannot be opened again: create a new connector and a new queue pair. close()
    disconnects in the background.
    """

    _notified: _ndx.Operation | None = None

    def connect(
        self,
        qp: _ndx.QueuePair,
        destination: Address | str,
        *,
        private_data: Any = b"",
        inbound_reads: int = READS_MOST,
        outbound_reads: int = READS_MOST,
        timeout: float | None = 30.0,
        complete: bool = True,
    ) -> None:
        """Connect to a listener: destination is ("10.0.0.1", 7471) or "10.0.0.1:7471".

        With complete=False only the first half: then read `private_data`, and call
        complete_connect() or reject().

        Raises TimedOutError, RefusedError (no listener, or rejected: `private_data` has the
        peer's reason), UnreachableError, AbortedError, or Error with INVALID_ADDRESS (trust rule)
        and others; the queue pair can be used again then.
        """
        limit = Limit(timeout)
        wait_for(
            lambda started: self._start_connect(
                qp, destination, private_data, inbound_reads, outbound_reads, started
            ),
            limit,
            self.cancel,
            "connect",
        )
        if complete:
            self.complete_connect(timeout=limit.left())

    def complete_connect(self, *, timeout: float | None = 30.0) -> None:
        """Second half of connect: establish the connection."""
        wait_for(self._start_complete, Limit(timeout), self.cancel, "complete_connect")

    def accept(
        self,
        qp: _ndx.QueuePair,
        *,
        private_data: Any = b"",
        inbound_reads: int = READS_MOST,
        outbound_reads: int = READS_MOST,
        timeout: float | None = 30.0,
    ) -> None:
        """Accept the request that Listener.request() returned with this connector.

        Raises AbortedError or RefusedError if the active side gave up.
        """
        wait_for(
            lambda started: self._start_connect(
                qp, None, private_data, inbound_reads, outbound_reads, started
            ),
            Limit(timeout),
            self.cancel,
            "accept",
        )

    def disconnect(self, *, timeout: float | None = 10.0) -> None:
        """Disconnect: returns when the peer's goodbye has come and no memory changes any more.

        Raises AbortedError (aborted, or no goodbye in time), TimedOutError (the teardown goes on).
        """
        wait_for(self._start_disconnect, Limit(timeout), self.cancel, "disconnect")

    def wait_disconnected(self, timeout: float | None = None) -> DisconnectReason:
        """Wait until the connection has ended, and say how.

        Raises TimedOutError: it has not. CanceledError: this side disconnected first.
        """
        if self._notified is None:
            self._notified = self._start_notify(None)
        if not self._notified.wait(timeout):
            raise TimedOutError(Status.IO_TIMEOUT, f"still connected after {timeout} s")
        op, self._notified = self._notified, None
        return DisconnectReason(op.result())


class Listener(_ndx.Listener):
    """Listener(adapter, address, backlog=0): takes requests at a local address.

    Port 0: any free port, see `address`. Raises Error with SHARING_VIOLATION (port in use) or
    INVALID_ADDRESS (not of this adapter).
    """

    def __init__(self, adapter: _ndx.Adapter, address: Address | str, backlog: int = 0) -> None:
        self.adapter = adapter

    def request(self, timeout: float | None = None) -> Connector:
        """Wait for a request; the connector that has it is to be accepted or rejected.

        Raises TimedOutError, CanceledError (cancelled, or closed by another thread).
        """
        connector = Connector(self.adapter)
        try:
            wait_for(
                lambda started: self._start_request(connector, started),
                Limit(timeout),
                connector.close,
                "request",
            )
        except BaseException:
            connector.close()
            raise
        return connector

    def accept(
        self, qp: _ndx.QueuePair, *, private_data: Any = b"", timeout: float | None = None
    ) -> Connector:
        """Take the next request and accept it. A peer that gives up does not end the call."""
        limit = Limit(timeout)
        while True:
            connector = self.request(limit.left())
            try:
                connector.accept(qp, private_data=private_data, timeout=limit.left())
            except (AbortedError, RefusedError):
                connector.close()
            except BaseException:
                connector.close()
                raise
            else:
                return connector


__all__ = ["CanceledError", "CompletionQueue", "Connector", "Listener"]
