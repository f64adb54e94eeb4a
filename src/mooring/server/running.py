"""Running an application on a socket until somebody ends it."""

from __future__ import annotations

import errno
import ipaddress
import logging
import signal
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import uvicorn

from mooring.errors import InvalidInputError
from mooring.server.access_log import AccessLog, write_access

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.types import ASGIApp

__all__ = ["address_of", "bind", "is_loopback", "run"]

_BACKLOG = 128
_LAST_REQUESTS_S = 30
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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


def run(
    app: ASGIApp, taken: socket.socket, ready: Callable[[], None], log: TextIO | None = None
) -> None:
    """Serve until the process is told to end; requests that are under way are finished.

    What nobody foresaw is told on standard error in any case: clients are told to look there.

    Args:
        app: What to serve.
        taken: Where.
        ready: Called when it is served.
        log: Where to write a line for each request; none unless given.
    """
    logging.basicConfig(format=_FORMAT)  # nothing where the program has a log already
    config = uvicorn.Config(
        app if log is None else AccessLog(app, lambda access: write_access(access, log)),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=_LAST_REQUESTS_S,
    )
    _Server(config, ready).run(sockets=[taken])


class _Server(uvicorn.Server):
    """A server for which being told to end is nothing unusual."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup(sockets)
        self._ready()

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
