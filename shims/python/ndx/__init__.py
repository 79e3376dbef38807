# SPDX-License-Identifier: BSD-2-Clause
"""NetworkDirect's object model of RDMA, over the stacks that NDX supports.

Times are seconds, as int or float; None means no limit. Lengths are bytes. A failed call raises
ndx.Error or a subclass, with `status`, `text` and `native`. Calls that wait release the
interpreter's lock, and Ctrl-C interrupts them. docs/python.md has examples.
"""

from __future__ import annotations

from ._adapter import (
    Adapter,
    AdapterEntry,
    AdapterInfo,
    Address,
    adapters,
    default_adapter,
    resolve,
)
from ._connection import CompletionQueue, Connector, Listener
from ._enums import (
    Access,
    Capability,
    DisconnectReason,
    QueuePairState,
    RequestType,
    Role,
    Status,
)
from ._errors import (
    AbortedError,
    BusyError,
    CanceledError,
    ClosedError,
    ConnectionFailedError,
    Error,
    ForkedError,
    InvalidParameterError,
    NotFoundError,
    NotSupportedError,
    QueueFullError,
    RefusedError,
    StateError,
    TimedOutError,
    UnreachableError,
)
from ._ndx import MemoryRegion, QueuePair, Result, version

__version__ = version()

__all__ = [
    "AbortedError",
    "Access",
    "Adapter",
    "AdapterEntry",
    "AdapterInfo",
    "Address",
    "BusyError",
    "CanceledError",
    "Capability",
    "ClosedError",
    "CompletionQueue",
    "ConnectionFailedError",
    "Connector",
    "DisconnectReason",
    "Error",
    "ForkedError",
    "InvalidParameterError",
    "Listener",
    "MemoryRegion",
    "NotFoundError",
    "NotSupportedError",
    "QueueFullError",
    "QueuePair",
    "QueuePairState",
    "RefusedError",
    "RequestType",
    "Result",
    "Role",
    "StateError",
    "Status",
    "TimedOutError",
    "UnreachableError",
    "adapters",
    "default_adapter",
    "resolve",
    "version",
]
