"""A directory catalog whose manifest names everything (V2): nested namespaces, renames, trash.

Spec: directory-namespace, "V2: Manifest".
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from mooring.directory.decisions import Hint, State
from mooring.directory.dropped import Dropped
from mooring.directory.entries import (
    is_dropped,
    is_namespace,
    is_table,
    object_id_of,
    properties_of,
)
from mooring.directory.manifest import MANIFEST_DIR
from mooring.directory.manifest_opening import open_manifest
from mooring.directory.namespaces import Namespaces
from mooring.directory.past import in_order, writes_to
from mooring.directory.registry import Registry
from mooring.directory.row_keys import key_of, new_key
from mooring.directory.sweeping import Sweep
from mooring.directory.trash import Trash, nearest_retention, require_unprotected
from mooring.directory.versioned import Versioned
from mooring.errors import ConcurrentModificationError, InvalidInputError, TableAlreadyExistsError
from mooring.identifiers import DELIMITER, ROOT
from mooring.namespace.api import Change, CreateMode, PurgeReport, TableInfo
from mooring.namespace.locations import is_outside, refuse_location, require_location
from mooring.namespace.paging import cut
from mooring.namespace.properties import PROTECTED, RETENTION, check_properties
from mooring.namespace.purging import purge_each
from mooring.namespace.states import Exists
from mooring.tables.manifest import NAMESPACE, TABLE
from mooring.tables.versions import newest_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from mooring.directory.draft import Draft
    from mooring.directory.manifest import Manifest
    from mooring.directory.sweeping import Orphan
    from mooring.errors import TableNotFoundError
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import PurgeProgress, Ttl
    from mooring.namespace.home import Home
    from mooring.namespace.settings import Settings
    from mooring.namespace.states import DroppedTable, NotFound, SoftDeleted, TableStatus
    from mooring.tables.manifest import ManifestRow

__all__ = ["ManifestBackend"]


class ManifestBackend(Versioned):
    """A catalog whose objects are the rows of `__manifest`."""

    def __init__(
        self,
        home: Home,
        *,
        manifest: Manifest | None = None,
        check: Callable[[Draft, str, str], None] | None = None,
        fits: Callable[[str], None] | None = None,
        keeps: Callable[[str], bool] | None = None,
    ) -> None:
        """Open a catalog; nothing is written, and a missing manifest is an empty one.

        Args:
            home: Where the catalog is.
            manifest: Its manifest, where one is shared.
            check: Whether an identifier may be given to a new object of a kind, beyond what the
                manifest says; called while a change is planned.
            fits: Whether a table may be registered at a location, in the same way.
            keeps: Whether the files at a location are used beyond what the manifest says.
        """
        super().__init__(home)
        self.manifest = manifest or open_manifest(home)
        self._check = check
        self._fits = fits or (lambda _location: None)
        self._namespaces = Namespaces(self.manifest)
        self._trash = Trash(
            home.store,
            self.manifest,
            clock=home.clock,
            ids=home.ids,
            author=home.author,
            keeps=keeps or (lambda _location: False),
        )
        self._dropped = Dropped(self.manifest, self._trash, home.clock, self._is_live)
        self._sweep = Sweep(home.store, self.manifest, clock=home.clock, ids=home.ids)
        self._registry = Registry(
            home.store,
            self.manifest,
            trash=self._trash,
            tables=home.open_tables,
            clock=home.clock,
            ids=home.ids,
            author=home.author,
        )

    @property
    def levels(self) -> int | None:
        """Tables lie at any level."""
        return None

    # -- namespaces ----------------------------------------------------------------------------

    def list_namespaces(
        self, parent: ObjectId, *, after: str | None = None, limit: int | None = None
    ) -> list[str]:
        """Name the direct child namespaces."""
        return self._list(parent, NAMESPACE, after, limit)

    def describe_namespace(self, namespace: ObjectId) -> Mapping[str, str]:
        """Return a namespace's properties."""
        return self._namespaces.properties(key_of(namespace))

    def create_namespace(
        self,
        namespace: ObjectId,
        properties: Mapping[str, str],
        mode: CreateMode = CreateMode.CREATE,
    ) -> Mapping[str, str]:
        """Make a namespace."""
        key = new_key(namespace, "namespace")
        check_properties(properties)
        self.home.prepare(creates=True)
        return self._namespaces.create(key, properties, mode, self._check_namespace)

    def update_namespace(
        self, namespace: ObjectId, updates: Mapping[str, str | None]
    ) -> Mapping[str, str]:
        """Change properties of a namespace; the root's are the catalog's."""
        check_properties(updates)
        if namespace.is_root and {PROTECTED, RETENTION} & updates.keys():
            msg = (
                "the root cannot be dropped and needs no protection; how long dropped tables stay"
                ' in the trash by default is set with "mooring init --default-ttl"'
            )
            raise InvalidInputError(msg)
        self.home.prepare(creates=namespace.is_root)
        return self._namespaces.update(key_of(namespace), updates)

    def drop_namespace(
        self, namespace: ObjectId, *, cascade: bool = False, ttl: Ttl | None = None
    ) -> Mapping[str, str]:
        """Move a namespace into the trash."""
        if namespace.is_root:
            msg = "the root namespace is the catalog itself and cannot be dropped"
            raise InvalidInputError(msg)
        self.home.prepare()
        default_ms = self.home.reload_settings().default_ttl_ms
        key = key_of(namespace)
        self._namespaces.require(key)
        rows = self._trash.drop_namespace(key, ttl, default_ms, cascade=cascade)
        return properties_of(rows[0])

    def undrop_namespace(self, namespace: ObjectId) -> int:
        """Bring a dropped namespace back with all that was dropped with it."""
        self.home.prepare()
        return self._trash.undrop_namespace(key_of(namespace))

    # -- reading -------------------------------------------------------------------------------

    def list_tables(
        self,
        namespace: ObjectId,
        *,
        include_declared: bool = True,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """Name the tables of a namespace; leaving out declared ones takes a look at each."""
        if include_declared:
            return self._list(namespace, TABLE, after, limit)

        def is_written(name: str) -> bool:
            row = self._registry.find(key_of(namespace.child(name)))
            return row is not None and self._registry.is_written(row)

        return cut(self._list(namespace, TABLE, after, None), None, limit, is_written)

    def list_all_tables(self) -> list[ObjectId]:
        """Return the identifiers of all live tables, sorted."""
        with self.manifest.reading() as draft:
            found = [
                object_id_of(row.object_id)
                for row in draft.rows()
                if is_table(row) and not is_dropped(row.object_id)
            ]
        return sorted(found, key=attrgetter("names"))  # five times as fast as without a key

    def states(self) -> list[tuple[ObjectId, Hint]]:
        """Tell what every table is, live or not, sorted."""
        found = [(table, Hint(State.LIVE)) for table in self.list_all_tables()]
        found += self._dropped.tables()
        return sorted(found, key=lambda told: told[0])

    def describe_tables(self, within: ObjectId = ROOT) -> list[TableInfo]:
        """Locate all live tables below a namespace, at any level, without a look at each."""
        prefix = "" if within.is_root else key_of(within) + DELIMITER
        with self.manifest.reading() as draft:
            rows = [row for row in draft.rows() if row.object_id.startswith(prefix)]
        live = (row for row in rows if is_table(row) and not is_dropped(row.object_id))
        return sorted(map(self.info, live), key=lambda info: info.id)

    def describe_namespaces(self) -> list[tuple[ObjectId, Mapping[str, str]]]:
        """Return every namespace with its properties, parents first; the root is the first."""
        root: tuple[ObjectId, Mapping[str, str]] = (ROOT, self.describe_namespace(ROOT))
        with self.manifest.reading() as draft:
            rows = [
                row for row in draft.rows() if is_namespace(row) and not is_dropped(row.object_id)
            ]
        found = [(object_id_of(row.object_id), properties_of(row)) for row in rows]
        return [root, *sorted(found, key=lambda told: told[0])]

    def dropped_namespaces(self) -> list[tuple[ObjectId, Hint]]:
        """List the namespaces in the trash, sorted; one that went with another is left out."""
        return self._dropped.namespaces()

    def unrecorded_tables(self) -> list[ObjectId]:
        """Name the live tables that the manifest lacks: there are no others."""
        return []

    def measure_manifest(self) -> tuple[int, int]:
        """Tell the manifest's newest version and its number of rows, the trash included."""
        version = newest_version(self.store, MANIFEST_DIR)
        with self.manifest.reading() as draft:
            return version, sum(1 for _ in draft.rows())

    def find(self, table: ObjectId) -> ManifestRow | None:
        """Return the row of a live table."""
        return self._registry.find(key_of(table))

    def describe_table(self, table: ObjectId, *, check_declared: bool = False) -> TableInfo:
        """Locate a live table."""
        row = self.find(table)
        if row is None:
            raise self.why_not_live(table)
        return self.describe_row(row, check_declared=check_declared)

    def describe_row(self, row: ManifestRow, *, check_declared: bool = False) -> TableInfo:
        """Describe a table whose row was found already."""
        declared = not self._registry.is_written(row) if check_declared else None
        return self.info(row, is_only_declared=declared)

    def table_status(self, table: ObjectId) -> TableStatus:
        """Tell whether a table is live, dropped or not there."""
        return Exists() if self._is_live(table) else self.status_beside(table)

    def status_beside(
        self, table: ObjectId, is_live: Callable[[ManifestRow | None], bool] = is_table
    ) -> TableStatus:
        """Tell the same by a row and the trash of one version."""
        return self._dropped.status_beside(table, is_live)

    def trash_status(self, table: ObjectId) -> SoftDeleted | NotFound:
        """Tell whether a dropped table of an identifier can come back."""
        return self._dropped.status(table)

    def list_purgable_tables(self, deleted_before_ms: int | None = None) -> list[DroppedTable]:
        """List the trash."""
        return self._dropped.list_tables(deleted_before_ms)

    def table_history(self, table: ObjectId) -> list[Change]:
        """Tell what is known of a table's past: its drops, and who wrote its versions."""
        key = key_of(table)
        row = self._registry.find(key)
        drops = [found for found in self._trash.rows() if found.object_id == key]
        changes = [
            Change("drop", "deleted", drop.record.by, drop.record.deleted_at_ms) for drop in drops
        ]
        for found in [row, *(drop.row for drop in drops)]:
            location = found.location if found else None
            if location and not is_outside(location):
                changes += writes_to(location, self.home.open_tables())
        return in_order(changes)

    # -- making tables -------------------------------------------------------------------------

    def declare_table(
        self,
        table: ObjectId,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Reserve an identifier without data."""
        key = new_key(table, "table")
        check_properties(properties or {})
        refuse_location(table, location)
        self.home.prepare(creates=True)
        row = self._registry.declare(key, properties=properties, check=self._check_table)
        return self.info(row, is_only_declared=True)

    def create_table(
        self,
        table: ObjectId,
        rows: pa.RecordBatchReader,
        mode: CreateMode = CreateMode.CREATE,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Create a table with data."""
        key = new_key(table, "table")
        check_properties(properties or {})
        self.home.prepare(creates=True)
        known = self._registry.find(key)
        if known is not None and self._registry.is_written(known):
            match mode:
                case CreateMode.EXIST_OK:
                    return self.info(known)
                case CreateMode.OVERWRITE:
                    return self.info(known, version=self._registry.overwrite(known, rows))
        try:
            row, version = self._registry.create(
                key, rows, properties=properties, check=self._check_table
            )
        except TableAlreadyExistsError as exc:
            found = self._registry.find(key)
            if mode is CreateMode.EXIST_OK and found is not None:
                return self.info(found)
            if mode is CreateMode.OVERWRITE:
                raise ConcurrentModificationError(str(exc)) from exc
            raise
        return self.info(row, version=version)

    def register_table(
        self,
        table: ObjectId,
        location: str | None,
        mode: CreateMode = CreateMode.CREATE,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Give an identifier to a table that lies in storage already."""
        key = new_key(table, "table")
        check_properties(properties or {})
        place = require_location(table, location)
        self.home.prepare()
        row = self._registry.register(
            key,
            place,
            allowed=self.home.reload_settings().allowed_locations,
            properties=properties,
            mode=mode,
            check=self._check_table,
            fits=self._fits,
            drop=self._make_way(),
        )
        return self.info(row)

    def _make_way(self) -> Callable[[Draft, ManifestRow], None]:
        drop = self._trash.begin_drop()

        def move(draft: Draft, row: ManifestRow) -> None:
            require_unprotected(draft, row)
            ttl_ms = nearest_retention(draft, row.object_id, self.settings.default_ttl_ms)
            drop.move(draft, row.object_id, [row], ttl_ms)

        return move

    # -- the lifecycle -------------------------------------------------------------------------

    def deregister_table(self, table: ObjectId) -> TableInfo:
        """Forget an identifier and keep the bytes."""
        self.home.prepare()
        self._require_live(table)
        return self.info(self._registry.deregister(key_of(table), require_unprotected))

    def rename_table(self, table: ObjectId, new: ObjectId) -> TableInfo:
        """Give a live table another identifier."""
        target = new_key(new, "table")
        self.home.prepare()
        self._require_live(table)
        return self.info(self._registry.rename(key_of(table), target, self._check_table))

    def drop_table(self, table: ObjectId, ttl: Ttl | None = None) -> TableInfo:
        """Move a live table into the trash."""
        self.home.prepare()
        self._require_live(table)
        default_ms = self.home.reload_settings().default_ttl_ms
        return self.info(self._trash.drop_table(key_of(table), ttl, default_ms))

    def undrop_table(self, table: ObjectId, new: ObjectId | None = None) -> TableInfo:
        """Bring the newest drop of a table back."""
        target = key_of(table) if new is None else new_key(new, "table")
        self.home.prepare()
        return self.info(self._trash.undrop_table(key_of(table), target, self._check_table))

    def protect_table(self, table: ObjectId, *, protected: bool = True) -> None:
        """Make drops of a table refuse, or allow them again."""
        self.update_table(table, {PROTECTED: "true" if protected else None})

    def update_table(self, table: ObjectId, updates: Mapping[str, str | None]) -> Mapping[str, str]:
        """Change properties of a table."""
        check_properties(updates)
        self.home.prepare()
        self._require_live(table)
        return self._registry.update(key_of(table), updates)

    def purge_table(self, table: ObjectId, progress: PurgeProgress | None = None) -> None:
        """Delete the bytes of every dropped table of an identifier, expired or not."""
        self.home.prepare()
        self._dropped.purge(table, progress)

    def purge_tables(
        self, tables: Sequence[ObjectId] | None = None, progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge exactly these tables, or all that are expired."""
        self.home.prepare()
        if tables is None:
            return PurgeReport(self._dropped.purge_over(progress), {})
        return purge_each(tables, partial(self.purge_table, progress=progress))

    def purge_expired(
        self, tables: Sequence[ObjectId], progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge those drops of these tables whose time is over, or whose purge was cut off."""
        self.home.prepare()
        return PurgeReport(self._dropped.purge_over(progress, tables), {})

    # -- the catalog itself --------------------------------------------------------------------

    def find_orphans(self, older_than_ms: int) -> list[Orphan]:
        """List directories that crashed creators left and nobody wrote to for a while."""
        return self._sweep.find(older_than_ms)

    def delete_orphans(self, orphans: list[Orphan]) -> list[Orphan]:
        """Delete such directories, except those that got a name since; return the deleted."""
        self.home.prepare()
        return self._sweep.delete(orphans)

    def initialize(
        self,
        *,
        default_ttl: Ttl | None = None,
        adopt: bool = False,
        allowed_locations: tuple[str, ...] | None = None,
        managed_versioning: bool | None = None,
        shared: bool = False,
    ) -> Settings:
        """Write the catalog's settings."""
        del adopt  # a manifest has no markers of others
        self.home.prepare(creates=True)
        self.home.reload_settings()
        if shared:
            self.manifest.share()
        return self.home.change_settings(
            default_ttl=default_ttl,
            allowed_locations=allowed_locations,
            managed_versioning=managed_versioning,
        )

    # -- small things --------------------------------------------------------------------------

    def _check_table(self, draft: Draft, key: str) -> None:
        if self._check is not None:
            self._check(draft, key, TABLE)

    def _check_namespace(self, draft: Draft, key: str) -> None:
        if self._check is not None:
            self._check(draft, key, NAMESPACE)

    def info(
        self,
        row: ManifestRow,
        *,
        is_only_declared: bool | None = None,
        version: int | None = None,
    ) -> TableInfo:
        """Describe a table by its row."""
        location = row.location or ""
        outside = is_outside(location)
        return TableInfo(
            id=object_id_of(row.object_id),
            location=location if outside else self.store.location(location),
            storage_options=self.store.options,
            properties=properties_of(row),
            is_only_declared=is_only_declared,
            version=version,
        )

    def _list(self, parent: ObjectId, kind: str, after: str | None, limit: int | None) -> list[str]:
        return self.manifest.names(key_of(parent), kind, after, limit)

    def _is_live(self, table: ObjectId) -> bool:
        return self.find(table) is not None

    def _require_live(self, table: ObjectId) -> None:
        """Refuse, with what happened to it, a table that is not live."""
        if not self._is_live(table):
            raise self.why_not_live(table)

    def why_not_live(self, table: ObjectId) -> TableNotFoundError:
        """Word what happened to a table that is not live."""
        return self._dropped.why_not_live(table)
