# SPDX-License-Identifier: BSD-2-Clause
"""Queue pairs, completion queues, connectors, listeners; calls that block."""

from __future__ import annotations

import gc
import select
import sys
import threading
import time
import weakref

import pytest
from conftest import PATIENCE, grows_no_more, local_address
from pairs import Connection, unconnected

import ndx


def test_a_message_arrives(adapter: ndx.Adapter) -> None:
    with Connection(adapter) as (one, two):
        two.qp.receive(two.region, 16, 100, context="taken")
        one.memory[:5] = b"hello"
        one.qp.send(one.region, 0, 5, context=("sent", 1))
        (sent,) = one.cq.wait(PATIENCE)
        assert sent.status is ndx.Status.OK and sent.context == ("sent", 1)
        assert sent.type is ndx.RequestType.SEND and sent.queue_pair is None
        (taken,) = two.cq.wait(PATIENCE)
        assert taken.context == "taken" and taken.bytes == 5 and taken.immediate is None
        assert taken.type is ndx.RequestType.RECEIVE
        assert two.memory[16:21] == b"hello"
        assert two.cq.results() == [] and two.cq.wait(0) == []


def test_parts_are_gathered_and_scattered(adapter: ndx.Adapter) -> None:
    with Connection(adapter, max_initiator_sge=2, max_receive_sge=2) as (one, two):
        one.memory[:8] = b"abcdefgh"
        two.qp.receive([(two.region, 100, 3), (two.region, 0, 5)])
        one.qp.send([(one.region, 4, 4), (one.region, 0, 4)])
        assert one.cq.wait(PATIENCE)[0].status is ndx.Status.OK
        assert two.cq.wait(PATIENCE)[0].bytes == 8
        assert two.memory[100:103] == b"efg" and two.memory[:5] == b"habcd"


def test_inline_data_are_copied(adapter: ndx.Adapter) -> None:
    if adapter.query().max_inline_data_size < 8:
        pytest.skip("the adapter has no inline data")
    with Connection(adapter, inline_size=8) as (one, two):
        two.qp.receive(two.region)
        one.qp.send(b"inlined", inline=True)
        assert one.cq.wait(PATIENCE)[0].status is ndx.Status.OK
        assert two.cq.wait(PATIENCE)[0].bytes == 7 and two.memory[:7] == b"inlined"


def test_immediate_data_come_with_the_message(adapter: ndx.Adapter) -> None:
    with Connection(adapter) as (one, two):
        two.qp.receive(two.region)
        if ndx.Capability.SEND_IMMEDIATE not in adapter.query().capabilities:
            with pytest.raises(ndx.NotSupportedError):
                one.qp.send(one.region, 0, 1, immediate=7)
            return
        one.qp.send(one.region, 0, 1, immediate=0xFFFFFFFF, silent=True)
        assert two.cq.wait(PATIENCE)[0].immediate == 0xFFFFFFFF
        assert one.cq.results() == []
        with pytest.raises(ValueError, match="immediate"):
            one.qp.send(one.region, immediate=1 << 32)


def test_memory_of_the_peer_is_read_and_written(adapter: ndx.Adapter) -> None:
    with Connection(adapter) as (one, two):
        one.memory[:4] = b"here"
        two.memory[1000:1005] = b"there"
        remote = {
            "remote_address": two.region.address + 1000,
            "remote_token": two.region.remote_token,
        }
        one.qp.read(one.region, 100, 5, **remote)
        assert one.cq.wait(PATIENCE)[0].type is ndx.RequestType.READ
        assert one.memory[100:105] == b"there"
        one.qp.write(one.region, 0, 4, **remote)
        assert one.cq.wait(PATIENCE)[0].status is ndx.Status.OK
        assert two.memory[1000:1004] == b"here"


def test_both_ends_know_each_other(adapter: ndx.Adapter) -> None:
    with Connection(adapter) as (one, two):
        assert one.connector.private_data == b"hi" and two.connector.private_data == b"ho"
        assert one.connector.peer_address == two.connector.local_address
        assert one.connector.qp is one.qp
        assert len(one.connector.read_limits) == 2
        state = one.qp.query()
        assert state["state"] is ndx.QueuePairState.CONNECTED
        assert state["receive_depth"] >= 64 and state["failure"] is ndx.Status.OK
        assert one.connector.disconnect_reason is ndx.DisconnectReason.NONE


def test_the_peer_learns_of_a_disconnect(adapter: ndx.Adapter) -> None:
    with Connection(adapter) as (one, two):
        two.qp.receive(two.region, context="posted")
        with pytest.raises(ndx.TimedOutError):
            two.connector.wait_disconnected(0.01)
        one.connector.disconnect(timeout=PATIENCE)
        assert two.connector.wait_disconnected(PATIENCE) is ndx.DisconnectReason.GRACEFUL
        two.connector.disconnect(timeout=PATIENCE)
        (flushed,) = two.cq.wait(PATIENCE)
        assert flushed.status is ndx.Status.CANCELED and flushed.context == "posted"
        with pytest.raises(ndx.Error):
            one.connector.connect(one.qp, ("127.0.0.1", 1), timeout=1)


def test_a_flush_aborts(adapter: ndx.Adapter) -> None:
    with Connection(adapter) as (one, two):
        one.qp.flush()
        assert two.connector.wait_disconnected(PATIENCE) is not ndx.DisconnectReason.GRACEFUL
        with pytest.raises(ndx.AbortedError):
            one.connector.disconnect(timeout=PATIENCE)


def test_a_connect_is_refused_and_the_queue_pair_lives_on(adapter: ndx.Adapter) -> None:
    end = unconnected(adapter)
    with ndx.Listener(adapter, local_address(adapter)) as listener:
        address = listener.address

        def refuse() -> None:
            listener.request(PATIENCE).reject(b"busy")

        thread = threading.Thread(target=refuse)
        thread.start()
        with pytest.raises(ndx.RefusedError) as refused:
            end.connector.connect(end.qp, address, timeout=PATIENCE)
        assert refused.value.status is ndx.Status.CONNECTION_REFUSED
        assert "connect" in refused.value.text
        thread.join(PATIENCE)
        assert end.connector.private_data == b"busy"
    with pytest.raises(ConnectionError):
        end.connector.connect(end.qp, f"{address[0]}:{address[1]}", timeout=PATIENCE)
    assert end.qp.query()["state"] is ndx.QueuePairState.UNCONNECTED


def test_waits_end_with_their_time(adapter: ndx.Adapter) -> None:
    end = unconnected(adapter)
    with ndx.Listener(adapter, local_address(adapter)) as listener:
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            end.connector.connect(end.qp, listener.address, timeout=0.2)
        assert 0.15 < time.monotonic() - begun < 5
    with ndx.Listener(adapter, local_address(adapter)) as listener:
        with pytest.raises(ndx.TimedOutError, match="request"):
            listener.request(0.05)
    assert end.cq.wait(0.05) == []
    for wrong in (-1, float("nan"), "soon"):
        with pytest.raises((ValueError, TypeError)):
            end.cq.wait(wrong)  # type: ignore[arg-type]


def test_a_full_queue_says_so(adapter: ndx.Adapter) -> None:
    end = unconnected(adapter, receive_depth=4)
    with pytest.raises(ndx.QueueFullError):
        for _ in range(100_000):
            end.qp.receive(end.region)
    end.qp.flush()
    assert all(r.status is ndx.Status.CANCELED for r in end.cq.results())


def test_arguments_that_do_not_fit(adapter: ndx.Adapter) -> None:
    end = unconnected(adapter)
    lowest = -sys.maxsize - 1
    wrong = [(0, 4097), (4096, 1), (-1, 1), (0, -1), (4097, None), (lowest, None), (lowest, 1)]
    wrong += [(0, lowest), (sys.maxsize, sys.maxsize), (0, 2**64)]
    for offset, length in wrong:
        with pytest.raises(ValueError):
            end.qp.receive(end.region, offset, length)
        with pytest.raises(ValueError):
            end.qp.send(end.memory, offset, length, inline=True)
    with pytest.raises(TypeError):
        end.qp.receive([7])
    with pytest.raises(TypeError):
        end.qp.receive(b"no region")
    with pytest.raises(ValueError):
        end.qp.receive([(end.region, 0, 1)] * 100)
    with pytest.raises(ndx.Error):
        end.qp.send(end.region)
    for address in ("1.2.3.4", "1.2.3.4:", "1.2.3.4:99999", ("1.2.3.4", -1), ("name", 1), "[:1"):
        with pytest.raises(ValueError):
            ndx.Listener(adapter, address)
    with pytest.raises(TypeError):
        ndx.Listener(adapter, 7)  # type: ignore[arg-type]
    end.region.close()
    with pytest.raises(ndx.ClosedError):
        end.qp.receive(end.region)


def test_the_descriptor_tells_of_results(adapter: ndx.Adapter) -> None:
    with Connection(adapter) as (one, two):
        two.qp.receive(two.region)
        two.cq.arm()
        assert two.cq.results() == []
        one.qp.send(one.region, 0, 1)
        assert select.select([two.cq.fileno()], [], [], PATIENCE)[0]
        while not two.cq.results():
            pass


def test_a_request_keeps_what_it_needs(adapter: ndx.Adapter) -> None:
    class Context:
        pass

    context = Context()
    watched = weakref.ref(context)
    cq = ndx.CompletionQueue(adapter)
    qp = ndx.QueuePair(adapter, cq, context="mine")
    memory = bytearray(64)
    region = adapter.register(memory)
    qp.receive(region, context=context)
    del context, region
    gc.collect()
    assert watched() is not None
    with pytest.raises(BufferError):
        memory.append(1)
    qp.close()
    (result,) = cq.results()
    assert result.context is watched() and result.queue_pair == "mine"
    del result
    memory.append(1)
    assert watched() is None


def test_the_collector_ends_circles() -> None:
    class Owner:
        """Its posted receive has its owner as context."""

    with ndx.Adapter("loop") as adapter:
        owner = Owner()
        owner.cq = ndx.CompletionQueue(adapter)  # type: ignore[attr-defined]
        owner.qp = ndx.QueuePair(adapter, owner.cq, context=owner)  # type: ignore[attr-defined]
        owner.qp.receive(adapter.register(bytearray(8)), context=owner)  # type: ignore[attr-defined]
        watched = weakref.ref(owner)
        del owner
        gc.collect()
        assert watched() is None


def test_close_in_another_thread_ends_a_wait(adapter: ndx.Adapter) -> None:
    cq = ndx.CompletionQueue(adapter)
    outcome: list[object] = []

    def wait() -> None:
        outcome.append(cq.wait(PATIENCE))

    thread = threading.Thread(target=wait)
    thread.start()
    cq.close()
    thread.join(PATIENCE)
    assert not thread.is_alive() and outcome in ([[]], [])


def test_many_threads_use_their_connections() -> None:
    with ndx.Adapter("loop") as adapter:
        failures: list[BaseException] = []

        def traffic() -> None:
            try:
                with Connection(adapter) as (one, two):
                    for i in range(200):
                        two.qp.receive(two.region, context=i)
                        one.memory[0] = i
                        one.qp.send(one.region, 0, 1)
                        assert one.cq.wait(PATIENCE)[0].status is ndx.Status.OK
                        assert two.cq.wait(PATIENCE)[0].context == i
                        assert two.memory[0] == i
                    one.connector.disconnect(timeout=PATIENCE)
            except BaseException as error:  # noqa: BLE001 - shown by the test
                failures.append(error)

        threads = [threading.Thread(target=traffic) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * PATIENCE)
        assert not failures


def test_traffic_leaves_no_memory_behind() -> None:
    with ndx.Adapter("loop") as adapter, Connection(adapter) as (one, two):

        def step() -> None:
            two.qp.receive(two.region, context=bytearray(10_000))
            one.qp.send([(one.region, 0, 10)], context=bytearray(10_000))
            one.cq.wait(PATIENCE)
            two.cq.wait(PATIENCE)

        grows_no_more(step, 1000, 100_000)


def test_connections_leave_no_memory_behind(adapter: ndx.Adapter) -> None:
    def step() -> None:
        with Connection(adapter) as (one, two):
            one.connector.disconnect(timeout=PATIENCE)
            two.connector.wait_disconnected(PATIENCE)

    grows_no_more(step, 100, 200_000)


def test_numbers_out_of_range_do_not_wrap() -> None:
    with ndx.Adapter("loop") as adapter, ndx.CompletionQueue(adapter) as cq:
        for wrong in (-1, 1 << 32, (1 << 32) + 64, 1 << 70):
            for refused in (
                lambda n: ndx.CompletionQueue(adapter, n),
                lambda n: ndx.Receiver(adapter, slot_size=n),
                lambda n: ndx.Sender(adapter, slot_count=n),
                lambda n: ndx.QueuePair(adapter, cq, receive_depth=n),
                lambda n: ndx.Connector(adapter, psn=n),
                lambda n: ndx.Reassembly(max_segments=n),
                lambda n: cq.results(n),
            ):
                with pytest.raises(ValueError):
                    refused(wrong)
        for age in (-1.0, 1e12):
            with pytest.raises(ValueError):
                ndx.Reassembly(max_age=age)
        with pytest.raises(ValueError):
            ndx.Reassembly(max_bytes=-1)
