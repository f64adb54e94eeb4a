"""Failures as Iceberg clients read them.

Each operation may answer only with the statuses that the published document lists for it; what a
class of errors asks for beyond that becomes the nearest one that is listed.

Spec: iceberg-rest-openapi, "IcebergErrorResponse", "ErrorModel".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mooring.config import mask_uris
from mooring.errors import (
    MooringError,
    PermissionDeniedError,
    ProtectedError,
    ServiceUnavailableError,
    UnknownOutcomeError,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["Problem", "explain", "unexpected"]

BAD_REQUEST, FORBIDDEN, UNSUPPORTED = 400, 403, 406
SERVER_ERROR, UNAVAILABLE = 500, 503
# Every operation may answer with these.
_ALWAYS = frozenset({BAD_REQUEST, 401, FORBIDDEN, 419})
_RETRY_AFTER_S = "1"


@dataclass(frozen=True, slots=True)
class Problem:
    """A failure on its way to a client.

    Attributes:
        status: Of HTTP.
        kind: What Iceberg's clients tell it by.
        message: What, which and what next.
        headers: What else is told.
    """

    status: int
    kind: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self, *, is_flat: bool) -> dict[str, Any]:
        """Return the body.

        Args:
            is_flat: Whether the document lists the bare error here. Its own example and all
                clients have it wrapped: such a body is both.
        """
        error = {"message": mask_uris(self.message), "type": self.kind, "code": self.status}
        return {**error, "error": error} if is_flat else {"error": error}


def explain(error: MooringError, listed: Collection[int]) -> Problem:
    """Word an error for an operation.

    Args:
        error: What was raised.
        listed: The statuses that its document lists beside those that all have.
    """
    status, kind, message = error.http_status, error.iceberg_type, str(error)
    if isinstance(error, UnknownOutcomeError):
        return Problem(SERVER_ERROR, kind, message)
    if isinstance(error, ServiceUnavailableError):
        return Problem(UNAVAILABLE, kind, message, {"Retry-After": _RETRY_AFTER_S})
    if status in listed or status in _ALWAYS or status >= SERVER_ERROR:
        return Problem(status, kind, message)
    if isinstance(error, ProtectedError):
        return Problem(FORBIDDEN, PermissionDeniedError.iceberg_type, message)
    if error.retryable:
        kind = ServiceUnavailableError.iceberg_type
        return Problem(UNAVAILABLE, kind, message, {"Retry-After": _RETRY_AFTER_S})
    return Problem(BAD_REQUEST, kind, message)


def unexpected(number: str, *, commits: bool) -> Problem:
    """Word what nobody foresaw, of which the server's log tells more.

    Args:
        number: By which the log has it.
        commits: Whether the operation commits: then nobody knows whether it did.
    """
    kind = UnknownOutcomeError.iceberg_type if commits else MooringError.iceberg_type
    msg = f"something unexpected happened; the server's log tells what, under {number}"
    return Problem(SERVER_ERROR, kind, msg)
