"""A catalog at one moment, put in order for pages: who lies in whom, and how many."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.identifiers import ROOT, ObjectId

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.feed.look import Look

__all__ = ["Picture"]


@dataclass(frozen=True, slots=True)
class Picture:
    """A catalog at one moment.

    Attributes:
        look: All that was seen.
        taken_at_ms: When.
        namespaces_in: The names of the namespaces directly in each, sorted.
        tables_in: The names of the tables directly in each, sorted.
        tables_below: How many tables lie in each, at any depth.
    """

    look: Look
    taken_at_ms: int
    namespaces_in: Mapping[ObjectId, Sequence[str]]
    tables_in: Mapping[ObjectId, Sequence[str]]
    tables_below: Mapping[ObjectId, int]

    @classmethod
    def of(cls, look: Look, taken_at_ms: int) -> Picture:
        """Put a look in order."""
        namespaces: dict[ObjectId, list[str]] = defaultdict(list)
        tables: dict[ObjectId, list[str]] = defaultdict(list)
        for one in look.namespaces:
            if not one.is_root:
                namespaces[one.parent].append(one.name)
        for one in look.tables:
            tables[one.parent].append(one.name)
        below: dict[ObjectId, int] = defaultdict(int)
        for around, names in tables.items():
            for level in range(around.level + 1):
                below[ObjectId(around.names[:level])] += len(names)
        return cls(
            look,
            taken_at_ms,
            {around: sorted(names) for around, names in namespaces.items()},
            {around: sorted(names) for around, names in tables.items()},
            dict(below),
        )

    def has_namespace(self, namespace: ObjectId) -> bool:
        """Whether a namespace is there; the root always is."""
        return namespace == ROOT or namespace in self.look.namespaces
