"""Tables as data frames, and data frames as tables, in one call."""

from __future__ import annotations

import pickle
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.changes.table import list_change_tables
from mooring.errors import (
    InvalidInputError,
    NotLanceTableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.identifiers import DELIMITER, ROOT, quote
from mooring.spark.changes_frame import merged_frame
from mooring.spark.changes_table import find_change_table
from mooring.spark.changes_writer import ChangesWriter
from mooring.spark.failures import telling_failures
from mooring.spark.options import SourceOptions, options_of
from mooring.spark.writer import TableWriter
from mooring.tables.runs import RunMark, find_done

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from mooring.catalog import Catalog
    from mooring.changes.table import ChangeTable
    from mooring.identifiers import ObjectId
    from mooring.jobs.writing import PartWritten
    from mooring.spark.options import Name
    from mooring.tables.handle import TableHandle

__all__ = ["WrittenTable", "create_view", "create_views", "read_table", "write_table"]

_FORMAT = "mooring"
_MODES = ("append", "overwrite", "errorifexists", "ignore")


@dataclass(frozen=True)
class WrittenTable:
    """What a data frame became.

    Attributes:
        name: The table.
        version: The version with the rows; of a table that was left as it is, the newest.
        rows: How many were written.
        is_new: Whether they were written now; not where the run was in the table already, or the
            table was there and the mode is ``ignore``.
    """

    name: str
    version: int
    rows: int
    is_new: bool = True


def read_table(
    spark: SparkSession, catalog: Catalog | str | None, name: Name, **options: object
) -> DataFrame:
    """Return a table as a data frame, which stays at one version; a change table at one position.

    Args:
        spark: The session.
        catalog: The catalog, or its path or URI; the one of the settings unless given.
        name: The table.
        options: Those of the data source: ``version``, ``tag``, ``as_of`` or ``branch``, of a
            change table ``position``, ``txn`` or ``as_of``; ``columns``, ``filter``,
            ``pushdown``, ``tasks``, ``batch_rows``, ``batch_bytes``.

    Raises:
        MooringError: an option makes no sense, or what it names is not there.
    """
    given = options_of(catalog, name, options)
    given.setdefault("tasks", str(_cores(spark)))
    parsed = SourceOptions.parse(given)
    table = None if _needs_source(parsed) else find_change_table(parsed)
    with telling_failures():
        if table is not None:
            return merged_frame(spark, table, parsed)
        return spark.read.format(_FORMAT).options(**given).load()


def _needs_source(options: SourceOptions) -> bool:
    """Whether only the data source can do it: changes themselves, and filters of Spark's."""
    return options.flag("changes") or options.flag("pushdown")


def write_table(
    rows: DataFrame,
    catalog: Catalog | str | None,
    name: Name,
    *,
    mode: str = "errorifexists",
    run: str | None = None,
    **options: object,
) -> WrittenTable:
    """Write a data frame into a table, by one commit; into a change table, as one change.

    Args:
        rows: The data frame; its columns are taken by name.
        catalog: The catalog, or its path or URI; the one of the settings unless given.
        name: The table.
        mode: What becomes of a table that is there: ``append`` to it, ``overwrite`` it, or leave
            it, ``errorifexists`` with an error and ``ignore`` without.
        run: A name for this write: repeated, it changes nothing.
        options: Those of the data source: ``vectors``, ``rows_a_file``; of a change table
            ``change``, what the rows do there.

    Raises:
        InvalidInputError: an option makes no sense.
        TableAlreadyExistsError: the table is there, and must not be.
        TableSchemaValidationError: the rows do not fit the table.
        ConcurrentModificationError: a conflicting change came first.
    """
    if mode not in _MODES:
        msg = f"the mode is one of {', '.join(_MODES)}, not {quote(mode)}"
        raise InvalidInputError(msg)
    given = options_of(catalog, name, {"run": run, **options})
    if mode not in {"append", "overwrite"}:
        given["create_only"] = "true"
    parsed = SourceOptions.parse(given)
    changed = find_change_table(parsed, must_exist=False)
    if changed is not None:
        return _change(rows, changed, parsed, mode)
    target = _Target(parsed)
    known = target.known(run, may_be_there=mode == "ignore")
    if known is not None:
        return known
    writer = TableWriter.begin(parsed, rows.schema, overwrite=mode == "overwrite")
    parts = _write(writer, rows)
    landed = writer.finish(parts)
    if landed is None or not landed.is_new:  # somebody else did the same run meanwhile
        return target.known(run, may_be_there=True) or target.missing()
    return WrittenTable(target.name, landed.version, sum(part.rows for part in parts))


def _change(rows: DataFrame, table: ChangeTable, options: SourceOptions, mode: str) -> WrittenTable:
    """Write a data frame as a change of a table that is there."""
    name = str(table.id)
    if mode == "errorifexists":
        msg = f"there is a change table {quote(name)} already: use the mode 'append'"
        raise TableAlreadyExistsError(msg)
    if mode == "ignore":
        return WrittenTable(name, table.position, 0, is_new=False)
    writer = ChangesWriter.begin(table, options, rows.schema, overwrite=mode == "overwrite")
    landed = writer.run(rows)
    if landed is None:  # there was no row
        return WrittenTable(name, table.position, 0)
    return WrittenTable(name, landed.position, landed.rows, is_new=landed.is_new)


def _write(writer: TableWriter, rows: DataFrame) -> list[PartWritten]:
    """Have tasks write the rows, and hear from each.

    Spark's own way, `rows.write`, starts two more processes of Python, to begin and to commit.
    """
    try:
        with telling_failures():
            told = rows.mapInArrow(_Task(writer), "part binary").collect()
    except BaseException:
        writer.abort([None, None])
        raise
    return [pickle.loads(row["part"]) for row in told]  # noqa: S301  # our own worker's


class _Task:
    """What a task does: batches in, what was written of them out."""

    def __init__(self, writer: TableWriter) -> None:
        self._writer = writer

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        part = pickle.dumps(self._writer.write_part(batches))
        yield pa.RecordBatch.from_arrays([pa.array([part], pa.binary())], names=["part"])


def create_view(
    spark: SparkSession,
    catalog: Catalog | str | None,
    name: Name,
    view: str | None = None,
    **options: object,
) -> str:
    """Give SQL a table by name, at the version that is the newest now.

    Args:
        spark: The session.
        catalog: The catalog, or its path or URI; the one of the settings unless given.
        name: The table.
        view: What the view is called; as the table unless given.
        options: Those of ``read_table``.

    Returns:
        The view's name.

    Raises:
        MooringError: an option makes no sense, or what it names is not there.
    """
    frame = read_table(spark, catalog, name, **options)
    chosen = view or options_of(catalog, name)["table"].rpartition(DELIMITER)[2]
    with telling_failures():
        frame.createOrReplaceTempView("`" + chosen.replace("`", "``") + "`")
    return chosen


def create_views(
    spark: SparkSession,
    catalog: Catalog | str | None,
    namespace: Name | None = None,
    **options: object,
) -> list[str]:
    """Give SQL all tables of a namespace by name, each at the version that is the newest now.

    Args:
        spark: The session.
        catalog: The catalog, or its path or URI; the one of the settings unless given.
        namespace: The namespace; the root unless given.
        options: Those of ``read_table``.

    Returns:
        The names of the views.

    Raises:
        MooringError: there is no such catalog or namespace.
    """
    opened = SourceOptions.parse(options_of(catalog, "t", options)).open(must_exist=True)
    parent = ROOT if namespace is None else opened.identifier(namespace)
    tables = opened.list_tables(parent, include_declared=False)
    with suppress(UnsupportedError):  # the catalog is no metastore
        tables += [one.names[-1] for one in _change_tables(opened, parent)]
    return [create_view(spark, catalog, parent.child(name), name, **options) for name in tables]


def _change_tables(catalog: Catalog, namespace: ObjectId) -> list[ObjectId]:
    return [] if namespace == ROOT else list_change_tables(catalog, namespace)


class _Target:
    """The table that is written, as the driver looks at it before and after."""

    def __init__(self, options: SourceOptions) -> None:
        self._catalog = options.open(must_exist=False)
        self._id = self._catalog.identifier(options.table)
        self.name = str(self._id)

    def _handle(self) -> TableHandle | None:
        try:
            return self._catalog.table(self._id).handle
        except NotLanceTableError:
            raise  # the name is taken: it cannot be made
        except TableNotFoundError:
            return None

    def newest(self) -> int:
        """Return the newest version, 0 for none."""
        handle = self._handle()
        found = handle and handle.ledger.newest(None)
        return found.version if found else 0

    def known(self, run: str | None, *, may_be_there: bool) -> WrittenTable | None:
        """Tell what is there, where nothing is to be written."""
        handle = self._handle()
        if handle is None:
            return None
        done = find_done(handle, RunMark(run)) if run else None
        if done is not None:
            return WrittenTable(self.name, done.version, done.rows or 0, is_new=False)
        newest = self.newest() if may_be_there else 0
        return WrittenTable(self.name, newest, 0, is_new=False) if newest else None

    def missing(self) -> WrittenTable:
        """Tell that a run was done by somebody else, and its note is gone.

        Raises:
            UnknownOutcomeError: always.
        """
        msg = f"the run is in {quote(self.name)}, and nobody knows any more in which version"
        raise UnknownOutcomeError(msg)


def _cores(spark: SparkSession) -> int:
    context = getattr(spark, "_sc", None)  # a session of Spark Connect has none
    return int(context.defaultParallelism) if context is not None else 4
