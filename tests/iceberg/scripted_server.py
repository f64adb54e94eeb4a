"""A server that misbehaves as it is told, for what no real server does on demand."""

from __future__ import annotations

import json
import socket
import threading
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping

__all__ = ["HANG_UP", "Received", "Reply", "ScriptedServer", "error", "run_scripted"]


@dataclass(frozen=True)
class Reply:
    """What is answered: an object as JSON, or bytes as they are."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


# The request is read, and the connection closed without a word.
HANG_UP = Reply(status=0)


@dataclass(frozen=True)
class Received:
    """A request, its path and query as they came over the wire."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, str]:
        return {key: values[0] for key, values in parse_qs(self.body.decode()).items()}


@dataclass
class ScriptedServer:
    """Answers to come, and what was asked.

    Attributes:
        uri: Its address.
        config: What it says about itself, every time.
        tokens: What it gives to those who ask for a token, one after the other; the last stays.
        replies: What it answers to all else, one after the other.
        received: All but the questions for its configuration and for tokens.
        asked_config: Those for its configuration.
        asked_tokens: Those for tokens.
    """

    uri: str = ""
    config: Reply = field(default_factory=Reply)
    tokens: deque[Reply] = field(default_factory=deque)
    replies: deque[Reply] = field(default_factory=deque)
    received: list[Received] = field(default_factory=list)
    asked_config: list[Received] = field(default_factory=list)
    asked_tokens: list[Received] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, *replies: Reply) -> None:
        """Add answers."""
        self.replies.extend(replies)

    def reply_to(self, request: Received) -> Reply:
        """Choose what to answer."""
        with self._lock:
            if request.path.partition("?")[0].endswith("/v1/config"):
                self.asked_config.append(request)
                return self.config
            if (
                "token" in request.path
                and request.method == "POST"
                and b"grant_type" in request.body
            ):
                self.asked_tokens.append(request)
                return self.tokens.popleft() if len(self.tokens) > 1 else self.tokens[0]
            self.received.append(request)
            return self.replies.popleft()


def error(status: int, kind: str, message: str = "no") -> Reply:
    """Answer as a catalog refuses."""
    return Reply(status, {"error": {"message": message, "type": kind, "code": status}})


@contextmanager
def run_scripted(tls: ssl.SSLContext | None = None) -> Iterator[ScriptedServer]:
    """Run a server in a thread."""
    script = ScriptedServer()
    server = _Server(("127.0.0.1", 0), _handler(script))
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    scheme = "https" if tls else "http"
    script.uri = f"{scheme}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address) -> None:
        """Say nothing of clients that go away, as those do that distrust a certificate."""


def _handler(script: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            headers = {key.lower(): value for key, value in self.headers.items()}
            self._send(script.reply_to(Received(self.command, self.path, headers, body)))

        do_GET = do_HEAD = do_POST = do_DELETE = do_any  # noqa: N815  # names of http.server

        def _send(self, reply: Reply) -> None:
            if reply is HANG_UP:
                self.close_connection = True
                with suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)
                return
            is_raw = isinstance(reply.body, bytes)
            content = reply.body if is_raw else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for key, value in reply.headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    return Handler
