"""Decisions about a table: the states of its life and how they are stored.

A decision is an immutable JSON object. Its hint repeats state and times in a file name, so that
one listing of the root tells what every table is.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from mooring.errors import CatalogFormatError, UnreadableError

__all__ = [
    "UNDO_RENAME",
    "Decision",
    "Hint",
    "State",
    "clamp_ms",
    "decode_decision",
    "encode_decision",
]

# The action of a decision that gives a table its name back.
UNDO_RENAME = "undo rename"

# A hint gives a number nine digits in base 36: three thousand years of milliseconds.
_LARGEST_MS = 36**9 - 1


class State(StrEnum):
    """What a table is. The verbs in progress are finished by whoever comes next."""

    LIVE = "live"
    DELETED = "deleted"
    DEREGISTERED = "deregistered"
    REVIVING = "reviving"
    UNDROPPING = "undropping"
    CREATING = "creating"
    PURGING = "purging"
    PURGED = "purged"
    RENAMING = "renaming"

    @property
    def in_trash(self) -> bool:
        """Whether the dropped table can still come back."""
        return self in _IN_TRASH


_IN_TRASH = {State.DELETED, State.REVIVING, State.UNDROPPING}


class Decision(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One step in the life of a table.

    Attributes:
        state: What the table is from here on.
        nonce: Random; tells this decision from any other's.
        prev: The nonce of the decision before; empty for the first.
        action: The operation that led here, for the history.
        by: Who asked for it.
        at_ms: When, by the clock of whoever asked.
        deleted_at_ms: When the table was dropped; kept while it is in the trash.
        ttl_ms: How long it stays there; None is for ever.
        version: The newest version at a drop, what an undrop brings back, what a purge kept.
        manifest: The digest of that version's manifest at a drop or purge: another program that
            puts a table of its own into the directory cannot have the same.
        protected: Whether drops are refused.
        sealed: Whether a rename left the table's directory closed to all writers.
        intent: The nonce of the rename that took the name away.
        consumed: Markers of other programs that this decision takes account of.
    """

    state: State
    nonce: str
    prev: str
    action: str
    by: str
    at_ms: int
    deleted_at_ms: int | None = None
    ttl_ms: int | None = None
    version: int | None = None
    manifest: str | None = None
    protected: bool = False
    sealed: bool = False
    intent: str | None = None
    consumed: tuple[str, ...] = ()

    @property
    def hint(self) -> Hint:
        """What the hint of this decision says."""
        return Hint(self.state, self.deleted_at_ms, self.ttl_ms)


class Hint(msgspec.Struct, frozen=True):
    """The part of a decision that fits into a file name."""

    state: State
    deleted_at_ms: int | None = None
    ttl_ms: int | None = None

    def format(self) -> str:
        """Write ``state``, ``state.<time>`` or ``state.<time>.<duration>`` in base 36."""
        if self.deleted_at_ms is None:
            return self.state.value
        words = [self.state.value, _to_base36(clamp_ms(self.deleted_at_ms))]
        if self.ttl_ms is not None:
            words.append(_to_base36(clamp_ms(self.ttl_ms)))
        return ".".join(words)

    @classmethod
    def parse(cls, text: str) -> Hint | None:
        """Read a hint; None for one that a newer release may have written."""
        state, *numbers = text.split(".")
        try:
            values = [int(number, 36) for number in numbers]
            return cls(State(state), *values) if len(values) <= 2 else None  # noqa: PLR2004
        except ValueError:
            return None


def clamp_ms(value: int) -> int:
    """Bring a time or duration that somebody else wrote within what a hint can hold."""
    return min(max(value, 0), _LARGEST_MS)


def encode_decision(decision: Decision) -> bytes:
    """Write a decision."""
    return msgspec.json.encode(decision)


def decode_decision(path: str, body: bytes) -> Decision:
    """Read a decision.

    Raises:
        CatalogFormatError: it holds something this release does not know.
        UnreadableError: it is not a decision at all.
    """
    try:
        return msgspec.json.decode(body, type=Decision)
    except msgspec.ValidationError as exc:
        msg = f"'{path}' was written by a newer Mooring ({exc}): upgrade to read this catalog"
        raise CatalogFormatError(msg) from exc
    except msgspec.DecodeError as exc:
        msg = f"'{path}' is damaged ({exc}): restore it from a copy"
        raise UnreadableError(msg) from exc


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def _to_base36(number: int) -> str:
    digits = ""
    while number:
        number, rest = divmod(number, 36)
        digits = _DIGITS[rest] + digits
    return digits or "0"
