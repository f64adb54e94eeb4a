"""Looking at a catalog by what every kind can do: walk through its namespaces.

That is a few requests for each namespace, and none for a table; properties and locations stay
unknown. A kind that describes all tables at once is asked for that instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, cast

from mooring.errors import NamespaceNotFoundError, UnsupportedError
from mooring.feed.look import Look, SeenDrop, SeenTable
from mooring.identifiers import ROOT, ObjectId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mooring.feed.event import Event
    from mooring.namespace.api import Backend, TableInfo
    from mooring.namespace.states import Standing

__all__ = ["Described", "Walked"]


class _Describing(Protocol):
    """What tells all namespaces, and all tables, by one request each."""

    def describe_namespaces(self) -> Sequence[tuple[ObjectId, Mapping[str, str]]]: ...

    def describe_tables(self) -> Iterable[TableInfo]: ...

    def dropped_namespaces(self) -> Sequence[tuple[ObjectId, Standing]]: ...


class _Asked(ABC):
    """A catalog of which nothing tells that it changed but a look at it."""

    is_decisive = False  # there is no cheaper request than to look

    def __init__(self, backend: Backend) -> None:
        """Look at a catalog."""
        self._backend = backend
        self._drops: list[SeenDrop] = []

    def stamp(self) -> object:
        """Return what is in the trash, which drops and undrops change."""
        self._drops = _drops(self._backend)
        return self._drops

    @abstractmethod
    def look(self) -> Look:
        """Look at everything."""

    def refine(self, events: list[Event], before: Look) -> list[Event]:
        """Tell no more."""
        del before
        return events


class Walked(_Asked):
    """A catalog that is walked through."""

    def look(self) -> Look:
        """Walk through the namespaces."""
        namespaces: dict[ObjectId, Mapping[str, str] | None] = {ROOT: None}
        tables: dict[ObjectId, SeenTable] = {}
        waiting = [ROOT]
        while waiting:
            around = waiting.pop()
            # What is dropped meanwhile is gone.
            with suppress(NamespaceNotFoundError):
                below = [around.child(name) for name in self._namespaces_in(around)]
                names = self._backend.list_tables(around)
                tables |= {around.child(name): SeenTable() for name in names}
                namespaces |= dict.fromkeys(below)
                waiting += below
        return Look(namespaces, tables, self._drops)

    def _namespaces_in(self, around: ObjectId) -> list[str]:
        try:
            return self._backend.list_namespaces(around)
        except UnsupportedError:
            return []  # one level of namespaces is all that some servers have


class Described(_Asked):
    """A catalog that describes all of its tables at once."""

    def look(self) -> Look:
        """Ask for all namespaces, all tables and the trash."""
        backend = cast("_Describing", self._backend)
        tables = {
            info.id: SeenTable(info.location, dict(info.properties))
            for info in backend.describe_tables()
        }
        dropped = [_gone(one, standing) for one, standing in backend.dropped_namespaces()]
        return Look(dict(backend.describe_namespaces()), tables, self._drops, dropped)


def _drops(backend: Backend) -> list[SeenDrop]:
    try:
        trash = backend.list_purgable_tables()
    except UnsupportedError:
        return []
    return [SeenDrop(one.id, one.deleted_at_ms, one.expires_at_ms) for one in trash]


def _gone(namespace: ObjectId, standing: Standing) -> SeenDrop:
    at_ms, ttl_ms = standing.deleted_at_ms or 0, standing.ttl_ms
    return SeenDrop(namespace, at_ms, None if ttl_ms is None else at_ms + ttl_ms)
