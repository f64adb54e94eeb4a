"""Any Iceberg REST catalog as a catalog of Lance tables.

Spec: iceberg-namespace; objects-and-relationships; soft-delete.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from mooring.errors import (
    InvalidInputError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedError,
)
from mooring.hints import suggest
from mooring.iceberg.making import Making
from mooring.iceberg.namespaces import Namespaces
from mooring.iceberg.properties import (
    CREATED_AT_MS,
    CREATED_BY,
    ManagedBy,
    check_updates,
    property_changes,
    users_properties,
)
from mooring.iceberg.tables import Tables
from mooring.iceberg.trash import Trash, rename
from mooring.iceberg.versions import Versions
from mooring.identifiers import ROOT, ObjectId, quote
from mooring.namespace.api import Change, CreateMode, PurgeReport
from mooring.namespace.asking import ask_each, namespaces_below
from mooring.namespace.batches import do_alone, require_operations
from mooring.namespace.paging import cut
from mooring.namespace.presence import already_there
from mooring.namespace.properties import PROTECTED
from mooring.namespace.purging import came_back, nothing_to_purge, purge_each
from mooring.namespace.states import DroppedTable, Exists, NotFound, SoftDeleted, Standing
from mooring.namespace.table_operations import CreateVersion, DeleteVersionRecords

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from mooring.iceberg.connection import Connection
    from mooring.iceberg.table import IcebergTable
    from mooring.iceberg.trash import Dropped
    from mooring.namespace.api import PurgeProgress, TableInfo, Ttl
    from mooring.namespace.states import TableStatus
    from mooring.namespace.table_operations import Outcome, TableOperation
    from mooring.tables.api import VersionRange, VersionRecord
    from mooring.tables.handle import TableHandle

__all__ = ["IcebergBackend"]


class IcebergBackend:
    """A catalog whose tables are entries of an Iceberg REST catalog."""

    def __init__(
        self,
        connection: Connection,
        *,
        root: str | None = None,
        managed_by: ManagedBy = ManagedBy.STORAGE,
        checked_listing: bool = False,
    ) -> None:
        """Open a catalog; nothing is asked yet.

        Args:
            connection: The server.
            root: Where new tables lie; where the server says unless given.
            managed_by: Who decides about the versions of new tables.
            checked_listing: Whether listings leave out tables of Iceberg's. The server's listing
                does not tell them, so that takes a request for each.
        """
        self.connection = connection
        self._namespaces = Namespaces(connection)
        self._tables = Tables(connection, self._namespaces, checked=checked_listing)
        self._trash = Trash(connection)
        self._versions = Versions(connection)
        self.managed_by = managed_by
        forget, retract = self._trash.forget, self._trash.retract
        self._making = Making(connection, self._handle, forget, retract, root=root, by=managed_by)

    # -- the catalog -------------------------------------------------------------------------------

    @property
    def levels(self) -> int | None:
        """Tables lie at any level but the first."""
        return None

    @property
    def author(self) -> str:
        """In whose name changes are recorded."""
        return self.connection.author

    @property
    def read_only(self) -> bool:
        """Whether every change is refused."""
        return self.connection.read_only

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
        """Drop an empty namespace, at once: the server keeps nothing of it."""
        del ttl
        return self._namespaces.drop(namespace, cascade=cascade)

    def undrop_namespace(self, namespace: ObjectId) -> int:
        """Refuse: an Iceberg catalog keeps nothing of a namespace that was dropped.

        Raises:
            UnsupportedError: always.
        """
        msg = (
            f"an Iceberg catalog keeps nothing of namespace {quote(str(namespace))} once it is"
            " dropped, and only empty ones are: create it again"
        )
        raise UnsupportedError(msg)

    def describe_namespaces(self) -> list[tuple[ObjectId, Mapping[str, str]]]:
        """Return all namespaces with their properties, sorted: the root, which has none, first."""
        found = list(namespaces_below(ROOT, self.list_namespaces))
        return list(zip(found, ask_each(self.describe_namespace, found), strict=True))

    def dropped_namespaces(self) -> list[tuple[ObjectId, Standing]]:
        """List the namespaces in the trash: there are none."""
        return []

    # -- reading -----------------------------------------------------------------------------------

    def list_all_tables(self) -> list[ObjectId]:
        """Return the identifiers of all live tables, sorted."""
        return sorted(self._tables.below(ROOT))

    def list_tables(
        self,
        namespace: ObjectId,
        *,
        include_declared: bool = True,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """Name the tables of a namespace; the root has none."""
        return cut(
            self._tables.names_in(namespace, include_declared=include_declared), after, limit
        )

    def describe_tables(self, within: ObjectId = ROOT) -> list[TableInfo]:
        """Locate all live Lance tables of a namespace, or of all: a request for each."""
        return [table.info() for table in self._tables.load_below(within)]

    def describe_table(self, table: ObjectId, *, check_declared: bool = False) -> TableInfo:
        """Locate a live table."""
        found = self._find(table)
        declared = not found.has_data() if check_declared else None
        return found.info(is_only_declared=declared)

    def _find(self, table: ObjectId) -> IcebergTable:
        found = self.connection.look(table, refs_only=True)
        if found is None:
            raise self._why_not_live(table)
        return found

    def _why_not_live(self, table: ObjectId) -> TableNotFoundError:
        self.connection.check_table(table)
        shown = quote(str(table))
        if self._trash.of(table):
            undo = suggest("table undrop", str(table))
            return TableNotFoundError(f'table {shown} was dropped; bring it back with "{undo}"')
        return TableNotFoundError(f"there is no table {shown}")

    def _handle(self, table: IcebergTable) -> TableHandle:
        from mooring.namespace.located import locate  # imports lance

        return locate(self, table.id, table.info())

    def table_status(self, table: ObjectId) -> TableStatus:
        """Tell whether a table is live, dropped or not there."""
        self.connection.check_table(table)
        if self.connection.client.table_exists(table.parent.names, table.name):
            return Exists()
        dropped = self._trash.revivable(table)
        if dropped is None:
            return NotFound()
        return SoftDeleted(dropped.at_ms, dropped.expires_at_ms)

    def list_purgable_tables(self, deleted_before_ms: int | None = None) -> list[DroppedTable]:
        """List the trash."""
        return [
            DroppedTable(one.id, one.at_ms, one.expires_at_ms)
            for one in self._trash.read()
            if deleted_before_ms is None or one.at_ms < deleted_before_ms
        ]

    def states(self) -> list[tuple[ObjectId, Standing]]:
        """Tell what every table is, live or not, sorted."""
        found = [(table, Standing("live")) for table in self.list_all_tables()]
        found += [(one.id, _standing(one)) for one in self._trash.read()]
        return sorted(found, key=lambda told: told[0])

    def table_history(self, table: ObjectId) -> list[Change]:
        """Tell what happened to tables of an identifier, as far as the server keeps it."""
        changes = []
        found = self.connection.look(table, refs_only=True)
        made_at = found and found.properties.get(CREATED_AT_MS)
        if found is not None and made_at and made_at.isdigit():
            by = found.properties.get(CREATED_BY, "")
            changes.append(Change("create", "live", by, int(made_at)))
        changes += [Change("drop", "deleted", "", one.at_ms) for one in self._trash.of(table)]
        return sorted(changes, key=lambda change: change.at_ms)

    # -- making tables -----------------------------------------------------------------------------

    def declare_table(
        self,
        table: ObjectId,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Reserve an identifier without data."""
        self._check_new(table)
        return self._making.declare(table, location, properties or {}).info(is_only_declared=True)

    def create_table(
        self,
        table: ObjectId,
        rows: pa.RecordBatchReader,
        mode: CreateMode = CreateMode.CREATE,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Create a table with data."""
        self._check_new(table)
        known = self.connection.look(table, refs_only=True)
        if known is None:
            try:
                return self._making.create(table, rows, properties or {}).info(version=1)
            except TableAlreadyExistsError:
                if mode is not CreateMode.EXIST_OK:
                    raise
                return self.describe_table(table)
        if not known.has_data():
            return self._making.complete(known, rows).info(version=1)
        match mode:
            case CreateMode.EXIST_OK:
                return known.info()
            case CreateMode.OVERWRITE:
                return self._overwrite(known, rows)
            case CreateMode.CREATE:
                raise already_there(table)

    def _overwrite(self, known: IcebergTable, rows: pa.RecordBatchReader) -> TableInfo:
        from mooring.namespace.located import insert_into  # imports lance

        done = insert_into(self, known.id, rows, overwrite=True, known=known.info())
        return known.info(version=done.version)

    def register_table(
        self,
        table: ObjectId,
        location: str | None,
        mode: CreateMode = CreateMode.CREATE,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Give an identifier to a table that lies in storage."""
        self._check_new(table)
        if not location:
            msg = f"to register table {quote(str(table))}, say where it lies: a path or a URI"
            raise InvalidInputError(msg)
        if mode is CreateMode.OVERWRITE:
            known = self.connection.look(table, refs_only=True)
            if known is not None:
                self._trash.drop(known, None)
        return self._making.register(table, location, properties or {}).info()

    def deregister_table(self, table: ObjectId) -> TableInfo:
        """Forget an identifier and keep the bytes."""
        self.require_writable()
        found = self._find(table)
        return self._trash.forget(found).info()

    def rename_table(self, table: ObjectId, new: ObjectId) -> TableInfo:
        """Give a live table another identifier."""
        self.require_writable()
        found = self._find(table)
        if new == table:
            return found.info()
        self._check_new(new)
        self._trash.require_renaming(f"give {found.what} another name")
        # Nothing is asked afterwards: it is done, and others may do more.
        return self.connection.read(new, rename(self.connection, table, new)).info()

    def _check_new(self, table: ObjectId) -> None:
        """Refuse what cannot be a new name; some servers take a namespace that is not there.

        Raises:
            NamespaceNotFoundError: there is no such parent.
        """
        self.require_writable()
        self.connection.check_table(table)
        self.connection.check_new(table.name)
        self._namespaces.describe(table.parent)

    def place_of_new_tables(self, namespace: ObjectId) -> str | None:
        """Tell below what new tables of a namespace lie; None where only the server knows."""
        return self._making.places.below(namespace)

    def options_for(self, location: str) -> dict[str, str]:
        """Tell how a place is reached of which the server has no table yet."""
        return self._making.places.options_for(location)

    # -- the lifecycle -----------------------------------------------------------------------------

    def drop_table(self, table: ObjectId, ttl: Ttl | None = None) -> TableInfo:
        """Move a live table into the trash."""
        self.require_writable()
        found = self._find(table)
        self._trash.drop(found, ttl)
        return found.info()

    def undrop_table(self, table: ObjectId, new: ObjectId | None = None) -> TableInfo:
        """Bring the newest drop of a table back."""
        target = new or table
        self._check_new(target)
        return self._trash.undrop(table, target).info()

    def protect_table(self, table: ObjectId, *, protected: bool = True) -> None:
        """Make drops of a table refuse, or allow them again."""
        self.update_table(table, {PROTECTED: "true" if protected else None})

    def update_table(self, table: ObjectId, updates: Mapping[str, str | None]) -> Mapping[str, str]:
        """Change properties of a table."""
        self.require_writable()
        check_updates(updates)
        found = self._find(table)
        changes = property_changes(found.properties, updates)
        if changes:
            self.connection.client.update_table(table.parent.names, table.name, found.same, changes)
        return users_properties(self._find(table).properties)

    def purge_table(self, table: ObjectId, progress: PurgeProgress | None = None) -> None:
        """Delete the bytes of every dropped table of an identifier, expired or not."""
        self.require_writable()
        found = self._trash.of(table)
        if not found:
            is_live = isinstance(self.table_status(table), Exists)
            raise nothing_to_purge(table, is_live=is_live)
        purged = [self._trash.purge(one, progress) for one in found]
        if not any(purged):
            raise came_back(table)

    def purge_tables(
        self, tables: Sequence[ObjectId] | None = None, progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge exactly these tables, or all that are expired."""
        self.require_writable()
        if tables is None:
            return self._trash.purge_over(progress)
        return purge_each(tables, partial(self.purge_table, progress=progress))

    def purge_expired(
        self, tables: Sequence[ObjectId], progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge those drops of these tables whose time is over, or whose purge was cut off."""
        self.require_writable()
        return self._trash.purge_over(progress, tables)

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
        del known  # one look tells both
        return self._versions.newest_first(table, branch, limit)

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
        self.require_writable()
        wanted = CreateVersion(table, version, manifest_path, branch, metadata)
        return self._versions.create(wanted, known)

    def delete_table_versions(
        self, table: ObjectId, ranges: Sequence[VersionRange], *, branch: str | None = None
    ) -> int:
        """Delete the records of versions, and never data."""
        self.require_writable()
        return self._versions.delete(table, ranges, branch)

    def tidy_versions(self, table: ObjectId) -> int:
        """Forget the records of versions that Lance cleaned up; return how many there were."""
        self.require_writable()
        return self._versions.tidy(table)

    def commit_tables(self, operations: Sequence[TableOperation]) -> list[Outcome]:
        """Do one operation, or make new versions of several tables by one request."""
        require_operations(operations)
        self.require_writable()
        if len(operations) == 1:
            return [do_alone(self, operations[0])]
        return self._versions.commit(
            cast("Sequence[CreateVersion | DeleteVersionRecords]", operations)
        )


def _standing(found: Dropped) -> Standing:
    return Standing("purging" if found.is_purging else "deleted", found.at_ms, found.ttl_ms)
