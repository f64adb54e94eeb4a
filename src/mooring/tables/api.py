"""What a catalog and the tables in it need of each other: staged data, version records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

__all__ = [
    "AT_MS",
    "BY",
    "EXPIRES_AT",
    "ElsewhereWritten",
    "Ledger",
    "StagedTable",
    "TableFiles",
    "VersionRange",
    "VersionRecord",
    "Write",
]

# What is kept with a write: who, and when.
BY, AT_MS = "mooring.by", "mooring.at_ms"
# The storage option that tells when credentials come to their end: Lance asks its catalog for fresh
# ones before.
EXPIRES_AT = "expires_at_millis"


@dataclass(frozen=True, slots=True)
class StagedTable:
    """Data files that are written but belong to no version yet."""

    table_dir: str
    schema: object
    fragments: tuple[object, ...]
    files: tuple[str, ...]
    nonce: str
    source: ElsewhereWritten | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """A version, and who wrote it through a catalog."""

    version: int
    by: str
    at_ms: int


class ElsewhereWritten(ABC):
    """Rows of a new table that do not pass through this process.

    Given for rows where a table is created: the catalog says where, and workers write there.
    """

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The rows' schema."""

    @property
    def properties(self) -> Mapping[str, str]:
        """What is kept with the table's first commit."""
        return {}

    @abstractmethod
    def write(self, location: str, options: Mapping[str, str]) -> Sequence[object]:
        """Have the data files written; return Lance's description of each fragment.

        Args:
            location: The table's directory, as Lance names it.
            options: Storage options of Lance.
        """

    @abstractmethod
    def settle(self, *, is_committed: bool) -> None:
        """Hear what became of it: what is left over can go."""


class TableFiles(Protocol):
    """Writes tables into directories of a store."""

    def stage(self, table_dir: str, rows: pa.RecordBatchReader | ElsewhereWritten) -> StagedTable:
        """Write data files; nothing is visible yet."""
        ...

    def commit(self, staged: StagedTable, version: int) -> bool:
        """Make the staged data the table's content, as exactly this version.

        Returns:
            False, and nothing changed, where the version exists already.
        """
        ...

    def discard(self, staged: StagedTable) -> None:
        """Delete the files of a stage that was never committed."""
        ...

    def writes(self, table_dir: str) -> list[Write]:
        """Tell who wrote the versions that are still known, oldest first."""
        ...

    def restore(self, table_dir: str, version: int, as_version: int) -> bool:
        """Make an older version's content the newest, as exactly ``as_version``.

        Returns:
            False, and nothing changed, where that version exists already or the older is gone.
        """
        ...


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """One version of a table.

    Attributes:
        version: Its number.
        manifest_path: The key of its manifest, as Lance's own object store knows it.
        size_bytes: The manifest's size.
        e_tag: The store's tag of it.
        at_ms: When it was made.
        metadata: What its writer gave with it.
        by: Who made it, where the catalog keeps that.
    """

    version: int
    manifest_path: str
    size_bytes: int | None = None
    e_tag: str | None = None
    at_ms: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    by: str | None = None


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Versions from ``start`` to before ``end``; an end of -1 is after the newest."""

    start: int
    end: int

    def __contains__(self, version: object) -> bool:
        """Whether a version is one of them."""
        if not isinstance(version, int):
            return False
        return self.start <= version and (self.end == -1 or version < self.end)


class Ledger(Protocol):
    """Decides about the versions of one table."""

    def prepare(self) -> None:
        """Before a change: refuse where none may be made.

        Raises:
            ReadOnlyError: the catalog was opened read-only.
        """
        ...

    @property
    def keeps_versions(self) -> bool:
        """Whether versions are records of the catalog's own: then readers ask it, too."""
        ...

    def forget(self, branch: str) -> None:
        """Delete the records of a branch that goes, where they are the catalog's own."""
        ...

    def options(self) -> Mapping[str, str]:
        """Return how storage is reached from now on: credentials of a catalog come to an end.

        Raises:
            TableNotFoundError: the table was dropped or renamed meanwhile.
        """
        ...

    def tidy(self) -> None:
        """After a cleanup: forget the records of versions that are gone."""
        ...

    def newest(self, branch: str | None) -> VersionRecord | None:
        """Return the newest version; None for a table without any."""
        ...

    def newest_first(self, branch: str | None, limit: int | None = None) -> list[VersionRecord]:
        """Return the versions, or some of them, the newest first."""
        ...

    def confirm(self) -> None:
        """After a change that makes no version: acknowledge it only if the table is still there.

        Raises:
            TableNotFoundError: the table was dropped or renamed meanwhile.
        """
        ...

    def describe(self, version: int, branch: str | None) -> VersionRecord:
        """Return one version.

        Raises:
            TableVersionNotFoundError: there is no such version.
        """
        ...

    def create(self, version: int, staged_path: str, branch: str | None) -> VersionRecord:
        """Make a staged manifest a version.

        Raises:
            ConcurrentModificationError: the version exists.
            TableNotFoundError: the table was dropped meanwhile.
            UnknownOutcomeError: the store never said what was decided.
        """
        ...
