# SPDX-License-Identifier: BSD-2-Clause
"""Connected queue pairs for the tests."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from types import TracebackType

from conftest import PATIENCE, local_address

import ndx


@dataclass
class End:
    """One end of a connection."""

    cq: ndx.CompletionQueue
    qp: ndx.QueuePair
    memory: bytearray
    region: ndx.MemoryRegion
    connector: ndx.Connector


def unconnected(adapter: ndx.Adapter, size: int = 4096, **kwargs: int) -> End:
    """A queue pair, not connected, with memory for it."""
    cq = ndx.CompletionQueue(adapter, 128)
    memory = bytearray(size)
    region = adapter.register(memory, ndx.Access.REMOTE_WRITE | ndx.Access.REMOTE_READ)
    qp = ndx.QueuePair(adapter, cq, **kwargs)
    return End(cq, qp, memory, region, ndx.Connector(adapter))


class Connection:
    """`with Connection(adapter) as (active, passive)`"""

    def __init__(self, adapter: ndx.Adapter, size: int = 4096, **kwargs: int) -> None:
        self.active = unconnected(adapter, size, **kwargs)
        self.passive = unconnected(adapter, size, **kwargs)
        self.prepare(adapter, self.passive)
        with ndx.Listener(adapter, local_address(adapter)) as listener:
            taken: list[ndx.Connector] = []
            thread = threading.Thread(
                target=lambda: taken.append(
                    listener.accept(self.passive.qp, private_data=b"hi", timeout=PATIENCE)
                )
            )
            thread.start()
            self.active.connector.connect(
                self.active.qp, listener.address, private_data=b"ho", timeout=PATIENCE
            )
            thread.join(PATIENCE)
            self.passive.connector = taken[0]

    def prepare(self, adapter: ndx.Adapter, end: End) -> None:
        """For derived classes: change the passive end before it is connected."""

    def __enter__(self) -> tuple[End, End]:
        return self.active, self.passive

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for end in (self.active, self.passive):
            end.qp.close()
            end.connector.close()
            end.cq.close()
            end.region.close()
