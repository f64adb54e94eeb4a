"""Amounts of things in words."""

from __future__ import annotations

__all__ = ["how_many"]


def how_many(number: int, thing: str, things: str | None = None) -> str:
    """Say how many: ``1 table``, ``12,345 tables``.

    Args:
        number: How many.
        thing: What one is called.
        things: What several are called, where an ``s`` does not do.
    """
    return f"1 {thing}" if number == 1 else f"{number:,} {things or thing + 's'}"
