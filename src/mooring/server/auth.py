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
from typing import TYPE_CHECKING, Protocol

import msgspec

from mooring.clock import SystemClock
from mooring.server.roles import ANYBODY, Identity
from mooring.server.settings import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mooring.clock import Clock
    from mooring.server.settings import Client

__all__ = ["Authority", "Expired", "Verifier"]

_KEY_BYTES = 32
_ONCE_BYTES = 24
_ONCE_MS = 5 * 60 * 1000  # a browser may take long to start
_BEARER, _API_KEY = "bearer", "x-api-key"


@dataclass(frozen=True, slots=True)
class Expired:
    """A token that was good once."""


class Verifier(Protocol):
    """Knows tokens that somebody else gave out."""

    def verify(self, token: str) -> Identity | Expired | None:
        """Tell whose a token is, without waiting; None where it is none that it knows."""
        ...

    def needs_refresh(self, token: str) -> bool:
        """Whether something should be looked up before a token is verified."""
        ...

    def refresh(self, token: str) -> None:
        """Look up what a token is verified by; this may wait."""
        ...


class _Claims(msgspec.Struct, frozen=True, array_like=True):
    subject: str
    ends_at_ms: int
    nonce: str


@dataclass(frozen=True, slots=True)
class _Known:
    """Who is known at a time."""

    clients: Mapping[str, Client]
    verifiers: Sequence[Verifier]


class Authority:
    """Gives out tokens, and knows its own."""

    def __init__(
        self,
        clients: Iterable[Client],
        *,
        token_ttl_s: int,
        key: bytes | None = None,
        verifiers: Sequence[Verifier] = (),
        clock: Clock | None = None,
    ) -> None:
        """Know some clients.

        Args:
            clients: Who may use the server; anybody where there are none.
            token_ttl_s: How long a token is good for.
            key: What signs tokens; random unless given.
            verifiers: Know tokens of others.
            clock: Ends them.
        """
        # Replaced as a whole, so that nobody sees half of a change.
        self._known = _Known({client.id: client for client in clients}, tuple(verifiers))
        self._key = key or secrets.token_bytes(_KEY_BYTES)
        self._clock = clock or SystemClock()
        self.token_ttl_s = token_ttl_s
        self._once: dict[str, tuple[str, int]] = {}  # what is good for one login: whose, until when
        # Decided once: a server that asked somebody never lets in everybody.
        self.asks_nobody = not self._known.clients and not self._known.verifiers

    @property
    def has_verifiers(self) -> bool:
        """Whether tokens of others are taken."""
        return bool(self._known.verifiers)

    def replace(self, clients: Iterable[Client], verifiers: Sequence[Verifier]) -> None:
        """Know others from now on; nobody may do anything where there are none."""
        self._known = _Known({client.id: client for client in clients}, tuple(verifiers))

    @property
    def verifiers(self) -> Sequence[Verifier]:
        """Who knows the tokens of others."""
        return self._known.verifiers

    def needs_refresh(self, token: str) -> bool:
        """Whether something should be looked up before a token is read."""
        is_others = bool(token) and ":" not in token and self._read_own(token) is None
        return is_others and any(one.needs_refresh(token) for one in self._known.verifiers)

    def refresh(self, token: str) -> None:
        """Look up what a token is verified by; this may wait."""
        for verifier in self._known.verifiers:
            verifier.refresh(token)

    def prove(self, client_id: str, secret: str) -> str | None:
        """Return the client's id where the secret is right; the time tells nothing about it."""
        client = self._known.clients.get(client_id)
        expected = client.digest if client else ""
        is_right = hmac.compare_digest(expected, digest_of(secret))
        return client_id if client and is_right else None

    def issue(self, subject: str) -> str:
        """Return a token for a client that proved itself."""
        ends_at_ms = self._clock.now_ms() + self.token_ttl_s * 1000
        claims = _encode(
            msgspec.json.encode(_Claims(subject, ends_at_ms, secrets.token_urlsafe(8)))
        )
        return f"{claims}.{_encode(self._sign(claims, self._known.clients.get(subject)))}"

    def issue_once(self, subject: str) -> str:
        """Return what a client's browser is opened with, for the time until it asks."""
        once = secrets.token_urlsafe(_ONCE_BYTES)
        self._once[once] = subject, self._clock.now_ms() + _ONCE_MS
        return once

    def redeem(self, once: str) -> str | None:
        """Return a token for what was good for one login, and now is not; None for all else."""
        subject, ends_at_ms = self._once.pop(once, ("", 0))
        return self.issue(subject) if ends_at_ms > self._clock.now_ms() else None

    def renewed(self, token: str) -> str | None:
        """Return a token of more time, where more than half of one's own is over; else None."""
        found, claims = self._read_own(token), _read_claims(token.partition(".")[0])
        if not isinstance(found, Identity) or claims is None or found.subject is None:
            return None
        left_ms = claims.ends_at_ms - self._clock.now_ms()
        return self.issue(found.subject) if left_ms < self.token_ttl_s * 1000 / 2 else None

    def seal(self, purpose: str, subject: str | None) -> str:
        """Return what only this server makes, for something of somebody's."""
        client = self._known.clients.get(subject or "")
        return _encode(self._sign(f"{purpose}:{subject or ''}", client))

    def is_sealed(self, purpose: str, subject: str | None, seal: str) -> bool:
        """Whether a seal is this server's, for something of somebody's."""
        given, expected = seal.encode(errors="replace"), self.seal(purpose, subject).encode()
        return hmac.compare_digest(given, expected)

    def identify(self, headers: Mapping[str, str]) -> Identity | Expired | None:
        """Tell who sends headers, which are named in small letters; None where nobody knows.

        A client shows a token, or its id and secret themselves, joined by a colon.
        """
        if self.asks_nobody:
            return ANYBODY
        token = self.shown(headers)
        return self.read(token) if token else None

    def shown(self, headers: Mapping[str, str]) -> str:
        """Return what headers show, be it good or not; nothing where they show nothing."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == _BEARER else headers.get(_API_KEY, "").strip()

    def owner_of(self, token: str) -> str | None:
        """Return the client that a token of this server's own was given to.

        Tokens of others have none: whoever has a client's name elsewhere is not that client.
        """
        known = self._read_own(token)
        return known.subject if isinstance(known, Identity) else None

    def read(self, token: str) -> Identity | Expired | None:
        """Tell whose a token is; None where nobody knows it."""
        client_id, colon, secret = token.partition(":")
        if colon:
            proven = self.prove(client_id, secret)
            return self._identity(proven) if proven else None
        own = self._read_own(token)
        if own is not None:
            return own
        found = (verifier.verify(token) for verifier in self._known.verifiers)
        return next((one for one in found if one is not None), None)

    def _read_own(self, token: str) -> Identity | Expired | None:
        text, _, signature = token.partition(".")
        given, claims = _decode(signature), _read_claims(text)
        client = None if claims is None else self._known.clients.get(claims.subject)
        if given is None or claims is None or client is None:
            return None
        if not hmac.compare_digest(self._sign(text, client), given):
            return None
        if claims.ends_at_ms <= self._clock.now_ms():
            return Expired()
        return Identity(client.id, client.grants)

    def _identity(self, client_id: str) -> Identity | None:
        client = self._known.clients.get(client_id)  # who may be gone meanwhile
        return None if client is None else Identity(client_id, client.grants)

    def _sign(self, text: str, client: Client | None) -> bytes:
        """Sign a token, which is good as long as its client has the same secret."""
        bound = f"{client.digest if client else ''}.{text}"
        return hmac.digest(self._key, bound.encode("utf-8", "surrogateescape"), sha256)


def _read_claims(text: str) -> _Claims | None:
    """Read what a token says, before anybody knows whether it is true."""
    try:
        return msgspec.json.decode(_decode(text) or b"", type=_Claims)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes | None:
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return None
