"""What changes in a catalog, whoever changes it: one look after another, and what differs."""

from mooring.feed.event import Cursor, Event, Kind
from mooring.feed.watcher import Watcher

__all__ = ["Cursor", "Event", "Kind", "Watcher"]
