# SPDX-License-Identifier: BSD-2-Clause
"""The example plugin in Python; its peer may be the one in C (plugins/example).

docs/writing-a-plugin.md explains the file from top to bottom.
"""
import ipaddress
import struct

from ndx_plugin import ConfigurationError, Description, PeerDataError, log

PLUGIN = "example"
VERSION = "1.0"
VENDOR = "NDX"

HELLO, OFFER, CONFIRM = 1, 2, 3
LIMITS, MEMORY, RENDEZVOUS, ADDRESS, QUEUE_PAIR, LATER = 1, 2, 3, 4, 5, 128


def message(step, body):
    return struct.pack(">4sBBH", b"EXMP", 1, step, len(body)) + body


def open_message(data, step):
    """The body of a message; PeerDataError if it is malformed or of another step."""
    if len(data) < 8:
        raise PeerDataError("from the peer came no message of this format")
    magic, version, got, length = struct.unpack_from(">4sBBH", data)
    if (magic, version, got, length) != (b"EXMP", 1, step, len(data) - 8):
        raise PeerDataError(f"from the peer came no message of step {step}")
    return data[8:]


def write_offer(own):
    fields = [(LIMITS, struct.pack(">II", own.inbound_read_limit, own.outbound_read_limit))]
    if own.memory[1] > 0:
        fields.append((MEMORY, struct.pack(">QQI", *own.memory)))
    if own.kind == "rendezvous":
        fields.append((RENDEZVOUS, own.cookie + own.stack.encode()))
        if own.address is not None:
            packed = ipaddress.ip_address(own.address[0]).packed
            fields.append((ADDRESS, struct.pack(">H", own.address[1]) + packed))
    elif own.kind == "verbs-rc":
        fields.append((QUEUE_PAIR, struct.pack(">IIIH", own.qpn, own.psn, own.mtu, own.lid)
                       + own.gid))
    return b"".join(bytes((kind, len(value))) + value for kind, value in fields)


def read_fields(body):
    fields = {}
    while body:
        if len(body) < 2 or len(body) - 2 < body[1]:
            raise PeerDataError("from the peer came a field that is cut off")
        kind, value, body = body[0], body[2:2 + body[1]], body[2 + body[1]:]
        if kind >= LATER:
            continue
        if kind in fields or not LIMITS <= kind <= QUEUE_PAIR:
            raise PeerDataError("from the peer came a field that is unknown, or there twice")
        fields[kind] = value
    return fields


def read_offer(body):
    fields = read_fields(body)
    try:
        inbound, outbound = struct.unpack(">II", fields[LIMITS])
        peer = Description(inbound_read_limit=inbound, outbound_read_limit=outbound)
        if MEMORY in fields:
            peer.memory = struct.unpack(">QQI", fields[MEMORY])
        if RENDEZVOUS in fields:
            peer.kind = "rendezvous"
            peer.cookie = fields[RENDEZVOUS][:16]
            peer.stack = fields[RENDEZVOUS][16:].decode("ascii")
        if ADDRESS in fields:
            port, = struct.unpack_from(">H", fields[ADDRESS])
            peer.address = (str(ipaddress.ip_address(fields[ADDRESS][2:])), port)
        if QUEUE_PAIR in fields:
            peer.kind = "verbs-rc"
            peer.qpn, peer.psn, peer.mtu, peer.lid, peer.gid = struct.unpack(
                ">IIIH16s", fields[QUEUE_PAIR])
        return peer
    except (KeyError, ValueError, struct.error) as fault:
        raise PeerDataError(f"the peer's offer makes no sense: {fault}") from fault


class ThreeRound:
    """a ring of slots, agreed on in three rounds"""

    name = "three-round"
    params = [
        {"name": "slots", "type": "int", "least": 1, "most": 65536, "initial": 64,
         "help": "slots of the ring, at most"},
        {"name": "slot-size", "type": "int", "least": 64, "most": 1 << 20, "initial": 4096,
         "help": "bytes of a slot, at most"},
        {"name": "label", "type": "string", "least": 0, "most": 32, "initial": "",
         "help": "what the peer's log calls this end"},
    ]

    @classmethod
    def check(cls, settings):
        """The framework has checked each range. Only the plugin can check the combination."""
        if settings["slots"] * settings["slot-size"] > 1 << 32:
            raise ConfigurationError("slots x slot-size is above 4 GiB")

    def __init__(self, exchange):
        self.exchange = exchange
        self.own = (exchange.settings["slots"], exchange.settings["slot-size"])
        self.agreed = None
        self.label = ""

    def rdma_info_exchange(self, peer):
        """Called with None first, then with each message of the peer, until it returns True."""
        if peer is None:
            label = self.exchange.settings["label"].encode("ascii")
            return message(HELLO, struct.pack(">IIB", *self.own, len(label)) + label), False
        return (self.offer, self.confirm, self.complete)[self.exchange.round - 1](peer)

    def offer(self, peer):
        body = open_message(peer, HELLO)
        if len(body) < 9 or len(body) != 9 + body[8]:
            raise PeerDataError("from the peer came a hello of the wrong length")
        slots, slot_size = struct.unpack_from(">II", body)
        self.label = body[9:].decode("ascii", "replace")
        self.agreed = (min(slots, self.own[0]), min(slot_size, self.own[1]))
        return message(OFFER, write_offer(self.exchange.own)), False

    def confirm(self, peer):
        self.exchange.peer = read_offer(open_message(peer, OFFER))
        return message(CONFIRM, struct.pack(">II", *self.agreed)), False

    def complete(self, peer):
        if open_message(peer, CONFIRM) != struct.pack(">II", *self.agreed):
            raise PeerDataError("the peer makes another ring of both hellos")
        log("info", f"session {self.exchange.session}: {self.agreed[0]} slots of "
            f"{self.agreed[1]} bytes with \"{self.label}\"")
        return None, True

    def rdma_ready_exchange(self, peer):
        """The queue pairs are connected: a plugin for a device would arm the device here."""
        return None, True

    def rdma_done_exchange(self, peer):
        """The transfers are over: release what was armed for them."""
        return None, True

    def reset(self, stage):
        """The transport broke and was connected again: the stage starts again."""
        if stage == "info":
            self.agreed = None


VARIANTS = [ThreeRound]
