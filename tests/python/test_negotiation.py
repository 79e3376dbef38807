# SPDX-License-Identifier: BSD-2-Clause
"""Negotiation: plugins, sessions, servers; plugins written in Python in this very process."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import PATIENCE, grows_no_more
from pairs import End, unconnected

import ndx
from ndx import aio

ROOT = Path(__file__).resolve().parents[2]


def where(server: ndx.Server) -> str:
    """HOST:PORT of a server."""
    return f"{server.address[0]}:{server.address[1]}"


class Echo:
    """A server whose sessions get a queue pair each, which has one receive posted."""

    def __init__(self, adapter: ndx.Adapter, variant: ndx.Variant) -> None:
        self.adapter = adapter
        self.ends: list[End] = []
        self.told: list[tuple[int, str]] = []
        self.over = threading.Event()
        self.server = ndx.Server(
            "127.0.0.1:0",
            variant,
            on_open=self.open,
            on_staged=lambda s, stage: self.told.append((s.id, stage.name)),
            on_closed=self.closed,
        )

    def open(self, session: ndx.Session) -> tuple[object, ...]:
        end = unconnected(self.adapter)
        end.qp.receive(end.region)
        self.ends.append(end)
        self.told.append((session.id, "OPEN"))
        return end.connector, end.qp, end.region

    def closed(self, session: ndx.Session) -> None:
        self.told.append((session.id, "CLOSED"))
        self.over.set()


@pytest.fixture
def negotiation() -> ndx.Negotiation:
    return ndx.Negotiation()


def test_plugins_and_their_parameters(negotiation: ndx.Negotiation) -> None:
    variant = negotiation.variant("example/three-round", settings={"slots": 32})
    assert (variant.plugin, variant.name) == ("example", "three-round")
    assert variant.setting("slots") == "32" and variant.setting("nothing") is None
    (entry,) = negotiation.plugins()
    slots = next(p for p in entry.parameters if p.name == "slots")
    assert slots.type is int and slots.least <= 32 <= slots.most and not slots.required
    assert entry.available and not entry.failed
    with pytest.raises(ndx.NotFoundError, match="three-round"):
        negotiation.variant("example", "three-rounds")
    with pytest.raises(ndx.Error, match="slots") as wrong:
        negotiation.variant("example/three-round", settings={"slots": "many"})
    assert wrong.value.status is ndx.Status.INVALID_CONFIG
    with pytest.raises(ndx.BusyError):
        negotiation.close()
    variant.close()
    negotiation.close()
    negotiation.close()
    with pytest.raises(ndx.ClosedError):
        negotiation.plugins()


def test_a_session_connects_queue_pairs(
    negotiation: ndx.Negotiation, adapter: ndx.Adapter
) -> None:
    variant = negotiation.variant("example/three-round")
    echo = Echo(adapter, variant)
    end = unconnected(adapter)
    with ndx.Session(
        variant, where(echo.server), connector=end.connector, qp=end.qp, memory=end.region
    ) as session:
        assert session.state is ndx.SessionState.CREATED
        with pytest.raises(ndx.StateError):
            session.agreement()
        session.run()
        assert session.state is ndx.SessionState.CONNECTED and session.server == where(echo.server)
        agreed = session.agreement()
        peer = agreed["peer"]
        assert peer["memory.address"] == echo.ends[0].region.address
        assert agreed["own"]["memory.length"] == 4096
        end.memory[:4] = b"data"
        end.qp.write(
            end.region,
            0,
            4,
            remote_address=peer["memory.address"] + 100,
            remote_token=peer["memory.token"],
        )
        end.qp.send(end.region, 0, 4)
        done: list[ndx.Result] = []
        while len(done) < 2:
            taken = end.cq.wait(PATIENCE)
            assert taken and all(r.status is ndx.Status.OK for r in taken)
            done += taken
        assert echo.ends[0].cq.wait(PATIENCE)[0].bytes == 4
        assert echo.ends[0].memory[100:104] == b"data"
        session.execute(ndx.Stage.DONE)
        assert session.failure.status is ndx.Status.OK
        history = session.history
        assert any(e.kind is ndx.HistoryKind.SENT and e.bytes > 0 for e in history)
        assert str(history[0]) and json.loads(session.snapshot())
        end.connector.disconnect(timeout=PATIENCE)
    assert echo.over.wait(PATIENCE)
    number = echo.told[0][0]
    assert echo.told == [
        (number, what) for what in ("OPEN", "INFO", "VALIDATE", "READY", "DONE", "CLOSED")
    ]
    assert echo.server.stats()["completed"] == 1 and json.loads(echo.server.snapshot())
    echo.server.close()


def test_sessions_are_awaited(negotiation: ndx.Negotiation) -> None:
    variant = negotiation.variant("example/three-round")

    async def one(server: ndx.Server) -> None:
        async with aio.Session(variant, where(server)) as session:
            await session.run()
            await session.execute(ndx.Stage.DONE)
            assert session.agreement()["kind"] == 0

    async def main() -> None:
        with ndx.Server("127.0.0.1:0", variant) as server:
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*(one(server) for _ in range(20)))
            assert server.stats()["completed"] == 20

    asyncio.run(main())


def test_a_failure_has_layer_and_stage(negotiation: ndx.Negotiation) -> None:
    variant = negotiation.variant("example/three-round")
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = "127.0.0.1:%d" % nobody.getsockname()[1]
    session = ndx.Session(variant, [address], attempts=1, backoff_ms=1)
    with pytest.raises(ndx.SessionError) as caught:
        session.run()
    assert isinstance(caught.value, ndx.RefusedError)
    assert caught.value.failure.layer is ndx.ErrorLayer.TRANSPORT and address in caught.value.text
    assert session.state is ndx.SessionState.FAILED
    session.close()
    for wrong in ("no-port", ""):
        with pytest.raises(ndx.Error):
            ndx.Session(variant, wrong)
    with pytest.raises(ndx.InvalidParameterError):
        ndx.Session(variant, [])


def test_an_exception_in_open_refuses(
    negotiation: ndx.Negotiation, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: seen.append(u.exc_type))
    variant = negotiation.variant("example/three-round")
    closed: list[object] = []

    def refuse(session: ndx.Session) -> None:
        raise PermissionError("not you")

    with ndx.Server("127.0.0.1:0", variant, on_open=refuse, on_closed=closed.append) as server:
        with ndx.Session(variant, where(server), attempts=1) as session:
            with pytest.raises(ndx.SessionError) as caught:
                session.run()
            assert caught.value.failure.remote
    assert seen == [PermissionError] and closed == []


def test_a_session_of_a_server_is_only_lent(negotiation: ndx.Negotiation) -> None:
    variant = negotiation.variant("example/three-round")
    lent: list[ndx.Session] = []
    with ndx.Server("127.0.0.1:0", variant, on_open=lent.append) as server:
        with ndx.Session(variant, where(server)) as session:
            session.run()
            with pytest.raises(ndx.StateError, match="server"):
                lent[0].cancel()
            for close in (lent[0].close, lambda: ndx._ndx.Object.close(lent[0])):
                with pytest.raises(ndx.StateError, match="server"):
                    close()
            assert lent[0].state is not None
    with pytest.raises(ndx.ClosedError):
        _ = lent[0].state


def test_ctrl_c_and_other_threads_cancel(negotiation: ndx.Negotiation) -> None:
    variant = negotiation.variant("example/three-round")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = "127.0.0.1:%d" % silent.getsockname()[1]
        session = ndx.Session(variant, address)
        begun = time.monotonic()
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            session.run()
        timer.join()
        session.close()
        session = ndx.Session(variant, address)
        threading.Timer(0.1, session.cancel).start()
        with pytest.raises(ndx.CanceledError):
            session.run()
        session.close()
        assert time.monotonic() - begun < PATIENCE / 2


def test_a_plugin_in_python_runs_in_this_process(
    negotiation: ndx.Negotiation, tmp_path: Path
) -> None:
    samples = sorted((ROOT / "plugins" / "python" / "samples").glob("ndx-plugin-*.py"))
    host = Path(os.environ["NDX_PLUGIN_PATH"]) / "ndx-host-py.so"
    if not samples or not host.exists():
        pytest.skip("the host of Python plugins was not built")
    if os.environ.get("LD_PRELOAD"):
        pytest.skip("not under a sanitizer")
    os.chmod(tmp_path, 0o700)
    path = tmp_path / samples[0].name
    shutil.copy(samples[0], path)
    os.chmod(path, 0o600)
    negotiation.load(path)
    entry = next(e for e in negotiation.plugins() if e.variant)
    variant = negotiation.variant(f"{entry.plugin}/{entry.variant}")
    with ndx.Server("127.0.0.1:0", variant) as server:
        with ndx.Session(variant, where(server)) as session:
            session.run()
            assert any(e.kind is ndx.HistoryKind.CALL for e in session.history)


def test_sessions_leave_no_memory_behind(negotiation: ndx.Negotiation) -> None:
    variant = negotiation.variant("example/three-round")
    with ndx.Server("127.0.0.1:0", variant, on_open=lambda s: None) as server:

        def step() -> None:
            with ndx.Session(variant, where(server)) as session:
                session.run()
                session.execute(ndx.Stage.DONE)

        grows_no_more(step, 50, 100_000)
