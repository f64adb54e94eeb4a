"""Answers of an Iceberg REST catalog that are none of success, as errors of Mooring's.

A change whose answer never came, or came from something between, may have happened: that is told
apart from one that the catalog refused, which did not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    MooringError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    NotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnauthenticatedError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.http.failures import NEXT, describe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.http.failures import Refusal

__all__ = ["ICEBERG", "Ask", "Goal", "IcebergDialect", "not_offered"]

_TOO_MANY, _UNAVAILABLE = 429, 503
_UNKNOWN = "CommitStateUnknownException"
_ABSENT_STATUS, _CONFLICT, _SERVER_FAILED = 404, 409, 500


class Goal(Enum):
    """What a request is for, as far as it decides what a refusal means."""

    CONFIG = auto()
    READ_NAMESPACE = auto()
    CREATE_NAMESPACE = auto()
    UPDATE_NAMESPACE = auto()
    DROP_NAMESPACE = auto()
    READ_TABLE = auto()
    CREATE_TABLE = auto()
    RENAME_TABLE = auto()
    DROP_TABLE = auto()
    COMMIT = auto()
    COMMIT_SEVERAL = auto()


@dataclass(frozen=True, slots=True)
class Ask:
    """A request.

    Attributes:
        goal: What for.
        method: Of HTTP.
        path: Below the server's address, with the query.
        what: The object, for messages.
        body: What is sent as JSON.
    """

    goal: Goal
    method: str
    path: str
    what: str
    body: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def changes(self) -> bool:
        """Whether something is different afterwards."""
        return self.method not in {"GET", "HEAD"}

    @property
    def headers(self) -> Mapping[str, str]:
        """Nothing more than what every request has."""
        return {}

    @property
    def timeout_s(self) -> None:
        """As long as others."""
        return


_BY_KIND: Mapping[str, type[MooringError]] = {
    "NoSuchNamespaceException": NamespaceNotFoundError,
    "NoSuchTableException": TableNotFoundError,
    "NoSuchIcebergTableException": TableNotFoundError,
    "NamespaceNotEmptyException": NamespaceNotEmptyError,
    "UnsupportedOperationException": UnsupportedError,
    _UNKNOWN: UnknownOutcomeError,
}
_ABSENT: Mapping[Goal, type[MooringError]] = {
    Goal.CONFIG: NotFoundError,
    Goal.READ_TABLE: TableNotFoundError,
    Goal.RENAME_TABLE: TableNotFoundError,
    Goal.DROP_TABLE: TableNotFoundError,
    Goal.COMMIT: TableNotFoundError,
    Goal.COMMIT_SEVERAL: TableNotFoundError,
}
_CONFLICTS: Mapping[Goal, type[MooringError]] = {
    Goal.CREATE_NAMESPACE: NamespaceAlreadyExistsError,
    Goal.DROP_NAMESPACE: NamespaceNotEmptyError,
    Goal.CREATE_TABLE: TableAlreadyExistsError,
    Goal.RENAME_TABLE: TableAlreadyExistsError,
}
_BY_STATUS: Mapping[int, type[MooringError]] = {
    400: InvalidInputError,
    401: UnauthenticatedError,
    403: PermissionDeniedError,
    405: UnsupportedError,
    406: UnsupportedError,
    419: UnauthenticatedError,
    422: InvalidInputError,
    501: UnsupportedError,
}
# Servers without these answer as for any path that is not there.
_OPTIONAL = {Goal.RENAME_TABLE, Goal.COMMIT_SEVERAL}


class IcebergDialect:
    """What an Iceberg REST catalog's answers mean."""

    server = "an Iceberg REST catalog"

    def is_before_doing(self, refusal: Refusal) -> bool:
        """Whether an answer says that nothing was done: the same may be sent again."""
        if refusal.status == _TOO_MANY:
            return True
        # What stands between says 503 also where it lost the catalog's answer.
        return refusal.status == _UNAVAILABLE and refusal.kind not in {None, _UNKNOWN}

    def refused(self, ask: Ask, refusal: Refusal, server: str) -> MooringError:
        """Return the error that an answer means.

        Args:
            ask: The request.
            refusal: The answer.
            server: Its address, for the message.
        """
        found = _class_of(ask, refusal)
        return found(f"{describe(ask, server)} answers {refusal}{NEXT.get(found, '')}")


ICEBERG = IcebergDialect()


def not_offered(ask: Ask, server: str) -> UnsupportedError:
    """Return the error of something that a server does not list among what it does."""
    return UnsupportedError(f"{describe(ask, server)} is not among the endpoints that it offers")


def _class_of(ask: Ask, refusal: Refusal) -> type[MooringError]:
    found = _told(ask, refusal) or _absent_or_in_the_way(ask, refusal)
    if found is not None:
        return found
    if ICEBERG.is_before_doing(refusal):
        return ServiceUnavailableError
    is_failure = refusal.status >= _SERVER_FAILED
    return _for_change(UnknownOutcomeError, ask) if is_failure else InvalidInputError


def _told(ask: Ask, refusal: Refusal) -> type[MooringError] | None:
    """Return what the answer alone says, whatever was asked."""
    found = _BY_KIND.get(refusal.kind or "") or _BY_STATUS.get(refusal.status)
    return found and _for_change(found, ask)


def _absent_or_in_the_way(ask: Ask, refusal: Refusal) -> type[MooringError] | None:
    """Return what an answer means that says little by itself."""
    if refusal.status == _CONFLICT:
        return _CONFLICTS.get(ask.goal, ConcurrentModificationError)
    if refusal.status != _ABSENT_STATUS:
        return None
    is_missing = ask.goal in _OPTIONAL and refusal.kind is None
    return UnsupportedError if is_missing else _ABSENT.get(ask.goal, NamespaceNotFoundError)


def _for_change(found: type[MooringError], ask: Ask) -> type[MooringError]:
    """Of a read, no outcome is unknown."""
    is_read = found is UnknownOutcomeError and not ask.changes
    return ServiceUnavailableError if is_read else found
