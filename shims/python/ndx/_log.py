# SPDX-License-Identifier: BSD-2-Clause
"""The log of the library, for a function or for the module logging."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Union

from ._enums import LogLevel

_PATIENCE = 10.0
"""How long the end of a reader waits for a target that does not return, in seconds."""

_LEVELS = {
    LogLevel.ERROR: logging.ERROR,
    LogLevel.WARN: logging.WARNING,
    LogLevel.INFO: logging.INFO,
    LogLevel.DEBUG: logging.DEBUG,
}


class LogRecord(NamedTuple):
    """A record of the library: `level`, `where` (name of the function that wrote it), `native`
    (errno or provider code of a failure; 0: none), `text` (one line), `time_ns` (since the
    epoch)."""

    level: LogLevel
    where: str
    native: int
    text: str
    time_ns: int

    def __str__(self) -> str:
        native = f", native {self.native}" if self.native else ""
        return f"{self.text} ({self.where}{native})"


LogTarget = Union[Callable[[LogRecord], object], logging.Logger]


class _Reader(threading.Thread):
    """The thread that takes records from the library and hands them on."""

    def __init__(self, target: LogTarget) -> None:
        super().__init__(name="ndx log", daemon=True)
        self.target = target
        self.stopped = False
        self.given_up = False

    def hand_on(self, record: LogRecord) -> None:
        if self.given_up:
            return
        try:
            if isinstance(self.target, logging.Logger):
                self.target.log(_LEVELS[record.level], "%s", record)
            else:
                self.target(record)
        except Exception:  # noqa: BLE001 - as for any callback of the library
            _ndx._unraisable(self.target)

    def take(self, timeout: float) -> None:
        """What has come. Waits a moment for more, at most so many seconds."""
        records, lost = _ndx._log_take(timeout)
        for level, *rest in records:
            self.hand_on(LogRecord(LogLevel(level), *rest))
        if lost:
            text = f"{lost} log records came faster than they were taken, and are lost"
            self.hand_on(LogRecord(LogLevel.WARN, "ndx.set_log", 0, text, 0))

    def run(self) -> None:
        while not self.stopped:
            self.take(1)
        if not self.given_up:  # what waits then is for the next target
            self.take(0)

    def end(self) -> None:
        """Hand on what has come, and end. What a target that does not return leaves is lost."""
        self.stopped = True
        _ndx._log_wake()
        self.join(_PATIENCE)
        self.given_up = self.is_alive()


_reader: _Reader | None = None
_changing = threading.Lock()


def set_log(target: LogTarget | None, level: LogLevel = LogLevel.INFO) -> None:
    """Give the log records of the library up to a level to a function, or to a logger.

        ndx.set_log(logging.getLogger("ndx"), ndx.LogLevel.DEBUG)

    target -- called with a LogRecord; or a logging.Logger, which gets the text and the function's
              name at the corresponding level; None: no records, as in the beginning
    level  -- records above that are dropped in the library, at no cost

    A thread of this module calls the target, some time after the record was written; it may call
    ndx. At most 4096 records wait; a record of ndx.set_log says how many came too fast. An exception
    in it goes to sys.unraisablehook. A call of set_log() first hands on what the previous target is
    to get, and so does the end of the interpreter, after the objects were closed. Both wait at most
    10 s for a target that does not return; then what it was to get is dropped.

    The environment variable NDX_LOG=error, warn, info or debug writes to stderr beside that.
    Raises ForkedError in the child of a process that used ndx.
    """
    global _reader  # noqa: PLW0603 - the library has one log
    number = LogLevel(level)
    if target is not None and not callable(target) and not isinstance(target, logging.Logger):
        raise TypeError("target is a function, a logging.Logger or None")
    if isinstance(threading.current_thread(), _Reader):
        raise RuntimeError("set_log() is called by a target of the log")
    with _changing:
        if _reader is not None:
            _reader.end()
            _reader = None
            _ndx._log_open(-1)
        if target is not None:
            _ndx._log_open(int(number))
            reader = _Reader(target)
            try:
                reader.start()
            except BaseException:
                reader.stopped = reader.given_up = True
                _ndx._log_open(-1)
                raise
            _reader = reader


def _end() -> None:
    """The interpreter ends."""
    with suppress(Exception):
        if _reader is not None:
            _reader.end()


def _forget() -> None:
    """The child of a fork has no reader."""
    global _reader, _changing  # noqa: PLW0603
    _reader = None
    _changing = threading.Lock()


# What is registered first runs last: after the end of all objects, which _ndx registers.
atexit.register(_end)
os.register_at_fork(after_in_child=_forget)

from . import _ndx  # noqa: E402
