"""Who is asking: clients prove themselves once, and then show a token that this server signed.

A token holds the client's id and when it ends; the key that signs is the server's own and is made
when it starts, so that a restart ends all tokens and clients ask for another. What a client may do
is looked up each time.

Spec: iceberg-rest-openapi, "getToken"; RFC 6749, section 4.4; RFC 8693.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from mooring.clock import SystemClock
from mooring.server.settings import Role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mooring.clock import Clock
    from mooring.server.settings import Client

__all__ = ["ANYBODY", "Authority", "Expired", "Identity"]

_KEY_BYTES = 32
_BEARER = "bearer"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks, as far as that is known.

    Attributes:
        subject: In whose name changes are recorded; None where nobody is asked for a name.
        role: What may be done.
    """

    subject: str | None
    role: Role


ANYBODY = Identity(None, Role.WRITER)


@dataclass(frozen=True, slots=True)
class Expired:
    """A token that was good once."""


class _Claims(msgspec.Struct, frozen=True, array_like=True):
    subject: str
    ends_at_ms: int
    nonce: str


class Authority:
    """Gives out tokens, and knows its own."""

    def __init__(
        self,
        clients: Iterable[Client],
        *,
        token_ttl_s: int,
        key: bytes | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Know some clients.

        Args:
            clients: Who may use the server; anybody where there are none.
            token_ttl_s: How long a token is good for.
            key: What signs tokens; random unless given.
            clock: Ends them.
        """
        self._clients = {client.id: client for client in clients}
        self._key = key or secrets.token_bytes(_KEY_BYTES)
        self._clock = clock or SystemClock()
        self.token_ttl_s = token_ttl_s

    @property
    def asks_nobody(self) -> bool:
        """Whether anybody may do anything."""
        return not self._clients

    def prove(self, client_id: str, secret: str) -> str | None:
        """Return the client's id where the secret is right; the time tells nothing about it."""
        client = self._clients.get(client_id)
        expected = client.secret if client else ""
        is_right = hmac.compare_digest(_digest(expected), _digest(secret))
        return client_id if client and is_right else None

    def issue(self, subject: str) -> str:
        """Return a token for a client that proved itself."""
        ends_at_ms = self._clock.now_ms() + self.token_ttl_s * 1000
        claims = _encode(
            msgspec.json.encode(_Claims(subject, ends_at_ms, secrets.token_urlsafe(8)))
        )
        return f"{claims}.{_encode(self._sign(claims))}"

    def identify(self, authorization: str | None) -> Identity | Expired | None:
        """Tell who shows a header; None where nobody knows."""
        if self.asks_nobody:
            return ANYBODY
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != _BEARER:
            return None
        return self.read(token.strip())

    def read(self, token: str) -> Identity | Expired | None:
        """Tell whose a token is; None where it is none of this server's."""
        text, _, signature = token.partition(".")
        given = _decode(signature)
        if given is None or not hmac.compare_digest(self._sign(text), given):
            return None
        claims = msgspec.json.decode(_decode(text) or b"", type=_Claims)
        client = self._clients.get(claims.subject)
        if client is None:
            return None
        if claims.ends_at_ms <= self._clock.now_ms():
            return Expired()
        return Identity(client.id, client.role)

    def _sign(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode("utf-8", "surrogateescape"), sha256)


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogateescape")).digest()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes | None:
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return None
