"""Scans of parts of a table: groups of fragments, some columns, the rows that a filter leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.errors import MooringError
from mooring.identifiers import quote
from mooring.tables.failures import explain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from lance import LanceDataset

__all__ = ["Scan", "accepts_filter", "check_filter", "group_fragments"]

# What Lance raises.
_FAILURES = (ValueError, OSError, RuntimeError, NotImplementedError)
# Less than this is not worth a task of its own.
_ROWS_A_TASK = 100_000
_BYTES_A_TASK = 256 * 1024 * 1024
_BATCH_ROWS = 64 * 1024
_BATCH_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class Scan:
    """What is read of a table; it travels to other machines.

    Attributes:
        columns: The columns, in their order.
        where: An SQL expression that holds for the rows.
        batch_rows: At most so many rows a batch.
        batch_bytes: About so large is a batch.
    """

    columns: tuple[str, ...]
    where: str | None = None
    batch_rows: int = _BATCH_ROWS
    batch_bytes: int = _BATCH_BYTES

    def read(
        self, dataset: LanceDataset, fragments: Sequence[int], what: str
    ) -> Iterator[pa.RecordBatch]:
        """Go through the rows of some fragments; blobs come with their content.

        Raises:
            MooringError: the table cannot be read.
        """
        wanted = set(fragments)
        try:
            yield from dataset.scanner(
                columns=list(self.columns),
                filter=self.where,
                fragments=[one for one in dataset.get_fragments() if one.fragment_id in wanted],
                batch_size=self.batch_rows,
                batch_size_bytes=self.batch_bytes,
                blob_handling="all_binary",
            ).to_batches()
        except _FAILURES as exc:
            raise explain(exc, f"{what} cannot be read") from exc


def check_filter(dataset: LanceDataset, where: str, what: str) -> None:
    """Refuse an expression that Lance cannot evaluate on a table.

    Raises:
        InvalidInputError: it does not parse.
        TableColumnNotFoundError: it names a column that is not there.
    """
    try:
        dataset.scanner(filter=where, columns=[]).explain_plan()
    except _FAILURES as exc:
        raise explain(exc, f"{what}: the filter {quote(where)} cannot be used") from exc


def accepts_filter(dataset: LanceDataset, where: str) -> bool:
    """Tell whether Lance can evaluate an expression on a table."""
    try:
        check_filter(dataset, where, "the table")
    except MooringError:
        return False
    return True


def group_fragments(dataset: LanceDataset, tasks: int) -> list[tuple[int, ...]]:
    """Divide a table's fragments among tasks, neighbours together, about the same for each.

    Args:
        dataset: The table.
        tasks: How many tasks are wanted; a small table gets fewer, a large one more.
    """
    fragments = [one.metadata for one in dataset.get_fragments()]
    rows = sum(one.physical_rows or 0 for one in fragments)
    size = sum(file.file_size_bytes or 0 for one in fragments for file in one.files)
    wanted = max(tasks, size // _BYTES_A_TASK)
    count = max(1, min(wanted, len(fragments), -(-rows // _ROWS_A_TASK)))
    groups: list[list[int]] = [[] for _ in range(count)]
    before = 0
    for one in fragments:
        groups[min(count - 1, before * count // max(1, rows))].append(one.id)
        before += one.physical_rows or 0
    return [tuple(group) for group in groups if group]
