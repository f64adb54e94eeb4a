"""From whatever a caller has to a stream of Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from mooring.errors import InvalidInputError

__all__ = ["FILE_KINDS", "read_file", "to_reader"]

_ROWS_A_BATCH = 10_000
FILE_KINDS = ("parquet", "csv", "json", "arrow", "feather", "ipc")


def to_reader(data: object, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
    """Stream rows from Arrow data, a data frame, or an iterable of batches or dictionaries.

    Args:
        data: Anything with the Arrow stream protocol (tables, batches, readers, pandas and polars
            frames), or an iterable of tables, batches or dictionaries.
        schema: The schema to give rows that bring none, or to cast to.

    Raises:
        InvalidInputError: the data is of no kind that can be read as rows.
    """
    try:
        return _to_reader(data, schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as exc:
        msg = f"the data does not fit one Arrow schema: {exc}"
        raise InvalidInputError(msg) from exc


def _to_reader(data: object, schema: pa.Schema | None) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader) and schema is None:
        return data
    # Before the stream protocol, by which a data frame hands out its index as a column.
    if _is_data_frame(data):
        table = pa.Table.from_pandas(data, schema=schema, preserve_index=False)
        return table.to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data, schema=schema)
    if hasattr(data, "__arrow_c_array__"):
        batch = pa.record_batch(data, schema=schema)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    if isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping):
        return _from_iterable(iter(data), schema)
    columns = "; of a dictionary of columns pyarrow.table makes one"
    msg = (
        f"rows cannot be read from {type(data).__name__}: give an Arrow table, a data frame,"
        " or an iterable of record batches or dictionaries"
        f"{columns if isinstance(data, Mapping) else ''}"
    )
    raise InvalidInputError(msg)


def read_file(path: str | Path, kind: str | None = None) -> pa.RecordBatchReader:
    """Stream the rows of a Parquet, CSV, JSON lines or Arrow file, or a directory of them.

    Args:
        path: The file or directory.
        kind: Its format, where the suffix does not tell.

    Raises:
        InvalidInputError: there is no such file, or its format is unknown.
    """
    import pyarrow.dataset  # 100 ms, only for files

    source = Path(path)
    if not source.exists():
        msg = f"there is no file '{path}'"
        raise InvalidInputError(msg)
    chosen = (kind or source.suffix.removeprefix(".") or "parquet").lower()
    chosen = {"pq": "parquet", "jsonl": "json", "ndjson": "json"}.get(chosen, chosen)
    if chosen not in FILE_KINDS:
        msg = f"'{path}' has no format that can be read; say one of {', '.join(FILE_KINDS)}"
        raise InvalidInputError(msg)
    try:
        return pyarrow.dataset.dataset(source, format=chosen).scanner().to_reader()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as exc:
        msg = f"'{path}' cannot be read as {chosen}: {_reason(exc, source)}"
        raise InvalidInputError(msg) from exc


def _reason(exc: Exception, source: Path) -> str:
    """Tell what Arrow found, without the way to it, which names the file three times."""
    _, _, reason = str(exc).rpartition("input source ")
    _, named, rest = reason.partition("': ")
    return reason if source.is_dir() or not named else rest.removeprefix("Invalid: ")


def _is_data_frame(data: object) -> bool:
    return type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns")


def _from_iterable(items: Iterator[Any], schema: pa.Schema | None) -> pa.RecordBatchReader:
    try:
        first = next(items)
    except StopIteration:
        if schema is None:
            msg = "an empty iterable has no schema: give one, as in schema.empty_table() of Arrow"
            raise InvalidInputError(msg) from None
        return pa.RecordBatchReader.from_batches(schema, [])
    everything = chain([first], items)
    batches = _batch_dicts(everything, schema) if isinstance(first, Mapping) else everything
    flat = _flatten(batches)
    head = next(flat)
    return pa.RecordBatchReader.from_batches(schema or head.schema, chain([head], flat))


def _batch_dicts(rows: Iterator[Any], schema: pa.Schema | None) -> Iterator[pa.RecordBatch]:
    while chunk := list(islice(rows, _ROWS_A_BATCH)):
        batch = _to_batch(chunk, schema)
        schema = batch.schema
        yield batch


def _to_batch(chunk: list[dict[str, Any]], schema: pa.Schema | None) -> pa.RecordBatch:
    # Arrow takes the columns of the first row and drops what only later ones have.
    columns = list(dict.fromkeys(chain.from_iterable(chunk)))
    known = columns if schema is None else schema.names
    unknown = next((column for column in columns if column not in known), None)
    if unknown is not None:
        msg = f"a row has the column '{unknown}', but the columns are {', '.join(known)}"
        raise InvalidInputError(msg)
    try:
        if schema is None:
            arrays = {column: [row.get(column) for row in chunk] for column in columns}
            return pa.RecordBatch.from_pydict(arrays)
        return pa.RecordBatch.from_pylist(chunk, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as exc:
        msg = f"these rows do not fit one schema: {exc}"
        raise InvalidInputError(msg) from exc


def _flatten(items: Iterator[Any]) -> Iterator[pa.RecordBatch]:
    for item in items:
        if isinstance(item, pa.RecordBatch):
            yield item
        elif isinstance(item, pa.Table):
            yield from item.to_batches() or [pa.RecordBatch.from_pylist([], schema=item.schema)]
        else:
            msg = (
                f"an iterable of rows cannot hold {type(item).__name__}: a row is a dictionary of"
                " names and values"
            )
            raise InvalidInputError(msg)
