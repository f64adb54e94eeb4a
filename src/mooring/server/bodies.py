"""The bodies of requests, read within limits of size and time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from mooring.server.settings import ServerSettings

__all__ = ["read_body", "stream_body"]

# What has to come within the time that a client may be idle for: one that sends a byte now and
# then is as good as one that sends nothing.
_PIECE = 256 * 1024


async def stream_body(
    request: Request, settings: ServerSettings, limit: int
) -> AsyncIterator[bytes]:
    """Go through a body as it comes, piece by piece.

    Raises:
        InvalidInputError: it is too long, or the client stopped sending.
        ClientDisconnect: the client hung up.
    """
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > limit:
        raise _too_long(limit)
    size, parts = 0, request.stream()
    while True:
        try:
            async with asyncio.timeout(settings.idle_timeout_s):
                piece = await _next_piece(parts, limit - size)
        except TimeoutError as exc:
            msg = f"next to nothing of the request came for {settings.idle_timeout_s:g} s"
            raise InvalidInputError(msg) from exc
        if not piece:
            return
        size += len(piece)
        if size > limit:
            raise _too_long(limit)
        yield piece


async def _next_piece(parts: AsyncIterator[bytes], limit: int) -> bytes:
    """Gather a piece; an empty one is the end."""
    gathered: list[bytes] = []
    size = 0
    async for part in parts:
        gathered.append(part)
        size += len(part)
        if size >= _PIECE or size > limit:
            break
    return b"".join(gathered)


async def read_body(request: Request, settings: ServerSettings, limit: int | None = None) -> bytes:
    """Read a body that is no rows.

    Args:
        request: Whose.
        settings: How long it may be, and how long it may take.
        limit: How long it may be, where that is less.

    Raises:
        InvalidInputError: it is too long, or the client stopped sending.
        ClientDisconnect: the client hung up.
    """
    if "content-length" not in request.headers and "transfer-encoding" not in request.headers:
        return b""  # it has none, and nothing is to be waited for
    most = settings.body_limit_bytes if limit is None else min(limit, settings.body_limit_bytes)
    return b"".join([piece async for piece in stream_body(request, settings, most)])


def _too_long(limit: int) -> InvalidInputError:
    return InvalidInputError(f"the request is too long: it has at most {limit} bytes")
