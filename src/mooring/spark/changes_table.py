"""Which tables are change tables, and how the data source fixes one for a query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.changes.objects import find_objects
from mooring.changes.table import ChangeTable
from mooring.errors import (
    InvalidInputError,
    InvalidTableStateError,
    TableColumnNotFoundError,
    TableNotFoundError,
    UnsupportedError,
)
from mooring.identifiers import quote
from mooring.spark.conversion import check_fits
from mooring.spark.options import parse_time
from mooring.spark.types import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.types import StructType

    from mooring.changes.definition import Definition
    from mooring.changes.plan import Moment
    from mooring.jobs.address import CatalogAddress
    from mooring.spark.options import SourceOptions

__all__ = [
    "FixedTable",
    "bare_schema",
    "choose_columns",
    "find_change_table",
    "fix_table",
    "number_of",
    "spark_columns",
]

# What means something to one kind of tables only.
_OF_CHANGES = (
    "position",
    "txn",
    "change",
    "changes",
    "fromposition",
    "toposition",
    "startingposition",
    "skipreplacements",
)
_OF_LANCE = (
    "version",
    "tag",
    "branch",
    "vectors",
    "rows_a_file",
    "startingversion",
    "skipchangecommits",
)


def find_change_table(options: SourceOptions, *, must_exist: bool = True) -> ChangeTable | None:
    """Find the change table that options name; None where it is a Lance table, or missing.

    Args:
        options: The options.
        must_exist: Whether a catalog that is not there is an error, as to readers.

    Raises:
        InvalidInputError: an option means nothing to tables of this kind.
        TableNotFoundError: the options are those of a change table, and there is none.
        NamespaceNotFoundError: there is no catalog.
    """
    catalog = options.open(must_exist=must_exist)
    name = catalog.identifier(options.table)
    try:
        found = find_objects(catalog.metastore.begin(), name)
    except UnsupportedError:
        found = None
    if found is None:
        if options.get("change") is not None:
            msg = (
                f"there is no change table {quote(str(name))} to write changes to: make it with"
                " mooring.changes.create_change_table, which tells its keys"
            )
            raise TableNotFoundError(msg)
        options.refuse(_OF_CHANGES, f"is for change tables, and {quote(str(name))} is none")
        return None
    options.refuse(_OF_LANCE, f"is for Lance tables, and {found.what} is none")
    return ChangeTable(catalog, name)


@dataclass(frozen=True)
class FixedTable:
    """A change table as a query sees it, from beginning to end; it travels.

    Attributes:
        catalog: The catalog.
        names: The table's identifier, level by level.
        definition: Its columns.
        position: The position that is read; of changes the last one.
        after: Of changes: the position before the first one that is read.
    """

    catalog: CatalogAddress
    names: tuple[str, ...]
    definition: Definition
    position: int
    after: int = 0

    @property
    def what(self) -> str:
        """The table, as messages name it."""
        return f"change table {quote('$'.join(self.names))}"

    def table(self) -> ChangeTable:
        """Locate the table."""
        return ChangeTable(self.catalog.open(), list(self.names))

    def moment(self) -> Moment:
        """Find the table at its position, with its columns.

        Raises:
            InvalidInputError: the position cannot be read any more.
            InvalidTableStateError: it is another table now.
        """
        found = self.now(self.position)
        return replace(found, table=replace(found.table, definition=self.definition))

    def now(self, position: int | None = None) -> Moment:
        """Find the table at a position, the newest unless given, as it is called now.

        Raises:
            InvalidInputError: the position cannot be read any more.
            InvalidTableStateError: it is another table now.
        """
        table = self.table()
        if table.definition.identity != self.definition.identity:
            msg = f"{self.what} was made anew since it was looked at: begin the query again"
            raise InvalidTableStateError(msg)
        return table.at(position)


def fix_table(table: ChangeTable, options: SourceOptions) -> FixedTable:
    """Find the position that a query reads.

    Raises:
        InvalidInputError: more than one is named, or there is no such position.
        TransactionNotFoundError: there is no such transaction.
    """
    as_of = options.get("as_of")
    moment = table.at(
        number_of(options, "position"),
        txn_id=options.get("txn"),
        time_ms=None if as_of is None else parse_time(as_of),
    )
    return FixedTable(
        options.catalog, tuple(table.id.names), moment.table.definition, moment.position
    )


def number_of(options: SourceOptions, name: str) -> int | None:
    """Return an option that is a number, which may be zero; None where it is missing.

    Raises:
        InvalidInputError: it is none.
    """
    text = options.get(name.lower())
    if text is not None and not text.isdecimal():
        raise InvalidInputError(f"option '{name}' is a number, not {quote(text)}")
    return None if text is None else int(text)


def bare_schema(schema: pa.Schema) -> pa.Schema:
    """Return columns without what only their files need; each may be null.

    An upsert that lacks a column can make a row without it, whatever the column demands.
    """
    return pa.schema([pa.field(one.name, one.type) for one in schema])


def choose_columns(schema: pa.Schema, options: SourceOptions, what: str) -> pa.Schema:
    """Return the columns that are read: all of them, or those that were named.

    Raises:
        TableColumnNotFoundError: one that was named is not there.
    """
    named = options.get("columns")
    if named is None:
        return schema
    wanted = [name.strip() for name in named.split(",") if name.strip()]
    _require_columns(schema, wanted, what)
    return pa.schema([schema.field(name) for name in wanted])


def spark_columns(schema: StructType, own: pa.Schema, what: str) -> pa.Schema:
    """Return the columns that Spark wants, in the types in which it takes them.

    Raises:
        TableColumnNotFoundError: the table has no such column.
        TableSchemaValidationError: a column is of another type than the one that is wanted.
    """
    _require_columns(own, schema.names, what)
    wanted = [pa.field(one.name, canonical(one.dataType, one.name)) for one in schema.fields]
    for one in wanted:
        check_fits(one.type, own.field(one.name).type, one.name, what)
    return pa.schema(wanted)


def _require_columns(schema: pa.Schema, names: Sequence[str], what: str) -> None:
    unknown = next((name for name in names if name not in schema.names), None)
    if unknown is not None:
        known = ", ".join(schema.names)
        raise TableColumnNotFoundError(f"{what} has no column {quote(unknown)}: it has {known}")
