# SPDX-License-Identifier: BSD-2-Clause
"""Exceptions. Each has the status, the text of the library, and the native code."""

from __future__ import annotations

import builtins

from ._enums import Status


class Error(Exception):
    """A call of the library failed.

    status -- ndx.Status
    text   -- what failed, and what helps, as far as known
    native -- errno or the provider's code, 0 if there is none
    """

    status: Status
    text: str
    native: int

    def __init__(self, status: Status, text: str, native: int = 0) -> None:
        super().__init__(f"{status.name}: {text}" + (f" (native code {native})" if native else ""))
        self.status = status
        self.text = text
        self.native = native

    def __reduce__(self) -> tuple[type[Error], tuple[Status, str, int]]:
        return type(self), (self.status, self.text, self.native)


class TimedOutError(Error, builtins.TimeoutError):
    """No answer in time (IO_TIMEOUT)."""


class CanceledError(Error):
    """Cancelled, or flushed with its queue pair (CANCELED)."""


class ConnectionFailedError(Error, builtins.ConnectionError):
    """A connection does not exist, ended, or could not be made."""


class RefusedError(ConnectionFailedError):
    """No listener, backlog full, or rejected by the peer (CONNECTION_REFUSED)."""


class AbortedError(ConnectionFailedError):
    """The connection, or the attempt, ended without a goodbye (CONNECTION_ABORTED)."""


class UnreachableError(ConnectionFailedError):
    """No route, or the host does not answer (NETWORK_UNREACHABLE, HOST_UNREACHABLE)."""


class InvalidParameterError(Error, ValueError):
    """An argument breaks its documented precondition (INVALID_PARAMETER)."""


class NotFoundError(Error, LookupError):
    """No such provider, device, interface, plugin, variant or directory (NOT_FOUND)."""


class NotSupportedError(Error):
    """The adapter lacks the capability (NOT_SUPPORTED)."""


class QueueFullError(Error):
    """The queue is full: take results, then post again (NO_MORE_ENTRIES)."""


class AccessDeniedError(Error, builtins.PermissionError):
    """The system does not allow it, as a port below 1024 (ACCESS_DENIED)."""


class StateError(Error):
    """The object is not in the state that the call needs (INVALID_DEVICE_STATE)."""


class BusyError(Error):
    """The object is in use (DEVICE_BUSY)."""


class ClosedError(StateError, ValueError):
    """The object is closed."""


class ForkedError(StateError, RuntimeError):
    """The process was forked from one that used the library."""


_CLASSES: dict[Status, type[Error]] = {
    Status.IO_TIMEOUT: TimedOutError,
    Status.CANCELED: CanceledError,
    Status.CONNECTION_REFUSED: RefusedError,
    Status.CONNECTION_ABORTED: AbortedError,
    Status.CONNECTION_INVALID: ConnectionFailedError,
    Status.CONNECTION_ACTIVE: ConnectionFailedError,
    Status.NETWORK_UNREACHABLE: UnreachableError,
    Status.HOST_UNREACHABLE: UnreachableError,
    Status.INVALID_PARAMETER: InvalidParameterError,
    Status.NOT_FOUND: NotFoundError,
    Status.NOT_SUPPORTED: NotSupportedError,
    Status.NO_MORE_ENTRIES: QueueFullError,
    Status.INVALID_DEVICE_STATE: StateError,
    Status.DEVICE_BUSY: BusyError,
    Status.ACCESS_DENIED: AccessDeniedError,
}


def make_error(status: Status | str, text: str, native: int) -> Error:
    """For the extension: the exception of a status, or that of a name."""
    if isinstance(status, str):
        named = {"ClosedError": ClosedError, "ForkedError": ForkedError}[status]
        return named(Status.INVALID_DEVICE_STATE, text, native)
    return _CLASSES.get(status, Error)(status, text, native)
