"""The trash in order: what was dropped on its own, and what went with a namespace."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from mooring.identifiers import ROOT, ObjectId

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from mooring.feed.look import SeenDrop
    from mooring.server.ui.atlas.picture import Picture
    from mooring.server.ui.visit import Visit

__all__ = ["Drops", "Moment", "drops_of"]

# A namespace and when it was dropped: what went with it has the same time.
Moment = tuple[ObjectId, int]
# Pictures whose trash is kept in order: the newest of a few catalogs.
_MOST_KEPT = 4


@dataclass(frozen=True, slots=True)
class Drops:
    """What is in the trash.

    Attributes:
        tables: Those that were dropped on their own.
        namespaces: Those that were dropped on their own, with what was in them or without.
        tables_with: The tables that went with each of those.
        namespaces_with: The namespaces that did.
        ends: When the time of each table is over, sorted, those that stay for ever left out.
        moments: All dropped namespaces, with when.
    """

    tables: Sequence[SeenDrop] = ()
    namespaces: Sequence[SeenDrop] = ()
    tables_with: Mapping[Moment, Sequence[SeenDrop]] = field(default_factory=dict)
    namespaces_with: Mapping[Moment, Sequence[SeenDrop]] = field(default_factory=dict)
    ends: Sequence[int] = ()
    moments: Collection[Moment] = ()

    @classmethod
    def of(cls, tables: Sequence[SeenDrop], namespaces: Sequence[SeenDrop]) -> Drops:
        """Put what was dropped in order.

        Args:
            tables: All dropped tables.
            namespaces: All dropped namespaces.
        """
        dropped = {(one.id, one.deleted_at_ms) for one in namespaces}
        alone, together = _split(tables, dropped)
        outer, inner = _split(namespaces, dropped)
        ends = [one.expires_at_ms for one in tables if one.expires_at_ms is not None]
        return cls(alone, outer, together, inner, sorted(ends), dropped)

    @property
    def all_tables(self) -> Iterable[SeenDrop]:
        """The dropped tables, however they were dropped."""
        return chain(self.tables, *self.tables_with.values())

    @property
    def table_count(self) -> int:
        """How many they are."""
        return len(self.tables) + sum(map(len, self.tables_with.values()))

    def count_expired(self, now_ms: int) -> int:
        """Count the tables whose time is over."""
        return bisect_right(self.ends, now_ms)

    def of_table(self, table: ObjectId) -> list[SeenDrop]:
        """Return the drops of a table's name, the newest first."""
        found = [one for one in self.all_tables if one.id == table]
        return sorted(found, key=_when, reverse=True)

    def of_namespace(self, namespace: ObjectId) -> list[SeenDrop]:
        """Return the drops of a namespace's name, the newest first."""
        found = [one for one in self.namespaces if one.id == namespace]
        return sorted(found, key=_when, reverse=True)

    def namespace_of(self, drop: SeenDrop) -> ObjectId | None:
        """Return the namespace that a table or namespace was dropped with, if it was."""
        above = _above(drop, self.moments)
        return None if above is None else above[0]


def drops_of(visit: Visit) -> Drops:
    """Return what of the trash whoever looks may see.

    Raises:
        UnsupportedError: it is no catalog of Mooring's.
    """
    who, catalog = visit.identity, visit.served.name
    picture = visit.atlas.picture()
    if who.role_in(catalog, ROOT):
        return _in_order(picture)

    def sees(one: SeenDrop) -> bool:
        return who.role_in(catalog, one.id) is not None

    look = picture.look
    return Drops.of([*filter(sees, look.drops)], [*filter(sees, look.namespace_drops)])


@lru_cache(_MOST_KEPT)
def _in_order(picture: Picture) -> Drops:
    """Put the whole trash in order, once for a picture: a hundred thousand drops take a while."""
    return Drops.of(picture.look.drops, picture.look.namespace_drops)


def _split(
    drops: Sequence[SeenDrop], dropped: Collection[Moment]
) -> tuple[list[SeenDrop], dict[Moment, list[SeenDrop]]]:
    """Tell what was dropped on its own from what went with a namespace."""
    times = {at_ms for _, at_ms in dropped}
    alone: list[SeenDrop] = []
    together: dict[Moment, list[SeenDrop]] = defaultdict(list)
    for one in drops:
        above = _above(one, dropped) if one.deleted_at_ms in times else None
        (alone if above is None else together[above]).append(one)
    return alone, dict(together)


def _above(drop: SeenDrop, dropped: Collection[Moment]) -> Moment | None:
    """Return the outermost namespace that something was dropped with."""
    for level in range(1, drop.id.level):
        moment = ObjectId(drop.id.names[:level]), drop.deleted_at_ms
        if moment in dropped:
            return moment
    return None


def _when(drop: SeenDrop) -> int:
    return drop.deleted_at_ms
