"""Answers of an Iceberg REST catalog that are none of success, as errors of Mooring's.

A change whose answer never came, or came from something between, may have happened: that is told
apart from one that the catalog refused, which did not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import msgspec

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
    UnreadableError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Ask", "Goal", "Refusal", "no_answer", "not_offered", "refused", "unreadable"]

_LONGEST_WORDS = 300
_TOO_MANY, _UNAVAILABLE = 429, 503
_CREDENTIAL_REFUSED = {400, 401, 403, 404}
_UNKNOWN = "CommitStateUnknownException"
_ABSENT_STATUS, _CONFLICT, _SERVER_FAILED = 404, 409, 500


class Goal(Enum):
    """What a request is for, as far as it decides what a refusal means."""

    TOKEN = auto()
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
        return self.method not in {"GET", "HEAD"} and self.goal is not Goal.TOKEN

    def describe(self, server: str) -> str:
        """Say what was asked of whom."""
        path = self.path.partition("?")[0]
        return f"{self.what}: {self.method} {path} at {server}" if path else self.what


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is none of success.

    Attributes:
        status: Of HTTP.
        kind: The error's type, where the catalog itself speaks; something between does not know it.
        words: What it says.
    """

    status: int
    kind: str | None
    words: str

    @classmethod
    def read(cls, status: int, content: bytes) -> Refusal:
        """Read an answer, whoever gave it."""
        try:
            told = msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return cls(status, None, _flatten(content.decode("utf-8", "replace")))
        error = told.get("error") if isinstance(told, dict) else None
        if isinstance(error, dict):
            kind = error.get("type")
            words = _flatten(str(error.get("message") or ""))
            return cls(status, str(kind) if kind else "", words)
        if error:  # OAuth2 has a form of its own
            return cls(status, str(error), _flatten(str(told.get("error_description") or error)))
        return cls(status, None, _flatten(content.decode("utf-8", "replace")))

    def hide(self, secrets: Iterable[str]) -> Refusal:
        """Return the same without what must not be shown."""
        words = self.words
        for secret in sorted(secrets, key=len, reverse=True):
            words = words.replace(secret, "***")
        return replace(self, words=words)

    @property
    def is_before_doing(self) -> bool:
        """Whether it says that nothing was done: the same may be sent again."""
        if self.status == _TOO_MANY:
            return True
        # What stands between says 503 also where it lost the catalog's answer.
        return self.status == _UNAVAILABLE and self.kind not in {None, _UNKNOWN}

    def __str__(self) -> str:
        """Return the status with what was said."""
        said = _shorten(": ".join(part for part in (self.kind, self.words) if part))
        return f"{self.status}{f' ({said})' if said else ''}"


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
_NEXT: Mapping[type[MooringError], str] = {
    UnauthenticatedError: "; give a token or a credential that is valid",
    PermissionDeniedError: "; whoever runs the catalog can grant it",
    ServiceUnavailableError: "; try again later",
    UnknownOutcomeError: "; it may have happened: look before it is done again",
    ConcurrentModificationError: "; read the state again, then retry",
}


def refused(ask: Ask, refusal: Refusal, server: str) -> MooringError:
    """Return the error that an answer means.

    Args:
        ask: The request.
        refusal: The answer.
        server: Its address, for the message.
    """
    found = _class_of(ask, refusal)
    return found(f"{ask.describe(server)} answers {refusal}{_NEXT.get(found, '')}")


def no_answer(ask: Ask, reason: str, server: str, *, was_sent: bool) -> MooringError:
    """Return the error of a request without an answer.

    Args:
        ask: The request.
        reason: What happened.
        server: Its address, for the message.
        was_sent: Whether the server may have got it.
    """
    is_unknown = was_sent and ask.changes
    found = UnknownOutcomeError if is_unknown else ServiceUnavailableError
    return found(f"{ask.describe(server)} was not answered: {reason}{_NEXT[found]}")


def unreadable(ask: Ask, reason: str, server: str) -> MooringError:
    """Return the error of an answer of success that cannot be read.

    Args:
        ask: The request.
        reason: What is wrong with it.
        server: Its address, for the message.
    """
    found = UnknownOutcomeError if ask.changes else UnreadableError
    hint = _NEXT.get(found, "; is this the address of an Iceberg REST catalog?")
    return found(f"{ask.describe(server)} answers what cannot be read: {reason}{hint}")


def not_offered(ask: Ask, server: str) -> UnsupportedError:
    """Return the error of something that a server does not list among what it does."""
    return UnsupportedError(f"{ask.describe(server)} is not among the endpoints that it offers")


def _class_of(ask: Ask, refusal: Refusal) -> type[MooringError]:
    found = _told(ask, refusal) or _absent_or_in_the_way(ask, refusal)
    if found is not None:
        return found
    if refusal.is_before_doing:
        return ServiceUnavailableError
    is_failure = refusal.status >= _SERVER_FAILED
    return _for_change(UnknownOutcomeError, ask) if is_failure else InvalidInputError


def _told(ask: Ask, refusal: Refusal) -> type[MooringError] | None:
    """Return what the answer alone says, whatever was asked."""
    if ask.goal is Goal.TOKEN and refusal.status in _CREDENTIAL_REFUSED:
        return UnauthenticatedError
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


def _flatten(words: str) -> str:
    """Return words in one line, without the tags of a page."""
    line = re.sub(r"\s+", " ", re.sub(r"<[^<>]*>", " ", words)).strip()
    return "".join(char if char.isprintable() else "?" for char in line)


def _shorten(words: str) -> str:
    """Return the first of many words: Java sends whole stacks."""
    return words if len(words) <= _LONGEST_WORDS else f"{words[:_LONGEST_WORDS]}..."
