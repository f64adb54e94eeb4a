"""A column written fragment by fragment, by anybody, and taken into the table by one commit.

A new column gets a file of its own in each fragment; of one that is there, the values of some rows
are written anew. Neither moves a row, so indexes of other columns keep theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import lance
import pyarrow as pa

from mooring.errors import ConcurrentModificationError
from mooring.tables.draft import field_ids
from mooring.tables.field_paths import quoted
from mooring.tables.fragments import commit, data_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lance import LanceDataset
    from lance.fragment import FragmentMetadata, LanceFragment

    from mooring.tables.fragments import Claim, Landed
    from mooring.tables.handle import TableHandle
    from mooring.tables.transactions import Transaction

__all__ = ["ColumnFiles", "ColumnPlan", "FilledFragment", "Values", "fill_fragment"]

_ROW = "_rowid"


class Values(Protocol):
    """Computes the values of a column."""

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        """Return a value of the column's type for each row."""
        ...


@dataclass(frozen=True)
class ColumnPlan:
    """Which column is written, and from what; it travels.

    Attributes:
        field: The column.
        is_new: Whether the table has none of this name.
        reads: The columns that the values are computed from; all others unless given.
        where: In which rows of a column that is there; those without a value unless given.
    """

    field: pa.Field
    is_new: bool
    reads: tuple[str, ...] | None = None
    where: str | None = None

    @property
    def rows(self) -> str | None:
        """The filter that selects the rows."""
        if self.is_new:
            return None
        return self.where or f"{quoted(self.field.name)} IS NULL"


@dataclass(frozen=True)
class FilledFragment:
    """A fragment whose column was written.

    Attributes:
        before: The fragment as it was read.
        after: The same with the column; None where there was nothing to write.
        rows: How many values were computed.
        schema: The table's schema with a new column.
        fields: The identifiers of what was written anew.
        offsets: Where, in Lance's form.
    """

    before: FragmentMetadata
    after: FragmentMetadata | None = None
    rows: int = 0
    schema: Any = None
    fields: tuple[int, ...] = ()
    offsets: bytes = b""

    @property
    def new_files(self) -> set[str]:
        """The data files that were written, below the table's `data/`."""
        after = [] if self.after is None else [self.after]
        return data_files(after) - data_files([self.before])

    def moved_to(self, now: FragmentMetadata) -> FilledFragment | None:
        """Return the same for a fragment as it is now; None where it must be computed again.

        Rows may have been deleted from it since; none may have come back.
        """
        same_rows = self.before.deletion_file in (None, now.deletion_file)
        if self.before.files != now.files or not same_rows:
            return None
        after = self.after and replace(self.after, deletion_file=now.deletion_file)
        return replace(self, before=now, after=after)


def fill_fragment(
    dataset: LanceDataset, number: int, plan: ColumnPlan, values: Values
) -> FilledFragment:
    """Write the column of one fragment; nobody sees it yet.

    Args:
        dataset: The table, lent to nobody else meanwhile.
        number: The fragment.
        plan: Which column.
        values: Computes it.
    """
    fragment = dataset.get_fragment(number)
    if fragment is None:
        msg = f"fragment {number} is not in version {dataset.version}"
        raise ConcurrentModificationError(msg)
    reads = plan.reads or _others(dataset, plan)
    return (_add if plan.is_new else _update)(fragment, plan, reads, values)


def _others(dataset: LanceDataset, plan: ColumnPlan) -> tuple[str, ...]:
    return tuple(name for name in dataset.schema.names if name != plan.field.name)


def _add(
    fragment: LanceFragment, plan: ColumnPlan, reads: Sequence[str], values: Values
) -> FilledFragment:
    schema = pa.schema([plan.field])
    # Computed before: what runs inside Lance while it writes could not use Lance itself.
    found = [
        pa.RecordBatch.from_arrays([values(batch)], schema=schema)
        for batch in fragment.scanner(columns=list(reads)).to_batches()
        if batch.num_rows
    ]
    rows = sum(batch.num_rows for batch in found)
    after, whole = fragment.merge_columns(pa.RecordBatchReader.from_batches(schema, found))
    return FilledFragment(fragment.metadata, after, rows, whole)


def _update(
    fragment: LanceFragment, plan: ColumnPlan, reads: Sequence[str], values: Values
) -> FilledFragment:
    schema = pa.schema([(_ROW, pa.uint64()), (plan.field.name, plan.field.type)])
    scanner = fragment.scanner(columns=list(reads), filter=plan.rows, with_row_id=True)
    found = [
        pa.RecordBatch.from_arrays([batch[_ROW], values(batch.drop_columns([_ROW]))], schema=schema)
        for batch in scanner.to_batches()
        if batch.num_rows
    ]
    if not found:
        return FilledFragment(fragment.metadata)
    table = pa.Table.from_batches(found, schema)
    after, fields, offsets = fragment.update_columns(table, left_on=_ROW, with_offsets=True)
    return FilledFragment(
        fragment.metadata, after, table.num_rows, fields=tuple(fields), offsets=offsets
    )


class ColumnFiles:
    """What was written of a column so far, of the table as it is known now."""

    def __init__(self, plan: ColumnPlan) -> None:
        """Begin with nothing."""
        self._plan = plan
        self._done: dict[int, FilledFragment] = {}
        self._layout: object = None

    def missing(self, dataset: LanceDataset) -> list[int]:
        """Look at the table as it is now; return the fragments that have to be computed."""
        layout = (dataset.schema, dataset.schema.metadata, field_ids(dataset))
        known = self._done if layout == self._layout else {}
        self._layout = layout
        there = {one.fragment_id: one.metadata for one in dataset.get_fragments()}
        moved = {
            number: known[number].moved_to(now) for number, now in there.items() if number in known
        }
        self._done = {number: one for number, one in moved.items() if one is not None}
        return [number for number in there if number not in self._done]

    def add(self, filled: Iterable[FilledFragment]) -> None:
        """Take in what was computed."""
        self._done |= {one.before.id: one for one in filled}

    @property
    def rows(self) -> int:
        """How many values were computed."""
        return sum(one.rows for one in self._done.values())

    @property
    def files(self) -> set[str]:
        """The data files that were written for it."""
        return {name for one in self._done.values() for name in one.new_files}

    def commit(
        self,
        handle: TableHandle,
        version: int,
        *,
        branch: str | None = None,
        claim: Claim | None = None,
    ) -> Landed:
        """Make what was written a version.

        Raises:
            ConcurrentModificationError: another version was made meanwhile, so that rows may be
                missing.
        """
        return commit(
            handle,
            self._operation(),
            version,
            branch=branch,
            watches=[_Alone(handle.what)],
            claim=claim,
        )

    def _operation(self) -> lance.LanceOperation.BaseOperation:
        done = [self._done[number] for number in sorted(self._done)]
        written = [(one, one.after) for one in done if one.after is not None]
        if self._plan.is_new:
            return lance.LanceOperation.Merge(
                [after for _, after in written], written[-1][0].schema, preserves_nullability=True
            )
        return lance.LanceOperation.Update(
            updated_fragments=[after for _, after in written],
            fields_modified=sorted({field for one, _ in written for field in one.fields}),
            update_mode="rewrite_columns",
            updated_fragment_offsets={after.id: one.offsets for one, after in written},
        )


class _Alone:
    """Lets no version come between: rows of it would have no value."""

    def __init__(self, what: str) -> None:
        self._what = what

    def see(self, version: int, transaction: Transaction | None) -> None:
        """Refuse it."""
        del transaction
        msg = f"version {version} of {self._what} was made while a column of it was computed"
        raise ConcurrentModificationError(msg)
