"""The bodies of requests, read within limits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from mooring.server.settings import ServerSettings

__all__ = ["read_body", "stream_body"]


async def stream_body(
    request: Request, settings: ServerSettings, limit: int
) -> AsyncIterator[bytes]:
    """Go through a body as it comes.

    Raises:
        InvalidInputError: it is too long, or the client stopped sending.
    """
    size, parts = 0, request.stream()
    if int(request.headers.get("content-length") or 0) > limit:
        raise _too_long(limit)
    while True:
        try:
            async with asyncio.timeout(settings.idle_timeout_s):
                part = await anext(parts, None)
        except TimeoutError as exc:
            msg = f"nothing of the request came for {settings.idle_timeout_s:g} s"
            raise InvalidInputError(msg) from exc
        if part is None:
            return
        size += len(part)
        if size > limit:
            raise _too_long(limit)
        if part:
            yield part


async def read_body(request: Request, settings: ServerSettings) -> bytes:
    """Read a body that is no rows.

    Raises:
        InvalidInputError: it is too long, or the client stopped sending.
    """
    return b"".join(
        [part async for part in stream_body(request, settings, settings.body_limit_bytes)]
    )


def _too_long(limit: int) -> InvalidInputError:
    return InvalidInputError(f"the request is too long: it has at most {limit} bytes")
