"""The changes of served catalogs, for any number who want to know.

One poll at a time looks at a catalog, for all who listen to it and only while somebody does. What
it finds is put into a queue of each: nobody who reads slowly keeps another waiting, and nobody has
a thread.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from contextvars import Context
from typing import TYPE_CHECKING, Protocol

from mooring.feed.watcher import Watcher
from mooring.server.catalogs import MooringCatalog
from mooring.server.work import Lane

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mooring.feed.event import Event
    from mooring.server.background_settings import BackgroundSettings
    from mooring.server.catalogs import Served
    from mooring.server.service import Service
    from mooring.server.work import Workers

__all__ = ["Feed", "Feeds", "Listener", "Subscriber", "Told", "frame_of"]

logger = logging.getLogger(__name__)

# A look takes at most this part of the time, however large the catalog.
_LARGEST_PART = 0.1
_SLOWER = 1.5

Told = tuple["Event", bytes]


class Subscriber(Protocol):
    """Hears of events; called in the loop, so that it must not wait."""

    def offer(self, told: Sequence[Told]) -> None:
        """Hear of events, each with the text of it for a stream."""
        ...

    def end(self) -> None:
        """Hear that there will be no more."""
        ...


class Feed:
    """The changes of one catalog.

    Attributes:
        polls: How often the catalog was looked at.
        failures: How often that failed.
        events: How many changes were seen.
    """

    def __init__(self, workers: Workers, served: Served, settings: BackgroundSettings) -> None:
        """Watch a catalog once somebody wants to know.

        Args:
            workers: Look.
            served: The catalog.
            settings: How often.
        """
        self._workers = workers
        self._served = served
        self._settings = settings
        self._subscribers: set[Subscriber] = set()
        self._watcher: Watcher | None = None
        self._task: asyncio.Task[None] | None = None
        self._beginning = asyncio.Lock()
        self._is_closed = False
        self.polls = self.failures = self.events = 0

    @property
    def name(self) -> str:
        """The catalog's."""
        return self._served.name

    @property
    def is_possible(self) -> bool:
        """Whether the catalog can be watched: others than Mooring's cannot."""
        return isinstance(self._served, MooringCatalog)

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._subscribers)

    @property
    def watcher(self) -> Watcher | None:
        """What was seen so far; None before anybody listened."""
        return self._watcher

    async def begin(self) -> Watcher:
        """Look at the catalog as it is now, unless somebody does so all the time.

        Raises:
            UnsupportedError: it is no catalog of Mooring's.
            MooringError: it cannot be read.
        """
        async with self._beginning:  # of those who come together, the first looks for all
            watcher = self._watcher
            if watcher is not None and self._task is not None and not self._task.done():
                return watcher
            self._watcher = watcher = await self._workers.run(Lane.CATALOG, self._look)
            return watcher

    def _look(self) -> Watcher:
        kept = self._settings.kept_events
        watcher = self._watcher or Watcher(self._served.backend(), kept=kept)
        watcher.poll()
        return watcher

    def subscribe(self, subscriber: Subscriber) -> None:
        """Have somebody hear of all events from now on."""
        if self._is_closed:
            subscriber.end()
            return
        self._subscribers.add(subscriber)
        if self._task is None or self._task.done():
            # Not in the name of whoever happened to come first.
            self._task = asyncio.create_task(self._run(), context=Context())

    def leave(self, subscriber: Subscriber) -> None:
        """Have somebody hear no more."""
        self._subscribers.discard(subscriber)

    async def _run(self) -> None:
        pause_s = self._settings.poll_s
        while True:
            await asyncio.sleep(pause_s)
            if not self._subscribers:
                return
            began_s = time.monotonic()
            found = await self._poll()
            took_s = time.monotonic() - began_s
            slower_s = min(pause_s * _SLOWER, self._settings.idle_poll_s)
            wanted_s = self._settings.poll_s if found else slower_s
            pause_s = max(wanted_s, took_s / _LARGEST_PART)

    async def _poll(self) -> bool:
        """Look once, and tell everybody what changed; tell whether something did."""
        watcher = self._watcher
        if watcher is None:
            return False
        self.polls += 1
        try:
            events = await self._workers.run(Lane.CATALOG, watcher.poll, goes_on=True)
        except Exception as exc:  # noqa: BLE001  # a loop of a worker: the next poll tells it all
            self.failures += 1
            logger.warning("catalog %s cannot be watched, which goes on: %s", self.name, exc)
            return False
        self._publish(events)
        return bool(events)

    def _publish(self, events: Iterable[Event]) -> None:
        told = [(event, frame_of(event)) for event in events]
        self.events += len(told)
        if told:
            for subscriber in tuple(self._subscribers):
                subscriber.offer(told)

    def close(self) -> None:
        """Let everybody go."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
        for subscriber in tuple(self._subscribers):
            subscriber.end()


class Feeds:
    """The changes of all catalogs of a server."""

    def __init__(self, service: Service) -> None:
        """Watch none yet."""
        settings = service.settings.background
        self._feeds = {
            served.name: Feed(service.workers, served, settings) for served in service.catalogs
        }

    def of(self, name: str) -> Feed:
        """Return the changes of a catalog."""
        return self._feeds[name]

    @property
    def all(self) -> Sequence[Feed]:
        """The changes of each catalog."""
        return list(self._feeds.values())

    def close(self) -> None:
        """Let everybody go who listens, so that the server can end."""
        for feed in self._feeds.values():
            feed.close()


class Listener:
    """One who listens, with what waits for it."""

    def __init__(self, most_waiting: int, after: int) -> None:
        """Hear of what comes after a number.

        Args:
            most_waiting: How many events may wait.
            after: The number of the last event that it knows.
        """
        self._most_waiting = most_waiting
        self._after = after
        self._waiting: deque[Told] = deque()
        self._woken = asyncio.Event()
        self.has_ended = False
        self.is_lost = False

    def offer(self, told: Sequence[Told]) -> None:
        """Let events wait; where they are too many, forget all of them."""
        fresh = [one for one in told if one[0].cursor and one[0].cursor.number > self._after]
        self._waiting.extend(fresh)
        if len(self._waiting) > self._most_waiting:
            self._waiting.clear()
            self.is_lost = True
        self._woken.set()

    def end(self) -> None:
        """Tell no more."""
        self.has_ended = True
        self._woken.set()

    async def take(self, timeout_s: float) -> list[Told]:
        """Return what waits, or nothing where that takes too long."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            return []
        self._woken.clear()
        taken = list(self._waiting)
        self._waiting.clear()
        return taken


def frame_of(event: Event) -> bytes:
    """Write an event as a stream has it."""
    lines = f"id: {event.cursor}\nevent: {event.kind.value}\n".encode()
    return lines + b"data: " + event.encode() + b"\n\n"
