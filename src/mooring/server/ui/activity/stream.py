"""The changes of a catalog as they happen, for a page that is open in a browser.

It is the stream of `mooring.server.changes`, for who is known by a cookie, with changes as pages
show them. A browser that lost it comes back by itself, and says which change it saw last.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mooring.errors import InvalidInputError, MooringError
from mooring.feed.event import Cursor, Kind
from mooring.identifiers import ROOT, quote
from mooring.server.addresses import parse_id, read_query
from mooring.server.asked import Named, name_operation
from mooring.server.change_stream import ChangeStream, Watched, last_id_of
from mooring.server.earshot import Earshot
from mooring.server.problems import explain
from mooring.server.ui.activity.events import frame_shown
from mooring.server.ui.links import CATALOGS_PATH, Links

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive, Scope, Send

    from mooring.server.catalogs import Served
    from mooring.server.feeds import Feed, Feeds
    from mooring.server.roles import Identity
    from mooring.server.service import Service
    from mooring.server.ui.session import Sessions

__all__ = ["StreamEndpoint", "earshot_of"]

_PATH = f"{CATALOGS_PATH}/{{catalog}}/stream"


def earshot_of(identity: Identity, served: Served, query: Mapping[str, str]) -> Earshot:
    """Return what somebody may see of the changes, and asked for.

    Raises:
        InvalidInputError: there is no such kind of change.
        InvalidNameError: something cannot be a namespace.
    """
    within, kind = query.get("within", "").strip(), query.get("kind", "").strip()
    if kind and kind not in set(Kind):
        known = ", ".join(one.value for one in Kind)
        raise InvalidInputError(f"{quote(kind)} is no kind of change: there are {known}")
    namespace = parse_id(within, "$", served.levels) if within else ROOT
    return Earshot(identity, served.name, namespace, Kind(kind) if kind else None)


class StreamEndpoint:
    """Answers with the changes of a catalog, for as long as a page is open."""

    def __init__(self, service: Service, sessions: Sessions, feeds: Feeds) -> None:
        """Tell what happens in the catalogs of a server.

        Args:
            service: The server.
            sessions: Knows who looks.
            feeds: The changes of its catalogs.
        """
        self._service = service
        self._sessions = sessions
        self._feeds = feeds

    @property
    def route(self) -> Route:
        """Where it answers."""
        return Route(_PATH, endpoint=self, methods=["GET"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        name_operation(scope, Named("pages", "Stream", _PATH))
        try:
            stream = await self._open(request)
        except MooringError as exc:
            await explain(exc).answer(scope)(scope, receive, send)
            return
        await stream.answer(request, send)

    async def _open(self, request: Request) -> ChangeStream:
        identity = await self._sessions.identify(request)
        served = self._service.find_catalog(identity, request.path_params["catalog"])
        query = read_query(request.scope["query_string"])

        async def look() -> Earshot:
            return earshot_of(await self._sessions.identify(request), served, query)

        feed = self._feeds.of(served.name)
        watched = Watched(
            look,
            partial(frame_shown, links=Links(served.name)),
            self._renewed(request),
        )
        settings = self._service.settings.background
        stream = ChangeStream(feed, watched, _cursor_of(request, query, feed), settings)
        await stream.open()
        return stream

    def _renewed(self, request: Request) -> list[tuple[bytes, bytes]]:
        """Return a cookie of more time: a page that stays open asks for nothing else."""
        response = Response()
        self._sessions.renew(request, response)
        return [one for one in response.raw_headers if one[0] == b"set-cookie"]


def _cursor_of(request: Request, query: Mapping[str, str], feed: Feed) -> Cursor | None:
    """Return from where on changes are told: what came last here, or what the page shows.

    A page may have been made by another process than the one that is asked now, whose changes have
    other numbers: it then begins with what comes.
    """
    came = last_id_of(request)
    shown = Cursor.parse(query.get("after", ""))
    if came is not None or shown is None or feed.watcher is None:
        return came
    return shown if shown.epoch == feed.watcher.cursor.epoch else None
