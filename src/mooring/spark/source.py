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

    from mooring.jobs.address import TableAddress

__all__ = ["MooringDataSource"]


class MooringDataSource(DataSource):
    """Reads and writes tables of a catalog."""

    _address: TableAddress | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "mooring"

    def schema(self) -> StructType:
        """Return the table's schema, and keep its version.

        Raises:
            MooringError: an option makes no sense, or what it names is not there.
        """
        from mooring.spark.options import SourceOptions
        from mooring.spark.reader import fix_version, spark_schema

        options = SourceOptions.parse(self.options)
        self._address = fix_version(options)
        return spark_schema(self._address, options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Plan to read the columns of a schema.

        Raises:
            MooringError: an option makes no sense, or what it names is not there.
        """
        from mooring.spark.options import SourceOptions
        from mooring.spark.reader import PushingTableReader, TableReader, fix_version

        options = SourceOptions.parse(self.options)
        address = self._address or fix_version(options)
        # Spark 4.1 keeps one plan for a data frame: filters that one query pushes are applied to
        # all others that use the frame. So nothing is pushed unless somebody asks for it.
        reader = PushingTableReader if options.flag("pushdown") else TableReader
        return reader(address, options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001  # Spark's own
        """Begin to write rows into a table.

        Raises:
            MooringError: an option makes no sense, or the rows do not fit the table.
        """
        from mooring.spark.options import SourceOptions
        from mooring.spark.writer import TableWriter

        return TableWriter.begin(SourceOptions.parse(self.options), schema, overwrite=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's own
        """Begin to read a table as a stream of its versions."""
        from mooring.spark.streaming_source import make_stream_reader

        return make_stream_reader(self.options, schema)

    def streamWriter(  # noqa: N802  # Spark's own
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001  # Spark's own
    ) -> DataSourceStreamArrowWriter:
        """Begin to write the batches of a stream into a table."""
        from mooring.spark.streaming_sink import make_stream_writer

        return make_stream_writer(self.options, schema, overwrite=overwrite)
