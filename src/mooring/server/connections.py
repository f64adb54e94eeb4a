"""Connections that are not held open or filled by somebody who never finishes a request.

The HTTP protocol of uvicorn bounds bodies by what the application reads, and nothing before them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["limited_to"]

_TOO_LARGE = b"431 Request Header Fields Too Large"
_TOO_SLOW = b"408 Request Timeout"


def limited_to(head_bytes: int, head_s: float) -> type[HttpToolsProtocol]:
    """Return a protocol whose requests have limits.

    Args:
        head_bytes: How long the first line and the headers may be.
        head_s: How long they may take to come.
    """
    return type("Limited", (_Limited,), {"head_bytes": head_bytes, "head_s": head_s})


class _Limited(HttpToolsProtocol):
    """One connection."""

    head_bytes: ClassVar[int]
    head_s: ClassVar[float]
    _timer: asyncio.TimerHandle | None = None
    _size = 0
    _is_in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the original does
        super().connection_made(transport)
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_in_head and not self.transport.is_closing():
            self._size += len(data)
            if self._size > self.head_bytes:
                self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._size, self._is_in_head = 0, True
        if self._timer is None:
            self._arm()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._disarm()
        super().on_headers_complete()

    def _arm(self) -> None:
        self._timer = self.loop.call_later(self.head_s, self._refuse, _TOO_SLOW)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: bytes) -> None:
        self._disarm()
        if self.transport.is_closing():
            return
        # Before the first request there is none.
        if getattr(self.cycle, "response_complete", True):
            head = b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            self.transport.write(head % status)
        self.transport.close()
