"""Statistics of a table: rows, bytes, fragments, indexes.

Spec: lance-rest-openapi, GetTableStats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from mooring.tables.handle import At
from mooring.tables.shape import shape_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance.dataset import FieldStatistics

    from mooring.tables.handle import TableHandle

__all__ = ["Lengths", "TableStats", "gather_stats", "is_small"]

# A fragment of fewer rows is one that a compaction would merge.
_FULL = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Lengths:
    """How many rows the fragments of a table hold, those included that are deleted."""

    min: int = 0
    max: int = 0
    mean: int = 0
    p25: int = 0
    p50: int = 0
    p75: int = 0
    p99: int = 0

    @classmethod
    def of(cls, lengths: Iterable[int]) -> Lengths:
        """Summarise lengths."""
        found = sorted(lengths)
        if not found:
            return cls()
        p25, p50, p75, p99 = (found[(len(found) - 1) * part // 100] for part in (25, 50, 75, 99))
        return cls(found[0], found[-1], sum(found) // len(found), p25, p50, p75, p99)


@dataclass(frozen=True, slots=True)
class TableStats:
    """Statistics of a version.

    Attributes:
        version: The version.
        versions: How many versions there are.
        rows: How many rows there are to read.
        deleted_rows: How many rows are deleted but still in files.
        bytes: What the columns take.
        file_bytes: What the data files take, which also hold what is around the columns.
        data_files: How many data files there are.
        fragments: How many fragments there are.
        small_fragments: How many of them a compaction would merge.
        lengths: How many rows the fragments hold.
        indexes: How many indexes there are.
    """

    version: int
    versions: int
    rows: int
    deleted_rows: int
    bytes: int
    file_bytes: int
    data_files: int
    fragments: int
    small_fragments: int
    lengths: Lengths
    indexes: int


def is_small(rows: int) -> bool:
    """Whether a compaction would merge a fragment of so many rows."""
    return rows < _FULL


def gather_stats(handle: TableHandle, branch: str | None = None) -> TableStats:
    """Gather statistics of the newest version.

    Raises:
        TableNotFoundError: the table is only declared.
        TableBranchNotFoundError: there is no such branch.
    """
    at = At(branch=branch)
    with handle.reading(at) as dataset:
        shape = shape_of(dataset)
        # Lance's annotation says one, and it answers a list.
        columns = cast("Iterable[FieldStatistics]", dataset.stats.data_stats().fields)
        lengths = [piece.rows for piece in shape.pieces.values()]
        return TableStats(
            version=shape.version,
            versions=len(handle.ledger.newest_first(at.branch)),
            rows=shape.rows,
            deleted_rows=shape.deleted,
            bytes=sum(column.bytes_on_disk for column in columns),
            file_bytes=shape.size_bytes,
            data_files=len(shape.files),
            fragments=len(lengths),
            small_fragments=sum(map(is_small, lengths)),
            lengths=Lengths.of(lengths),
            indexes=len(dataset.describe_indices()),
        )
