"""Tokens that somebody else gives out: JSON Web Tokens of an OpenID Connect issuer.

A token is good where one of the issuer's keys signed it, for this server, and it has not ended.
Who its holder is and what they may do is read from its claims by rules of the credentials file;
where no rule speaks of them, they may do nothing.

Verifying never waits: it looks at keys that are there. `refresh`, which does wait, is called before
by `mooring.server.doorkeeper`, in a thread: for keys that are old, and for a key that nobody has
heard of, as after a rotation; of that, often enough and not more often, whoever asks.

Spec: RFC 7519 (JWT), RFC 7517 (JWK), RFC 8725 (best practices), OpenID Connect Discovery 1.0.
"""

from __future__ import annotations

import ipaddress
import logging
import ssl
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from mooring.clock import SystemClock
from mooring.errors import InvalidInputError, ServiceUnavailableError
from mooring.identifiers import quote
from mooring.server.auth import Expired
from mooring.server.roles import Identity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mooring.clock import Clock
    from mooring.server.roles import Grant

__all__ = ["OidcGrant", "OidcSettings", "OidcVerifier"]

logger = logging.getLogger(__name__)

# Each kind of key signs by these alone: a public key is never taken for a shared secret.
_ALGORITHMS: Mapping[str, tuple[str, ...]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "Ed25519": ("EdDSA",),
    "Ed448": ("EdDSA",),
}
_ALL_ALGORITHMS = tuple(dict.fromkeys(one for many in _ALGORITHMS.values() for one in many))
_DISCOVERY = "/.well-known/openid-configuration"
_TIMEOUT_S = 5.0
_LARGEST_ANSWER = 1024 * 1024
# Keys are looked at again after the first, asked for at most once in the second for a key that is
# not among them, and no longer believed after the third where their issuer cannot be reached.
_FRESH_MS, _BETWEEN_MS, _BELIEVED_MS = 300_000, 10_000, 86_400_000
_OK = 200


@dataclass(frozen=True, slots=True)
class OidcGrant:
    """A role for a group, or for one subject, of the issuer."""

    grant: Grant
    group: str | None = None
    subject: str | None = None

    def is_for(self, subject: str, groups: Sequence[str]) -> bool:
        """Whether somebody has the role."""
        return subject == self.subject if self.group is None else self.group in groups


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """Whose tokens are taken.

    Attributes:
        issuer: Who gives them out, as their claim `iss` says.
        audience: For whom they must be; one of these is enough.
        jwks_uri: Where the issuer's keys are; asked of the issuer unless given.
        jwks_file: A file with the keys, instead.
        ca_file: The certificates that the issuer's is checked by; the system's unless given.
        algorithms: By which tokens may be signed.
        subject_claim: The claim that says in whose name changes are recorded.
        groups_claim: The claim that says which groups they are in; dots lead into objects.
        leeway_s: How far clocks may be apart.
        grants: What whom is allowed.
    """

    issuer: str
    audience: tuple[str, ...]
    jwks_uri: str | None = None
    jwks_file: Path | None = None
    ca_file: Path | None = None
    algorithms: tuple[str, ...] = _ALL_ALGORITHMS
    subject_claim: str = "sub"
    groups_claim: str = "groups"
    leeway_s: int = 30
    grants: tuple[OidcGrant, ...] = ()

    def check(self, whose: str) -> None:
        """Refuse what would let in others than meant.

        Raises:
            InvalidInputError: something does.
        """
        if not self.issuer or not self.audience or not all(self.audience):
            raise InvalidInputError(f"{whose} needs an 'issuer' and an 'audience'")
        if self.jwks_uri and self.jwks_file:
            raise InvalidInputError(f"{whose} has both 'jwks_uri' and 'jwks_file': keep one")
        wrong = next((one for one in self.algorithms if one not in _ALL_ALGORITHMS), None)
        if wrong is not None or not self.algorithms:
            known = ", ".join(_ALL_ALGORITHMS)
            msg = f"{whose} has 'algorithms' that are not of public keys, {wrong}: use {known}"
            raise InvalidInputError(msg)
        if self.leeway_s < 0 or not self.subject_claim or not self.groups_claim:
            raise InvalidInputError(f"{whose} has a 'leeway_s' below 0, or a claim without a name")
        if self.jwks_file is None:
            _require_safe(self.jwks_uri or self.issuer, whose)


@dataclass(frozen=True, slots=True)
class _Key:
    """A key that signs tokens."""

    id: str | None
    algorithms: tuple[str, ...]
    public: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Keys:
    """The issuer's keys, and when they were asked for."""

    all: tuple[_Key, ...] = ()
    fetched_at_ms: int | None = None
    tried_at_ms: int | None = None
    problem: str | None = None


class OidcVerifier:
    """Knows the tokens of an issuer."""

    def __init__(self, settings: OidcSettings, clock: Clock | None = None) -> None:
        """Take an issuer's tokens.

        Raises:
            InvalidInputError: the settings would let in others than meant.
        """
        settings.check("the issuer of tokens")
        self.settings = settings
        self._clock = clock or SystemClock()
        self._keys = _Keys()
        self._refreshing = threading.Lock()

    # -- keys --------------------------------------------------------------------------------------

    def needs_refresh(self, token: str) -> bool:
        """Whether a token can only be judged, or better, when the keys were looked at again."""
        header = _header(token)
        if header is None:
            return False
        is_known = bool(self._candidates(header))
        age_ms = self._since(self._keys.fetched_at_ms)
        is_due = age_ms is None or age_ms >= _FRESH_MS or not is_known
        tried_ms = self._since(self._keys.tried_at_ms)
        return is_due and (tried_ms is None or tried_ms >= _BETWEEN_MS)

    def refresh(self, token: str) -> None:
        """Look at the issuer's keys again, where that is still needed; this waits.

        Whoever comes meanwhile waits for the same answer. Keys that are there stay where it fails.
        """
        with self._refreshing:
            if not self.needs_refresh(token):
                return
            now_ms = self._clock.now_ms()
            try:
                keys = tuple(_read_keys(self._fetch()))
            except (ServiceUnavailableError, InvalidInputError) as exc:
                logger.error("the keys of %s are not to be had: %s", self.settings.issuer, exc)  # noqa: TRY400  # the message tells all
                old = self._keys
                self._keys = _Keys(old.all, old.fetched_at_ms, now_ms, str(exc))
                return
            self._keys = _Keys(keys, now_ms, now_ms)

    def _fetch(self) -> bytes:
        file = self.settings.jwks_file
        if file is not None:
            try:
                return file.read_bytes()
            except OSError as exc:
                raise ServiceUnavailableError(f"'{file}' cannot be read: {exc}") from exc
        uri = self.settings.jwks_uri or self._discover()
        return _get(uri, self.settings.ca_file)

    def _discover(self) -> str:
        uri = self.settings.issuer.rstrip("/") + _DISCOVERY
        told = _decode(_get(uri, self.settings.ca_file))
        if told.get("issuer") != self.settings.issuer:
            msg = f"{uri} speaks of another issuer, {quote(str(told.get('issuer')))}"
            raise InvalidInputError(msg)
        found = told.get("jwks_uri")
        if not isinstance(found, str):
            raise InvalidInputError(f"{uri} does not say where the keys are")
        _require_safe(found, uri)
        return found

    def _candidates(self, header: Mapping[str, Any]) -> list[_Key]:
        kid, algorithm = header.get("kid"), header.get("alg")
        return [
            key
            for key in self._keys.all
            if algorithm in key.algorithms and (kid is None or key.id == kid)
        ]

    def _since(self, at_ms: int | None) -> int | None:
        return None if at_ms is None else self._clock.now_ms() - at_ms

    # -- tokens ------------------------------------------------------------------------------------

    def verify(self, token: str) -> Identity | Expired | None:
        """Tell whose a token is; None where it is none that is good.

        Raises:
            ServiceUnavailableError: nobody can tell, as the issuer's keys are not to be had.
        """
        header = _header(token)
        if header is None or header.get("alg") not in self.settings.algorithms or "crit" in header:
            return None
        age_ms = self._since(self._keys.fetched_at_ms)
        found = self._candidates(header) if age_ms is not None and age_ms < _BELIEVED_MS else []
        if not found and (self._keys.problem or age_ms is None):
            msg = (
                "the keys that tokens are checked by are not to be had at the moment: try again in"
                " a few seconds"
            )
            raise ServiceUnavailableError(msg)
        if len(found) != 1:  # several would let a token choose
            return None
        return self._judge(token, header["alg"], found[0])

    def _judge(self, token: str, algorithm: str, key: _Key) -> Identity | Expired | None:
        import jwt

        settings = self.settings
        try:
            claims = jwt.decode(
                token,
                key.public,
                algorithms=[algorithm],
                audience=list(settings.audience),
                issuer=settings.issuer,
                leeway=settings.leeway_s,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.ExpiredSignatureError:
            return Expired()
        except jwt.PyJWTError as exc:
            logger.info("a token of %s is not good: %s", settings.issuer, exc)
            return None
        return self._identity(claims)

    def _identity(self, claims: Mapping[str, Any]) -> Identity | None:
        subject = _claim(claims, self.settings.subject_claim)
        if not isinstance(subject, str) or not subject or not subject.isprintable():
            return None
        groups = _texts(_claim(claims, self.settings.groups_claim))
        held = tuple(one.grant for one in self.settings.grants if one.is_for(subject, groups))
        return Identity(subject, held)


def _header(token: str) -> Mapping[str, Any] | None:
    """Read what a token says about itself, before anybody knows whether it is true."""
    import jwt

    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, RecursionError):
        return None
    return header if isinstance(header.get("alg"), str) else None


def _claim(claims: Mapping[str, Any], name: str) -> object:
    if name in claims:
        return claims[name]
    found: object = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _texts(claim: object) -> Sequence[str]:
    """Read groups: a list, or as scopes are written, separated by spaces."""
    if isinstance(claim, str):
        return claim.split()
    return [one for one in claim if isinstance(one, str)] if isinstance(claim, list) else []


def _read_keys(content: bytes) -> list[_Key]:
    """Read keys; those of kinds that sign nothing here are left out."""
    listed = _decode(content).get("keys")
    if not isinstance(listed, list):
        raise InvalidInputError("what should be the issuer's keys is none: it has no 'keys'")
    found = [_read_key(one) for one in listed if isinstance(one, dict)]
    return [key for key in found if key is not None]


def _read_key(told: Mapping[str, Any]) -> _Key | None:
    import jwt

    kind = told.get("kty") if told.get("kty") == "RSA" else told.get("crv")
    suited = _ALGORITHMS.get(kind, ()) if isinstance(kind, str) else ()
    if not suited or told.get("kty") == "oct" or told.get("use", "sig") != "sig":
        return None
    algorithms = tuple(one for one in suited if told.get("alg", one) == one)
    public = {key: value for key, value in told.items() if key != "d"}
    try:
        key = jwt.PyJWK(public, algorithm=suited[0]).key
    except (jwt.PyJWTError, ValueError, TypeError) as exc:
        logger.warning("a key among the issuer's cannot be read: %s", exc)
        return None
    kid = told.get("kid")
    return _Key(kid if isinstance(kid, str) else None, algorithms, key)


def _decode(content: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        raise InvalidInputError(f"the issuer's answer is no JSON object: {exc}") from exc


def _get(uri: str, ca_file: Path | None) -> bytes:
    """Ask the issuer; it is not followed elsewhere, for that may be anywhere.

    Raises:
        ServiceUnavailableError: it does not answer as it should.
    """
    import httpx2

    try:
        trusted = _trusted(uri, ca_file)
        answer = httpx2.get(uri, timeout=_TIMEOUT_S, verify=trusted, follow_redirects=False)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as exc:
        raise ServiceUnavailableError(f"{uri} does not answer: {exc}") from exc
    if answer.status_code != _OK or len(answer.content) > _LARGEST_ANSWER:
        raise ServiceUnavailableError(f"{uri} answers with {answer.status_code}")
    return answer.content


def _trusted(uri: str, ca_file: Path | None) -> ssl.SSLContext:
    if uri.startswith("http://"):  # of this machine, which shows no certificate
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))


def _require_safe(uri: str, whose: str) -> None:
    """Refuse an address whose answers others could change on the way."""
    parts = urlsplit(uri)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and _is_loopback(parts.hostname or ""):
        return
    msg = f"{whose} has the address {quote(uri)}, which is no 'https://': keys come by that alone"
    raise InvalidInputError(msg)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
