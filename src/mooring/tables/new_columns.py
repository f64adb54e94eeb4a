"""Columns that are added to a table: all of a request by one commit.

Spec: lance-rest-openapi, AlterTableAddColumns: an expression is evaluated once over the rows that
are there, and rows that come later read null; a computed column is all null, and its expression
is kept in the field's metadata for backfills.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.errors import InvalidInputError, TableSchemaValidationError
from mooring.identifiers import quote
from mooring.tables.fields import check_name
from mooring.tables.filters import parsing, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance import LanceDataset

__all__ = ["EXPRESSION", "NewColumn", "add_columns"]

EXPRESSION = "mooring.expression"

# A projection of constants alone reads nothing, and so knows no number of rows.
_ANCHOR = "mooring_anchor"


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column to add: by an expression, as a computed one, or as a field of nulls.

    Attributes:
        name: Its name.
        expression: SQL over the other columns, evaluated once.
        computed: SQL over the other columns, kept for backfills.
        field: Its type, nullability and metadata.
    """

    name: str
    expression: str | None = None
    computed: str | None = None
    field: pa.Field | None = None

    def __post_init__(self) -> None:
        """Refuse a column of no or of several definitions."""
        given = [one for one in (self.expression, self.computed, self.field) if one is not None]
        if len(given) != 1:
            msg = (
                f"column {quote(self.name)} needs exactly one of an expression, a computed"
                f" expression or a type, not {len(given) or 'none'}"
            )
            raise InvalidInputError(msg)

    @property
    def sql(self) -> str | None:
        """The expression, of whichever kind."""
        return self.expression if self.expression is not None else self.computed


def add_columns(dataset: LanceDataset, columns: Sequence[NewColumn], what: str) -> None:
    """Add columns by one commit.

    Raises:
        InvalidInputError: a name cannot be, or an expression makes no sense.
        TableColumnNotFoundError: an expression names a column that is not there.
        TableSchemaValidationError: a name is taken or comes twice.
    """
    _check_names(dataset, columns, what)
    with parsing(None, what):
        _add(dataset, columns, what)


def _add(dataset: LanceDataset, columns: Sequence[NewColumn], what: str) -> None:
    schema = _schema(dataset, columns, what)
    written = {
        column.name: whole(column.expression, f"expression of column {quote(column.name)}")
        for column in columns
        if column.expression is not None
    }
    if not written:
        dataset.add_columns(schema)
    elif len(written) == len(columns) and _are_nullable(dataset, columns):
        dataset.add_columns(written)
    else:
        # Lance keeps a constant's column not null, and then no row could come without it.
        # What is read must be opened before: while Lance adds columns it lends the table nobody.
        scanner = dataset.scanner(columns=_anchored(written))
        batches = (_complete(batch, schema) for batch in scanner.to_batches())
        dataset.add_columns(pa.RecordBatchReader.from_batches(schema, batches))


def _check_names(dataset: LanceDataset, columns: Sequence[NewColumn], what: str) -> None:
    if not columns:
        msg = f"name at least one column to add to {what}"
        raise InvalidInputError(msg)
    taken = set(dataset.schema.names)
    for column in columns:
        check_name(column.name, what)
        if column.name in taken:
            msg = f"{what} has a column {quote(column.name)} already, or would have it twice"
            raise TableSchemaValidationError(msg)
        taken.add(column.name)


def _schema(dataset: LanceDataset, columns: Sequence[NewColumn], what: str) -> pa.Schema:
    """Work out the fields of new columns, which are all nullable."""
    kinds = _projected(dataset, columns)
    fields = []
    for column in columns:
        if column.field is None:
            bound = None if column.computed is None else {EXPRESSION: column.computed}
            fields.append(pa.field(column.name, kinds.field(column.name).type, metadata=bound))
        elif column.field.nullable:
            fields.append(column.field.with_name(column.name))
        else:
            msg = f"column {quote(column.name)} of {what} would be all null: make it nullable"
            raise InvalidInputError(msg)
    return pa.schema(fields)


def _are_nullable(dataset: LanceDataset, columns: Sequence[NewColumn]) -> bool:
    kinds = _projected(dataset, columns)
    return all(kinds.field(column.name).nullable for column in columns)


def _projected(dataset: LanceDataset, columns: Sequence[NewColumn]) -> pa.Schema:
    expressions = {
        column.name: whole(column.sql, f"expression of column {quote(column.name)}")
        for column in columns
        if column.sql is not None
    }
    if not expressions:
        return pa.schema([])
    return dataset.scanner(columns=_anchored(expressions)).projected_schema


def _anchored(expressions: dict[str, str]) -> dict[str, str]:
    return {**expressions, _ANCHOR: "_rowid"}


def _complete(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Pick the new columns of a batch, and add those of nulls."""
    values = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays = [
        values[field.name] if field.name in values else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
