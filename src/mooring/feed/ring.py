"""The newest events of a watcher, for those who come back."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from mooring.feed.event import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mooring.feed.event import Event

__all__ = ["Ring"]


class Ring:
    """Keeps so many events; safe for threads."""

    def __init__(self, epoch: str, size: int) -> None:
        """Keep nothing yet.

        Args:
            epoch: Tells these events from those of others.
            size: How many to keep.
        """
        self._epoch = epoch
        self._number = 0
        self._kept: deque[Event] = deque(maxlen=size)
        self._guard = threading.Lock()

    @property
    def cursor(self) -> Cursor:
        """Where the events end."""
        return Cursor(self._epoch, self._number)

    def add(self, events: Iterable[Event]) -> list[Event]:
        """Give events their places, and keep them."""
        with self._guard:
            placed = []
            for event in events:
                self._number += 1
                placed.append(replace(event, cursor=self.cursor))
            self._kept.extend(placed)
            return placed

    def since(self, cursor: Cursor) -> list[Event] | None:
        """Return the events after a place; None where that cannot be told any more."""
        with self._guard:
            behind = self._number - cursor.number
            if cursor.epoch != self._epoch or not 0 <= behind <= len(self._kept):
                return None
            return list(islice(self._kept, len(self._kept) - behind, None))

    def newest(self) -> list[Event]:
        """Return the events that are kept, the newest first."""
        with self._guard:
            return list(reversed(self._kept))
