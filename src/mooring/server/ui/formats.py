"""Numbers, sizes and times as pages show them."""

from __future__ import annotations

from mooring.amounts import how_many
from mooring.clock import format_time

__all__ = [
    "FILTERS",
    "NOTHING",
    "ago",
    "count",
    "duration",
    "iso",
    "sentence",
    "size",
    "time_left",
    "when",
    "whole_duration",
]

NOTHING = "\N{EN DASH}"
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
_STEP = 1000
_STEPS_MS = (
    (31_557_600_000, "year"),
    (2_629_800_000, "month"),
    (86_400_000, "day"),
    (3_600_000, "hour"),
    (60_000, "minute"),
)
_SECOND_MS = 1000


def count(number: int | None) -> str:
    """Write a number of things: ``12,345``."""
    return NOTHING if number is None else f"{number:,}"


def size(size_bytes: int | None) -> str:
    """Write a number of bytes: ``12.3 MB``."""
    if size_bytes is None:
        return NOTHING
    value = float(size_bytes)
    for unit in _UNITS[:-1]:
        # What would be rounded to the next unit is written in it.
        if abs(value) < _STEP - 0.5:
            return (
                f"{value:.0f} {unit}"
                if unit == "B" or value >= _STEP / 10
                else f"{value:.1f} {unit}"
            )
        value /= _STEP
    return f"{value:,.1f} {_UNITS[-1]}"


def iso(at_ms: int | None) -> str:
    """Write a time for programs: ``2026-01-31T23:59:59Z``."""
    return NOTHING if at_ms is None else format_time(at_ms)


def when(at_ms: int | None) -> str:
    """Write a time for people: ``2026-01-31 23:59:59 UTC``."""
    return iso(at_ms).replace("T", " ").replace("Z", " UTC")


def duration(length_ms: int) -> str:
    """Say how long something is: ``3 days``, ``2 hours``; to the largest unit that fits."""
    for unit_ms, name in _STEPS_MS:
        if length_ms >= unit_ms:
            return how_many(length_ms // unit_ms, name)
    return how_many(max(length_ms, 0) // _SECOND_MS, "second")


def time_left(length_ms: int) -> str:
    """Say how long something still takes: to the nearest of the largest unit that fits.

    A week of which a second has passed is ``7 days``, not six of them.
    """
    unit_ms = next((unit for unit, _ in _STEPS_MS if length_ms >= unit), _SECOND_MS)
    return duration((length_ms + unit_ms // 2) // unit_ms * unit_ms)


def whole_duration(length_ms: int) -> str:
    """Say exactly how long something is: ``7 days``, ``36 hours``."""
    # Months and years have no exact length.
    for unit_ms, name in (*_STEPS_MS[2:], (_SECOND_MS, "second")):
        if length_ms and length_ms % unit_ms == 0:
            return how_many(length_ms // unit_ms, name)
    return f"{length_ms:,} ms"


def ago(at_ms: int | None, now_ms: int) -> str:
    """Say how long ago something was, or when it will be."""
    if at_ms is None:
        return NOTHING
    past_ms = now_ms - at_ms
    if abs(past_ms) < 5 * _SECOND_MS:
        return "just now"
    return f"{duration(past_ms)} ago" if past_ms > 0 else f"in {time_left(-past_ms)}"


def sentence(text: str) -> str:
    """Begin a message as a sentence; a name at its beginning stays what it is."""
    first = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


FILTERS = {
    "count": count,
    "size": size,
    "iso": iso,
    "when": when,
    "duration": duration,
    "ago": ago,
    "sentence": sentence,
}
