"""The contract that every kind of catalog keeps, and its values.

A backend names tables, locates them and decides about their lives. What is done to the content of
a located table is written once, above.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from mooring.identifiers import ObjectId
    from mooring.namespace.states import DroppedTable, TableStatus
    from mooring.namespace.table_operations import Outcome, TableOperation
    from mooring.tables.api import VersionRange, VersionRecord

__all__ = [
    "Backend",
    "Change",
    "CreateMode",
    "PurgeProgress",
    "PurgeReport",
    "TableInfo",
    "Ttl",
]


class CreateMode(StrEnum):
    """What to do where the object exists already."""

    CREATE = "create"
    EXIST_OK = "exist_ok"
    OVERWRITE = "overwrite"

    @classmethod
    def parse(cls, text: str | None, allowed: Iterable[CreateMode] | None = None) -> CreateMode:
        """Read a mode in any of the specification's spellings; none given is ``create``.

        Raises:
            InvalidInputError: it is none of the allowed ones.
        """
        modes = list(allowed or cls)
        folded = str(text or "create").lower().replace("_", "")
        for mode in modes:
            if mode.value.replace("_", "") == folded:
                return mode
        known = ", ".join(mode.value for mode in modes)
        msg = f"'{text}' is not a mode of this operation: use one of {known}"
        raise InvalidInputError(msg)


@dataclass(frozen=True, slots=True)
class Ttl:
    """How long a dropped table stays in the trash; None is for ever."""

    ms: int | None


@dataclass(frozen=True, slots=True)
class TableInfo:
    """Where a live table is and how to reach it.

    Attributes:
        id: Its identifier.
        location: Where Lance finds it.
        storage_options: How Lance reaches it.
        properties: What the catalog keeps with it.
        is_only_declared: Whether it has no data; None where nobody looked.
        version: The version that was made, where one was.
        keeps_versions: Whether its versions are records of the catalog's own; None where that is
            so of all tables of the catalog, or of none.
    """

    id: ObjectId
    location: str
    storage_options: Mapping[str, str] = field(repr=False)  # it holds secrets
    properties: Mapping[str, str]
    is_only_declared: bool | None = None
    version: int | None = None
    keeps_versions: bool | None = None

    def has_versions_kept(self, backend: Backend) -> bool:
        """Whether its versions are records of its catalog's own: then readers ask it, too."""
        return backend.keeps_versions if self.keeps_versions is None else self.keeps_versions

    def is_managed(self, backend: Backend) -> bool:
        """Whether whoever opens it is to commit through its catalog."""
        return backend.managed_versioning or self.has_versions_kept(backend)


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of a table's history: what was done, by whom, when, and what came of it."""

    action: str
    state: str
    by: str
    at_ms: int
    version: int | None = None


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """What became of each table of a purge."""

    purged: list[ObjectId]
    failed: dict[ObjectId, Exception]


class PurgeProgress(Protocol):
    """Hears how far a purge has come."""

    def __call__(self, table: ObjectId, files: int, size_bytes: int) -> None:
        """Take note of the files and bytes of a table deleted so far."""
        ...


class Backend(Protocol):
    """A catalog. Every method raises InvalidNameError for names that cannot be."""

    @property
    def levels(self) -> int | None:
        """The level of every table where there is one level only; None where tables nest."""
        ...

    @property
    def author(self) -> str:
        """In whose name changes are recorded."""
        ...

    @property
    def managed_versioning(self) -> bool:
        """Whether whoever opens a table through the catalog is to commit through it, too."""
        ...

    @property
    def keeps_versions(self) -> bool:
        """Whether versions are records of the catalog's own: then readers ask it, too."""
        ...

    def require_writable(self) -> None:
        """Refuse where no change may be made.

        Raises:
            ReadOnlyError: the catalog was opened read-only.
        """
        ...

    def list_namespaces(
        self, parent: ObjectId, *, after: str | None = None, limit: int | None = None
    ) -> list[str]:
        """Name the direct child namespaces, sorted; if wanted, some after a name.

        Raises:
            NamespaceNotFoundError: there is no such parent.
        """
        ...

    def describe_namespace(self, namespace: ObjectId) -> Mapping[str, str]:
        """Return a namespace's properties.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
        """
        ...

    def create_namespace(
        self,
        namespace: ObjectId,
        properties: Mapping[str, str],
        mode: CreateMode = CreateMode.CREATE,
    ) -> Mapping[str, str]:
        """Make a namespace and return its properties.

        Raises:
            NamespaceNotFoundError: there is no such parent.
            NamespaceAlreadyExistsError: the name is taken, and the mode is ``create``.
            TableAlreadyExistsError: a table has the name.
            UnsupportedError: this kind of catalog has no namespaces.
        """
        ...

    def update_namespace(
        self, namespace: ObjectId, updates: Mapping[str, str | None]
    ) -> Mapping[str, str]:
        """Change properties of a namespace, None removes one; return all.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
            UnsupportedError: this kind of catalog keeps no properties.
        """
        ...

    def drop_namespace(
        self, namespace: ObjectId, *, cascade: bool = False, ttl: Ttl | None = None
    ) -> Mapping[str, str]:
        """Hide a namespace, reversibly, and with ``cascade`` all that is in it.

        Returns:
            The properties it had.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
            NamespaceNotEmptyError: something is in it.
            ProtectedError: it, or something in it, is protected.
        """
        ...

    def undrop_namespace(self, namespace: ObjectId) -> int:
        """Bring a dropped namespace back with all that was dropped with it; tell how many.

        Raises:
            NamespaceNotFoundError: no dropped namespace has this identifier.
            ConflictError: an identifier is taken.
        """
        ...

    def list_all_tables(self) -> list[ObjectId]:
        """Return the identifiers of all live tables, sorted."""
        ...

    def list_tables(
        self,
        namespace: ObjectId,
        *,
        include_declared: bool = True,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """Name the direct child tables that are live, sorted; if wanted, some after a name.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
        """
        ...

    def describe_table(self, table: ObjectId, *, check_declared: bool = False) -> TableInfo:
        """Locate a live table.

        Raises:
            TableNotFoundError: no live table has this identifier.
        """
        ...

    def declare_table(
        self,
        table: ObjectId,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Reserve a name and a location without data.

        Raises:
            NamespaceNotFoundError: there is no such parent.
            TableAlreadyExistsError: the name is taken.
            InvalidTableStateError: an earlier table of this name is in the way.
        """
        ...

    def create_table(
        self,
        table: ObjectId,
        rows: pa.RecordBatchReader,
        mode: CreateMode = CreateMode.CREATE,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Create a table with data, also over a dropped or purged one.

        Raises:
            NamespaceNotFoundError: there is no such parent.
            TableAlreadyExistsError: the name is taken.
            ConcurrentModificationError: somebody else's change came first.
        """
        ...

    def register_table(
        self,
        table: ObjectId,
        location: str | None,
        mode: CreateMode = CreateMode.CREATE,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Give a name to a table that lies in the catalog's storage, where the layout has it.

        Raises:
            InvalidInputError: the location is not one this catalog accepts.
            TableAlreadyExistsError: the name is taken.
            TableNotFoundError: there is no table at the location.
        """
        ...

    def deregister_table(self, table: ObjectId) -> TableInfo:
        """Forget a live table's name and keep its bytes.

        Raises:
            TableNotFoundError: no live table has this identifier.
            ProtectedError: the table is protected.
        """
        ...

    def rename_table(self, table: ObjectId, new: ObjectId) -> TableInfo:
        """Give a live table another name.

        Raises:
            UnsupportedError: this kind of catalog cannot.
        """
        ...

    def drop_table(self, table: ObjectId, ttl: Ttl | None = None) -> TableInfo:
        """Hide a live table, reversibly; without a TTL the catalog's default counts.

        Raises:
            TableNotFoundError: no live table has this identifier.
            ProtectedError: the table is protected.
            ConcurrentModificationError: somebody else's change came first.
        """
        ...

    def undrop_table(self, table: ObjectId, new: ObjectId | None = None) -> TableInfo:
        """Make a dropped table live again, if wanted under another name.

        Raises:
            TableNotFoundError: nothing dropped has this identifier.
            ConcurrentModificationError: somebody else's change came first.
            UnsupportedError: this kind of catalog cannot change the name.
        """
        ...

    def table_status(self, table: ObjectId) -> TableStatus:
        """Tell whether a table is live, dropped or not there."""
        ...

    def list_purgable_tables(self, deleted_before_ms: int | None = None) -> list[DroppedTable]:
        """List the trash, sorted by identifier."""
        ...

    def purge_table(self, table: ObjectId, progress: PurgeProgress | None = None) -> None:
        """Delete the bytes of a dropped table, expired or not.

        Raises:
            TableNotFoundError: nothing dropped has this identifier.
            ConcurrentModificationError: somebody else's change came first.
        """
        ...

    def purge_tables(
        self, tables: Sequence[ObjectId] | None = None, progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge exactly these tables, or all that are expired."""
        ...

    def protect_table(self, table: ObjectId, *, protected: bool = True) -> None:
        """Make drops of a table refuse, or allow them again.

        Raises:
            TableNotFoundError: no live table has this identifier.
        """
        ...

    def update_table(self, table: ObjectId, updates: Mapping[str, str | None]) -> Mapping[str, str]:
        """Change properties of a table, None removes one; return all.

        Raises:
            TableNotFoundError: no live table has this identifier.
            UnsupportedError: this kind of catalog keeps no properties.
        """
        ...

    def table_history(self, table: ObjectId) -> list[Change]:
        """Tell what happened to a table in the catalog, oldest first."""
        ...

    def list_table_versions(
        self,
        table: ObjectId,
        *,
        branch: str | None = None,
        limit: int | None = None,
        known: TableInfo | None = None,
    ) -> list[VersionRecord]:
        """Return the versions of a table, the newest first; none for one without data.

        Args:
            table: The identifier.
            branch: The branch; main unless given.
            limit: At most so many.
            known: What describing the table has just answered, where that was done.

        Raises:
            TableNotFoundError: no live table has this identifier.
            TableBranchNotFoundError: it has no such branch.
        """
        ...

    def describe_table_version(
        self, table: ObjectId, version: int, *, branch: str | None = None
    ) -> VersionRecord:
        """Return one version of a table.

        Raises:
            TableNotFoundError: no live table has this identifier.
            TableVersionNotFoundError: it has no such version.
        """
        ...

    def create_table_version(
        self,
        table: ObjectId,
        version: int,
        manifest_path: str,
        *,
        branch: str | None = None,
        metadata: Mapping[str, str] | None = None,
        known: TableInfo | None = None,
    ) -> VersionRecord:
        """Make a manifest that was written a version of a table.

        Args:
            table: The identifier.
            version: The number it must get.
            manifest_path: Where the manifest was written.
            branch: The branch; main unless given.
            metadata: Kept with the record.
            known: What describing the table answered before, where that was done.

        Raises:
            TableNotFoundError: no live table has this identifier, or no longer.
            ConcurrentModificationError: the version exists.
            InvalidInputError: there is no such manifest, or the number leaves a gap.
            UnknownOutcomeError: the store never said what was decided.
        """
        ...

    def delete_table_versions(
        self, table: ObjectId, ranges: Sequence[VersionRange], *, branch: str | None = None
    ) -> int:
        """Delete the records of versions, and never data; return how many there were.

        Raises:
            TableNotFoundError: no live table has this identifier.
            InvalidInputError: a range makes no sense.
            InvalidTableStateError: what is left would not be the table any more.
        """
        ...

    def tidy_versions(self, table: ObjectId) -> int:
        """Forget the records of versions that Lance cleaned up; return how many there were.

        Where a version is a file, there is nothing to forget.

        Raises:
            TableNotFoundError: no live table has this identifier.
        """
        ...

    def commit_tables(self, operations: Sequence[TableOperation]) -> list[Outcome]:
        """Do all of the operations, or none; tell what became of each.

        Raises:
            InvalidInputError: there is none.
            UnsupportedError: there are several, and this kind of catalog decides one at a time.
        """
        ...
