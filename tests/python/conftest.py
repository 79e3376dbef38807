# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of the Python module share."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

import ndx

# $NDX_TEST_ADAPTERS has others: the guest with devices runs these tests, too.
URIS = os.environ.get("NDX_TEST_ADAPTERS", "loop ofi:tcp?iface=lo").split()
PATIENCE = 30.0
# Leaks are looked for in this process. The programs that tests start leak, and so does an
# interpreter that ends while threads run.
if "ASAN_OPTIONS" in os.environ:
    os.environ["ASAN_OPTIONS"] += ":detect_leaks=0"


@pytest.fixture(params=URIS)
def adapter(request: pytest.FixtureRequest) -> Iterator[ndx.Adapter]:
    """An open adapter of each provider that needs no device, or of those that were asked for."""
    try:
        opened = ndx.Adapter(request.param)
    except ndx.NotFoundError:
        pytest.skip(f"no provider for {request.param}")
    with opened:
        yield opened


def local_address(adapter: ndx.Adapter) -> tuple[str, int]:
    """An IPv4 address of the adapter, any port."""
    return next((a[0], 0) for a in adapter.addresses() if len(a) == 2)


def resident() -> int:
    """Bytes of resident memory of this process."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def counted() -> int:
    """All references of a debug build of Python; 0 elsewhere."""
    return getattr(sys, "gettotalrefcount", lambda: 0)()  # type: ignore[no-any-return]


def grows_no_more(step: Callable[[], object], rounds: int, most: int) -> None:
    """Of at most ten times so many rounds, one takes less than `most` bytes of resident memory.

    Allocators keep what the first rounds have asked for; what leaks makes every time grow."""
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        for _ in range(min(rounds, 100)):
            step()
        return  # it keeps freed memory, to find its use
    grown = []
    for _ in range(10):
        before = resident()
        references = counted()
        for _ in range(rounds):
            step()
        grown.append((resident() - before, counted() - references))
        # A reference that each round leaves behind is seen even if its object is old.
        if grown[-1][0] < most and grown[-1][1] < rounds // 2 and len(grown) > 1:
            return
    raise AssertionError(f"in {rounds} rounds each: {grown} (bytes, references)")


def python(code: str, *, timeout: float = 60.0, ok: bool = True) -> str:
    """What another interpreter prints for this code."""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout, check=False
    )
    if ok:
        assert ran.returncode == 0, ran.stderr
    return ran.stdout + ran.stderr
