# SPDX-License-Identifier: BSD-2-Clause
"""A transport as plugins had it before settings and descriptors."""
import socket

PLUGIN = "plain"


class Wire:
    """TCP"""

    name = "wire"

    def __init__(self, address, timeout):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout)

    def send(self, data, timeout):
        self.socket.settimeout(max(timeout, 0.001))
        self.socket.sendall(data)

    def receive(self, room, timeout):
        self.socket.settimeout(max(timeout, 0.001))
        return self.socket.recv(room)

    def cancel(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self):
        self.socket.close()


class Nothing:
    """says nothing"""

    name = "nothing"
    transport = "wire"

    def __init__(self, exchange):
        pass

    def rdma_info_exchange(self, peer):
        return None, True

    def rdma_ready_exchange(self, peer):
        return None, True


VARIANTS = [Nothing]
TRANSPORTS = [Wire]
