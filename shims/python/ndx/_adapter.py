# SPDX-License-Identifier: BSD-2-Clause
"""Adapters: listing, opening, querying."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from . import _ndx
from ._enums import Access, Capability, Status

Address = tuple[str, int] | tuple[str, int, int, int]
"""An address as the module socket has it."""


@dataclass(frozen=True)
class AdapterInfo:
    """Limits and capabilities of an open adapter. Lengths in bytes, depths in requests. All limits
    may be used at the same time."""

    uri: str
    provider: str
    device: str
    capabilities: Capability
    adapter_id: int
    vendor_id: int
    device_id: int
    max_registration_size: int
    max_window_size: int
    max_initiator_sge: int
    max_receive_sge: int
    max_read_sge: int
    max_transfer_length: int
    max_inline_data_size: int
    inline_request_threshold: int
    large_request_threshold: int
    max_inbound_read_limit: int
    max_outbound_read_limit: int
    max_receive_queue_depth: int
    max_initiator_queue_depth: int
    max_shared_receive_queue_depth: int
    max_completion_queue_depth: int
    max_caller_data: int
    max_callee_data: int


class AdapterEntry(NamedTuple):
    """An adapter of this machine: usable, or present but not usable for a reason."""

    uri: str
    provider: str
    device: str
    interface: str
    addresses: list[Address]
    adapter_id: int
    status: Status
    hint: str

    @property
    def usable(self) -> bool:
        """Can the adapter be opened? If not, `hint` says what helps."""
        return self.status == Status.OK


class Adapter(_ndx.Adapter):
    """An open adapter, and the protection domain of all that is created on it.

    Adapter(uri=None) opens it. None: $NDX_ADAPTER, else the INI file, else the automatic choice.

    Raises NotFoundError (no such provider, device or interface), and Error with INVALID_CONFIG
    (malformed URI) or DEVICE_NOT_READY (module, port or permission missing; the text says what
    helps). Blocks while devices are probed, without the interpreter's lock.
    """

    def query(self) -> AdapterInfo:
        """Limits and capabilities."""
        return AdapterInfo(**self._query())

    def register(self, memory: Any, access: Access = Access.LOCAL_WRITE) -> _ndx.MemoryRegion:
        """Register the memory of an object with a buffer; see MemoryRegion."""
        return _ndx.MemoryRegion(self, memory, access)


def adapters() -> list[AdapterEntry]:
    """All adapters of this machine, also those that are not usable, with the reason.

    Opens none. Blocks while devices are probed, up to about a second.
    """
    return [AdapterEntry(*entry) for entry in _ndx._list()]


def resolve(remote: Address | str) -> tuple[str, Address]:
    """(uri, local address) of the adapter that reaches a remote address; the port is ignored.

    Raises UnreachableError (no route), or Error with INVALID_ADDRESS (no adapter has the address
    by which the route leaves).
    """
    return _ndx._resolve(remote)


def default_adapter() -> str | None:
    """The URI that $NDX_ADAPTER or the INI file names; None: the choice is automatic."""
    return _ndx._default()
