"""The rows of a catalog's `__manifest`, and what a catalog needs of the table that holds them.

Spec: directory-namespace, "Manifest Table Schema".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from mooring.errors import CatalogFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    CatchUp = Callable[[], None]

__all__ = [
    "BY",
    "FORMAT_KEYS",
    "NAMESPACE",
    "SHARED",
    "TABLE",
    "TIDIED",
    "Glimpse",
    "ManifestRow",
    "ManifestTable",
    "Named",
    "Placed",
    "RowChange",
    "Scope",
    "check_format",
]

# The property of a commit that says in whose name it was made.
BY = "mooring.by"
NAMESPACE = "namespace"
TABLE = "table"


# Set in the table's own map once others were seen to write: no version's number is freed then.
SHARED = "mooring.shared"
# And then up to which version was tidied.
TIDIED = "mooring.tidied"
# What begins so in the table's own map says how to read it, and is no property of the catalog.
FORMAT_KEYS = "lance.namespace.manifest."
_READER_FLAGS = f"{FORMAT_KEYS}reader_feature_flags"
_WRITER_FLAGS = f"{FORMAT_KEYS}writer_feature_flags"


def check_format(metadata: Mapping[str, str], *, writing: bool = False) -> None:
    """Refuse a manifest with features that are not known here; there are none so far.

    Raises:
        CatalogFormatError: it has some.
    """
    for key in (_READER_FLAGS, _WRITER_FLAGS) if writing else (_READER_FLAGS,):
        if metadata.get(key, "0") != "0":
            msg = (
                f"the catalog's manifest needs a newer Mooring: {key} is {metadata[key]};"
                ' upgrade with "pip install --upgrade mooring"'
            )
            raise CatalogFormatError(msg)


# A catalog may have a hundred thousand rows; the garbage collector need not walk them.
class ManifestRow(msgspec.Struct, frozen=True, gc=False):
    """One object of a catalog, as it is stored."""

    object_id: str
    object_type: str
    location: str | None = None
    metadata: str | None = None
    base_objects: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RowChange:
    """What a commit does to the rows: first it removes by identifier, then it adds."""

    removed: frozenset[str] = frozenset()
    added: tuple[ManifestRow, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not self.removed and not self.added


@dataclass(frozen=True, slots=True)
class Named:
    """All rows whose identifiers begin with something, and hold something."""

    prefix: str
    part: str = ""

    def holds(self, row: ManifestRow) -> bool:
        """Whether a row is one of them."""
        return self.covers(row.object_id)

    def covers(self, object_id: str) -> bool:
        """Whether a row of this identifier would be one of them."""
        return object_id.startswith(self.prefix) and self.part in object_id


@dataclass(frozen=True, slots=True)
class Placed:
    """All rows whose locations are one, lie in it or around it."""

    location: str

    @property
    def around(self) -> list[str]:
        """The location itself, and those that it lies in."""
        parts = self.location.split("/")
        found = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        return [location for location in found if location]

    def holds(self, row: ManifestRow) -> bool:
        """Whether a row is one of them."""
        found = row.location or ""
        return found in self.around or found.startswith(f"{self.location}/")

    def covers(self, object_id: str) -> bool:
        """Say no: an identifier does not tell where its row lies."""
        del object_id
        return False


Scope = Named | Placed


@dataclass(frozen=True, slots=True)
class Glimpse:
    """Some rows of a version, read past the copy in memory.

    Attributes:
        version: The version.
        rows: Those of the wanted rows that are there.
        metadata: The table's own map.
        by_us: Whether this library committed the version.
        handle: What the table needs to commit on top of it.
        scattered: Whether it lies in so many pieces that it is time for a commit by way of the
            copy, which puts pieces together.
    """

    version: int
    rows: Mapping[str, ManifestRow]
    metadata: Mapping[str, str]
    by_us: bool
    handle: object = None
    scattered: bool = False


class ManifestTable(Protocol):
    """A table of rows, with a copy of one version in memory.

    Every commit is strict: it lands as the version after the copy's, or not at all.
    """

    @property
    def version(self) -> int:
        """The version of the copy in memory; 0 before the first."""
        ...

    @property
    def rows(self) -> Mapping[str, ManifestRow]:
        """Every row of that version by its identifier."""
        ...

    @property
    def metadata(self) -> Mapping[str, str]:
        """The table's own map at that version."""
        ...

    def newest(self) -> int:
        """Return the newest version by one cheap look; 0 where there is no table."""
        ...

    def create(self) -> None:
        """Make the table, without rows, unless it is there."""
        ...

    def follow(self, version: int) -> set[str]:
        """Bring the copy up to a version, reading what changed only.

        Returns:
            The identifiers whose rows may have changed.

        Raises:
            TableVersionNotFoundError: it was tidied away: look for the newest again.
        """
        ...

    def look(
        self, version: int, object_ids: Iterable[str], scopes: Iterable[Scope] = ()
    ) -> Glimpse:
        """Read single rows of a version, and those in some scopes, past the copy.

        Raises:
            TableVersionNotFoundError: it was tidied away: look for the newest again.
        """
        ...

    def children(self, version: int, parent: str, kind: str) -> list[str]:
        """Name what of a kind lies in a namespace at a version, unsorted, past the copy.

        Raises:
            TableVersionNotFoundError: it was tidied away: look for the newest again.
        """
        ...

    def commit(self, change: RowChange, properties: Mapping[str, str]) -> CatchUp | None:
        """Commit a change as the version after the copy's.

        Returns:
            What brings the copy up to it; None, and nothing changed, where that version exists.

        Raises:
            UnknownOutcomeError: the store never said, or it cannot be told any more.
        """
        ...

    def commit_on(self, glimpse: Glimpse, change: RowChange, properties: Mapping[str, str]) -> bool:
        """Commit a change as the version after a glimpse's; the copy stays as it is.

        What is written for rows that are added is kept for the next try.

        Returns:
            False, and nothing changed, where that version exists.
        """
        ...

    def give_up(self) -> None:
        """Delete what was kept for a next try that does not come."""
        ...

    def commit_metadata(
        self, glimpse: Glimpse, updates: Mapping[str, str | None], properties: Mapping[str, str]
    ) -> bool:
        """Commit a change of the table's map in the same way; None removes a key."""
        ...

    def tidy(self) -> None:
        """Remove old versions beyond a bound and bring the indexes up to date, if it is time."""
        ...
