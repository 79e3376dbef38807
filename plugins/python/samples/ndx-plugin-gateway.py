# SPDX-License-Identifier: BSD-2-Clause
"""A plugin with a transport of its own: it reaches its peers through a gateway.

The gateway is any HTTP proxy that supports CONNECT. An address is PROXY:PORT/HOST:PORT, or
HOST:PORT without a gateway. The server listens on TCP as always; the gateway connects to it by TCP.
"""
import json
import socket
import time

from ndx_plugin import PeerDataError

PLUGIN = "gateway"
VERSION = "1.0"
VENDOR = "NDX"


def split(address):
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError(f"{address!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


class Gateway:
    """The host maps exceptions of the socket module: a TimeoutError is a time-out, a ConnectionError
    a connection that broke."""

    name = "gateway"

    def __init__(self, address, timeout):
        self.deadline = time.monotonic() + timeout
        proxy, slash, target = address.partition("/")
        self.socket = socket.create_connection(split(proxy), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if slash:
            self.ask_for(target)

    def ask_for(self, target):
        self.socket.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        answer = b""
        # Byte by byte: the bytes after the answer belong to the session.
        while not answer.endswith(b"\r\n\r\n"):
            self.socket.settimeout(max(self.deadline - time.monotonic(), 0.001))
            byte = self.socket.recv(1)
            if not byte or len(answer) > 4096:
                raise ConnectionRefusedError("the gateway does not answer as a proxy does")
            answer += byte
        status = answer.split(b"\r\n")[0].decode("ascii", "replace")
        if status.split(" ")[1:2] != ["200"]:
            raise ConnectionRefusedError(f"the gateway says: {status}")

    def send(self, data, timeout):
        self.socket.settimeout(max(timeout, 0.001))
        self.socket.sendall(data)

    def receive(self, room, timeout):
        self.socket.settimeout(max(timeout, 0.001))
        return self.socket.recv(room)

    def cancel(self):
        """Called by another thread: the calls above that wait return at once."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self):
        self.socket.close()


class Json:
    """who each end is, as a JSON object; no queue pair"""

    name = "json"
    transport = "gateway"
    params = [{"name": "who", "type": "string", "least": 1, "most": 64, "initial": "somebody",
               "help": "what the peer is told"}]

    def __init__(self, exchange):
        self.exchange = exchange
        self.peer = None

    def rdma_info_exchange(self, peer):
        if peer is None:
            return json.dumps({"who": self.exchange.settings["who"]}).encode(), False
        try:
            self.peer = json.loads(peer)["who"]
        except (ValueError, KeyError, TypeError) as fault:
            raise PeerDataError(f"the peer's JSON does not say who it is: {fault}") from fault
        return None, True

    def rdma_ready_exchange(self, peer):
        return None, True


VARIANTS = [Json]
TRANSPORTS = [Gateway]
