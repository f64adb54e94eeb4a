"""What a table can be, as types to match on.

Spec: soft-delete, "DROP vs PURGE in the namespace API".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from mooring.identifiers import ObjectId

__all__ = ["TRASH", "DroppedTable", "Exists", "NotFound", "SoftDeleted", "Standing", "TableStatus"]

# What dropped objects are kept under, where they keep an identifier.
TRASH = "__mooring_trash"


@dataclass(frozen=True, slots=True)
class Exists:
    """The table is live."""


@dataclass(frozen=True, slots=True)
class SoftDeleted:
    """The table was dropped and can be undropped."""

    deleted_at_ms: int
    expires_at_ms: int | None


@dataclass(frozen=True, slots=True)
class NotFound:
    """There is no such table: never created, purged, or deregistered."""


TableStatus: TypeAlias = Exists | SoftDeleted | NotFound


@dataclass(frozen=True, slots=True)
class Standing:
    """What a table or namespace is, in the word of its catalog, and since when it is dropped."""

    state: str
    deleted_at_ms: int | None = None
    ttl_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A table in the trash."""

    id: ObjectId
    deleted_at_ms: int
    expires_at_ms: int | None

    def is_expired(self, now_ms: int) -> bool:
        """Whether its time in the trash is over."""
        return self.expires_at_ms is not None and self.expires_at_ms <= now_ms
