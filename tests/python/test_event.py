# SPDX-License-Identifier: BSD-2-Clause
"""Events of adapters."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading

import pytest
from conftest import PATIENCE, grows_no_more

import ndx
from ndx import aio

URI = "ofi:tcp?iface=lo"


def test_an_adapter_without_events_says_so() -> None:
    with ndx.Adapter("loop") as adapter:
        assert not adapter.query().capabilities & ndx.Capability.EVENTS
        with pytest.raises(ndx.NotSupportedError):
            ndx.adapter_event(adapter, 0)
    with pytest.raises(TypeError):
        ndx.adapter_event(7, 0)  # type: ignore[arg-type]


def test_waits_end_with_their_time_and_with_the_adapter() -> None:
    adapter = ndx.Adapter(URI)
    assert adapter.query().capabilities & ndx.Capability.EVENTS
    for timeout in (0, 0.05):
        with pytest.raises(ndx.TimedOutError):
            ndx.adapter_event(adapter, timeout)
    timer = threading.Timer(0.2, adapter.close)
    timer.start()
    with pytest.raises((ndx.CanceledError, ndx.ClosedError)):
        ndx.adapter_event(adapter, PATIENCE)
    timer.join()
    with pytest.raises(ndx.ClosedError):
        ndx.adapter_event(adapter, 0)


def test_a_task_that_waits_can_be_cancelled() -> None:
    async def main() -> None:
        with ndx.Adapter(URI) as adapter:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(aio.adapter_event(adapter), 0.1)
            with pytest.raises(ndx.TimedOutError):
                ndx.adapter_event(adapter, 0)

    asyncio.run(main())


def test_waits_leave_no_memory_behind() -> None:
    with ndx.Adapter(URI) as adapter:

        def step() -> None:
            with pytest.raises(ndx.TimedOutError):
                ndx.adapter_event(adapter, 0)

        grows_no_more(step, 300, 100_000)


PROGRAM = f"""
import asyncio, subprocess, ndx
from ndx import aio
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
with ndx.Adapter("{URI}") as adapter:
    subprocess.run(["ip", "addr", "add", "10.9.9.9/32", "dev", "lo"], check=True)
    event = ndx.adapter_event(adapter, {PATIENCE})
    print(event.type.name, event.number, event.lost, event.name, bool(event.text))
    subprocess.run(["ip", "addr", "del", "10.9.9.9/32", "dev", "lo"], check=True)
    event = asyncio.run(asyncio.wait_for(aio.adapter_event(adapter), {PATIENCE}))
    print(event.type.name, event.number)
"""


# Ctrl-C, and a cancelled task, in the moment in which an event comes.
MOMENTS = f"""
import asyncio, os, select, signal, subprocess, sys, threading, time, ndx
sys.path.append({os.path.dirname(__file__)!r})
from interrupts import Interrupt
from ndx import _ndx, aio

def ip(what):
    subprocess.run(["ip", "addr", what, "10.9.9.9/32", "dev", "lo"], check=True)

def interrupted_while_it_comes(adapter):
    # The waiting thread gets the interpreter's lock when event and signal are there.
    operations = []
    start = _ndx._event_start

    def starts(adapter, port, started):
        start(adapter, port, started)
        operations.append(started[0][0])

    def interrupt():
        # os.kill() keeps the lock of the interpreter, and so does the loop.
        child = subprocess.Popen(
            ["sh", "-c", "kill -STOP $$; exec ip addr add 10.9.9.9/32 dev lo"]
        )
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        while not operations:
            time.sleep(0)
        end = time.monotonic() + {PATIENCE}
        sys.setswitchinterval(1000)
        os.kill(child.pid, signal.SIGCONT)
        while operations[0].status is ndx.Status.PENDING and time.monotonic() < end:
            pass
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        sys.setswitchinterval(0.005)
        child.wait()

    _ndx._event_start = starts
    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        ndx.adapter_event(adapter, 2 * {PATIENCE})
    except KeyboardInterrupt:
        print("interrupted", operations[0].status.name)
    finally:
        _ndx._event_start = start
        thread.join()

def interrupted_everywhere(adapter):
    # A new event for each place: the next call returns it. The number of places.
    for places in range(1000):
        number = places + 2
        ip("add" if number % 2 else "del")
        try:
            with Interrupt(places) as interrupt:
                event = ndx.adapter_event(adapter, {PATIENCE})
        except KeyboardInterrupt:
            event = ndx.adapter_event(adapter, {PATIENCE})
        assert event.number == number, (event.number, number)
        if not interrupt.raised:
            return places

async def cancelled(adapter, what, take):
    task = asyncio.create_task(aio.adapter_event(adapter))
    await asyncio.sleep(0)
    hub = aio._hub()
    ip(what)
    assert select.select([hub.port], [], [], {PATIENCE})[0]
    if take:
        hub.take()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        event = await asyncio.wait_for(aio.adapter_event(adapter), {PATIENCE})
        return event.number

subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
with ndx.Adapter("{URI}") as adapter:
    interrupted_while_it_comes(adapter)
    print(ndx.adapter_event(adapter, {PATIENCE}).number)
    places = interrupted_everywhere(adapter)
    print(places > 10)
    next = ["del", "add"] if places % 2 else ["add", "del"]
    for what, take in zip(next, (False, True)):
        print("cancelled", asyncio.run(cancelled(adapter, what, take)) - places)
    try:
        ndx.adapter_event(adapter, 0)
    except ndx.TimedOutError:
        print("no more")
"""


def said(program: str) -> list[str]:
    """What a program prints that has a network of its own."""
    apart = ["unshare", "-rn"]
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("ip or unshare is missing")
    if subprocess.run([*apart, "true"], capture_output=True, check=False, timeout=30).returncode:
        pytest.skip("no name space of its own for the network")
    ran = subprocess.run(
        [*apart, sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE,
        env={**os.environ, "NDX_ADAPTER": ""},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_an_address_that_changes_is_an_event() -> None:
    assert said(PROGRAM) == ["ADDRESS_CHANGE 1 0 address change True", "ADDRESS_CHANGE 2"]


def test_an_interrupted_wait_loses_no_event() -> None:
    assert said(MOMENTS) == [
        "interrupted OK",
        "1",
        "True",
        "cancelled 3",
        "cancelled 4",
        "no more",
    ]
