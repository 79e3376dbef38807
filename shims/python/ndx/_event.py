# SPDX-License-Identifier: BSD-2-Clause
"""Events of adapters: a port goes down, an address changes, the device is removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from . import _ndx
from ._connection import Limit, wait_for
from ._enums import AdapterEventType

_T = TypeVar("_T")


class AdapterEvent(NamedTuple):
    """What has happened to an adapter as a whole.

    type    -- AdapterEventType; a number that this version does not know stays an int
    port    -- of the device, from 1; 0: the whole device
    native  -- the provider's code; 0: none
    time_ns -- of the monotonic clock
    number  -- of the event within the adapter, from 1
    lost    -- events between the previous reported one and this one that were not kept
    name    -- of the type, for example "port down"
    text    -- what the log says
    """

    type: AdapterEventType | int
    port: int
    native: int
    time_ns: int
    number: int
    lost: int
    name: str
    text: str


def event_of(buffer: bytes) -> AdapterEvent:
    """The event of an operation that has completed."""
    number, *rest = _ndx._event_of(buffer)
    known = number in AdapterEventType._value2member_map_
    return AdapterEvent(AdapterEventType(number) if known else number, *rest)


def take(events: list[bytes], event_of: Callable[[bytes], _T]) -> _T | None:
    """The oldest of these events; None: there is none.

    Before the try and at the return the interpreter neither changes to another thread nor raises
    KeyboardInterrupt: it does so in calls and loops. So call it outside of any `with`, whose end is
    a call, too.
    """
    if not events:
        return None
    buffer = events[0]
    del events[0]
    try:
        return event_of(buffer)
    except BaseException:
        events.insert(0, buffer)
        raise


def _wait(adapter: _ndx.Adapter, limit: Limit) -> None:
    """Wait until the list of the adapter has an event, which another thread may take."""
    started: list[tuple[_ndx.Operation, bytes]] = []
    try:
        _ndx._event_start(adapter, None, started)
        wait_for(
            lambda operations: operations.append(started[0][0]),
            limit,
            lambda: _ndx._event_cancel(adapter),
            "event",
        )
    finally:
        _ndx._event_end(adapter, started)


def adapter_event(adapter: _ndx.Adapter, timeout: float | None = None) -> AdapterEvent:
    """The next event of an adapter, which keeps the latest 16 from its opening on.

    Waits up to `timeout` seconds (None: no limit); Ctrl-C interrupts, and the next call returns an
    event that came in that moment. One wait at a time: the end of a wait cancels the others of the
    same adapter. A connection or queue reports itself what an event does to it.

    Raises TimedOutError, NotSupportedError (without Capability.EVENTS), and ClosedError or
    CanceledError (another thread closes the adapter, or ends its own wait).
    """
    limit = Limit(timeout)
    events = _ndx._event_events(adapter)
    while True:
        event = take(events, event_of)
        if event is not None:
            return event
        _wait(adapter, limit)
