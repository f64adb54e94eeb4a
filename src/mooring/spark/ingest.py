"""What only Spark can do for an ingestion: queries, databases, and the join of a large upsert.

Files go the same way as without Spark: only their names travel, workers read, fit and write. Rows
of a query or a database are Spark's own and cross into Python once, into the same code. To compare
keys, workers read the key columns of new and old fragments, each key as one value of bytes, and
Spark joins the two; then workers delete the rows that were found.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mooring.errors import InvalidInputError, MooringError
from mooring.ingest import ingest
from mooring.ingest.reading import Chunk
from mooring.ingest.source import Piece, Plan
from mooring.ingest.sources import TextOptions
from mooring.spark.failures import telling_failures
from mooring.spark.runner import SparkRunner
from mooring.tables.handle import At
from mooring.tables.upserts import (
    OFFSET,
    POSITION,
    FragmentEdit,
    delete_offsets,
    fragment_keys,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from mooring.catalog import Catalog, Name
    from mooring.ingest import IngestReport
    from mooring.ingest.matching import Positions, TableVersion
    from mooring.ingest.source import Source
    from mooring.jobs.address import TableAddress
    from mooring.jobs.runner import Runner
    from mooring.tables.upserts import KeyFiles, LanceDataset

__all__ = ["FrameSource", "SparkMatcher", "ingest_with", "read_jdbc", "read_query"]

Item = TypeVar("Item")
Result = TypeVar("Result")

_ROWS_A_BATCH = 64 * 1024
_JDBC_NEEDS = ("dbtable", "query")


def ingest_with(
    runner: Runner,
    catalog: Catalog,
    source: str | Sequence[str] | Source,
    into: Name,
    **options: Any,  # noqa: ANN401  # those of mooring.ingest.ingest
) -> IngestReport:
    """Bring rows from elsewhere into a table with Spark; the arguments are those of ``ingest``.

    Args:
        runner: Spark.
        catalog: The catalog.
        source: Files, or rows of Spark.
        into: The table.
        options: The others.
    """
    matcher = SparkMatcher(_session(runner))
    return ingest(catalog, source, into, runner=runner, matcher=matcher, **options)


def read_query(runner: Runner, query: str) -> FrameSource:
    """Take the rows of a query of Spark.

    Raises:
        InvalidInputError: Spark does not understand it.
    """
    with telling_failures():
        return FrameSource(_session(runner).sql(query), "the query")


def read_jdbc(runner: Runner, url: str, options: Mapping[str, str]) -> FrameSource:
    """Take the rows of a database.

    Args:
        runner: Spark.
        url: Where it is, as its driver wants it: ``jdbc:...``.
        options: Those of Spark's source: ``dbtable`` or ``query``, ``user``, ``password``,
            ``driver``, and to read in parallel ``partitionColumn`` and its bounds.

    Raises:
        InvalidInputError: they do not say which rows.
    """
    if not any(name in options for name in _JDBC_NEEDS):
        msg = "say which rows of the database: --source-option dbtable=NAME, or query=SQL"
        raise InvalidInputError(msg)
    with telling_failures():
        rows = _session(runner).read.format("jdbc").option("url", url).options(**options).load()
        return FrameSource(rows, url.partition("?")[0])


def _session(runner: Runner) -> SparkSession:
    if not isinstance(runner, SparkRunner):
        msg = "this needs Spark: leave --no-spark out"
        raise InvalidInputError(msg)
    return runner.session


# -- rows of Spark ---------------------------------------------------------------------------------


class FrameSource:
    """Rows that are Spark's own."""

    def __init__(self, rows: DataFrame, label: str) -> None:
        """Take the rows of a data frame.

        Args:
            rows: The rows.
            label: What people know them as.
        """
        self._rows = rows
        self._label = label
        self.options = TextOptions()

    @property
    def files(self) -> int:
        """There are none."""
        return 0

    def plan(self, runner: Runner, columns: Sequence[str]) -> Plan:
        """Look at the rows' schema."""
        del runner, columns
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(self._rows.schema)
        piece = Piece(self._label, schema, schema)
        return Plan(
            [piece], [_FrameRows(self._label)], _FrameRunner(self._rows), 0, can_repeat=False
        )


class _FrameRows:
    """The rows of one task."""

    def __init__(self, label: str, batches: Iterable[pa.RecordBatch] = ()) -> None:
        self._label = label
        self._batches = batches
        self.size_bytes = 0

    def fill(self, batches: Iterable[pa.RecordBatch]) -> _FrameRows:
        """Return the same with rows."""
        from pyspark import TaskContext

        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        return _FrameRows(f"{self._label}, partition {number}", batches)

    def read(
        self, options: TextOptions, target: pa.Schema, columns: Sequence[str] | None
    ) -> Iterator[Chunk]:
        """Read them as they come."""
        del options, target, columns
        number = 1
        for batch in self._batches:
            self.size_bytes += batch.nbytes
            yield Chunk(self._label, batch, number)
            number += batch.num_rows


@dataclass(frozen=True)
class _Failed:
    """A failure that trying again cannot change: it travels back as an answer."""

    error: MooringError


class _FrameRunner:
    """Does the one part that a data frame is, in as many tasks as it has."""

    def __init__(self, rows: DataFrame) -> None:
        self._rows = rows

    @property
    def workers(self) -> int:
        """It is not divided here."""
        return 1

    def run(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        label: str = "",
        on_done: Callable[[Result], None] | None = None,
    ) -> list[Result]:
        """Do the part; there is a result for each task."""
        del label
        task = _FrameTask(work, items[0])
        with telling_failures():
            collected = self._rows.mapInArrow(task, "result binary").collect()
        results = []
        for row in collected:
            result = pickle.loads(row["result"])  # noqa: S301  # our own worker's
            if isinstance(result, _Failed):
                raise result.error
            results.append(result)
            if on_done is not None:
                on_done(result)
        return results


class _FrameTask:
    """The work as Spark calls it: batches of rows in, one result out."""

    def __init__(self, work: Callable[[Any], Any], rows: object) -> None:
        self._work = work
        self._rows = rows

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        result: object
        try:
            result = self._work(cast("_FrameRows", self._rows).fill(batches))
        except MooringError as exc:
            result = _Failed(exc)
        yield pa.RecordBatch.from_arrays(
            [pa.array([pickle.dumps(result)], pa.binary())], names=["result"]
        )


# -- keys ------------------------------------------------------------------------------------------


class SparkMatcher:
    """Compares keys by joins of Spark; no key passes through this process."""

    def __init__(self, session: SparkSession) -> None:
        """Use a session."""
        self._session = session

    def nulls(self, keys: KeyFiles) -> Positions:
        """Find the rows that lack a value of their key."""
        new = self._new(keys)
        return _positions(new.where(new.key.isNull()))

    def repeats(self, keys: KeyFiles) -> Positions:
        """Find the rows whose key an earlier one has."""
        from pyspark.sql import functions as sql

        new = self._new(keys).where("key IS NOT NULL")
        firsts = new.groupBy("key").agg(
            sql.min("position").alias("first"), sql.count("*").alias("count")
        )
        twice = new.join(firsts.where("count > 1"), "key").where("position > first")
        return _positions(twice)

    def existing(self, keys: KeyFiles, table: TableVersion) -> Positions:
        """Find the rows whose key is in a table."""
        return _positions(self._joined(keys, table).select("position").distinct())

    def delete(self, keys: KeyFiles, table: TableVersion) -> list[FragmentEdit]:
        """Delete the rows of a table that have one of the keys, for a version to come.

        Where a task fails, the files of those that did not are left to Lance's own cleanup.
        """
        tasks = (
            self._joined(keys, table)
            .groupBy("fragment")
            .applyInArrow(
                _deleter(table.address, table.version),
                "fragment long, updated string, rows long, positions binary",
            )
        )
        with telling_failures():
            collected = tasks.collect()
        return [
            FragmentEdit(
                row["fragment"],
                row["updated"],
                row["rows"],
                np.frombuffer(bytes(row["positions"]), dtype=np.int64),
            )
            for row in collected
        ]

    def _joined(self, keys: KeyFiles, table: TableVersion) -> DataFrame:
        old = self._each(
            table.fragments,
            _OldKeys(table.address, table.version, keys.columns),
            "key binary, fragment long, offset long",
        )
        return self._new(keys).join(old, "key").select("fragment", "offset", "position")

    def _new(self, keys: KeyFiles) -> DataFrame:
        return self._each(range(len(keys.names)), _NewKeys(keys), "key binary, position long")

    def _each(self, numbers: Sequence[int], work: Any, schema: str) -> DataFrame:  # noqa: ANN401  # batches to batches
        """Have a task for each number."""
        if not numbers:
            return self._session.createDataFrame([], schema)
        ranked = list(enumerate(numbers))
        rows = self._session.createDataFrame(ranked, "rank int, number long")
        return rows.repartitionById(len(ranked), rows.rank).mapInArrow(work, schema)


def _positions(rows: DataFrame) -> Positions:
    with telling_failures():
        found = rows.select("position").toArrow()["position"].to_numpy()
    return np.sort(found)


@dataclass(frozen=True)
class _NewKeys:
    """Reads the keys of new fragments."""

    keys: KeyFiles

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in _numbers(batches):
            rows = self.keys.read(number)
            for batch in rows.to_batches(max_chunksize=_ROWS_A_BATCH):
                yield pa.RecordBatch.from_arrays(
                    [_encode(batch, self.keys.columns), batch[POSITION].cast(pa.int64())],
                    names=["key", "position"],
                )


@dataclass(frozen=True)
class _OldKeys:
    """Reads the keys of a table's fragments."""

    address: TableAddress
    version: int
    columns: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        dataset = _open(self.address, self.version)
        for number in _numbers(batches):
            rows = fragment_keys(dataset, number, self.columns)
            for batch in rows.to_batches(max_chunksize=_ROWS_A_BATCH):
                yield pa.RecordBatch.from_arrays(
                    [
                        _encode(batch, self.columns),
                        pa.array(np.full(batch.num_rows, number, dtype=np.int64)),
                        batch[OFFSET].cast(pa.int64()),
                    ],
                    names=["key", "fragment", "offset"],
                )


def _deleter(address: TableAddress, version: int) -> Callable[[pa.Table], pa.Table]:
    """Return what deletes the rows of a fragment that were found; Spark wants a function."""

    def delete(found: pa.Table) -> pa.Table:
        number = found["fragment"][0].as_py()
        rows = pa.table({OFFSET: found["offset"].cast(pa.uint64()), POSITION: found["position"]})
        edit = delete_offsets(_open(address, version), number, rows)
        edits = [] if edit is None else [edit]
        return pa.table(
            {
                "fragment": pa.array([edit.fragment for edit in edits], pa.int64()),
                "updated": pa.array([edit.updated for edit in edits], pa.string()),
                "rows": pa.array([edit.rows for edit in edits], pa.int64()),
                "positions": pa.array([edit.positions.tobytes() for edit in edits], pa.binary()),
            }
        )

    return delete


def _open(address: TableAddress, version: int) -> LanceDataset:
    # Not by what the address keeps open: a worker outlives tables, and a name can mean another.
    return address.table().handle.open(At(version))


def _numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch["number"].to_pylist()


def _encode(rows: pa.RecordBatch, columns: Sequence[str]) -> pa.Array:
    """Write each key as bytes that no other key has; null where a value is."""
    parts: list[pa.Array] = []
    for name in columns:
        value = _as_bytes(rows[name])
        length = pc.binary_length(value).cast(pa.string()).cast(pa.binary())
        parts += [length, value]
    if len(columns) == 1:
        return parts[1]
    return pc.binary_join_element_wise(*parts, b":", null_handling="emit_null")


def _as_bytes(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        is_short = pa.types.is_time32(kind)
        column = column.cast(pa.int32() if is_short else pa.int64())
    is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    if not (is_binary or pa.types.is_fixed_size_binary(kind)):
        column = column.cast(pa.string())
    return column.cast(pa.binary())
