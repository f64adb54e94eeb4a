"""Style sheets, scripts and drawings of the pages, each under an address that tells its content.

A browser keeps them for ever, and asks for another address once they change.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from starlette.responses import Response

from mooring.server.asked import Named, name_operation
from mooring.server.problems import absent
from mooring.server.ui.headers import PAGE_HEADERS

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["ASSETS_PATH", "asset_href", "serve_asset"]

ASSETS_PATH = "/static"
_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_FOREVER = "public, max-age=31536000, immutable"
_DIGITS = 12


@cache
def _assets() -> dict[str, bytes]:
    folder = files("mooring.server.ui") / "static"
    return {
        one.name: one.read_bytes()
        for one in folder.iterdir()
        if one.name.rpartition(".")[2] in _TYPES
    }


@cache
def _edition() -> str:
    """Return what tells all of them from others: modules name each other without it."""
    digest = sha256()
    for name, content in sorted(_assets().items()):
        digest.update(name.encode() + b"\0" + content)
    return digest.hexdigest()[:_DIGITS]


def asset_href(name: str) -> str:
    """Return the address of one.

    Raises:
        KeyError: there is none: a template names it wrongly.
    """
    if name not in _assets():
        raise KeyError(name)
    return f"{ASSETS_PATH}/{_edition()}/{name}"


async def serve_asset(request: Request) -> Response:
    """Answer a request for one; of an edition that is over, with the one that is there now."""
    name_operation(request.scope, Named("pages", "Asset", f"{ASSETS_PATH}/{{edition}}/{{name}}"))
    name, edition = request.path_params["name"], request.path_params["edition"]
    content = _assets().get(name)
    if content is None:
        return absent("there is no such file among those of the pages").answer(request.scope)
    kept = _FOREVER if edition == _edition() else "no-cache"
    headers = {**PAGE_HEADERS, "Cache-Control": kept}
    return Response(content, headers=headers, media_type=_TYPES[name.rpartition(".")[2]])
