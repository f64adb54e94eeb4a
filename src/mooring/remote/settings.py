"""How a Lance REST server is reached, as its user gives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from mooring.http.address import require_address, trim_address
from mooring.http.authorization import Grant
from mooring.http.properties import check_patience
from mooring.http.reach import Reach
from mooring.identifiers import DELIMITER

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RemoteSettings"]

_LANCE, _MOORING = "lance", "mooring"
_API_KEY = "x-api-key"


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """A server, the right to use it, and how patient to be.

    Attributes:
        uri: The server's address, with or without ``/v1`` at its end.
        delimiter: What joins the names of identifiers in paths.
        mooring_uri: Where the server offers what Lance REST has no route for; ``none`` for nowhere.
        token: A bearer token.
        credential: ``id:secret``; sent as it is, or exchanged for tokens by OAuth2 where somebody
            gives them.
        oauth2_server_uri: Who gives tokens: an address, or a path below the server's.
        scope: What a token is asked for.
        api_key: Sent as ``x-api-key``.
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
    delimiter: str = DELIMITER
    mooring_uri: str | None = None
    token: str | None = field(default=None, repr=False)
    credential: str | None = field(default=None, repr=False)
    oauth2_server_uri: str | None = None
    scope: str | None = None
    api_key: str | None = field(default=None, repr=False)
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
            InvalidInputError: an address is none, or a number is not above zero.
        """
        for one in (self.uri, self.mooring_uri):
            if one is not None and one != "none":
                require_address(one, "a Lance REST server")
        check_patience(self.timeout_s, self.page_size)

    @property
    def address(self) -> str:
        """The server's address, below which ``/v1`` lies."""
        return trim_address(self.uri)

    @property
    def mooring_address(self) -> str | None:
        """Where to look for what Lance REST has no route for; None for nowhere.

        It lies beside Lance REST: ``/mooring`` beside ``/lance``, ``/mooring/NAME`` beside
        ``/lance/NAME``.
        """
        if self.mooring_uri is not None:
            return None if self.mooring_uri == "none" else trim_address(self.mooring_uri)
        parts = urlsplit(self.address)
        names = parts.path.split("/")
        for place in (-1, -2):
            if len(names) >= -place and names[place] == _LANCE:
                names[place] = _MOORING
                return urlunsplit(parts._replace(path="/".join(names)))
        return None

    def reach(self, address: str) -> Reach:
        """Return how one of its addresses is reached."""
        key = {_API_KEY: self.api_key} if self.api_key else {}
        return Reach(
            address,
            headers={**key, **self.headers},
            ca_file=self.ca_file,
            client_cert=self.client_cert,
            client_key=self.client_key,
            verify=self.verify,
            timeout_s=self.timeout_s,
            secrets=tuple(one for one in (self.credential, *key.values()) if one),
        )

    @property
    def grant(self) -> Grant:
        """By what right requests are made."""
        if not self.oauth2_server_uri:
            return Grant(self.token or self.credential, None, "", {})
        found = {
            "token": self.token,
            "credential": self.credential,
            "oauth2-server-uri": self.oauth2_server_uri,
            "scope": self.scope,
        }
        given = {key: value for key, value in found.items() if value}
        return Grant.of(given, self.address)
