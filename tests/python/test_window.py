# SPDX-License-Identifier: BSD-2-Clause
"""Memory windows: bind, use by the peer, invalidate."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest
from conftest import PATIENCE, grows_no_more
from pairs import Connection, End

import ndx


class Memory(bytearray):
    """Memory that can be watched."""


def one(end: End) -> ndx.Result:
    """The next result of an end."""
    (result,) = end.cq.wait(PATIENCE, 1)
    return result


@pytest.fixture(name="able")
def _able(adapter: ndx.Adapter) -> ndx.Adapter:
    """An adapter with windows; one without says so."""
    if not adapter.query().capabilities & ndx.Capability.MEMORY_WINDOW:
        with pytest.raises(ndx.NotSupportedError):
            ndx.MemoryWindow(adapter)
        pytest.skip("the adapter has no memory windows")
    return adapter


def test_a_peer_uses_a_window_while_it_is_bound(able: ndx.Adapter) -> None:
    with Connection(able) as (active, passive), ndx.MemoryWindow(able) as window:
        passive.memory[:] = bytes(range(256)) * 16
        window.bind(passive.qp, passive.region, 100, 50, context="bound")
        result = one(passive)
        assert result.type is ndx.RequestType.BIND and result.status is ndx.Status.OK
        assert result.context == "bound" and window.remote_token != passive.region.remote_token
        where = passive.region.address
        token = window.remote_token
        active.qp.read(active.region, 0, 50, remote_address=where + 100, remote_token=token)
        assert one(active).status is ndx.Status.OK
        assert active.memory[:50] == passive.memory[100:150]
        with pytest.raises(ndx.BusyError):
            window.bind(passive.qp, passive.region)
        window.invalidate(passive.qp, context="over")
        result = one(passive)
        assert result.type is ndx.RequestType.INVALIDATE and result.status is ndx.Status.OK
        assert result.context == "over"
        window.bind(
            passive.qp, passive.region, 0, 8, access=ndx.Access.REMOTE_WRITE, silent=True
        )
        active.memory[:4] = b"here"
        active.qp.write(
            active.region, 0, 4, remote_address=where, remote_token=window.remote_token
        )
        assert one(active).status is ndx.Status.OK and passive.memory[:4] == b"here"
        window.invalidate(passive.qp)
        assert one(passive).status is ndx.Status.OK
        # The token is void now: the use of it ends the connection.
        active.qp.read(active.region, 0, 4, remote_address=where, remote_token=token)
        assert one(active).status is not ndx.Status.OK


def test_a_window_keeps_its_region_and_close_ends_the_binding(able: ndx.Adapter) -> None:
    with Connection(able) as (active, passive):
        window = ndx.MemoryWindow(able)
        memory = Memory(64)
        region = able.register(memory, ndx.Access.REMOTE_READ)
        seen, where = weakref.ref(memory), region.address
        window.bind(passive.qp, region)
        assert one(passive).status is ndx.Status.OK
        token = window.remote_token
        del memory, region
        gc.collect()
        assert seen() is not None
        active.qp.read(active.region, 0, 64, remote_address=where, remote_token=token)
        assert one(active).status is ndx.Status.OK
        window.close()
        gc.collect()
        assert seen() is None
        with pytest.raises(ndx.ClosedError):
            window.remote_token
        active.qp.read(active.region, 0, 64, remote_address=where, remote_token=token)
        assert one(active).status is not ndx.Status.OK


def test_arguments_are_checked(able: ndx.Adapter) -> None:
    with Connection(able) as (_, passive), ndx.MemoryWindow(able) as window:
        lowest = -sys.maxsize - 1
        wrong = [(-1, 5), (0, 4097), (4096, 1), (5, -1), (4097, None), (lowest, None), (lowest, 1)]
        for offset, length in (*wrong, (0, lowest), (sys.maxsize, sys.maxsize)):
            with pytest.raises(ValueError):
                window.bind(passive.qp, passive.region, offset, length)
        with pytest.raises(TypeError):
            window.bind(passive.region, passive.region)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            window.bind(passive.qp, b"bytes")  # type: ignore[arg-type]
        with pytest.raises(ValueError):
            window.bind(passive.qp, passive.region, access=-1)  # type: ignore[arg-type]
        local = able.register(bytearray(8), ndx.Access.LOCAL_READ)
        with pytest.raises(ndx.Error) as caught:
            window.bind(passive.qp, local, access=ndx.Access.REMOTE_WRITE)
        assert caught.value.status is ndx.Status.ACCESS_VIOLATION
        window.invalidate(passive.qp)
        assert one(passive).status is ndx.Status.INVALID_DEVICE_REQUEST
        passive.region.close()
        with pytest.raises(ndx.ClosedError):
            window.bind(passive.qp, passive.region)


def test_windows_leave_no_memory_behind(able: ndx.Adapter) -> None:
    with Connection(able) as (_, passive):

        def step() -> None:
            window = ndx.MemoryWindow(able)
            window.bind(passive.qp, passive.region)
            assert one(passive).status is ndx.Status.OK

        grows_no_more(step, 200, 100_000)
