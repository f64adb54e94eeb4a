"""Failures as clients of Mooring's own addresses read them: a code, a message, and which request.

The body is that of Lance's REST protocol, the status that of the error's class.

Spec: lance-rest-openapi, "ErrorResponse".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from mooring.config import mask_uris
from mooring.errors import (
    InvalidInputError,
    MooringError,
    NotFoundError,
    ServiceUnavailableError,
    UnauthenticatedError,
    UnknownOutcomeError,
)
from mooring.server.asked import note_code, state_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from starlette.types import Scope

__all__ = ["Failure", "Problem", "absent", "explain", "not_allowed", "unexpected"]

_METHOD_NOT_ALLOWED, _SERVER_ERROR = 405, 500
_JSON = "application/json"


class Failure(msgspec.Struct, frozen=True):
    """A failure: clients go by its code."""

    error: str
    code: int
    instance: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A failure on its way to a client.

    Attributes:
        status: Of HTTP.
        code: Lance's.
        message: What, which and what next.
        headers: What else is told.
    """

    status: int
    code: int
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def answer(self, scope: Scope) -> Response:
        """Return the answer to a request, which says which request it was."""
        note_code(scope, self.code)
        instance = state_of(scope).get("request_id") or scope["path"]
        body = msgspec.json.encode(Failure(mask_uris(self.message), self.code, instance))
        return Response(body, self.status, dict(self.headers), _JSON)


def explain(error: MooringError) -> Problem:
    """Word an error."""
    match error:
        case UnknownOutcomeError():
            # Not 503, after which many clients ask again by themselves.
            return Problem(_SERVER_ERROR, error.code, str(error))
        case ServiceUnavailableError():
            return Problem(error.http_status, error.code, str(error), {"Retry-After": "1"})
        case UnauthenticatedError():
            headers = {"WWW-Authenticate": "Bearer"}
            return Problem(error.http_status, error.code, str(error), headers)
    return Problem(error.http_status, error.code, str(error))


def absent(message: str) -> Problem:
    """Say that an address leads nowhere; by its code it is no object that is absent."""
    return Problem(NotFoundError.http_status, InvalidInputError.code, message)


def not_allowed(method: str, allowed: Collection[str]) -> Problem:
    """Say which methods an address has."""
    known = ", ".join(sorted(allowed))
    msg = f"{method} is not possible here: {known} is"
    return Problem(_METHOD_NOT_ALLOWED, InvalidInputError.code, msg, {"Allow": known})


def unexpected(number: str, *, changes: bool) -> Problem:
    """Word what nobody foresaw, of which the server's log tells more.

    Args:
        number: By which the log has it.
        changes: Whether something may have been changed.
    """
    look = ": look whether it was done before you ask again" if changes else ""
    msg = f"something unexpected happened; the server's log tells what, under {number}{look}"
    return Problem(_SERVER_ERROR, MooringError.code, msg)
