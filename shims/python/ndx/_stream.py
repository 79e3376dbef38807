# SPDX-License-Identifier: BSD-2-Clause
"""Receivers and senders: frames without a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, NamedTuple

from . import _ndx
from ._adapter import Adapter, Address
from ._connection import Connector, Limit, Listener
from ._enums import ReceiverEnd, ReceiverMode, ReceiverState, Role, Status
from ._errors import AbortedError, CanceledError, ConnectionFailedError, RefusedError, TimedOutError

Frame = _ndx.Frame
FrameFunction = Callable[[Frame], object]

ANY_CHANNEL = -1
RNR_TIMER_DEFAULT = 0xFFFFFFFF


class Cause(NamedTuple):
    """Why a receiver does not run: ReceiverEnd, Status, the provider's code, and a text."""

    end: ReceiverEnd
    status: Status
    native: int
    text: str


class Slab(NamedTuple):
    """The slots of a receiver in mode WRITE, as its peer may write to them."""

    address: int
    length: int
    token: int


class Batch(list[Frame]):
    """Frames that were taken together. `with` releases all of them at its end, also those that
    the program has taken out of the batch's loop."""

    def release(self) -> None:
        """Release all frames. Raises BufferError if views of one exist; the others are released."""
        _ndx._release(self)
        self.clear()

    def __enter__(self) -> Batch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def _milliseconds(timeout: float | None) -> int:
    return 0xFFFFFFFF if timeout is None else min(0xFFFFFFFE, int(timeout * 1000 + 0.999))


def adapter_of(adapter: _ndx.Adapter | str | None) -> _ndx.Adapter:
    """An adapter as it is, or opened by its URI."""
    return adapter if isinstance(adapter, _ndx.Adapter) else Adapter(adapter)


class BaseReceiver(_ndx.Receiver):
    """What ndx.Receiver and ndx.aio.Receiver have in common."""

    adapter: _ndx.Adapter

    def __new__(
        cls,
        adapter: _ndx.Adapter | str | None = None,
        *,
        on_frame: FrameFunction | None = None,
        consumers: Iterable[tuple[FrameFunction, int]] = (),
        on_end: Callable[[ReceiverState], object] | None = None,
        pull: bool | None = None,
        mode: ReceiverMode = ReceiverMode.SEND,
        slot_size: int = 9000,
        slot_count: int = 256,
        copy_below: int = 0,
        copy_count: int = 0,
        sequence_wrap: int = 1 << 24,
        need_immediate: bool = False,
        send_depth: int = 16,
        no_receive_timeout_ms: int = 4000,
        keepalive_ms: int = 5000,
        idle_timeout_ms: int = 0,
        probe_ms: int = 0,
        probe_timeout_ms: int = 2000,
        rnr_timer: int = RNR_TIMER_DEFAULT,
        spin_us: int = 50,
        batch: int = 16,
    ) -> Any:
        functions = list(consumers)
        if on_frame is not None:
            functions.append((on_frame, ANY_CHANNEL))
        opened = adapter_of(adapter)
        self = super().__new__(
            cls,
            opened,
            functions,
            on_end,
            mode=mode,
            slot_size=slot_size,
            slot_count=slot_count,
            copy_below=copy_below,
            copy_count=copy_count,
            sequence_wrap=sequence_wrap,
            need_immediate=need_immediate,
            pull=not functions if pull is None else pull,
            send_depth=send_depth,
            no_receive_timeout_ms=no_receive_timeout_ms,
            keepalive_ms=keepalive_ms,
            idle_timeout_ms=idle_timeout_ms,
            probe_ms=probe_ms,
            probe_timeout_ms=probe_timeout_ms,
            rnr_timer=rnr_timer,
            spin_us=spin_us,
            batch=batch,
        )
        self.adapter = opened
        return self

    @property
    def cause(self) -> Cause:
        """Why the receiver does not run."""
        return Cause(*self._cause())

    @property
    def slab(self) -> Slab:
        """The slots, for a sender in mode WRITE, until stop(); in mode SEND the token is 0.

        A session carries it if its `memory` is the receiver.
        """
        return Slab(*self._memory())

    def prepare(self) -> None:
        """Post all slots, to connect `qp` by other means, for example by a session; then start().

        A receiver that is prepared already stays so.
        """
        if self.state != ReceiverState.CONNECTING:
            self._prepare()

    def start(self, connector: _ndx.Connector) -> None:
        """Run on the connection of `qp`; the receiver takes the connector, which is closed then.

        Raises BusyError while an operation of the connector is in flight: cancel() it first.
        """
        self._start(connector)

    def describe(self, role: Role) -> dict[str, Any]:
        """Describe this end for a peer that gets the description by other means; JSON can carry
        it. Then connect_peer() with the peer's."""
        return self._describe(role)

    def set_oob_stream(self, fd: int) -> None:
        """The out-of-band stream to the peer, where the provider needs one. The receiver owns
        the descriptor then."""
        self._set_oob_stream(fd)

    def ended(self) -> None:
        """Raise the cause if the receiver failed."""
        cause = self.cause
        if self.state == ReceiverState.FAILED:
            raise ConnectionFailedError(cause.status, f"{cause.end.name}: {cause.text}", cause.native)


class Receiver(BaseReceiver):
    """Receiver(adapter=None, *, on_frame=None, consumers=(), on_end=None, pull=None,
    mode=ReceiverMode.SEND, slot_size=9000, slot_count=256, ...): frames from a peer, in place.

    adapter   -- ndx.Adapter, or a URI to open
    on_frame  -- called by the receiving thread for each frame; the frame is released when the
                 function returns, unless the function keeps it. An exception, or False, is counted
                 in consumer_errors; an exception also goes to sys.unraisablehook
    consumers -- up to 8 (function, channel); channel -1: all
    on_end    -- called by the receiving thread with ENDED or FAILED
    pull      -- frames are queued for pull(); default: if there are no functions
    The others are those of struct ndx_receiver_attr (ndx/receiver.h).

    Order: create; connect(), accept(), connect_peer(), complete_connection(), or prepare() and
    start(); frames; stop(); close().
    """

    def connect(
        self, destination: Address | str, *, private_data: Any = b"", timeout: float | None = 30.0
    ) -> None:
        """Connect to a listener, and run. After a failure it may be called again."""
        self.prepare()
        connector = Connector(self.adapter)
        try:
            connector.connect(self.qp, destination, private_data=private_data, timeout=timeout)
            self.start(connector)
        finally:
            connector.close()

    def accept(
        self, listener: Listener, *, private_data: Any = b"", timeout: float | None = None
    ) -> None:
        """Take the next request of a listener of the same adapter, and run."""
        self.prepare()
        connector = listener.accept(self.qp, private_data=private_data, timeout=timeout)
        try:
            self.start(connector)
        finally:
            connector.close()

    def connect_peer(self, peer: dict[str, Any], *, timeout: float | None = 30.0) -> None:
        """Connect to the peer that sent this description, and run. Ctrl-C waits for the end."""
        self._connect_peer(peer, _milliseconds(timeout))

    def complete_connection(
        self,
        *,
        gid: bytes,
        qpn: int,
        rq_psn: int,
        sq_psn: int,
        lid: int = 0,
        mtu: int = 0,
        probe_address: int = 0,
        probe_rkey: int = 0,
        timeout: float | None = 30.0,
    ) -> None:
        """Connect to a device that was told numbers(), by its own numbers; see
        struct ndx_receiver_peer."""
        self._complete(
            gid, qpn, rq_psn, sq_psn, lid, mtu, probe_address, probe_rkey, _milliseconds(timeout)
        )

    def pull(self, count: int = 64, timeout: float | None = None) -> Batch:
        """Take up to `count` (at most 64) frames; wait up to `timeout` seconds for the first.

        An empty batch when the time is over. Raises CanceledError when no frame is left and the
        receiver does not run.
        """
        frames = self._pull(count, timeout)
        if frames is None:
            raise CanceledError(Status.CANCELED, f"the receiver does not run: {self.cause.text}")
        return Batch(frames)

    def next(self, timeout: float | None = None) -> Frame:
        """The next frame. Raises TimedOutError, and CanceledError as pull()."""
        frames = self.pull(1, timeout)
        if not frames:
            raise TimedOutError(Status.IO_TIMEOUT, f"no frame in {timeout} s")
        return frames[0]

    def __iter__(self) -> Iterator[Frame]:
        """Frames until the peer disconnects or stop(); raises ConnectionFailedError if the
        connection fails. A frame that the loop does not keep is released with the next one."""
        while (frames := self._pull(16, None)) is not None:
            frames.reverse()
            while frames:
                yield frames.pop()
        self.ended()

    def batches(self, count: int = 64) -> Iterator[Batch]:
        """Batches until the end, as iteration; each is released when the next one is taken."""
        while (frames := self._pull(count, None)) is not None:
            with Batch(frames) as batch:
                yield batch
        self.ended()

    def stop(self) -> None:
        """Disconnect and end reception. Frames that are held stay valid.

        Raises BusyError in a callback of the receiver, and while a session holds `qp`.
        """
        self._stop()


class BaseSender(_ndx.Sender):
    """What of ndx.Sender does not wait."""

    adapter: _ndx.Adapter

    def __new__(
        cls,
        adapter: _ndx.Adapter | str | None = None,
        *,
        receiver: BaseReceiver | None = None,
        mode: ReceiverMode = ReceiverMode.SEND,
        slot_size: int = 4096,
        slot_count: int = 16,
        window: int = 0,
        rate: int = 0,
        sequence_wrap: int = 1 << 24,
        peer_address: int = 0,
        peer_token: int = 0,
        peer_slot_size: int | None = None,
        peer_slot_count: int = 256,
        no_receive_timeout_ms: int = 4000,
        keepalive_ms: int = 5000,
        spin_us: int = 50,
        close_timeout_ms: int = 8000,
    ) -> Any:
        opened = receiver.adapter if receiver is not None else adapter_of(adapter)
        self = super().__new__(
            cls,
            opened,
            receiver,
            mode=mode,
            slot_size=slot_size,
            slot_count=slot_count,
            window=window,
            rate=rate,
            sequence_wrap=sequence_wrap,
            peer_address=peer_address,
            peer_token=peer_token,
            peer_slot_size=slot_size if peer_slot_size is None else peer_slot_size,
            peer_slot_count=peer_slot_count,
            no_receive_timeout_ms=no_receive_timeout_ms,
            keepalive_ms=keepalive_ms,
            spin_us=spin_us,
            close_timeout_ms=close_timeout_ms,
        )
        self.adapter = opened
        return self

    def start(self, connector: _ndx.Connector) -> None:
        """Send on the connection of `qp`; the sender takes the connector, which is closed then.

        Raises BusyError as Receiver.start().
        """
        self._start(connector)

    def set_memory(
        self, peer: Slab | tuple[int, int, int] | dict[str, Any], *, slot_size: int, slot_count: int
    ) -> None:
        """Send in mode WRITE, before the first frame: into the slab of the peer, which is its
        `slab`, or its description (describe(), or `peer` of a session's agreement()).

        slot_size, slot_count -- those of the peer's receiver

        Raises InvalidParameterError (the slab is smaller than its slots), StateError (frames were
        sent already), NotSupportedError (without Capability.WRITE_IMMEDIATE).
        """
        if isinstance(peer, dict):
            peer = Slab(peer["memory.address"], peer["memory.length"], peer["memory.token"])
        self._set_memory(*peer, slot_size, slot_count)

    def describe(self, role: Role) -> dict[str, Any]:
        """As Receiver.describe()."""
        return self._describe(role)

    def set_oob_stream(self, fd: int) -> None:
        """As Receiver.set_oob_stream()."""
        self._set_oob_stream(fd)


class Sender(BaseSender):
    """Sender(adapter=None, *, receiver=None, slot_size=4096, slot_count=16, window=0, rate=0, ...):
    sends frames to a receiver.

    receiver -- send over the connection of this receiver
    rate     -- highest number of frames per second; 0: no limit
    mode     -- how the peer receives. ReceiverMode.WRITE: into its slab, which peer_address and
                peer_token say, or set_memory() later
    The others are those of struct ndx_sender_attr (ndx/sender.h). One thread at a time.
    """

    def connect(
        self, destination: Address | str, *, private_data: Any = b"", timeout: float | None = 30.0
    ) -> None:
        """Connect to a listener. After a failure it may be called again."""
        connector = Connector(self.adapter)
        try:
            connector.connect(self.qp, destination, private_data=private_data, timeout=timeout)
            self.start(connector)
        finally:
            connector.close()

    def accept(
        self, listener: Listener, *, private_data: Any = b"", timeout: float | None = None
    ) -> None:
        """Take the next request of a listener of the same adapter."""
        connector = listener.accept(self.qp, private_data=private_data, timeout=timeout)
        try:
            self.start(connector)
        finally:
            connector.close()

    def connect_peer(self, peer: dict[str, Any], *, timeout: float | None = 30.0) -> None:
        """Connect to the peer that sent this description."""
        self._connect_peer(peer, _milliseconds(timeout))

    def send(self, data: Any, channel: int = 0, *, timeout: float | None = 30.0) -> None:
        """Copy a frame of 1 .. slot_size bytes into a slot, and send it.

        Returns when the frame is posted; flush() waits until the peer has it. Raises TimedOutError
        (no slot became free), or the failure of an earlier frame: the connection has ended then.
        """
        if not self._send(data, channel, timeout):
            raise TimedOutError(Status.IO_TIMEOUT, f"no slot became free in {timeout} s")

    def flush(self, *, timeout: float | None = 30.0) -> None:
        """Wait until the peer has received every frame. Raises as send()."""
        if not self._flush(timeout):
            raise TimedOutError(Status.IO_TIMEOUT, f"frames are under way after {timeout} s")


__all__ = [
    "ANY_CHANNEL",
    "AbortedError",
    "Batch",
    "Cause",
    "Frame",
    "Limit",
    "Receiver",
    "RefusedError",
    "Sender",
    "Slab",
]
