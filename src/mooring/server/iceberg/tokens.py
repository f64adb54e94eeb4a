"""Giving out tokens to clients that prove themselves.

A client gives its id and secret, in the form or as OAuth2 advises in a header. Iceberg's Java
client renews a token by exchanging it, which a token that is still good allows.

Spec: iceberg-rest-openapi, "getToken".
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote_plus

from mooring.server.iceberg.calls import Answer
from mooring.server.roles import Identity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.server.iceberg.calls import Call

__all__ = ["TOKEN_PATH", "issue_token"]

TOKEN_PATH = "/v1/oauth/tokens"  # noqa: S105  # a path
_BY_SECRET = "client_credentials"  # noqa: S105  # the name of a grant
_BY_TOKEN = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105  # the name of a grant
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105  # a type's name
_MOST_FIELDS = 32


def issue_token(call: Call) -> Answer:
    """Give out a token."""
    form = _read_form(call.body)
    if form is None:
        return _refuse("invalid_request", "the body is not a form")
    grant = form.get("grant_type")
    if grant not in {_BY_SECRET, _BY_TOKEN}:
        known = f"use '{_BY_SECRET}'"
        return _refuse("unsupported_grant_type", f"'{grant}' is no grant of this server: {known}")
    if call.authority.asks_nobody:
        return _refuse("invalid_request", "this server asks nobody for credentials: give none")
    subject = _by_secret(call, form)
    if subject is None and grant == _BY_TOKEN:
        subject = _by_token(call, form)
    if subject is None:
        return _refuse("invalid_client", "the id or the secret is not right", status=401)
    return Answer(
        {
            "access_token": call.authority.issue(subject),
            "token_type": "bearer",
            "expires_in": call.authority.token_ttl_s,
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


def _by_secret(call: Call, form: Mapping[str, str]) -> str | None:
    given = _basic(call.headers.get("authorization", ""))
    if given is None:
        return call.authority.prove(form.get("client_id", ""), form.get("client_secret", ""))
    # OAuth2 has both encoded as in a form, and most clients do not do that.
    encoded = [unquote_plus(one) for one in given]
    return call.authority.prove(*given) or call.authority.prove(*encoded)


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


def _by_token(call: Call, form: Mapping[str, str]) -> str | None:
    known = call.authority.read(form.get("subject_token", ""))
    return known.subject if isinstance(known, Identity) else None


def _refuse(error: str, description: str, *, status: int = 400) -> Answer:
    return Answer({"error": error, "error_description": description}, status)
