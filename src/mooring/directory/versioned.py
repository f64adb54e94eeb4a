"""The versions of a directory catalog's tables: each is the file of its manifest.

A version is made by a create-only put of that file, whoever asks for it. The catalog looks before
that the table is live, and after: a table that was dropped meanwhile takes no acknowledged write.

Spec: objects-and-relationships, "Table Version".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mooring.errors import (
    InvalidInputError,
    ServiceUnavailableError,
    TableBranchNotFoundError,
    TableNotFoundError,
    TableVersionNotFoundError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.identifiers import quote
from mooring.namespace.api import CreateVersion, Declare, DeleteVersionRecords, Deregister
from mooring.namespace.home import AtHome
from mooring.tables.place import Place, open_place
from mooring.tables.records import VersionRecords
from mooring.tables.reference_names import branch_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.identifiers import ObjectId
    from mooring.namespace.api import Outcome, TableInfo, TableOperation
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
        info = known or self.describe_table(table)
        found = self._records(info, branch).newest_first(limit)
        if branch and branch_of(branch) and not found:
            raise _no_branch(table, branch)
        return found

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
        if (info.location, branch, version) in self.home.unsettled:
            msg = f"whether version {version} of table {quote(str(table))} was made is not known"
            raise UnknownOutcomeError(msg)
        records = self._records(info, branch)
        try:
            return records.describe(version)
        except TableVersionNotFoundError:
            if branch and not records.newest_first(1):
                raise _no_branch(table, branch) from None
            raise

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
        try:
            record = self._records(info, branch).create(version, manifest_path, metadata)
        except UnknownOutcomeError:
            self.home.unsettled.add((info.location, branch, version))
            raise
        except InvalidInputError:
            # A manifest that is not there may have gone with the table.
            self._confirm(table, info, version)
            raise
        try:
            if branch_of(branch):
                # A rename seals main before it looks for branches: one of the two sees the other.
                self._place(info).require_unsealed(f"table {quote(str(table))}")
            self._confirm(table, info, version)
        except ServiceUnavailableError as exc:
            self.home.unsettled.add((info.location, branch, version))
            msg = f"version {version} of table {quote(str(table))} was written, and whether the"
            raise UnknownOutcomeError(f"{msg} table is still there was not told: {exc}") from exc
        return record

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
        if len(operations) != 1:
            raise _not_one(operations)
        match operations[0]:
            case Declare(table, location, properties):
                return [self.declare_table(table, location, properties)]
            case CreateVersion(table, version, path, branch, metadata):
                return [
                    self.create_table_version(
                        table, version, path, branch=branch, metadata=metadata
                    )
                ]
            case DeleteVersionRecords(table, ranges, branch):
                return [self.delete_table_versions(table, ranges, branch=branch)]
            case Deregister(table):
                return [self.deregister_table(table)]

    def _confirm(self, table: ObjectId, written: TableInfo, version: int) -> None:
        """Acknowledge a write only to a table that is still there."""
        try:
            if self.describe_table(table).location == written.location:
                return
        except TableNotFoundError:
            pass
        msg = (
            f"table {quote(str(table))} was dropped or renamed while its version {version} was"
            " written, which may be in it when it comes back: look before writing again"
        )
        raise TableNotFoundError(msg)

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


def _not_one(operations: Sequence[TableOperation]) -> InvalidInputError | UnsupportedError:
    if not operations:
        return InvalidInputError("the batch is empty: it needs one operation")
    return UnsupportedError(
        f"a directory catalog commits one table at a time, not {len(operations)} together: each is"
        " decided by the put of an object of its own, and nothing could undo the first where the"
        " second is refused; send them one by one, or keep the tables in a metastore"
    )


def _no_branch(table: ObjectId, branch: str) -> TableBranchNotFoundError:
    return TableBranchNotFoundError(f"table {quote(str(table))} has no branch {quote(branch)}")
