"""The data source `mooring`: tables of any catalog, by name.

Spark makes an instance in a process of its own to ask for the schema, and sends it pickled to
another where it plans: the version that was found for the schema goes along. Every session imports
this module to know what formats there are, so Lance is imported only when one is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamArrowWriter,
        DataSourceStreamReader,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from mooring.changes.table import ChangeTable
    from mooring.jobs.address import TableAddress
    from mooring.spark.changes_table import FixedTable
    from mooring.spark.options import SourceOptions

__all__ = ["MooringDataSource"]


class MooringDataSource(DataSource):
    """Reads and writes tables of a catalog."""

    _address: TableAddress | None = None
    _fixed: FixedTable | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "mooring"

    def schema(self) -> StructType:
        """Return the table's schema, and keep its version or position.

        Raises:
            MooringError: an option makes no sense, or what it names is not there.
        """
        from mooring.spark.changes_table import find_change_table
        from mooring.spark.options import SourceOptions
        from mooring.spark.reader import fix_version, spark_schema

        options = SourceOptions.parse(self.options)
        table = find_change_table(options)
        if table is not None:
            return self._fix(table, options)
        self._address = fix_version(options)
        return spark_schema(self._address, options)

    def _fix(self, table: ChangeTable, options: SourceOptions) -> StructType:
        """Keep the position of a change table, and return the schema of what is read of it."""
        from mooring.spark.changes_feed import feed_schema, fix_feed
        from mooring.spark.changes_reader import merged_schema
        from mooring.spark.changes_table import fix_table

        if options.flag("changes"):
            self._fixed = fix_feed(table, options)
            return feed_schema(self._fixed, options)
        self._fixed = fix_table(table, options)
        return merged_schema(self._fixed, options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan to read the columns of a schema.

        Raises:
            MooringError: an option makes no sense, or what it names is not there.
        """
        from mooring.spark.changes_table import find_change_table
        from mooring.spark.options import SourceOptions
        from mooring.spark.reader import PushingTableReader, TableReader, fix_version

        options = SourceOptions.parse(self.options)
        if self._address is None and self._fixed is None:  # somebody gave the schema
            table = find_change_table(options)
            if table is not None:
                self._fix(table, options)
        # Spark 4.1 keeps one plan for a data frame: filters that one query pushes are applied to
        # all others that use the frame. So nothing is pushed unless somebody asks for it.
        is_pushing = options.flag("pushdown")
        if self._fixed is not None:
            from mooring.spark.changes_feed import ChangesReader
            from mooring.spark.changes_reader import MergedReader, PushingMergedReader

            if options.flag("changes"):
                return ChangesReader(self._fixed, options, schema)
            merged = PushingMergedReader if is_pushing else MergedReader
            return merged(self._fixed, options, schema)
        address = self._address or fix_version(options)
        reader = PushingTableReader if is_pushing else TableReader
        return reader(address, options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001  # Spark's own
        """Begin to write rows into a table.

        Raises:
            MooringError: an option makes no sense, or the rows do not fit the table.
        """
        from mooring.spark.changes_table import find_change_table
        from mooring.spark.options import SourceOptions
        from mooring.spark.writer import TableWriter

        options = SourceOptions.parse(self.options)
        table = find_change_table(options, must_exist=False)
        if table is None:
            return TableWriter.begin(options, schema, overwrite=overwrite)
        from mooring.spark.changes_writer import ChangesWriter

        return ChangesWriter.begin(table, options, schema, overwrite=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's own
        """Begin to read a table as a stream of its versions, or of its changes."""
        from mooring.spark.changes_table import find_change_table
        from mooring.spark.options import SourceOptions
        from mooring.spark.streaming_source import make_stream_reader

        options = SourceOptions.parse(self.options)
        table = find_change_table(options)
        if table is None:
            return make_stream_reader(self.options, schema)
        from mooring.spark.changes_feed import ChangesStreamReader

        return ChangesStreamReader(table, options, schema)

    def streamWriter(  # noqa: N802  # Spark's own
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001  # Spark's own
    ) -> DataSourceStreamArrowWriter:
        """Begin to write the batches of a stream into a table."""
        from mooring.spark.changes_table import find_change_table
        from mooring.spark.options import SourceOptions
        from mooring.spark.streaming_sink import make_stream_writer

        options = SourceOptions.parse(self.options)
        table = find_change_table(options, must_exist=False)
        if table is None:
            return make_stream_writer(self.options, schema, overwrite=overwrite)
        from mooring.spark.changes_sink import ChangesStreamWriter

        return ChangesStreamWriter(table, options, schema, overwrite=overwrite)
