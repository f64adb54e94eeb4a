"""Files of rows: read to fit a table, written whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

import pyarrow as pa

from mooring.cli.cells import plain_rows, to_strings
from mooring.errors import InvalidInputError, TableSchemaValidationError
from mooring.tables.rows import read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["STREAM", "Source", "kind_of", "opened_files", "read_files", "write_file"]

STREAM = "-"
PARQUET, CSV, JSON, ARROW = "parquet", "csv", "json", "arrow"
_SUFFIXES = {
    "parquet": PARQUET,
    "pq": PARQUET,
    "csv": CSV,
    "json": JSON,
    "jsonl": JSON,
    "ndjson": JSON,
    "arrow": ARROW,
    "feather": ARROW,
    "ipc": ARROW,
}
_MAGIC = b"ARROW1"


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read: where it lies, its format, and what people know it as."""

    path: Path
    kind: str
    label: str


def kind_of(file: str, said: str | None = None) -> str:
    """Tell the format of a file by what was said, or by its suffix.

    Raises:
        InvalidInputError: neither tells.
    """
    if said is not None:
        return _SUFFIXES[said]
    suffix = Path(file).suffix.removeprefix(".").lower()
    if file != STREAM and suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    known = ", ".join(dict.fromkeys(_SUFFIXES.values()))
    what = "a stream has no suffix" if file == STREAM else f"the suffix of '{file}' tells no format"
    msg = f"{what}: say one of {known} with --format"
    raise InvalidInputError(msg)


# -- reading -------------------------------------------------------------------------------------


@contextmanager
def opened_files(files: Sequence[str], kind: str | None) -> Iterator[list[Source]]:
    """Have each file in a place that can be read more than once.

    Standard input is kept in a temporary file as long as it is needed.

    Raises:
        InvalidInputError: a format is not known, or two files are standard input.
    """
    if list(files).count(STREAM) > 1:
        msg = "standard input can be read once: give - once"
        raise InvalidInputError(msg)
    with ExitStack() as stack:
        yield [_keep_stream(stack, kind) if file == STREAM else _find(file, kind) for file in files]


def _find(file: str, kind: str | None) -> Source:
    path = Path(file)
    if path.is_dir():
        return Source(path, kind or PARQUET, file)
    return Source(path, kind_of(file, kind), file)


def _keep_stream(stack: ExitStack, kind: str | None) -> Source:
    chosen = kind_of(STREAM, kind)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mooring-"))
    kept = Path(folder) / "rows"
    with kept.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return Source(kept, chosen, "standard input")


def read_files(sources: Sequence[Source], schema: pa.Schema | None) -> list[pa.RecordBatchReader]:
    """Stream files with one schema.

    Args:
        sources: The files.
        schema: The table's, whose types the columns of the same names get; by default the
            files' own.

    Raises:
        InvalidInputError: a file cannot be read, or the files have no common schema.
        TableSchemaValidationError: a file has a column that the table lacks.
    """
    own = [_open(source).schema for source in sources]
    target = _unify(own) if schema is None else _narrow(sources, own, schema)
    return [_fitted(source, found, target) for source, found in zip(sources, own, strict=True)]


def _open(source: Source, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
    path, kind = source.path, source.kind
    try:
        if kind == ARROW and path.is_file() and not _is_arrow_file(path):
            return pa.ipc.open_stream(pa.OSFile(str(path)))
        if schema is None:
            return read_file(path, kind)
        import pyarrow.dataset

        return pyarrow.dataset.dataset(path, format=kind, schema=schema).scanner().to_reader()
    except (pa.ArrowException, OSError) as exc:
        msg = f"'{source.label}' cannot be read as {kind}: {exc}"
        raise InvalidInputError(msg) from exc
    except InvalidInputError as exc:
        raise InvalidInputError(str(exc).replace(str(path), source.label)) from exc


def _is_arrow_file(path: Path) -> bool:
    with path.open("rb") as opened:
        return opened.read(len(_MAGIC)) == _MAGIC


def _unify(schemas: Sequence[pa.Schema]) -> pa.Schema:
    try:
        return pa.unify_schemas(list(schemas), promote_options="permissive")
    except pa.ArrowException as exc:
        msg = f"the files have no common schema: {exc}"
        raise InvalidInputError(msg) from exc


def _narrow(
    sources: Sequence[Source], schemas: Sequence[pa.Schema], wanted: pa.Schema
) -> pa.Schema:
    """Choose the fields of a table that the files have."""
    from mooring.cli.closeness import known_or_close

    for source, schema in zip(sources, schemas, strict=True):
        for name in schema.names:
            if name not in wanted.names:
                msg = f"'{source.label}' has the column '{name}', which the table lacks"
                raise TableSchemaValidationError(msg + known_or_close(name, wanted.names))
    names = {name for schema in schemas for name in schema.names}
    return pa.schema([field for field in wanted if field.name in names])


def _fitted(source: Source, own: pa.Schema, target: pa.Schema) -> pa.RecordBatchReader:
    is_text = source.kind in {CSV, JSON}
    rows = _open(source, _readable(own, target, source.kind) if is_text else None)
    batches = (_fit(batch, target, source.label) for batch in rows)
    return pa.RecordBatchReader.from_batches(target, batches)


def _readable(own: pa.Schema, target: pa.Schema, kind: str) -> pa.Schema:
    """Read text in the types it is for: a guess would make the number 1234 of the text 01234."""
    types = {field.name: field.type for field in target}
    return pa.schema(
        [
            pa.field(field.name, types[field.name]) if _is_read(types[field.name], kind) else field
            for field in own
        ]
    )


def _is_read(kind: pa.DataType, file_kind: str) -> bool:
    """Whether Arrow reads a type from text; the others are cast from what it guesses."""
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        return True
    if pa.types.is_float32(kind) or pa.types.is_float64(kind) or pa.types.is_decimal(kind):
        return True
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return True
    return file_kind == CSV and bool(pa.types.is_date(kind) or pa.types.is_time(kind))


def _fit(batch: pa.RecordBatch, target: pa.Schema, label: str) -> pa.RecordBatch:
    columns = []
    for field in target:
        if field.name not in batch.schema.names:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        try:
            columns.append(_cast(batch.column(field.name), field.type))
        except (pa.ArrowException, ValueError) as exc:
            msg = f"'{label}': the column '{field.name}' does not fit {field.type}: {exc}"
            raise TableSchemaValidationError(msg) from exc
    return pa.RecordBatch.from_arrays(columns, schema=target)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    # CSV has no nested values; they are written there as JSON.
    if pa.types.is_nested(kind) and pa.types.is_string(column.type):
        return pa.array([json.loads(text) if text else None for text in column.to_pylist()], kind)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, column.cast(kind.storage_type))
    return column.cast(kind)


# -- writing -------------------------------------------------------------------------------------


class _Writer(Protocol):
    def write_batch(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


def write_file(
    reader: pa.RecordBatchReader, file: str, kind: str, tell: Callable[[int], None]
) -> int:
    """Write rows to a file, which is complete or not there; ``-`` is standard output.

    Args:
        reader: The rows.
        file: Where to; a file that is there is replaced.
        kind: The format.
        tell: Hears the number of rows so far.

    Returns:
        The number of rows.

    Raises:
        InvalidInputError: the file cannot be written, or the format has no such type.
    """
    if file == STREAM:
        sys.stdout.flush()
        return _write(reader, sys.stdout.buffer, kind, tell, is_stream=True)
    path = Path(file)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("wb") as opened:
            count = _write(reader, opened, kind, tell)
            opened.flush()
            os.fsync(opened.fileno())
        temporary.replace(path)
    except OSError as exc:
        msg = f"'{file}' cannot be written: {exc.strerror or exc}"
        raise InvalidInputError(msg) from exc
    except pa.ArrowException as exc:
        msg = f"'{file}' cannot be written as {kind}: {exc}"
        raise InvalidInputError(msg) from exc
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _write(
    reader: pa.RecordBatchReader,
    sink: BinaryIO,
    kind: str,
    tell: Callable[[int], None],
    *,
    is_stream: bool = False,
) -> int:
    count = 0
    writer = _open_writer(reader.schema, sink, kind, is_stream=is_stream)
    try:
        for batch in reader:
            writer.write_batch(batch)
            count += batch.num_rows
            tell(count)
    finally:
        writer.close()
    return count


def _open_writer(schema: pa.Schema, sink: BinaryIO, kind: str, *, is_stream: bool) -> _Writer:
    match kind:
        case "parquet":
            import pyarrow.parquet

            # A sink of its own: one of Python's would be closed with the writer.
            writer: _Writer = pyarrow.parquet.ParquetWriter(pa.PythonFile(sink), schema)
            return writer
        case "csv":
            return _CsvWriter(schema, sink)
        case "json":
            return _JsonWriter(sink)
        case _:
            new = pa.ipc.new_stream if is_stream else pa.ipc.new_file
            opened: _Writer = new(sink, schema)
            return opened


class _CsvWriter:
    """Writes CSV; what it has no form for is text in it."""

    def __init__(self, schema: pa.Schema, sink: BinaryIO) -> None:
        import pyarrow.csv

        fields = [
            field if _is_flat(field.type) else field.with_type(pa.string()) for field in schema
        ]
        self._schema = pa.schema(fields)
        self._writer = pyarrow.csv.CSVWriter(sink, self._schema)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        columns = [
            column if _is_flat(column.type) else to_strings(column) for column in batch.columns
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def _is_flat(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
    )


class _JsonWriter:
    """Writes an object a line."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._sink.writelines(_lines(plain_rows(batch)))

    def close(self) -> None:
        self._sink.flush()


def _lines(rows: Iterable[dict[str, object]]) -> Iterator[bytes]:
    for row in rows:
        yield (json.dumps(row, ensure_ascii=False) + "\n").encode()
