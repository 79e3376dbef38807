# SPDX-License-Identifier: BSD-2-Clause
"""Receivers that only the collector of Python finds, while frames come."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from collections.abc import Callable

import pytest
from conftest import PATIENCE, local_address

import ndx


class Derived(ndx.Receiver):
    """A class of the program with a function of its own for the collector."""

    def __del__(self) -> None:
        super().__del__()


class Stream:
    """The sender to a receiver that only a cycle refers to: its functions use it."""

    def __init__(
        self, adapter: ndx.Adapter, kind: type[ndx.Receiver], cleared: Callable[[], object]
    ) -> None:
        self.sender = ndx.Sender(adapter)

        def on_frame(frame: ndx.Frame) -> None:
            assert receiver.closed in (False, True)

        def on_end(state: ndx.ReceiverState) -> None:
            assert receiver.closed in (False, True)

        # The collector clears in the order of the making: the functions before the receiver.
        before = [cleared()]
        receiver = kind(adapter, on_frame=on_frame, on_end=on_end)
        vars(receiver)["kept"] = receiver, before, [cleared()]
        with ndx.Listener(adapter, local_address(adapter)) as listener:
            thread = threading.Thread(target=receiver.accept, args=(listener,))
            thread.start()
            self.sender.connect(listener.address, timeout=PATIENCE)
            thread.join(PATIENCE)
        assert receiver.state is ndx.ReceiverState.RUNNING
        self.gone = weakref.ref(receiver)

    def send(self, count: int) -> None:
        """Send so many frames; each begins when the peer has the one before."""
        for _ in range(count):
            self.sender.send(b"a frame", timeout=PATIENCE)
            self.sender.flush(timeout=PATIENCE)

    def collect(self) -> None:
        """Let the collector take the receiver; a function that runs still holds it."""
        deadline = time.monotonic() + PATIENCE
        while self.gone() is not None and time.monotonic() < deadline:
            gc.collect()
        assert self.gone() is None


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Exceptions that went to sys.unraisablehook."""
    seen: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: seen.append(u.exc_value))
    return seen


@pytest.mark.parametrize("kind", [ndx.Receiver, Derived])
def test_a_receiver_is_closed_before_its_functions_are_cleared(
    adapter: ndx.Adapter, kind: type[ndx.Receiver], wrong: list[object]
) -> None:
    streams: list[Stream] = []
    refused: list[ndx.Error] = []
    watched: list[weakref.ref[object]] = []

    def goes(_: object) -> None:
        try:
            streams[-1].send(20)
        except ndx.Error as error:
            refused.append(error)

    def cleared() -> object:
        """The collector does not know code: it goes when the list that has it is cleared."""
        code = compile("0", "", "eval")
        watched.append(weakref.ref(code, goes))
        return code

    for _ in range(10):
        refused.clear()
        streams.append(Stream(adapter, kind, cleared))
        streams[-1].send(1)
        streams[-1].collect()
        streams[-1].sender.close()
        assert wrong == [] and len(refused) == 2
