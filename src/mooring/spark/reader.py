"""Reading a table into Spark: planned on the driver at one version, read by tasks."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from mooring.errors import TableColumnNotFoundError, TableVersionNotFoundError
from mooring.identifiers import quote
from mooring.jobs.address import TableAddress
from mooring.spark.conversion import Conversion, check_fits
from mooring.spark.filters import translate
from mooring.spark.options import parse_time
from mooring.spark.types import canonical, to_spark
from mooring.tables.handle import At
from mooring.tables.scans import Scan, accepts_filter, check_filter, group_fragments
from mooring.tables.tags import resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from mooring.spark.options import SourceOptions
    from mooring.tables.handle import TableHandle

__all__ = ["PushingTableReader", "TableReader", "fix_version", "spark_schema"]

_TASKS_A_CORE = 1


def fix_version(options: SourceOptions) -> TableAddress:
    """Find the version that a query reads, from beginning to end.

    Raises:
        NamespaceNotFoundError: there is no catalog.
        TableNotFoundError: there is no such table.
        TableVersionNotFoundError: there is no such version.
        TableTagNotFoundError: there is no such tag.
        TableBranchNotFoundError: there is no such branch.
    """
    catalog = options.open(must_exist=True)
    table = catalog.table(options.table)
    handle = table.handle
    branch, version = options.get("branch"), options.number("version")
    as_of = options.get("as_of")
    if as_of is not None:
        options.refuse(("version", "tag"), "and 'as_of' both name a version: give one of them")
        version = _version_at(handle, parse_time(as_of), as_of, branch)
    at = resolve(handle, At(version, tag=options.get("tag"), branch=branch))
    if at.version is None:
        with handle.reading(at) as dataset:
            at = replace(at, version=int(dataset.version))
    names = catalog.identifier(options.table).names
    return TableAddress(options.catalog, tuple(names), at.version, at.branch)


def _table_schema(address: TableAddress, options: SourceOptions) -> pa.Schema:
    """Return the schema of what is read: all columns, or those that were named.

    Raises:
        TableColumnNotFoundError: one that was named is not there.
        InvalidInputError: the filter cannot be evaluated.
        TableVersionNotFoundError: there is no such version.
    """
    dataset = address.open()
    schema, named, where = dataset.schema, options.get("columns"), options.get("filter")
    if where is not None:
        check_filter(dataset, where, _what(address))
    if named is None:
        return schema
    wanted = [name.strip() for name in named.split(",") if name.strip()]
    return pa.schema([_field(schema, name, address) for name in wanted])


def spark_schema(address: TableAddress, options: SourceOptions) -> StructType:
    """Return the schema that Spark sees.

    Raises:
        TableColumnNotFoundError: a column that was named is not there.
        UnsupportedError: Spark has no type for a column.
    """
    return to_spark(_table_schema(address, options))


class TableReader(DataSourceReader):
    """Reads a table at one version, in tasks of some fragments each."""

    def __init__(self, address: TableAddress, options: SourceOptions, schema: StructType) -> None:
        """Plan to read columns of a table.

        Args:
            address: The table at its version.
            options: What is read of it, and how.
            schema: The columns as Spark wants them.

        Raises:
            TableColumnNotFoundError: the table has no such column.
            TableSchemaValidationError: a column is of another type than the one that is wanted.
        """
        self._address = address
        self._what = _what(address)
        own = _table_schema(address, options)
        for field in schema.fields:
            found = _field(own, field.name, address)
            check_fits(canonical(field.dataType, field.name), found.type, field.name, self._what)
        self._wanted = pa.schema(
            [pa.field(field.name, canonical(field.dataType, field.name)) for field in schema.fields]
        )
        scan = Scan(tuple(schema.names), options.get("filter"))
        self._scan = replace(
            scan,
            batch_rows=options.number("batch_rows") or scan.batch_rows,
            batch_bytes=options.number("batch_bytes") or scan.batch_bytes,
        )
        self._tasks = options.number("tasks") or _TASKS_A_CORE * (os.cpu_count() or 1)

    def partitions(self) -> list[InputPartition]:
        """Divide the table among tasks."""
        groups = group_fragments(self._address.open(), self._tasks)
        return [FragmentGroup(group) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read some fragments."""
        if not isinstance(partition, FragmentGroup):
            return  # a table without rows has none
        convert: Conversion | None = None
        for batch in self._scan.read(self._address.open(), partition.value, self._what):
            convert = convert or Conversion(batch.schema, self._wanted, self._what, is_exact=False)
            yield convert(batch)


class PushingTableReader(TableReader):
    """Has Lance evaluate the filters that it can, before Spark evaluates all of them again."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's own
        """Take what Lance can evaluate; all filters stay with Spark, too."""
        dataset = self._address.open()
        written = [translate(one, dataset.schema) for one in filters]
        taken = [f"({one})" for one in written if one is not None and accepts_filter(dataset, one)]
        if self._scan.where is not None:
            taken.insert(0, f"({self._scan.where})")
        if taken:
            self._scan = replace(self._scan, where=" AND ".join(taken))
        return filters


@dataclass
class FragmentGroup(InputPartition):
    """The fragments that one task reads."""

    value: tuple[int, ...]


def _what(address: TableAddress) -> str:
    return f"table {quote('$'.join(address.names))}"


def _field(schema: pa.Schema, name: str, address: TableAddress) -> pa.Field:
    if name not in schema.names:
        known = ", ".join(schema.names)
        msg = f"{_what(address)} has no column {quote(name)}: it has {known}"
        raise TableColumnNotFoundError(msg)
    return schema.field(name)


def _version_at(handle: TableHandle, time_ms: int, text: str, branch: str | None) -> int:
    """Find the newest version that was there at a time."""
    for record in handle.ledger.newest_first(branch):
        if record.at_ms is not None and record.at_ms <= time_ms:
            return record.version
    msg = f"{handle.what} has no version from {text} or before; the oldest may be cleaned away"
    raise TableVersionNotFoundError(msg)
