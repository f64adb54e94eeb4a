"""Clients that ask a server over and over, at as little cost of their own as can be.

Each has one connection and asks the next question when it has the answer to the last one.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import uvloop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Load", "ask", "get", "hold_and_ask", "post"]

_END = b"\r\n\r\n"
_LENGTH, _LAST_CHUNK = b"content-length:", b"0\r\n\r\n"
_GOOD = b"HTTP/1.1 2"
_AT_ONCE = 100
_PATIENCE_S = 60.0


@dataclass(frozen=True)
class Load:
    """What came of a load.

    Attributes:
        seconds: How long it went on.
        latencies: Of each answer, in seconds.
        failures: The beginnings of answers that were none of success.
    """

    seconds: float
    latencies: list[float] = field(repr=False)
    failures: list[bytes]

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.latencies) / self.seconds

    @property
    def p99(self) -> float:
        """What 99 of 100 answers took at most."""
        return statistics.quantiles(self.latencies, n=100)[-1]


def get(path: str) -> bytes:
    """Write a question without a body."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n".encode()


def post(path: str, body: bytes) -> bytes:
    """Write a question with a body of JSON."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def ask(port: int, questions: Iterator[bytes], clients: int, seconds: float) -> Load:
    """Have some clients ask a server for a while."""
    return uvloop.run(_ask(port, questions, clients, seconds))


def hold_and_ask(
    port: int, questions: Iterator[bytes], *, held: int, clients: int, seconds: float
) -> tuple[Load, int]:
    """Have some clients ask while many others are connected, who each ask once at the end.

    Returns:
        What came of the load, and how many of the others got no answer.
    """
    return uvloop.run(_hold_and_ask(port, questions, held=held, clients=clients, seconds=seconds))


async def _ask(port: int, questions: Iterator[bytes], clients: int, seconds: float) -> Load:
    connected = [await _connect(port) for _ in range(clients)]
    # Warm, unmeasured: what a server makes ready for a connection.
    await asyncio.gather(*(client.ask(next(questions)) for client in connected))
    failures: list[bytes] = []
    began = time.perf_counter()
    until = began + seconds
    taken = await asyncio.gather(
        *(_ask_until(client, questions, until, failures.append) for client in connected)
    )
    took = time.perf_counter() - began
    for client in connected:
        client.close()
    return Load(took, [one for each in taken for one in each], failures)


async def _hold_and_ask(
    port: int, questions: Iterator[bytes], *, held: int, clients: int, seconds: float
) -> tuple[Load, int]:
    holding: list[_Client] = []
    while len(holding) < held:
        some = min(_AT_ONCE, held - len(holding))
        holding += await asyncio.gather(*(_connect(port) for _ in range(some)))
        await asyncio.gather(*(client.ask(next(questions)) for client in holding[-some:]))
    load = await _ask(port, questions, clients, seconds)
    lost = 0
    # Some at a time: a server may refuse a thousand questions at once, but not their connections.
    for begin in range(0, held, _AT_ONCE):
        answered = await asyncio.gather(
            *(client.ask(next(questions)) for client in holding[begin : begin + _AT_ONCE]),
            return_exceptions=True,
        )
        lost += sum(not (isinstance(one, bytes) and one.startswith(_GOOD)) for one in answered)
    for client in holding:
        client.close()
    return load, lost


async def _ask_until(
    client: _Client, questions: Iterator[bytes], until: float, fail: Callable[[bytes], None]
) -> list[float]:
    latencies = []
    now = time.perf_counter()
    while now < until:
        answer = await client.ask(next(questions))
        began, now = now, time.perf_counter()
        if answer.startswith(_GOOD):
            latencies.append(now - began)
        else:
            fail(answer[:400])
    return latencies


async def _connect(port: int) -> _Client:
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(_Client, "127.0.0.1", port)
    return client


class _Client(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._received = b""
        self._answer: asyncio.Future[bytes] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("the server hung up"))

    def data_received(self, data: bytes) -> None:
        self._received = self._received + data if self._received else data
        if _is_whole(self._received) and self._answer is not None and not self._answer.done():
            answer, self._received = self._received, b""
            self._answer.set_result(answer)

    async def ask(self, question: bytes) -> bytes:
        """Send a question and wait for the answer."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(question)
        return await asyncio.wait_for(self._answer, _PATIENCE_S)

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()


def _is_whole(answer: bytes) -> bool:
    end = answer.find(_END)
    if end < 0:
        return False
    head = answer[:end].lower()
    at = head.find(_LENGTH)
    if at < 0:
        return answer.endswith(_LAST_CHUNK)
    length = int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0])
    return len(answer) >= end + len(_END) + length
