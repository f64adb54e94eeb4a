"""What of a catalog somebody may read, without a question about each of its tables.

A role holds in a namespace and all that lies in it, so that what is readable are a few whole parts
of a catalog; what lies around them only leads there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from mooring.identifiers import ROOT, ObjectId

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.server.roles import Identity
    from mooring.server.ui.atlas.picture import Picture

__all__ = ["Sight"]


@dataclass(frozen=True)
class Sight:
    """A picture as somebody may see it.

    Attributes:
        picture: All of the catalog.
        parts: The namespaces, or single tables, that can be read with all in them.
    """

    picture: Picture
    parts: Sequence[ObjectId]

    @classmethod
    def of(cls, picture: Picture, identity: Identity, catalog: str) -> Sight:
        """Return what somebody may see."""
        held = sorted({one.namespace for one in identity.grants if one.holds_in(catalog)})
        parts: list[ObjectId] = []
        for one in held:
            # Sorted, what lies in a part comes right after it.
            if not parts or not _is_within(one, parts[-1]):
                parts.append(one)
        return cls(picture, parts)

    def reads(self, one: ObjectId) -> bool:
        """Whether an object can be read."""
        return any(_is_within(one, part) for part in self.parts)

    def sees(self, namespace: ObjectId) -> bool:
        """Whether a namespace can be read, or leads to what can."""
        return self.reads(namespace) or bool(self._inside(namespace))

    def namespaces_in(self, around: ObjectId) -> Sequence[str]:
        """Return the names of the namespaces to show in another, sorted."""
        names = self.picture.namespaces_in.get(around, ())
        if not names or self.reads(around):
            return names
        # Those that lead further: what is not there is not shown, whatever a role is given in.
        wanted = {part.names[around.level] for part in self._inside(around)}
        return [name for name in names if name in wanted]

    def tables_in(self, around: ObjectId) -> Sequence[str]:
        """Return the names of the tables to show in a namespace, sorted."""
        names = self.picture.tables_in.get(around, ())
        if not names or self.reads(around):
            return names
        wanted = {part.name for part in self._inside(around) if part.parent == around}
        return [name for name in names if name in wanted]

    def count_tables(self, around: ObjectId = ROOT) -> int:
        """Count the tables in a namespace that can be read, at any depth."""
        alone = sum(one in self.picture.look.tables for one in self._inside(around))
        return self._count(self.picture.tables_below, around) + alone

    def count_namespaces(self, around: ObjectId = ROOT) -> int:
        """Count the namespaces in another that can be read, at any depth."""
        alone = sum(one in self.picture.look.namespaces for one in self._inside(around))
        return self._count(self.picture.namespaces_below, around) + alone

    def count_drops(self, around: ObjectId = ROOT) -> int:
        """Count the dropped tables that lay in a namespace and can be read, at any depth."""
        return self._count(self.picture.drops_below, around)

    @cached_property
    def is_whole(self) -> bool:
        """Whether everything can be read."""
        return self.reads(ROOT)

    def _count(self, below: Mapping[ObjectId, int], around: ObjectId) -> int:
        if self.reads(around):
            return below.get(around, 0)
        return sum(below.get(part, 0) for part in self._inside(around))

    def _inside(self, around: ObjectId) -> list[ObjectId]:
        """Return the parts that lie in a namespace which cannot be read itself."""
        if self.reads(around):
            return []
        return [part for part in self.parts if _is_within(part, around)]


def _is_within(one: ObjectId, part: ObjectId) -> bool:
    return one.names[: part.level] == part.names
