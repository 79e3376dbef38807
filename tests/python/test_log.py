# SPDX-License-Identifier: BSD-2-Clause
"""The log of the library, in functions and in the module logging."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from conftest import PATIENCE, python

import ndx


@pytest.fixture(autouse=True)
def _silent_again(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(ndx._log, "_PATIENCE", PATIENCE)
    yield
    ndx.set_log(None)


def fail() -> None:
    """The library writes one record of level error."""
    with pytest.raises(ndx.NotFoundError):
        ndx.Adapter("nothing:here")


def test_a_function_gets_the_records() -> None:
    records: list[ndx.LogRecord] = []
    threads: set[int] = set()

    def take(record: ndx.LogRecord) -> None:
        records.append(record)
        threads.add(threading.get_ident())
        ndx.default_adapter()  # a target may call ndx

    ndx.set_log(take, ndx.LogLevel.ERROR)
    fail()
    ndx.set_log(None)
    assert len(records) == 1 and threads == {*threads} - {threading.get_ident()}
    record = records[0]
    assert record.level is ndx.LogLevel.ERROR and "nothing" in record.text
    assert record.where and record.time_ns > 1_600_000_000 * 10**9
    assert record.where in str(record)
    fail()
    ndx.set_log(records.append, ndx.LogLevel.DEBUG)
    with ndx.Adapter("loop"):
        pass
    ndx.set_log(records.append, ndx.LogLevel.ERROR)
    debug = records[1:]
    assert debug and all("nothing" not in r.text for r in debug)
    with ndx.Adapter("loop"):
        pass
    ndx.set_log(None)
    assert records[1:] == debug


def test_a_logger_gets_the_records(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "ndx.test"):
        ndx.set_log(logging.getLogger("ndx.test"))
        fail()
        ndx.set_log(None)
    (record,) = (r for r in caplog.records if r.levelno == logging.ERROR)
    assert record.name == "ndx.test" and "nothing" in record.getMessage()


def test_exceptions_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: seen.append(u.exc_type))
    outcome: list[type] = []

    def wrong(record: ndx.LogRecord) -> None:
        try:
            ndx.set_log(None)
        except RuntimeError as error:
            outcome.append(type(error))
        raise LookupError

    ndx.set_log(wrong)
    fail()
    ndx.set_log(None)
    assert seen == [LookupError] and outcome == [RuntimeError]
    for bad in (7, "text"):
        with pytest.raises(TypeError):
            ndx.set_log(bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        ndx.set_log(print, 4)  # type: ignore[arg-type]


def test_only_the_thread_of_the_log_calls_the_target() -> None:
    began, go_on = threading.Event(), threading.Event()
    threads: list[int] = []
    refused: list[str] = []

    def target(record: ndx.LogRecord) -> None:
        threads.append(threading.get_ident())
        began.set()
        go_on.wait(PATIENCE)
        if threading.current_thread() is not threading.main_thread():
            with pytest.raises(RuntimeError) as error:
                ndx.set_log(None)
            refused.append(str(error.value))

    def end() -> None:
        deadline = time.monotonic() + PATIENCE
        while not reader.stopped and time.monotonic() < deadline:
            threading.Event().wait(0.001)
        go_on.set()

    ndx.set_log(target, ndx.LogLevel.ERROR)
    reader = ndx._log._reader
    assert reader is not None
    fail()
    assert began.wait(PATIENCE)
    fail()  # waits until set_log() has told the thread to end
    ends = threading.Thread(target=end)
    ends.start()
    ndx.set_log(None)
    ends.join(PATIENCE)
    assert threads == [reader.ident] * 2 and len(refused) == 2


def test_a_target_that_was_given_up_gets_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndx._log, "_PATIENCE", 0.05)
    began, go_on = threading.Event(), threading.Event()
    seen: list[ndx.LogRecord] = []

    def target(record: ndx.LogRecord) -> None:
        seen.append(record)
        began.set()
        go_on.wait(PATIENCE)

    ndx.set_log(target, ndx.LogLevel.ERROR)
    reader = ndx._log._reader
    assert reader is not None
    fail()
    assert began.wait(PATIENCE)
    ndx.set_log(None)
    ndx._ndx._log_open(int(ndx.LogLevel.ERROR))  # as for a new target
    fail()
    go_on.set()
    reader.join(PATIENCE)
    assert not reader.is_alive() and len(seen) == 1
    assert len(ndx._ndx._log_take(0)[0]) == 1
    ndx._ndx._log_open(-1)


def test_a_thread_that_cannot_start_leaves_no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(ndx._log._Reader, "start", start)
        with pytest.raises(RuntimeError):
            ndx.set_log(print, ndx.LogLevel.ERROR)
    fail()
    assert ndx._ndx._log_take(0) == ([], 0)
    ndx.set_log(None)


def test_records_that_come_too_fast_are_counted() -> None:
    records: list[ndx.LogRecord] = []
    began, go_on = threading.Event(), threading.Event()

    def slow(record: ndx.LogRecord) -> None:
        began.set()
        go_on.wait(8 * PATIENCE)  # until 5000 records were written
        records.append(record)

    ndx.set_log(slow, ndx.LogLevel.ERROR)
    fail()
    assert began.wait(30)
    for _ in range(5000):
        fail()
    go_on.set()
    ndx.set_log(None)
    # All that waited, the one before, and the record of the loss.
    assert len(records) == 4096 + 2
    assert records[-1].level is ndx.LogLevel.WARN
    assert records[-1].text.startswith(f"{5000 - 4096} log records")


def test_threads_of_the_library_log_until_the_interpreter_ends() -> None:
    said = python(
        "import ndx, threading\n"
        "seen = threading.Event()\n"
        "def target(record):\n"
        "    print(record.level.name, record.text, flush=True)\n"
        "    if record.level is ndx.LogLevel.DEBUG: seen.set()\n"
        "ndx.set_log(target, ndx.LogLevel.DEBUG)\n"
        "a = ndx.Adapter('ofi:tcp?iface=lo')\n"
        "l = ndx.Listener(a, ('127.0.0.1', 0))\n"
        "r, s = ndx.Receiver(a), ndx.Sender(a)\n"
        "t = threading.Thread(target=r.accept, args=(l,))\n"
        "t.start()\n"
        "s.connect(l.address)\n"
        "t.join()\n"
        "assert seen.wait(30)\n"
        "print('main ends', flush=True)\n"
    )
    before, after = said.split("main ends")
    assert "DEBUG" in before and "INFO" in before
    # The objects are closed after the last line of the program: that is logged, too.
    assert "DEBUG" in after or "INFO" in after


def test_a_target_that_does_not_return_does_not_hold_up_the_end() -> None:
    said = python(
        "import ndx, threading\n"
        "import ndx._log\n"
        "ndx._log._PATIENCE = 0.2\n"
        "began = threading.Event()\n"
        "ndx.set_log(lambda r: (began.set(), threading.Event().wait()))\n"
        "def fail():\n"
        "    try: ndx.Adapter('nothing:here')\n"
        "    except ndx.NotFoundError: pass\n"
        "fail()\n"
        "assert began.wait(30)\n"
        "fail()  # the thread that ends must not hand on what waits\n"
        "print('ends')\n"
    )
    assert said.strip() == "ends"


def test_the_child_of_a_fork_has_no_log() -> None:
    ndx.set_log(lambda record: None, ndx.LogLevel.DEBUG)
    fail()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            ndx.set_log(print)
        except ndx.ForkedError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
