"""Where an object is by its names: the canonical string, and the digest that a name is found by.

Spec: deltacat-storage-model, "Naming, Mutability, and Canonical Strings".
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError, InvalidNameError
from mooring.identifiers import DELIMITER, check_composed, check_name, quote

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ROOT", "Kind", "Locator", "check_part"]

SEPARATOR = "|"


class Kind(StrEnum):
    """The kinds of objects, each the child of the one before."""

    NAMESPACE = "namespace"
    TABLE = "table"
    TABLE_VERSION = "table version"
    STREAM = "stream"
    PARTITION = "partition"
    DELTA = "delta"

    @property
    def level(self) -> int:
        """How far below the root."""
        return _KINDS.index(self) + 1

    @classmethod
    def at(cls, level: int) -> Kind:
        """Return the kind of a level.

        Raises:
            InvalidInputError: there is no such level.
        """
        if not 1 <= level <= len(_KINDS):
            msg = f"objects lie on levels 1 to {len(_KINDS)}, not on {level}"
            raise InvalidInputError(msg)
        return _KINDS[level - 1]


_KINDS = tuple(Kind)  # to go through them takes its time


@dataclass(frozen=True, slots=True)
class Locator:
    """The names of an object and of all above it; a name may have several parts."""

    levels: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, *names: str | Iterable[str]) -> Locator:
        """Build from one name a level.

        Raises:
            InvalidNameError: one of them cannot be a name.
        """
        found = ROOT
        for name in names:
            found = found.child(*((name,) if isinstance(name, str) else name))
        return found

    def child(self, *parts: str) -> Locator:
        """Return the locator of a direct child.

        Raises:
            InvalidNameError: it cannot be named so.
        """
        Kind.at(len(self.levels) + 1)
        for part in parts:
            check_part(part)
        return Locator((*self.levels, parts))

    @property
    def parent(self) -> Locator:
        """The locator of the object above; the root is its own."""
        return Locator(self.levels[:-1])

    @property
    def kind(self) -> Kind:
        """What it locates."""
        return Kind.at(len(self.levels))

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the object's own name."""
        return self.levels[-1] if self.levels else ()

    @property
    def canonical(self) -> str:
        """The string that identifies the object within a catalog, given its names."""
        return SEPARATOR.join(part for parts in self.levels for part in parts)

    @property
    def digest(self) -> str:
        """The name of the directory by which the object is found."""
        return hashlib.sha1(self.canonical.encode(), usedforsecurity=False).hexdigest()

    def __str__(self) -> str:
        """Show the names as people write them."""
        return DELIMITER.join("|".join(parts) for parts in self.levels)


ROOT = Locator()


def check_part(part: str) -> None:
    """Refuse what cannot be part of a name.

    Raises:
        InvalidNameError: two different names would have one canonical string, or it is no name.
    """
    check_name(part)
    check_composed(part)
    if SEPARATOR in part:
        msg = f"{quote(part)} cannot be a name: it holds '{SEPARATOR}', which joins names"
        raise InvalidNameError(msg)
