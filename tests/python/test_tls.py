# SPDX-License-Identifier: BSD-2-Clause
"""TLS of sessions and servers, and plaintext beyond the loopback."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import grows_no_more
from pairs import unconnected

import ndx


@pytest.fixture(name="variant")
def _variant() -> ndx.Variant:
    return ndx.Negotiation().variant("example/three-round")


def keys(path: Path, *lines: str) -> Path:
    """A file of pre-shared keys."""
    path.touch(0o600)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def talk(variant: ndx.Variant, server_tls: ndx.Tls | None, client_tls: ndx.Tls | None) -> str:
    """The state of the queue pair after a session."""
    with ndx.Adapter("loop") as adapter:
        kept = []

        def on_open(session: object) -> tuple[object, ...]:
            kept.append(unconnected(adapter))
            return kept[-1].connector, kept[-1].qp

        with ndx.Server("127.0.0.1:0", variant, on_open=on_open, tls=server_tls) as server:
            end = unconnected(adapter)
            host, port = server.address[:2]
            with ndx.Session(
                variant,
                f"{host}:{port}",
                connector=end.connector,
                qp=end.qp,
                tls=client_tls,
                attempts=1,
            ) as session:
                session.run()
                state: str = end.qp.query()["state"].name
                end.connector.disconnect()
                return state


@pytest.fixture(name="psk")
def _psk(tmp_path: Path, variant: ndx.Variant) -> tuple[ndx.Tls, ndx.Tls]:
    """TLS of a server with two keys, and of a client with one of them."""
    server = keys(tmp_path / "server", "one:" + "11" * 32, "two:" + "22" * 32)
    client = keys(tmp_path / "client", "two:" + "22" * 32)
    pair = ndx.Tls(psk_file=server), ndx.Tls(psk_file=str(client))
    try:
        ndx.Server("127.0.0.1:0", variant, tls=pair[0]).close()
    except ndx.NotSupportedError:
        pytest.skip("built without TLS")
    return pair


def test_a_pre_shared_key_opens_a_session(
    variant: ndx.Variant, psk: tuple[ndx.Tls, ndx.Tls], tmp_path: Path
) -> None:
    assert talk(variant, *psk) == "CONNECTED"
    wrong = ndx.Tls(psk_file=keys(tmp_path / "wrong", "two:" + "33" * 32))
    for client in (wrong, None):
        with pytest.raises(ndx.SessionError):
            talk(variant, psk[0], client)


def test_certificates_open_a_session(
    variant: ndx.Variant, psk: tuple[ndx.Tls, ndx.Tls], tmp_path: Path
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is missing")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    make = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test"
    names = "subjectAltName=DNS:detector,IP:127.0.0.1"
    subprocess.run(
        ["openssl", *make.split(), "-addext", names, "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
        timeout=60,
    )
    key.chmod(0o600)
    both = {"cert_file": cert, "key_file": key, "ca_file": cert}
    server = ndx.Tls(**both, peer_names=("other", "detector"))
    assert talk(variant, server, ndx.Tls(**both)) == "CONNECTED"
    assert talk(variant, server, ndx.Tls(**both, server_name="detector")) == "CONNECTED"
    with pytest.raises(ndx.SessionError):
        talk(variant, server, ndx.Tls(**both, server_name="somebody.else"))
    with pytest.raises(ndx.SessionError):
        talk(variant, ndx.Tls(**both, peer_names=("other",)), ndx.Tls(**both))
    key.chmod(0o644)
    with pytest.raises(ndx.Error, match="key.pem"):
        ndx.Server("127.0.0.1:0", variant, tls=server)


def test_plaintext_stays_on_the_loopback_unless_it_is_allowed(variant: ndx.Variant) -> None:
    with pytest.raises(ndx.Error) as caught:
        ndx.Server("0.0.0.0:0", variant)
    assert caught.value.status is ndx.Status.INVALID_CONFIG
    with ndx.Server("0.0.0.0:0", variant, allow_plaintext=True) as server:
        assert server.address[1] > 0
    session = ndx.Session(variant, "192.0.2.1:7", attempts=1, connect_timeout_ms=50)
    with pytest.raises(ndx.SessionError) as refused:
        session.connect()
    assert refused.value.status is ndx.Status.INVALID_CONFIG
    session = ndx.Session(
        variant, "192.0.2.1:7", attempts=1, connect_timeout_ms=50, allow_plaintext=True
    )
    with pytest.raises(ndx.SessionError) as tried:
        session.connect()
    assert tried.value.status is not ndx.Status.INVALID_CONFIG


def test_arguments_are_checked(variant: ndx.Variant, tmp_path: Path) -> None:
    with pytest.raises(ndx.Error):
        ndx.Server("127.0.0.1:0", variant, tls=ndx.Tls(psk_file=tmp_path / "none"))
    for wrong in (
        ndx.Tls(verify=5),  # type: ignore[arg-type]
        ndx.Tls(cert_file="a\0b"),
    ):
        with pytest.raises(ValueError):
            ndx.Server("127.0.0.1:0", variant, tls=wrong)
    with pytest.raises(TypeError):
        ndx.Session(variant, "127.0.0.1:1", tls=ndx.Tls(peer_names=(7,)))  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        ndx.Session(variant, "127.0.0.1:1", tls="cert.pem")  # type: ignore[arg-type]


def test_tls_leaves_no_memory_behind(
    variant: ndx.Variant, psk: tuple[ndx.Tls, ndx.Tls]
) -> None:
    tls = ndx.Tls(psk_file=psk[0].psk_file, peer_names=("a" * 500, "b" * 500))

    def step() -> None:
        ndx.Server("127.0.0.1:0", variant, tls=psk[0]).close()
        with pytest.raises(ndx.InvalidParameterError, match="names"):
            ndx.Server("127.0.0.1:0", variant, tls=tls)  # names without certificates
        with pytest.raises(ndx.Error):
            ndx.Session(variant, "127.0.0.1:1", tls=ndx.Tls(psk_file="/none"))

    grows_no_more(step, 60, 200_000)
