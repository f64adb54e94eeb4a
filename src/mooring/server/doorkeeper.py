"""What has to be known before it can be told who asks: the credentials file, an issuer's keys.

Both are looked at in a thread before a request is passed on, so that telling who asks, in the loop,
waits for nothing. A changed file counts from the next request on, at most a second later.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from mooring.errors import MooringError
from mooring.server.credentials_file import read_credentials
from mooring.server.oidc import OidcVerifier

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

    from mooring.server.auth import Authority, Verifier
    from mooring.server.oidc import OidcSettings

__all__ = ["Doorkeeper", "WatchedFile"]

logger = logging.getLogger(__name__)

_BETWEEN_S = 1.0
_THREADS = 4


class WatchedFile:
    """The credentials file of a server that runs."""

    def __init__(self, path: Path, authority: Authority) -> None:
        """Tell an authority when the file is another."""
        self._path = path
        self._authority = authority
        # What the server was started with may be another already: the first look reads it.
        self._seen: tuple[int, int, int] | None = (0, 0, 0)

    def look(self) -> None:
        """Look whether the file is another; one that makes no sense changes nothing."""
        mark = self._mark()
        if mark == self._seen:
            return
        self._seen = mark
        try:
            found = read_credentials(self._path)
            self._authority.replace(found.clients, self._verifiers(found.oidc))
        except MooringError as exc:
            logger.error("the server goes on with the clients that it knows: %s", exc)  # noqa: TRY400  # the message tells all
            return
        logger.info("'%s' names %d clients", self._path, len(found.clients))

    def _verifiers(self, oidc: OidcSettings | None) -> Sequence[Verifier]:
        """Return who knows the tokens of others: the one that does already, with its keys."""
        for known in self._authority.verifiers:
            if isinstance(known, OidcVerifier) and known.settings == oidc:
                return (known,)
        return () if oidc is None else (OidcVerifier(oidc),)

    def _mark(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


class Doorkeeper:
    """Stands before an application."""

    def __init__(self, app: ASGIApp, authority: Authority, file: Path | None = None) -> None:
        """Stand before an application.

        Args:
            app: The application.
            authority: Which it asks who asks.
            file: The credentials file, where there is one.
        """
        self._app = app
        self._authority = authority
        self._file = None if file is None else WatchedFile(file, authority)
        self._looked_at_s, self._is_looking = -math.inf, False
        # Others' answers may take seconds: nobody who needs none waits behind them.
        self._threads = ThreadPoolExecutor(_THREADS, "mooring-doorkeeper")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on when everything is known."""
        if scope["type"] == "http":
            await self._prepare(scope)
        await self._app(scope, receive, send)

    def _is_due(self) -> bool:
        """Whether to look at the file: not while somebody does, for a disk may be slow."""
        return not self._is_looking and time.monotonic() - self._looked_at_s >= _BETWEEN_S

    async def _prepare(self, scope: Scope) -> None:
        loop = asyncio.get_running_loop()
        if self._file is not None and self._is_due():
            self._is_looking = True
            try:
                await loop.run_in_executor(self._threads, self._file.look)
            finally:
                self._is_looking, self._looked_at_s = False, time.monotonic()
        if not self._authority.has_verifiers:
            return
        token = self._authority.shown(
            {
                key.decode("latin-1").lower(): value.decode("latin-1")
                for key, value in scope["headers"]
            }
        )
        if self._authority.needs_refresh(token):
            await loop.run_in_executor(self._threads, self._authority.refresh, token)
