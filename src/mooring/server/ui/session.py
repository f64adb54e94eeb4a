"""Who looks at pages: a browser shows the token it was given at the door, in a cookie.

A cookie goes along with whatever page sends a request here, so that none is enough for a change:
a form also holds a seal that only pages of this server can read, and says where it comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mooring.errors import PermissionDeniedError, UnauthenticatedError
from mooring.server.asked import state_of
from mooring.server.auth import Expired
from mooring.server.work import Lane

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from mooring.server.roles import Identity
    from mooring.server.service import Service

__all__ = ["SEAL_FIELD", "Sessions", "is_led_by_others", "is_same_origin", "is_secure"]

SEAL_FIELD = "seal"
_PURPOSE = "form"


@dataclass(frozen=True, slots=True)
class Sessions:
    """The cookies of a server.

    Attributes:
        service: The server.
    """

    service: Service

    async def identify(self, request: Request) -> Identity:
        """Tell who looks, by a header where there is one, else by the cookie.

        Raises:
            UnauthenticatedError: nobody knows.
        """
        authority = self.service.authority
        token = self._token(request)
        if authority.has_verifiers and authority.needs_refresh(token):
            # Keys of others are looked up, which may wait.
            workers = self.service.workers
            await workers.run(Lane.CATALOG, lambda: authority.refresh(token))
        found = authority.identify({"authorization": f"Bearer {token}"})
        if isinstance(found, Expired):
            raise UnauthenticatedError("the time of this login is over: log in again")
        if found is None:
            raise UnauthenticatedError("a login is needed: show one of this server's tokens")
        state_of(request.scope)["subject"] = found.subject
        return found

    def _token(self, request: Request) -> str:
        headers = {key.lower(): value for key, value in request.headers.items()}
        shown = self.service.authority.shown(headers)
        return shown or request.cookies.get(cookie_of(request), "")

    def begin(self, request: Request, response: Response, token: str) -> None:
        """Have a browser show a token from now on."""
        response.set_cookie(
            cookie_of(request),
            token,
            path="/",
            httponly=True,
            samesite="strict",
            secure=is_secure(request),
        )

    def end(self, request: Request, response: Response) -> None:
        """Have a browser forget its token."""
        response.delete_cookie(
            cookie_of(request),
            path="/",
            httponly=True,
            samesite="strict",
            secure=is_secure(request),
        )

    def renew(self, request: Request, response: Response) -> None:
        """Give a token that is about to end more time, while somebody looks at pages."""
        fresh = self.service.authority.renewed(request.cookies.get(cookie_of(request), ""))
        if fresh is not None:
            self.begin(request, response, fresh)

    # -- changes -----------------------------------------------------------------------------------

    def seal(self, identity: Identity) -> str:
        """Return what a form holds that was made for somebody."""
        return self.service.authority.seal(_PURPOSE, identity.subject)

    def require_own_form(self, request: Request, identity: Identity, seal: str) -> None:
        """Refuse what no page of this server sent.

        Raises:
            PermissionDeniedError: another page did, or the form is from before a restart.
        """
        if not is_same_origin(request):
            raise PermissionDeniedError("another web page sent this form: nothing was done")
        if not self.service.authority.is_sealed(_PURPOSE, identity.subject, seal):
            msg = "this form is from before the server was started: load the page again"
            raise PermissionDeniedError(msg)


def cookie_of(request: Request) -> str:
    """Name the cookie: servers on other ports of a machine have others.

    Where connections are protected, browsers take one of this name from this very host alone.
    """
    own = "__Host-" if is_secure(request) else ""
    return f"{own}mooring-session-{urlsplit(str(request.base_url)).port or 'web'}"


def is_secure(request: Request) -> bool:
    """Whether nobody between the browser and the server listens."""
    return request.url.scheme == "https"


def is_same_origin(request: Request) -> bool:
    """Whether a form was sent by a page of this very server."""
    fetched = request.headers.get("sec-fetch-site", "same-origin")
    try:
        # By the host alone: a proxy before the server may speak another scheme.
        sender = urlsplit(request.headers.get("origin", "")).netloc
    except ValueError:  # no browser says such a thing
        return False
    is_own = bool(sender) and sender == request.headers.get("host", "")
    return fetched == "same-origin" and is_own


def is_led_by_others(request: Request) -> bool:
    """Whether a link or a script of another page led a browser here, as far as it tells."""
    return request.headers.get("sec-fetch-site", "none") in {"cross-site", "same-site"}
