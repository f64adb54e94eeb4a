"""The protocol as an application: a request in, one method called, its answer out."""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request

from mooring.errors import (
    InvalidInputError,
    InvalidNameError,
    UnauthenticatedError,
    UnknownOutcomeError,
)
from mooring.identifiers import ObjectId
from mooring.server.addresses import raw_path, split_catalog
from mooring.server.asked import Named, name_operation
from mooring.server.auth import Expired
from mooring.server.bodies import read_body
from mooring.server.inquiry import Inquiry
from mooring.server.lance import foreign, guard
from mooring.server.lance.answers import render, write_ids
from mooring.server.lance.matching import find_operation
from mooring.server.lance.operation import Gives, Takes
from mooring.server.lance.problems import explain
from mooring.server.lance.requests import (
    check_rows,
    delimiter_of,
    read_fields,
    read_id,
    read_query,
    read_segment,
    restore_root,
)
from mooring.server.lance.rows import RowsResponse, choose_form, write_chunks
from mooring.server.lance.storage import hand_out
from mooring.server.lance.uploads import Room, receive
from mooring.server.problems import Problem, absent, not_allowed, unexpected
from mooring.server.work import Lane
from mooring.tables.confinement import confined

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    import pyarrow as pa
    from pydantic import BaseModel
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from mooring.server.catalogs import Served
    from mooring.server.lance.matching import Matched
    from mooring.server.lance.operation import Operation
    from mooring.server.lance.requests import Query
    from mooring.server.lance.uploads import Upload
    from mooring.server.roles import Identity
    from mooring.server.service import Service

__all__ = ["LanceEndpoint"]

logger = logging.getLogger(__name__)

_METHOD_NOT_ALLOWED = 405
_JSON = "application/json"
# Larger requests are read in a thread, so that nobody waits for it.
_READ_AT_ONCE = 64 * 1024


class LanceEndpoint:
    """Answers requests of Lance's REST protocol."""

    def __init__(self, service: Service) -> None:
        """Serve what a service has."""
        self._service = service
        self._room = Room()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        catalog, sent = split_catalog(raw_path(scope))
        segments = restore_root(sent, scope["query_string"])
        matched = find_operation(request.method, segments)
        response = await self._answer(request, catalog, matched)
        await response(scope, receive, send)

    async def _answer(self, request: Request, catalog: str | None, matched: Matched) -> Response:
        operation = matched.operation
        if operation is None:
            return _no_operation(request, matched).answer(request.scope)
        route = f"/lance{operation.path}"
        named = Named("lance", operation.name, route, changes=operation.changes)
        name_operation(request.scope, named)
        inquiry = Inquiry(
            self._service.audit, request, f"lance.{operation.name}", changes=operation.changes
        )
        asked = _Asked(self._service, request, operation, inquiry, room=self._room)
        try:
            response = await asked.run(catalog, matched.path)
        except ClientDisconnect:
            problem = explain(InvalidInputError("the request was cut off"), operation.listed)
        except Exception as exc:  # noqa: BLE001  # nobody above could tell it better
            problem = explain(exc, operation.listed) or self._unforeseen(request, operation, exc)
        else:
            inquiry.end(response.status_code, None)
            return response
        problem = problem or self._unforeseen(request, operation)
        inquiry.end(problem.status, problem.message)
        return problem.answer(request.scope)

    def _unforeseen(
        self, request: Request, operation: Operation, error: Exception | None = None
    ) -> Problem:
        number = secrets.token_hex(6)
        told = "%s %s failed unexpectedly: %s"
        logger.error(told, request.method, operation.path, number, exc_info=error)
        return unexpected(number, changes=operation.changes)


class _Asked:
    """One request that is worked on."""

    def __init__(
        self,
        service: Service,
        request: Request,
        operation: Operation,
        inquiry: Inquiry,
        *,
        room: Room,
    ) -> None:
        self._service = service
        self._request = request
        self._operation = operation
        self._room = room
        self._headers = {key.lower(): value for key, value in request.headers.items()}
        self._inquiry = inquiry

    async def run(self, catalog: str | None, path: Mapping[str, bytes]) -> Response:
        """Do what is asked for.

        Raises:
            Exception: whatever it fails by.
        """
        operation = self._operation
        identity = self._identify()
        served = self._service.find_catalog(identity, catalog)
        self._inquiry.catalog = served.name
        query = read_query(self._request.scope["query_string"])
        delimiter = delimiter_of(query)
        with suppress(InvalidNameError):  # told properly when it is read for good
            if "id" in path:
                self._inquiry.objects = [read_id(read_segment(path["id"]), delimiter)]
        identity.require_somewhere(operation.role, served.name)
        request = await self._read_request(served, identity, path, query)
        call = partial(self._call_confined, served, identity, request)
        if operation.gives is Gives.ROWS:
            return await self._stream(call)
        if operation.takes is Takes.ROWS:
            answer = await self._take_rows(call)
        else:
            answer = await self._work(call)
        return render(operation, answer, self._shown(served, delimiter))

    def _identify(self) -> Identity:
        found = self._service.identify(self._request, changes=self._operation.changes)
        if isinstance(found, Expired):
            raise UnauthenticatedError("the token has expired: ask for another")
        self._inquiry.identity = found
        return found

    async def _read_request(
        self, served: Served, identity: Identity, path: Mapping[str, bytes], query: Query
    ) -> BaseModel:
        """Read what is asked for, and refuse what is not allowed."""
        if self._operation.takes is Takes.ROWS:
            check_rows(self._headers)
            return self._understand(served, identity, path, query)
        body = await read_body(self._request, self._service.settings)
        understand = partial(self._understand, served, identity, path, query, body=body)
        if len(body) <= _READ_AT_ONCE:
            return understand()
        return await self._service.workers.run(Lane.CATALOG, understand)

    def _understand(
        self,
        served: Served,
        identity: Identity,
        path: Mapping[str, bytes],
        query: Query,
        *,
        body: bytes = b"",
    ) -> BaseModel:
        operation = self._operation
        fields = read_fields(
            operation,
            body=body,
            path={name: read_segment(sent) for name, sent in path.items()},
            query=query,
            headers=self._headers,
        )
        if not self._service.authority.asks_nobody:
            # It was for this server, and no implementation behind it may use it elsewhere.
            fields.pop("identity", None)
        request: BaseModel = operation.model.model_validate(fields)
        known = request.model_dump(by_alias=True, exclude_none=True)
        about = ObjectId(tuple(known.get("id") or ()))
        self._inquiry.objects = guard.touched(operation, about, known)
        guard.check(identity, served.name, operation, about=about, fields=known)
        return request

    def _call_confined(
        self, served: Served, identity: Identity, request: BaseModel, upload: Upload | None = None
    ) -> Any:  # noqa: ANN401  # any of the answers
        """Call the method; a table leads whoever may not see all of the catalog to no other."""
        with confined(only=identity.role_in(served.name) is None):
            return self._call_method(served, identity, request, upload)

    def _call_method(
        self, served: Served, identity: Identity, request: BaseModel, upload: Upload | None = None
    ) -> Any:  # noqa: ANN401  # any of the answers
        """Call the method; the catalog is opened where it is called, in a thread."""
        namespace = served.lance(identity.subject)
        is_own = foreign.is_own(namespace)
        if self._operation.gives is Gives.ROWS:
            return foreign.query(namespace, request)
        rows = [] if upload is None else [upload.rows() if is_own else upload.read_whole()]
        about = ObjectId(tuple(getattr(request, "id", None) or ()))
        part = guard.Part.of(
            identity, served.name, self._operation, about=about, flat=served.levels == 1
        )
        call = partial(foreign.call, namespace, self._operation.call)
        answer = call(request, *rows) if part is None else part.ask(call, request)
        hand_out(
            answer,
            self._service.vendor,
            identity,
            catalog=served.name,
            operation=self._operation,
            table=about,
            wanted=getattr(request, "vend_credentials", None),
        )
        return answer

    async def _work(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401  # any of the answers
        return await self._service.workers.run(
            self._operation.lane, call, changes=self._operation.changes
        )

    # -- rows --------------------------------------------------------------------------------------

    async def _take_rows(self, call: Callable[..., Any]) -> Any:  # noqa: ANN401  # any of the answers
        upload = await receive(self._request, self._service.settings, self._room)

        def write() -> Any:  # noqa: ANN401  # any of the answers
            try:
                return call(upload)
            except Exception as exc:
                # What failed below is told by whatever was reading; this is why.
                raise (upload.failure or exc) from exc

        try:
            return await (self._work(write) if upload.is_whole else self._keep_up(upload, write))
        finally:
            upload.abandon()

    async def _keep_up(self, upload: Upload, write: Callable[[], Any]) -> Any:  # noqa: ANN401  # any of the answers
        """Write rows while they come: the time that counts is since some of them came."""
        loop, limit_s = asyncio.get_running_loop(), self._service.settings.request_timeout_s
        try:
            async with asyncio.timeout(None) as limit:
                upload.on_piece = lambda: limit.reschedule(loop.time() + limit_s)
                return await self._service.workers.run(
                    Lane.UPLOAD, write, changes=True, has_time=True
                )
        except TimeoutError as exc:
            if not limit.expired():
                raise  # it is the work's own
            msg = f"this takes longer than {limit_s:g} s: look what came of it before you ask again"
            raise UnknownOutcomeError(msg) from exc

    async def _stream(self, call: Callable[[], pa.RecordBatchReader]) -> Response:
        """Answer with rows; a query that fails at once is an answer of failure."""
        form = choose_form(self._headers.get("accept", ""))

        def chunks() -> Generator[bytes]:
            yield from write_chunks(call(), form)

        response = RowsResponse(self._service, chunks(), form)
        await response.begin()
        return response

    def _shown(self, served: Served, delimiter: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def shown(body: dict[str, Any]) -> dict[str, Any]:
            if self._operation.name == "ListAllTables":
                return write_ids(body, delimiter, flat=served.levels == 1)
            return body

        return shown


def _no_operation(request: Request, matched: Matched) -> Problem:
    if matched.method:
        return not_allowed(request.method, [matched.method])
    return absent(
        "there is no such operation: the addresses of Lance's REST protocol begin with /v1/"
    )
