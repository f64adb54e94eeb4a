"""Rows on their way to a server, of which only a little is in memory at a time."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.ipc

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ARROW_STREAM", "stream_chunks"]

ARROW_STREAM = "application/vnd.apache.arrow.stream"
_AT_ONCE = 1024 * 1024


def stream_chunks(rows: pa.RecordBatchReader) -> Iterator[bytes]:
    """Write rows as an Arrow IPC stream, some of it at a time."""
    sink = _Sink()
    with pyarrow.ipc.new_stream(pa.PythonFile(sink, mode="w"), rows.schema) as writer:
        for batch in rows:
            for part in _split(batch):
                writer.write_batch(part)
                if sink.size >= _AT_ONCE:
                    yield sink.take()
    yield sink.take()


def _split(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split a batch that is large, so that not all of it is written at once."""
    step = max(1, batch.num_rows * _AT_ONCE // max(batch.nbytes, 1))
    if step >= batch.num_rows:
        yield batch
        return
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


class _Sink(io.RawIOBase):
    """Keeps what is written until it is taken."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        part = bytes(memoryview(data))  # type: ignore[arg-type]  # any buffer
        self._parts.append(part)
        self.size += len(part)
        return len(part)

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts, self.size = [], 0
        return taken
