"""Numbers, sizes and times as pages show them."""

from __future__ import annotations

from mooring.clock import format_time

__all__ = ["FILTERS", "NOTHING", "ago", "count", "duration", "size", "when"]

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


def when(at_ms: int | None) -> str:
    """Write a time as UTC."""
    return NOTHING if at_ms is None else format_time(at_ms)


def duration(length_ms: int) -> str:
    """Say how long something is: ``3 days``, ``2 hours``; to the largest unit that fits."""
    for unit_ms, name in _STEPS_MS:
        if length_ms >= unit_ms:
            number = length_ms // unit_ms
            return f"{number:,} {name}{'s' if number > 1 else ''}"
    seconds = max(length_ms, 0) // _SECOND_MS
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def ago(at_ms: int | None, now_ms: int) -> str:
    """Say how long ago something was, or when it will be."""
    if at_ms is None:
        return NOTHING
    past_ms = now_ms - at_ms
    if abs(past_ms) < 5 * _SECOND_MS:
        return "just now"
    return f"{duration(past_ms)} ago" if past_ms > 0 else f"in {duration(-past_ms)}"


FILTERS = {"count": count, "size": size, "when": when, "duration": duration, "ago": ago}
