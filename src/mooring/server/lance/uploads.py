"""Rows on their way in, of which only a little is in memory at a time.

The beginning of a body is gathered before a thread is asked for, so that whoever sends little
occupies none while it comes, however slowly; the rest is handed to the thread that writes it, piece
by piece. A client that sends faster than rows are written has to wait, and one that stops fails.
"""

from __future__ import annotations

import asyncio
import io
from collections import deque
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.ipc

from mooring.errors import InvalidInputError, ThrottledError
from mooring.server.bodies import stream_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from starlette.requests import Request

    from mooring.server.settings import ServerSettings

__all__ = ["Room", "Upload", "receive"]

_MIB = 1024 * 1024
_GATHERED = 8 * _MIB
_MOST_GATHERED = 256 * _MIB  # of all uploads together
_LARGEST_BATCH = 1024 * _MIB
# Of catalogs that take rows as a whole only.
_LARGEST_WHOLE = 256 * _MIB
# What reading an Arrow stream of somebody else's may fail by.
_UNREADABLE = (pa.ArrowException, OSError, EOFError, UnicodeError, MemoryError, OverflowError)


class Room:
    """How much of what all clients send may be in memory before it is worked on."""

    def __init__(self, size: int = _MOST_GATHERED) -> None:
        """Have so many bytes."""
        self._left = size

    def take(self, size: int) -> None:
        """Take some of it.

        Raises:
            ThrottledError: there is not as much left.
        """
        if size > self._left:
            raise ThrottledError("too many send rows at once: try again in a second")
        self._left -= size

    def give_back(self, size: int) -> None:
        """Give some of it back."""
        self._left += size


async def receive(request: Request, settings: ServerSettings, room: Room) -> Upload:
    """Gather the beginning of a body, all of it where it is small.

    Raises:
        InvalidInputError: it is too long, or comes too slowly.
        ThrottledError: too much of others is in memory already.
        ClientDisconnect: the client hung up.
    """
    upload = Upload(stream_body(request, settings, settings.upload_limit_bytes), room)
    try:
        async with asyncio.timeout(settings.request_timeout_s):
            await upload.gather()
    except TimeoutError as exc:
        upload.abandon()
        msg = f"the first {_GATHERED} bytes of the rows took longer than"
        raise InvalidInputError(f"{msg} {settings.request_timeout_s:g} s") from exc
    except BaseException:
        upload.abandon()
        raise
    return upload


class Upload(io.RawIOBase):
    """A body of rows; what is not there yet is read by a thread while it comes in."""

    def __init__(self, pieces: AsyncIterator[bytes], room: Room) -> None:
        """Hand over what comes; to be made in the loop."""
        self._pieces = pieces
        self._room = room
        self._loop = asyncio.get_running_loop()
        self._gathered: deque[bytes] = deque()
        self._taken = 0
        self._rest = memoryview(b"")
        self._waiting: asyncio.Task[bytes] | None = None
        self._is_abandoned = False
        self.is_whole = False
        self.on_piece: Callable[[], None] = lambda: None
        self.failure: Exception | None = None

    # -- in the loop -------------------------------------------------------------------------------

    async def gather(self) -> None:
        """Read the beginning."""
        while self._taken < _GATHERED:
            piece = await anext(self._pieces, b"")
            if not piece:
                self.is_whole = True
                return
            self._room.take(len(piece))
            self._taken += len(piece)
            self._gathered.append(piece)

    def abandon(self) -> None:
        """Let no thread wait for what nobody reads any more; what is there can still be read."""
        self._is_abandoned = True
        self._room.give_back(self._taken)
        self._taken = 0
        if self._waiting is not None:
            self._waiting.cancel()

    async def _step(self) -> bytes:
        if self._is_abandoned:
            raise InvalidInputError("the request was cut off")
        self._waiting = asyncio.current_task()
        try:
            piece = await anext(self._pieces, b"")
        finally:
            self._waiting = None
        self.on_piece()
        return piece

    # -- in a thread -------------------------------------------------------------------------------

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes, or as many as there are.

        Memory is taken for what came, not for what a broken stream says would come.

        Raises:
            InvalidInputError: that is too much at once.
        """
        if size > _LARGEST_BATCH:
            msg = f"a batch of {size} bytes is too large, or the body is no Arrow stream"
            raise self._fail(f"{msg}: send batches of at most 1 GiB")
        found, left = [], size
        while left and (part := self._take(left)):
            found.append(part)
            left -= len(part)
        return b"".join(found)

    def _take(self, most: int) -> bytes | memoryview:
        if not self._rest:
            self._rest = memoryview(self._next())
        part = self._rest if most < 0 else self._rest[:most]
        self._rest = self._rest[len(part) :]
        return part

    def _next(self) -> bytes:
        if self._gathered:
            return self._gathered.popleft()
        if self.is_whole:
            return b""
        if self.failure is not None:
            raise self.failure  # or the rest would look like the end
        try:
            return asyncio.run_coroutine_threadsafe(self._step(), self._loop).result()
        except CancelledError as exc:
            raise self._fail("the request was cut off") from exc
        except Exception as exc:
            self.failure = exc
            raise

    def read_whole(self) -> bytes:
        """Read everything, for those who take rows in one piece; they are looked at before.

        Raises:
            InvalidInputError: this is no Arrow IPC stream, or it is too long.
        """
        found, size = [], 0
        while part := self._take(_GATHERED):
            found.append(part)
            size += len(part)
            if size > _LARGEST_WHOLE:
                msg = f"this catalog takes rows as a whole: send at most {_LARGEST_WHOLE} bytes"
                raise self._fail(f"{msg} at a time")
        whole = b"".join(found)
        for _ in self._rows(pa.BufferReader(whole)):
            pass
        return whole

    def rows(self) -> pa.RecordBatchReader:
        """Read the rows, each batch of which is looked at: what others send may be anything.

        Raises:
            InvalidInputError: this is no Arrow IPC stream.
        """
        return self._rows(self)

    def _rows(self, source: object) -> pa.RecordBatchReader:
        try:
            reader = pyarrow.ipc.open_stream(source)
        except _UNREADABLE as exc:
            raise self._broken(exc) from exc
        return pa.RecordBatchReader.from_batches(reader.schema, self._checked(reader))

    def _checked(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            for batch in reader:
                batch.validate(full=True)
                yield batch
        except _UNREADABLE as exc:
            raise self._broken(exc) from exc

    def _broken(self, exc: Exception) -> Exception:
        if self.failure is None:
            self._fail(f"the request's body is no Arrow IPC stream: {exc}")
        return self.failure or exc

    def _fail(self, message: str) -> InvalidInputError:
        self.failure = InvalidInputError(message)
        return self.failure
