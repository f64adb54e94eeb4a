"""Whether the server lives, and whether it can do its work.

Live: the process answers. Ready: each catalog can be listed, which is asked of it once a second at
most, and the server is not about to end. Strangers are told no more than that; those who may use
the server are told which catalog fails, and why.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse
from starlette.routing import Route

from mooring.config import mask_uris
from mooring.errors import MooringError, UnsupportedError
from mooring.identifiers import ROOT
from mooring.server.asked import Named, name_operation
from mooring.server.errands import Errand
from mooring.server.roles import Identity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from mooring.server.catalogs import Served
    from mooring.server.roles import Grant
    from mooring.server.service import Service

__all__ = ["Health", "Readiness"]

logger = logging.getLogger(__name__)

_UNAVAILABLE = 503
_FRESH_S, _LIMIT_S = 1.0, 5.0
_NO_STORE = {"Cache-Control": "no-store"}
_LIVE = Named("server", "live", "/health/live")
_READY = Named("server", "ready", "/health/ready")


class Readiness:
    """Knows whether catalogs can be listed."""

    def __init__(self, service: Service, limit_s: float = _LIMIT_S) -> None:
        """Be ready to ask each catalog.

        Args:
            service: The server.
            limit_s: How long an answer may take.
        """
        self._limit_s = limit_s
        self._errands = {
            served.name: Errand(lambda served=served: _list(served), fresh_s=_FRESH_S)  # type: ignore[misc]  # bound now
            for served in service.catalogs
        }
        self._failing: set[str] = set()

    async def check(self) -> Mapping[str, str | None]:
        """Tell what is wrong with each catalog; None where nothing is."""
        found = await asyncio.gather(*(self._check(*one) for one in self._errands.items()))
        return dict(zip(self._errands, found, strict=True))

    async def _check(self, name: str, errand: Errand[bool]) -> str | None:
        try:
            answer = await errand.answer(self._limit_s)
        except Exception as exc:  # noqa: BLE001  # whatever it is, the catalog cannot be used
            return self._told(name, mask_uris(f"{type(exc).__name__}: {exc}"))
        return self._told(name, None if answer else f"no answer within {self._limit_s:g} s")

    def _told(self, name: str, why: str | None) -> str | None:
        """Log when a catalog fails for the first time, and when it is back."""
        if why is not None and name not in self._failing:
            self._failing.add(name)
            logger.warning("catalog '%s' cannot be listed: %s", name, why)
        if why is None and name in self._failing:
            self._failing.discard(name)
            logger.warning("catalog '%s' can be listed again", name)
        return why


def _list(served: Served) -> bool:
    """Ask for a name or two.

    Raises:
        Exception: whatever it fails by.
    """
    try:
        backend = served.backend()
    except UnsupportedError:
        from lance_namespace import ListNamespacesRequest

        served.lance().list_namespaces(ListNamespacesRequest(id=[], limit=1))
        return True
    if backend.levels in {None, 1}:
        backend.list_tables(ROOT, limit=1)
    else:
        backend.list_namespaces(ROOT, limit=1)
    return True


class Health:
    """Answers those who look after the server."""

    def __init__(self, service: Service, readiness: Readiness | None = None) -> None:
        """Tell of a server."""
        self._service = service
        self._readiness = readiness or Readiness(service)

    @property
    def routes(self) -> list[Route]:
        """Where it answers."""
        return [
            Route(_LIVE.route, self._live),
            Route(_READY.route, self._ready),
        ]

    async def _live(self, request: Request) -> Response:
        name_operation(request.scope, _LIVE)
        return JSONResponse({"status": "live"}, headers=_NO_STORE)

    async def _ready(self, request: Request) -> Response:
        name_operation(request.scope, _READY)
        if self._service.ending.has_begun:
            return _answer({"status": "ending"}, is_ready=False)
        found = await self._readiness.check()
        is_ready = all(why is None for why in found.values())
        body: dict[str, object] = {"status": "ready" if is_ready else "not ready"}
        grants = self._grants(request)
        seen = {
            name: {"status": "ready"} if why is None else {"status": "failing", "error": why}
            for name, why in found.items()
            if any(grant.holds_in(name) for grant in grants)
        }
        return _answer(body | ({"catalogs": seen} if seen else {}), is_ready=is_ready)

    def _grants(self, request: Request) -> Sequence[Grant]:
        try:
            found = self._service.identify(request, changes=False)
        except MooringError:
            return ()
        return found.grants if isinstance(found, Identity) else ()


def _answer(body: Mapping[str, object], *, is_ready: bool) -> Response:
    return JSONResponse(body, 200 if is_ready else _UNAVAILABLE, headers=_NO_STORE)
