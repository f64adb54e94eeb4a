"""Finds namespaces and tables by a few words: in names, columns and properties.

All words have to be found in an object. Better places come first: the whole name, its beginning,
the beginning of a word in it, anywhere in it, the names of namespaces around it, columns,
properties. In each, objects stand in the order of their names.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from mooring.identifiers import DELIMITER
from mooring.server.ui.atlas.index import Index, fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.identifiers import ObjectId
    from mooring.server.ui.atlas.findings import Findings
    from mooring.server.ui.atlas.picture import Picture
    from mooring.server.ui.atlas.sight import Sight

__all__ = ["Finder", "Found", "FoundObject", "split_words"]

# More say nothing, and each takes time.
_MOST_WORDS = 8


@dataclass(frozen=True, slots=True)
class FoundObject:
    """An object with all words.

    Attributes:
        id: Which.
        is_table: Whether it is a table.
        elsewhere: Those words that are not in its identifier.
    """

    id: ObjectId
    is_table: bool
    elsewhere: Sequence[str]


@dataclass(frozen=True, slots=True)
class Found:
    """What was found.

    Attributes:
        objects: The best, in order.
        total: How many there are in all.
        tables: How many tables were looked through.
        known_columns: Of how many of them the columns are known.
        unknown_properties: Of how many of them properties are not known.
    """

    objects: Sequence[FoundObject]
    total: int
    tables: int
    known_columns: int
    unknown_properties: int


def split_words(text: str) -> list[str]:
    """Return the words that somebody typed, folded, each once."""
    return list(dict.fromkeys(fold(text).split()))[:_MOST_WORDS]


class Finder:
    """Finds objects of a catalog; safe for threads."""

    def __init__(self, findings: Findings) -> None:
        """Know nothing yet.

        Args:
            findings: What is known of tables.
        """
        self._findings = findings
        self._index: Index | None = None
        self._indexing = threading.Lock()

    def keep_up(self, picture: Picture) -> None:
        """Put a picture in order before somebody waits for it."""
        self._index_of(picture)

    def find(self, sight: Sight, words: Sequence[str], limit: int) -> Found:
        """Find the objects with all of some words.

        Args:
            sight: What whoever asks may see.
            words: As `split_words` returns them.
            limit: How many to return.
        """
        index = self._index_of(sight.picture)
        ranges = index.ranges(sight.parts)
        candidates = _with_all(index, ranges, words)
        best = _ranked(index, candidates, words, limit)
        return Found(
            [
                FoundObject(
                    index.objects[place],
                    index.is_table(place),
                    [word for word in words if word not in index.wholes[place]],
                )
                for place in best
            ],
            len(candidates),
            sight.count_tables(),
            index.count_known(ranges),
            index.count_unkept(ranges),
        )

    def _index_of(self, picture: Picture) -> Index:
        with self._indexing:
            if self._index is None or self._index.picture is not picture:
                self._index = Index(picture)
            self._index.learn(self._findings)
            return self._index


def _with_all(index: Index, ranges: Sequence[range], words: Sequence[str]) -> list[int]:
    """Return the places of all objects that have each word somewhere."""
    wholes, columns, properties = index.wholes, index.columns, index.properties
    left: list[int] = []
    for number, word in enumerate(words):
        places = left if number else chain.from_iterable(ranges)
        left = [
            place
            for place in places
            if word in wholes[place] or word in columns[place] or word in properties[place]
        ]
    return left


def _ranked(index: Index, candidates: list[int], words: Sequence[str], limit: int) -> list[int]:
    """Return the best places; worse ones are only looked at where there are too few better."""
    best: list[int] = []
    left = candidates
    for choose in (_are_it, _begin, _begin_words, _are_in_names, _are_in_wholes, _are_columns):
        chosen = left
        for word in words:
            chosen = choose(index, chosen, word)
        best += chosen
        if len(best) >= limit:
            return best[:limit]
        taken = set(chosen)
        left = [place for place in left if place not in taken] if taken else left
    return (best + left)[:limit]


# -- where a word is; each of these also takes what those before it take ---------------------------


def _are_it(index: Index, places: list[int], word: str) -> list[int]:
    names, wholes = index.names, index.wholes
    return [place for place in places if names[place] == word or wholes[place] == word]


def _begin(index: Index, places: list[int], word: str) -> list[int]:
    names, wholes = index.names, index.wholes
    if DELIMITER not in word:
        return [place for place in places if names[place].startswith(word)]
    return [
        place for place in places if names[place].startswith(word) or wholes[place].startswith(word)
    ]


def _begin_words(index: Index, places: list[int], word: str) -> list[int]:
    names = index.names
    search = re.compile(rf"(?<![^\W_]){re.escape(word)}").search
    return [place for place in _are_in_names(index, places, word) if search(names[place])]


def _are_in_names(index: Index, places: list[int], word: str) -> list[int]:
    names = index.names
    return [place for place in places if word in names[place]]


def _are_in_wholes(index: Index, places: list[int], word: str) -> list[int]:
    wholes = index.wholes
    return [place for place in places if word in wholes[place]]


def _are_columns(index: Index, places: list[int], word: str) -> list[int]:
    wholes, columns = index.wholes, index.columns
    return [place for place in places if word in wholes[place] or word in columns[place]]
