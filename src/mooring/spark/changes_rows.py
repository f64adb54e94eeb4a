"""Rows of a data frame as a part of a change: checked on the driver, written by workers."""

from __future__ import annotations

import pickle
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.changes.parts import check_columns
from mooring.changes.writing import parse_type
from mooring.clock import RandomIds
from mooring.errors import InvalidInputError, MooringError
from mooring.identifiers import quote
from mooring.metastore import DeltaType
from mooring.metastore.layout import data_dir
from mooring.spark.conversion import Conversion, check_fits
from mooring.spark.failures import telling_failures
from mooring.spark.types import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from mooring.changes.definition import Definition
    from mooring.changes.parts import Draft, PartWritten

__all__ = ["check_rows", "choose_change", "delete_stragglers", "write_frame", "write_part"]

# Spark ends tasks of a job that failed within two seconds.
_STRAGGLERS_S = 3.0
_POLL_S = 0.25


def choose_change(given: str | None, table: Definition, what: str) -> DeltaType:
    """Return what rows do to a table.

    Args:
        given: What somebody said.
        table: The table.
        what: The table, as messages name it.

    Raises:
        InvalidInputError: it is unknown, or nobody said it and the table has keys.
    """
    if given is not None:
        return parse_type(given)
    if not table.is_keyed:
        return DeltaType.APPEND
    msg = (
        f"{what} has merge keys ({', '.join(table.keys)}): say what the rows do with the option"
        " 'change', upsert, delete, append or add"
    )
    raise InvalidInputError(msg)


def check_rows(schema: StructType, draft: Draft) -> pa.Schema:
    """Refuse rows that can never fit, by their schema.

    Returns:
        The schema in which Spark hands them out.

    Raises:
        InvalidInputError: a key is missing, a column comes twice, or the table has no keys.
        TableSchemaValidationError: a column is unknown or of another type.
    """
    twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInputError(f"column {quote(twice)} comes twice: leave one out or rename it")
    rows = pa.schema(
        [pa.field(one.name, canonical(one.dataType, one.name)) for one in schema.fields]
    )
    check_columns(rows, draft.table, draft.type, draft.what)
    for one in rows:
        check_fits(one.type, draft.table.schema.field(one.name).type, one.name, draft.what)
    return rows


def write_part(draft: Draft, batches: Iterable[pa.RecordBatch]) -> PartWritten:
    """Write rows of one try at a task, under a name of its own; a failure leaves nothing.

    Raises:
        InvalidInputError: a row has no key.
        ConflictError: a key comes twice, and no merge order tells which counts.
        TableSchemaValidationError: a value does not fit.
    """
    part = RandomIds().new_id()
    try:
        return draft.write(_fitting(batches, draft), part)
    except BaseException:
        _delete_part(draft, part)
        raise


def write_frame(draft: Draft, rows: DataFrame) -> list[PartWritten]:
    """Have tasks of Spark write a data frame, and hear from each that counts.

    A task may be tried more than once, or twice at a time: of each only one answer comes back,
    and it names its own files.

    Raises:
        MooringError: the rows do not fit, or Spark failed.
    """
    check_rows(rows.schema, draft)
    try:
        with telling_failures():
            told = rows.mapInArrow(_Task(draft), "part binary").collect()
    except BaseException:
        delete_stragglers(draft)
        raise
    return [pickle.loads(row["part"]) for row in told]  # noqa: S301  # our own worker's


class _Task:
    """What a task does: batches in, what was written of them out."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        part = pickle.dumps(write_part(self._draft, batches))
        yield pa.RecordBatch.from_arrays([pa.array([part], pa.binary())], names=["part"])


def delete_stragglers(draft: Draft) -> None:
    """Delete what tasks of a job that failed have written, and what some still write."""
    store = draft.catalog.open().metastore.store
    ends_at = time.monotonic() + _STRAGGLERS_S
    with suppress(MooringError):  # a vacuum finds it; what went wrong before matters more
        while time.monotonic() < ends_at:
            store.delete_prefix(data_dir(draft.token))
            time.sleep(_POLL_S)


def _fitting(batches: Iterable[pa.RecordBatch], draft: Draft) -> Iterator[pa.RecordBatch]:
    """Give rows the types of the table, as far as they have its columns."""
    convert: Conversion | None = None
    for batch in batches:
        if convert is None:
            names = batch.schema.names
            wanted = [
                pa.field(one.name, one.type) for one in draft.table.schema if one.name in names
            ]
            convert = Conversion(batch.schema, pa.schema(wanted), draft.what)
        yield convert(batch)


def _delete_part(draft: Draft, part: str) -> None:
    directory = data_dir(draft.token)
    with suppress(MooringError):
        store = draft.catalog.open().metastore.store
        found = [meta.path for meta in store.list_prefix(directory)]
        store.delete(path for path in found if path.startswith(f"{directory}/{part}-"))
