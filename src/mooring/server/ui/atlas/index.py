"""The text of a catalog, in the order of its names, to look for words in.

Objects stand in the order of their identifiers, so that all in a namespace stand side by side: who
may read some namespaces alone has a few ranges to look through. Letters are folded, so that large
and small ones are the same in any script.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING

from mooring.identifiers import DELIMITER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mooring.identifiers import ObjectId
    from mooring.server.ui.atlas.findings import Finding, Findings
    from mooring.server.ui.atlas.picture import Picture

__all__ = ["Index", "fold"]


def fold(text: str) -> str:
    """Return a text in which large and small letters, and spellings of one, are the same."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


class Index:
    """What can be found in a picture.

    Attributes:
        picture: The catalog.
        objects: Its namespaces and tables, in the order of their identifiers.
        names: The own name of each, folded.
        wholes: The whole identifier of each, folded.
        columns: The columns of each, folded, a line each; empty where they are not known.
        properties: The properties of each, folded, a line each; empty where it has none.
    """

    def __init__(self, picture: Picture) -> None:
        """Put the names and properties of a picture in order."""
        look = picture.look
        namespaces = [one for one in look.namespaces if not one.is_root]
        self.picture = picture
        # Most are in order already, which makes it quick; a table comes before its namesake.
        self.objects = sorted([*look.tables, *namespaces], key=attrgetter("names"))
        self._ids = [one.names for one in self.objects]
        self._namespaces = {one.names for one in namespaces}
        # By plain tuples, which are hashed ten times as fast as identifiers.
        self._places = dict(zip(reversed(self._ids), self._downward(), strict=True))
        self.names = _fold_all(names[-1] for names in self._ids)
        self.wholes = _fold_all(DELIMITER.join(names) for names in self._ids)
        self.columns = [""] * len(self.objects)
        kept = [self._kept(place) for place in range(len(self.objects))]
        self.properties = [_text(properties) if properties else "" for properties in kept]
        self._unkept = {
            place for place, one in enumerate(kept) if one is None and self.is_table(place)
        }
        self._known: set[int] = set()
        self._learned = 0

    def _downward(self) -> range:
        return range(len(self._ids) - 1, -1, -1)

    def _kept(self, place: int) -> Mapping[str, str] | None:
        one, look = self.objects[place], self.picture.look
        if self.is_table(place):
            return look.tables[one].properties
        return look.namespaces.get(one)

    def is_table(self, place: int) -> bool:
        """Whether a table stands at a place."""
        names = self._ids[place]
        return names not in self._namespaces or self._is_namesake(place)

    def _is_namesake(self, place: int) -> bool:
        """Whether at a place stands the table whose name is also that of a namespace."""
        after = place + 1
        return after < len(self._ids) and self._ids[after] == self._ids[place]

    def learn(self, findings: Findings) -> None:
        """Add what was found out about tables since the last time."""
        self._learned, tables = findings.since(self._learned)
        for table in tables:
            place = self._places.get(table.names)
            if place is not None and self.is_table(place):
                self._add(place, findings.get(table))

    def _add(self, place: int, found: Finding | None) -> None:
        if found is None or found.failure:
            self.columns[place] = ""
            self._known.discard(place)
            return
        self.columns[place] = fold(found.columns)
        self._known.add(place)
        if found.properties is not None:
            self.properties[place] = _text(found.properties)
            self._unkept.discard(place)

    def ranges(self, parts: Iterable[ObjectId]) -> list[range]:
        """Return where the objects in some parts of the catalog stand.

        Args:
            parts: Namespaces or single tables, none within another, in order.
        """
        return [self._range(part.names) for part in parts]

    def _range(self, names: tuple[str, ...]) -> range:
        if not names:
            return range(len(self._ids))
        # No name holds a control character, so that nothing lies between a name and this one.
        after = (*names[:-1], f"{names[-1]}\0")
        return range(bisect_left(self._ids, names), bisect_left(self._ids, after))

    def count_known(self, ranges: Sequence[range]) -> int:
        """Count the tables whose columns are known."""
        return self._count(self._known, ranges)

    def count_unkept(self, ranges: Sequence[range]) -> int:
        """Count the tables whose properties are not known."""
        return self._count(self._unkept, ranges)

    def _count(self, places: set[int], ranges: Sequence[range]) -> int:
        if not places or sum(map(len, ranges)) == len(self._ids):
            return len(places)
        return sum(place in places for one in ranges for place in one)


def _fold_all(texts: Iterable[str]) -> list[str]:
    """Fold many names at once; none of them holds the end of a line."""
    joined = "\n".join(texts)
    return fold(joined).split("\n") if joined else []


def _text(properties: Mapping[str, str]) -> str:
    return fold("\n".join(f"{key} {value}" for key, value in properties.items()))
