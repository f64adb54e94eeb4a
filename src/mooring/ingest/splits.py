"""Sources divided: what one worker reads of which file, and the schema that is found in each.

Only these small descriptions travel to workers, which read the files themselves.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.ingest.reading import open_lance, read_split, sample_csv, sample_json
from mooring.ingest.sources import Kind
from mooring.ingest.types import json_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mooring.ingest.reading import Chunk
    from mooring.ingest.sources import SourceFile, TextOptions

__all__ = ["Part", "Split", "Survey", "divide", "survey"]

_AT_ONCE = 16
# Less than this is not worth a worker of its own.
_LEAST_BYTES = 16 * 1024 * 1024
_PARTS_A_WORKER = 3


@dataclass(frozen=True)
class Split:
    """What is read of one file.

    Attributes:
        file: The file.
        groups: Row groups, stripes or fragments, in order; all of it where there are none.
        first_row: How many rows of the file come before.
        size_bytes: About how many bytes it is.
        schema: What the file holds, as it is read.
    """

    file: SourceFile
    groups: tuple[int, ...]
    first_row: int
    size_bytes: int
    schema: pa.Schema


@dataclass(frozen=True)
class Part:
    """What one worker reads, in order."""

    splits: tuple[Split, ...]

    @property
    def size_bytes(self) -> int:
        """About how many bytes it is."""
        return sum(split.size_bytes for split in self.splits)

    def read(
        self, options: TextOptions, target: pa.Schema, columns: Sequence[str] | None
    ) -> Iterator[Chunk]:
        """Read it for a table.

        Args:
            options: How CSV is written.
            target: The table's schema, as far as it matters.
            columns: Which columns are wanted; all unless given.
        """
        for split in self.splits:
            yield from read_split(split, options, json_schema(split.schema, target), columns)


@dataclass(frozen=True)
class Survey:
    """What is known of a file before it is read.

    Attributes:
        file: The file.
        schema: What it holds, as it is read; CSV is text.
        natural: The types that a new table gets for it.
        groups: Rows and bytes of what it can be divided into; empty where it cannot.
    """

    file: SourceFile
    schema: pa.Schema
    natural: pa.Schema
    groups: tuple[tuple[int, int], ...] = ()

    @property
    def size_bytes(self) -> int:
        """How many bytes are read."""
        return sum(size for _, size in self.groups) if self.groups else self.file.size_bytes


def survey(
    files: Sequence[SourceFile], options: TextOptions, columns: Sequence[str] = ()
) -> list[Survey]:
    """Look at all files.

    Args:
        files: The files.
        options: How CSV is written.
        columns: The names for the columns of CSV without a header.

    Raises:
        InvalidInputError: one of them cannot be read, or names a column twice.
    """
    with ThreadPoolExecutor(min(_AT_ONCE, len(files))) as pool:
        found = list(pool.map(lambda file: _survey(file, options, columns), files))
    for one in found:
        _require_distinct(one)
    return found


def _survey(file: SourceFile, options: TextOptions, columns: Sequence[str]) -> Survey:
    try:
        match file.kind:
            case Kind.PARQUET:
                found = _survey_parquet(file)
            case Kind.ORC:
                found = _survey_orc(file)
            case Kind.LANCE:
                found = _survey_lance(file)
            case Kind.CSV:
                natural = sample_csv(file, options, columns)
                text = pa.schema([pa.field(name, pa.string()) for name in natural.names])
                found = Survey(file, text, natural)
            case Kind.JSON:
                found = Survey(file, natural := sample_json(file), natural)
    except (pa.ArrowException, OSError) as exc:
        msg = f"{quote(file.uri)} cannot be read as {file.kind}: {exc}"
        raise InvalidInputError(msg) from exc
    return _with_constants(found)


def _survey_parquet(file: SourceFile) -> Survey:
    import pyarrow.parquet as pq

    with pq.ParquetFile(file.filesystem.open_input_file(file.path)) as opened:
        groups = [opened.metadata.row_group(n) for n in range(opened.metadata.num_row_groups)]
        schema = opened.schema_arrow
        sizes = tuple(
            (
                group.num_rows,
                sum(group.column(n).total_compressed_size for n in range(group.num_columns)),
            )
            for group in groups
        )
    return Survey(file, schema, schema, sizes)


def _survey_orc(file: SourceFile) -> Survey:
    from pyarrow import orc

    opened = orc.ORCFile(file.filesystem.open_input_file(file.path))
    count = opened.nstripes
    if count == 1:
        return Survey(file, opened.schema, opened.schema, ((opened.nrows, file.size_bytes),))
    # Arrow does not tell how many rows a stripe has, and each row has to have a number.
    first = opened.schema.names[:1]
    sizes = tuple(
        (opened.read_stripe(n, columns=first).num_rows, file.size_bytes // count)
        for n in range(count)
    )
    return Survey(file, opened.schema, opened.schema, sizes)


def _survey_lance(file: SourceFile) -> Survey:
    dataset = open_lance(file)
    version = int(dataset.version)
    # All workers read one version, whatever is written meanwhile.
    table = None if file.table is None else replace(file.table, version=version)
    file = replace(file, table=table, version=version)
    sizes = tuple(
        (
            int(fragment.count_rows()),
            sum(one.file_size_bytes or 0 for one in fragment.metadata.files),
        )
        for fragment in dataset.get_fragments()
    )
    return Survey(file, dataset.schema, dataset.schema, sizes)


def _with_constants(found: Survey) -> Survey:
    """Add the columns that directories tell; a file that has them itself knows better."""
    told = [(name, text) for name, text in found.file.constants if name not in found.schema.names]
    if not told:
        return found
    text = [pa.field(name, pa.string()) for name, _ in told]
    natural = [pa.field(name, _natural(value)) for name, value in told]
    return Survey(
        found.file,
        pa.schema([*found.schema, *text], metadata=found.schema.metadata),
        pa.schema([*found.natural, *natural], metadata=found.natural.metadata),
        found.groups,
    )


def _natural(text: str | None) -> pa.DataType:
    is_number = text is not None and text.isascii() and text.removeprefix("-").isdecimal()
    return pa.int64() if is_number or text is None else pa.string()


def _require_distinct(found: Survey) -> None:
    names = found.schema.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = f"{quote(found.file.uri)} has two columns {quote(twice[0])}: rename one of them"
        raise InvalidInputError(msg)


def divide(surveys: Sequence[Survey], workers: int) -> list[Part]:
    """Divide files among workers: a few parts for each, of about the same size, in order."""
    units = [split for one in surveys for split in _units(one)]
    total = sum(split.size_bytes for split in units)
    count = max(1, min(_PARTS_A_WORKER * workers, total // _LEAST_BYTES))
    parts: list[list[Split]] = [[]]
    done = 0
    for split in units:
        if parts[-1] and done >= total * len(parts) / count:
            parts.append([])
        _add(parts[-1], split)
        done += split.size_bytes
    return [Part(tuple(splits)) for splits in parts if splits]


def _units(one: Survey) -> Iterator[Split]:
    if not one.groups:
        yield Split(one.file, (), 0, one.file.size_bytes, one.schema)
        return
    before = 0
    for number, (rows, size) in enumerate(one.groups):
        yield Split(one.file, (number,), before, size, one.schema)
        before += rows


def _add(splits: list[Split], new: Split) -> None:
    """Add to a part; what follows in the same file is read together."""
    last = splits[-1] if splits else None
    if last is None or last.file is not new.file or not new.groups:
        splits.append(new)
        return
    splits[-1] = Split(
        last.file,
        (*last.groups, *new.groups),
        last.first_row,
        last.size_bytes + new.size_bytes,
        last.schema,
    )
