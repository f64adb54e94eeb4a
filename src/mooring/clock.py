"""Time and randomness, injected so that nothing in the core asks the machine for them.

A clock only stamps and expires; no decision between two processes ever rests on one.
"""

from __future__ import annotations

import re
import secrets
import time
from datetime import UTC, datetime
from typing import Protocol

from mooring.errors import InvalidInputError

__all__ = [
    "DAY_MS",
    "Clock",
    "IdSource",
    "RandomIds",
    "SystemClock",
    "format_duration",
    "format_time",
    "parse_ttl",
]

_UNITS_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
DAY_MS = _UNITS_MS["d"]
_LONGEST_TTL_MS = 365_000 * DAY_MS
_DURATION = re.compile(r"(\d{1,18})\s*(ms|[wdhms])", re.IGNORECASE | re.ASCII)


class Clock(Protocol):
    """Tells the time in milliseconds since 1970."""

    def now_ms(self) -> int:
        """Return the current time."""
        ...


class IdSource(Protocol):
    """Gives identifiers that nobody else gives."""

    def new_id(self) -> str:
        """Return a fresh identifier of lowercase hexadecimal digits."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return the current time."""
        return time.time_ns() // 1_000_000


class RandomIds:
    """128 random bits an identifier."""

    def new_id(self) -> str:
        """Return a fresh identifier."""
        return secrets.token_hex(16)


def parse_ttl(text: str) -> int | None:
    """Turn ``7d``, ``12h``, ``90m``, ``30s`` or ``never`` into milliseconds.

    Returns:
        The duration, or None for ``never``.

    Raises:
        InvalidInputError: the text is no duration.
    """
    word = str(text).strip()
    if word.lower() == "never":
        return None
    match = _DURATION.fullmatch(word)
    if match is None:
        msg = f"'{text}' is not a duration: write a number with a unit (7d, 12h, 90m, 30s) or never"
        raise InvalidInputError(msg)
    ttl_ms = int(match[1]) * _UNITS_MS[match[2].lower()]
    if ttl_ms > _LONGEST_TTL_MS:
        msg = f"'{text}' is longer than a thousand years: write never"
        raise InvalidInputError(msg)
    return ttl_ms


def format_duration(duration_ms: int) -> str:
    """Say a duration in its largest whole unit: ``3 d``, ``2 h``, ``45 s``."""
    # Another machine's clock may be ahead: what is yet to come was just now.
    length_ms = max(duration_ms, 0)
    for unit in ("d", "h", "m"):
        if length_ms >= _UNITS_MS[unit]:
            return f"{length_ms // _UNITS_MS[unit]} {unit}"
    return f"{length_ms // _UNITS_MS['s']} s"


def format_time(at_ms: int) -> str:
    """Write a time as UTC in ISO 8601, to the second."""
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
