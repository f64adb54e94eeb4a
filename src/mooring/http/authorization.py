"""Who asks: bearer tokens, and those that a server gives for a credential by OAuth2.

Spec of tokens: RFC 6749, "Client Credentials Grant".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from mooring.clock import SystemClock
from mooring.errors import UnauthenticatedError
from mooring.http.address import is_address, trim_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.clock import Clock

__all__ = ["Authorization", "Grant", "PostForm"]

_EARLIEST_RENEWAL_MS = 60_000


class PostForm(Protocol):
    """Sends a form and returns what was answered."""

    def __call__(self, address: str, form: Mapping[str, str], /) -> Mapping[str, Any]:
        """Send it; whatever fails is an error of Mooring's."""
        ...


@dataclass(frozen=True, slots=True)
class Grant:
    """By what right requests are made.

    Attributes:
        token: A bearer token, where there is one.
        credential: ``id:secret`` or a secret alone, where there is one.
        server: Who gives tokens for it.
        extra: What a token is asked for, as the form names it.
    """

    token: str | None = field(repr=False)
    credential: str | None = field(repr=False)
    server: str
    extra: Mapping[str, str]

    @classmethod
    def of(cls, properties: Mapping[str, str], address: str) -> Grant:
        """Read the right from the properties of a catalog.

        Args:
            properties: The user's, or those with the server's.
            address: The server's.
        """
        wanted = {key: properties.get(key) for key in ("scope", "audience", "resource")}
        wanted["scope"] = wanted["scope"] or "catalog"
        return cls(
            properties.get("token") or None,
            properties.get("credential") or None,
            _token_server(properties.get("oauth2-server-uri"), address),
            {key: value for key, value in wanted.items() if value},
        )

    @property
    def secrets(self) -> list[str]:
        """What must not be shown."""
        found = (self.token, self.credential, self._parts()[1])
        return [one for one in found if one]

    def form(self) -> dict[str, str]:
        """Return what a token is asked for with."""
        client, secret = self._parts()
        asked = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret}
        return {key: value for key, value in {**asked, **self.extra}.items() if value}

    def _parts(self) -> tuple[str, str]:
        """Return whose the credential is, where it tells, and the secret."""
        before, colon, after = (self.credential or "").partition(":")
        return (before, after) if colon else ("", before)


class Authorization:
    """The right to ask, kept fresh; safe for threads.

    Args:
        grant: What it rests on.
        post_form: Sends a form.
        clock: Tells when a token is old.
    """

    def __init__(self, grant: Grant, post_form: PostForm, clock: Clock | None = None) -> None:
        self.grant = grant
        self._post_form = post_form
        self._clock = clock or SystemClock()
        self._lock = Lock()
        self._token = grant.token
        self._renew_at_ms: int | None = None

    @property
    def secrets(self) -> list[str]:
        """What must not be shown."""
        return [*self.grant.secrets, *([self._token] if self._token else [])]

    def headers(self) -> dict[str, str]:
        """Return what is sent with a request; a token that will soon be old is renewed first.

        Raises:
            UnauthenticatedError: the credential is refused.
            ServiceUnavailableError: whoever gives tokens does not answer.
        """
        with self._lock:
            if self.grant.credential and self._is_due():
                self._renew()
            return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def renew(self, rejected: str | None) -> bool:
        """Get another token after one was rejected.

        Args:
            rejected: The header that was sent with the request.

        Returns:
            Whether there is another one, so that the request may be repeated.

        Raises:
            UnauthenticatedError: the credential is refused.
            ServiceUnavailableError: whoever gives tokens does not answer.
        """
        if not self.grant.credential:
            return False
        with self._lock:
            # Another thread may have been here in the meantime.
            if rejected == f"Bearer {self._token}" or not self._token:
                self._renew()
            return True

    def _is_due(self) -> bool:
        if self._token is None:
            return True
        return self._renew_at_ms is not None and self._clock.now_ms() >= self._renew_at_ms

    def _renew(self) -> None:
        asked_at_ms = self._clock.now_ms()
        answer = self._post_form(self.grant.server, self.grant.form())
        token = answer.get("access_token")
        if not isinstance(token, str) or not token:
            msg = f"{self.grant.server} gives no token: there is no access_token in its answer"
            raise UnauthenticatedError(msg)
        self._token = token
        self._renew_at_ms = _renew_at(asked_at_ms, answer.get("expires_in"))


def _renew_at(asked_at_ms: int, expires_in_s: object) -> int | None:
    """Return when a token is to be renewed: before its end, and not before half of its life."""
    try:
        life_ms = int(float(str(expires_in_s)) * 1000)
    except (ValueError, OverflowError):
        return None
    return asked_at_ms + life_ms - min(_EARLIEST_RENEWAL_MS, life_ms // 2)


def _token_server(configured: str | None, address: str) -> str:
    if not configured:
        return f"{address}/v1/oauth/tokens"
    if is_address(configured):
        return configured.strip()
    return f"{trim_address(address)}/{configured.strip().lstrip('/')}"
