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

    from mooring.server.problems import Problem

__all__ = ["astray", "welcome"]

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


def astray(request: Request, failed: HTTPException) -> Problem:
    """Tell somebody who went astray what is where; outside of protocols."""
    known = ", ".join(f"{name} at {path}" for name, path in _PROTOCOLS.items())
    if failed.status_code != _ABSENT:
        return not_allowed(request.method, [(failed.headers or {}).get("Allow", "GET")])
    return absent(f"there is nothing at this address; this server has {known}")
