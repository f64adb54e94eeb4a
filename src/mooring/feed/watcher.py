"""Watching a catalog: one look a poll, and what changed since the one before.

A look tells what is, so that it does not matter who made a change, or how. A poll of a catalog in
which nothing changed costs what its stamp costs: one listing of a manifest or of a directory, one
request to a metastore.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from mooring.clock import RandomIds, SystemClock
from mooring.feed.comparison import compare
from mooring.feed.event import reset
from mooring.feed.look import Look
from mooring.feed.looking import looker_of
from mooring.feed.ring import Ring
from mooring.identifiers import ROOT

if TYPE_CHECKING:
    from mooring.clock import Clock, IdSource
    from mooring.feed.event import Cursor, Event
    from mooring.namespace.api import Backend

__all__ = ["Watcher"]

_KEPT = 10_000
_EPOCH_DIGITS = 12
# Whoever changes a catalog all the time must not keep others from hearing of it.
_LOOKS = 3


class Watcher:
    """Tells what changes in a catalog; safe for threads."""

    def __init__(
        self,
        backend: Backend,
        *,
        from_nothing: bool = False,
        kept: int = _KEPT,
        clock: Clock | None = None,
        ids: IdSource | None = None,
    ) -> None:
        """Watch a catalog; the first poll is what later ones are compared with.

        Args:
            backend: The catalog.
            from_nothing: Compare the first look with an empty catalog: it tells all there is.
            kept: How many events to keep for those who come back.
            clock: Stamps events.
            ids: Tells this watcher from others.

        Raises:
            MooringError: a server does not say what it is.
        """
        self._looker = looker_of(backend)
        self._clock = clock or SystemClock()
        self._ring = Ring((ids or RandomIds()).new_id()[:_EPOCH_DIGITS], kept)
        self._stamp: object = None
        self._last: Look | None = Look({ROOT: None}) if from_nothing else None
        self._polling = threading.Lock()

    @property
    def cursor(self) -> Cursor:
        """Where the events end that were seen so far."""
        return self._ring.cursor

    @property
    def has_looked(self) -> bool:
        """Whether there is something to compare with."""
        return self._last is not None

    def poll(self) -> list[Event]:
        """Look once, and tell what happened since the last time; as a rule nothing the first time.

        What fails leaves everything as it was: the next poll tells it.

        Raises:
            MooringError: the catalog cannot be read.
        """
        with self._polling:
            stamp = self._looker.stamp()
            is_same = self._looker.is_decisive and stamp == self._stamp
            if self._last is not None and is_same:
                return []
            stamp, found = self._look(stamp)
            events = self._compare(found)
            # Only now: what fails before is told by the next poll.
            self._last, self._stamp = found, stamp
            return self._ring.add(events)

    def _compare(self, found: Look) -> list[Event]:
        before = self._last
        if before is None:
            return []
        events = compare(before, found, self._clock.now_ms())
        return self._looker.refine(events, before) if events else []

    def _look(self, stamp: object) -> tuple[object, Look]:
        """Look at one moment: where something changed meanwhile, look again."""
        for _ in range(_LOOKS - 1):
            found = self._looker.look()
            now = self._looker.stamp()
            if now == stamp:
                return now, found
            stamp = now
        # The older stamp: what comes with a newer one is looked at by the next poll.
        return stamp, self._looker.look()

    def since(self, cursor: Cursor) -> list[Event]:
        """Return the events after a place; where some are missing, one that says so."""
        found = self._ring.since(cursor)
        return [reset(self._clock.now_ms(), self.cursor)] if found is None else found

    def newest(self) -> list[Event]:
        """Return the events that are kept, the newest first."""
        return self._ring.newest()
