"""Tables of a catalog as streams of Spark, and streams as tables."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError
from mooring.spark.changes_table import find_change_table
from mooring.spark.failures import telling_failures
from mooring.spark.options import SourceOptions, options_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from mooring.catalog import Catalog
    from mooring.spark.options import Name

__all__ = ["stream_table", "write_stream"]

_FORMAT = "mooring"
_DRIVER_DIGITS = 12


def stream_table(
    spark: SparkSession, catalog: Catalog | str | None, name: Name, **options: object
) -> DataFrame:
    """Return the rows that a table gets, as a stream; of a change table its changes.

    Args:
        spark: The session.
        catalog: The catalog, or its path or URI; the one of the settings unless given.
        name: The table.
        options: Those of the data source: ``startingVersion``, ``skipChangeCommits``,
            ``columns``, ``filter``; of a change table ``startingPosition``,
            ``skipReplacements``, ``columns``.

    Raises:
        MooringError: an option makes no sense, or what it names is not there.
    """
    given = options_of(catalog, name, options)
    if find_change_table(SourceOptions.parse(given)) is not None:
        given["changes"] = "true"
    with telling_failures():
        return spark.readStream.format(_FORMAT).options(**given).load()


def write_stream(
    rows: DataFrame,
    catalog: Catalog | str | None,
    name: Name,
    *,
    checkpoint: str,
    query: str | None = None,
    every: str | None = None,
    available_now: bool = False,
    **options: object,
) -> StreamingQuery:
    """Start to write a stream into a table, each row of it exactly once.

    Args:
        rows: The stream; its columns are taken by name.
        catalog: The catalog, or its path or URI; the one of the settings unless given.
        name: The table; it is made if it is missing. A change table has to be there.
        checkpoint: Where Spark keeps how far the stream has come.
        query: The stream's name, by which its batches are known again. A checkpoint on this
            machine has one of its own.
        every: How often a batch begins, such as ``10 seconds``; as soon as the one before it is
            done unless given.
        available_now: Write what there is now, and stop.
        options: Others of the data source: ``vectors``, ``rows_a_file``; of a change table
            ``change``, what the rows do there.

    Raises:
        InvalidInputError: an option makes no sense.
    """
    if available_now and every is not None:
        msg = "a stream that stops when it has written what there is has no 'every': leave one out"
        raise InvalidInputError(msg)
    driver = uuid.uuid4().hex[:_DRIVER_DIGITS]
    given = options_of(catalog, name, {"query": query, **options, "driver": driver})
    SourceOptions.parse(given)
    writer = rows.writeStream.format(_FORMAT).options(**given)
    writer = writer.option("checkpointLocation", checkpoint)
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif every is not None:
        writer = writer.trigger(processingTime=every)
    with telling_failures():
        return writer.start()
