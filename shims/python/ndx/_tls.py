# SPDX-License-Identifier: BSD-2-Clause
"""TLS of negotiated sessions and their servers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Union

from ._enums import TlsVerify

_Path = Union[str, "os.PathLike[str]", None]


@dataclass(frozen=True)
class Tls:
    """TLS 1.3 of a Session or a Server. The files are read when that is created.

    cert_file, key_file -- the own certificate with those up to the CA, and its key, in PEM; only its
                   owner may read the key. A server needs these or psk_file
    ca_file     -- certificates of the CAs whose certificates the peer may have
    psk_file    -- pre-shared keys, a line "identity:key" each, the key in hexadecimal digits;
                   only its owner may read it. A client's file has one
    verify      -- TlsVerify: what the peer has to prove
    server_name -- of a client: the name that the server's certificate must have; None: the host of
                   its address
    peer_names  -- of a server: names of which a client's certificate must have one; (): any
    no_resumption -- True: a whole handshake for each transport, none that resumes an earlier one

    docs/security.md has the rules. Session() and Server() raise Error with INVALID_CONFIG or
    ACCESS_VIOLATION and others (a file that is missing, malformed or too open; the text says
    which), NotSupportedError (built without TLS).
    """

    cert_file: _Path = None
    key_file: _Path = None
    ca_file: _Path = None
    psk_file: _Path = None
    verify: TlsVerify = TlsVerify.REQUIRED
    server_name: str | None = None
    peer_names: tuple[str, ...] = ()
    no_resumption: bool = False

    def _arguments(self) -> tuple[Any, ...]:
        """As the extension takes them."""
        files = (self.cert_file, self.key_file, self.ca_file, self.psk_file)
        paths = (None if file is None else os.fspath(file) for file in files)
        names = tuple(self.peer_names)
        verify = int(TlsVerify(self.verify))
        return (*paths, verify, self.server_name, names, bool(self.no_resumption))


def arguments_of(tls: Tls | None) -> tuple[Any, ...] | None:
    """As the extension takes them; None: no TLS."""
    return None if tls is None else tls._arguments()
