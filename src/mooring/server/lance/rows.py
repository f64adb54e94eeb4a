"""Rows on their way in and out, of which only a little is in memory at a time."""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.ipc

from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

__all__ = ["Upload", "file_chunks"]

_MIB = 1024 * 1024
_AT_ONCE = 4 * _MIB


class Upload(io.RawIOBase):
    """A body that is read by a thread while it comes in.

    What the loop hears is handed over piece by piece: a client that sends faster than rows are
    written has to wait, and one that stops sending fails.
    """

    def __init__(self, parts: AsyncIterator[bytes]) -> None:
        """Hand over what comes; to be made in the loop."""
        self._parts = parts
        self._loop = asyncio.get_running_loop()
        self._rest = memoryview(b"")
        self.failure: InvalidInputError | None = None

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def readinto(self, target: object) -> int:
        """Read some bytes; none at the end."""
        if not self._rest:
            self._rest = memoryview(self._next())
        view = memoryview(target)  # type: ignore[arg-type]  # any buffer
        count = min(len(view), len(self._rest))
        view[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def _next(self) -> bytes:
        async def step() -> bytes:
            return await anext(self._parts, b"")

        try:
            return asyncio.run_coroutine_threadsafe(step(), self._loop).result()
        except InvalidInputError as exc:
            self.failure = exc
            raise

    def rows(self) -> pa.RecordBatchReader:
        """Read the rows, each batch of which is looked at: what others send may be anything.

        Raises:
            InvalidInputError: this is no Arrow IPC stream.
        """
        try:
            reader = pyarrow.ipc.open_stream(io.BufferedReader(self, _MIB))
        except (pa.ArrowException, OSError, EOFError) as exc:
            raise self._broken(exc) from exc
        return pa.RecordBatchReader.from_batches(reader.schema, self._checked(reader))

    def _checked(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            for batch in reader:
                batch.validate(full=True)
                yield batch
        except (pa.ArrowException, OSError, EOFError, UnicodeError) as exc:
            raise self._broken(exc) from exc

    def _broken(self, exc: Exception) -> InvalidInputError:
        if self.failure is None:
            self.failure = InvalidInputError(f"the request's body is no Arrow IPC stream: {exc}")
        return self.failure


def file_chunks(rows: pa.RecordBatchReader) -> Iterator[bytes]:
    """Write rows as an Arrow IPC file, some of it at a time."""
    sink = _Sink()
    with pyarrow.ipc.new_file(pa.PythonFile(sink, mode="w"), rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)
            if sink.size >= _AT_ONCE:
                yield sink.take()
    yield sink.take()


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
