"""The columns of a table: add, alter, drop, backfill, and their metadata.

Spec: lance-rest-openapi, AlterTableAddColumns, AlterTableAlterColumns, AlterTableDropColumns,
AlterTableBackfillColumns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.tables.backfill import Backfill, backfill
from mooring.tables.commits import Committed
from mooring.tables.fields import check_name, find, renamed
from mooring.tables.handle import NEWEST, At
from mooring.tables.metadata import (
    FieldMetadata,
    replace_schema_metadata,
    update_field_metadata,
)
from mooring.tables.new_columns import NewColumn, add_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lance import LanceDataset

    from mooring.tables.backfill import Backfilled
    from mooring.tables.handle import TableHandle
    from mooring.tables.metadata import FieldsCommitted, SchemaCommitted

__all__ = ["Alteration", "Columns"]


@dataclass(frozen=True, slots=True)
class Alteration:
    """A change of one column; what is None stays.

    Attributes:
        path: The column's path.
        rename: Its new name.
        data_type: Its new type.
        nullable: Whether it may hold nulls.
    """

    path: str
    rename: str | None = None
    data_type: pa.DataType | None = None
    nullable: bool | None = None


class Columns:
    """The columns of one table."""

    def __init__(self, handle: TableHandle) -> None:
        """Work on a located table."""
        self._handle = handle

    # -- their set -------------------------------------------------------------------------------

    def add(
        self,
        columns: Mapping[str, str | pa.DataType] | pa.Field | Iterable[pa.Field],
        *,
        branch: str | None = None,
    ) -> Committed:
        """Add columns by one commit.

        Args:
            columns: By name, an SQL expression that is evaluated once over the rows that are
                there, or a type for a column of nulls; or Arrow fields of nulls.
            branch: Where; main unless given.

        Raises:
            InvalidInputError: a name cannot be, or an expression makes no sense.
            TableColumnNotFoundError: an expression names a column that is not there.
            TableSchemaValidationError: a name is taken.
        """
        return self.add_all(_new_columns(columns), branch=branch)

    def add_computed(self, columns: Mapping[str, str], *, branch: str | None = None) -> Committed:
        """Add columns of nulls whose expressions are kept, for ``backfill`` to fill them.

        Raises:
            InvalidInputError: a name cannot be, or an expression makes no sense.
            TableColumnNotFoundError: an expression names a column that is not there.
            TableSchemaValidationError: a name is taken.
        """
        new = [NewColumn(name, computed=sql) for name, sql in columns.items()]
        return self.add_all(new, branch=branch)

    def add_all(self, columns: Sequence[NewColumn], *, branch: str | None = None) -> Committed:
        """Add columns of several kinds by one commit; fails as ``add`` does."""
        with self._handle.changing(At(branch=branch)) as dataset:
            add_columns(dataset, columns, self._handle.what)
            return Committed.of(dataset)

    def alter(
        self,
        path: str,
        *,
        rename: str | None = None,
        data_type: pa.DataType | None = None,
        nullable: bool | None = None,
        branch: str | None = None,
    ) -> Committed:
        """Rename a column, change its type, or whether it may hold nulls.

        Raises:
            TableColumnNotFoundError: there is no such column.
            TableSchemaValidationError: the name is taken, the type has no cast from the present
                one, or there are nulls.
            InvalidInputError: nothing is to change, or a value does not fit the type.
        """
        return self.alter_all([Alteration(path, rename, data_type, nullable)], branch=branch)

    def alter_all(
        self, alterations: Sequence[Alteration], *, branch: str | None = None
    ) -> Committed:
        """Alter several columns by one commit; fails as ``alter`` does.

        Lance takes a column of another type for a new one without metadata. Where there was
        any, a second commit puts it back.
        """
        what = self._handle.what
        if not alterations:
            msg = f"name at least one column of {what} to alter"
            raise InvalidInputError(msg)
        with self._handle.changing(At(branch=branch)) as dataset:
            kept = _metadata_to_keep(dataset, alterations, what)
            dataset.alter_columns(*(_lance_alteration(dataset, one, what) for one in alterations))
            if kept:
                dataset.update_field_metadata(kept, replace=True)
            return Committed.of(dataset)

    def drop(self, *paths: str, branch: str | None = None) -> Committed:
        """Drop columns, nested ones too, by one commit.

        Raises:
            TableColumnNotFoundError: there is no such column.
            TableSchemaValidationError: no column would be left.
            InvalidInputError: none is named.
        """
        what = self._handle.what
        if not paths:
            msg = f"name at least one column of {what} to drop"
            raise InvalidInputError(msg)
        with self._handle.changing(At(branch=branch)) as dataset:
            dataset.drop_columns([find(dataset, path, what).path for path in paths])
            return Committed.of(dataset)

    # -- their values ----------------------------------------------------------------------------

    def backfill(
        self,
        path: str,
        *,
        where: str | None = None,
        expression: str | None = None,
        branch: str | None = None,
    ) -> Backfilled:
        """Compute a column again, in the rows that have no value or in those a filter selects.

        Args:
            path: A column of ``add_computed``, or any where an expression is given.
            where: Which rows; those where the column is null unless given.
            expression: SQL over the other columns; the column's own unless given.
            branch: Where; main unless given.

        Raises:
            TableColumnNotFoundError: the column, or one in an expression, is not there.
            InvalidInputError: the column has no expression, or one makes no sense.
            UnsupportedError: the column lies in another.
            ConcurrentModificationError: other changes of the same rows came first every time.
        """
        return backfill(self._handle, Backfill(path, where, expression), branch=branch)

    # -- their metadata --------------------------------------------------------------------------

    def metadata(self, path: str, at: At = NEWEST) -> dict[str, str]:
        """Return a column's metadata.

        Raises:
            TableColumnNotFoundError: there is no such column.
        """
        with self._handle.reading(at) as dataset:
            return dict(find(dataset, path, self._handle.what).metadata)

    def update_metadata(
        self,
        path: str,
        values: Mapping[str, str | None],
        *,
        replace: bool = False,
        branch: str | None = None,
    ) -> FieldsCommitted:
        """Merge into a column's metadata, where None removes a key, or replace it.

        Raises:
            TableColumnNotFoundError: there is no such column.
        """
        return self.update_all_metadata([FieldMetadata(path, values, replace)], branch=branch)

    def update_all_metadata(
        self, updates: Sequence[FieldMetadata], *, branch: str | None = None
    ) -> FieldsCommitted:
        """Change the metadata of several columns by one commit."""
        return update_field_metadata(self._handle, updates, branch=branch)

    def replace_schema_metadata(
        self, values: Mapping[str, str], *, branch: str | None = None
    ) -> SchemaCommitted:
        """Make these the metadata of the whole schema; what is not named goes."""
        return replace_schema_metadata(self._handle, values, branch=branch)


def _new_columns(
    columns: Mapping[str, str | pa.DataType] | pa.Field | Iterable[pa.Field],
) -> list[NewColumn]:
    if isinstance(columns, Mapping):
        return [_new_column(name, value) for name, value in columns.items()]
    fields = [columns] if isinstance(columns, pa.Field) else list(columns)
    return [NewColumn(field.name, field=field) for field in fields]


def _new_column(name: str, value: str | pa.DataType) -> NewColumn:
    if isinstance(value, str):
        return NewColumn(name, expression=value)
    return NewColumn(name, field=pa.field(name, value))


def _metadata_to_keep(
    dataset: LanceDataset, alterations: Sequence[Alteration], what: str
) -> dict[str, dict[str, str | None]]:
    """Return the metadata of columns that change their type, by the paths they will have."""
    casts = [one for one in alterations if one.data_type is not None]
    found = [(one, find(dataset, one.path, what)) for one in casts]
    return {
        renamed(field.path, change.rename): dict(field.metadata)
        for change, field in found
        if field.metadata
    }


def _lance_alteration(dataset: LanceDataset, change: Alteration, what: str) -> Any:  # noqa: ANN401  # Lance's own dictionary
    found = find(dataset, change.path, what)
    if change.rename is not None:
        check_name(change.rename, what, is_nested=found.is_nested)
    wanted = {
        "name": change.rename,
        "data_type": change.data_type,
        "nullable": change.nullable,
    }
    given = {key: value for key, value in wanted.items() if value is not None}
    if not given:
        msg = (
            f"nothing is to change of column {quote(found.path)} of {what}: give a new name, a"
            " type or whether it is nullable"
        )
        raise InvalidInputError(msg)
    return {"path": found.path, **given}
