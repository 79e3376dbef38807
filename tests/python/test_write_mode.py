# SPDX-License-Identifier: BSD-2-Clause
"""Senders that write into the slab of their receiver."""

from __future__ import annotations

import threading

import pytest
from conftest import PATIENCE, local_address
from pairs import unconnected

import ndx

try:
    import numpy
except ImportError:  # too large for a guest
    numpy = None  # type: ignore[assignment]

SLOTS = {"slot_size": 64, "slot_count": 8}
WRITE = ndx.ReceiverMode.WRITE


@pytest.fixture(name="receiver")
def _receiver(adapter: ndx.Adapter) -> ndx.Receiver:
    if ndx.Capability.WRITE_IMMEDIATE not in adapter.query().capabilities:
        with pytest.raises(ndx.NotSupportedError):
            ndx.Receiver(adapter, mode=WRITE, **SLOTS)  # type: ignore[arg-type]
        pytest.skip("no writes with immediate data")
    return ndx.Receiver(adapter, mode=WRITE, **SLOTS)  # type: ignore[arg-type]


def connect(adapter: ndx.Adapter, receiver: ndx.Receiver, sender: ndx.Sender) -> None:
    with ndx.Listener(adapter, local_address(adapter)) as listener:
        thread = threading.Thread(target=lambda: receiver.accept(listener, timeout=PATIENCE))
        thread.start()
        sender.connect(listener.address, timeout=PATIENCE)
        thread.join(PATIENCE)


def frames_arrive(receiver: ndx.Receiver, sender: ndx.Sender) -> None:
    """Frame n lies in slot n modulo 8 of the slab."""
    base = receiver.slab.address
    for i in range(20):
        sender.send(bytes([i]) * (i + 1), channel=i)
        with receiver.next(PATIENCE) as frame:
            assert bytes(frame) == bytes([i]) * (i + 1) and frame.channel == i
            if numpy is not None:
                view = numpy.frombuffer(frame.data, dtype=numpy.uint8)
                assert view.ctypes.data == base + i % 8 * 64
                del view
    sender.flush()
    assert receiver.stats()["lost"] == 0
    with pytest.raises(ndx.StateError, match="sent already"):
        sender.set_memory(receiver.slab, **SLOTS)


def test_memory_is_set_later(adapter: ndx.Adapter, receiver: ndx.Receiver) -> None:
    sender = ndx.Sender(adapter, slot_size=64)
    connect(adapter, receiver, sender)
    slab = receiver.slab
    assert slab.length == 512 and slab.token != 0
    with pytest.raises(ndx.InvalidParameterError, match="smaller"):
        sender.set_memory(slab, slot_size=64, slot_count=9)
    for wrong in ((-1, 512, 1), (0, 512, 1 << 32)):
        with pytest.raises(ValueError):
            sender.set_memory(wrong, **SLOTS)
    sender.set_memory(slab, **SLOTS)
    frames_arrive(receiver, sender)
    sender.close()
    receiver.close()


def test_memory_is_known_before(adapter: ndx.Adapter, receiver: ndx.Receiver) -> None:
    slab = receiver.slab
    sender = ndx.Sender(
        adapter,
        mode=WRITE,
        slot_size=64,
        sequence_wrap=1 << 20,
        peer_address=slab.address,
        peer_token=slab.token,
        peer_slot_count=8,
    )
    connect(adapter, receiver, sender)
    frames_arrive(receiver, sender)
    sender.close()
    receiver.close()


def test_a_session_carries_the_slab(adapter: ndx.Adapter, receiver: ndx.Receiver) -> None:
    variant = ndx.Negotiation().variant("example/three-round")
    end = unconnected(adapter)
    receiver.prepare()

    def on_open(session: ndx.SessionView) -> ndx.Ends:
        return end.connector, receiver.qp, receiver

    sender = ndx.Sender(adapter, slot_size=64)
    connector = ndx.Connector(adapter)
    with ndx.Server("127.0.0.1:0", variant, on_open=on_open) as server:
        where = f"{server.address[0]}:{server.address[1]}"
        with ndx.Session(variant, where, connector=connector, qp=sender.qp) as session:
            session.run()
            sender.set_memory(session.agreement()["peer"], **SLOTS)
            assert session.agreement()["peer"]["memory.address"] == receiver.slab.address
            sender.start(connector)
            receiver.start(end.connector)
            frames_arrive(receiver, sender)
            sender.close()
    receiver.close()


def test_a_receiver_of_sends_gives_no_rights(adapter: ndx.Adapter) -> None:
    with ndx.Receiver(adapter, **SLOTS) as receiver:  # type: ignore[arg-type]
        assert receiver.slab.token == 0
