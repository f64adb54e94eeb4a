"""The threads that requests are worked on in, and how many may wait for one.

The catalog is synchronous. What reads or writes rows has threads of its own, so that no number of
huge queries keeps anybody from looking a table up. Beyond a bound requests are refused at once,
before anything was done: a client that comes back later is better off than one in a long queue.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from mooring.errors import ServiceUnavailableError, ThrottledError, UnknownOutcomeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mooring.server.settings import ServerSettings

__all__ = ["Lane", "Workers"]

T = TypeVar("T")


class Lane(StrEnum):
    """Which threads work on a request."""

    CATALOG = "catalog"
    DATA = "data"


class Workers:
    """The threads of a server."""

    def __init__(self, settings: ServerSettings) -> None:
        """Have as many as the settings say."""
        self._sizes = {Lane.CATALOG: settings.catalog_threads, Lane.DATA: settings.data_threads}
        self._most_waiting = settings.most_waiting
        self._timeout_s = settings.request_timeout_s
        self._under_way = dict.fromkeys(Lane, 0)
        self._threads = {
            lane: ThreadPoolExecutor(size, f"mooring-{lane}") for lane, size in self._sizes.items()
        }

    @property
    def under_way(self) -> Mapping[Lane, int]:
        """How many requests are worked on or wait."""
        return dict(self._under_way)

    async def run(self, lane: Lane, work: Callable[[], T], *, changes: bool = False) -> T:
        """Have a thread do something; what was begun is finished whoever hangs up.

        Args:
            lane: Which threads.
            work: What to do.
            changes: Whether it changes something, so that nobody knows what came of it where it
                takes too long.

        Raises:
            ThrottledError: too many wait already; nothing was done.
            ServiceUnavailableError: it takes too long.
            UnknownOutcomeError: it takes too long, and may change something.
        """
        if self._under_way[lane] >= self._sizes[lane] + self._most_waiting:
            raise ThrottledError("the server has too much to do already: try again in a second")
        self._under_way[lane] += 1
        try:
            future = asyncio.get_running_loop().run_in_executor(self._threads[lane], work)
        except BaseException:
            self._under_way[lane] -= 1
            raise
        future.add_done_callback(lambda _: self._finish(lane))
        try:
            async with asyncio.timeout(self._timeout_s):
                return await asyncio.shield(future)
        except TimeoutError as exc:
            if future.done():  # it is the work's own
                raise
            raise self._too_long(changes=changes) from exc

    def _finish(self, lane: Lane) -> None:
        self._under_way[lane] -= 1

    def _too_long(self, *, changes: bool) -> ServiceUnavailableError:
        took = f"this takes longer than {self._timeout_s:g} s, and goes on"
        if changes:
            return UnknownOutcomeError(f"{took}: look what came of it before you ask again")
        return ServiceUnavailableError(f"{took}: ask for less")

    def close(self) -> None:
        """Wait until everything is finished that was begun."""
        for threads in self._threads.values():
            threads.shutdown(wait=True)
