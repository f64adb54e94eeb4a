"""Names that begin and end within a transaction, and the mapping files that tell them.

A mapping file lies in a directory named by the digest of all names down to its object. Where the
name of a namespace changes, those of what lies below follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import ConflictError
from mooring.identifiers import quote
from mooring.metastore.entry import NameChange, Remapped
from mooring.metastore.keys import name_key
from mooring.metastore.layout import Operation
from mooring.metastore.locator import Kind, Locator

if TYPE_CHECKING:
    from mooring.metastore.dialect import Dialect
    from mooring.metastore.draft import Draft
    from mooring.metastore.timeline import Ids, Parts

__all__ = ["Naming", "taken"]


class Naming:
    """The names of a transaction's draft.

    Attributes:
        remapped: Mapping files that follow the name of what is above.
    """

    def __init__(self, draft: Draft, dialect: Dialect) -> None:
        """Work on a draft, in the words of a layout."""
        self._draft = draft
        self._dialect = dialect
        self.remapped: list[Remapped] = []
        self._mapped: dict[tuple[Ids, str], int] = {}

    def begin(self, ids: Ids, locator: Locator, *, is_alias: bool = False) -> NameChange:
        """Let a name mean an object from now on."""
        self._draft.names[ids[:-1], locator.parts] = ids
        return self._map(ids[:-1], locator, Operation.CREATE, is_alias=is_alias)

    def end(self, ids: Ids, locator: Locator) -> NameChange:
        """Let a name of an object mean nothing from now on."""
        self._draft.names[ids[:-1], locator.parts] = None
        return self._map(ids[:-1], locator, Operation.DELETE, is_alias=False)

    def end_all(self, ids: Ids) -> tuple[NameChange, ...]:
        """End every name and alias of an object."""
        above = self._draft.locate(ids[:-1])
        alive = self._draft.names_of(ids)
        return tuple(self.end(ids, Locator((*above.levels, parts))) for parts in alive)

    def follow(self, ids: Ids, before: list[Parts], after: list[Parts]) -> tuple[NameChange, ...]:
        """Begin and end the names that an object has on account of what it is.

        Raises:
            ConflictError: another object has one of them.
        """
        draft = self._draft
        parent, above = ids[:-1], draft.locate(ids[:-1])
        names = [
            self.end(ids, Locator((*above.levels, parts)))
            for parts in before
            if parts not in after and draft.resolve(parent, parts) == ids
        ]
        for parts in after:
            alias = Locator((*above.levels, parts))
            means = draft.resolve(parent, parts)
            if means == ids:
                continue
            if means is not None and draft.look(means) is not None:
                raise taken(alias)
            names.append(self.begin(ids, alias, is_alias=True))
        return tuple(names)

    # -- what lies below -------------------------------------------------------------------------

    def locate_below(self, ids: Ids) -> dict[Ids, Locator]:
        """Note the names of what lies below an object and is found by a name."""
        if Kind.at(len(ids)) is not Kind.NAMESPACE:
            return {}
        # Also which there are is noted: one that comes meanwhile would be mapped by the old name.
        below = self._draft.look_below(ids)
        return {child.ids: self._draft.locate(child.ids) for child in below}

    def remap(self, before: dict[Ids, Locator]) -> None:
        """Follow with the mapping files of children, whose canonical strings hold the name."""
        for child, old in before.items():
            new = self._draft.locate(child)
            was, becomes = (self._dialect.digest(one) for one in (old, new))
            if was == becomes:
                continue
            for digest, operation in ((was, Operation.DELETE), (becomes, Operation.CREATE)):
                revision = self._next_mapping(child[:-1], digest)
                self.remapped.append(Remapped(child, digest, operation, revision))

    # -- mapping files ---------------------------------------------------------------------------

    def _map(
        self, parent: Ids, locator: Locator, operation: Operation, *, is_alias: bool
    ) -> NameChange:
        self._draft.writes.add(name_key(parent, locator.parts))
        digest = self._dialect.digest(locator)
        revision = self._next_mapping(parent, digest)
        return NameChange(digest, locator.parts, operation, revision, is_alias)

    def _next_mapping(self, parent: Ids, digest: str) -> int:
        """Number a mapping file: a name may begin and end more than once in a transaction."""
        known = self._draft.timeline.mapping_revision(parent, digest)
        found = max(known, self._mapped.get((parent, digest), 0)) + 1
        self._mapped[parent, digest] = found
        return found


def taken(locator: Locator) -> ConflictError:
    """Word that a name means another object already."""
    return ConflictError(f"there is a {locator.kind.value} {quote(str(locator))} already")
