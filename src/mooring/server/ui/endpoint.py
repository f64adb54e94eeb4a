"""The pages as an application: a request in, one page, picture or action out."""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from mooring.clock import SystemClock
from mooring.errors import (
    InvalidInputError,
    MooringError,
    TableNotFoundError,
    UnauthenticatedError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.identifiers import quote
from mooring.server.addresses import decode, raw_path, read_query
from mooring.server.asked import Named, name_operation
from mooring.server.bodies import read_body
from mooring.server.inquiry import Inquiry
from mooring.server.problems import Problem, absent, explain, not_allowed, unexpected
from mooring.server.ui.answers import Answers, wants_html
from mooring.server.ui.links import CATALOGS_PATH, JSON_ENDING
from mooring.server.ui.route import Action, Page, Picture
from mooring.server.ui.routes import find_route
from mooring.server.ui.session import SEAL_FIELD
from mooring.server.ui.table.gone import GONE_TEMPLATE, show_gone
from mooring.server.ui.visit import Visit
from mooring.tables.confinement import confined

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from starlette.types import Receive, Scope, Send

    from mooring.clock import Clock
    from mooring.identifiers import ObjectId
    from mooring.server.service import Service
    from mooring.server.ui.answers import Asked
    from mooring.server.ui.atlas.atlas import Atlases
    from mooring.server.ui.route import Route
    from mooring.server.ui.session import Sessions
    from mooring.server.ui.view import Field, Question

__all__ = ["PagesEndpoint"]

logger = logging.getLogger(__name__)

_FORM_LIMIT_BYTES = 256 * 1024
_MOST_FIELDS = 64
_SEE_OTHER = 303
_ENDING = JSON_ENDING.encode()
_TYPED = "typed"
_READ_ONLY = "This catalog is only read here: nothing in it can be changed."


class PagesEndpoint:
    """Answers what lies below ``/catalogs``."""

    def __init__(
        self, service: Service, sessions: Sessions, atlases: Atlases, clock: Clock | None = None
    ) -> None:
        """Show what a service has.

        Args:
            service: The server.
            sessions: Knows who looks.
            atlases: What is known of each catalog.
            clock: Tells what is how long ago.
        """
        self._service = service
        self._sessions = sessions
        self._atlases = atlases
        self._clock = clock or SystemClock()
        self._answers = Answers(service, sessions)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        response = await self._answer(request)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        path = raw_path(request.scope).strip(b"/").split(b"/")
        catalog, segments = path[0].decode("ascii", "replace"), path[1:]
        is_json = bool(segments) and segments[-1].endswith(_ENDING)
        if is_json:
            segments = [*segments[:-1], segments[-1].removesuffix(_ENDING)]
        if request.method == "GET" and (page := _page_of(segments, is_named=bool(catalog))):
            name_operation(request.scope, Named("pages", "Begin", CATALOGS_PATH))
            return RedirectResponse(page if page == "/" else f"{_sent(request)}/{page}", _SEE_OTHER)
        found = find_route(segments)
        if found is None or (is_json and isinstance(found[0], Picture)):
            name_operation(request.scope, Named("pages", "Nowhere", CATALOGS_PATH))
            problem = absent("there is no such page: begin at /")
            return await self._answers.problem(request, problem, is_json=is_json)
        route, variables = found
        return await self._at(request, route, catalog, variables, is_json=is_json)

    async def _at(
        self,
        request: Request,
        route: Route,
        catalog: str,
        variables: Mapping[str, bytes],
        *,
        is_json: bool,
    ) -> Response:
        posts = isinstance(route, Action) and request.method == "POST"
        name = Named("pages", route.name, f"{CATALOGS_PATH}/{{catalog}}{route.path}", changes=posts)
        name_operation(request.scope, name)
        if not posts and request.method not in {"GET", "HEAD"}:
            problem = not_allowed(request.method, ["GET"])
            return await self._answers.problem(request, problem, is_json=is_json)
        inquiry = Inquiry(self._service.audit, request, f"pages.{route.name}", changes=posts)
        try:
            visit = await self._visit(request, catalog, variables, inquiry)
            response, failure = await self._run(request, route, visit, inquiry, is_json=is_json)
        except UnauthenticatedError as exc:
            if not is_json and wants_html(request):
                return self._answers.to_login(request)
            problem = explain(exc)
        except MooringError as exc:
            problem = explain(exc)
        except ClientDisconnect:
            problem = explain(InvalidInputError("the request was cut off"))
        except Exception:  # the outermost handler: nobody above could tell it better
            number = secrets.token_hex(6)
            logger.exception("%s %s failed unexpectedly: %s", request.method, route.path, number)
            problem = unexpected(number, changes=posts)
        else:
            inquiry.end(_recorded(response, failure), failure)
            return response
        inquiry.end(problem.status, problem.message)
        return await self._answers.problem(request, problem, is_json=is_json, catalog=catalog)

    async def _visit(
        self, request: Request, catalog: str, variables: Mapping[str, bytes], inquiry: Inquiry
    ) -> Visit:
        identity = await self._sessions.identify(request)
        inquiry.identity = identity
        served = self._service.find_catalog(identity, catalog)
        inquiry.catalog = served.name
        return Visit(
            service=self._service,
            served=served,
            atlas=self._atlases.of(served.name),
            identity=identity,
            path={key: decode(value) for key, value in variables.items()},
            query=read_query(request.scope.get("query_string", b"")),
            base=str(request.base_url).rstrip("/").removesuffix(CATALOGS_PATH),
            now_ms=self._clock.now_ms(),
        )

    async def _run(
        self, request: Request, route: Route, visit: Visit, inquiry: Inquiry, *, is_json: bool
    ) -> tuple[Response, str | None]:
        """Return the answer, and why what was asked for was not done."""
        asked = self._answers.asked(request, visit, route, is_json=is_json)
        posts = request.method == "POST"
        form = await self._form(request, visit) if posts else {}
        work = _Work(route, visit, asked, inquiry)
        workers = self._service.workers
        if not posts:
            return await workers.run(route.lane, work.show), None
        try:
            return await workers.run(route.lane, lambda: work.perform(form), changes=True)
        except UnknownOutcomeError as exc:
            if not isinstance(route, Action) or route.goes_on is None:
                raise
            return asked.go(route.goes_on(visit)), str(exc)

    async def _form(self, request: Request, visit: Visit) -> dict[str, str]:
        """Read a form that a page of this server sent.

        Raises:
            InvalidInputError: it cannot be read.
            PermissionDeniedError: another page sent it.
        """
        body = await read_body(request, self._service.settings, _FORM_LIMIT_BYTES)
        try:
            form = dict(
                parse_qsl(
                    body.decode(),
                    keep_blank_values=True,
                    errors="strict",
                    max_num_fields=_MOST_FIELDS,
                )
            )
        except ValueError as exc:
            raise InvalidInputError("the form cannot be read: load the page again") from exc
        self._sessions.require_own_form(request, visit.identity, form.pop(SEAL_FIELD, ""))
        return form


class _Work:
    """What is done for a request in a thread."""

    def __init__(self, route: Route, visit: Visit, asked: Asked, inquiry: Inquiry) -> None:
        self._route = route
        self._visit = visit
        self._asked = asked
        self._inquiry = inquiry

    def show(self) -> Response:
        """Make a page, a picture, or the question before an action."""
        self._check()
        with self._confined():
            match self._route:
                case Page():
                    return self._page(self._route)
                case Picture():
                    return self._asked.picture(self._route.make(self._visit))
                case Action():
                    return self._asked.question(self._ask(self._route))

    def _confined(self) -> AbstractContextManager[None]:
        """Let a table lead whoever may not see all of the catalog to no other."""
        identity, served = self._visit.identity, self._visit.served
        return confined(only=identity.role_in(served.name) is None)

    def _page(self, route: Page) -> Response:
        """Make a page; of a table that is not there, one that says what became of it."""
        visit, asked = self._visit, self._asked
        try:
            return asked.page(route.template, route.view(visit))
        except TableNotFoundError as exc:
            # Programs hear of it as everywhere else.
            if asked.is_json or "table" not in visit.path or not wants_html(asked.request):
                raise
            gone = show_gone(visit, exc)
            return asked.page(GONE_TEMPLATE, gone, gone.status)

    def perform(self, form: Mapping[str, str]) -> tuple[Response, str | None]:
        """Do what was asked for; where it is refused, ask again with what was given."""
        self._check()
        with self._confined():
            return self._perform(form)

    def _perform(self, form: Mapping[str, str]) -> tuple[Response, str | None]:
        route = self._route
        assert isinstance(route, Action)  # noqa: S101  # only these are posted to
        try:
            self._require(route.also(self._visit, form))
            _require_agreed(self._ask(route), form)
            done = route.perform(self._visit, form)
        except MooringError as exc:
            problem = explain(exc)
            return self._asked_again(route, problem, form), problem.message
        finally:
            # Also where it failed: what is shown next is what is.
            self._visit.atlas.refresh()
        return self._asked.go(done), None

    def _ask(self, route: Action) -> Question:
        # What will happen is told by what is, not by what was a moment ago.
        self._visit.atlas.refresh()
        question = route.ask(self._visit)
        if self._visit.is_read_only and not question.obstacle:
            return msgspec.structs.replace(question, obstacle=_READ_ONLY)
        return question

    def _asked_again(self, route: Action, problem: Problem, form: Mapping[str, str]) -> Response:
        question = self._ask(route)  # fails where nothing is left to ask about
        given = [_given(field, form) for field in question.fields]
        again = msgspec.structs.replace(question, fields=given, error=problem.message)
        return self._asked.question(again, problem.status)

    def _check(self) -> None:
        visit = self._visit
        visit.identity.require_somewhere(self._route.role, visit.served.name)
        self._require(self._route.touches(visit))

    def _require(self, objects: Sequence[ObjectId]) -> None:
        """Refuse what is not allowed with some objects; the audit log hears of them, too."""
        visit = self._visit
        self._inquiry.objects = [*self._inquiry.objects, *objects]
        visit.identity.require(self._route.role, visit.served.name, objects)


def _recorded(response: Response, failure: str | None) -> int:
    """Return the status that the audit log hears: what goes on is not done, whatever is shown."""
    goes_on = failure is not None and response.status_code == _SEE_OTHER
    return UnknownOutcomeError.http_status if goes_on else response.status_code


def _require_agreed(question: Question, form: Mapping[str, str]) -> None:
    """Refuse what cannot be done, and what was not confirmed as the page asks for.

    Raises:
        UnsupportedError: it cannot be done.
        InvalidInputError: something else was typed.
    """
    if question.obstacle:
        raise UnsupportedError(question.obstacle)
    if question.typed and form.get(_TYPED, "").strip() != question.typed.strip():
        raise InvalidInputError(f"type {quote(question.typed)} to confirm: nothing was done")


def _given(field: Field, form: Mapping[str, str]) -> Field:
    """Return a field as it was sent; a box without its mark is not sent at all."""
    unsent = "" if field.kind == "checkbox" else field.value
    return msgspec.structs.replace(field, value=form.get(field.name, unsent))


def _page_of(segments: Sequence[bytes], *, is_named: bool) -> str | None:
    """Return the page that is meant by an address of a catalog or an object alone."""
    if not is_named:
        return "/"
    match list(segments):
        case []:
            return "browse"
        case [b"tables", _]:
            return "overview"
        case [b"namespaces", _]:
            return "browse"
    return None


def _sent(request: Request) -> str:
    """Return the path of a request, as it was sent."""
    return f"{CATALOGS_PATH}/{raw_path(request.scope).strip(b'/').decode('ascii', 'replace')}"
