"""The namespaces of a manifest as a tree: who lies in whom, sorted, without a scan."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING

from mooring.directory.entries import dropped_id, is_dropped, parent_of
from mooring.identifiers import DELIMITER
from mooring.tables.manifest import NAMESPACE, TABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mooring.tables.manifest import ManifestRow

__all__ = ["Tree"]


class Tree:
    """The children of every namespace, kept up with the rows they come from."""

    def __init__(self, rows: Mapping[str, ManifestRow]) -> None:
        """Sort all rows in."""
        self._children: dict[tuple[str, str], list[str]] = {}
        self._kinds: dict[str, str] = {}
        # The identifiers of the trash by the one that was dropped.
        self.dropped: dict[str, set[str]] = {}
        for row in rows.values():
            self._add(row, sort=False)
        for names in self._children.values():
            names.sort()

    def update(self, changed: Iterable[str], rows: Mapping[str, ManifestRow]) -> None:
        """Follow a change of some rows."""
        for object_id in changed:
            row, known = rows.get(object_id), self._kinds.get(object_id)
            if row is not None and row.object_type == known:
                continue
            if known is not None:
                self._remove(object_id, known)
            if row is not None:
                self._add(row)

    def names(
        self, parent: str, kind: str, after: str | None = None, limit: int | None = None
    ) -> list[str]:
        """Name the children of a kind, sorted, from after a name on."""
        names = self._children.get((parent, kind), [])
        start = bisect_right(names, after) if after is not None else 0
        return names[start:] if limit is None else names[start : start + limit]

    def children(self, parent: str) -> Iterator[str]:
        """Go through the identifiers of all children."""
        for kind in (NAMESPACE, TABLE):
            for name in self._children.get((parent, kind), ()):
                yield f"{parent}{DELIMITER}{name}" if parent else name

    def _add(self, row: ManifestRow, *, sort: bool = True) -> None:
        object_id, kind = row.object_id, row.object_type
        self._kinds[object_id] = kind
        if is_dropped(object_id):
            self.dropped.setdefault(dropped_id(object_id), set()).add(object_id)
            return
        names = self._children.setdefault((parent_of(object_id), kind), [])
        name = object_id.rpartition(DELIMITER)[2]
        if sort:
            insort(names, name)
        else:
            names.append(name)

    def _remove(self, object_id: str, kind: str) -> None:
        del self._kinds[object_id]
        if is_dropped(object_id):
            self._undrop(object_id)
            return
        names = self._children[parent_of(object_id), kind]
        del names[bisect_left(names, object_id.rpartition(DELIMITER)[2])]

    def _undrop(self, key: str) -> None:
        keys = self.dropped[dropped_id(key)]
        keys.discard(key)
        if not keys:
            del self.dropped[dropped_id(key)]
