# SPDX-License-Identifier: BSD-2-Clause
"""Session managers: sessions that are negotiated anew when their connections end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from . import _ndx
from ._connection import Limit, wait_for
from ._enums import ErrorLayer, ManagedEventKind, ManagedState, Status
from ._event import take
from ._negotiation import Ends, SessionView, Variant
from ._tls import Tls, arguments_of


class ManagedEvent(NamedTuple):
    """What has happened to a session of a manager.

    kind     -- ManagedEventKind
    id       -- of the session
    life     -- number of the life that is up or was the latest, from 1; 0: none yet
    context  -- of add(); None: the session was removed
    status   -- OK for UP and a graceful end; else the cause
    layer    -- of a failed attempt; else NONE
    failures -- in a row
    pause_ms -- of DOWN and FAILED: until the next attempt; 0: none follows
    server   -- of the life, or ""
    text     -- readable cause; "" for UP
    session  -- of UP and DOWN, for the function `on_event` while it runs; else None
    """

    kind: ManagedEventKind
    id: int
    life: int
    context: Any
    status: Status
    layer: ErrorLayer
    failures: int
    pause_ms: int
    server: str
    text: str
    session: SessionView | None = None


class ManagedSession(NamedTuple):
    """A session in the list of a manager. life, attempts: so many until now; failures: in a row;
    status, layer, text: of the latest failure or end."""

    id: int
    context: Any
    state: ManagedState
    life: int
    attempts: int
    failures: int
    status: Status
    layer: ErrorLayer
    server: str
    text: str


ProvideFunction = Callable[[int, Any], "Ends | None"]
ReclaimFunction = Callable[[int, Any, Any, Any, Any], object]
EventFunction = Callable[[ManagedEvent], object]


def _function(on_event: EventFunction | None) -> Callable[..., object] | None:
    """The function as the extension calls it."""
    if on_event is None:
        return None
    given = on_event
    return lambda event, session: given(ManagedEvent._make((*event, session)))


class BaseSessionManager(_ndx.SessionManager):
    """What ndx.SessionManager and ndx.aio.SessionManager have in common."""

    def __new__(
        cls,
        negotiation: _ndx.Negotiation,
        *,
        provide: ProvideFunction | None = None,
        reclaim: ReclaimFunction | None = None,
        on_event: EventFunction | None = None,
        max_sessions: int = 4096,
        max_connecting: int = 32,
        attempts: int = 10,
        backoff_ms: int = 100,
        backoff_most_ms: int = 30000,
        stable_ms: int = 1000,
        max_events: int | None = None,
        end_with_peer: bool = False,
    ) -> Any:
        if max_events is None:
            max_events = 0 if on_event is not None else 4096
        return super().__new__(
            cls,
            negotiation,
            provide=provide,
            reclaim=reclaim,
            on_event=_function(on_event),
            max_sessions=max_sessions,
            max_connecting=max_connecting,
            attempts=attempts,
            backoff_ms=backoff_ms,
            backoff_most_ms=backoff_most_ms,
            stable_ms=stable_ms,
            max_events=max_events,
            end_with_peer=end_with_peer,
        )

    def add(
        self,
        variant: Variant,
        servers: str | Iterable[str],
        *,
        context: object = None,
        inbound_read_limit: int = 16,
        outbound_read_limit: int = 16,
        connect_timeout_ms: int = 5000,
        stage_timeout_ms: int = 30000,
        session_timeout_ms: int = 120000,
        max_message: int = 65536,
        max_rounds: int = 64,
        max_history: int = 128,
        tls: Tls | None = None,
        allow_plaintext: bool = False,
    ) -> int:
        """Add a session, which begins at once, or when its turn comes; its number.

        The arguments are those of Session(), and `context` is for the program. The variant must be
        of the manager's Negotiation.

        Raises InvalidParameterError, Error with INSUFFICIENT_RESOURCES (max_sessions), and as
        Session().
        """
        return self._add(
            context,
            variant,
            (servers,) if isinstance(servers, str) else tuple(servers),
            inbound_read_limit=inbound_read_limit,
            outbound_read_limit=outbound_read_limit,
            connect_timeout_ms=connect_timeout_ms,
            stage_timeout_ms=stage_timeout_ms,
            session_timeout_ms=session_timeout_ms,
            max_message=max_message,
            max_rounds=max_rounds,
            max_history=max_history,
            tls=arguments_of(tls),
            allow_plaintext=allow_plaintext,
        )

    def report(self, id: int, life: int, status: Status) -> None:
        """Say that a life is over, which only the program sees: it is negotiated anew.

        Raises NotFoundError, StateError (that life is not up), InvalidParameterError (the status is
        no failure).
        """
        self._report(id, life, status)

    def _taken(self, events: list[bytes]) -> ManagedEvent | None:
        """The oldest of these events, by the rules of take()."""
        return take(events, lambda buffer: ManagedEvent(*self._event_of(buffer)))

    def sessions(self) -> list[ManagedSession]:
        """The sessions, in the order of their numbers; those that are over until remove()."""
        return [ManagedSession(*entry) for entry in self._list()]


class SessionManager(BaseSessionManager):
    """SessionManager(negotiation, *, provide=None, reclaim=None, on_event=None, ...): keeps many
    sessions to servers, and negotiates each anew when its connection ends.

    provide  -- provide(id, context) -> (connector, qp[, memory]), new ones for each attempt; an
                exception fails the attempt. None: the plugin has queue pairs of its own
    reclaim  -- reclaim(id, context, connector, qp, memory): an attempt or a life has ended; the
                function closes what `provide` gave
    on_event -- on_event(ManagedEvent); None: event() has the events, of which `max_events` are kept
                (default 4096; with on_event 0)
    The functions run on threads of the library. The others are those of
    struct ndx_session_manager_attr (ndx/session_manager.h).
    """

    def _wait_event(self, limit: Limit) -> None:
        """Wait until the list of the manager has an event, which another thread may take."""
        started: list[tuple[_ndx.Operation, bytes]] = []
        try:
            self._start_event(None, started)
            if started:
                wait_for(
                    lambda operations: operations.append(started[0][0]),
                    limit,
                    lambda: self._end_event(started),
                    "event",
                )
        finally:
            self._end_event(started)

    def event(self, timeout: float | None = None) -> ManagedEvent:
        """The oldest event that was kept, or the next one; waits up to `timeout` seconds (None: no
        limit). One wait at a time. Ctrl-C interrupts, and the next call returns an event that came
        in that moment.

        Raises TimedOutError, CanceledError (close()), StateError (max_events is 0, or another
        thread waits).
        """
        limit = Limit(timeout)
        events = self._events()
        while True:
            event = self._taken(events)
            if event is not None:
                return event
            self._wait_event(limit)


__all__ = ["ManagedEvent", "ManagedSession", "SessionManager"]
