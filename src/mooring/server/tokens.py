"""Giving out tokens to clients that prove themselves, for every protocol alike.

A client gives its id and secret, in the form or as OAuth2 advises in a header. Iceberg's Java
client renews a token by exchanging it, which a token that is still good allows. Clients of Lance's
protocol ask at ``/oauth/token``, below the address that they were given or at the server's own.

Spec: RFC 6749, section 4.4; RFC 8693; lance-rest-openapi, "OAuth2"; iceberg-rest-openapi,
"getToken".
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote_plus

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from mooring.errors import InvalidInputError, MooringError
from mooring.server.asked import Named, name_operation
from mooring.server.bodies import read_body
from mooring.server.problems import explain, not_allowed
from mooring.server.work import Lane

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.types import Receive, Scope, Send

    from mooring.server.auth import Authority
    from mooring.server.service import Service

__all__ = ["FORM_LIMIT_BYTES", "TOKEN_PATH", "Granted", "grant_token", "tokens_at"]

TOKEN_PATH = "/oauth/token"  # noqa: S105  # a path
_BY_SECRET = "client_credentials"  # noqa: S105  # the name of a grant
_BY_TOKEN = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105  # the name of a grant
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105  # a type's name
_MOST_FIELDS = 32
# Strangers send these: what they fill the memory with is little.
FORM_LIMIT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Granted:
    """What a client that asks for a token is told: a token, or why it gets none."""

    body: dict[str, Any]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def tokens_at(service: Service, above: Iterable[str]) -> list[Route]:
    """Return the addresses at which a service gives out tokens, each below another one."""
    return [Route(f"{one}{TOKEN_PATH}", _TokenEndpoint(service)) for one in above]


class _TokenEndpoint:
    """Gives out tokens at an address of its own."""

    def __init__(self, service: Service) -> None:
        """Give out those of a service."""
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        name_operation(request.scope, Named("server", "token", TOKEN_PATH))
        if request.method != "POST":
            return not_allowed(request.method, ["POST"]).answer(request.scope)
        headers = {key.lower(): value for key, value in request.headers.items()}
        authority, workers = self._service.authority, self._service.workers
        try:
            body = await read_body(request, self._service.settings, FORM_LIMIT_BYTES)
            granted = await workers.run(Lane.CATALOG, lambda: grant_token(authority, headers, body))
        except ClientDisconnect:
            return explain(InvalidInputError("the request was cut off")).answer(request.scope)
        except MooringError as exc:
            return explain(exc).answer(request.scope)
        content = msgspec.json.encode(granted.body)
        return Response(content, granted.status, dict(granted.headers), "application/json")


def grant_token(authority: Authority, headers: Mapping[str, str], body: bytes) -> Granted:
    """Give out a token.

    Args:
        authority: Knows the clients.
        headers: Of the request, by name in small letters.
        body: The form.
    """
    form = _read_form(body)
    if form is None:
        return _refuse("invalid_request", "the body is not a form")
    grant = form.get("grant_type")
    if grant not in {_BY_SECRET, _BY_TOKEN}:
        given = "'grant_type' is missing" if grant is None else f"'{grant}' is no grant here"
        return _refuse("unsupported_grant_type", f"{given}: use '{_BY_SECRET}'")
    if authority.asks_nobody:
        return _refuse("invalid_request", "this server asks nobody for credentials: give none")
    subject = _by_secret(authority, headers, form)
    if subject is None and grant == _BY_TOKEN:
        subject = authority.owner_of(form.get("subject_token", ""))
    if subject is None:
        return _refuse("invalid_client", "the id or the secret is not right", status=401)
    return Granted(
        {
            "access_token": authority.issue(subject),
            "token_type": "bearer",
            "expires_in": authority.token_ttl_s,
            "issued_token_type": _ACCESS_TOKEN,
            "scope": form.get("scope") or "catalog",
        },
        headers={"Cache-Control": "no-store"},
    )


def _read_form(body: bytes) -> dict[str, str] | None:
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError:
        return None
    return dict(pairs)


def _by_secret(
    authority: Authority, headers: Mapping[str, str], form: Mapping[str, str]
) -> str | None:
    given = _basic(headers.get("authorization", ""))
    if given is None:
        return authority.prove(form.get("client_id", ""), form.get("client_secret", ""))
    # OAuth2 has both encoded as in a form, and most clients do not do that.
    encoded = [unquote_plus(one) for one in given]
    return authority.prove(*given) or authority.prove(*encoded)


def _basic(authorization: str) -> tuple[str, str] | None:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    client_id, _, secret = text.partition(":")
    return client_id, secret


def _refuse(error: str, description: str, *, status: int = 400) -> Granted:
    return Granted({"error": error, "error_description": description}, status)
