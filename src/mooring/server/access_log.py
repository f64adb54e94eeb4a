"""A line for each request: who asked for what, what came of it, and how long it took.

Parameters and bodies are left out: they may hold secrets.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

from mooring.server.asked import named_of
from mooring.server.logs import LogFormat

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Access", "AccessLog", "write_access"]


@dataclass(frozen=True, slots=True)
class Access:
    """A request that was answered.

    Attributes:
        at: When it came, in UTC.
        method: Of HTTP.
        path: As it was sent.
        status: Of the answer; 0 where there was none.
        duration_ms: How long it took.
        subject: Who asked; None where nobody is asked for a name, or it is not known.
        client: From which address.
        request_id: By which other logs have it.
        operation: What was asked for, with its protocol, as in ``lance.DescribeTable``.
    """

    at: str
    method: str
    path: str
    status: int
    duration_ms: float
    subject: str | None
    client: str | None
    request_id: str | None = None
    operation: str | None = None


class AccessLog:
    """Watches an application."""

    def __init__(self, app: ASGIApp, report: Callable[[Access], None]) -> None:
        """Watch an application.

        Args:
            app: The application.
            report: Hears of each request.
        """
        self._app = app
        self._report = report

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and tell of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, at, status = time.perf_counter(), datetime.now(UTC), 0

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        scope.setdefault("state", {})
        try:
            await self._app(scope, receive, watch)
        finally:
            took_ms = (time.perf_counter() - began) * 1000
            self._report(_access(scope, at, status, took_ms))


def _access(scope: Scope, at: datetime, status: int, took_ms: float) -> Access:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    client = scope.get("client")
    named = named_of(scope)
    return Access(
        at=at.isoformat(timespec="milliseconds"),
        method=scope["method"],
        path=raw.partition(b"?")[0].decode("ascii", "backslashreplace"),
        status=status,
        duration_ms=round(took_ms, 1),
        subject=scope["state"].get("subject"),
        client=client[0] if client else None,
        request_id=scope["state"].get("request_id"),
        operation=f"{named.dialect}.{named.operation}" if named.route else None,
    )


def write_access(access: Access, stream: TextIO, form: LogFormat | None = None) -> None:
    """Write a line: to read on a terminal, else an object of JSON, unless told otherwise."""
    if (form or LogFormat.fitting(stream)) is LogFormat.JSON:
        stream.write(json.dumps(asdict(access)) + "\n")
        stream.flush()
        return
    who = access.subject or access.client or "-"
    line = f"{access.at} {who} {access.method} {access.path}"
    stream.write(f"{line} {access.status} {access.duration_ms} ms {access.request_id or '-'}\n")
    stream.flush()
