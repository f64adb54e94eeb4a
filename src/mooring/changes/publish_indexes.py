"""The indexes of a published table: made when they are missing, extended to new rows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from mooring.errors import ConcurrentModificationError
from mooring.tables.index_kinds import IndexKind
from mooring.upkeep.indexing import build_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.catalog import Catalog
    from mooring.changes.publication import PublishedIndex
    from mooring.identifiers import ObjectId
    from mooring.jobs.runner import Runner

__all__ = ["IndexDone", "IndexState", "keep_indexes"]

# A vector index learns from the rows that are there: of fewer it learns nothing of use, and to look
# at all of them takes no time.
_LEAST_VECTORS = 256


class IndexState(StrEnum):
    """What became of an index."""

    BUILT = "built"
    EXTENDED = "extended"
    KEPT = "kept"
    WAITING = "waiting"


@dataclass(frozen=True)
class IndexDone:
    """An index of a published table.

    Attributes:
        name: Its name.
        column: The column.
        kind: Its kind.
        state: What became of it; a vector index waits until there are rows to learn from.
    """

    name: str
    column: str
    kind: str
    state: IndexState


def keep_indexes(
    catalog: Catalog,
    table: ObjectId,
    indexes: Sequence[PublishedIndex],
    *,
    rows: int,
    runner: Runner,
) -> list[IndexDone]:
    """Build the indexes that are missing, and let the others cover all rows.

    Each makes a version of its own, with the same rows.

    Args:
        catalog: The Lance table's catalog.
        table: The Lance table.
        indexes: What is wanted.
        rows: How many rows there are.
        runner: Builds them.
    """
    if not indexes:
        return []
    found = catalog.table(table)
    known = {index.name: index for index in found.indexes.list()}
    done = []
    for index in indexes:
        kind = IndexKind.parse(index.kind)
        there = known.get(index.name)
        if there is not None and IndexKind.parse(there.kind).name == kind.name:
            state = IndexState.EXTENDED if there.rows_unindexed else IndexState.KEPT
        elif kind.is_vector and rows < _LEAST_VECTORS:
            state = IndexState.WAITING
        else:
            parameters: Any = index.parameters  # by their names, checked by their kind
            build_index(
                catalog,
                table,
                index.column,
                kind,
                runner=runner,
                index_name=index.name,
                replace=True,
                **parameters,
            )
            state = IndexState.BUILT
        done.append(IndexDone(index.name, index.column, index.kind, state))
    names = [one.name for one in done if one.state is IndexState.EXTENDED]
    if names:
        with suppress(ConcurrentModificationError):  # another publication does it, or the next
            found.indexes.extend(names)
    return done
