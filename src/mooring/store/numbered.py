"""Numbered, immutable, create-only objects: how every decision is made and found again.

The object after the newest one is the decision that all contenders meet on. Numbers start at 1,
have no gaps and are never freed, so the newest can be found by asking for single numbers, without
a listing, and a refused creation means that somebody else decided, or oneself, unheard.
"""

from __future__ import annotations

from time import sleep as pause
from typing import TYPE_CHECKING

from mooring.errors import ServiceUnavailableError, UnknownOutcomeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.store.api import Store

__all__ = ["SEQ_DIGITS", "create_once", "find_newest", "format_seq"]

SEQ_DIGITS = 20
_ATTEMPTS = 6
_FIRST_PAUSE_S = 0.05
_BY_ONES = 8


def format_seq(seq: int) -> str:
    """Write a number so that names sort as numbers."""
    return f"{seq:0{SEQ_DIGITS}d}"


def create_once(store: Store, path: str, body: bytes, *, attempts: int = _ATTEMPTS) -> bool:
    """Create an object and tell the truth about who did.

    The body must be unlike anybody else's (it holds a nonce). An unknown outcome is settled by
    sending the same body to the same key again: either it lands, or what lies there tells.

    Returns:
        Whether the object holds this body; False means somebody else's is there.

    Raises:
        UnknownOutcomeError: the store never answered.
    """
    unknown: ServiceUnavailableError | None = None
    refused = False
    for attempt in range(attempts):
        if attempt:
            pause(_FIRST_PAUSE_S * 2 ** (attempt - 1))
        try:
            if store.put_new(path, body):
                return True
            # A refusal may be the echo of one's own put, whose acknowledgement was lost.
            refused = True
            found = store.get(path)
            if found == body:
                store.sync([path])  # the first put may have failed at just that
        except UnknownOutcomeError as exc:
            unknown = exc
        except ServiceUnavailableError as exc:
            if not (refused or unknown):
                raise
            unknown = exc
        else:
            if found is not None:
                return found == body
    msg = f"the store never said whether '{path}' was written: look before trying again"
    raise UnknownOutcomeError(msg) from unknown


def find_newest(
    store: Store, path_of: Callable[[int], str], start: int = 0
) -> tuple[int, bytes | None]:
    """Find the newest of a row of numbered objects.

    Goes on by ones, for most rows are short, then doubles the step until a number is absent and
    halves it again. Since numbers have no gaps and never vanish, there is a moment during the
    call at which the answer is exactly the newest.

    Args:
        store: Where the objects are.
        path_of: From number to path.
        start: A number known to exist; the search begins after it.

    Returns:
        The number and content of the newest; ``start`` and None where nothing follows it.
    """
    newest, body = start, None
    step = 1
    absent: int | None = None
    while absent is None or absent - newest > 1:
        candidate = newest + step if absent is None else (newest + absent) // 2
        found = store.get(path_of(candidate))
        if found is None:
            absent = candidate
        else:
            newest, body = candidate, found
            step = 1 if newest - start < _BY_ONES else newest - start
    return newest, body
