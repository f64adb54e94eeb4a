"""What one look at a catalog shows, and how to look."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.feed.event import Event
    from mooring.identifiers import ObjectId

__all__ = ["Look", "Looker", "SeenDrop", "SeenTable"]


@dataclass(frozen=True, slots=True)
class SeenTable:
    """A live table.

    Attributes:
        location: Where it lies, as the catalog keeps it; None where only a request for it tells.
        properties: What the catalog keeps with it; None where only a request for it tells.
        version: Its newest version; None where it has none, or the catalog does not keep it.
        mark: The number of the newest decision about it, where there are decisions.
    """

    location: str | None = None
    properties: Mapping[str, str] | None = None
    version: int | None = None
    mark: int | None = None


@dataclass(frozen=True, slots=True)
class SeenDrop:
    """A dropped table or namespace that can come back.

    Attributes:
        id: What it was called.
        deleted_at_ms: When it was dropped.
        expires_at_ms: When its time in the trash is over; None for never.
        location: Where it lies; None where the trash does not tell.
        by: Who dropped it; None where the trash does not tell.
    """

    id: ObjectId
    deleted_at_ms: int
    expires_at_ms: int | None = None
    location: str | None = None
    by: str | None = None

    @property
    def key(self) -> tuple[ObjectId, int, str | None]:
        """What tells it from other drops."""
        return self.id, self.deleted_at_ms, self.location


@dataclass(frozen=True, slots=True)
class Look:
    """A catalog at one moment.

    Attributes:
        namespaces: With their properties; None for those that only a request tells.
        tables: Those that are live.
        drops: The tables that can come back.
        namespace_drops: The namespaces that can come back, those that went with another among them.
    """

    namespaces: Mapping[ObjectId, Mapping[str, str] | None] = field(default_factory=dict)
    tables: Mapping[ObjectId, SeenTable] = field(default_factory=dict)
    drops: Sequence[SeenDrop] = ()
    namespace_drops: Sequence[SeenDrop] = ()

    @property
    def dropped_namespaces(self) -> frozenset[ObjectId]:
        """What namespaces that can come back were called."""
        return frozenset(one.id for one in self.namespace_drops)


class Looker(Protocol):
    """Looks at a catalog of one kind."""

    @property
    def is_decisive(self) -> bool:
        """Whether nothing changed where the stamp is the same as before."""
        ...

    def stamp(self) -> object:
        """Return what tells one state from another, by one request if it can.

        Between two that are the same, nothing that a look puts together was moved.
        """
        ...

    def look(self) -> Look:
        """Look at everything, without a request for each table."""
        ...

    def refine(self, events: list[Event], before: Look) -> list[Event]:
        """Tell more of what was seen, or better: a few requests for each event are fine.

        Args:
            events: What is different.
            before: From what.
        """
        ...
