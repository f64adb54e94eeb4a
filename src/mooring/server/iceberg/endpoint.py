"""The protocol as an application: a request in, one operation called, its answer out.

The catalog below is synchronous: operations run in a bounded number of threads, and a commit that
was begun is finished whoever hangs up.
"""

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
    MooringError,
    NotFoundError,
    UnauthenticatedError,
    UnsupportedError,
)
from mooring.server.addresses import raw_path, read_query
from mooring.server.asked import Named, name_operation, note_code
from mooring.server.auth import Expired
from mooring.server.bodies import read_body
from mooring.server.iceberg import guard
from mooring.server.iceberg.calls import Answer, Call
from mooring.server.iceberg.names import decode_segment, encodes_spaces_as_plus, names_in
from mooring.server.iceberg.problems import Problem, explain, unexpected
from mooring.server.iceberg.routes import Route, find_route
from mooring.server.inquiry import Inquiry
from mooring.server.roles import NOBODY, Identity
from mooring.server.tokens import FORM_LIMIT_BYTES
from mooring.server.work import Lane
from mooring.tables.confinement import confined

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import Receive, Scope, Send

    from mooring.server.catalogs import Served
    from mooring.server.iceberg.names import Names
    from mooring.server.matching import Matched
    from mooring.server.service import Service

__all__ = ["IcebergEndpoint"]

logger = logging.getLogger(__name__)

_METHOD_NOT_ALLOWED, _EXPIRED = 405, 419
_JSON = "application/json"


class IcebergEndpoint:
    """Answers requests to an Iceberg REST catalog."""

    def __init__(self, service: Service) -> None:
        """Serve what a service has.

        Raises:
            InvalidInputError: the namespace for the tables of the root is one that exists.
        """
        self._service = service
        self._names: dict[str, Names] = {}
        for served in service.catalogs:
            with suppress(UnsupportedError):  # of others than Mooring's, each request tells
                wanted = service.settings.root_namespace
                self._names[served.name] = names_in(served.backend(), wanted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        matched = find_route(request.method, raw_path(scope))
        answer, problem = await self._answer(request, matched)
        response = _render(answer) if problem is None else _refuse(problem, matched.route)
        if request.method == "HEAD":
            response = Response(status_code=response.status_code, headers=_kept(response))
        await response(scope, receive, send)

    async def _answer(
        self, request: Request, matched: Matched[Route]
    ) -> tuple[Answer, Problem | None]:
        route = matched.route
        if route is None:
            return Answer(), _no_route(request, matched)
        operation = route.run.__name__.strip("_")
        named = Named("iceberg", operation, f"/iceberg{route.path}", changes=route.changes)
        name_operation(request.scope, named)
        told = Inquiry(
            self._service.audit, request, f"iceberg.{route.run.__name__}", changes=route.changes
        )
        answer, problem = await self._try(request, matched, route, told)
        told.end(problem.status if problem else answer.status, problem.message if problem else None)
        return answer, problem

    async def _try(
        self, request: Request, matched: Matched[Route], route: Route, told: Inquiry
    ) -> tuple[Answer, Problem | None]:
        try:
            identity = self._identify(request, route)
            if isinstance(identity, Problem):
                return Answer(), identity
            told.identity = identity
            call = await self._read_call(request, matched, identity)
            return await self._run(route, call, told, identity), None
        except MooringError as exc:
            note_code(request.scope, exc.code)
            return Answer(), explain(exc, route.listed)
        except ClientDisconnect:
            return Answer(), explain(InvalidInputError("the request was cut off"), route.listed)
        except Exception:  # the outermost handler: nobody above could tell it better
            number = secrets.token_hex(6)
            logger.exception("%s %s failed unexpectedly: %s", request.method, route.path, number)
            return Answer(), unexpected(number, commits=route.commits)

    async def _read_call(
        self, request: Request, matched: Matched[Route], identity: Identity
    ) -> Callable[[], Call]:
        """Read a request; what opens the catalog comes later, in a thread."""
        headers = {key.lower(): value for key, value in request.headers.items()}
        plus_is_space = encodes_spaces_as_plus(headers)
        path = {
            name: decode_segment(segment, plus_is_space=plus_is_space)
            for name, segment in matched.path.items()
        }
        query = read_query(request.scope["query_string"])
        served = self._chosen(identity, path.pop("prefix", None) or query.get("warehouse"))
        limit = FORM_LIMIT_BYTES if identity is NOBODY else None
        body = await read_body(request, self._service.settings, limit)
        return lambda: Call(
            backend=served.backend(identity.subject),
            catalog=served.name,
            is_only=len(self._service.catalogs) == 1,
            names=self._names[served.name],
            settings=self._service.settings,
            identity=identity,
            authority=self._service.authority,
            vendor=self._service.vendor,
            path=path,
            query=query,
            headers=headers,
            body=body,
        )

    def _chosen(self, identity: Identity, name: str | None) -> Served:
        """Return the catalog of a prefix or warehouse; a single one has whatever name.

        Whoever did not prove themselves yet learns of none.
        """
        catalogs = self._service.catalogs
        if len(catalogs) == 1 or identity is NOBODY:
            return catalogs.default
        return self._service.find_catalog(identity, name or None)

    async def _run(
        self, route: Route, call: Callable[[], Call], told: Inquiry, identity: Identity
    ) -> Answer:
        def work() -> Answer:
            made = call()
            told.catalog = made.catalog
            if not route.is_open:
                told.objects = guard.touched(made, route)
                guard.check(made, route)
            # A table leads whoever may not see all of the catalog to no other.
            with confined(only=identity.role_in(made.catalog) is None):
                return route.run(made)

        return await self._service.workers.run(Lane.CATALOG, work, changes=route.changes)

    def _identify(self, request: Request, route: Route) -> Identity | Problem:
        if route.is_open:
            return NOBODY
        try:
            found = self._service.identify(request, changes=route.changes)
        except UnauthenticatedError as exc:
            header = {"WWW-Authenticate": "Bearer"}
            return Problem(exc.http_status, exc.iceberg_type, str(exc), header)
        if isinstance(found, Expired):
            msg = "the token has expired: ask for another"
            return Problem(_EXPIRED, "AuthenticationTimeoutException", msg)
        return found


def _no_route(request: Request, matched: Matched[Route]) -> Problem:
    if matched.methods:
        allowed = ", ".join(sorted(set(matched.methods)))
        return Problem(
            _METHOD_NOT_ALLOWED,
            "UnsupportedOperationException",
            f"{request.method} is not possible here: {allowed} is",
            {"Allow": allowed},
        )
    msg = "there is no such operation: the addresses of an Iceberg REST catalog begin with /v1/"
    return Problem(NotFoundError.http_status, NotFoundError.iceberg_type, msg)


def _render(answer: Answer) -> Response:
    body = b"" if answer.body is None else msgspec.json.encode(answer.body)
    media = None if answer.body is None else _JSON
    return Response(body, answer.status, headers=dict(answer.headers), media_type=media)


def _refuse(problem: Problem, route: Route | None) -> Response:
    is_flat = route is not None and problem.status in route.bare
    body = msgspec.json.encode(problem.body(is_flat=is_flat))
    return Response(body, problem.status, headers=dict(problem.headers), media_type=_JSON)


def _kept(response: Response) -> Mapping[str, str]:
    return {key: value for key, value in response.headers.items() if key != "content-length"}
