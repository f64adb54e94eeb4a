"""The threads that requests are worked on in, and how many may wait for one.

The catalog is synchronous. What reads or writes rows has threads of its own, so that no number of
huge queries keeps anybody from looking a table up. Beyond a bound requests are refused at once,
before anything was done: a client that comes back later is better off than one in a long queue.
Nobody who has a name gets more than half of the places, so that some are left for others.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from mooring.errors import ServiceUnavailableError, ThrottledError, UnknownOutcomeError
from mooring.server.asked import current_subject
from mooring.server.bundles import Bundles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mooring.server.settings import ServerSettings

__all__ = ["Lane", "WorkWatcher", "Workers"]

# Changes mostly wait for a commit, and the more of them do the more it holds.
_CHANGES_A_LOOK = 4

T = TypeVar("T")


class Lane(StrEnum):
    """Which threads work on a request."""

    CATALOG = "catalog"
    CHANGES = "changes"  # of the catalog; those that wait at once share a commit
    DATA = "data"
    UPLOAD = "upload"  # rows that are written while they come, as slowly as their client sends


class WorkWatcher(Protocol):
    """Hears how much there is to do."""

    def show_work(self, lane: Lane, working: int, waiting: int) -> None:
        """Hear what a lane has to do."""
        ...

    def count_refused(self, lane: Lane) -> None:
        """Hear of a request that a lane had no place for."""
        ...


class Workers:
    """The threads of a server."""

    def __init__(self, settings: ServerSettings, watcher: WorkWatcher | None = None) -> None:
        """Have as many as the settings say.

        Args:
            settings: How many, and how many may wait.
            watcher: Hears how much there is to do.
        """
        self._sizes = {
            Lane.CATALOG: settings.catalog_threads,
            Lane.CHANGES: settings.catalog_threads * _CHANGES_A_LOOK,
            Lane.DATA: settings.data_threads,
            Lane.UPLOAD: settings.data_threads,
        }
        self._most_waiting = settings.most_waiting
        self._timeout_s = settings.request_timeout_s
        self._watcher = watcher
        self._under_way = dict.fromkeys(Lane, 0)
        self._by_client: Counter[tuple[Lane, str]] = Counter()
        self._threads = {
            lane: ThreadPoolExecutor(size, f"mooring-{lane}") for lane, size in self._sizes.items()
        }
        self._looks = Bundles(self._threads[Lane.CATALOG])

    @property
    def under_way(self) -> Mapping[Lane, int]:
        """How many requests are worked on or wait."""
        return dict(self._under_way)

    async def run(
        self,
        lane: Lane,
        work: Callable[[], T],
        *,
        changes: bool = False,
        goes_on: bool = False,
        has_time: bool = False,
    ) -> T:
        """Have a thread do something; what was begun is finished whoever hangs up.

        Args:
            lane: Which threads; changes of the catalog have some of their own.
            work: What to do.
            changes: Whether it changes something, so that nobody knows what came of it where it
                takes too long.
            goes_on: Whether it is a step of what was begun before, which is never refused.
            has_time: Whether it may take as long as it takes, as whoever asks looks at the time.

        Raises:
            ThrottledError: too many wait already; nothing was done.
            ServiceUnavailableError: it takes too long.
            UnknownOutcomeError: it takes too long, and may change something.
        """
        lane = Lane.CHANGES if changes and lane is Lane.CATALOG else lane
        client = current_subject()
        if not goes_on:
            self._require_place(lane, client)
        self._count(lane, client, 1)
        future = self._begin(lane, work)

        def finish(done: asyncio.Future[T]) -> None:
            self._count(lane, client, -1)
            if not done.cancelled():
                done.exception()  # nobody may be left who wants to know

        future.add_done_callback(finish)
        # Neither a time that is over nor whoever hangs up ends what was begun.
        done, _ = await asyncio.wait((future,), timeout=None if has_time else self._timeout_s)
        if not done:
            raise self._too_long(changes=changes)
        return future.result()

    def _begin(self, lane: Lane, work: Callable[[], T]) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        # Logs and spans of the thread belong to the request.
        within = partial(copy_context().run, work)
        if lane is Lane.CATALOG:
            return self._looks.add(loop, within)
        return loop.run_in_executor(self._threads[lane], within)

    def _require_place(self, lane: Lane, client: str | None) -> None:
        """Refuse what there is no place for.

        Raises:
            ThrottledError: always then.
        """
        places = self._sizes[lane] + self._most_waiting
        is_full = self._under_way[lane] >= places
        has_too_many = client is not None and self._by_client[lane, client] >= max(1, places // 2)
        if not (is_full or has_too_many):
            return
        if self._watcher is not None:
            self._watcher.count_refused(lane)
        who = "the server has" if is_full else f"'{client}' gave the server"
        raise ThrottledError(f"{who} too much to do already: try again in a second")

    def _count(self, lane: Lane, client: str | None, more: int) -> None:
        self._under_way[lane] += more
        if client is not None:
            self._by_client[lane, client] += more
            if not self._by_client[lane, client]:
                del self._by_client[lane, client]
        if self._watcher is not None:
            working = min(self._under_way[lane], self._sizes[lane])
            self._watcher.show_work(lane, working, self._under_way[lane] - working)

    def _too_long(self, *, changes: bool) -> ServiceUnavailableError:
        took = f"this takes longer than {self._timeout_s:g} s, and goes on"
        if changes:
            return UnknownOutcomeError(f"{took}: look what came of it before you ask again")
        return ServiceUnavailableError(f"{took}: ask for less")

    def close(self) -> None:
        """Wait until everything is finished that was begun; what only waited is left undone."""
        for threads in self._threads.values():
            threads.shutdown(wait=True, cancel_futures=True)
