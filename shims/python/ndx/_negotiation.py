# SPDX-License-Identifier: BSD-2-Clause
"""Negotiation: plugins and variants, sessions, servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from . import _ndx
from ._adapter import Address
from ._connection import Limit, wait_for
from ._enums import ErrorLayer, HistoryKind, PluginErrorKind, Stage, Status
from ._errors import Error, make_error

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
    """Why a session failed: status OK if it did not."""

    status: Status
    layer: ErrorLayer
    plugin_error: PluginErrorKind
    remote: bool
    stage: Stage
    round: int
    text: str


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


class BaseSession(_ndx.Session):
    """What ndx.Session and ndx.aio.Session have in common."""

    def __new__(
        cls,
        variant: Variant,
        servers: str | Iterable[str],
        *,
        connector: _ndx.Connector | None = None,
        qp: _ndx.QueuePair | None = None,
        memory: _ndx.MemoryRegion | None = None,
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
    ) -> Any:
        return super().__new__(
            cls,
            variant,
            (servers,) if isinstance(servers, str) else tuple(servers),
            connector=connector,
            qp=qp,
            memory=memory,
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
        )

    @property
    def failure(self) -> SessionFailure:
        """Why the session failed."""
        return SessionFailure(*self._error())

    @property
    def history(self) -> list[HistoryEntry]:
        """The latest steps, at most `max_history`."""
        return [HistoryEntry(*entry) for entry in self._history()]

    def explained(self, error: Error) -> Error:
        """The exception with what the session knows of the failure."""
        failure = self.failure
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
    memory  -- a MemoryRegion for the peer
    The others are those of struct ndx_session_attr (ndx/session.h).
    """

    def _wait(self, op: _ndx.Operation) -> None:
        try:
            wait_for(op, Limit(None), self.cancel, "session")
        except Error as error:
            raise self.explained(error) from None

    def connect(self) -> None:
        """Connect to a server: each in order, with pauses, until one answers.

        Raises SessionError of the last attempt. Ctrl-C cancels the session.
        """
        self._wait(self._start_connect(None))

    def execute(self, stage: Stage) -> None:
        """Run one stage to its end. Raises SessionError."""
        self._wait(self._start_execute(stage, None))

    def run(self) -> None:
        """connect(), then the stages info, validate and ready."""
        self._wait(self._start_run(None))


SessionView = _ndx.Session
"""A session of a server, for its functions: only what it knows may be asked."""

OpenFunction = Callable[[SessionView], "tuple[Any, ...] | None"]


class Server(_ndx.Server):
    """Server(address, variants, *, on_open=None, on_staged=None, on_closed=None, ...): serves many
    clients, each with the variant that it asks for.

    address   -- "HOST:PORT"; port 0: any, see `address`
    on_open   -- on_open(session) -> None or (connector, qp[, memory]): what the session is to be
                 connected to. An exception refuses the client
    on_staged -- on_staged(session, stage): a stage has ended; after READY data may be sent
    on_closed -- on_closed(session): the session is over; connector and queue pair are free again
    The functions run on threads of the library. The others are those of
    struct ndx_negotiation_server_attr (ndx/negotiation_server.h).
    """

    def __new__(
        cls,
        address: str,
        variants: Variant | Iterable[Variant],
        *,
        on_open: OpenFunction | None = None,
        on_staged: Callable[[SessionView, Stage], object] | None = None,
        on_closed: Callable[[SessionView], object] | None = None,
        **limits: int,
    ) -> Server:
        several = (variants,) if isinstance(variants, _ndx.Variant) else tuple(variants)
        return super().__new__(
            cls,
            address,
            several,
            on_open=on_open,
            on_staged=on_staged,
            on_closed=on_closed,
            **limits,
        )


__all__ = [
    "Address",
    "HistoryEntry",
    "Negotiation",
    "Parameter",
    "PluginEntry",
    "Server",
    "Session",
    "SessionError",
    "SessionFailure",
    "Variant",
]
