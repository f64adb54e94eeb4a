"""Where words are in a text, so that a page can mark them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from mooring.server.ui.atlas.index import fold

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Piece", "cut_out", "mark"]

_AROUND = 40


class Piece(msgspec.Struct, frozen=True):
    """A part of a text.

    Attributes:
        text: What it says.
        is_match: Whether it is what somebody looked for.
    """

    text: str
    is_match: bool = False


def mark(text: str, words: Iterable[str]) -> list[Piece]:
    """Cut a text at the words in it.

    Args:
        text: Any text.
        words: Folded.
    """
    spans = _spans(text, words)
    pieces, at = [], 0
    for start, end in spans:
        if start > at:
            pieces.append(Piece(text[at:start]))
        pieces.append(Piece(text[start:end], is_match=True))
        at = end
    return [*pieces, Piece(text[at:])] if at < len(text) or not pieces else pieces


def cut_out(text: str, words: Iterable[str]) -> list[Piece]:
    """Return the part of a long text around the first of some words in it, marked."""
    words = list(words)
    spans = _spans(text, words)
    start = max(0, spans[0][0] - _AROUND) if spans else 0
    end = (spans[0][1] if spans else 0) + 2 * _AROUND
    before, after = "…" if start else "", "…" if end < len(text) else ""
    return mark(f"{before}{text[start:end]}{after}", words)


def _spans(text: str, words: Iterable[str]) -> list[tuple[int, int]]:
    """Return where words are, in order and apart from each other."""
    folded, places = _folded(text)
    wanted = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    if not wanted:
        return []
    found: list[tuple[int, int]] = []
    for match in re.finditer(wanted, folded):
        start, end = places[match.start()], places[match.end() - 1] + 1
        if found and start < found[-1][1]:  # half of a letter that folds to two
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _folded(text: str) -> tuple[str, range | list[int]]:
    """Fold a text, and tell of which of its letters each of the result came."""
    if text.isascii():
        return text.lower(), range(len(text))
    letters, places = [], []
    for place, letter in enumerate(text):
        for one in fold(letter):
            letters.append(one)
            places.append(place)
    return "".join(letters), places
