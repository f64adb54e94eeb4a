"""The first page, and logging in and out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route

from mooring.errors import InvalidInputError, MooringError, UnauthenticatedError
from mooring.server.asked import Named, name_operation
from mooring.server.auth import Expired
from mooring.server.bodies import read_body
from mooring.server.mooring.kinds import kind_of, name_kind
from mooring.server.problems import explain
from mooring.server.tokens import FORM_LIMIT_BYTES
from mooring.server.ui.answers import Answers, wants_html
from mooring.server.ui.assets import ASSETS_PATH, serve_asset
from mooring.server.ui.headers import PAGE_HEADERS
from mooring.server.ui.links import JSON_ENDING, LOGIN_PATH, LOGOUT_PATH, Links
from mooring.server.ui.session import SEAL_FIELD, is_led_by_others, is_same_origin
from mooring.server.ui.view import View
from mooring.server.welcome import astray, welcome
from mooring.server.work import Lane

if TYPE_CHECKING:
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from mooring.server.service import Service
    from mooring.server.ui.session import Sessions

__all__ = ["Door", "Home", "HomeCatalog", "Login"]

_SEE_OTHER = 303
_LONGEST_TOKEN = 3_900  # a cookie has 4096 bytes with all that it says beside
_HOME_TWIN = f"/index{JSON_ENDING}"


class HomeCatalog(View, frozen=True, kw_only=True):
    """A catalog that can be looked at."""

    name: str
    kind: str
    about: str
    href: str


class Home(View, frozen=True, kw_only=True):
    """All catalogs."""

    catalogs: list[HomeCatalog]


class Login(View, frozen=True, kw_only=True):
    """The door.

    Attributes:
        next: Where to go then.
        error: Why nobody was let in.
    """

    next: str = "/"
    error: str = ""


class Door:
    """Answers at ``/``, ``/login`` and ``/logout``, and gives out what pages are made of."""

    def __init__(self, service: Service, sessions: Sessions) -> None:
        """Stand before the pages of a server.

        Args:
            service: The server.
            sessions: Knows who looks.
        """
        self._service = service
        self._sessions = sessions
        self._answers = Answers(service, sessions)

    @property
    def routes(self) -> list[BaseRoute]:
        """Where all that is."""
        return [
            Route("/", self.home),
            Route(_HOME_TWIN, self.home),
            Route(LOGIN_PATH, self.login, methods=["GET", "POST"]),
            Route(LOGOUT_PATH, self.logout, methods=["POST"]),
            Mount(ASSETS_PATH, routes=[Route("/{edition}/{name}", serve_asset)]),
        ]

    async def lead(self, request: Request, error: Exception) -> Response:
        """Tell somebody who went astray what is where; said by the router."""
        failed: HTTPException = error  # type: ignore[assignment]  # that is what it is called for
        return await self._answers.problem(request, astray(request, failed))

    async def home(self, request: Request) -> Response:
        """Show the catalogs; where there is one, show that. Programs are told the protocols."""
        is_json = request.scope["path"] == _HOME_TWIN
        if not is_json and not wants_html(request):
            return await welcome(request)
        name_operation(request.scope, Named("pages", "Home", "/"))
        try:
            return await self._show(request, is_json=is_json)
        except UnauthenticatedError as exc:
            if not is_json:
                return self._answers.to_login(request)
            problem = explain(exc)
        except MooringError as exc:
            problem = explain(exc)
        return await self._answers.problem(request, problem, is_json=is_json)

    async def _show(self, request: Request, *, is_json: bool) -> Response:
        identity = await self._sessions.identify(request)
        chrome = replace(self._answers.chrome(request, identity), json_href=_HOME_TWIN)
        view = Home(catalogs=[self._shown(name) for name in chrome.catalogs])
        if is_json:
            return Response(msgspec.json.encode(view), 200, dict(PAGE_HEADERS), "application/json")
        if len(view.catalogs) == 1:
            return RedirectResponse(view.catalogs[0].href, _SEE_OTHER, dict(PAGE_HEADERS))
        return self._answers.html(request, "home.html", chrome, view)

    def _shown(self, name: str) -> HomeCatalog:
        kind = kind_of(self._service.catalogs.find(name))
        return HomeCatalog(
            name=name, kind=kind, about=name_kind(kind), href=Links(name).to("browse")
        )

    async def login(self, request: Request) -> Response:
        """Let somebody in who shows a token, or an id and a secret."""
        name_operation(request.scope, Named("pages", "Login", LOGIN_PATH))
        if self._service.authority.asks_nobody:
            return RedirectResponse("/", _SEE_OTHER, dict(PAGE_HEADERS))
        if request.method == "POST":
            return await self._enter(request)
        shown = request.query_params.get("token", "")
        after = _own_path(request.query_params.get("next", "/"))
        if shown and is_led_by_others(request):
            # Else others could have somebody work in their name without noticing.
            why = "another web page led here with a token: log in with your own"
            return self._door(request, Login(next=after, error=why), 403)
        if shown:
            return await self._let_in(request, shown, after)
        return self._door(request, Login(next=after))

    async def _enter(self, request: Request) -> Response:
        try:
            body = await read_body(request, self._service.settings, FORM_LIMIT_BYTES)
            form = dict(parse_qsl(body.decode(), errors="strict", max_num_fields=8))
        except ClientDisconnect:
            return explain(InvalidInputError("the request was cut off")).answer(request.scope)
        except (MooringError, ValueError):
            form = {}
        after = _own_path(form.get("next", "/"))
        if not is_same_origin(request):
            view = Login(next=after, error="another web page sent this form: log in here")
            return self._door(request, view, 403)
        return await self._let_in(request, form.get("token", "").strip(), after)

    async def _let_in(self, request: Request, shown: str, after: str) -> Response:
        authority = self._service.authority

        def read() -> str | None:
            once = authority.redeem(shown)
            if once is not None:
                return once
            if authority.needs_refresh(shown):
                authority.refresh(shown)
            found = authority.read(shown)
            if found is None or isinstance(found, Expired):
                return None
            # A secret is not left with the browser.
            return authority.issue(found.subject) if ":" in shown and found.subject else shown

        try:
            token = await self._service.workers.run(Lane.CATALOG, read) if shown else None
        except MooringError as exc:
            return await self._answers.problem(request, explain(exc))
        if token is None:
            why = "this is no token of this server, or its time is over"
            return self._door(request, Login(next=after, error=why), 401)
        if len(token) > _LONGEST_TOKEN:
            why = "this token is longer than browsers keep: ask its issuer for one with less in it"
            return self._door(request, Login(next=after, error=why), 400)
        response = RedirectResponse(after, _SEE_OTHER, dict(PAGE_HEADERS))
        self._sessions.begin(request, response, token)
        return response

    def _door(self, request: Request, view: Login, status: int = 200) -> Response:
        chrome = self._answers.chrome(request, None)
        return self._answers.html(request, "login.html", chrome, view, status=status)

    async def logout(self, request: Request) -> Response:
        """Have the browser forget who looks."""
        name_operation(request.scope, Named("pages", "Logout", LOGOUT_PATH))
        try:
            identity = await self._sessions.identify(request)
            body = await read_body(request, self._service.settings, FORM_LIMIT_BYTES)
            form = dict(parse_qsl(body.decode("ascii", "replace"), max_num_fields=8))
            self._sessions.require_own_form(request, identity, form.get(SEAL_FIELD, ""))
        except UnauthenticatedError:
            pass  # nobody is logged in: the cookie is of no use
        except ClientDisconnect:
            return explain(InvalidInputError("the request was cut off")).answer(request.scope)
        except ValueError:
            problem = explain(InvalidInputError("the form cannot be read"))
            return await self._answers.problem(request, problem)
        except MooringError as exc:
            return await self._answers.problem(request, explain(exc))
        response = RedirectResponse(LOGIN_PATH, _SEE_OTHER, dict(PAGE_HEADERS))
        self._sessions.end(request, response)
        return response


def _own_path(wanted: str) -> str:
    """Return an address of this server; the first page for any other."""
    try:
        parts = urlsplit(wanted)
    except ValueError:  # no address at all
        return "/"
    is_own = not parts.scheme and not parts.netloc and wanted.startswith("/")
    # Browsers read a backslash as a slash, and two slashes begin another host.
    return wanted if is_own and wanted[1:2] not in {"/", "\\"} and wanted.isprintable() else "/"
