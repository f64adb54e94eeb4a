"""What somebody may do: a role, in a catalog or a part of one.

Nothing is allowed that no grant allows. A role holds in a namespace and in all that lies in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from mooring.errors import PermissionDeniedError
from mooring.identifiers import ROOT, ObjectId, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ANYBODY", "NOBODY", "Grant", "Identity", "Role"]


class Role(StrEnum):
    """What somebody may do; each may also do what those before it may."""

    READER = "reader"
    WRITER = "writer"
    ADMIN = "admin"

    def includes(self, other: Role) -> bool:
        """Whether this role may do all that another may."""
        return _RANKS[self] >= _RANKS[other]


_RANKS = {role: rank for rank, role in enumerate(Role)}
_VERBS = {
    Role.READER: "read",
    Role.WRITER: "change",
    Role.ADMIN: "do what only an admin may with",
}


@dataclass(frozen=True, slots=True)
class Grant:
    """A role somewhere.

    Attributes:
        role: What may be done.
        catalog: In which of the served catalogs; None for all.
        namespace: In which namespace of it.
    """

    role: Role
    catalog: str | None = None
    namespace: ObjectId = ROOT

    def holds_in(self, catalog: str) -> bool:
        """Whether it is about a catalog."""
        return self.catalog is None or self.catalog == catalog

    def covers(self, catalog: str, within: ObjectId) -> bool:
        """Whether an object lies where it holds."""
        inside = within.names[: self.namespace.level] == self.namespace.names
        return self.holds_in(catalog) and inside


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks, and what they may do.

    Attributes:
        subject: In whose name changes are recorded; None where nobody is asked for a name.
        grants: What is allowed.
    """

    subject: str | None
    grants: tuple[Grant, ...] = ()

    def role_in(self, catalog: str, within: ObjectId = ROOT) -> Role | None:
        """Return the highest role that holds for an object; None where there is none."""
        held = [grant.role for grant in self.grants if grant.covers(catalog, within)]
        return max(held, key=_RANKS.__getitem__, default=None)

    def may(self, role: Role, catalog: str, within: ObjectId = ROOT) -> bool:
        """Whether what a role may do is allowed with an object."""
        held = self.role_in(catalog, within)
        return held is not None and held.includes(role)

    def sees(self, catalog: str, namespace: ObjectId) -> bool:
        """Whether a namespace may be listed: it can be read, or it leads to what can."""
        return any(
            grant.covers(catalog, namespace)
            or (
                grant.holds_in(catalog)
                and grant.namespace.names[: namespace.level] == namespace.names
            )
            for grant in self.grants
        )

    def require_somewhere(self, role: Role, catalog: str) -> None:
        """Refuse what is allowed nowhere in a catalog, before anything else is looked at.

        Raises:
            PermissionDeniedError: it is not allowed.
        """
        held = [grant.role for grant in self.grants if grant.holds_in(catalog)]
        if not any(one.includes(role) for one in held):
            raise self._refusal(role, f"catalog '{catalog}'", held)

    def require(self, role: Role, catalog: str, objects: Iterable[ObjectId]) -> None:
        """Refuse what is not allowed with all of some objects.

        Raises:
            PermissionDeniedError: naming one that it is not allowed with.
        """
        for one in objects:
            if not self.may(role, catalog, one):
                where = f"{quote(str(one))} of " if one.names else ""
                held = [grant.role for grant in self.grants if grant.covers(catalog, one)]
                raise self._refusal(role, f"{where}catalog '{catalog}'", held)

    def _refusal(self, role: Role, where: str, held: Sequence[Role]) -> PermissionDeniedError:
        """Return the refusal of what a role may do somewhere, to who has others there."""
        most = max(held, key=_RANKS.__getitem__, default=None)
        knows = f"their role there is {most}" if most else "they have no role there"
        return PermissionDeniedError(f"'{self.subject}' may not {_VERBS[role]} {where}: {knows}")


ANYBODY = Identity(None, (Grant(Role.ADMIN),))
NOBODY = Identity(None)
