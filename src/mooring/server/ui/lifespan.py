"""How much of its time in the trash something has left."""

from __future__ import annotations

__all__ = ["part_left"]


def part_left(deleted_at_ms: int, expires_at_ms: int | None, now_ms: int) -> float | None:
    """Return the part of its time that is left, from 1 to 0; None for what stays for ever."""
    if expires_at_ms is None:
        return None
    whole_ms = max(expires_at_ms - deleted_at_ms, 1)
    return min(max((expires_at_ms - now_ms) / whole_ms, 0.0), 1.0)
