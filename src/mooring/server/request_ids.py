"""An id for every request, by which its answer and all logs have it."""

from __future__ import annotations

import re
import secrets
from itertools import count
from typing import TYPE_CHECKING

from mooring.server.asked import enter, state_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["RequestIds"]

_HEADER = b"x-request-id"
# Whatever else somebody sends could forge lines of a log.
_SANE = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_BYTES = 8


class RequestIds:
    """Gives requests an id: what the client or a proxy sent, or a new one."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before an application."""
        self._app = app
        # To ask the system for chance at every request would let another thread in each time.
        self._run = secrets.token_hex(_BYTES)
        self._numbers = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with an id, and put it into the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _sent(scope) or f"{self._run}-{next(self._numbers):x}"
        state_of(scope)["request_id"] = request_id
        enter(scope)
        header = (_HEADER, request_id.encode())

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), header]
            await send(message)

        await self._app(scope, receive, answer)


def _sent(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == _HEADER:
            return value.decode() if _SANE.fullmatch(value) else None
    return None
