"""The changes of a catalog as a stream of server-sent events, for as long as somebody listens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.routing import Route

from mooring.errors import MooringError, UnauthenticatedError
from mooring.identifiers import ROOT, ObjectId
from mooring.server.addresses import parse_id, read_delimiter, read_query
from mooring.server.asked import Named, name_operation
from mooring.server.auth import Expired
from mooring.server.change_stream import ChangeStream, Watched, last_id_of
from mooring.server.earshot import Earshot
from mooring.server.problems import explain

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from mooring.server.catalogs import Served
    from mooring.server.feeds import Feeds
    from mooring.server.roles import Identity
    from mooring.server.service import Service

__all__ = ["ChangesEndpoint"]

_PATH = "/mooring/v1/changes"
_NAMED_PATH = "/mooring/{catalog}/v1/changes"


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
        await stream.answer(request, send)

    async def _open(self, request: Request, catalog: str | None) -> ChangeStream:
        identity = self._identify(request)  # before anything else is looked at
        served = self._service.find_catalog(identity, catalog)
        namespace = _read_namespace(request, served)

        async def look() -> Earshot:
            return Earshot(self._identify(request), served.name, namespace)

        feed, settings = self._feeds.of(served.name), self._service.settings.background
        stream = ChangeStream(feed, Watched(look), last_id_of(request), settings)
        await stream.open()
        return stream

    def _identify(self, request: Request) -> Identity:
        found = self._service.identify(request, changes=False)
        if isinstance(found, Expired):
            raise UnauthenticatedError("the token has expired: ask for another")
        return found


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
