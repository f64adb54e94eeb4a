"""A way to a server on which requests can be refused, and answers changed."""

from __future__ import annotations

import http.client
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from email.message import Message

__all__ = ["Answer", "passing"]

_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive"}


@dataclass(frozen=True)
class Answer:
    status: int
    content: bytes
    headers: tuple[tuple[str, str], ...] = ()


@contextmanager
def passing(
    uri: str,
    *,
    refuse: Callable[[Message], Answer | None] = lambda _: None,
    change: Callable[[Answer], Answer] = lambda answer: answer,
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[str]:
    """Pass requests on to a server; the value is the address to use instead of its own."""
    target = urlsplit(uri)
    assert target.hostname
    host, port = target.hostname, target.port

    class Passing(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            note(f"{self.command} {self.path}")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._send(refuse(self.headers) or change(self._ask(body)))

        def _ask(self, body: bytes) -> Answer:
            onward = http.client.HTTPConnection(host, port, timeout=60)
            try:
                headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
                onward.request(self.command, self.path, body or None, headers)
                found = onward.getresponse()
                return Answer(found.status, found.read(), tuple(found.getheaders()))
            finally:
                onward.close()

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            lengths = [v for k, v in answer.headers if k.lower() == "content-length"]
            for key, value in answer.headers:
                if key.lower() not in _HOP:
                    self.send_header(key, value)
            is_head = self.command == "HEAD" and lengths
            self.send_header("Content-Length", lengths[0] if is_head else str(len(answer.content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.content)

        do_GET = do_POST = do_HEAD = do_DELETE = do_PUT = _pass  # noqa: N815  # what the class calls

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{target.path}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
