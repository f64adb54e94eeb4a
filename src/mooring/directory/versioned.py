"""The versions of a directory catalog's tables: each is the file of its manifest.

A version is made by a create-only put of that file, whoever asks for it. The catalog looks before
that the table is live, and after: a table that was dropped meanwhile takes no acknowledged write.

Spec: objects-and-relationships, "Table Version".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote

from mooring.errors import UnknownOutcomeError, UnsupportedError
from mooring.identifiers import quote
from mooring.namespace.batches import do_alone, require_operations
from mooring.namespace.home import AtHome
from mooring.namespace.table_operations import CreateVersion
from mooring.namespace.unsettled import never_told
from mooring.namespace.version_files import VersionFiles
from mooring.tables.place import Place, open_place
from mooring.tables.records import VersionRecords
from mooring.tables.reference_names import branch_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.identifiers import ObjectId
    from mooring.namespace.api import Backend, TableInfo
    from mooring.namespace.table_operations import Outcome, TableOperation
    from mooring.tables.api import VersionRange, VersionRecord

__all__ = ["Versioned"]


class Versioned(AtHome, ABC):
    """What every kind of directory catalog does about versions."""

    @abstractmethod
    def describe_table(self, table: ObjectId, *, check_declared: bool = False) -> TableInfo:
        """Locate a live table."""

    @abstractmethod
    def declare_table(
        self,
        table: ObjectId,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Reserve a name without data."""

    @abstractmethod
    def deregister_table(self, table: ObjectId) -> TableInfo:
        """Forget a name and keep the bytes."""

    @property
    def managed_versioning(self) -> bool:
        """Whether others are told to commit through the catalog, too."""
        return self.home.managed_versioning

    @property
    def keeps_versions(self) -> bool:
        """Versions are files of the table: whoever opens it finds them."""
        return False

    def require_writable(self) -> None:
        """Refuse where no change may be made.

        Raises:
            ReadOnlyError: the catalog was opened read-only.
        """
        self.home.prepare()

    def list_table_versions(
        self,
        table: ObjectId,
        *,
        branch: str | None = None,
        limit: int | None = None,
        known: TableInfo | None = None,
    ) -> list[VersionRecord]:
        """Return the versions of a table, the newest first."""
        return self._files(table, known or self.describe_table(table), branch).newest_first(limit)

    def describe_table_version(
        self, table: ObjectId, version: int, *, branch: str | None = None
    ) -> VersionRecord:
        """Return one version of a table.

        Raises:
            TableVersionNotFoundError: there is no such version.
            UnknownOutcomeError: this catalog tried to make the version and never heard whether it
                did. Lance asks for it then, and would take an answer for a lost race and write
                the same rows again.
        """
        info = self.describe_table(table)
        if (info.location, branch_of(branch), version) in self.home.unsettled:
            raise never_told(table, version)
        return self._files(table, info, branch).describe(version)

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
        """Make a manifest that was written a version of a table."""
        self.home.prepare()
        info = known or self.describe_table(table)
        wanted = CreateVersion(table, version, manifest_path, branch, metadata)

        def is_there() -> bool:
            if branch_of(branch):
                # A rename seals main before it looks for branches: one of the two sees the other.
                self._place(info).require_unsealed(f"table {quote(str(table))}")
            return self.describe_table(table).location == info.location

        try:
            return self._files(table, info, branch).create(wanted, is_there)
        except UnknownOutcomeError:
            self.home.unsettled.add((info.location, branch_of(branch), version))
            raise

    def delete_table_versions(
        self, table: ObjectId, ranges: Sequence[VersionRange], *, branch: str | None = None
    ) -> int:
        """Delete the records of versions, and never data."""
        self.home.prepare()
        return self._records(self.describe_table(table), branch).delete(ranges)

    def tidy_versions(self, table: ObjectId) -> int:
        """Do nothing: a version's file is its record."""
        del table
        return 0

    def commit_tables(self, operations: Sequence[TableOperation]) -> list[Outcome]:
        """Do one operation; of several, no single object could decide.

        Raises:
            InvalidInputError: there is none.
            UnsupportedError: there are several.
        """
        require_operations(operations)
        if len(operations) > 1:
            raise _several(operations)
        return [do_alone(cast("Backend", self), operations[0])]

    def _files(self, table: ObjectId, info: TableInfo, branch: str | None) -> VersionFiles:
        return VersionFiles(table, self._records(info, branch), branch_of(branch))

    def _records(self, info: TableInfo, branch: str | None) -> VersionRecords:
        place = self._place(info)
        return VersionRecords(place.store, place.directory, branch_of(branch))

    def _place(self, info: TableInfo) -> Place:
        location = info.location.rstrip("/")
        root = self.store.location("")
        if not location.startswith(root if root.endswith("/") else f"{root}/"):
            return open_place(location, info.storage_options)
        inside = location[len(root) :].strip("/")
        return Place(self.store, unquote(inside) if "://" in root else inside)


def _several(operations: Sequence[TableOperation]) -> UnsupportedError:
    return UnsupportedError(
        f"a directory catalog commits one table at a time, not {len(operations)} together: each is"
        " decided by the put of an object of its own, and nothing could undo the first where the"
        " second is refused; send them one by one, or keep the tables in a metastore"
    )
