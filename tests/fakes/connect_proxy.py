#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An HTTP proxy that supports CONNECT, asks for a name and a password, and cuts connections.

usage: connect_proxy.py USER TOKEN CUTS

Prints "listening on ADDRESS:PORT", then a line for each connection and each cut. CUTS is how often
the proxy cuts a session's transport in each stage (connect, info, validate, ready), at the first
frames of that stage: in turn before the frame, in its middle and behind it. Ends with its standard
input.
"""
import base64
import select
import socket
import struct
import sys
import threading

HEADER = 20
HELLO, WELCOME, ERROR, SESSION_END, GOODBYE, ALIVE = 1, 2, 5, 6, 7, 8
STAGES = ("info", "validate", "ready", "done")


class Cutter:
    """What is to be cut yet; shared by all connections."""

    def __init__(self, cuts):
        self.lock = threading.Lock()
        self.left = dict.fromkeys(("connect", "info", "validate", "ready"), cuts)
        self.cuts = 0

    def take(self, header, upstream):
        """None, or how many of the frame's bytes may pass, as a fraction."""
        kind, stage, flags = header[5], header[6], header[7]
        with self.lock:
            if kind in (HELLO, WELCOME):
                part = "connect"
            elif kind in (ERROR, SESSION_END, GOODBYE) or (kind == ALIVE and stage == 2):
                part = None  # with that ALIVE the session is up
            else:
                part = STAGES[stage]
            if not self.left.get(part):
                return None
            self.left[part] -= 1
            self.cuts += 1
            passes = self.cuts % 3 / 2
            print(f"cut {part}, {'client' if upstream else 'server'}, passes {passes}", flush=True)
            return passes


def pump(client, server, cutter):
    """Both ways, whole frames only, until one side ends or the connection is cut."""
    waiting = {client: b"", server: b""}
    while True:
        for source in select.select([client, server], [], [])[0]:
            data = source.recv(65536)
            if not data:
                return
            waiting[source] += data
            to = server if source is client else client
            while len(waiting[source]) >= HEADER:
                length = HEADER + struct.unpack_from(">I", waiting[source], 16)[0]
                if len(waiting[source]) < length:
                    break
                frame, waiting[source] = waiting[source][:length], waiting[source][length:]
                passes = cutter.take(frame, source is client)
                if passes is not None:
                    to.sendall(frame[:int(length * passes)])
                    return
                to.sendall(frame)


def read_request(client):
    request = b""
    while not request.endswith(b"\r\n\r\n"):
        byte = client.recv(1)
        if not byte or len(request) > 4096:
            raise ConnectionError("this is no request")
        request += byte
    return request.decode("ascii").split("\r\n")


def serve(client, login, cutter):
    with client:
        lines = read_request(client)
        method, target, _ = lines[0].split(" ")
        if method != "CONNECT":
            client.sendall(b"HTTP/1.1 405 only CONNECT\r\n\r\n")
            return
        if f"Proxy-Authorization: Basic {login}" not in lines:
            print("refused: wrong name or password", flush=True)
            client.sendall(b"HTTP/1.1 407 who are you\r\n\r\n")
            return
        host, _, port = target.rpartition(":")
        with socket.create_connection((host.strip("[]"), int(port)), 10) as server:
            server.settimeout(None)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            print(f"connected to {target}", flush=True)
            client.sendall(b"HTTP/1.1 200 go on\r\n\r\n")
            pump(client, server, cutter)


def serve_quietly(client, login, cutter):
    try:
        serve(client, login, cutter)
    except (OSError, ValueError) as fault:
        print(f"ended: {fault}", flush=True)


def main():
    login = base64.b64encode(f"{sys.argv[1]}:{sys.argv[2]}".encode()).decode()
    cutter = Cutter(int(sys.argv[3]))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"listening on 127.0.0.1:{listener.getsockname()[1]}", flush=True)
        while True:
            ready = select.select([listener, sys.stdin], [], [])[0]
            if sys.stdin in ready and not sys.stdin.buffer.read1(1):
                return
            if listener in ready:
                threading.Thread(target=serve_quietly, daemon=True,
                                 args=(listener.accept()[0], login, cutter)).start()


main()
