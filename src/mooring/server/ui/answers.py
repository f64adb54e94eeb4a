"""The answers of pages: HTML for people, the same as JSON for programs, and what went wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlencode

import msgspec
from starlette.responses import RedirectResponse, Response

from mooring.clock import SystemClock
from mooring.config import mask_uris
from mooring.errors import UnauthenticatedError
from mooring.server.asked import note_code
from mooring.server.ui.chrome import Chrome, chrome_within
from mooring.server.ui.headers import PAGE_HEADERS, PICTURE_HEADERS
from mooring.server.ui.links import JSON_ENDING, LOGIN_PATH, Links
from mooring.server.ui.session import is_secure
from mooring.server.ui.templates import render
from mooring.server.ui.view import View

if TYPE_CHECKING:
    from starlette.requests import Request

    from mooring.server.problems import Problem
    from mooring.server.roles import Identity
    from mooring.server.service import Service
    from mooring.server.ui.route import Route
    from mooring.server.ui.session import Sessions
    from mooring.server.ui.view import Attachment, Done, Question
    from mooring.server.ui.visit import Visit

__all__ = ["Answers", "Asked", "Trouble", "wants_html"]

_JSON = "application/json"
_NOTICE, _THEME = "mooring-notice", "mooring-theme"
_NOTICE_S = 30
_LONGEST_NOTICE = 600
_LONGEST_COOKIE = 3_000  # with all it says beside, less than the 4096 bytes that browsers keep
_THEMES = frozenset({"light", "dark"})
_SEE_OTHER = 303


class Trouble(View, frozen=True, kw_only=True):
    """What a page says that cannot be shown.

    Attributes:
        status: Of HTTP.
        message: What, which and what next.
        back: Where to go.
        others: Other places to look, by what they are called.
    """

    status: int
    message: str
    back: str = "/"
    others: dict[str, str] = msgspec.field(default_factory=dict)


def wants_html(request: Request) -> bool:
    """Whether a browser asks, not a program."""
    return "text/html" in request.headers.get("accept", "")


class Answers:
    """Makes answers."""

    def __init__(self, service: Service, sessions: Sessions) -> None:
        """Make those of a server.

        Args:
            service: The server.
            sessions: Knows who looks.
        """
        self._service = service
        self._sessions = sessions

    def asked(self, request: Request, visit: Visit, route: Route, *, is_json: bool) -> Asked:
        """Return what makes the answer to a request."""
        chrome = replace(
            self.chrome(request, visit.identity), json_href=_twin(request, is_json=is_json)
        )
        within = chrome_within(chrome, visit, route.segments[-1])
        return Asked(self, request, within, is_json=is_json)

    def chrome(self, request: Request, identity: Identity | None) -> Chrome:
        """Return what stands around any page.

        Args:
            request: The request.
            identity: Who looks; None where that is not known yet.
        """
        theme = request.cookies.get(_THEME, "")
        chrome = Chrome(
            now_ms=SystemClock().now_ms(),
            asks_nobody=self._service.authority.asks_nobody,
            theme=theme if theme in _THEMES else "",
            notice=unquote(request.cookies.get(_NOTICE, ""))[:_LONGEST_NOTICE],
        )
        if identity is None:
            return chrome
        return replace(
            chrome,
            subject=identity.subject,
            seal=self._sessions.seal(identity),
            catalogs=[
                one.name
                for one in self._service.catalogs
                if any(grant.holds_in(one.name) for grant in identity.grants)
            ],
        )

    def html(
        self,
        request: Request,
        template: str,
        chrome: Chrome,
        view: View,
        *,
        status: int = 200,
    ) -> Response:
        """Return a page."""
        body = render(template, chrome, view)
        response = Response(body, status, dict(PAGE_HEADERS), "text/html; charset=utf-8")
        if _NOTICE in request.cookies:
            response.delete_cookie(_NOTICE, path="/")
        self._sessions.renew(request, response)
        return response

    def to_login(self, request: Request) -> Response:
        """Send a browser to the door, and then back."""
        wanted = _sent(request)
        after = f"?{urlencode({'next': wanted})}" if request.method == "GET" else ""
        return RedirectResponse(f"{LOGIN_PATH}{after}", _SEE_OTHER, dict(PAGE_HEADERS))

    async def problem(
        self, request: Request, problem: Problem, *, is_json: bool = False, catalog: str = ""
    ) -> Response:
        """Say what went wrong: to people on a page, to programs as everywhere else."""
        if is_json or not wants_html(request):
            answer = problem.answer(request.scope)
            answer.headers.update(PAGE_HEADERS)
            return answer
        note_code(request.scope, problem.code)
        try:
            identity: Identity | None = await self._sessions.identify(request)
        except UnauthenticatedError:
            identity = None
        chrome = self.chrome(request, identity)
        is_seen, links = catalog in chrome.catalogs, Links(catalog)
        view = Trouble(
            status=problem.status,
            message=mask_uris(problem.message),
            back=links.to("browse") if is_seen else "/",
            others={"Search": links.to("search"), "Trash": links.to("trash")} if is_seen else {},
        )
        return self.html(request, "error.html", chrome, view, status=problem.status)


@dataclass(frozen=True, slots=True)
class Asked:
    """Makes the answer to one request."""

    answers: Answers
    request: Request
    chrome: Chrome
    is_json: bool

    def page(self, template: str, view: View, status: int = 200) -> Response:
        """Answer with a page, or its twin."""
        if self.is_json:
            return Response(msgspec.json.encode(view), status, dict(PAGE_HEADERS), _JSON)
        return self.answers.html(self.request, template, self.chrome, view, status=status)

    def question(self, question: Question, status: int = 200) -> Response:
        """Answer with the question before an action."""
        return self.page("action.html", question, status)

    def picture(self, picture: Attachment) -> Response:
        """Answer with bytes."""
        headers = {**PICTURE_HEADERS, **picture.headers}
        return Response(picture.body, 200, headers, picture.media_type)

    def go(self, done: Done) -> Response:
        """Lead to where what was done is seen, which says it."""
        response = RedirectResponse(done.href, _SEE_OTHER)
        self.tell(response, done.message)
        return response

    def tell(self, response: Response, message: str) -> None:
        """Have the next page say what was done."""
        response.set_cookie(
            _NOTICE,
            _as_cookie(message[:_LONGEST_NOTICE]),
            max_age=_NOTICE_S,
            path="/",
            httponly=True,
            samesite="strict",
            secure=is_secure(self.request),
        )


def _as_cookie(message: str) -> str:
    """Write a message as a cookie can hold it, cut where browsers would drop it."""
    written = quote(message, safe=" ")
    while len(written) > _LONGEST_COOKIE:
        message = message[: len(message) * 4 // 5]
        written = quote(f"{message}…", safe=" ")
    return written


def _sent(request: Request) -> str:
    """Return the address of a request, as it was sent."""
    path: bytes = request.scope.get("raw_path") or quote(request.scope["path"]).encode()
    query: bytes = request.scope.get("query_string", b"")
    sent = path.partition(b"?")[0] + (b"?" + query if query else b"")
    return sent.decode("ascii", "replace")


def _twin(request: Request, *, is_json: bool) -> str:
    path, _, query = _sent(request).partition("?")
    ending = "" if is_json else JSON_ENDING
    return f"{path}{ending}{'?' + query if query else ''}"
