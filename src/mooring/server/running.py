"""Running an application on a socket until somebody ends it.

The first signal ends it gracefully: nothing new is taken, what was begun is finished. The second
ends it at once, which loses nothing that was acknowledged.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import resource
import signal
import socket
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

import uvicorn

from mooring.errors import InvalidInputError
from mooring.server.access_log import AccessLog
from mooring.server.ending import Ending
from mooring.server.settings import ServerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from starlette.types import ASGIApp

    from mooring.server.access_log import Access

__all__ = ["Run", "address_of", "bind", "is_loopback", "run", "uvicorn_config"]

_BACKLOG = 2048
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ENDED_BY_SIGNAL = 128
_MOST_FILES = 65536


@dataclass(frozen=True, slots=True)
class Run:
    """How an application is run.

    Attributes:
        ready: Called when it is served.
        settings: Its limits.
        report: Hears of each request.
        ending: Tells of the end.
        parent: A socket to the process that watches over this one: when it is gone, so is this.
    """

    ready: Callable[[], None]
    settings: ServerSettings = field(default_factory=ServerSettings)
    report: Callable[[Access], None] | None = None
    ending: Ending | None = None
    parent: socket.socket | None = None


def bind(host: str, port: int) -> socket.socket:
    """Take a port; 0 is any that is free.

    Raises:
        InvalidInputError: it is taken, or there is no such address.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError, OverflowError) as exc:
        raise InvalidInputError(f"'{host}' is no address of this machine: {exc}") from exc
    taken = socket.socket(family, kind, protocol)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
        taken.listen(_BACKLOG)
    except OSError as exc:
        taken.close()
        raise _not_taken(host, port, exc) from exc
    return taken


def _not_taken(host: str, port: int, exc: OSError) -> InvalidInputError:
    if exc.errno == errno.EADDRINUSE:
        return InvalidInputError(f"port {port} of {host} is in use: choose another with --port")
    if exc.errno == errno.EACCES:
        return InvalidInputError(f"port {port} is not for this user: choose one from 1024 up")
    return InvalidInputError(f"'{host}' port {port} cannot be listened on: {exc.strerror}")


def is_loopback(taken: socket.socket) -> bool:
    """Whether only this machine can reach a socket."""
    return ipaddress.ip_address(taken.getsockname()[0].partition("%")[0]).is_loopback


def address_of(taken: socket.socket) -> str:
    """Return a socket's address as URIs have it."""
    host, port = taken.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def uvicorn_config(app: ASGIApp, settings: ServerSettings) -> uvicorn.Config:
    """Return how an application is run: by the fastest parts that are installed, within limits."""
    return uvicorn.Config(
        app,
        http=_http(settings),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        backlog=_BACKLOG,
        timeout_keep_alive=int(settings.keep_alive_s),
        timeout_graceful_shutdown=int(settings.last_requests_s),
        h11_max_incomplete_event_size=settings.head_limit_bytes,
        **({} if settings.tls is None else settings.tls.options()),
    )


def _http(settings: ServerSettings) -> type[asyncio.Protocol] | Literal["h11"]:
    if find_spec("httptools") is None:
        return "h11"
    from mooring.server.connections import limited_to  # imports httptools

    return limited_to(settings.head_limit_bytes, settings.idle_timeout_s)


def run(app: ASGIApp, taken: socket.socket, how: Run) -> None:
    """Serve until the process is told to end; requests that are under way are finished."""
    _allow_many_files()
    watched = app if how.report is None else AccessLog(app, how.report)
    _Server(uvicorn_config(watched, how.settings), how).run(sockets=[taken])


def _allow_many_files() -> None:
    """Raise the limit of open files, each connection is one; not where that is not allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class _Server(uvicorn.Server):
    """A server for which being told to end is nothing unusual."""

    def __init__(self, config: uvicorn.Config, how: Run) -> None:
        super().__init__(config)
        self._how = how
        self._ending = how.ending or Ending()
        self._ends_at_s: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup(sockets)
        if self._how.parent is not None:
            asyncio.get_running_loop().add_reader(self._how.parent, self._orphaned)
        self._how.ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end; end at once when told so again."""
        del frame
        if self._ends_at_s is not None:
            os._exit(_ENDED_BY_SIGNAL + sig)
        self._ends_at_s = time.monotonic() + self._how.settings.drain_s

    def _orphaned(self) -> None:
        """Begin to end, as nobody would start another or tell this one to."""
        if self._how.parent is not None:
            asyncio.get_running_loop().remove_reader(self._how.parent)
        if self._ends_at_s is None:
            self._ends_at_s = time.monotonic()

    async def on_tick(self, counter: int) -> bool:
        """Look whether it is time to end."""
        if self._ends_at_s is not None:
            self._ending.begin()
            self.should_exit = time.monotonic() >= self._ends_at_s
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End."""
        self._ending.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Hear signals; the original raises them again when it has ended."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
