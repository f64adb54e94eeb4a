"""Data frames as changes of tables, all of them in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.changes.writing import ChangeRun
from mooring.spark.changes_rows import check_rows, write_frame
from mooring.spark.failures import telling_failures
from mooring.spark.options import SourceOptions, options_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from mooring.catalog import Catalog
    from mooring.changes.commits import Landed
    from mooring.metastore import DeltaType
    from mooring.spark.options import Name

__all__ = ["read_changes", "write_changes"]

_FORMAT = "mooring"


def read_changes(
    spark: SparkSession,
    catalog: Catalog | str | None,
    name: Name,
    *,
    first: int | None = None,
    last: int | None = None,
    **options: object,
) -> DataFrame:
    """Return the changes of a table themselves as a data frame.

    A row has the table's columns, null where the change does not bring them, and
    ``_change_type`` and ``_change_position``.

    Args:
        spark: The session.
        catalog: The catalog, or its path or URI; the one of the settings unless given.
        name: The change table.
        first: The first position that is read; that of the first change unless given.
        last: The last one; the newest unless given.
        options: Others of the data source: ``columns``, ``skipReplacements``, ``batch_rows``.

    Raises:
        MooringError: an option makes no sense, or what it names is not there.
    """
    own = {"changes": True, "fromPosition": first, "toPosition": last}
    given = options_of(catalog, name, {**options, **own})
    SourceOptions.parse(given)
    with telling_failures():
        return spark.read.format(_FORMAT).options(**given).load()


def write_changes(
    catalog: Catalog | str | None,
    changes: Sequence[tuple[DataFrame, Name, DeltaType | str]],
    *,
    run: str | None = None,
    message: str | None = None,
) -> list[Landed]:
    """Have Spark write data frames as changes of tables, all of them or none.

    Args:
        catalog: A metastore, or its path or URI; the one of the settings unless given.
        changes: A data frame, the table that it changes, and what it does there: ``upsert``,
            ``delete``, ``append`` or ``add``. Columns that an upsert does not have keep their
            values. Changes of one table count in this order.
        run: A name; a run that is repeated changes nothing.
        message: What it is for.

    Returns:
        What became of each change that had rows.

    Raises:
        InvalidInputError: a row has no key, or a table has none to change rows by.
        ConflictError: a key comes twice in a change, and no merge order tells which counts.
        TableNotFoundError: there is no such table.
        TableSchemaValidationError: rows do not fit.
        ConcurrentModificationError: a table got other columns meanwhile.
    """
    opened = SourceOptions.parse(options_of(catalog, "t")).open(must_exist=True)
    with ChangeRun(opened, run=run) as work:
        done = work.find_done([table for _, table, _ in changes])
        if done is not None:
            return done
        drafts = [work.draft(table, type_) for _, table, type_ in changes]
        for (rows, _, _), draft in zip(changes, drafts, strict=True):
            check_rows(rows.schema, draft)  # of all, before any is written
        for (rows, table, _), draft in zip(changes, drafts, strict=True):
            work.add(table, draft, write_frame(draft, rows))
        return work.commit(message=message)
