"""The changes of a catalog as a stream of server-sent events, for as long as somebody listens.

A stream tells only what whoever listens may read, which is looked at again now and then. It can be
taken up where it was cut off, by the id of the last event.

Spec: HTML, "Server-sent events".
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.routing import Route

from mooring.errors import MooringError, UnauthenticatedError
from mooring.feed.event import Cursor, Event, Kind, reset
from mooring.identifiers import ROOT, ObjectId
from mooring.server.addresses import parse_id, read_delimiter, read_query
from mooring.server.asked import Named, name_operation
from mooring.server.auth import Expired
from mooring.server.feeds import Listener, frame_of
from mooring.server.problems import explain
from mooring.server.roles import Role

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from starlette.types import Receive, Scope, Send

    from mooring.feed.watcher import Watcher
    from mooring.server.background_settings import BackgroundSettings
    from mooring.server.catalogs import Served
    from mooring.server.feeds import Feed, Feeds, Told
    from mooring.server.roles import Identity
    from mooring.server.service import Service

__all__ = ["ChangesEndpoint"]

_PATH = "/mooring/v1/changes"
_NAMED_PATH = "/mooring/{catalog}/v1/changes"
_LAST_ID = b"last-event-id"
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would keep events until it has many
]
# How long browsers wait until they come back.
_RETRY = b"retry: 2000\n"
_HEARTBEAT = b":\n\n"


class ChangesEndpoint:
    """Answers with the changes of a catalog, for as long as somebody listens."""

    def __init__(self, service: Service, feeds: Feeds) -> None:
        """Serve what a service has.

        Args:
            service: The service.
            feeds: The changes of its catalogs.
        """
        self._service = service
        self._feeds = feeds

    @property
    def routes(self) -> list[Route]:
        """Where it answers."""
        return [Route(path, endpoint=self, methods=["GET"]) for path in (_PATH, _NAMED_PATH)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        name_operation(scope, Named("mooring", "WatchChanges", _PATH))
        try:
            stream = await self._open(request, scope["path_params"].get("catalog"))
        except MooringError as exc:
            await explain(exc).answer(scope)(scope, receive, send)
            return
        if request.method == "HEAD":
            await _begin(send)
            await _end(send)
            return
        await stream.run(receive, send)

    async def _open(self, request: Request, catalog: str | None) -> _Stream:
        identity = self._identify(request)  # before anything else is looked at
        served = self._service.find_catalog(identity, catalog)
        sight = _Sight(lambda: self._identify(request), served, _read_namespace(request, served))
        feed = self._feeds.of(served.name)
        watcher = await feed.begin()
        return _Stream(
            feed,
            watcher,
            sight,
            settings=self._service.settings.background,
            cursor=_cursor_of(request),
        )

    def _identify(self, request: Request) -> Identity:
        found = self._service.identify(request, changes=False)
        if isinstance(found, Expired):
            raise UnauthenticatedError("the token has expired: ask for another")
        return found


class _Sight:
    """What of the changes one who listens may see, and wants to."""

    def __init__(
        self, identify: Callable[[], Identity], served: Served, namespace: ObjectId
    ) -> None:
        self._identify = identify
        self._catalog = served.name
        self._namespace = namespace
        self.renew()

    def renew(self) -> None:
        """Look again who it is, as tokens end and roles are taken away.

        Raises:
            UnauthenticatedError: nobody knows any more.
            PermissionDeniedError: nothing may be read.
        """
        self._identity = self._identify()
        self._identity.require_somewhere(Role.READER, self._catalog)

    def show(self, event: Event) -> Event | None:
        """Return what may be told of an event; None where that is nothing."""
        if event.kind is Kind.RESET:
            return event
        if not event.lies_in(self._namespace):
            return None
        if event.kind.is_of_namespaces and event.kind is not Kind.NAMESPACE_CHANGED:
            return event.shown_to(lambda one: self._identity.sees(self._catalog, one))
        return event.shown_to(lambda one: self._identity.may(Role.READER, self._catalog, one))


class _Stream:
    """A stream to one who listens."""

    def __init__(
        self,
        feed: Feed,
        watcher: Watcher,
        sight: _Sight,
        *,
        settings: BackgroundSettings,
        cursor: Cursor | None,
    ) -> None:
        self._feed = feed
        self._watcher = watcher
        self._sight = sight
        self._settings = settings
        self._cursor = cursor

    async def run(self, receive: Receive, send: Send) -> None:
        """Send until nobody listens any more, or the server ends."""
        now = self._watcher.cursor
        missed = [] if self._cursor is None else self._watcher.since(self._cursor)
        seen = max([now.number, *(one.cursor.number for one in missed if one.cursor)])
        listener = Listener(self._settings.most_waiting, seen)
        self._feed.subscribe(listener)
        gone = asyncio.create_task(_await_end(receive, listener))
        try:
            await _begin(send)
            await _send(send, _RETRY + self._hello(now if self._cursor is None else None))
            await _send(send, self._frames((one, frame_of(one)) for one in missed))
            async for chunk in self._chunks(listener):
                await _send(send, chunk)
            await _end(send)
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
                    self._sight.renew()
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
            shown = self._sight.show(event)
            if shown is not None:
                frames.append(frame if shown is event else frame_of(shown))
        return b"".join(frames)


async def _begin(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})


async def _end(send: Send) -> None:
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send(send: Send, chunk: bytes) -> None:
    if chunk:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})


async def _await_end(receive: Receive, listener: Listener) -> None:
    """Hear when the client hangs up."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            listener.end()
            return


def _cursor_of(request: Request) -> Cursor | None:
    """Return the place from which to go on; what is none of ours is one that nobody knows."""
    given = dict(request.scope["headers"]).get(_LAST_ID)
    if not given:
        return None
    return Cursor.parse(given.decode("latin-1")) or Cursor("", 0)


def _read_namespace(request: Request, served: Served) -> ObjectId:
    """Read whose changes are wanted.

    Raises:
        InvalidNameError: it cannot be a namespace.
    """
    query = read_query(request.scope["query_string"])
    given = query.get("namespace")
    if not given:
        return ROOT
    return parse_id(given, read_delimiter(query.get("delimiter")), served.levels)
