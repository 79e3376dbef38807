# SPDX-License-Identifier: BSD-2-Clause
"""Variants that misbehave, each in its own way; the test says what is to come of it."""
import os
import ndx_plugin

PLUGIN = "odd"


class Good:
    """says hello in each stage"""

    name = "good"

    def __init__(self, exchange):
        self.exchange = exchange

    def rdma_info_exchange(self, peer):
        return b"hello", peer is not None

    def rdma_ready_exchange(self, peer):
        return bytearray(b"ready"), True

    def rdma_done_exchange(self, peer):
        return memoryview(b"done"), True


class Raises(Good):
    name = "raises"

    def rdma_info_exchange(self, peer):
        return {}["nothing"], False


class RaisesLater(Good):
    name = "raises-later"

    def rdma_ready_exchange(self, peer):
        raise ndx_plugin.PeerDataError("the peer is not to be trusted")


class RaisesAtOnce(Good):
    name = "raises-at-once"

    def __init__(self, exchange):
        raise MemoryError("no room for it")


class TooLong(Good):
    name = "too-long"

    def rdma_info_exchange(self, peer):
        return bytes(self.exchange.room + 1), False


class NoTuple(Good):
    name = "no-tuple"

    def rdma_info_exchange(self, peer):
        return b"hello"


class NoBytes(Good):
    name = "no-bytes"

    def rdma_info_exchange(self, peer):
        return "text", False


class Endless(Good):
    name = "endless"

    def rdma_info_exchange(self, peer):
        return b"and on it goes", False


class Waits(Good):
    """the server's call returns when something can be read"""

    name = "waits"
    params = [{"name": "fd", "type": "int", "least": -1, "most": 65535, "initial": -1}]

    def rdma_info_exchange(self, peer):
        if self.exchange.role == "server":
            os.read(self.exchange.settings["fd"], 1)
        return super().rdma_info_exchange(peer)


class BadPeer(Good):
    name = "bad-peer"

    def rdma_info_exchange(self, peer):
        self.exchange.peer = ndx_plugin.Description(kind="verbs-rc", qpn=1 << 32)
        return b"", True


class Absent(Good):
    name = "absent"

    @classmethod
    def available(cls):
        return "no card in slot 3"


class Unwritable(Good):
    name = "unwritable"

    @classmethod
    def available(cls):
        return os.fsdecode(b"no card at /dev/\xff")


class Picky(Good):
    name = "picky"
    params = [
        {"name": "flag", "type": "bool", "initial": True},
        {"name": "mode", "type": "choice", "choices": ["fast", "slow"], "initial": "slow"},
        {"name": "text", "type": "string", "least": 0, "most": 9},
    ]

    @classmethod
    def check(cls, settings):
        if settings != {"flag": True, "mode": "slow", "text": None}:
            raise ValueError(f"these will not do: {settings}")


VARIANTS = [Good, Raises, RaisesLater, RaisesAtOnce, TooLong, NoTuple, NoBytes, Endless, Waits,
            BadPeer, Absent, Unwritable, Picky]
