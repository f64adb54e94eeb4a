"""What a worker does with its part: read, fit and write; the same in threads and in Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from mooring.ingest.fitting import fit
from mooring.ingest.rejects import Reject, too_many
from mooring.jobs.writing import PartWritten
from mooring.tables.fragments import pack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mooring.ingest.reading import Chunk
    from mooring.ingest.sources import TextOptions
    from mooring.tables.draft import Draft

__all__ = ["Ingested", "Readable", "WriteTask"]


@dataclass(frozen=True)
class Ingested(PartWritten):
    """What became of one part.

    Attributes:
        rows_in: How many records were read.
        size_bytes: How many bytes they took.
        rejects: Those that were left out.
    """

    rows_in: int = 0
    size_bytes: int = 0
    rejects: tuple[Reject, ...] = ()


class Readable(Protocol):
    """A part of a source."""

    @property
    def size_bytes(self) -> int:
        """About how many bytes it is."""
        ...

    def read(
        self, options: TextOptions, target: pa.Schema, columns: Sequence[str] | None
    ) -> Iterator[Chunk]:
        """Read it for a table."""
        ...


@dataclass
class _Tally:
    """Counts what comes by."""

    limit: int | None
    read: int = 0
    fitted: int = 0
    written: int = 0
    rejects: list[Reject] = field(default_factory=list)

    def reject(self, new: Sequence[Reject]) -> None:
        self.rejects += new
        if self.limit is not None and len(self.rejects) > self.limit:
            raise too_many(self.rejects, self.limit)


@dataclass(frozen=True)
class WriteTask:
    """Writes parts for a table; it travels.

    Attributes:
        target: The schema of what is written: the table's, or that of its key.
        options: How CSV is written.
        limit: How many records may be left out of a part; None for any number.
        only: Whether columns that are not in the target are of no interest.
    """

    target: pa.Schema
    options: TextOptions
    limit: int | None = 0
    only: bool = False

    def __call__(self, draft: Draft, part: Readable) -> Ingested:
        """Write one part."""
        return self.write(draft, part, {})

    def write(self, draft: Draft, part: Readable, left_out: Mapping[int, str]) -> Ingested:
        """Write one part without some of its rows.

        Args:
            draft: How to write.
            part: What to write.
            left_out: By its place among the rows that fit, why one is left out.
        """
        tally = _Tally(self.limit)
        batches = self._batches(part, tally, left_out)
        first = next(batches, None)
        fragments = []
        if first is not None:
            rows = pa.RecordBatchReader.from_batches(self.target, chain([first], batches))
            fragments = draft.write(rows)
        return Ingested(
            pack(fragments), tally.written, tally.read, part.size_bytes, tuple(tally.rejects)
        )

    def _batches(
        self, part: Readable, tally: _Tally, left_out: Mapping[int, str]
    ) -> Iterator[pa.RecordBatch]:
        columns = self.target.names if self.only else None
        for chunk in part.read(self.options, self.target, columns):
            tally.read += chunk.rows.num_rows + len(chunk.rejects)
            tally.reject(chunk.rejects)
            rows = self._fit(chunk, tally, left_out)
            tally.written += rows.num_rows
            if rows.num_rows:
                yield rows

    def _fit(self, chunk: Chunk, tally: _Tally, left_out: Mapping[int, str]) -> pa.RecordBatch:
        rows = chunk.rows
        if self.only:
            rows = rows.select([name for name in rows.schema.names if name in self.target.names])
        fitted = fit(rows, self.target)
        wrong = sorted(fitted.wrong.items())
        tally.reject([_reject(chunk, index, why) for index, why in wrong])
        if not left_out:
            return fitted.rows
        here = [at for at in range(fitted.rows.num_rows) if tally.fitted + at in left_out]
        right = [index for index in range(chunk.rows.num_rows) if index not in fitted.wrong]
        tally.reject([_reject(chunk, right[at], left_out[tally.fitted + at]) for at in here])
        tally.fitted += fitted.rows.num_rows
        keep = np.ones(fitted.rows.num_rows, dtype=bool)
        keep[here] = False
        return fitted.rows.filter(pa.array(keep))


def _reject(chunk: Chunk, index: int, reason: str) -> Reject:
    row = chunk.rows.slice(index, 1).to_pylist()[0]
    record = json.dumps(row, default=_plain, ensure_ascii=False)
    return Reject(chunk.file, chunk.number(index), reason, record)


def _plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
