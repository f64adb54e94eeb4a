"""TLS: the certificate that a server shows, and whose certificates clients must show."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Tls"]


@dataclass(frozen=True, slots=True)
class Tls:
    """How connections are protected.

    Attributes:
        cert: The certificate and those that lead from it to one that clients know, as PEM.
        key: Of the certificate; in the same file unless given.
        client_ca: Whose certificates clients must show; none need to unless given.
    """

    cert: Path
    key: Path | None = None
    client_ca: Path | None = None

    def check(self) -> None:
        """Refuse what a server could not be started with.

        Raises:
            InvalidInputError: a file is absent, or not what it should be.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # A key that needs a password would have the server wait for somebody to type it.
            context.load_cert_chain(self.cert, self.key, password=lambda: b"")
            if self.client_ca is not None:
                context.load_verify_locations(self.client_ca)
        except (OSError, ValueError) as exc:
            named = ", ".join(f"'{one}'" for one in (self.cert, self.key, self.client_ca) if one)
            msg = f"no TLS with {named}: {exc}; give PEM files, and a key without a password"
            raise InvalidInputError(msg) from exc

    def options(self) -> dict[str, Any]:
        """Return what uvicorn is told."""
        found: dict[str, Any] = {"ssl_certfile": self.cert, "ssl_keyfile": self.key}
        if self.client_ca is not None:
            found |= {"ssl_ca_certs": str(self.client_ca), "ssl_cert_reqs": ssl.CERT_REQUIRED}
        return found
