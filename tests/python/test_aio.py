# SPDX-License-Identifier: BSD-2-Clause
"""asyncio: operations are awaited, by the descriptors of the library."""

from __future__ import annotations

import asyncio
import os

import pytest
from conftest import PATIENCE, grows_no_more, local_address

import ndx
from ndx import aio

SIZE = 512


class End:
    """A queue pair with memory."""

    def __init__(self, adapter: ndx.Adapter) -> None:
        self.cq = aio.CompletionQueue(adapter)
        self.memory = bytearray(SIZE)
        self.region = adapter.register(self.memory)
        self.qp = ndx.QueuePair(adapter, self.cq, receive_depth=4, initiator_depth=4)

    def close(self) -> None:
        self.qp.close()
        self.cq.close()
        self.region.close()


async def results(cq: aio.CompletionQueue, count: int) -> None:
    """Await so many results, all of them good."""
    while count > 0:
        got = await cq.wait()
        assert all(r.status is ndx.Status.OK for r in got)
        count -= len(got)


async def serve(adapter: ndx.Adapter, listener: aio.Listener) -> None:
    """Echo one message."""
    end = End(adapter)
    end.qp.receive(end.region)
    async with await listener.accept(end.qp) as connector:
        await results(end.cq, 1)
        end.qp.send(end.region)
        await results(end.cq, 1)
        assert await connector.wait_disconnected() is ndx.DisconnectReason.GRACEFUL
        await connector.disconnect()
    end.close()


async def ask(adapter: ndx.Adapter, listener: aio.Listener) -> None:
    """Send a message, verify the echo."""
    end = End(adapter)
    content = os.urandom(SIZE)
    end.memory[:] = content
    async with aio.Connector(adapter) as connector:
        await connector.connect(end.qp, listener.address)
        end.qp.send(end.region)
        await results(end.cq, 1)
        end.memory[:] = bytes(SIZE)
        end.qp.receive(end.region)
        await results(end.cq, 1)
        assert end.memory == content
        await connector.disconnect()
        assert connector.disconnect_reason is ndx.DisconnectReason.GRACEFUL
    end.close()


async def echoes(adapter: ndx.Adapter, count: int) -> None:
    """So many connections at the same time."""
    async with aio.Listener(adapter, local_address(adapter)) as listener, asyncio.timeout(120):
        await asyncio.gather(
            *(serve(adapter, listener) for _ in range(count)),
            *(ask(adapter, listener) for _ in range(count)),
        )


def test_200_connections_echo_through_one_loop() -> None:
    with ndx.Adapter("loop") as adapter:
        asyncio.run(echoes(adapter, 200))


def test_50_connections_echo_over_tcp() -> None:
    with ndx.Adapter("ofi:tcp?iface=lo") as adapter:
        asyncio.run(echoes(adapter, 50))


def test_connections_echo_beside_each_other(adapter: ndx.Adapter) -> None:
    asyncio.run(echoes(adapter, 4))


def test_a_cancelled_task_cancels_its_operation(adapter: ndx.Adapter) -> None:
    async def main() -> None:
        end = End(adapter)
        async with aio.Listener(adapter, local_address(adapter)) as listener:
            async with aio.Connector(adapter) as connector:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await connector.connect(end.qp, listener.address)
                assert end.qp.query()["state"] is ndx.QueuePairState.UNCONNECTED
        async with aio.Listener(adapter, local_address(adapter)) as listener:
            waiting = asyncio.create_task(listener.request())
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(end.cq.wait(), 0.05)
        end.close()

    asyncio.run(main())


def test_a_close_completes_what_is_awaited(adapter: ndx.Adapter) -> None:
    async def main() -> None:
        listener = aio.Listener(adapter, local_address(adapter))
        waiting = asyncio.create_task(listener.request())
        await asyncio.sleep(0)
        listener.close()
        with pytest.raises(ndx.CanceledError):
            async with asyncio.timeout(PATIENCE):
                await waiting

    asyncio.run(main())


def test_failures_are_raised_where_they_are_awaited(adapter: ndx.Adapter) -> None:
    async def main() -> None:
        end = End(adapter)
        listener = aio.Listener(adapter, local_address(adapter))
        address = listener.address
        listener.close()
        async with aio.Connector(adapter) as connector:
            with pytest.raises(ndx.RefusedError):
                await connector.connect(end.qp, address)
        end.close()

    asyncio.run(main())


def test_loops_leave_nothing_behind() -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    with ndx.Adapter("loop") as adapter:
        grows_no_more(lambda: asyncio.run(echoes(adapter, 2)), 30, 100_000)
    assert len(os.listdir("/proc/self/fd")) <= descriptors
