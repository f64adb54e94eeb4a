"""By which names a server may be addressed.

A page of anybody's can have a browser on this machine send requests to it: by a name of its own
that suddenly means this machine, so that the browser takes both for one (DNS rebinding). Such a
request tells the name, and nobody who means this server uses it. An address is no name: it means
what it says.
"""

from __future__ import annotations

import ipaddress
import logging
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from mooring.errors import PermissionDeniedError
from mooring.identifiers import quote
from mooring.server.problems import explain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["ANY", "Hosts", "is_allowed"]

logger = logging.getLogger(__name__)

ANY = "*"
_LOOPBACK = "localhost"
_ICEBERG = "/iceberg/"
_LONGEST = 255


class Hosts:
    """Refuses requests to other names than the server's own."""

    def __init__(self, app: ASGIApp, allowed: Iterable[str]) -> None:
        """Stand before an application.

        Args:
            app: The application.
            allowed: Names, beside those of this machine alone; ``*`` for any.
        """
        self._app = app
        self._allowed = frozenset(one.lower().rstrip(".") for one in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = [value for name, value in scope["headers"] if name == b"host"]
        named = sent[0].decode("latin-1") if len(sent) == 1 else ""
        if is_allowed(named, self._allowed):
            await self._app(scope, receive, send)
            return
        logger.warning("a request to %s was refused", quote(named[:_LONGEST]))
        await _refusal(scope, named)(scope, receive, send)


def is_allowed(host: str, allowed: Iterable[str]) -> bool:
    """Whether a server may be addressed by what a request's header says."""
    if ANY in allowed:
        return True
    name = _without_port(host).lower().rstrip(".")
    return name == _LOOPBACK or name.endswith(f".{_LOOPBACK}") or name in allowed or _is_ip(name)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def _is_ip(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _refusal(scope: Scope, named: str) -> Response:
    shown = quote(_without_port(named)[:_LONGEST])
    msg = (
        f"this server is not addressed as {shown}: use its address, or let it be served with"
        " --allowed-host and this name"
    )
    error = PermissionDeniedError(msg)
    path: str = scope["path"]
    if not path.startswith(_ICEBERG):
        return explain(error).answer(scope)
    body = {"message": msg, "type": error.iceberg_type, "code": error.http_status}
    content = msgspec.json.encode({"error": body})
    return Response(content, error.http_status, media_type="application/json")
