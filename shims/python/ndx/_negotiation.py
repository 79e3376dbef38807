# SPDX-License-Identifier: BSD-2-Clause
"""Negotiation: plugins and variants, sessions, servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Union

from . import _ndx
from ._adapter import Address
from ._connection import Limit, wait_for
from ._enums import ErrorLayer, HistoryKind, PluginErrorKind, Stage, Status
from ._errors import ClosedError, Error, make_error
from ._tls import Tls, arguments_of

Variant = _ndx.Variant


class Parameter(NamedTuple):
    """A parameter of a variant. type: bool, int, str, or "choice" with `choices` ("a|b")."""

    name: str
    type: type | str
    required: bool
    least: int
    most: int
    choices: str | None
    initial: str | None
    help: str


class PluginEntry(NamedTuple):
    """A variant; or a plugin that failed (`failed`, and `text` says why)."""

    plugin: str
    version: str
    vendor: str
    origin: str
    failed: bool
    text: str
    variant: str | None
    help: str
    available: bool
    parameters: tuple[Parameter, ...]


class SessionFailure(NamedTuple):
    """Why a session failed: status OK if it did not.

    queue_pair -- of several, the index of the one that failed; None: it is not one of them
    """

    status: Status
    layer: ErrorLayer
    plugin_error: PluginErrorKind
    remote: bool
    stage: Stage
    round: int
    text: str
    queue_pair: int | None


class HistoryEntry(NamedTuple):
    """A step of a session; str() is a readable line. Times in microseconds."""

    at_us: int
    duration_us: int
    kind: HistoryKind
    stage: Stage
    round: int
    bytes: int
    status: Status
    text: str
    line: str

    def __str__(self) -> str:
        return self.line


class SessionError(Error):
    """A call of a session failed; `failure` has the layer, the stage and the round.

    It is also of the class of its status, for example RefusedError.
    """

    failure: SessionFailure


_TYPES: tuple[type | str, ...] = (bool, int, str, "choice")


def _text(value: object) -> str:
    """A setting as the library spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class Negotiation(_ndx.Negotiation):
    """Negotiation(): a framework without plugins. Variants load those that they need."""

    def plugins(self) -> list[PluginEntry]:
        """All variants, and the plugins that failed."""
        return [
            PluginEntry._make(
                (*entry[:9], tuple(Parameter(p[0], _TYPES[p[1]], *p[2:]) for p in entry[9]))
            )
            for entry in self._list()
        ]

    def variant(
        self, plugin: str, variant: str | None = None, settings: Mapping[str, object] | None = None
    ) -> Variant:
        """An instance of a variant: variant("roce", "rc", {"mtu": 1024}), or
        variant("roce/rc", settings=...).

        Raises NotFoundError (the text lists what there is, and suggests), NotSupportedError (not
        on this machine), Error with INVALID_CONFIG (a parameter; the text has its legal values).
        """
        if variant is None:
            plugin, _, variant = plugin.partition("/")
        texts = {name: _text(value) for name, value in (settings or {}).items()}
        return _ndx.Variant(self, plugin, variant, texts)


Ends = Union[
    tuple[_ndx.Connector, _ndx.QueuePair],
    tuple[_ndx.Connector, _ndx.QueuePair, Union[_ndx.MemoryRegion, _ndx.Receiver, None]],
]
"""What one queue pair of a session is: (connector, qp), or (connector, qp, memory)."""


class BaseSession(_ndx.Session):
    """What ndx.Session and ndx.aio.Session have in common."""

    def __new__(
        cls,
        variant: Variant,
        servers: str | Iterable[str],
        *,
        connector: _ndx.Connector | None = None,
        qp: _ndx.QueuePair | None = None,
        memory: _ndx.MemoryRegion | _ndx.Receiver | None = None,
        queue_pairs: Iterable[Ends] = (),
        inbound_read_limit: int = 16,
        outbound_read_limit: int = 16,
        connect_timeout_ms: int = 5000,
        attempts: int = 3,
        backoff_ms: int = 100,
        backoff_most_ms: int = 5000,
        stage_timeout_ms: int = 30000,
        session_timeout_ms: int = 120000,
        max_message: int = 65536,
        max_rounds: int = 64,
        max_history: int = 128,
        tls: Tls | None = None,
        allow_plaintext: bool = False,
    ) -> Any:
        return super().__new__(
            cls,
            variant,
            (servers,) if isinstance(servers, str) else tuple(servers),
            connector=connector,
            qp=qp,
            memory=memory,
            queue_pairs=tuple(queue_pairs),
            inbound_read_limit=inbound_read_limit,
            outbound_read_limit=outbound_read_limit,
            connect_timeout_ms=connect_timeout_ms,
            attempts=attempts,
            backoff_ms=backoff_ms,
            backoff_most_ms=backoff_most_ms,
            stage_timeout_ms=stage_timeout_ms,
            session_timeout_ms=session_timeout_ms,
            max_message=max_message,
            max_rounds=max_rounds,
            max_history=max_history,
            tls=arguments_of(tls),
            allow_plaintext=allow_plaintext,
        )

    @property
    def failure(self) -> SessionFailure:
        """Why the session failed."""
        return SessionFailure(*self._error())

    @property
    def add_failure(self) -> SessionFailure:
        """Why the latest add_queue_pairs() failed; status OK if it did not, or there was none."""
        return SessionFailure(*self._add_error())

    @property
    def history(self) -> list[HistoryEntry]:
        """The latest steps, at most `max_history`."""
        return [HistoryEntry(*entry) for entry in self._history()]

    def explained(self, error: Error, adding: bool = False) -> Error:
        """The exception with what the session knows of the failure."""
        failure = self.add_failure if adding else self.failure
        if failure.status != error.status:
            return error
        kind = type(make_error(error.status, "", 0))
        both = type(kind.__name__, (SessionError, kind), {"__module__": kind.__module__})
        explained: SessionError = both(error.status, failure.text or error.text, error.native)
        explained.failure = failure
        return explained


class Session(BaseSession):
    """Session(variant, servers, *, connector=None, qp=None, memory=None, ...): one negotiation with
    one peer.

    servers -- "HOST:PORT", or several, best first
    connector, qp -- what is to be connected, both or neither; the session holds them open
    memory  -- for the peer: a MemoryRegion, or a Receiver in mode WRITE, whose slab it is
    queue_pairs -- in place of these: several, each (connector, qp) or (connector, qp, memory). The
               plugin must take several, the server as many. Each is connected to the one of the
               same index there, and later its connection ends by itself
    tls     -- Tls; None: plaintext
    allow_plaintext -- without TLS: connect beyond the loopback, too
    The others are those of struct ndx_session_attr (ndx/session.h).
    """

    def _wait(self, start: Callable[[list[_ndx.Operation]], object]) -> None:
        try:
            wait_for(start, Limit(None), self.cancel, "session")
        except Error as error:
            raise self.explained(error) from None

    def connect(self) -> None:
        """Connect to a server: each in order, with pauses, until one answers.

        Raises SessionError of the last attempt. Ctrl-C cancels the session.
        """
        self._wait(self._start_connect)

    def execute(self, stage: Stage) -> None:
        """Run one stage to its end. Raises SessionError."""
        self._wait(lambda started: self._start_execute(stage, started))

    def run(self) -> None:
        """connect(), then the stages info, validate and ready."""
        self._wait(self._start_run)

    def add_queue_pairs(self, queue_pairs: Iterable[Ends]) -> int:
        """Add queue pairs to a session of several, after stage ready; the index of the first one.

        All of them are connected, or none, and the others of the session live on. Ctrl-C and
        cancel() end this call alone.

        Raises SessionError (`add_failure`), NotSupportedError (the session has one queue pair, or
        an end takes none later), StateError (not between the stages ready and done), BusyError.
        """
        several = tuple(queue_pairs)
        try:
            return wait_for(
                lambda started: self._start_add(several, started),
                Limit(None),
                self.cancel,
                "session",
            )
        except Error as error:
            raise self.explained(error, adding=True) from None
        finally:
            with suppress(ClosedError):
                self._settle()

    def remove_queue_pairs(self, first: int, count: int = 1) -> None:
        """Take queue pairs whose connections have ended out of a session of several.

        Their places and memory are free again at both ends. Disconnect them first. Raises
        InvalidParameterError (the session does not have them), StateError (a connection still
        says goodbye by the session), NotSupportedError.
        """
        self._remove(first, count)


SessionView = _ndx.Session
"""A session of a server or manager, for its functions: only what it knows may be asked. Calls that
change it, cancel() and close() among them, raise StateError."""

OpenFunction = Callable[[SessionView], "tuple[Any, ...] | None"]

NO_LIMIT = 0xFFFFFFFF
"""Of max_handshakes and max_handshakes_per_address: as many as come."""


class Grant(NamedTuple):
    """A variant that the clients of a name or a pre-shared key may use; None: any of the plugin.

    name         -- one that the client's certificate has; or
    psk_identity -- that of the client's pre-shared key
    """

    plugin: str
    variant: str | None = None
    name: str | None = None
    psk_identity: str | None = None


class Server(_ndx.Server):
    """Server(address, variants, *, on_open=None, on_staged=None, on_closed=None, ...): serves many
    clients, each with the variant that it asks for.

    address    -- "HOST:PORT"; port 0: any, see `address`
    on_open    -- on_open(session) -> None or (connector, qp[, memory]): what the session is to be
                  connected to. An exception refuses the client
    on_staged  -- on_staged(session, stage): a stage has ended; after READY data may be sent
    on_closed  -- on_closed(session): the session is over; connectors and queue pairs are free again
    on_open_many -- on_open_many(session, count) -> count times (connector, qp[, memory]), for a
                  client with several queue pairs. None: such clients are refused
    on_add_many -- on_add_many(session, first, count) -> the same, for a client that adds queue
                  pairs, from index `first` on; an exception refuses these. None: nothing is added
    on_added   -- on_added(session, first, count, status): these are connected, or, if the status is
                  not OK, are not, and the function closes what on_add_many has given
    on_removed -- on_removed(session, index): the client has taken this one out of its session; the
                  function disconnects and closes it
    tls        -- Tls; None: plaintext
    grants     -- with tls: which clients may use which variants; (): all use all
    allow_plaintext -- without TLS: listen beyond the loopback, too
    The functions run on threads of the library. The others are the limits of
    struct ndx_negotiation_server_attr (ndx/negotiation_server.h), and the read limits of
    struct ndx_connect_attr. 0 is no limit in max_waiting_per_address and the limits of a principal;
    in the limits of handshakes (a second) 0 is the default, and NO_LIMIT no limit.
    """

    def __new__(
        cls,
        address: str,
        variants: Variant | Iterable[Variant],
        *,
        on_open: OpenFunction | None = None,
        on_staged: Callable[[SessionView, Stage], object] | None = None,
        on_closed: Callable[[SessionView], object] | None = None,
        on_open_many: Callable[[SessionView, int], Iterable[Ends]] | None = None,
        on_add_many: Callable[[SessionView, int, int], Iterable[Ends]] | None = None,
        on_added: Callable[[SessionView, int, int, Status], object] | None = None,
        on_removed: Callable[[SessionView, int], object] | None = None,
        tls: Tls | None = None,
        grants: Iterable[Grant] = (),
        allow_plaintext: bool = False,
        inbound_read_limit: int = 16,
        outbound_read_limit: int = 16,
        max_sessions: int = 4096,
        workers: int = 2,
        workers_most: int = 64,
        hello_timeout_ms: int = 5000,
        stage_timeout_ms: int = 30000,
        session_timeout_ms: int = 120000,
        plugin_warn_ms: int = 5000,
        max_message: int = 65536,
        max_rounds: int = 64,
        max_history: int = 16,
        max_waiting_per_address: int = 2048,
        max_sessions_per_principal: int = 1024,
        max_queue_pairs_per_principal: int = 1024,
        max_memory_per_principal: int = 0,
        max_handshakes_per_address: int = 0,
        max_handshakes: int = 0,
        max_queue_pairs: int = 64,
    ) -> Server:
        several = (variants,) if isinstance(variants, _ndx.Variant) else tuple(variants)
        return super().__new__(
            cls,
            address,
            several,
            on_open=on_open,
            on_staged=on_staged,
            on_closed=on_closed,
            on_open_many=on_open_many,
            on_add_many=on_add_many,
            on_added=on_added,
            on_removed=on_removed,
            tls=arguments_of(tls),
            grants=tuple(grants),
            allow_plaintext=allow_plaintext,
            inbound_read_limit=inbound_read_limit,
            outbound_read_limit=outbound_read_limit,
            max_sessions=max_sessions,
            workers=workers,
            workers_most=workers_most,
            hello_timeout_ms=hello_timeout_ms,
            stage_timeout_ms=stage_timeout_ms,
            session_timeout_ms=session_timeout_ms,
            plugin_warn_ms=plugin_warn_ms,
            max_message=max_message,
            max_rounds=max_rounds,
            max_history=max_history,
            max_waiting_per_address=max_waiting_per_address,
            max_sessions_per_principal=max_sessions_per_principal,
            max_queue_pairs_per_principal=max_queue_pairs_per_principal,
            max_memory_per_principal=max_memory_per_principal,
            max_handshakes_per_address=max_handshakes_per_address,
            max_handshakes=max_handshakes,
            max_queue_pairs=max_queue_pairs,
        )


__all__ = [
    "NO_LIMIT",
    "Address",
    "Ends",
    "Grant",
    "HistoryEntry",
    "Negotiation",
    "Parameter",
    "PluginEntry",
    "Server",
    "Session",
    "SessionError",
    "SessionFailure",
    "SessionView",
    "Variant",
]
