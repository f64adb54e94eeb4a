"""Any Lance REST server as a catalog: its own protocol, and what Mooring's servers have beside it.

Names, locations and decisions are the server's. Rows of a new table are sent to it; what is read
and changed later is done here, by Lance, where the table lies.

Spec: lance-rest-openapi; objects-and-relationships; soft-delete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import Change, CreateMode
from mooring.namespace.batches import do_alone, require_operations
from mooring.namespace.paging import cut
from mooring.namespace.states import Standing
from mooring.namespace.table_operations import CreateVersion
from mooring.remote.batches import commit_together
from mooring.remote.making import Making
from mooring.remote.namespaces import Namespaces
from mooring.remote.tables import Tables
from mooring.remote.trash import Trash
from mooring.remote.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from mooring.namespace.api import PurgeProgress, PurgeReport, TableInfo, Ttl
    from mooring.namespace.states import DroppedTable, TableStatus
    from mooring.namespace.table_operations import Outcome, TableOperation
    from mooring.remote.beside import Facts
    from mooring.remote.connection import Connection
    from mooring.tables.api import VersionRange, VersionRecord

__all__ = ["RemoteBackend"]


class RemoteBackend:
    """A catalog that a Lance REST server keeps."""

    def __init__(self, connection: Connection) -> None:
        """Open a catalog; nothing is asked yet.

        Args:
            connection: The server.
        """
        self.connection = connection
        self._namespaces = Namespaces(connection)
        self._tables = Tables(connection, self._namespaces)
        self._making = Making(connection, self._tables)
        self._trash = Trash(connection, self._tables)
        self._versions = Versions(connection, self._tables)

    # -- the catalog -------------------------------------------------------------------------------

    @property
    def levels(self) -> int | None:
        """The level of every table where there is one level only; None where tables nest."""
        return self.connection.levels

    @property
    def author(self) -> str:
        """In whose name tables are written; the server's records name whom it knows."""
        return self.connection.author

    @property
    def read_only(self) -> bool:
        """Whether every change is refused."""
        return self.connection.read_only

    @property
    def facts(self) -> Facts | None:
        """What the server says about its catalog; None where it has only Lance REST."""
        return self.connection.beside.facts

    @property
    def managed_versioning(self) -> bool:
        """Each table says for itself who decides about its versions."""
        return False

    @property
    def keeps_versions(self) -> bool:
        """Each table says for itself who decides about its versions."""
        return False

    def require_writable(self) -> None:
        """Refuse where no change may be made."""
        self.connection.require_writable()

    # -- namespaces --------------------------------------------------------------------------------

    def list_namespaces(
        self, parent: ObjectId, *, after: str | None = None, limit: int | None = None
    ) -> list[str]:
        """Name the direct child namespaces."""
        return self._namespaces.list(parent, after, limit)

    def describe_namespace(self, namespace: ObjectId) -> Mapping[str, str]:
        """Return a namespace's properties."""
        return self._namespaces.describe(namespace)

    def create_namespace(
        self,
        namespace: ObjectId,
        properties: Mapping[str, str],
        mode: CreateMode = CreateMode.CREATE,
    ) -> Mapping[str, str]:
        """Make a namespace."""
        return self._namespaces.create(namespace, properties, mode)

    def update_namespace(
        self, namespace: ObjectId, updates: Mapping[str, str | None]
    ) -> Mapping[str, str]:
        """Change properties of a namespace."""
        return self._namespaces.update(namespace, updates)

    def drop_namespace(
        self, namespace: ObjectId, *, cascade: bool = False, ttl: Ttl | None = None
    ) -> Mapping[str, str]:
        """Hide a namespace; what other servers do to it is theirs to say."""
        return self._namespaces.drop(namespace, cascade=cascade, ttl=ttl)

    def undrop_namespace(self, namespace: ObjectId) -> int:
        """Bring a dropped namespace back with all that was dropped with it."""
        return self._namespaces.undrop(namespace)

    def describe_namespaces(self) -> list[tuple[ObjectId, Mapping[str, str]]]:
        """Return all namespaces with their properties, sorted: the root first."""
        return list(self._namespaces.describe_all())

    def dropped_namespaces(self) -> list[tuple[ObjectId, Standing]]:
        """List the namespaces in the trash; none where the server does not tell."""
        return self._trash.namespaces()

    # -- reading -----------------------------------------------------------------------------------

    def list_all_tables(self) -> list[ObjectId]:
        """Return the identifiers of all live tables, sorted."""
        return self._tables.all()

    def list_tables(
        self,
        namespace: ObjectId,
        *,
        include_declared: bool = True,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """Name the tables of a namespace."""
        names = self._tables.names_in(namespace, include_declared=include_declared)
        return cut(names, after, limit)

    def describe_tables(self, within: ObjectId = ROOT) -> list[TableInfo]:
        """Locate all live tables of a namespace, or of all; elsewhere by a request for each."""
        return self._tables.describe_below(within)

    def describe_table(self, table: ObjectId, *, check_declared: bool = False) -> TableInfo:
        """Locate a live table."""
        return self._tables.describe(table, check_declared=check_declared)

    def table_status(self, table: ObjectId) -> TableStatus:
        """Tell whether a table is live, dropped or not there."""
        self.connection.require_table(table)
        return self._trash.status(table)

    def list_purgable_tables(self, deleted_before_ms: int | None = None) -> list[DroppedTable]:
        """List the trash."""
        return self._trash.read(deleted_before_ms)

    def states(self) -> list[tuple[ObjectId, Standing]]:
        """Tell what every table is, live or not, sorted, as far as the server tells."""
        found = [(table, Standing("live")) for table in self.list_all_tables()]
        return sorted([*found, *self._trash.standings()], key=lambda told: told[0])

    def table_history(self, table: ObjectId) -> list[Change]:
        """Tell what happened to a table in the catalog, oldest first."""
        beside = self.connection.beside.require("tell what happened to a table")
        answer = beside.of_table(table, "history", method="GET")
        return [
            Change(
                str(one.get("action")),
                str(one.get("state")),
                str(one.get("by") or ""),
                int(one.get("at_ms") or 0),
                one.get("version"),
            )
            for one in answer.get("changes") or ()
        ]

    # -- making tables -----------------------------------------------------------------------------

    def declare_table(
        self,
        table: ObjectId,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Reserve an identifier without data."""
        self._prepare(table)
        return self._making.declare(table, location, properties or {})

    def create_table(
        self,
        table: ObjectId,
        rows: pa.RecordBatchReader,
        mode: CreateMode = CreateMode.CREATE,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Create a table with data, which is sent to the server as it is read.

        Raises:
            UnsupportedError: workers are to write the rows where the server will put the table.
        """
        self._prepare(table)
        return self._making.create(table, rows, mode, properties or {})

    def register_table(
        self,
        table: ObjectId,
        location: str | None,
        mode: CreateMode = CreateMode.CREATE,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Give an identifier to a table that lies in storage."""
        self._prepare(table)
        return self._making.register(table, location, mode, properties or {})

    def deregister_table(self, table: ObjectId) -> TableInfo:
        """Forget an identifier and keep the bytes."""
        self._prepare(table)
        return self._trash.forget(table)

    def rename_table(self, table: ObjectId, new: ObjectId) -> TableInfo:
        """Give a live table another identifier."""
        self._prepare(table)
        self.connection.require_table(new)
        return self._making.rename(table, new)

    def _prepare(self, table: ObjectId) -> None:
        self.require_writable()
        self.connection.require_table(table)

    def place_of_new_tables(self, namespace: ObjectId) -> str | None:
        """Tell below what new tables of a namespace lie: only the server knows."""
        del namespace
        return None

    def options_for(self, location: str) -> dict[str, str]:
        """Tell how a place is reached of which the server has no table yet."""
        del location
        return dict(self.connection.storage_options)

    # -- the lifecycle -----------------------------------------------------------------------------

    def drop_table(self, table: ObjectId, ttl: Ttl | None = None) -> TableInfo:
        """Hide a live table; what other servers do to it is theirs to say."""
        self._prepare(table)
        return self._trash.drop(table, ttl)

    def undrop_table(self, table: ObjectId, new: ObjectId | None = None) -> TableInfo:
        """Make a dropped table live again."""
        self._prepare(table)
        self._prepare(new or table)
        return self._trash.undrop(table, new)

    def protect_table(self, table: ObjectId, *, protected: bool = True) -> None:
        """Make drops of a table refuse, or allow them again."""
        self._prepare(table)
        self._trash.protect(table, protected=protected)

    def update_table(self, table: ObjectId, updates: Mapping[str, str | None]) -> Mapping[str, str]:
        """Change properties of a table."""
        self._prepare(table)
        beside = self.connection.beside.require("change properties of a table")

        def change() -> Mapping[str, str]:
            answer = beside.of_table(
                table, "properties", body={"updates": dict(updates)}, changes=True
            )
            return answer.get("properties") or {}

        def look() -> Mapping[str, str] | None:
            found = self.describe_table(table).properties
            return found if all(found.get(key) == text for key, text in updates.items()) else None

        return self.connection.settle(change, look)

    def purge_table(self, table: ObjectId, progress: PurgeProgress | None = None) -> None:
        """Delete the bytes of a dropped table; the server does not tell how far it is."""
        del progress
        self._prepare(table)
        self._trash.purge(table)

    def purge_tables(
        self, tables: Sequence[ObjectId] | None = None, progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge exactly these tables, or all that are expired."""
        del progress
        self.require_writable()
        return self._trash.purge_several(tables)

    def purge_expired(
        self, tables: Sequence[ObjectId], progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge what is expired, of these tables and of all: only the server's clock counts."""
        del tables
        return self.purge_tables(None, progress)

    # -- versions ----------------------------------------------------------------------------------

    def list_table_versions(
        self,
        table: ObjectId,
        *,
        branch: str | None = None,
        limit: int | None = None,
        known: TableInfo | None = None,
    ) -> list[VersionRecord]:
        """Return the versions of a table, the newest first."""
        return self._versions.newest_first(table, branch, limit, known)

    def describe_table_version(
        self, table: ObjectId, version: int, *, branch: str | None = None
    ) -> VersionRecord:
        """Return one version of a table."""
        return self._versions.describe(table, version, branch)

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
        self._prepare(table)
        wanted = CreateVersion(table, version, manifest_path, branch, metadata)
        return self._versions.create(wanted, known)

    def delete_table_versions(
        self, table: ObjectId, ranges: Sequence[VersionRange], *, branch: str | None = None
    ) -> int:
        """Delete the records of versions, and never data."""
        self._prepare(table)
        return self._versions.delete(table, ranges, branch)

    def tidy_versions(self, table: ObjectId) -> int:
        """Forget the records of versions that Lance cleaned up; return how many there were."""
        self._prepare(table)
        return self._versions.tidy(table)

    def commit_tables(self, operations: Sequence[TableOperation]) -> list[Outcome]:
        """Do one operation, or have the server do several, all of them or none."""
        require_operations(operations)
        self.require_writable()
        if len(operations) == 1:
            return [do_alone(self, operations[0])]
        return commit_together(self.connection, operations)
