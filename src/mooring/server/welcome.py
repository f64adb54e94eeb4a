"""What stands at the address of the server itself, and where nothing does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from mooring import __version__
from mooring.server.asked import Named, name_operation
from mooring.server.problems import absent, not_allowed
from mooring.server.tokens import TOKEN_PATH

if TYPE_CHECKING:
    from starlette.exceptions import HTTPException
    from starlette.requests import Request

__all__ = ["lead", "welcome"]

_PROTOCOLS = {
    "lance": "/lance",
    "iceberg": "/iceberg",
    "mooring": "/mooring/v1",
    "openapi": "/mooring/v1/openapi.json",
}
_BESIDE = {"token": TOKEN_PATH, "health": "/health/ready", "metrics": "/metrics"}
_ABSENT = 404


async def welcome(request: Request) -> Response:
    """Tell what this is and where its protocols are."""
    name_operation(request.scope, Named("server", "welcome", "/"))
    told = {"name": "mooring", "version": __version__, "protocols": _PROTOCOLS, **_BESIDE}
    return Response(msgspec.json.encode(told), media_type="application/json")


async def lead(request: Request, error: Exception) -> Response:
    """Tell somebody who went astray what is where; said by the router, outside of protocols."""
    failed: HTTPException = error  # type: ignore[assignment]  # that is what it is called for
    known = ", ".join(f"{name} at {path}" for name, path in _PROTOCOLS.items())
    problem = absent(f"there is nothing at this address; this server has {known}")
    if failed.status_code != _ABSENT:
        problem = not_allowed(request.method, [(failed.headers or {}).get("Allow", "GET")])
    return problem.answer(request.scope)
