"""The protocol as an application: a request in, one method called, its answer out."""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from mooring.config import is_secret
from mooring.errors import InvalidInputError, NotFoundError, UnauthenticatedError
from mooring.identifiers import DELIMITER, ROOT, ObjectId, quote
from mooring.server.audit import Change, outcome_of
from mooring.server.auth import Expired
from mooring.server.bodies import read_body, stream_body
from mooring.server.lance import guard
from mooring.server.lance.operations import Gives, Takes, find_operation
from mooring.server.lance.problems import Problem, explain, unexpected
from mooring.server.lance.requests import (
    check_rows,
    decode,
    read_delimiter,
    read_fields,
    read_id,
    read_query,
)
from mooring.server.lance.rows import Upload, file_chunks
from mooring.server.work import Lane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from lance_namespace import LanceNamespace
    from starlette.types import Receive, Scope, Send

    from mooring.server.catalogs import Served
    from mooring.server.lance.operations import Matched, Operation
    from mooring.server.roles import Identity
    from mooring.server.service import Service

__all__ = ["LanceEndpoint"]

logger = logging.getLogger(__name__)

_METHOD_NOT_ALLOWED = 405
_JSON, _FILE = "application/json", "application/vnd.apache.arrow.file"
_HEADER = "header."


class LanceEndpoint:
    """Answers requests of Lance's REST protocol."""

    def __init__(self, service: Service) -> None:
        """Serve what a service has."""
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        catalog, segments = _split(_raw_path(scope))
        matched = find_operation(request.method, segments)
        response = await self._answer(request, catalog, matched)
        await response(scope, receive, send)

    async def _answer(self, request: Request, catalog: str | None, matched: Matched) -> Response:
        operation = matched.operation
        if operation is None:
            return _refuse(_no_operation(request, matched), request)
        asked = _Asked(self._service, request, operation)
        try:
            response = await asked.run(catalog, matched.path)
        except ClientDisconnect:
            problem = explain(InvalidInputError("the request was cut off"), operation.listed)
        except Exception as exc:  # noqa: BLE001  # nobody above could tell it better
            problem = explain(exc, operation.listed) or self._unforeseen(request, operation)
        else:
            asked.tell(response.status_code, None)
            return response
        problem = problem or self._unforeseen(request, operation)
        asked.tell(problem.status, problem.message)
        return _refuse(problem, request)

    def _unforeseen(self, request: Request, operation: Operation) -> Problem:
        number = secrets.token_hex(6)
        logger.error("%s %s failed unexpectedly: %s", request.method, operation.path, number)
        return unexpected(number, changes=operation.changes)


class _Asked:
    """One request that is worked on."""

    def __init__(self, service: Service, request: Request, operation: Operation) -> None:
        self._service = service
        self._request = request
        self._operation = operation
        self._headers = {key.lower(): value for key, value in request.headers.items()}
        # What is known so far, for the audit log.
        self._identity: Identity | None = None
        self._catalog = ""
        self._objects: Sequence[ObjectId] = ()

    async def run(self, catalog: str | None, path: Mapping[str, bytes]) -> Response:
        """Do what is asked for.

        Raises:
            Exception: whatever it fails by.
        """
        operation = self._operation
        identity = self._identify()
        served = self._service.catalogs.find(catalog)
        self._catalog = served.name
        identity.require_somewhere(operation.role, served.name)
        query = read_query(self._request.scope["query_string"])
        delimiter = read_delimiter(query)
        about = read_id(path["id"], delimiter, served.levels) if "id" in path else None
        others = {name: decode(sent) for name, sent in path.items() if name != "id"}
        takes_rows = operation.takes is Takes.ROWS
        body = b"" if takes_rows else await read_body(self._request, self._service.settings)
        fields = read_fields(
            operation,
            body=body,
            path=others,
            about=about,
            query=query,
            headers=self._headers,
        )
        self._objects = guard.touched(operation, about or ROOT, fields)
        guard.check(identity, served.name, operation, about=about or ROOT, fields=fields)
        request = operation.model.from_dict(fields)
        if operation.gives is Gives.ROWS:
            return await self._stream(served, identity, request)
        if takes_rows:
            answer = await self._take_rows(served, identity, request)
        else:
            answer = await self._call(self._method(served, identity), request)
        return _render(operation, answer, self._shown(served, identity, about or ROOT, delimiter))

    def _identify(self) -> Identity:
        found = self._service.identify(self._request, changes=self._operation.changes)
        if isinstance(found, Expired):
            raise UnauthenticatedError("the token has expired: ask for another")
        self._identity = found
        return found

    def _method(self, served: Served, identity: Identity) -> Callable[..., Any]:
        """Return what calls the method; the catalog is opened where it is called, in a thread."""

        def call(*args: object) -> Any:  # noqa: ANN401  # any of the answers
            return getattr(served.lance(identity.subject), self._operation.call)(*args)

        return call

    async def _call(self, method: Callable[..., Any], *args: object) -> Any:  # noqa: ANN401  # any of the answers
        return await self._service.workers.run(
            self._operation.lane, lambda: method(*args), changes=self._operation.changes
        )

    async def _take_rows(self, served: Served, identity: Identity, request: object) -> Any:  # noqa: ANN401  # any of the answers
        check_rows(self._headers)
        limit = self._service.settings.upload_limit_bytes
        upload = Upload(stream_body(self._request, self._service.settings, limit))
        method = self._method(served, identity)

        def write() -> Any:  # noqa: ANN401  # any of the answers
            try:
                return method(request, _rows_for(served.lance(identity.subject), upload))
            except Exception as exc:
                # What failed below is told by whatever was reading; this is why.
                raise (upload.failure or exc) from exc

        return await self._call(write)

    async def _stream(self, served: Served, identity: Identity, request: object) -> Response:
        """Answer with rows; a query that fails at once is an answer of failure."""
        chunks = await self._call(lambda: _chunks(served.lance(identity.subject), request))
        first = await self._call(lambda: next(chunks, b""))

        async def send() -> AsyncIterator[bytes]:
            yield first
            while chunk := await self._service.workers.run(Lane.DATA, lambda: next(chunks, b"")):
                yield chunk

        return StreamingResponse(send(), self._operation.status, media_type=_FILE)

    def _shown(
        self, served: Served, identity: Identity, about: ObjectId, delimiter: str
    ) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def shown(body: dict[str, Any]) -> dict[str, Any]:
            seen = guard.visible(identity, served.name, self._operation, about=about, body=body)
            return _without_secrets(_delimited(self._operation, seen, delimiter))

        return shown

    def tell(self, status: int, message: str | None) -> None:
        """Tell the audit log what came of a change."""
        if not self._operation.changes:
            return
        client = self._request.client
        self._service.audit.record(
            Change(
                subject=self._identity.subject if self._identity else None,
                catalog=self._catalog,
                operation=f"lance.{self._operation.name}",
                objects=self._objects,
                status=status,
                outcome=outcome_of(status),
                message=message,
                address=client.host if client else None,
                request_id=self._request.scope.get("state", {}).get("request_id"),
            )
        )


def _rows_for(namespace: LanceNamespace, upload: Upload) -> Any:  # noqa: ANN401  # rows or bytes
    """Return rows as an implementation takes them: others than Mooring's take bytes."""
    if hasattr(namespace, "query_table_stream"):
        return upload.rows()
    return upload.readall()


def _chunks(namespace: LanceNamespace, request: object) -> Iterator[bytes]:
    stream = getattr(namespace, "query_table_stream", None)
    if stream is not None:
        return file_chunks(stream(request))
    answer: Any = namespace.query_table(request)  # type: ignore[arg-type]  # the model of it
    return iter([answer if isinstance(answer, bytes) else bytes(answer.data)])


def _render(
    operation: Operation,
    answer: Any,  # noqa: ANN401  # any of the answers
    shown: Callable[[dict[str, Any]], dict[str, Any]],
) -> Response:
    headers = _answered_headers(answer)
    if operation.gives is Gives.NOTHING:
        return Response(status_code=operation.status, headers=headers)
    body = _body(operation, answer, shown)
    return Response(msgspec.json.encode(body), operation.status, headers, _JSON)


def _body(
    operation: Operation,
    answer: Any,  # noqa: ANN401  # any of the answers
    shown: Callable[[dict[str, Any]], dict[str, Any]],
) -> Any:  # noqa: ANN401  # any JSON
    match operation.gives:
        case Gives.NUMBER:
            return answer if isinstance(answer, int) else answer.count
        case Gives.TEXT:
            return answer
        case Gives.METADATA:
            return dict(answer.metadata or {})
    return shown(answer.to_dict())


def _answered_headers(answer: object) -> dict[str, str]:
    """Return the headers that an implementation wants to be sent."""
    context: Mapping[str, str] = getattr(answer, "context", None) or {}
    return {
        key.removeprefix(_HEADER): value
        for key, value in context.items()
        if key.startswith(_HEADER)
    }


def _delimited(operation: Operation, body: dict[str, Any], delimiter: str) -> dict[str, Any]:
    """Write identifiers with the delimiter that was asked for.

    Raises:
        InvalidInputError: a name holds it.
    """
    if operation.name != "ListAllTables" or delimiter == DELIMITER:
        return body
    for one in body["tables"]:
        if delimiter in one:
            msg = f"{quote(one)} holds the delimiter {quote(delimiter)}: choose another"
            raise InvalidInputError(msg)
    return {**body, "tables": [one.replace(DELIMITER, delimiter) for one in body["tables"]]}


def _without_secrets(body: dict[str, Any]) -> dict[str, Any]:
    options = body.get("storage_options")
    if not options:
        return body
    shown = {key: value for key, value in options.items() if not is_secret(key)}
    return {**body, "storage_options": shown}


def _split(raw_path: bytes) -> tuple[str | None, list[bytes]]:
    """Return the catalog that a path names before ``v1``, if it does, and the rest of it."""
    segments = raw_path.strip(b"/").split(b"/")
    if len(segments) > 1 and segments[0] != b"v1" and segments[1] == b"v1":
        return segments[0].decode("ascii", "replace"), segments[1:]
    return None, segments


def _raw_path(scope: Scope) -> bytes:
    """Return the path below where this is mounted, as it was sent."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    above: str = scope.get("root_path", "")
    return raw.partition(b"?")[0].removeprefix(above.encode())


def _no_operation(request: Request, matched: Matched) -> Problem:
    if matched.method:
        msg = f"{request.method} is not possible here: {matched.method} is"
        code = InvalidInputError.code
        return Problem(_METHOD_NOT_ALLOWED, code, msg, {"Allow": matched.method})
    msg = "there is no such operation: the addresses of Lance's REST protocol begin with /v1/"
    return Problem(NotFoundError.http_status, InvalidInputError.code, msg)


def _refuse(problem: Problem, request: Request) -> Response:
    instance = request.scope.get("state", {}).get("request_id") or request.url.path
    body = problem.body(instance)
    return Response(body, problem.status, dict(problem.headers), _JSON)
