"""TLS: a certificate of the server, and certificates of clients."""

from __future__ import annotations

import ipaddress
import ssl
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Thread

import httpx2
import pytest
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

import mooring
from mooring.errors import InvalidInputError
from mooring.server.app import create_app
from mooring.server.running import address_of, bind, uvicorn_config
from mooring.server.settings import ServerSettings
from mooring.server.tls import Tls
from tests.program import invoke


class Authority:
    """Signs certificates."""

    def __init__(self, name: str) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(self.name, self.key, is_authority=True)

    def _sign(self, name, key, *, is_authority=False):
        now = datetime.now(UTC)
        usage = dict.fromkeys(
            (
                "content_commitment",
                "key_encipherment",
                "data_encipherment",
                "key_agreement",
                "encipher_only",
                "decipher_only",
            ),
            False,
        )
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=True,
                    key_cert_sign=is_authority,
                    crl_sign=is_authority,
                    **usage,
                ),
                critical=True,
            )
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
                critical=False,
            )
            .sign(self.key, hashes.SHA256())
        )

    def write(self, directory, name: str, password: bytes | None = None):
        """Sign a certificate, and write it and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        cert, secret = directory / f"{name}.pem", directory / f"{name}.key"
        cert.write_bytes(self._sign(subject, key).public_bytes(Encoding.PEM))
        protection = BestAvailableEncryption(password) if password else NoEncryption()
        secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection))
        return cert, secret

    def write_own(self, directory, name: str):
        path = directory / f"{name}.pem"
        path.write_bytes(self.certificate.public_bytes(Encoding.PEM))
        return path


@contextmanager
def _serving(catalog, tls: Tls):
    settings = ServerSettings(tls=tls)
    with bind("127.0.0.1", 0) as taken:
        server = uvicorn.Server(uvicorn_config(create_app(catalog, settings), settings))
        thread = Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        try:
            yield address_of(taken)
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def ours():
    return Authority("ours")


@pytest.fixture
def catalog(tmp_path):
    return mooring.connect(tmp_path / "lake")


def _trusting(path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(path))


def test_server_shows_its_certificate_and_speaks_nothing_else(tmp_path, ours, catalog):
    ca = ours.write_own(tmp_path, "ca")
    with _serving(catalog, Tls(*ours.write(tmp_path, "server"))) as address:
        uri = f"https://{address}/iceberg/v1/config"
        assert httpx2.get(uri, verify=_trusting(ca)).status_code == 200
        with pytest.raises(httpx2.ConnectError, match="certificate verify failed"):
            httpx2.get(uri)
        with pytest.raises(httpx2.HTTPError):
            httpx2.get(f"http://{address}/iceberg/v1/config")


def test_only_clients_with_a_certificate_are_answered(tmp_path, ours, catalog):
    theirs = Authority("theirs")
    ca = ours.write_own(tmp_path, "ca")
    tls = Tls(*ours.write(tmp_path, "server"), client_ca=ca)
    with _serving(catalog, tls) as address:
        uri = f"https://{address}/lance/v1/table"
        known = _trusting(ca)
        known.load_cert_chain(*ours.write(tmp_path, "ada"))
        assert httpx2.get(uri, verify=known).status_code == 200
        stranger = _trusting(ca)
        stranger.load_cert_chain(*theirs.write(tmp_path, "eve"))
        for context in (_trusting(ca), stranger):
            with pytest.raises(httpx2.HTTPError):
                httpx2.get(uri, verify=context)


def test_files_that_are_none_are_told_before_anything_is_served(tmp_path, ours):
    cert, key = ours.write(tmp_path, "server")
    other = ours.write(tmp_path, "other")[1]
    locked = ours.write(tmp_path, "locked", b"password")
    broken = tmp_path / "broken.pem"
    broken.write_text("x")
    Tls(cert, key).check()
    for wrong in (
        Tls(tmp_path / "absent", key),
        Tls(cert, other),
        Tls(cert),
        Tls(*locked),
        Tls(cert, key, broken),
        Tls(broken, key),
    ):
        with pytest.raises(InvalidInputError, match="no TLS with"):
            wrong.check()
    done = invoke("serve", tmp_path / "lake", "--port", "0", "--tls-key", key)
    assert done.exit_code == 2
    assert "--tls-cert" in done.stderr
