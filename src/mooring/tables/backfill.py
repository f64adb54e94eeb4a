"""Computing a column for rows that are there, by one commit and without moving a row.

An update would write whole rows anew, elsewhere, where no index covers them; here the column alone
is written, and the indexes of the other columns keep their rows.

Spec: lance-rest-openapi, AlterTableBackfillColumns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import lance
import pyarrow as pa

from mooring.errors import ConcurrentModificationError, InvalidInputError, UnsupportedError
from mooring.identifiers import quote
from mooring.tables.commits import Committed
from mooring.tables.field_paths import quoted
from mooring.tables.fields import find
from mooring.tables.filters import parsing, whole
from mooring.tables.handle import At
from mooring.tables.new_columns import EXPRESSION

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import LanceFragment

    from mooring.tables.fields import Found
    from mooring.tables.handle import TableHandle

__all__ = ["Backfill", "Backfilled", "backfill"]

_ATTEMPTS = 5
_ROW = "_rowid"


@dataclass(frozen=True, slots=True)
class Backfill:
    """Which column is computed, where and how.

    Attributes:
        path: The column.
        where: Which rows; those where the column is null unless given.
        expression: SQL over the other columns; the column's own unless given.
    """

    path: str
    where: str | None = None
    expression: str | None = None


@dataclass(frozen=True, slots=True)
class Backfilled:
    """What a backfill did.

    Attributes:
        commit: The version and transaction that filled the column, or the newest ones where
            there was nothing to fill; the work is done when this is answered.
        rows: How many rows were computed.
    """

    commit: Committed
    rows: int


def backfill(handle: TableHandle, fill: Backfill, *, branch: str | None = None) -> Backfilled:
    """Compute a column; a fill that lost a race against another change is done again.

    Raises:
        TableColumnNotFoundError: the column, or one in an expression, is not there.
        InvalidInputError: the column has no expression, or one makes no sense.
        UnsupportedError: the column lies in another.
        ConcurrentModificationError: other changes of the same rows came first every time.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return _fill(handle, fill, branch)
        except ConcurrentModificationError:
            continue
    return _fill(handle, fill, branch)


def _fill(handle: TableHandle, fill: Backfill, branch: str | None) -> Backfilled:
    with handle.changing(At(branch=branch)) as dataset:
        found = find(dataset, fill.path, handle.what)
        work = _Work(dataset, found, _expression(found, fill, handle.what), fill.where)
        with parsing(fill.where, handle.what):
            rows = sum(work.compute(fragment) for fragment in dataset.get_fragments())
        filled = work.commit(handle.stamp) if rows else dataset
        return Backfilled(Committed.of(filled), rows)


def _expression(found: Found, fill: Backfill, what: str) -> str:
    if found.is_nested:
        msg = (
            f"column {quote(found.path)} of {what} lies in another, and Lance writes a column"
            " with all that is in it: fill the outer one"
        )
        raise UnsupportedError(msg)
    expression = found.metadata.get(EXPRESSION) if fill.expression is None else fill.expression
    if expression is None:
        msg = (
            f"column {quote(found.path)} of {what} has no expression to fill it: only a column"
            " that was added as a computed one keeps its expression"
        )
        raise InvalidInputError(msg)
    return expression


class _Work:
    """A column being written, fragment by fragment."""

    def __init__(
        self, dataset: LanceDataset, found: Found, expression: str, where: str | None
    ) -> None:
        self._dataset = dataset
        self._name = found.name
        self._kind = found.type
        self._columns = {_ROW: _ROW, self._name: whole(expression, "expression")}
        self._where = f"{quoted(self._name)} IS NULL" if where is None else whole(where)
        self._done: list[tuple[lance.FragmentMetadata, list[int], bytes]] = []

    def compute(self, fragment: LanceFragment) -> int:
        """Write the column of a fragment anew; return in how many rows it was computed."""
        values = fragment.scanner(columns=self._columns, filter=self._where).to_table()
        if not values.num_rows:
            return 0
        schema = pa.schema([(_ROW, pa.uint64()), (self._name, self._kind)])
        self._done.append(
            fragment.update_columns(values.cast(schema), left_on=_ROW, with_offsets=True)
        )
        return int(values.num_rows)

    def commit(self, stamp: dict[str, str]) -> LanceDataset:
        """Make what was written a version."""
        operation = lance.LanceOperation.Update(
            updated_fragments=[fragment for fragment, _, _ in self._done],
            fields_modified=sorted({field for _, fields, _ in self._done for field in fields}),
            update_mode="rewrite_columns",
            updated_fragment_offsets={fragment.id: rows for fragment, _, rows in self._done},
        )
        transaction = lance.Transaction(
            read_version=self._dataset.version,
            operation=operation,
            transaction_properties=stamp,
        )
        return lance.LanceDataset.commit(self._dataset, transaction)
