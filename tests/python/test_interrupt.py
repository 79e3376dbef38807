# SPDX-License-Identifier: BSD-2-Clause
"""Ctrl-C in any place of a call."""

from __future__ import annotations

import socket

from interrupts import Interrupt

import ndx


def test_ctrl_c_is_no_other_error() -> None:
    negotiation = ndx.Negotiation()
    variant = negotiation.variant("example/three-round")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = "127.0.0.1:%d" % silent.getsockname()[1]
        with ndx.Session(variant, address) as session, ndx.SessionManager(negotiation) as manager:
            manager.add(variant, address)
            for look in (lambda: session.failure, manager.sessions):
                for place in range(1000):
                    interrupted = False
                    interrupt = Interrupt(place)
                    try:
                        with interrupt:
                            look()
                    except KeyboardInterrupt:
                        interrupted = True
                    assert interrupted is interrupt.raised
                    if not interrupted:
                        break
                assert place > 5
