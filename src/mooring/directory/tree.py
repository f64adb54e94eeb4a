"""The namespaces of a manifest as a tree: who lies in whom, sorted, without a scan."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from typing import TYPE_CHECKING

from mooring.directory.entries import dropped_id, is_dropped
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
        children: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        kinds = {object_id: row.object_type for object_id, row in rows.items()}
        # The identifiers of the trash by the one that was dropped.
        self.dropped: dict[str, set[str]] = {}
        for object_id, kind in kinds.items():
            if is_dropped(object_id):
                self._drop(object_id)
                continue
            parent, _, name = object_id.rpartition(DELIMITER)
            children[parent, kind].append(name)
        for names in children.values():
            names.sort()
        self._children = children
        self._kinds = kinds

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

    def _add(self, row: ManifestRow) -> None:
        self._kinds[row.object_id] = row.object_type
        if is_dropped(row.object_id):
            self._drop(row.object_id)
            return
        parent, _, name = row.object_id.rpartition(DELIMITER)
        insort(self._children[parent, row.object_type], name)

    def _remove(self, object_id: str, kind: str) -> None:
        del self._kinds[object_id]
        if is_dropped(object_id):
            self._undrop(object_id)
            return
        parent, _, name = object_id.rpartition(DELIMITER)
        names = self._children[parent, kind]
        del names[bisect_left(names, name)]

    def _drop(self, key: str) -> None:
        self.dropped.setdefault(dropped_id(key), set()).add(key)

    def _undrop(self, key: str) -> None:
        keys = self.dropped[dropped_id(key)]
        keys.discard(key)
        if not keys:
            del self.dropped[dropped_id(key)]
