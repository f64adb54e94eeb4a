"""A change of a manifest in the making: checks and edits against one version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.directory.entries import (
    TRASH_PREFIX,
    dropped_id,
    is_dropped,
    is_namespace,
    is_table,
)
from mooring.errors import (
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from mooring.identifiers import DELIMITER, quote
from mooring.tables.manifest import Named, Placed, RowChange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mooring.directory.tree import Tree
    from mooring.tables.manifest import ManifestRow, Scope

__all__ = ["Draft"]


class Draft:
    """The rows of a version with the edits of one or several changes on top."""

    def __init__(
        self,
        rows: Mapping[str, ManifestRow],
        tree: Tree,
        metadata: Mapping[str, str],
        version: int = 0,
    ) -> None:
        """Start without edits.

        Args:
            rows: The rows of the version.
            tree: The same rows as a tree.
            metadata: The manifest's own map at that version.
            version: Its number.

        Afterwards ``touched`` and ``scopes`` tell which rows were looked at, unless it
        ``saw_all``.
        """
        self.metadata = metadata
        self.version = version
        self.touched: set[str] = set()
        self.scopes: set[Scope] = set()
        self.saw_all = False
        self._rows = rows
        self._tree = tree
        self._edits: dict[str, ManifestRow | None] = {}
        self._undo: list[tuple[str, bool, ManifestRow | None]] = []

    # -- reading -----------------------------------------------------------------------------

    def get(self, object_id: str) -> ManifestRow | None:
        """Return a row as it would be."""
        self._touch(object_id)
        return self._peek(object_id)

    def _touch(self, object_id: str) -> None:
        if not any(scope.covers(object_id) for scope in self.scopes):
            self.touched.add(object_id)

    def _peek(self, object_id: str) -> ManifestRow | None:
        if object_id in self._edits:
            return self._edits[object_id]
        return self._rows.get(object_id)

    def dropped(self) -> Iterator[ManifestRow]:
        """Go through the rows of the trash."""
        self.saw_all = True
        keys = {key for keys in self._tree.dropped.values() for key in keys}
        yield from self._present(keys | set(filter(is_dropped, self._edits)))

    def dropped_as(self, object_id: str, below: Iterable[str] = ()) -> list[ManifestRow]:
        """Return the rows of the trash that had an identifier, or one of some below it."""
        self.scopes.add(Named(TRASH_PREFIX, DELIMITER + object_id))
        wanted = {object_id, *below}
        keys = {key for known in wanted for key in self._tree.dropped.get(known, ())}
        edited = {key for key in self._edits if is_dropped(key) and dropped_id(key) in wanted}
        return list(self._present(keys | edited))

    def dropped_together(self, drop_id: str) -> list[ManifestRow]:
        """Return the rows of the trash that one drop moved there."""
        scope = Named(f"{TRASH_PREFIX}{drop_id}{DELIMITER}")
        self.scopes.add(scope)
        keys = {key for keys in self._tree.dropped.values() for key in keys}
        return list(self._present(filter(scope.covers, keys | self._edits.keys())))

    def placed_at(self, location: str) -> list[ManifestRow]:
        """Return the rows whose location is one, lies in it or around it."""
        scope = Placed(location)
        self.scopes.add(scope)
        return [row for row in self._all() if scope.holds(row)]

    def look_below(self, namespace: str) -> None:
        """Look at all that is in a namespace at once: cheaper than at many one by one."""
        self.scopes.add(Named(namespace + DELIMITER))

    def _present(self, keys: Iterable[str]) -> Iterator[ManifestRow]:
        return (row for key in sorted(keys) if (row := self._peek(key)) is not None)

    def names(
        self, parent: str, kind: str, after: str | None = None, limit: int | None = None
    ) -> list[str]:
        """Name the children of a namespace, sorted, from after a name on; edits do not count."""
        self.saw_all = True
        return self._tree.names(parent, kind, after, limit)

    def rows(self) -> Iterator[ManifestRow]:
        """Go through all rows."""
        self.saw_all = True
        return self._all()

    def _all(self) -> Iterator[ManifestRow]:
        for object_id, row in self._rows.items():
            if object_id not in self._edits:
                yield row
        yield from (row for row in self._edits.values() if row is not None)

    def descendants(self, namespace: str) -> list[ManifestRow]:
        """Return everything below a namespace, parents before children."""
        self.look_below(namespace)
        found: list[ManifestRow] = []
        waiting = [namespace]
        while waiting:
            below = [row for key in self._child_keys(waiting.pop()) if (row := self._peek(key))]
            found += below
            waiting += [row.object_id for row in below if is_namespace(row)]
        return found

    def _child_keys(self, parent: str) -> set[str]:
        prefix = parent + DELIMITER if parent else ""
        edited = {
            key
            for key in self._edits
            if key.startswith(prefix)
            and DELIMITER not in key[len(prefix) :]
            and not is_dropped(key)
        }
        return edited | set(self._tree.children(parent))

    # -- checks ------------------------------------------------------------------------------

    def require_namespace(self, namespace: str) -> None:
        """Refuse to go on without a namespace; the root is always there.

        Raises:
            NamespaceNotFoundError: it is not there.
        """
        if namespace and not is_namespace(self.get(namespace)):
            msg = f"there is no namespace {quote(namespace)}"
            raise NamespaceNotFoundError(msg)

    def require_table(self, table: str) -> ManifestRow:
        """Return a table's row.

        Raises:
            TableNotFoundError: no live table has this identifier.
        """
        row = self.get(table)
        if row is None or not is_table(row):
            msg = f"there is no table {quote(table)}"
            raise TableNotFoundError(msg)
        return row

    def require_free(self, object_id: str) -> None:
        """Refuse an identifier that is taken.

        Raises:
            TableAlreadyExistsError: a table has it.
            NamespaceAlreadyExistsError: a namespace has it.
        """
        row = self.get(object_id)
        if is_namespace(row):
            msg = f"{quote(object_id)} is the name of a namespace already"
            raise NamespaceAlreadyExistsError(msg)
        if row is not None:
            msg = f"table {quote(object_id)} exists already"
            raise TableAlreadyExistsError(msg)

    # -- edits -------------------------------------------------------------------------------

    def put(self, row: ManifestRow) -> None:
        """Add or replace a row."""
        self._edit(row.object_id, row)

    def remove(self, object_id: str) -> None:
        """Remove a row."""
        self._edit(object_id, None)

    def remove_all(self, object_ids: Iterable[str]) -> None:
        """Remove rows."""
        for object_id in object_ids:
            self.remove(object_id)

    def _edit(self, object_id: str, row: ManifestRow | None) -> None:
        self._touch(object_id)
        self._undo.append((object_id, object_id in self._edits, self._edits.get(object_id)))
        self._edits[object_id] = row

    @property
    def is_edited(self) -> bool:
        """Whether there are edits on top of the version."""
        return bool(self._edits)

    def keep(self) -> bool:
        """Make what was edited since the last time stay; tell whether anything was."""
        edited = bool(self._undo)
        self._undo.clear()
        return edited

    def undo(self) -> None:
        """Take back what was edited since the last time."""
        while self._undo:
            object_id, was_edited, row = self._undo.pop()
            if was_edited:
                self._edits[object_id] = row
            else:
                del self._edits[object_id]

    @property
    def change(self) -> RowChange:
        """What a commit has to do."""
        edits = {
            object_id: row
            for object_id, row in self._edits.items()
            if row != self._rows.get(object_id)
        }
        removed = frozenset(edits.keys() & self._rows.keys())
        return RowChange(removed, tuple(row for row in edits.values() if row is not None))
