"""A catalog at one moment, put in order for pages: who lies in whom, and how many."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.identifiers import ROOT, ObjectId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mooring.feed.look import Look

__all__ = ["Picture"]


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A catalog at one moment; each is equal to itself alone.

    Attributes:
        look: All that was seen.
        taken_at_ms: When.
        namespaces_in: The names of the namespaces directly in each, sorted.
        tables_in: The names of the tables directly in each, sorted.
        tables_below: How many tables lie in each, at any depth.
        namespaces_below: How many namespaces lie in each, at any depth.
        drops_below: How many dropped tables that can come back lay in each, at any depth.
    """

    look: Look
    taken_at_ms: int
    namespaces_in: Mapping[ObjectId, Sequence[str]]
    tables_in: Mapping[ObjectId, Sequence[str]]
    tables_below: Mapping[ObjectId, int]
    namespaces_below: Mapping[ObjectId, int]
    drops_below: Mapping[ObjectId, int]

    @classmethod
    def of(cls, look: Look, taken_at_ms: int) -> Picture:
        """Put a look in order."""
        namespaces = _children(one for one in look.namespaces if not one.is_root)
        tables = _children(look.tables)
        drops = _children(one.id for one in look.drops)
        return cls(
            look,
            taken_at_ms,
            namespaces,
            tables,
            _below(tables),
            _below(namespaces),
            _below(drops),
        )

    def has_namespace(self, namespace: ObjectId) -> bool:
        """Whether a namespace is there; the root always is."""
        return namespace == ROOT or namespace in self.look.namespaces


def _children(objects: Iterable[ObjectId]) -> dict[ObjectId, list[str]]:
    """Return the sorted names of what lies directly in each namespace."""
    # By plain tuples, which are hashed ten times as fast as identifiers.
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for one in objects:
        names = one.names
        found[names[:-1]].append(names[-1])
    return {ObjectId(around): sorted(names) for around, names in found.items()}


def _below(children: Mapping[ObjectId, Sequence[str]]) -> dict[ObjectId, int]:
    """Count what lies in each namespace at any depth."""
    found: dict[ObjectId, int] = defaultdict(int)
    for around, names in children.items():
        for level in range(around.level + 1):
            found[ObjectId(around.names[:level])] += len(names)
    return dict(found)
