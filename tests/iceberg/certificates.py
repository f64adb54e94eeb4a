"""Certificates of an authority that only a test knows."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Authority"]


@dataclass(frozen=True)
class Issued:
    """Files of a certificate and its key."""

    cert: Path
    key: Path


class Authority:
    """Signs certificates; `ca_file` is its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("an authority of tests")
        self.ca_file = directory / "ca.pem"
        own = self._builder(self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.ca_file.write_bytes(_pem(own.sign(self._key, hashes.SHA256())))

    def issue(self, name: str) -> Issued:
        """Sign a certificate for this machine."""
        key = ec.generate_private_key(ec.SECP256R1())
        here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        signed = (
            self._builder(_name(name), key.public_key())
            .add_extension(here, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        found = Issued(self._directory / f"{name}.pem", self._directory / f"{name}.key")
        found.cert.write_bytes(_pem(signed))
        found.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return found

    def server_context(self, *, asks_clients: bool = False) -> ssl.SSLContext:
        """Return what a server shows, and whether it wants to be shown one, too."""
        issued = self.issue("server")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.ca_file)
        context.load_cert_chain(issued.cert, issued.key)
        context.verify_mode = ssl.CERT_REQUIRED if asks_clients else ssl.CERT_NONE
        return context

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        now = datetime.now(tz=UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
        )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
