# SPDX-License-Identifier: BSD-2-Clause
"""A plugin with a transport of its own: it reaches its peers through a gateway.

The gateway is any HTTP proxy that supports CONNECT. An address is HOST:PORT; the proxy is a
parameter of the variant, or stands before the address: PROXY:PORT/HOST:PORT. Without a proxy the
transport connects to HOST:PORT itself. The server listens on TCP as always; the gateway connects to
it by TCP.
"""
import base64
import json
import socket
import time

from ndx_plugin import Description, PeerDataError

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

    def __init__(self, address, timeout, settings):
        self.deadline = time.monotonic() + timeout
        proxy, slash, target = address.rpartition("/")
        proxy = proxy or settings.get("proxy") or ""
        self.socket = socket.create_connection(split(proxy or target), timeout)
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if proxy:
                self.ask_for(target, settings)
        except BaseException:
            self.socket.close()
            raise

    def ask_for(self, target, settings):
        request = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
        if settings.get("user"):
            login = f"{settings['user']}:{settings['token'] or ''}".encode()
            request += f"Proxy-Authorization: Basic {base64.b64encode(login).decode()}\r\n"
        self.socket.sendall((request + "\r\n").encode())
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

    def fileno(self):
        """The session waits for this descriptor, so that it occupies no thread."""
        return self.socket.fileno()

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


PROXY = [
    {"name": "proxy", "type": "string", "least": 0, "most": 255, "initial": "",
     "help": "HOST:PORT of the gateway; none: connect without one"},
    {"name": "user", "type": "string", "least": 0, "most": 64, "initial": "",
     "help": "name at the gateway"},
    {"name": "token", "type": "string", "least": 0, "most": 255, "initial": "",
     "help": "password at the gateway"},
]


class Json:
    """who each end is, as a JSON object; no queue pair"""

    name = "json"
    transport = "gateway"
    params = [{"name": "who", "type": "string", "least": 1, "most": 64, "initial": "somebody",
               "help": "what the peer is told"}] + PROXY

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

    def reset(self, stage):
        """The transport broke and was connected again: the stage starts again."""


class Described(Json):
    """a queue pair of any kind, as a JSON object"""

    name = "described"
    params = PROXY

    def rdma_info_exchange(self, peer):
        if peer is None:
            own = dict(vars(self.exchange.own))
            own["cookie"], own["gid"] = own["cookie"].hex(), own["gid"].hex()
            return json.dumps(own).encode(), False
        try:
            fields = dict(json.loads(peer))
            fields["cookie"] = bytes.fromhex(fields["cookie"])
            fields["gid"] = bytes.fromhex(fields["gid"])
            self.exchange.peer = Description(**fields)
        except (ValueError, KeyError, TypeError) as fault:
            raise PeerDataError(f"the peer's JSON describes no end: {fault}") from fault
        return None, True


VARIANTS = [Json, Described]
TRANSPORTS = [Gateway]
