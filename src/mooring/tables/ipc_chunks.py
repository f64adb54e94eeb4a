"""Rows as Arrow IPC, written some of it at a time: for whoever sends more than memory holds."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.ipc

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

__all__ = ["chunks_of"]


def chunks_of(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, size_bytes: int, as_file: bool = False
) -> Generator[bytes]:
    """Write rows as an Arrow IPC stream or file.

    Args:
        schema: Of the rows.
        batches: The rows; large batches are split.
        size_bytes: About how much is written at a time.
        as_file: Whether it is to be a file.
    """
    sink = _Sink()
    new = pyarrow.ipc.new_file if as_file else pyarrow.ipc.new_stream
    with new(pa.PythonFile(sink, mode="w"), schema) as writer:
        for batch in batches:
            for part in _split(batch, size_bytes):
                writer.write_batch(part)
                if sink.size >= size_bytes:
                    yield sink.take()
    yield sink.take()


def _split(batch: pa.RecordBatch, size_bytes: int) -> Iterator[pa.RecordBatch]:
    """Split a batch that is large, so that not all of it is written at once."""
    parts = max(1, batch.nbytes // size_bytes)
    step = max(1, -(-batch.num_rows // parts))
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
        part = data if isinstance(data, bytes) else bytes(memoryview(data))  # type: ignore[arg-type]  # any buffer
        self._parts.append(part)
        self.size += len(part)
        return len(part)

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts, self.size = [], 0
        return taken
