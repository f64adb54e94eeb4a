"""Requests, and answers that are none of success, as every protocol has them.

A change whose answer never came, or came from something between, may have happened: that is told
apart from one that the server refused, which did not. What a refusal means is each protocol's to
say (`Dialect`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from mooring.errors import (
    ConcurrentModificationError,
    MooringError,
    PermissionDeniedError,
    ServiceUnavailableError,
    UnauthenticatedError,
    UnknownOutcomeError,
    UnreadableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["NEXT", "Ask", "Dialect", "Refusal", "TokenAsk", "describe", "no_answer", "unreadable"]

_LONGEST_WORDS = 300
_CREDENTIAL_REFUSED = {400, 401, 403, 404}
_TOO_MANY, _UNAVAILABLE = 429, 503

# What can be done about an error.
NEXT: Mapping[type[MooringError], str] = {
    UnauthenticatedError: "; give a token or a credential that is valid",
    PermissionDeniedError: "; whoever runs the catalog can grant it",
    ServiceUnavailableError: "; try again later",
    UnknownOutcomeError: "; it may have happened: look before it is done again",
    ConcurrentModificationError: "; read the state again, then retry",
}


class Ask(Protocol):
    """A request."""

    @property
    def method(self) -> str:
        """Of HTTP."""
        ...

    @property
    def path(self) -> str:
        """Below the server's address, with the query."""
        ...

    @property
    def what(self) -> str:
        """The object, for messages."""
        ...

    @property
    def body(self) -> Mapping[str, Any] | Iterator[bytes] | None:
        """What is sent: as JSON, or piece by piece."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """What is sent beside what every request has."""
        ...

    @property
    def timeout_s(self) -> float | None:
        """How long the answer may take, where it is not as long as others."""
        ...

    @property
    def changes(self) -> bool:
        """Whether something is different afterwards."""
        ...


A_contra = TypeVar("A_contra", bound=Ask, contravariant=True)


class Dialect(Protocol[A_contra]):
    """What a protocol's answers mean."""

    @property
    def server(self) -> str:
        """What its servers are called, for messages."""
        ...

    def is_before_doing(self, refusal: Refusal) -> bool:
        """Whether an answer says that nothing was done: the same may be sent again."""
        ...

    def refused(self, ask: A_contra, refusal: Refusal, server: str) -> MooringError:
        """Return the error that an answer means.

        Args:
            ask: The request.
            refusal: The answer.
            server: Its address, for the message.
        """
        ...


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is none of success.

    Attributes:
        status: Of HTTP.
        kind: The error's type, where the server itself speaks; something between does not know it.
        words: What it says.
        code: The error's number, where it tells one.
    """

    status: int
    kind: str | None
    words: str
    code: int | None = None

    @classmethod
    def read(cls, status: int, content: bytes) -> Refusal:
        """Read an answer, whoever gave it."""
        try:
            told = msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return cls(status, None, _flatten(content.decode("utf-8", "replace")))
        error = told.get("error") if isinstance(told, dict) else None
        if isinstance(error, dict):  # Iceberg's
            kind = error.get("type")
            words = _flatten(str(error.get("message") or ""))
            return cls(status, str(kind) if kind else "", words)
        code = told.get("code") if isinstance(told, dict) else None
        if isinstance(code, int) and not isinstance(code, bool):  # Lance's
            return cls(status, "", _flatten(str(error or told.get("detail") or "")), code)
        if error:  # OAuth2 has a form of its own
            return cls(status, str(error), _flatten(str(told.get("error_description") or error)))
        return cls(status, None, _flatten(content.decode("utf-8", "replace")))

    def hide(self, secrets: Iterable[str]) -> Refusal:
        """Return the same without what must not be shown."""
        words = self.words
        for secret in sorted(secrets, key=len, reverse=True):
            words = words.replace(secret, "***")
        return replace(self, words=words)

    def __str__(self) -> str:
        """Return the status with what was said."""
        said = _shorten(": ".join(part for part in (self.kind, self.words) if part))
        return f"{self.status}{f' ({said})' if said else ''}"


@dataclass(frozen=True, slots=True)
class TokenAsk:
    """A request for a token, which changes nothing."""

    what: str
    method: str = "POST"
    path: str = ""
    body: None = None
    changes: bool = False
    timeout_s: None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """Nothing more than what every request has."""
        return {}

    @property
    def server(self) -> str:
        """Whoever gives tokens."""
        return "a server that gives tokens"

    def is_before_doing(self, refusal: Refusal) -> bool:
        """Whether it was too busy."""
        return refusal.status in {_TOO_MANY, _UNAVAILABLE}

    def refused(self, ask: TokenAsk, refusal: Refusal, server: str) -> MooringError:
        """Return the error that a refusal means; any that is final is one of the credential."""
        is_final = refusal.status in _CREDENTIAL_REFUSED
        found = UnauthenticatedError if is_final else ServiceUnavailableError
        return found(f"{describe(ask, server)} answers {refusal}{NEXT[found]}")


def describe(ask: Ask, server: str) -> str:
    """Say what was asked of whom."""
    path = ask.path.partition("?")[0]
    return f"{ask.what}: {ask.method} {path} at {server}" if path else ask.what


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
    # What never arrived may have gone to a wrong place.
    tail = NEXT[found] if was_sent else "; check the address, or try again later"
    return found(f"{describe(ask, server)} was not answered: {reason}{tail}")


def unreadable(ask: Ask, reason: str, server: str, kind: str) -> MooringError:
    """Return the error of an answer of success that cannot be read.

    Args:
        ask: The request.
        reason: What is wrong with it.
        server: Its address, for the message.
        kind: What the server should be.
    """
    found = UnknownOutcomeError if ask.changes else UnreadableError
    hint = NEXT.get(found, f"; is this the address of {kind}?")
    return found(f"{describe(ask, server)} answers what cannot be read: {reason}{hint}")


def _flatten(words: str) -> str:
    """Return words in one line, without the tags of a page."""
    line = re.sub(r"\s+", " ", re.sub(r"<[^<>]*>", " ", words)).strip()
    return "".join(char if char.isprintable() else "?" for char in line)


def _shorten(words: str) -> str:
    """Return the first of many words: Java sends whole stacks."""
    return words if len(words) <= _LONGEST_WORDS else f"{words[:_LONGEST_WORDS]}..."
