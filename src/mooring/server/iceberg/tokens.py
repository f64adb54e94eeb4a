"""Giving out tokens where Iceberg's clients ask for them.

Spec: iceberg-rest-openapi, "getToken".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.server.iceberg.calls import Answer
from mooring.server.tokens import grant_token

if TYPE_CHECKING:
    from mooring.server.iceberg.calls import Call

__all__ = ["TOKEN_PATH", "issue_token"]

TOKEN_PATH = "/v1/oauth/tokens"  # noqa: S105  # a path


def issue_token(call: Call) -> Answer:
    """Give out a token."""
    granted = grant_token(call.authority, call.headers, call.body)
    return Answer(granted.body, granted.status, granted.headers)
