"""Tags as flags over their versions, so that none hides another."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FLAG_HEIGHT", "Flag", "Flagged", "raise_flags"]

FLAG_HEIGHT = 19.0
_ROWS = 4
_GAP = 4.0
_PADDING = 12.0
_LETTER = 6.4
_LONGEST = 18
_OVER = 12.0
_WIDE = frozenset("WF")


@dataclass(frozen=True, slots=True)
class Flagged:
    """A tag to draw: where its version is, and what it says."""

    x: float
    text: str
    title: str
    href: str


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag on its pole.

    Attributes:
        x: Where the pole stands.
        foot: Where it stands on its line.
        y: The top of the flag.
        width: How wide the flag is.
        left: Where it begins: one at the right end flies to the left.
        text: What is on it.
        title: What that means.
        href: Where its version is told.
    """

    x: float
    foot: float
    y: float
    width: float
    left: float
    text: str
    title: str
    href: str

    def at(self, y: float) -> Flag:
        """Put it on a line."""
        return replace(self, foot=y - _OVER + 4, y=y + self.y)


def raise_flags(wanted: Sequence[Flagged], right: float) -> tuple[list[Flag], int]:
    """Find room for flags, over the line at zero; return how many rows of them there are.

    Those that find none are left out: the list below has them all.
    """
    flags: list[Flag] = []
    ends = [float("-inf")] * _ROWS
    for one in wanted:
        text = one.text if len(one.text) <= _LONGEST else f"{one.text[: _LONGEST - 1]}…"
        width = _PADDING + sum(map(_width, text))
        left = one.x if one.x + width <= right + _PADDING else one.x - width
        row = next((number for number in range(_ROWS) if ends[number] + _GAP <= left), None)
        if row is None:
            continue
        ends[row] = left + width
        y = -_OVER - (row + 1) * FLAG_HEIGHT + 2
        flags.append(Flag(one.x, 0.0, y, width, left, text, one.title, one.href))
    return flags, sum(end > float("-inf") for end in ends)


def _width(letter: str) -> float:
    return _LETTER * (2 if unicodedata.east_asian_width(letter) in _WIDE else 1)
