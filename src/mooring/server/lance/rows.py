"""Rows on their way out, of which only a little is in memory at a time."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.ipc
from starlette.responses import Response

from mooring.errors import InvalidInputError, ServiceUnavailableError
from mooring.server.work import Lane
from mooring.tables.ipc_chunks import chunks_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from starlette.types import Receive, Scope, Send

    from mooring.server.service import Service

__all__ = ["FILE", "STREAM", "RowsResponse", "choose_form", "write_chunks"]

FILE, STREAM = "application/vnd.apache.arrow.file", "application/vnd.apache.arrow.stream"
_MIB = 1024 * 1024
_AT_ONCE = 4 * _MIB
_IN_MEMORY = 32 * _MIB


def choose_form(accept: str) -> str:
    """Return the form of rows that a client asks for: a file, unless it says that it reads streams.

    Args:
        accept: What it says to accept.
    """
    kinds = [one.partition(";")[0].strip().lower() for one in accept.split(",")]
    return STREAM if STREAM in kinds and FILE not in kinds else FILE


def write_chunks(rows: pa.RecordBatchReader, form: str = FILE) -> Generator[bytes]:
    """Write rows as an Arrow IPC file or stream, some of it at a time."""
    as_file = form == FILE
    batches = _with_one_dictionary(rows) if as_file and _has_dictionary(rows) else rows
    yield from chunks_of(rows.schema, batches, size_bytes=_AT_ONCE, as_file=as_file)


# -- dictionaries ----------------------------------------------------------------------------------


def _has_dictionary(rows: pa.RecordBatchReader) -> bool:
    return any("dictionary<" in str(field.type) for field in rows.schema)


def _with_one_dictionary(rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Return rows as one file may hold them: it has one dictionary for a column.

    What all of them hold together is known at the end only, so that they are kept until then: on
    disk, but for a little.
    """
    with tempfile.SpooledTemporaryFile(_IN_MEMORY, prefix="mooring-query-") as kept:
        words = _keep(rows, kept)
        kept.seek(0)
        with pyarrow.ipc.open_stream(kept) as again:
            for batch in again:
                yield _unify(words, batch)[1]


def _keep(rows: pa.RecordBatchReader, target: object) -> pa.RecordBatch:
    """Keep rows, and return an empty batch with all their dictionaries."""
    known = _empty(rows.schema)
    with pyarrow.ipc.new_stream(target, rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)
            # Afterwards, as Arrow gives nested dictionaries of what it unifies away.
            known = _unify(known, batch)[0]
    return known


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], one.type) for one in schema], schema=schema)


def _unify(known: pa.RecordBatch, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Give two batches the same dictionaries, those of the first one first."""
    try:
        both = pa.Table.from_batches([known, batch]).unify_dictionaries()
    except pa.ArrowInvalid as exc:
        msg = f"the rows do not fit one Arrow file: {exc}; accept '{STREAM}', or ask for less"
        raise InvalidInputError(msg) from exc
    first, second = (
        pa.RecordBatch.from_arrays([one.chunk(at) for one in both.columns], schema=batch.schema)
        for at in range(2)
    )
    return first, second


# -- the answer ------------------------------------------------------------------------------------


class RowsResponse(Response):
    """An answer that is read while it is sent.

    A thread works on it only while there is something to read: a slow client occupies none. Where
    the client hangs up, reading ends; where reading fails, the connection is cut, so that nobody
    takes a part of the rows for all of them.
    """

    def __init__(self, service: Service, chunks: Generator[bytes], media_type: str) -> None:
        """Answer by what a generator gives, the first of which is to be read by `begin`."""
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._service = service
        self._chunks = chunks
        self._turn = threading.Lock()
        self._first = b""

    async def begin(self) -> None:
        """Read the beginning: what fails at once is an answer of failure.

        Raises:
            Exception: whatever it fails by.
        """
        try:
            self._first = await self._service.workers.run(Lane.DATA, self._read)
        except BaseException:
            self._end()
            raise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it.

        Raises:
            Exception: whatever reading fails by, which cuts the connection.
        """
        del scope
        gone = asyncio.ensure_future(_hear_end(receive))
        sending = asyncio.ensure_future(self._send(send))
        try:
            await asyncio.wait({gone, sending}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            gone.cancel()
            sending.cancel()
            self._end()

    async def _send(self, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        chunk, self._first = self._first, b""
        while chunk:
            await self._send_in_time(
                send, {"type": "http.response.body", "body": chunk, "more_body": True}
            )
            chunk = await self._service.workers.run(Lane.DATA, self._read, goes_on=True)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_in_time(self, send: Send, message: Mapping[str, object]) -> None:
        """Send something; a client that takes nothing does not keep the rest open for ever."""
        try:
            async with asyncio.timeout(self._service.settings.request_timeout_s):
                await send(dict(message))
        except TimeoutError as exc:
            raise ServiceUnavailableError(
                "the client takes no rows: they are kept no longer"
            ) from exc

    def _read(self) -> bytes:
        with self._turn:
            return next(self._chunks, b"")

    def _end(self) -> None:
        """End reading, in a thread, as it may be under way."""
        asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        with self._turn:
            self._chunks.close()


async def _hear_end(receive: Receive) -> None:
    """Wait until the client hangs up."""
    while (await receive())["type"] != "http.disconnect":
        pass
