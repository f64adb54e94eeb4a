"""What made a version, in words and as a mark: its shape tells it, and its colour."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["OTHER", "PLAIN", "Mark", "mark_of"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A kind of operation.

    Attributes:
        word: What was done, for people.
        tone: The class of its colour.
        outline: Its shape around the origin, as the path of a drawing.
    """

    word: str
    tone: str
    outline: str


_CIRCLE = "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0-12 0z"
_RING = _CIRCLE + "M-3 0a3 3 0 1 1 6 0a3 3 0 1 1-6 0z"
_SQUARE = "M-5.5-5.5h11v11h-11z"
_DIAMOND = "M0-7.5l7.5 7.5l-7.5 7.5l-7.5-7.5z"
_UP = "M0-7l7 12.5h-14z"
_DOWN = "M0 7l-7-12.5h14z"
_HEXAGON = "M-3.5-6.5h7l3.7 6.5l-3.7 6.5h-7l-3.7-6.5z"
_CROSS = "M-2.2-7h4.4v4.8h4.8v4.4h-4.8v4.8h-4.4v-4.8h-4.8v-4.4h4.8z"
_BAR = "M-2-7h4v14h-4z"

# One that nobody looked into, as there are many.
PLAIN = Mark("not looked into", "plain", "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z")
OTHER = Mark("other", "tone-6", _BAR)

_CREATED = Mark("created", "tone-1", _SQUARE)
_ADDED = Mark("rows added", "tone-4", _CIRCLE)
_UPDATED = Mark("rows updated", "tone-1", _DIAMOND)
_DELETED = Mark("rows deleted", "tone-5", _DOWN)
_REPLACED = Mark("written anew", "tone-2", _SQUARE)
_COLUMNS = Mark("columns changed", "tone-3", _CROSS)
_INDEXED = Mark("indexed", "tone-3", _UP)
_COMPACTED = Mark("compacted", "tone-6", _HEXAGON)
_RESTORED = Mark("restored", "tone-2", _RING)
_BRANCHED = Mark("branched", "tone-6", _RING)
_SETTINGS = Mark("settings changed", "tone-6", _BAR)
_UPSERTED = Mark("rows upserted", "tone-1", _DIAMOND)

# By the words of Lance, and by those of change tables.
_MARKS = {
    "Append": _ADDED,
    "Update": _UPDATED,
    "Delete": _DELETED,
    "Overwrite": _REPLACED,
    "Merge": _COLUMNS,
    "Project": _COLUMNS,
    "DataReplacement": _COLUMNS,
    "CreateIndex": _INDEXED,
    "Rewrite": _COMPACTED,
    "ReserveFragments": Mark("compaction prepared", "tone-6", _BAR),
    "Restore": _RESTORED,
    "Clone": _BRANCHED,
    "UpdateConfig": _SETTINGS,
    "UpdateBases": _SETTINGS,
    "append": _ADDED,
    "upsert": _UPSERTED,
    "delete": _DELETED,
    "replacement": _REPLACED,
    "compaction": _COMPACTED,
}


def mark_of(operation: str, version: int = 0) -> Mark:
    """Return the mark of an operation.

    Args:
        operation: In the words of whoever did it.
        version: Which version it made: the first one is the table's creation.
    """
    if version == 1 and operation == "Overwrite":
        return _CREATED
    return _MARKS.get(operation, OTHER)
