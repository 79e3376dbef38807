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


def test_an_address_that_changes_is_an_event() -> None:
    apart = ["unshare", "-rn"]
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("ip or unshare is missing")
    if subprocess.run([*apart, "true"], capture_output=True, check=False, timeout=30).returncode:
        pytest.skip("no name space of its own for the network")
    said = subprocess.run(
        [*apart, sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE,
        env={**os.environ, "NDX_ADAPTER": ""},
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.splitlines() == [
        "ADDRESS_CHANGE 1 0 address change True",
        "ADDRESS_CHANGE 2",
    ]
