"""The addresses as an application: a request in, one operation called, its answer out."""

from __future__ import annotations

import logging
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from mooring.errors import (
    InvalidInputError,
    InvalidNameError,
    MooringError,
    UnauthenticatedError,
)
from mooring.identifiers import quote
from mooring.server.addresses import (
    decode,
    parse_id,
    raw_path,
    read_delimiter,
    read_query,
    split_catalog,
)
from mooring.server.asked import Named, name_operation
from mooring.server.auth import Expired
from mooring.server.bodies import read_body
from mooring.server.inquiry import Inquiry
from mooring.server.mooring.calls import Call
from mooring.server.mooring.document import DOCUMENT_PATH, encode_document
from mooring.server.mooring.routes import find_route
from mooring.server.problems import Problem, absent, explain, not_allowed, unexpected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.types import Receive, Scope, Send

    from mooring.server.matching import Matched
    from mooring.server.mooring.routes import Route
    from mooring.server.roles import Identity
    from mooring.server.service import Service

__all__ = ["MooringEndpoint"]

logger = logging.getLogger(__name__)

_JSON = "application/json"
_DOCUMENT = [part.encode() for part in DOCUMENT_PATH.strip("/").split("/")]


class MooringEndpoint:
    """Answers what Lance's REST protocol has no address for."""

    def __init__(self, service: Service) -> None:
        """Serve what a service has."""
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        catalog, segments = split_catalog(raw_path(scope))
        response = await self._answer(request, catalog, segments)
        await response(scope, receive, send)

    async def _answer(
        self, request: Request, catalog: str | None, segments: Sequence[bytes]
    ) -> Response:
        if segments == _DOCUMENT and request.method == "GET":
            name_operation(
                request.scope, Named("mooring", "GetDocument", f"/mooring{DOCUMENT_PATH}")
            )
            return Response(encode_document(), media_type=_JSON)  # it holds nobody's secrets
        matched = find_route(request.method, segments)
        if matched.route is None:
            return _no_route(request, matched).answer(request.scope)
        route = matched.route
        named = Named("mooring", route.name, f"/mooring{route.path}", changes=route.changes)
        name_operation(request.scope, named)
        inquiry = Inquiry(
            self._service.audit, request, f"mooring.{route.name}", changes=route.changes
        )
        asked = _Asked(self._service, request, route, inquiry)
        try:
            response = await asked.run(catalog, matched.path)
        except MooringError as exc:
            problem = explain(exc)
        except ClientDisconnect:
            problem = explain(InvalidInputError("the request was cut off"))
        except Exception:  # the outermost handler: nobody above could tell it better
            number = secrets.token_hex(6)
            logger.exception("%s %s failed unexpectedly: %s", request.method, route.path, number)
            problem = unexpected(number, changes=route.changes)
        else:
            inquiry.end(response.status_code, None)
            return response
        inquiry.end(problem.status, problem.message)
        return problem.answer(request.scope)


class _Asked:
    """One request that is worked on."""

    def __init__(self, service: Service, request: Request, route: Route, inquiry: Inquiry) -> None:
        self._service = service
        self._request = request
        self._route = route
        self._inquiry = inquiry

    async def run(self, catalog: str | None, path: Mapping[str, bytes]) -> Response:
        """Do what is asked for.

        Raises:
            Exception: whatever it fails by.
        """
        identity = self._identify()
        call = await self._read(catalog, path, identity)
        body = await self._service.workers.run(
            self._route.lane, lambda: self._work(call), changes=self._route.changes
        )
        return Response(body, media_type=_JSON)

    def _work(self, call: Call) -> bytes:
        """Do it in a thread, all of it: what identifiers mean may be another server's to tell."""
        self._inquiry.objects = self._route.touches(call)
        call.identity.require(self._route.role, self._inquiry.catalog, self._inquiry.objects)
        return msgspec.json.encode(self._route.run(call))

    def _identify(self) -> Identity:
        found = self._service.identify(self._request, changes=self._route.changes)
        if isinstance(found, Expired):
            raise UnauthenticatedError("the token has expired: ask for another")
        self._inquiry.identity = found
        return found

    async def _read(
        self, catalog: str | None, path: Mapping[str, bytes], identity: Identity
    ) -> Call:
        served = self._service.find_catalog(identity, catalog)
        self._inquiry.catalog = served.name
        query = read_query(self._request.scope["query_string"])
        delimiter = read_delimiter(query.get("delimiter"))
        with suppress(InvalidNameError):  # told properly when it is read for good
            if "id" in path:
                self._inquiry.objects = [parse_id(decode(path["id"]), delimiter, None)]
        if self._route.is_of_catalog:
            identity.require_somewhere(self._route.role, served.name)
        body = await read_body(self._request, self._service.settings)
        return Call(
            catalogs=self._service.catalogs,
            served=served,
            identity=identity,
            path={name: decode(sent) for name, sent in path.items()},
            query=query,
            delimiter=delimiter,
            asked=_read_body(self._route, self._request.headers, body),
        )


def _read_body(route: Route, headers: Mapping[str, str], body: bytes) -> object:
    """Read a body in the shape that a route takes; none at all is an empty object.

    Raises:
        InvalidInputError: it is something else.
    """
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind and kind != _JSON:
        raise InvalidInputError(f"this request is '{_JSON}', not {quote(kind)}")
    if route.takes is None:
        return None
    try:
        return msgspec.json.decode(body or b"{}", type=route.takes)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        raise InvalidInputError(f"the request is not as it should be: {exc}") from exc


def _no_route(request: Request, matched: Matched[Route]) -> Problem:
    if matched.methods:
        return not_allowed(request.method, matched.methods)
    return absent(f"there is no such address: all of them are in /mooring{DOCUMENT_PATH}")
