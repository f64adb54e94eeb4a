"""Failures as Lance's clients read them: a code, a message, and which request it was.

Each operation may answer only with the statuses that the published document lists for it; what a
class of errors asks for beyond that becomes the nearest one that is listed. Clients go by the code.

Spec: lance-rest-openapi, "ErrorResponse".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_namespace.errors import LanceNamespaceError
from pydantic import ValidationError

from mooring.errors import (
    InvalidInputError,
    MooringError,
    UnauthenticatedError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["explain"]

_BAD_REQUEST, _SERVER_ERROR, _UNAVAILABLE = 400, 500, 503
# Every operation may answer with these.
_ALWAYS = frozenset({_BAD_REQUEST, 401, 403, _UNAVAILABLE})
_SECOND = {"Retry-After": "1"}


def _statuses(kind: type[MooringError]) -> dict[int, int]:
    """Return the status of each code; that of the most general class counts."""
    found: dict[int, int] = {}
    for one in kind.__subclasses__():
        found |= _statuses(one)
    return {**found, kind.code: kind.http_status}


_STATUSES = _statuses(MooringError)
# Of implementations that do not tell whether it helps to ask again.
_RETRYABLE = frozenset({14, 17, 21})


def explain(error: Exception, listed: Collection[int]) -> Problem | None:
    """Word a failure for an operation; None where nobody foresaw it.

    Args:
        error: What was raised.
        listed: The statuses that its document lists beside those that all have.
    """
    cause = error.__cause__ if isinstance(error, LanceNamespaceError) else error
    if isinstance(cause, UnknownOutcomeError):
        # Not 503, after which many clients ask again by themselves.
        return Problem(_SERVER_ERROR, cause.code, str(cause))
    match error:
        case MooringError() | LanceNamespaceError():
            helps = cause.retryable if isinstance(cause, MooringError) else error.code in _RETRYABLE
            return _listed(int(error.code), str(error), listed, helps=helps)
        case NotImplementedError():
            msg = f"this catalog cannot do that: {error}"
            return _listed(UnsupportedError.code, msg, listed)
        case ValidationError():
            return _listed(InvalidInputError.code, _word(error), listed)
    return None


def _listed(code: int, message: str, listed: Collection[int], *, helps: bool = False) -> Problem:
    """Choose a status that an operation may answer with.

    Args:
        code: Lance's.
        message: What, which and what next.
        listed: What its document lists.
        helps: Whether it helps to ask again: nothing was done.
    """
    status = _STATUSES.get(code, _SERVER_ERROR)
    if helps and status not in listed:
        return Problem(_UNAVAILABLE, code, message, _SECOND)
    if code == UnauthenticatedError.code:
        return Problem(status, code, message, {"WWW-Authenticate": "Bearer"})
    if status in listed or status in _ALWAYS or status >= _SERVER_ERROR:
        headers = _SECOND if status == _UNAVAILABLE else {}
        return Problem(status, code, message, headers)
    return Problem(_BAD_REQUEST, code, message)


def _word(error: ValidationError) -> str:
    """Word what does not fit a model, without what was given: it may hold secrets."""
    found = [
        f"{'.'.join(str(part) for part in one['loc']) or 'the body'}: {one['msg']}"
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    more = f", and {len(found) - 3} more" if len(found) > 3 else ""  # noqa: PLR2004  # enough to go on
    return f"the request is not as it should be: {'; '.join(found[:3])}{more}"
