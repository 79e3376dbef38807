# SPDX-License-Identifier: BSD-2-Clause
"""Adapters, memory, enums, errors."""

from __future__ import annotations

import array
import builtins
import mmap
import pickle
import re
from pathlib import Path

import pytest
from conftest import grows_no_more

import ndx
from ndx import _enums, _errors

HEADERS = Path(__file__).resolve().parents[2] / "api" / "ndx"


def header_enum(header: str, name: str) -> dict[str, int]:
    """The members of an enum in a header of the library."""
    text = re.sub(r"/\*.*?\*/", "", (HEADERS / header).read_text(), flags=re.S)
    body = re.search(rf"enum {name} \{{(.*?)\}}", text, re.S)
    assert body is not None, name
    members = {}
    value = -1
    for item in body.group(1).split(","):
        member, _, number = item.partition("=")
        if not member.strip():
            continue
        value = eval(number) if number.strip() else value + 1  # noqa: S307 - our own header
        members[member.strip()] = value
    return members


@pytest.mark.parametrize(
    "header, name, prefix, enum",
    [
        ("status.h", "ndx_status", "NDX_(E_)?", _enums.Status),
        ("adapter.h", "ndx_capability", "NDX_CAP_", _enums.Capability),
        ("cq.h", "ndx_request_type", "NDX_REQUEST_", _enums.RequestType),
        ("connector.h", "ndx_disconnect_reason", "NDX_DISCONNECT_", _enums.DisconnectReason),
        ("query.h", "ndx_qp_state", "NDX_QP_", _enums.QueuePairState),
        ("description.h", "ndx_role", "NDX_ROLE_", _enums.Role),
        ("receiver.h", "ndx_receiver_state", "NDX_RECEIVER_", _enums.ReceiverState),
        ("receiver.h", "ndx_receiver_end", "NDX_RECEIVER_END_", _enums.ReceiverEnd),
        ("receiver.h", "ndx_receiver_mode", "NDX_RECEIVER_", _enums.ReceiverMode),
        ("spi/plugin.h", "ndx_stage", "NDX_STAGE_", _enums.Stage),
        ("session.h", "ndx_error_layer", "NDX_LAYER_", _enums.ErrorLayer),
        ("session.h", "ndx_session_state", "NDX_SESSION_", _enums.SessionState),
        ("session.h", "ndx_history_kind", "NDX_HISTORY_", _enums.HistoryKind),
        ("spi/plugin.h", "ndx_plugin_error", "NDX_PLUGIN_", _enums.PluginErrorKind),
        (
            "session_manager.h",
            "ndx_managed_state",
            "NDX_MANAGED_",
            _enums.ManagedState,
        ),
        (
            "session_manager.h",
            "ndx_managed_event_kind",
            "NDX_MANAGED_EVENT_",
            _enums.ManagedEventKind,
        ),
        ("tls.h", "ndx_tls_verify", "NDX_TLS_VERIFY_", _enums.TlsVerify),
        ("log.h", "ndx_log_level", "NDX_LOG_", _enums.LogLevel),
        (
            "event.h",
            "ndx_adapter_event_type",
            "NDX_ADAPTER_EVENT_",
            _enums.AdapterEventType,
        ),
        ("reassembly.h", "ndx_link_type", "NDX_LINK_", _enums.LinkType),
        ("reassembly.h", "ndx_rdma_transport", "NDX_RDMA_", _enums.Transport),
        ("reassembly.h", "ndx_rpc_chunk_kind", "NDX_RPC_CHUNK_", _enums.ChunkKind),
        ("reassembly.h", "ndx_hole_kind", "NDX_HOLE_", _enums.HoleKind),
        ("reassembly.h", "ndx_orphan_kind", "NDX_ORPHAN_", _enums.OrphanKind),
        ("reassembly.h", "ndx_eviction_reason", "NDX_EVICTION_", _enums.EvictionReason),
        ("reassembly.h", "ndx_reassembly_event_type", "NDX_REASSEMBLY_", _enums.EventType),
        (
            "reassembly_parts.h",
            "ndx_rdma_operation_kind",
            "NDX_RDMA_OPERATION_",
            _enums.OperationKind,
        ),
    ],
)
def test_enums_are_those_of_the_headers(
    header: str, name: str, prefix: str, enum: type[_enums.IntEnum]
) -> None:
    wanted = {re.sub(f"^{prefix}", "", k): v for k, v in header_enum(header, name).items()}
    assert {k: int(v) for k, v in enum.__members__.items()} == wanted


def test_rights_are_those_of_the_header() -> None:
    flags = header_enum("mr.h", "ndx_mr_flag")
    assert ndx.Access.LOCAL_WRITE == flags["NDX_MR_ALLOW_LOCAL_WRITE"]
    assert ndx.Access.REMOTE_READ == flags["NDX_MR_ALLOW_REMOTE_READ"]
    assert ndx.Access.REMOTE_WRITE == flags["NDX_MR_ALLOW_REMOTE_WRITE"]
    assert ndx.Access.READ_SINK == flags["NDX_MR_RDMA_READ_SINK"]


def test_the_list_has_loop_and_it_opens() -> None:
    entry = next(e for e in ndx.adapters() if e.uri == "loop")
    assert entry.usable and entry.provider == "loop" and entry.addresses
    with ndx.Adapter(entry.uri) as adapter:
        info = adapter.query()
        assert info.adapter_id == entry.adapter_id
        assert ndx.Capability.LOOPBACK in info.capabilities
        assert info.max_transfer_length > 0
        assert '"uri"' in adapter.snapshot()
    assert adapter.closed


def test_resolve_finds_the_adapter_of_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NDX_ADAPTER", raising=False)
    uri, local = ndx.resolve(("127.0.0.1", 1))
    assert uri and local[1] == 0
    with pytest.raises(ValueError, match="not resolved"):
        ndx.resolve(("localhost", 1))


def test_the_default_is_what_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NDX_ADAPTER", "loop")
    assert ndx.default_adapter() == "loop"
    with ndx.Adapter() as adapter:
        assert adapter.query().provider == "loop"


def test_a_failure_has_status_text_and_class() -> None:
    with pytest.raises(ndx.NotFoundError) as caught:
        ndx.Adapter("nothing:here")
    assert caught.value.status is ndx.Status.NOT_FOUND
    assert "nothing" in caught.value.text
    assert isinstance(caught.value, LookupError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is ndx.NotFoundError and again.text == caught.value.text
    with pytest.raises(ndx.Error) as malformed:
        ndx.Adapter("loop?key=value=more")
    assert malformed.value.status is ndx.Status.INVALID_CONFIG


def test_exceptions_are_those_that_people_catch() -> None:
    assert issubclass(ndx.TimedOutError, builtins.TimeoutError)
    assert issubclass(ndx.RefusedError, builtins.ConnectionError)
    for status in ndx.Status:
        error = _errors.make_error(status, "why", 7)
        assert error.status is status and error.native == 7 and "why" in str(error)


def test_a_closed_object_says_so() -> None:
    adapter = ndx.Adapter("loop")
    adapter.close()
    adapter.close()
    for call in (adapter.query, adapter.addresses, lambda: ndx.CompletionQueue(adapter)):
        with pytest.raises(ndx.ClosedError):
            call()
    with pytest.raises(ValueError):
        adapter.__enter__()


@pytest.mark.parametrize("make", [bytearray, lambda n: array.array("I", bytes(n)), None])
def test_memory_comes_from_any_buffer_and_back(adapter: ndx.Adapter, make: object) -> None:
    memory = make(4096) if callable(make) else mmap.mmap(-1, 4096)
    with adapter.register(memory, ndx.Access.REMOTE_WRITE) as region:
        assert len(region) == 4096
        view = region.memory
        view[7] = 99
        assert bytes(memoryview(memory).cast("B")[:8]) == bytes(7) + b"c"
        assert region.remote_token != 0 and region.address != 0
    with pytest.raises(ndx.ClosedError):
        _ = region.memory
    assert view[7] == 99


def test_registered_memory_is_not_resized(adapter: ndx.Adapter) -> None:
    memory = bytearray(1024)
    region = adapter.register(memory)
    with pytest.raises(BufferError):
        memory.extend(b"more")
    region.close()
    memory.extend(b"more")
    mapped = mmap.mmap(-1, 4096)
    with adapter.register(mapped), pytest.raises(BufferError):
        mapped.close()
    mapped.close()


def test_memory_that_cannot_be_registered(adapter: ndx.Adapter) -> None:
    with pytest.raises(BufferError):
        adapter.register(b"constant", ndx.Access.LOCAL_WRITE)
    adapter.register(b"constant", ndx.Access.LOCAL_READ).close()
    with pytest.raises(BufferError):
        adapter.register(memoryview(bytearray(64))[::2])
    with pytest.raises(ndx.Error) as empty:
        adapter.register(bytearray())
    assert empty.value.status is ndx.Status.INVALID_BUFFER_SIZE
    with pytest.raises(TypeError):
        adapter.register(7)
    with pytest.raises(TypeError):
        ndx.MemoryRegion("adapter", bytearray(1))  # type: ignore[type-var]


def test_numpy_arrays_are_memory(adapter: ndx.Adapter) -> None:
    numpy = pytest.importorskip("numpy")
    memory = numpy.zeros((16, 16), dtype="u4")
    with adapter.register(memory) as region:
        assert len(region) == 1024
        numpy.frombuffer(region.memory, dtype="u4")[3] = 5
        assert memory[0, 3] == 5
        with pytest.raises(ValueError):
            memory.resize((8, 8), refcheck=True)


def test_objects_leave_no_memory_behind() -> None:
    with ndx.Adapter("loop") as adapter:

        def step() -> None:
            cq = ndx.CompletionQueue(adapter)
            region = adapter.register(bytearray(4096))
            qp = ndx.QueuePair(adapter, cq)
            qp.receive(region, context=object())
            ndx.Connector(adapter)
            adapter.query()
            with pytest.raises(ndx.ConnectionFailedError):
                qp.send(region)

        grows_no_more(step, 1000, 50_000)
