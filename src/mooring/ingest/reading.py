"""Reading a split: batches of rows, each of which knows where it stands in its file.

Records that cannot even be read, a line of CSV with too many values or one of JSON that is none,
are told apart from the others and do not end the reading.
"""

from __future__ import annotations

import io
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.ingest.rejects import Reject
from mooring.ingest.sources import Kind
from mooring.tables.handle import At
from mooring.tables.opening import open_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyarrow import csv as pacsv

    from mooring.ingest.sources import SourceFile, TextOptions
    from mooring.ingest.splits import Split
    from mooring.tables.upserts import LanceDataset

__all__ = ["Chunk", "open_lance", "read_split", "sample_csv", "sample_json"]

_ROWS_A_BATCH = 128 * 1024
_SAMPLE = 4 * 1024 * 1024
_BLOCK = 8 * 1024 * 1024


@dataclass(frozen=True)
class Chunk:
    """Rows of a file.

    Attributes:
        file: What people know the file as.
        rows: The rows.
        numbers: Which records of the file they are, from 1: the first, where they follow each
            other, or all.
        rejects: Records between them that could not be read.
    """

    file: str
    rows: pa.RecordBatch
    numbers: int | np.ndarray[tuple[int], np.dtype[np.int64]]
    rejects: tuple[Reject, ...] = ()

    def number(self, index: int) -> int:
        """Tell which record of the file a row is."""
        return self.numbers + index if isinstance(self.numbers, int) else int(self.numbers[index])


def read_split(
    split: Split, options: TextOptions, json_schema: pa.Schema, columns: Sequence[str] | None
) -> Iterator[Chunk]:
    """Read what a split names.

    Args:
        split: What to read.
        options: How CSV is written.
        json_schema: The types that JSON is read in.
        columns: Which columns are wanted; all unless given.

    Raises:
        InvalidInputError: the file cannot be read to its end.
    """
    with _named(split.file):
        match split.file.kind:
            case Kind.PARQUET:
                chunks = _numbered(split, _read_parquet(split, columns))
            case Kind.ORC:
                chunks = _numbered(split, _read_orc(split, columns))
            case Kind.LANCE:
                chunks = _numbered(split, _read_lance(split, columns))
            case Kind.CSV:
                chunks = _read_csv(split, options)
            case Kind.JSON:
                chunks = _read_json(split, json_schema)
        for chunk in chunks:
            yield _with_constants(chunk, split)


@contextmanager
def _named(file: SourceFile) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as exc:
        msg = f"{quote(file.uri)} cannot be read to its end as {file.kind}: {exc}"
        raise InvalidInputError(msg) from exc


def _numbered(split: Split, batches: Iterator[pa.RecordBatch]) -> Iterator[Chunk]:
    before = split.first_row
    for batch in batches:
        yield Chunk(split.file.uri, batch, before + 1)
        before += batch.num_rows


def _with_constants(chunk: Chunk, split: Split) -> Chunk:
    rows = chunk.rows
    for name, text in split.file.constants:
        if name not in rows.schema.names and name in split.schema.names:
            value = pa.scalar(text, pa.string())
            rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return chunk if rows is chunk.rows else replace(chunk, rows=rows)


# -- formats that have a schema --------------------------------------------------------------------


def _read_parquet(split: Split, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    source = split.file.filesystem.open_input_file(split.file.path)
    with pq.ParquetFile(source, pre_buffer=True) as opened:
        yield from opened.iter_batches(
            batch_size=_ROWS_A_BATCH,
            row_groups=list(split.groups) or range(opened.metadata.num_row_groups),
            columns=_known(columns, opened.schema_arrow),
        )


def _read_orc(split: Split, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    from pyarrow import orc

    opened = orc.ORCFile(split.file.filesystem.open_input_file(split.file.path))
    for stripe in split.groups:
        batch = opened.read_stripe(stripe, columns=_known(columns, opened.schema))
        yield from pa.Table.from_batches([batch]).to_batches(max_chunksize=_ROWS_A_BATCH)


def _read_lance(split: Split, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    dataset = open_lance(split.file)
    fragments = dataset.get_fragments()
    if not split.groups:
        return
    scanner = dataset.scanner(
        columns=_known(columns, dataset.schema),
        fragments=[fragments[number] for number in split.groups],
        scan_in_order=True,
        batch_size=_ROWS_A_BATCH // 4,
        blob_handling="all_binary",
    )
    yield from scanner.to_batches()


def open_lance(file: SourceFile) -> LanceDataset:
    """Open a table of Lance that is read, by its path or by its name in a catalog."""
    if file.table is not None:
        # Not by what the address keeps open: a process outlives tables, a name can mean another.
        return file.table.table().handle.open(At(file.version))
    return open_at(file.path, file.options, file.version)


def _known(columns: Sequence[str] | None, schema: pa.Schema) -> list[str] | None:
    return None if columns is None else [name for name in schema.names if name in columns]


# -- CSV ------------------------------------------------------------------------------------------


def sample_csv(file: SourceFile, options: TextOptions, columns: Sequence[str] = ()) -> pa.Schema:
    """Guess the types of a CSV file from its beginning; an empty file has no columns.

    Args:
        file: The file.
        options: How it is written.
        columns: The names, where it has no header.
    """
    from pyarrow import csv as pacsv

    with file.filesystem.open_input_stream(file.path) as stream:
        head = stream.read(_SAMPLE)
        if len(head) == _SAMPLE:
            head = head[: head.rfind(b"\n") + 1] or head
    if not head.strip():
        return pa.schema([])
    count = len(_first_record(file, head, options)) if columns and not options.has_header else 0
    names = list(columns[:count]) if count else None
    found = pacsv.read_csv(
        io.BytesIO(head),
        read_options=pacsv.ReadOptions(
            column_names=names, autogenerate_column_names=not options.has_header and not names
        ),
        parse_options=_csv_parsing(file, options, None),
        convert_options=_csv_conversion(options),
    )
    return pa.schema([_never_null(field) for field in found.schema])


def _first_record(file: SourceFile, head: bytes, options: TextOptions) -> list[str]:
    import csv

    text = io.StringIO(head.decode("utf-8", "replace"), newline="")
    return next(csv.reader(text, delimiter=_delimiter(file, options)), [])


def _never_null(field: pa.Field) -> pa.Field:
    return field.with_type(pa.string()) if pa.types.is_null(field.type) else field


def _delimiter(file: SourceFile, options: TextOptions) -> str:
    return options.delimiter or ("\t" if ".tsv" in file.path.lower() else ",")


def _csv_parsing(
    file: SourceFile, options: TextOptions, wrong: _WrongRecords | None
) -> pacsv.ParseOptions:
    from pyarrow import csv as pacsv

    return pacsv.ParseOptions(
        delimiter=_delimiter(file, options),
        newlines_in_values=True,
        invalid_row_handler=wrong or _skip,
    )


def _skip(_: object) -> str:
    return "skip"


def _csv_conversion(
    options: TextOptions, types: dict[str, pa.DataType] | None = None
) -> pacsv.ConvertOptions:
    from pyarrow import csv as pacsv

    return pacsv.ConvertOptions(
        column_types=types,
        null_values=list(options.null_values),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )


class _WrongRecords:
    """Keeps the records of CSV with too many or too few values."""

    def __init__(self, file: SourceFile, headers: int) -> None:
        self._file = file
        self._headers = headers
        self.numbers: list[int] = []
        self.rejects: list[Reject] = []

    def __call__(self, row: pacsv.InvalidRow) -> str:
        number = row.number - self._headers
        reason = f"it has {row.actual_columns} values, and {row.expected_columns} are expected"
        self.numbers.append(number)
        self.rejects.append(Reject(self._file.uri, number, reason, row.text))
        return "skip"

    def take(self) -> tuple[Reject, ...]:
        found, self.rejects = tuple(self.rejects), []
        return found


def _read_csv(split: Split, options: TextOptions) -> Iterator[Chunk]:
    """Read CSV as text; what it stands for is the table's matter.

    In one thread, as only then Arrow tells which record is wrong.
    """
    from pyarrow import csv as pacsv

    file = split.file
    told = {name for name, _ in file.constants}
    names = [name for name in split.schema.names if name not in told]
    if not names:
        return
    wrong = _WrongRecords(file, int(options.has_header))
    with file.filesystem.open_input_stream(file.path) as stream:
        reader = pacsv.open_csv(
            stream,
            read_options=pacsv.ReadOptions(
                use_threads=False,
                block_size=_BLOCK,
                column_names=None if options.has_header else names,
            ),
            parse_options=_csv_parsing(file, options, wrong),
            convert_options=_csv_conversion(options, dict.fromkeys(names, pa.string())),
        )
        last = 0
        for batch in reader:
            numbers, last = _good_numbers(batch.num_rows, last, wrong.numbers)
            yield Chunk(file.uri, batch, numbers, wrong.take())
        if wrong.rejects:
            yield Chunk(file.uri, _no_rows(reader.schema), 1, wrong.take())


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _good_numbers(
    count: int, last: int, wrong: Sequence[int]
) -> tuple[int | np.ndarray[tuple[int], np.dtype[np.int64]], int]:
    """Number records that follow the last one, wrong ones left out."""
    skipped = [number for number in wrong if number > last]
    if not skipped or skipped[0] > last + count:
        return last + 1, last + count
    numbers = np.arange(last + 1, last + 1 + count + len(skipped))
    numbers = numbers[~np.isin(numbers, skipped)][:count]
    return numbers, int(numbers[-1]) if count else last


# -- JSON -----------------------------------------------------------------------------------------


def sample_json(file: SourceFile) -> pa.Schema:
    """Guess the types of a file of JSON objects, one a line, from its beginning."""
    head = b""
    with file.filesystem.open_input_stream(file.path) as stream:
        for block in _lines(stream, _SAMPLE):
            head = block
            break
    types: dict[str, Counter[pa.DataType]] = {}
    for rows, _, _ in _parse(head, 0, pa.schema([])):
        for field in rows.schema:
            types.setdefault(field.name, Counter())[field.type] += rows.num_rows
    return pa.schema([pa.field(name, _sure(_common(found))) for name, found in types.items()])


def _common(found: Counter[pa.DataType]) -> pa.DataType:
    """Choose a type for all records, or for most of them: the others are wrong."""
    schemas = [pa.schema([pa.field("", kind)]) for kind in found]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return found.most_common(1)[0][0]


def _sure(kind: pa.DataType) -> pa.DataType:
    """Give what was null in all records the type of text."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_sure(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_sure(field.type)) for field in kind])
    return kind


def _lines(stream: pa.NativeFile, size: int) -> Iterator[bytes]:
    """Read blocks of whole lines."""
    rest = b""
    while block := stream.read(size):
        whole, found, left = (rest + block).rpartition(b"\n")
        rest = left
        if found:
            yield whole + found
    if rest:
        yield rest


def _read_json(split: Split, schema: pa.Schema) -> Iterator[Chunk]:
    before = 0
    with split.file.filesystem.open_input_stream(split.file.path) as stream:
        for block in _lines(stream, _BLOCK):
            for rows, first, wrong in _parse(block, before, schema):
                found = tuple(
                    Reject(split.file.uri, number, reason, text) for number, reason, text in wrong
                )
                yield Chunk(split.file.uri, rows, first, found)
            before += block.count(b"\n") + (not block.endswith(b"\n"))


_Wrong = tuple[int, str, str]


def _parse(
    block: bytes, before: int, schema: pa.Schema
) -> Iterator[tuple[pa.RecordBatch, int, list[_Wrong]]]:
    """Parse lines; a block in which one is wrong is halved until that one is found.

    Lines are counted, so an empty one or two objects in one are wrong, too.
    """
    if not block.strip():
        return
    count = block.count(b"\n") + (not block.endswith(b"\n"))
    try:
        table = _parse_all(block, schema)
    except pa.ArrowException as exc:
        table, reason = None, str(exc).partition(" in row")[0]
    else:
        reason = "it is not one JSON object"
    if table is not None and table.num_rows == count:
        for batch in table.combine_chunks().to_batches():
            yield batch, before + 1, []
        return
    if count == 1:
        text = block.decode("utf-8", "replace").rstrip("\n")
        yield _no_rows(schema), before + 1, [(before + 1, reason, text)]
        return
    lines = block.splitlines(keepends=True)
    half = count // 2
    yield from _parse(b"".join(lines[:half]), before, schema)
    yield from _parse(b"".join(lines[half:]), before + half, schema)


def _parse_all(block: bytes, schema: pa.Schema) -> pa.Table:
    from pyarrow import json as pajson

    return pajson.read_json(
        io.BytesIO(block),
        read_options=pajson.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=pajson.ParseOptions(
            explicit_schema=schema if len(schema) else None, unexpected_field_behavior="infer"
        ),
    )
