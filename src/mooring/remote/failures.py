"""Answers of a Lance REST server that are none of success, as errors of Mooring's.

A server that tells a code knows what it did; what stands between does not tell one.

Spec: lance-rest-openapi, "ErrorResponse".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from mooring.errors import (
    ConcurrentModificationError,
    ConflictError,
    InvalidInputError,
    InvalidNameError,
    MooringError,
    NamespaceNotFoundError,
    NotFoundError,
    PermissionDeniedError,
    ProtectedError,
    ServiceUnavailableError,
    TableNotFoundError,
    ThrottledError,
    UnauthenticatedError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.http.failures import NEXT, describe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mooring.http.failures import Refusal

__all__ = ["LANCE", "About", "Ask", "LanceDialect", "error_of"]

_SERVER_FAILED, _NOT_IMPLEMENTED, _TOO_MANY, _UNAVAILABLE = 500, 501, 429, 503


class About(Enum):
    """What a request is about, as far as it decides what a refusal means."""

    CATALOG = "catalog"
    NAMESPACE = "namespace"
    TABLE = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request.

    Attributes:
        about: What it is about.
        method: Of HTTP.
        path: Below the server's address, with the query.
        what: The object, for messages.
        changes: Whether something is different afterwards; reads are posts here, too.
        body: What is sent: as JSON, or piece by piece.
        headers: What is sent beside what every request has.
        timeout_s: How long the answer may take, where it is not as long as others.
    """

    about: About
    path: str
    what: str
    method: str = "POST"
    changes: bool = False
    body: Mapping[str, Any] | Iterator[bytes] | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float | None = None


def _by_code(kind: type[MooringError]) -> dict[int, type[MooringError]]:
    """Return the class of each code; the most general one that has it."""
    found: dict[int, type[MooringError]] = {}
    for one in kind.__subclasses__():
        found |= _by_code(one)
    return {**found, kind.code: kind}


_BY_CODE: Mapping[int, type[MooringError]] = {
    **_by_code(MooringError),
    TableNotFoundError.code: TableNotFoundError,
    ConcurrentModificationError.code: ConcurrentModificationError,
}
# What a code is for some of the words that come with it: those of Mooring's servers, and those of
# Lance's own, which tells everything that it does not have as its own failure.
_BY_WORDS: Sequence[tuple[int, str, type[MooringError]]] = (
    (ProtectedError.code, r" is protected", ProtectedError),
    (
        InvalidNameError.code,
        r" cannot (be a (new )?name|name a \w+)\b| hold the delimiter",
        InvalidNameError,
    ),
    (MooringError.code, r"^Not supported: ", UnsupportedError),
)
# After these nothing is known but that it failed.
_SAYS_LITTLE = {ServiceUnavailableError.code, MooringError.code}
_BY_STATUS: Mapping[int, type[MooringError]] = {
    401: UnauthenticatedError,
    403: PermissionDeniedError,
    405: UnsupportedError,
    406: UnsupportedError,
    409: ConflictError,
    _NOT_IMPLEMENTED: UnsupportedError,
}
_ABSENT = 404
_ABSENT_CLASS: Mapping[About, type[MooringError]] = {
    About.CATALOG: NotFoundError,
    About.NAMESPACE: NamespaceNotFoundError,
    About.TABLE: TableNotFoundError,
}
# Whoever reads these wants to know whom they were dealing with.
_TOLD_WITH_ADDRESS = (
    UnauthenticatedError,
    PermissionDeniedError,
    ServiceUnavailableError,
    UnsupportedError,
)


class LanceDialect:
    """What a Lance REST server's answers mean."""

    server = "a Lance REST server"

    def is_before_doing(self, refusal: Refusal) -> bool:
        """Whether an answer says that nothing was done: the same may be sent again.

        Of a lost race, too: whoever asks again is decided about on the state of then.
        """
        if refusal.status == _TOO_MANY or refusal.code == ThrottledError.code:
            return True
        # What stands between says 503 also where it lost the server's answer.
        codes = {ServiceUnavailableError.code, ConcurrentModificationError.code}
        return refusal.status == _UNAVAILABLE and refusal.code in codes

    def refused(self, ask: Ask, refusal: Refusal, server: str) -> MooringError:
        """Return the error that an answer means.

        Args:
            ask: The request.
            refusal: The answer.
            server: Its address, for the message.
        """
        found = self._class_of(ask, refusal)
        is_told = refusal.code is not None and refusal.words
        if is_told and not issubclass(found, _TOLD_WITH_ADDRESS):
            # Not all servers say what they speak of.
            is_clear = ask.what in refusal.words
            return found(refusal.words if is_clear else f"{ask.what}: {refusal.words}")
        is_strange = refusal.code is None and refusal.status == _ABSENT
        doubt = f"; is this the address of {self.server}?" if is_strange else ""
        return found(f"{describe(ask, server)} answers {refusal}{NEXT.get(found, doubt)}")

    def _class_of(self, ask: Ask, refusal: Refusal) -> type[MooringError]:
        if self.is_before_doing(refusal):
            return _BY_CODE[refusal.code or ThrottledError.code]
        code = -1 if refusal.code is None else refusal.code
        found = _class_of_code(code, refusal.words) or _BY_STATUS.get(refusal.status)
        if found is not None:
            return found
        if refusal.status >= _SERVER_FAILED or code in _SAYS_LITTLE:
            return UnknownOutcomeError if ask.changes else ServiceUnavailableError
        return _ABSENT_CLASS[ask.about] if refusal.status == _ABSENT else InvalidInputError


LANCE = LanceDialect()


def error_of(code: int, words: str) -> MooringError:
    """Return the error that a server tells by its code."""
    return (_class_of_code(code, words) or MooringError)(words)


def _class_of_code(code: int, words: str) -> type[MooringError] | None:
    """Return the class of a code, where it tells one; some are told by their words alone."""
    for known, saying, kind in _BY_WORDS:
        if code == known and re.search(saying, words):
            return kind
    return None if code in _SAYS_LITTLE else _BY_CODE.get(code)
