# SPDX-License-Identifier: BSD-2-Clause
"""Several queue pairs in one session; the limits and grants of servers."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import PATIENCE, grows_no_more
from pairs import End, unconnected

import ndx
from ndx import aio

VARIANT = "example/three-round"


def ends(adapter: ndx.Adapter, count: int) -> list[End]:
    return [unconnected(adapter) for _ in range(count)]


def as_list(several: list[End]) -> list[ndx.Ends]:
    return [(e.connector, e.qp, e.region) for e in several]


class Many:
    """A server of sessions with several queue pairs, each with one receive posted."""

    def __init__(self, adapter: ndx.Adapter, variant: ndx.Variant, **limits: int) -> None:
        self.adapter = adapter
        self.ends: dict[int, End] = {}
        self.told: list[tuple[object, ...]] = []
        self.refuse: Exception | None = None
        self.over = threading.Event()
        self.server = ndx.Server(
            "127.0.0.1:0",
            variant,
            on_open_many=lambda s, count: self.add(s, 0, count),
            on_add_many=lambda s, first, count: self.add(s, first, count),
            on_added=lambda s, first, count, status: self.told.append((first, count, status)),
            on_removed=self.removed,
            on_closed=lambda s: self.over.set(),
            **limits,  # type: ignore[arg-type]
        )
        self.where = f"{self.server.address[0]}:{self.server.address[1]}"

    def add(self, session: ndx.SessionView, first: int, count: int) -> list[ndx.Ends]:
        if self.refuse is not None:
            raise self.refuse
        several = ends(self.adapter, count)
        for i, end in enumerate(several):
            end.qp.receive(end.region)
            self.ends[first + i] = end
        return as_list(several)

    def wait_told(self, what: tuple[object, ...]) -> None:
        """The server's functions run beside the client."""
        deadline = time.monotonic() + PATIENCE
        while what not in self.told:
            assert time.monotonic() < deadline, self.told
            threading.Event().wait(0.01)

    def removed(self, session: ndx.SessionView, index: int) -> None:
        end = self.ends.pop(index)
        end.connector.close()
        end.qp.close()
        self.told.append(("removed", index))


@pytest.fixture(name="variant")
def _variant() -> ndx.Variant:
    return ndx.Negotiation().variant(VARIANT)


def exchange(session: ndx.SessionView, index: int, mine: End, theirs: End) -> None:
    """A write and a send over that queue pair."""
    peer = session.agreement(index)["peer"]
    assert peer["memory.address"] == theirs.region.address
    mine.memory[:4] = bytes([index]) * 4
    mine.qp.write(
        mine.region,
        0,
        4,
        remote_address=peer["memory.address"] + 100,
        remote_token=peer["memory.token"],
    )
    mine.qp.send(mine.region, 0, 4)
    done: list[ndx.Result] = []
    while len(done) < 2:
        taken = mine.cq.wait(PATIENCE)
        assert taken and all(r.status is ndx.Status.OK for r in taken)
        done += taken
    assert theirs.cq.wait(PATIENCE)[0].bytes == 4
    assert theirs.memory[100:104] == bytes([index]) * 4


def test_a_session_of_several_grows_and_shrinks(
    adapter: ndx.Adapter, variant: ndx.Variant
) -> None:
    many = Many(adapter, variant)
    mine = ends(adapter, 3)
    with many.server, ndx.Session(variant, many.where, queue_pairs=as_list(mine)) as session:
        with pytest.raises(ndx.StateError):
            session.add_queue_pairs(as_list(ends(adapter, 1)))
        session.run()
        assert session.queue_pair_count == 3
        for i, end in enumerate(mine):
            exchange(session, i, end, many.ends[i])
        more = ends(adapter, 2)
        assert session.add_queue_pairs(as_list(more)) == 3
        assert session.queue_pair_count == 5 and session.add_failure.status is ndx.Status.OK
        many.wait_told((3, 2, ndx.Status.OK))
        for i, end in enumerate(more):
            exchange(session, 3 + i, end, many.ends[3 + i])
        # The session holds what it connects: a close takes effect with the remove.
        mine[1].connector.disconnect(timeout=PATIENCE)
        mine[1].qp.close()
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                session.remove_queue_pairs(1)
                break
            except ndx.StateError:
                assert time.monotonic() < deadline
        assert session.queue_pair_count == 4
        with pytest.raises(ndx.InvalidParameterError):
            session.remove_queue_pairs(1)
        with pytest.raises(ndx.InvalidParameterError):
            session.agreement(1)
        many.wait_told(("removed", 1))
        session.execute(ndx.Stage.DONE)
        for end in [mine[0], mine[2], *more]:
            end.connector.disconnect(timeout=PATIENCE)
    assert many.over.wait(PATIENCE)


def test_a_refused_addition_leaves_the_session(
    adapter: ndx.Adapter, variant: ndx.Variant, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: seen.append(u.exc_type))
    many = Many(adapter, variant)
    mine = ends(adapter, 2)
    with many.server, ndx.Session(variant, many.where, queue_pairs=as_list(mine)) as session:
        session.run()
        many.refuse = PermissionError("no more")
        late = ends(adapter, 1)
        with pytest.raises(ndx.SessionError) as caught:
            session.add_queue_pairs(as_list(late))
        assert caught.value.failure == session.add_failure and caught.value.failure.remote
        assert session.failure.status is ndx.Status.OK and session.queue_pair_count == 2
        assert seen == [PermissionError]
        late[0].qp.close()  # the session does not hold them any more
        late[0].connector.close()
        late[0].cq.close()
        many.refuse = None
        for wrong in ([], [(mine[0].connector,)], [mine[0].qp], [(1, 2)]):
            with pytest.raises((ValueError, TypeError)):
                session.add_queue_pairs(wrong)  # type: ignore[arg-type]
        # A list of another length than was asked for.
        many.add = lambda *unused: []  # type: ignore[assignment]
        with pytest.raises(ndx.SessionError):
            session.add_queue_pairs(as_list(ends(adapter, 1)))
        assert seen == [PermissionError, ValueError]
        exchange(session, 0, mine[0], many.ends[0])


def test_a_wrong_number_of_queue_pairs_refuses_the_client(
    variant: ndx.Variant, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: seen.append(u.exc_type))
    with ndx.Adapter("loop") as adapter:
        for answer in ([], [(None, None)], "ab"):
            with ndx.Server(
                "127.0.0.1:0",
                variant,
                on_open_many=lambda s, n, a=answer: a,  # type: ignore[misc]
            ) as server:
                where = f"{server.address[0]}:{server.address[1]}"
                pairs = as_list(ends(adapter, 2))
                with ndx.Session(variant, where, queue_pairs=pairs, attempts=1) as session:
                    with pytest.raises(ndx.SessionError):
                        session.run()
    assert seen == [ValueError, ValueError, TypeError]


def test_servers_that_take_one_refuse_several(variant: ndx.Variant) -> None:
    with ndx.Adapter("loop") as adapter, ndx.Server("127.0.0.1:0", variant) as server:
        where = f"{server.address[0]}:{server.address[1]}"
        mine = ends(adapter, 2)
        with ndx.Session(variant, where, queue_pairs=as_list(mine), attempts=1) as session:
            with pytest.raises(ndx.SessionError):
                session.run()
        with pytest.raises(ValueError, match="1024"):
            ndx.Session(variant, where, queue_pairs=as_list(mine[:1]) * 1025)
        with pytest.raises(ndx.InvalidParameterError):
            ndx.Session(variant, where, qp=mine[0].qp, connector=mine[0].connector,
                        queue_pairs=as_list(mine[1:]))  # fmt: skip
        many = Many(adapter, variant, max_queue_pairs=1)
        with many.server, ndx.Session(
            variant, many.where, queue_pairs=as_list(ends(adapter, 2)), attempts=1
        ) as session:
            with pytest.raises(ndx.SessionError):
                session.run()


def test_additions_are_awaited_and_cancelled(variant: ndx.Variant) -> None:
    async def main() -> None:
        with ndx.Adapter("loop") as adapter:
            many = Many(adapter, variant)
            held = threading.Event()
            mine = ends(adapter, 2)
            with many.server:
                async with aio.Session(
                    variant, many.where, queue_pairs=as_list(mine)
                ) as session:
                    await session.run()
                    assert await session.add_queue_pairs(as_list(ends(adapter, 1))) == 2
                    add = many.add

                    def slow(s: ndx.SessionView, first: int, n: int) -> list[ndx.Ends]:
                        held.wait(PATIENCE)
                        return add(s, first, n)

                    many.add = slow  # type: ignore[assignment]
                    late = ends(adapter, 1)
                    task = asyncio.ensure_future(session.add_queue_pairs(as_list(late)))
                    await asyncio.sleep(0.1)
                    task.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await task
                    held.set()
                    assert session.queue_pair_count == 3
                    await asyncio.to_thread(mine[0].connector.disconnect)
                    async with asyncio.timeout(PATIENCE):
                        while True:
                            try:
                                await session.remove_queue_pairs(0)
                                break
                            except ndx.StateError:
                                await asyncio.sleep(0.01)
                    assert session.queue_pair_count == 2

    asyncio.run(main())


def test_queue_pairs_leave_no_memory_behind(variant: ndx.Variant) -> None:
    with ndx.Adapter("loop") as adapter:
        many = Many(adapter, variant)
        mine = ends(adapter, 2)
        with many.server, ndx.Session(variant, many.where, queue_pairs=as_list(mine)) as session:
            session.run()

            def step() -> None:
                end = unconnected(adapter)
                index = session.add_queue_pairs(as_list([end]))
                end.connector.disconnect(timeout=PATIENCE)
                session.remove_queue_pairs(index)
                for each in (end.connector, end.qp, end.cq, end.region):
                    each.close()
                many.wait_told(("removed", index))
                many.told.clear()

            # 65536 indices are enough for 10 times 100.
            grows_no_more(step, 100, 200_000)
            gc.collect()
            assert session.queue_pair_count == 2


def test_limits_of_a_server(tmp_path: Path, variant: ndx.Variant) -> None:
    keys = tmp_path / "keys"
    keys.touch(0o600)
    keys.write_text("ann:%s\nbob:%s\n" % ("11" * 32, "22" * 32))
    tls: dict[str, ndx.Tls] = {}
    for name, key in (("ann", "11" * 32), ("bob", "22" * 32)):
        file = tmp_path / name
        file.touch(0o600)
        file.write_text(f"{name}:{key}\n")
        tls[name] = ndx.Tls(psk_file=file)
    options = {"tls": ndx.Tls(psk_file=keys), "grants": [ndx.Grant("example", psk_identity="ann")]}
    with ndx.Server("127.0.0.1:0", variant, max_sessions_per_principal=1, **options) as server:  # type: ignore[arg-type]
        where = f"{server.address[0]}:{server.address[1]}"
        with ndx.Session(variant, where, tls=tls["bob"], attempts=1) as session:
            with pytest.raises(ndx.SessionError):
                session.run()
        assert server.stats()["refused_variants"] == 1
        with ndx.Session(variant, where, tls=tls["ann"], attempts=1) as session:
            session.run()
            with ndx.Session(variant, where, tls=tls["ann"], attempts=1) as second:
                with pytest.raises(ndx.SessionError):
                    second.run()
            stats = server.stats()
        assert stats["refused_principals"] == 1 and stats["completed"] == 1
        assert stats["refused"] >= 2
    with pytest.raises(ndx.InvalidParameterError):  # grants need tls
        ndx.Server("127.0.0.1:0", variant, grants=[ndx.Grant("example", name="x")])
    with pytest.raises(TypeError):
        ndx.Server("127.0.0.1:0", variant, grants=["example"])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        ndx.Server("127.0.0.1:0", variant, max_handshake=1)  # type: ignore[call-arg]


def test_rates_of_handshakes(variant: ndx.Variant) -> None:
    rates = {"max_handshakes_per_address": 1, "max_handshakes": ndx.NO_LIMIT}
    with ndx.Server("127.0.0.1:0", variant, **rates) as server:  # type: ignore[arg-type]
        where = f"{server.address[0]}:{server.address[1]}"
        taken = refused = 0
        deadline = time.monotonic() + PATIENCE
        while refused == 0:  # ten at once are taken, and one more each second
            assert time.monotonic() < deadline
            with ndx.Session(variant, where, attempts=1, connect_timeout_ms=30_000) as session:
                try:
                    session.run()
                    taken += 1
                except ndx.SessionError:
                    refused += 1
        assert taken >= 10 and server.stats()["refused_handshakes"] >= 1


def test_read_limits_of_a_server(variant: ndx.Variant) -> None:
    with ndx.Adapter("loop") as adapter:
        kept = ends(adapter, 2)

        def on_open(session: ndx.SessionView) -> ndx.Ends:
            return kept[0].connector, kept[0].qp

        with ndx.Server(
            "127.0.0.1:0",
            variant,
            on_open=on_open,
            inbound_read_limit=3,
            outbound_read_limit=2,
        ) as server:
            where = f"{server.address[0]}:{server.address[1]}"
            with ndx.Session(
                variant, where, connector=kept[1].connector, qp=kept[1].qp
            ) as session:
                session.run()
                agreed = session.agreement()
                assert (agreed["client_reads"], agreed["server_reads"]) == (3, 2)
