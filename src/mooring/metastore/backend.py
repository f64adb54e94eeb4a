"""A metastore as a catalog of Lance tables: namespaces of one level, and tables in them.

Every change is one transaction, and a transaction may change several tables.

Spec: deltacat-storage-model; objects-and-relationships.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableAlreadyExistsError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.metastore.dropped import Dropped
from mooring.metastore.ground import live_namespaces
from mooring.metastore.lance_table import (
    any_in,
    check_new_table,
    locator_of,
    move_table,
    tables_in,
)
from mooring.metastore.making import Declaration, Deregistration, Making, Registration
from mooring.metastore.namespaces import Namespaces
from mooring.metastore.past import read_past
from mooring.metastore.steps import take_steps
from mooring.metastore.trash import require_namespace
from mooring.metastore.version_steps import DeleteVersions, NewVersion
from mooring.namespace.api import CreateMode, PurgeReport, TableInfo
from mooring.namespace.batches import require_operations
from mooring.namespace.locations import refuse_location, require_location
from mooring.namespace.paging import cut
from mooring.namespace.presence import already_there
from mooring.namespace.properties import PROTECTED, check_properties, merge_properties
from mooring.namespace.purging import purge_each
from mooring.namespace.states import Exists, Standing
from mooring.namespace.table_operations import (
    CreateVersion,
    Declare,
    DeleteVersionRecords,
    Deregister,
)
from mooring.namespace.unsettled import never_told
from mooring.tables.reference_names import branch_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa

    from mooring.metastore.lance_table import LanceTable
    from mooring.metastore.making import Step
    from mooring.metastore.metastore import Metastore
    from mooring.metastore.model import Namespace
    from mooring.metastore.transaction import Transaction
    from mooring.namespace.api import Change, PurgeProgress, Ttl
    from mooring.namespace.home import Home
    from mooring.namespace.settings import Settings
    from mooring.namespace.states import DroppedTable, TableStatus
    from mooring.namespace.table_operations import Outcome, TableOperation
    from mooring.tables.api import VersionRange, VersionRecord

__all__ = ["MetastoreBackend"]


class MetastoreBackend(Namespaces):
    """A catalog whose objects are those of a metastore."""

    def __init__(self, home: Home, metastore: Metastore | None = None) -> None:
        """Open a catalog; nothing is written, and a missing root is an empty one.

        Args:
            home: Where the catalog is.
            metastore: Its objects, where they are opened already.
        """
        super().__init__(home, metastore)
        self._dropped = Dropped(self._trash, home.clock, self._is_live)

    def _is_live(self, table: ObjectId) -> bool:
        return self._find_any(self.metastore.begin(), table) is not None

    # -- reading -----------------------------------------------------------------------------------

    def list_tables(
        self,
        namespace: ObjectId,
        *,
        include_declared: bool = True,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """Name the tables of a namespace; the root has none."""
        view = self.metastore.begin()
        if namespace.is_root:
            return []
        found = require_namespace(view, namespace)
        names = [
            table.id.name
            for table in tables_in(view, found.locator)
            if table.value.dropped is None and (include_declared or table.newest is not None)
        ]
        return cut(names, after, limit)

    def list_all_tables(self) -> list[ObjectId]:
        """Return the identifiers of all live tables, sorted."""
        return [table.id for table in self._live_tables(ROOT)]

    def _live_tables(self, within: ObjectId) -> list[LanceTable]:
        view = self.metastore.begin()
        around = live_namespaces(view) if within.is_root else [require_namespace(view, within)]
        found = [table for above in around for table in tables_in(view, above.locator)]
        return [table for table in found if table.value.dropped is None]

    def describe_tables(self, within: ObjectId = ROOT) -> list[TableInfo]:
        """Locate all live tables of a namespace, or of all, without a look at each."""
        return [self._info(table) for table in self._live_tables(within)]

    def unrecorded_tables(self) -> list[ObjectId]:
        """Name the live tables that are no objects: there are no others."""
        return []

    def describe_namespaces(self) -> list[tuple[ObjectId, Mapping[str, str]]]:
        """Return every namespace with its properties; the root is the first."""
        found: list[tuple[ObjectId, Mapping[str, str]]] = [(ROOT, {})]
        for namespace in live_namespaces(self.metastore.begin()):
            value = cast("Namespace", namespace.value)
            found.append((ObjectId(namespace.locator.parts), dict(value.properties)))
        return found

    def describe_table(self, table: ObjectId, *, check_declared: bool = False) -> TableInfo:
        """Locate a live table."""
        found = self._find(self.metastore.begin(), table)
        if found is None:
            raise self._why_not_live(table)
        declared = found.newest is None if check_declared else None
        return self._info(found, is_only_declared=declared)

    def describe_any(self, table: ObjectId) -> TableInfo:
        """Locate a live table, of Lance or of changes.

        Raises:
            TableNotFoundError: no live table has this identifier.
        """
        return self._info(self._require_any(self.metastore.begin(), table))

    def table_status(self, table: ObjectId) -> TableStatus:
        """Tell whether a table is live, dropped or not there."""
        return Exists() if self._is_live(table) else self._dropped.status(table)

    def list_purgable_tables(self, deleted_before_ms: int | None = None) -> list[DroppedTable]:
        """List the trash."""
        return self._dropped.list_tables(deleted_before_ms)

    def states(self) -> list[tuple[ObjectId, Standing]]:
        """Tell what every table is, live or not, sorted."""
        view = self.metastore.begin()
        found = [
            (table.id, Standing("live"))
            for namespace in live_namespaces(view)
            for table in any_in(view, namespace.locator)
            if table.value.dropped is None
        ]
        found += self._dropped.tables()
        return sorted(found, key=lambda told: told[0])

    def dropped_namespaces(self) -> list[tuple[ObjectId, Standing]]:
        """List the namespaces in the trash, sorted."""
        return self._dropped.namespaces()

    def table_history(self, table: ObjectId) -> list[Change]:
        """Tell what happened to tables of an identifier, as far as the catalog knows them."""
        view = self.metastore.begin()
        found = self._find_any(view, table)
        locators = [*self._dropped.places_of(table), *([found.locator] if found else [])]
        changes = [change for one in locators for change in read_past(self.metastore, view, one)]
        return sorted(changes, key=lambda change: change.at_ms)

    # -- making tables -----------------------------------------------------------------------------

    def declare_table(
        self,
        table: ObjectId,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Reserve an identifier without data."""
        done = self._commit([self._declaration(table, location, properties)], creates=True)
        return cast("TableInfo", done[0])

    def _declaration(
        self, table: ObjectId, location: str | None, properties: Mapping[str, str] | None
    ) -> Declaration:
        check_new_table(table)
        check_properties(properties or {})
        refuse_location(table, location)
        return Declaration(self.home, self._info, table, dict(properties or {}))

    def create_table(
        self,
        table: ObjectId,
        rows: pa.RecordBatchReader,
        mode: CreateMode = CreateMode.CREATE,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Create a table with data, in a directory of its own."""
        check_new_table(table)
        check_properties(properties or {})
        self._prepare(creates=True)
        view = self.metastore.begin()
        require_namespace(view, table.parent)
        known = self._find(view, table)
        if known is not None and known.newest is not None:
            if mode is CreateMode.EXIST_OK:
                return self._info(known)
            if mode is CreateMode.OVERWRITE:
                return self._overwrite(table, known, rows)
            raise already_there(table)
        making = Making(self.home, self._info, self._place, table, dict(properties or {}), rows)
        try:
            return cast("TableInfo", self._commit([making], creates=True)[0])
        except TableAlreadyExistsError as exc:
            if mode is CreateMode.EXIST_OK:
                return self.describe_table(table)
            if mode is CreateMode.OVERWRITE:
                raise ConcurrentModificationError(str(exc)) from exc
            raise

    def _overwrite(
        self, table: ObjectId, known: LanceTable, rows: pa.RecordBatchReader
    ) -> TableInfo:
        from mooring.namespace.located import insert_into  # imports lance

        info = self._info(known)
        done = insert_into(self, table, rows, overwrite=True, known=info)
        return self._info(known, version=done.version)

    def register_table(
        self,
        table: ObjectId,
        location: str | None,
        mode: CreateMode = CreateMode.CREATE,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Give an identifier to a table that lies in storage already."""
        check_new_table(table)
        check_properties(properties or {})
        place = require_location(table, location)
        self._prepare()
        self.home.reload_settings()
        registration = Registration(
            self.home,
            self._info,
            self._versions,
            self._trash,
            table,
            place,
            dict(properties or {}),
            mode,
        )
        return cast("TableInfo", self._commit([registration])[0])

    def deregister_table(self, table: ObjectId) -> TableInfo:
        """Forget an identifier and keep the bytes."""
        return cast("TableInfo", self._commit([self._deregistration(table)])[0])

    def _deregistration(self, table: ObjectId) -> Deregistration:
        return Deregistration(self.home, self._info, self._versions, table, self._require)

    def rename_table(self, table: ObjectId, new: ObjectId) -> TableInfo:
        """Give a live table another identifier."""
        check_new_table(new)

        def work(txn: Transaction) -> TableInfo:
            found = self._require_any(txn, table)
            target = locator_of(new)
            if target == found.locator:
                return self._info(found)
            require_namespace(txn, new.parent)
            if txn.find(target) is not None:
                raise already_there(new)
            move_table(txn, found.locator, target, found.value)
            return self._info(self._require_any(txn, new))

        return self._run(work, f"rename table {table} to {new}")

    def alias_table(self, table: ObjectId, alias: str) -> None:
        """Give a live table one more name in its namespace.

        Raises:
            TableNotFoundError: no live table has this identifier.
            TableAlreadyExistsError: the name is taken.
        """
        also = table.parent.child(alias)
        check_new_table(also)

        def work(txn: Transaction) -> None:
            found = self._require_any(txn, table)
            if txn.find(locator_of(also)) is not None:
                raise already_there(also)
            txn.add_alias(found.locator, alias)

        self._run(work, f"alias table {table} as {also}")

    # -- the lifecycle -----------------------------------------------------------------------------

    def drop_table(self, table: ObjectId, ttl: Ttl | None = None) -> TableInfo:
        """Move a live table into the trash."""
        self.home.reload_settings()

        def work(txn: Transaction) -> TableInfo:
            found = self._require_any(txn, table)
            self._trash.drop_table(txn, found, ttl)
            return self._info(found)

        return self._run(work, f"drop table {table}")

    def undrop_table(self, table: ObjectId, new: ObjectId | None = None) -> TableInfo:
        """Bring the newest drop of a table back."""
        target = table if new is None else new
        check_new_table(target)

        def work(txn: Transaction) -> TableInfo:
            self._trash.undrop_table(txn, table, target)
            return self._info(self._require_any(txn, target))

        return self._run(work, f"undrop table {table}" + (f" as {new}" if new else ""))

    def protect_table(self, table: ObjectId, *, protected: bool = True) -> None:
        """Make drops of a table refuse, or allow them again."""
        self.update_table(table, {PROTECTED: "true" if protected else None})

    def update_table(self, table: ObjectId, updates: Mapping[str, str | None]) -> Mapping[str, str]:
        """Change properties of a table."""
        check_properties(updates)

        def work(txn: Transaction) -> dict[str, str]:
            found = self._require_any(txn, table)
            merged = merge_properties(found.value.properties, updates)
            txn.update(found.locator, replace(found.value, properties=merged))
            return merged

        return self._run(work, f"update table {table}")

    def purge_table(self, table: ObjectId, progress: PurgeProgress | None = None) -> None:
        """Delete the bytes of every dropped table of an identifier, expired or not."""
        self._prepare()
        self._dropped.purge(table, progress)

    def purge_tables(
        self, tables: Sequence[ObjectId] | None = None, progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge exactly these tables, or all that are expired."""
        self._prepare()
        if tables is None:
            return PurgeReport(self._dropped.purge_over(progress), {})
        return purge_each(tables, partial(self.purge_table, progress=progress))

    def purge_expired(
        self, tables: Sequence[ObjectId], progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge those drops of these tables whose time is over, or whose purge was cut off."""
        self._prepare()
        return PurgeReport(self._dropped.purge_over(progress, set(tables)), {})

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
        view = self.metastore.begin()
        found = self._require(view, table)
        return self._versions.newest_first(view, found, branch_of(branch), limit)

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
        view = self.metastore.begin()
        found = self._require(view, table)
        name = branch_of(branch)
        if (self._versions.location_of(found.location), name, version) in self.home.unsettled:
            raise never_told(table, version)
        return self._versions.describe(view, found, version, name)

    def dead_manifests(self, table: ObjectId, copies: Collection[str]) -> list[str]:
        """Tell which copies of manifests in a table's directory can become no version any more."""
        return self._versions.dead_copies(table, copies)

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
        del known
        wanted = CreateVersion(table, version, manifest_path, branch, metadata)
        return cast("VersionRecord", self.commit_tables([wanted])[0])

    def delete_table_versions(
        self, table: ObjectId, ranges: Sequence[VersionRange], *, branch: str | None = None
    ) -> int:
        """Delete the records of versions, and never data."""
        wanted = DeleteVersionRecords(table, ranges, branch)
        return cast("int", self.commit_tables([wanted])[0])

    def tidy_versions(self, table: ObjectId) -> int:
        """Do nothing: a version that was cleaned up is not told, and its record costs no read."""
        del table
        return 0

    # -- several at once ---------------------------------------------------------------------------

    def commit_tables(self, operations: Sequence[TableOperation]) -> list[Outcome]:
        """Do all of the operations in one transaction, or none."""
        require_operations(operations)
        creates = any(isinstance(one, Declare) for one in operations)
        return self._commit([self._step(one) for one in operations], creates=creates)

    def _step(self, operation: TableOperation) -> Step:
        match operation:
            case Declare(table, location, properties):
                return self._declaration(table, location, properties)
            case CreateVersion():
                return NewVersion(self._versions, operation, branch_of(operation.branch))
            case DeleteVersionRecords(table, ranges, branch):
                return DeleteVersions(self._versions, table, ranges, branch_of(branch))
            case Deregister(table):
                return self._deregistration(table)

    def _commit(self, steps: Sequence[Step], *, creates: bool = False) -> list[Outcome]:
        self._prepare(creates=creates)
        return take_steps(self.metastore, steps)

    # -- the catalog itself ------------------------------------------------------------------------

    def initialize(
        self,
        *,
        default_ttl: Ttl | None = None,
        adopt: bool = False,
        allowed_locations: tuple[str, ...] | None = None,
        managed_versioning: bool | None = None,
        shared: bool = False,
    ) -> Settings:
        """Write the catalog's settings.

        Raises:
            InvalidInputError: a setting that a metastore does not have.
        """
        del adopt  # nobody else's markers are read
        if shared:
            msg = "a metastore has no manifest that could be shared: leave out --shared"
            raise InvalidInputError(msg)
        if managed_versioning is False:
            msg = "a metastore always manages the versions of its tables"
            raise InvalidInputError(msg)
        self._prepare(creates=True)
        self.home.reload_settings()
        return self.home.change_settings(
            default_ttl=default_ttl, allowed_locations=allowed_locations
        )
