"""A stream of server-sent events to one who listens to the changes of a catalog.

It tells only what whoever listens may read, which is looked at again now and then. It can be taken
up where it was cut off, by the id of the last event.

Spec: HTML, "Server-sent events".
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from mooring.errors import MooringError
from mooring.feed.event import Cursor, reset
from mooring.server.feeds import Listener, frame_of
from mooring.server.roles import Role

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

    from starlette.requests import Request
    from starlette.types import Send

    from mooring.feed.event import Event
    from mooring.feed.watcher import Watcher
    from mooring.server.background_settings import BackgroundSettings
    from mooring.server.earshot import Earshot
    from mooring.server.feeds import Feed, Told

__all__ = ["ChangeStream", "Watched", "last_id_of"]

_LAST_ID = b"last-event-id"
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would keep events until it has many
]
# How long browsers wait until they come back.
_RETRY = b"retry: 2000\n"
_HEARTBEAT = b":\n\n"


@dataclass(frozen=True, slots=True)
class Watched:
    """What one who listens gets.

    Attributes:
        look: Tells what may be seen now, as tokens end and roles are taken away.
        frame: Writes an event; as `frame_of` does unless given.
        headers: What else the answer says.
    """

    look: Callable[[], Awaitable[Earshot]]
    frame: Callable[[Event], bytes] = frame_of
    headers: Sequence[tuple[bytes, bytes]] = field(default=())

    async def earshot(self) -> Earshot:
        """Return what may be seen now.

        Raises:
            UnauthenticatedError: nobody knows who it is.
            PermissionDeniedError: nothing may be read.
        """
        earshot = await self.look()
        earshot.identity.require_somewhere(Role.READER, earshot.catalog)
        return earshot


class ChangeStream:
    """A stream to one who listens."""

    def __init__(
        self, feed: Feed, watched: Watched, cursor: Cursor | None, settings: BackgroundSettings
    ) -> None:
        """Be ready to send.

        Args:
            feed: The changes of the catalog.
            watched: What is sent.
            cursor: From where on; None for now.
            settings: How often something is said, and how much may wait.
        """
        self._feed = feed
        self._watched = watched
        self._cursor = cursor
        self._settings = settings

    async def open(self) -> None:
        """Look whether there is something to tell.

        Raises:
            MooringError: who asks may not know, or the catalog cannot be watched.
        """
        self._earshot = await self._watched.earshot()
        self._watcher: Watcher = await self._feed.begin()

    async def answer(self, request: Request, send: Send) -> None:
        """Answer a request with an open stream."""
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [*_HEADERS, *self._watched.headers],
            }
        )
        if request.method != "HEAD":
            await self._run(request, send)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _run(self, request: Request, send: Send) -> None:
        """Send until nobody listens any more, or the server ends."""
        now = self._watcher.cursor
        missed = [] if self._cursor is None else self._watcher.since(self._cursor)
        seen = max([now.number, *(one.cursor.number for one in missed if one.cursor)])
        listener = Listener(self._settings.most_waiting, seen)
        self._feed.subscribe(listener)
        gone = asyncio.create_task(_await_end(request, listener))
        try:
            await _send(send, _RETRY + self._hello(now if self._cursor is None else None))
            await _send(send, self._frames((one, frame_of(one)) for one in missed))
            async for chunk in self._chunks(listener):
                await _send(send, chunk)
        finally:
            self._feed.leave(listener)
            gone.cancel()

    async def _chunks(self, listener: Listener) -> AsyncIterator[bytes]:
        heartbeat_s = self._settings.heartbeat_s
        renewed_s = time.monotonic()
        while True:
            told = await listener.take(heartbeat_s)
            if listener.has_ended:
                return
            if listener.is_lost:
                yield frame_of(reset(int(time.time() * 1000), self._watcher.cursor))
                return
            if time.monotonic() - renewed_s >= heartbeat_s:
                try:
                    self._earshot = await self._watched.earshot()
                except MooringError:
                    return  # who comes back is told why
                renewed_s = time.monotonic()
            yield self._frames(told) or _HEARTBEAT

    def _hello(self, cursor: Cursor | None) -> bytes:
        """Begin a stream: with a place to come back to, also before there is an event."""
        place = b"" if cursor is None else f"id: {cursor}\n".encode()
        data = msgspec.json.encode({"catalog": self._feed.name})
        return place + b"event: ready\ndata: " + data + b"\n\n"

    def _frames(self, told: Iterable[Told]) -> bytes:
        frames = []
        for event, frame in told:
            shown = self._earshot.show(event)
            if shown is not None:
                is_usual = shown is event and self._watched.frame is frame_of
                frames.append(frame if is_usual else self._watched.frame(shown))
        return b"".join(frames)


async def _send(send: Send, chunk: bytes) -> None:
    if chunk:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})


async def _await_end(request: Request, listener: Listener) -> None:
    """Hear when the client hangs up."""
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            listener.end()
            return


def last_id_of(request: Request) -> Cursor | None:
    """Return the place from which to go on; what is none of ours is one that nobody knows."""
    given = dict(request.scope["headers"]).get(_LAST_ID)
    if not given:
        return None
    return Cursor.parse(given.decode("latin-1")) or Cursor("", 0)
