"""The protocol as an application: a request in, one operation called, its answer out.

The catalog below is synchronous: operations run in a bounded number of threads, and a commit that
was begun is finished whoever hangs up.
"""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import anyio
import anyio.to_thread
import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from mooring.errors import (
    InvalidInputError,
    MooringError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from mooring.server.auth import Expired, Identity
from mooring.server.iceberg.calls import Answer, Call
from mooring.server.iceberg.names import Names, decode_segment, encodes_spaces_as_plus
from mooring.server.iceberg.problems import Problem, explain, unexpected
from mooring.server.iceberg.routes import Matched, Route, find_route
from mooring.server.settings import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import Receive, Scope, Send

    from mooring.server.auth import Authority
    from mooring.server.catalogs import Catalogs
    from mooring.server.settings import ServerSettings

__all__ = ["IcebergEndpoint"]

logger = logging.getLogger(__name__)

_METHOD_NOT_ALLOWED, _EXPIRED = 405, 419
_JSON = "application/json"
_MOST_PARAMETERS = 64


class IcebergEndpoint:
    """Answers requests to an Iceberg REST catalog."""

    def __init__(
        self, catalogs: Catalogs, names: Names, authority: Authority, settings: ServerSettings
    ) -> None:
        """Serve a catalog.

        Args:
            catalogs: The catalog.
            names: What names mean in it.
            authority: Knows clients.
            settings: Of the server.
        """
        self._catalogs = catalogs
        self._names = names
        self._authority = authority
        self._settings = settings
        self._threads: anyio.CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        matched = find_route(request.method, _raw_path(scope))
        answer, problem = await self._answer(request, matched)
        response = _render(answer) if problem is None else _refuse(problem, matched.route)
        if request.method == "HEAD":
            response = Response(status_code=response.status_code, headers=_kept(response))
        await response(scope, receive, send)

    async def _answer(self, request: Request, matched: Matched) -> tuple[Answer, Problem | None]:
        route = matched.route
        if route is None:
            return Answer(), _no_route(request, matched)
        try:
            identity = self._identify(request, route)
            if isinstance(identity, Problem):
                return Answer(), identity
            call = await self._read_call(request, matched, identity)
            return await self._run(route, call), None
        except MooringError as exc:
            return Answer(), explain(exc, route.listed)
        except ClientDisconnect:
            return Answer(), explain(InvalidInputError("the request was cut off"), route.listed)
        except Exception:  # the outermost handler: nobody above could tell it better
            number = secrets.token_hex(6)
            logger.exception("%s %s failed unexpectedly: %s", request.method, route.path, number)
            return Answer(), unexpected(number, commits=route.commits)

    async def _read_call(
        self, request: Request, matched: Matched, identity: Identity
    ) -> Callable[[], Call]:
        """Read a request; what opens the catalog comes later, in a thread."""
        headers = {key.lower(): value for key, value in request.headers.items()}
        plus_is_space = encodes_spaces_as_plus(headers)
        path = {
            name: decode_segment(segment, plus_is_space=plus_is_space)
            for name, segment in matched.path.items()
        }
        query = _read_query(request.scope["query_string"])
        body = await self._read_body(request)
        return lambda: Call(
            backend=self._catalogs.in_name_of(identity.subject),
            names=self._names,
            settings=self._settings,
            identity=identity,
            authority=self._authority,
            path=path,
            query=query,
            headers=headers,
            body=body,
        )

    async def _run(self, route: Route, call: Callable[[], Call]) -> Answer:
        return await anyio.to_thread.run_sync(lambda: route.run(call()), limiter=self._limiter())

    def _limiter(self) -> anyio.CapacityLimiter:
        if self._threads is None:  # it belongs to the loop that runs
            self._threads = anyio.CapacityLimiter(self._settings.threads)
        return self._threads

    def _identify(self, request: Request, route: Route) -> Identity | Problem:
        if route.is_open:
            return Identity(None, Role.READER)
        found = self._authority.identify(request.headers.get("authorization"))
        match found:
            case None:
                msg = "a token is needed: ask for one with the id and secret of a client"
                header = {"WWW-Authenticate": "Bearer"}
                kind = UnauthenticatedError
                return Problem(kind.http_status, kind.iceberg_type, msg, header)
            case Expired():
                msg = "the token has expired: ask for another"
                return Problem(_EXPIRED, "AuthenticationTimeoutException", msg)
        # For the log, also where what is asked for is refused.
        request.scope["state"] = {**request.scope.get("state", {}), "subject": found.subject}
        if route.changes and found.role is not Role.WRITER:
            return _forbidden(f"client '{found.subject}' may read and not change anything")
        if route.changes and self._authority.asks_nobody and "origin" in request.headers:
            # A browser lets any page send requests to this machine, and only tells of it.
            return _forbidden("web pages may not change anything where nobody is asked for a token")
        return found

    async def _read_body(self, request: Request) -> bytes:
        """Read a body that is not too long.

        Raises:
            InvalidInputError: it is.
        """
        limit, parts, size = self._settings.body_limit_bytes, [], 0
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise InvalidInputError(f"a request has at most {limit} bytes")
            parts.append(part)
        return b"".join(parts)


def _raw_path(scope: Scope) -> bytes:
    """Return the path below where this is mounted, as it was sent."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    above: str = scope.get("root_path", "")
    return raw.partition(b"?")[0].removeprefix(above.encode())


def _read_query(text: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_PARAMETERS,
        )
    except ValueError as exc:
        raise InvalidInputError(f"the parameters of the request cannot be read: {exc}") from exc
    return dict(pairs)


def _forbidden(message: str) -> Problem:
    kind = PermissionDeniedError
    return Problem(kind.http_status, kind.iceberg_type, message)


def _no_route(request: Request, matched: Matched) -> Problem:
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
