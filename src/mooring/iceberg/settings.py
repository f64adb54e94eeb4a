"""How an Iceberg REST catalog is reached, as its user gives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mooring.http.address import require_address, trim_address
from mooring.http.properties import check_patience
from mooring.http.reach import Reach

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ClientSettings"]

_DEFAULT_SCOPE = "catalog"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """A server, the right to use it, and how patient to be.

    Attributes:
        uri: The server's address, with or without ``/v1`` at its end.
        warehouse: Which of the server's catalogs; some have one only.
        prefix: What goes before everything in paths, where the server's word is not to count.
        token: A bearer token.
        credential: ``id:secret``, or a secret alone, for which the server gives tokens by OAuth2.
        scope: What a token is asked for.
        oauth2_server_uri: Who gives tokens: an address, or a path below the server's.
        audience: For whom tokens are; only some servers ask.
        resource: For what tokens are; only some servers ask.
        headers: Sent with every request.
        ca_file: The authorities whose certificates count, instead of the system's.
        client_cert: A certificate to show to the server.
        client_key: Its key, where the file of the certificate does not hold it.
        verify: Whether the server's certificate is looked at.
        timeout_s: How long an answer may take.
        page_size: How many names a page of a listing is to have.
        delegation: Whether credentials for the storage are asked for.
    """

    uri: str
    warehouse: str | None = None
    prefix: str | None = None
    token: str | None = field(default=None, repr=False)
    credential: str | None = field(default=None, repr=False)
    scope: str = _DEFAULT_SCOPE
    oauth2_server_uri: str | None = None
    audience: str | None = None
    resource: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    verify: bool = True
    timeout_s: float = 30.0
    page_size: int = 1000
    delegation: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises:
            InvalidInputError: the address is none, or a number is not above zero.
        """
        require_address(self.uri, "an Iceberg REST catalog")
        check_patience(self.timeout_s, self.page_size)

    @property
    def address(self) -> str:
        """The server's address, below which ``/v1`` lies."""
        return trim_address(self.uri)

    @property
    def reach(self) -> Reach:
        """How its server is reached, as every server is."""
        delegation = {"X-Iceberg-Access-Delegation": "vended-credentials"}
        return Reach(
            self.address,
            headers={**(delegation if self.delegation else {}), **self.headers},
            ca_file=self.ca_file,
            client_cert=self.client_cert,
            client_key=self.client_key,
            verify=self.verify,
            timeout_s=self.timeout_s,
        )

    def given(self) -> dict[str, str]:
        """Return what was given and a server's configuration may add to, as it names it."""
        scope = None if self.scope == _DEFAULT_SCOPE else self.scope
        found = {
            "warehouse": self.warehouse,
            "prefix": self.prefix,
            "token": self.token,
            "credential": self.credential,
            "scope": scope,
            "oauth2-server-uri": self.oauth2_server_uri,
            "audience": self.audience,
            "resource": self.resource,
        }
        return {key: value for key, value in found.items() if value}
