# SPDX-License-Identifier: BSD-2-Clause
"""What happens to the process: fork, sub-interpreters, Ctrl-C, the end of the interpreter."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path

import pytest
from conftest import PATIENCE, local_address, python
from pairs import unconnected

import ndx

ROOT = Path(__file__).resolve().parents[2]


def in_child(function: object) -> int:
    """The exit code of a forked child that runs this function."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = function()  # type: ignore[operator]
        finally:
            os._exit(code)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        threading.Event().wait(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -1


def test_a_forked_child_is_refused(adapter: ndx.Adapter) -> None:
    end = unconnected(adapter)

    def child() -> int:
        refused = 0
        for call in (
            lambda: ndx.Adapter("loop"),
            ndx.adapters,
            adapter.query,
            lambda: end.cq.wait(1),
            lambda: end.qp.receive(end.region),
        ):
            try:
                call()
            except ndx.ForkedError as error:
                refused += "spawn" in error.text
        end.qp.close()
        end.region.close()
        adapter.close()
        return 0 if refused == 5 else 1

    assert in_child(child) == 0
    end.qp.receive(end.region)


def test_a_child_releases_a_batch_of_any_length() -> None:
    with ndx.Adapter("loop") as adapter, ndx.Sender(adapter, slot_size=64) as sender:
        with ndx.Receiver(adapter, slot_count=1024, slot_size=64) as receiver:
            with ndx.Listener(adapter, local_address(adapter)) as listener:
                accepts = threading.Thread(target=receiver.accept, args=(listener,))
                accepts.start()
                sender.connect(listener.address, timeout=PATIENCE)
                accepts.join(PATIENCE)
            batch = ndx.Batch()
            for _ in range(1000):  # 64 are released with one call
                sender.send(b"x", timeout=PATIENCE)
                batch.append(receiver.next(PATIENCE))

            def child() -> int:
                batch.release()
                return 0 if all(frame.released for frame in batch) else 1

            assert in_child(child) == 0
            batch.release()


def test_a_child_that_was_forked_before_the_first_call_is_not() -> None:
    said = python(
        "import os, ndx\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    ndx.Adapter('loop').close()\n"
        "    os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    assert said.strip() == "7"


def test_a_sub_interpreter_is_refused() -> None:
    interpreters = pytest.importorskip("_xxsubinterpreters")
    import_it = f"import sys; sys.path[:] = {sys.path!r}; import ndx"
    new = interpreters.create()
    with pytest.raises(interpreters.RunFailedError, match="main interpreter"):
        interpreters.run_string(new, import_it)
    interpreters.destroy(new)


def test_a_free_threaded_build_is_refused() -> None:
    """Debian 12 has none: what tells such a build apart is set by hand."""
    said = python("import sys\nsys.abiflags += 't'\nimport ndx\n", ok=False)
    assert "ImportError: ndx does not work on a free-threaded build" in said


def test_a_free_threaded_build_is_refused_by_the_compiler() -> None:
    compiler = shutil.which("cc")
    include = sysconfig.get_path("include")
    if compiler is None or not os.path.exists(os.path.join(include, "Python.h")):
        pytest.skip("cc or the headers of Python are missing")
    source = ROOT / "shims" / "python" / "src" / "module.c"
    command = [compiler, "-fsyntax-only", "-std=c11", "-D_GNU_SOURCE", "-DPy_LIMITED_API=0x030B0000"]
    command += ["-I", str(ROOT / "api"), "-isystem", include, str(source)]
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    for more, refused in (([], False), (["-DPy_GIL_DISABLED=1"], True)):
        ran = subprocess.run(
            command + more, env=env, capture_output=True, text=True, timeout=60, check=False
        )
        assert (ran.returncode != 0) == refused, ran.stderr
        assert ("free-threaded build" in ran.stderr) == refused


@pytest.mark.parametrize("wait", ["results", "request", "connect"])
def test_ctrl_c_ends_a_wait(adapter: ndx.Adapter, wait: str) -> None:
    end = unconnected(adapter)
    with ndx.Listener(adapter, local_address(adapter)) as listener:
        calls = {
            "results": lambda: end.cq.wait(PATIENCE),
            "request": lambda: listener.request(PATIENCE),
            "connect": lambda: end.connector.connect(
                end.qp, listener.address, timeout=PATIENCE
            ),
        }
        begun = time.monotonic()
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            calls[wait]()
        assert time.monotonic() - begun < PATIENCE / 2
        timer.join()
    assert end.qp.query()["state"] is ndx.QueuePairState.UNCONNECTED


@pytest.mark.parametrize("uri", ["loop", "ofi:tcp?iface=lo"])
def test_the_interpreter_ends_with_live_objects(uri: str) -> None:
    said = python(
        "import ndx, threading\n"
        f"adapter = ndx.Adapter({uri!r})\n"
        "host = next(a[0] for a in adapter.addresses() if len(a) == 2)\n"
        "listener = ndx.Listener(adapter, (host, 0))\n"
        "cqs = [ndx.CompletionQueue(adapter) for _ in range(2)]\n"
        "qps = [ndx.QueuePair(adapter, cq) for cq in cqs]\n"
        "region = adapter.register(bytearray(100))\n"
        "qps[0].receive(region, context=qps)\n"
        "thread = threading.Thread(target=lambda: globals().update(c=listener.accept(qps[1])))\n"
        "thread.start()\n"
        "connector = ndx.Connector(adapter)\n"
        "connector.connect(qps[0], listener.address)\n"
        "thread.join()\n"
        "waiting = threading.Thread(target=cqs[1].wait, daemon=True)\n"
        "waiting.start()\n"
        "print('alive')\n"
    )
    assert said.strip() == "alive"


def test_the_peer_of_an_interpreter_that_ends_gets_a_goodbye(adapter: ndx.Adapter) -> None:
    if adapter.query().provider == "loop":
        pytest.skip("loop does not leave its process")
    end = unconnected(adapter)
    with ndx.Listener(adapter, local_address(adapter)) as listener:
        taken: list[ndx.Connector] = []
        thread = threading.Thread(
            target=lambda: taken.append(listener.accept(end.qp, timeout=PATIENCE))
        )
        thread.start()
        python(
            "import ctypes, ndx\n"
            f"adapter = ndx.Adapter({adapter.query().uri!r})\n"
            "qp = ndx.QueuePair(adapter, ndx.CompletionQueue(adapter))\n"
            "connector = ndx.Connector(adapter)\n"
            f"connector.connect(qp, {listener.address!r})\n"
            "for each in (qp, connector, adapter):\n"
            "    ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))  # nothing drops them\n"
        )
        thread.join(PATIENCE)
    assert taken[0].wait_disconnected(PATIENCE) is ndx.DisconnectReason.GRACEFUL
