"""What differs between two versions of a table: schema, rows, files, indexes.

Nothing but manifests is read. They tell how many rows came and went; how many of them are the same
rows with other values, only the operations in between tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mooring.errors import TableVersionNotFoundError
from mooring.tables.failures import translated
from mooring.tables.schema_changes import compare_schemas
from mooring.tables.shape import shape_of
from mooring.tables.tags import resolve
from mooring.tables.transactions import read_transaction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance import LanceDataset

    from mooring.tables.handle import At, TableHandle
    from mooring.tables.schema_changes import SchemaChange
    from mooring.tables.shape import Piece, Shape

__all__ = ["RowChanges", "VersionDiff", "compare"]

# Further apart, only the ends are compared.
_MOST_STEPS = 200
# What is restored may be the same rows in other files.
_MAY_KEEP_ROWS = frozenset({None, "Restore"})
_KEEPS_ROWS = frozenset({"Rewrite", "Merge", "Project", "DataReplacement", "CreateIndex"})


@dataclass(frozen=True, slots=True)
class RowChanges:
    """How rows changed on the way; a row that came and went again counts as both.

    Attributes:
        added: Rows that came.
        deleted: Rows that went.
        updated: Rows that got other values; None where manifests do not tell, and then those
            that were updated count as deleted and added.
    """

    added: int = 0
    deleted: int = 0
    updated: int | None = 0

    def __add__(self, other: RowChanges) -> RowChanges:
        """Take two steps as one."""
        unknown = self.updated is None or other.updated is None
        return RowChanges(
            self.added + other.added,
            self.deleted + other.deleted,
            None if unknown else (self.updated or 0) + (other.updated or 0),
        )

    def reversed(self) -> RowChanges:
        """Go the same way back."""
        return replace(self, added=self.deleted, deleted=self.added)


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """What differs between two versions.

    Attributes:
        old: The version compared from.
        new: The version compared to.
        schema: What differs in the schema.
        rows_before: How many rows the old one has.
        rows_after: How many rows the new one has.
        rows: How rows changed on the way.
        added: Data files that only the new one has, with their sizes.
        removed: Data files that only the old one has, with their sizes.
        indexes_added: Indexes that only the new one has.
        indexes_removed: Indexes that only the old one has.
    """

    old: int
    new: int
    schema: tuple[SchemaChange, ...]
    rows_before: int
    rows_after: int
    rows: RowChanges
    added: Mapping[str, int]
    removed: Mapping[str, int]
    indexes_added: tuple[str, ...]
    indexes_removed: tuple[str, ...]

    @property
    def files_added(self) -> int:
        """How many data files came."""
        return len(self.added)

    @property
    def files_removed(self) -> int:
        """How many data files went."""
        return len(self.removed)

    @property
    def bytes_added(self) -> int:
        """What those take that came."""
        return sum(self.added.values())

    @property
    def bytes_removed(self) -> int:
        """What those take that went."""
        return sum(self.removed.values())


class _Line:
    """A branch of a table, opened somewhere."""

    def __init__(self, handle: TableHandle, dataset: LanceDataset, branch: str | None) -> None:
        self._handle = handle
        self._dataset = dataset
        self._branch = branch

    def shape(self, version: int) -> Shape:
        with translated(self._handle.what):
            return shape_of(self._dataset.checkout_version((self._branch, version)))

    def operation(self, version: int) -> str | None:
        made = read_transaction(self._handle, self._dataset, version, self._branch)
        return made.operation if made else None


def compare(handle: TableHandle, old: At, new: At) -> VersionDiff:
    """Compare two versions, in either order.

    Raises:
        TableVersionNotFoundError: one of them is not there.
        TableTagNotFoundError: one of the tags is not there.
        TableBranchNotFoundError: one of the branches is not there.
    """
    start, end = resolve(handle, old), resolve(handle, new)
    with handle.reading(start) as before, handle.reading(end) as after:
        first, last = shape_of(before), shape_of(after)
        line = _Line(handle, after, end.branch) if start.branch == end.branch else None
        gone = {path: size for path, size in first.files.items() if path not in last.files}
        came = {path: size for path, size in last.files.items() if path not in first.files}
        indexes, later = _indexes(before), _indexes(after)
        return VersionDiff(
            old=first.version,
            new=last.version,
            schema=tuple(compare_schemas(before, after)),
            rows_before=first.rows,
            rows_after=last.rows,
            rows=_travel(line, first, last),
            added=came,
            removed=gone,
            indexes_added=tuple(sorted(later - indexes)),
            indexes_removed=tuple(sorted(indexes - later)),
        )


def _travel(line: _Line | None, first: Shape, last: Shape) -> RowChanges:
    """Follow the rows from one version to another, step by step where there is a way."""
    if line is None or abs(last.version - first.version) > _MOST_STEPS:
        return _leap(first, last)
    if last.version < first.version:
        return _travel(line, last, first).reversed()
    total, before = RowChanges(), first
    for version in range(first.version + 1, last.version + 1):
        try:
            after = last if version == last.version else line.shape(version)
        except TableVersionNotFoundError:  # cleaned up
            return _leap(first, last)
        total += _step(before, after, line.operation(version))
        before = after
    return total


def _leap(first: Shape, last: Shape) -> RowChanges:
    """Compare the ends alone."""
    came, gone = _flow(first, last)
    return RowChanges(came, gone, None if came and gone else 0)


def _step(before: Shape, after: Shape, operation: str | None) -> RowChanges:
    came, gone = _flow(before, after)
    if operation in _KEEPS_ROWS and came == gone:
        return RowChanges()
    if operation != "Update":
        is_unknown = operation in _MAY_KEEP_ROWS and came and gone
        return RowChanges(came, gone, None if is_unknown else 0)
    # An update writes rows anew, or files with new values beside those that are kept.
    in_place = any(
        before.pieces[at].files.keys() != piece.files.keys()
        for at, piece in after.pieces.items()
        if at in before.pieces
    )
    updated = min(came, gone)
    return RowChanges(came - updated, gone - updated, None if in_place else updated)


def _flow(before: Shape, after: Shape) -> tuple[int, int]:
    """Count the rows that came and those that went, by fragments and their deletions."""
    came = gone = 0
    for at in before.pieces.keys() | after.pieces.keys():
        old, new = before.pieces.get(at), after.pieces.get(at)
        if old is not None and new is not None and _is_same(old, new):
            came += max(0, new.live - old.live)
            gone += max(0, old.live - new.live)
        else:
            came += new.live if new else 0
            gone += old.live if old else 0
    return came, gone


def _is_same(old: Piece, new: Piece) -> bool:
    """Whether two fragments of a number are one: each branch numbers its own."""
    return bool(old.files.keys() & new.files.keys()) or not (old.files or new.files)


def _indexes(dataset: LanceDataset) -> set[str]:
    return {index.name for index in dataset.describe_indices()}
