"""Compatibility mode: a manifest, and beside it the root tables that a listing finds.

A root table in `<name>.lance` lives by its chain of decisions, whoever looks at it; its row in the
manifest follows from that and is there for those who read manifests. A root table elsewhere, and
everything in a namespace, lives by its row alone. Where both claim a name, the manifest is right.

Spec: directory-namespace, "Compatibility Mode".
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from mooring.directory.commits import being_renamed
from mooring.directory.decisions import Hint, State
from mooring.directory.entries import (
    intent_of,
    is_namespace,
    parked_key,
    properties_of,
    read_dropped,
    with_properties,
)
from mooring.directory.layout import (
    TABLE_SUFFIX,
    is_table_name,
    table_dir,
)
from mooring.directory.listing_backend import ListingBackend
from mooring.directory.locations import is_by_hash, looks_by_hash
from mooring.directory.manifest_backend import ManifestBackend, new_key
from mooring.directory.past import in_order
from mooring.directory.renaming import UNDO_RENAME, Renaming
from mooring.directory.root_rows import RootRows, is_named
from mooring.directory.versioned import Versioned
from mooring.errors import (
    ConcurrentModificationError,
    ConflictError,
    InvalidNameError,
    InvalidTableStateError,
    NamespaceAlreadyExistsError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from mooring.identifiers import DELIMITER, ROOT, quote
from mooring.namespace.api import CreateMode, PurgeReport, TableInfo, Ttl
from mooring.namespace.locations import check_location, overlaps
from mooring.namespace.paging import cut
from mooring.namespace.properties import PROTECTED, check_properties, merge_properties
from mooring.namespace.purging import purge_each
from mooring.namespace.states import Exists, NotFound, SoftDeleted
from mooring.tables.manifest import TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from mooring.directory.draft import Draft
    from mooring.directory.manifest import Manifest
    from mooring.directory.sweeping import Orphan
    from mooring.directory.view import TableView
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import Change, PurgeProgress
    from mooring.namespace.home import Home
    from mooring.namespace.settings import Settings
    from mooring.namespace.states import DroppedTable, TableStatus
    from mooring.tables.manifest import ManifestRow

__all__ = ["CompatBackend"]


class CompatBackend(Versioned):
    """A manifest catalog whose root also holds the `<name>.lance` directories."""

    def __init__(
        self, home: Home, *, manifest: Manifest | None = None, listing: bool = True
    ) -> None:
        """Open a catalog; nothing is written.

        Args:
            home: Where the catalog is.
            manifest: Its manifest, where one is shared.
            listing: Whether root tables are found by their directories, too. Without, those
                that the manifest names still live by their directories.
        """
        super().__init__(home)
        self.listing = listing
        self._listed = ListingBackend(home, fence=self._fence, is_held=self._is_held)
        self._named = ManifestBackend(
            home,
            manifest=manifest,
            check=self._check,
            fits=self._require_stays,
            keeps=self._is_directory_of_table,
        )
        self.manifest = self._named.manifest
        self._rows = RootRows(self.manifest, self._listed.view, author=home.author)
        self._renaming = Renaming(
            home,
            self.manifest,
            self._listed.chains,
            self._listed.commits,
            check=lambda draft, key: self._check(draft, key, TABLE),
        )

    @property
    def levels(self) -> int | None:
        """Tables lie at any level."""
        return None

    # -- namespaces: the manifest's -------------------------------------------------------------

    def list_namespaces(
        self, parent: ObjectId, *, after: str | None = None, limit: int | None = None
    ) -> list[str]:
        """Name the direct child namespaces."""
        return self._named.list_namespaces(parent, after=after, limit=limit)

    def describe_namespace(self, namespace: ObjectId) -> Mapping[str, str]:
        """Return a namespace's properties."""
        return self._named.describe_namespace(namespace)

    def create_namespace(
        self,
        namespace: ObjectId,
        properties: Mapping[str, str],
        mode: CreateMode = CreateMode.CREATE,
    ) -> Mapping[str, str]:
        """Make a namespace."""
        return self._named.create_namespace(namespace, properties, mode)

    def update_namespace(
        self, namespace: ObjectId, updates: Mapping[str, str | None]
    ) -> Mapping[str, str]:
        """Change properties of a namespace."""
        return self._named.update_namespace(namespace, updates)

    def drop_namespace(
        self, namespace: ObjectId, *, cascade: bool = False, ttl: Ttl | None = None
    ) -> Mapping[str, str]:
        """Move a namespace into the trash."""
        return self._named.drop_namespace(namespace, cascade=cascade, ttl=ttl)

    def undrop_namespace(self, namespace: ObjectId) -> int:
        """Bring a dropped namespace back."""
        return self._named.undrop_namespace(namespace)

    # -- reading -------------------------------------------------------------------------------

    def list_tables(
        self,
        namespace: ObjectId,
        *,
        include_declared: bool = True,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """Name the live tables; those of the root from the manifest and one listing."""
        if not namespace.is_root:
            return self._named.list_tables(
                namespace, include_declared=include_declared, after=after, limit=limit
            )

        def is_written(name: str) -> bool:
            return not self.describe_table(ROOT.child(name), check_declared=True).is_only_declared

        return cut(self._root_tables(), after, limit, None if include_declared else is_written)

    def _root_tables(self) -> list[str]:
        # The manifest first: a table that is renamed meanwhile is listed twice rather than never.
        with self.manifest.reading() as draft:
            rows = _rows_of_root(draft)
            # Those that may be live although their directory is hidden.
            doubtful = {
                name
                for name, row in rows.items()
                if intent_of(row) is not None or draft.get(parked_key(name)) is not None
            }
        if not self.listing:
            return sorted(rows)
        scan = self._listed.scan()
        live = self._without_nested(scan.live)
        for name, row in rows.items():
            if name in live or name in scan.unreadable:
                continue
            # A row whose directory is not there is a declared table; one in the trash is not.
            is_there = is_named(row) or name not in scan.other
            if is_there or (
                (name in doubtful or scan.other[name].state is State.RENAMING)
                and self._is_live_by_row(self._listed.view(name))
            ):
                live.add(name)
        return sorted(live)

    def _without_nested(self, names: list[str]) -> set[str]:
        """Leave out directories of nested tables, which others let end as those of the root."""
        if not any(map(looks_by_hash, names)):
            return set(names)
        with self.manifest.reading() as draft:
            nested = {row.location for row in draft.rows() if is_by_hash(row)}
        return {name for name in names if table_dir(name) not in nested}

    def _is_live_by_row(self, view: TableView) -> bool:
        """Whether a root table that has a row is live although its directory is hidden.

        Until its row is switched, a table that is renamed is read under its old name, also where
        the rename was taken back.
        """
        return view.state is State.RENAMING or self._rows.is_registered_again(view)

    def _root_rows(self) -> dict[str, ManifestRow]:
        with self.manifest.reading() as draft:
            return _rows_of_root(draft)

    def list_all_tables(self) -> list[ObjectId]:
        """Return the identifiers of all live tables, sorted."""
        nested = [table for table in self._named.list_all_tables() if table.level > 1]
        return sorted([*map(ROOT.child, self._root_tables()), *nested], key=attrgetter("names"))

    def states(self) -> list[tuple[ObjectId, Hint]]:
        """Tell what every table is, live or not, sorted."""
        rows = self._root_rows()
        live = self.list_all_tables()
        # What a row in its own directory makes live is not dropped, whatever was decided before.
        by_row = {ROOT.child(name) for name, row in rows.items() if not is_named(row)} & set(live)
        listed = [told for told in self._listed.states() if told[0] not in by_row]
        gone = [told for told in [*listed, *self._named.states()] if told[1].state != State.LIVE]
        return sorted([*((table, Hint(State.LIVE)) for table in live), *gone], key=itemgetter(0))

    def describe_tables(self, within: ObjectId = ROOT) -> list[TableInfo]:
        """Locate all live tables below a namespace, those of the root also by listing it."""
        if not within.is_root:
            return self._named.describe_tables(within)
        rows = self._root_rows()
        live = {ROOT.child(name) for name in self._root_tables()}
        named = self._named.describe_tables()
        found = {info.id: info for info in named if info.id.level > 1 or info.id in live}
        for info in self._listed.describe_tables():
            row = rows.get(info.id.name)
            if info.id in live and not (row is not None and is_named(row)):
                properties = {**_unprotected(row), **info.properties}
                found[info.id] = replace(info, properties=properties)
        return [found[table] for table in sorted(found)]

    def describe_namespaces(self) -> list[tuple[ObjectId, Mapping[str, str]]]:
        """Return every namespace with its properties, parents first; the root is the first."""
        return self._named.describe_namespaces()

    def dropped_namespaces(self) -> list[tuple[ObjectId, Hint]]:
        """List the namespaces in the trash, sorted; one that went with another is left out."""
        return self._named.dropped_namespaces()

    def unrecorded_tables(self) -> list[ObjectId]:
        """Name the live root tables that only a listing finds, sorted."""
        if not self.listing:
            return []
        rows = self._root_rows()
        return [ROOT.child(name) for name in self._listed.scan().live if name not in rows]

    def measure_manifest(self) -> tuple[int, int]:
        """Tell the manifest's newest version and its number of rows, the trash included."""
        return self._named.measure_manifest()

    def describe_table(self, table: ObjectId, *, check_declared: bool = False) -> TableInfo:
        """Locate a live table: by the manifest, then by its directory."""
        row = self._row(table)
        if not self._is_listed(table, row):
            if row is None:
                raise self._named.why_not_live(table)
            return self._named.describe_row(row, check_declared=check_declared)
        view = self._listed.view(table.name)
        if row is not None and (view.state is None or self._is_live_by_row(view)):
            return self._named.describe_row(row, check_declared=check_declared)
        if view.state is not State.LIVE and not self._was_listed(table):
            raise self._named.why_not_live(table)
        info = self._listed.describe_viewed(table, view, check_declared=check_declared)
        return replace(info, properties={**_unprotected(row), **info.properties})

    def table_status(self, table: ObjectId) -> TableStatus:
        """Tell whether a table is live, dropped or not there."""
        row = self._row(table)
        if not self._is_listed(table, row):
            return self._trash_status(table) if row is None else Exists()
        status = self._listed.table_status(table)
        if isinstance(status, Exists):
            return status
        if row is not None:
            view = self._listed.view(table.name)
            if view.state is None or self._is_live_by_row(view):
                return Exists()
        dropped = self._trash_status(table)
        if isinstance(dropped, SoftDeleted) and isinstance(status, SoftDeleted):
            return max(dropped, status, key=lambda found: found.deleted_at_ms)
        return dropped if isinstance(status, NotFound) else status

    def list_purgable_tables(self, deleted_before_ms: int | None = None) -> list[DroppedTable]:
        """List the trash."""
        found = self._listed.list_purgable_tables(deleted_before_ms)
        found += self._named.list_purgable_tables(deleted_before_ms)
        return sorted(found, key=lambda table: table.id)

    def table_history(self, table: ObjectId) -> list[Change]:
        """Tell what happened to a table, oldest first."""
        changes = [] if self._row_key(table) is None else self._named.table_history(table)
        if self._can_be_listed(table):
            changes = [*changes, *self._listed.table_history(table)]
        unique = {(change.action, change.at_ms, change.version): change for change in changes}
        return in_order(unique.values())

    # -- making tables -------------------------------------------------------------------------

    def declare_table(
        self,
        table: ObjectId,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Reserve a name without data; in the root as `<name>.lance`."""
        if not self._is_listed(table, self._row(table)):
            return self._named.declare_table(table, location, properties)
        row = self._require_free(table, properties)
        if row is not None and self._is_bare(table):
            msg = f"table {quote(table.name)} is declared already"
            raise TableAlreadyExistsError(msg)
        info = self._listed.declare_table(table, location)
        self._take_name(table, properties)
        return replace(info, properties=dict(properties or {}))

    def create_table(
        self,
        table: ObjectId,
        rows: pa.RecordBatchReader,
        mode: CreateMode = CreateMode.CREATE,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Create a table with data; in the root as `<name>.lance`."""
        if not self._is_listed(table, self._row(table)):
            return self._named.create_table(table, rows, mode, properties)
        self._require_free(table, properties)
        view = self._listed.view(table.name)
        was_live = view.state is State.LIVE
        self._end_rename(view)
        info = self._listed.create_table(table, rows, mode)
        self._take_name(table, properties, fresh=not was_live)
        return replace(info, properties={**(properties or {}), **info.properties})

    def register_table(
        self,
        table: ObjectId,
        location: str | None,
        mode: CreateMode = CreateMode.CREATE,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Give a name to a table in storage; one in `<name>.lance` is taken into the manifest."""
        if not self._is_own(table, location):
            return self._named.register_table(table, location, mode, properties)
        if self._row_key(table) is None:
            return self._listed.register_table(table, None, mode, properties)
        row = self._require_free(table, properties)
        if row is None and self._listed.view(table.name).state is State.LIVE:
            self._listed.home.prepare()
            info = self._listed.describe_table(table)
        else:
            info = self._listed.register_table(table, None, mode)
        self._take_name(table, properties, inherit=True)
        return info

    def _is_own(self, table: ObjectId, location: str | None) -> bool:
        """Whether a location, however it is written, is where a root table's name says."""
        if not self._can_be_listed(table):
            return False
        if not location:
            return location is None
        allowed = self.settings.allowed_locations
        return check_location(location, self.store.location(""), allowed) == table_dir(table.name)

    # -- the lifecycle -------------------------------------------------------------------------

    def deregister_table(self, table: ObjectId) -> TableInfo:
        """Forget a name and keep the bytes."""
        if not self._is_by_directory(table):
            return self._named.deregister_table(table)
        info = self._listed.deregister_table(table)
        self._rows.settle(table.name)
        return info

    def rename_table(self, table: ObjectId, new: ObjectId) -> TableInfo:
        """Give a live table another name; one in `<name>.lance` moves to a path by hash."""
        if not self._is_by_directory(table):
            return self._named.rename_table(table, new)
        key = new_key(new, "table")
        if new == table:
            return self.describe_table(table)
        self.home.prepare()
        ttl_ms = self.home.reload_settings().default_ttl_ms
        row = self._renaming.run(table.name, key, ttl_ms)
        self._rows.settle(table.name)
        return self._named.info(row)

    def drop_table(self, table: ObjectId, ttl: Ttl | None = None) -> TableInfo:
        """Hide a live table, reversibly."""
        if not self._is_by_directory(table):
            return self._named.drop_table(table, ttl)
        info = self._listed.drop_table(table, ttl)
        self._rows.settle(table.name)
        return info

    def undrop_table(self, table: ObjectId, new: ObjectId | None = None) -> TableInfo:
        """Make a dropped table live again: the one that was dropped last."""
        row = self._row(table)
        in_trash = isinstance(self._listed_status(table), SoftDeleted)
        if not self._was_listed(table) or (row is not None and is_named(row) and not in_trash):
            return self._named.undrop_table(table, new)
        if self._row_key(table) is not None:
            self._require_free(table, None)
        if new is not None and new != table:
            # Before the table comes back, for it stays back if it cannot be renamed.
            self._renaming.require_new(new_key(new, "table"))
        if self._call_back(table):
            info = self.describe_table(table)
        else:
            info = self._listed.undrop_table(table)
            self._take_name(table, None, inherit=True)
        return info if new is None or new == table else self.rename_table(table, new)

    def _call_back(self, table: ObjectId) -> bool:
        """Whether an undrop brought a table back by undoing a rename of it."""
        view = self._listed.view(table.name)
        is_announced = view.state is State.LIVE and intent_of(self._row(table)) is not None
        if view.state is not State.RENAMING and not is_announced:
            return False
        self.home.prepare()
        self._renaming.call_off(view)
        after = self._listed.view(table.name)
        if after.state is not State.LIVE:
            return False
        # A rename that came to its end may have been followed by an undrop: somebody else's.
        decision = after.chain.decision
        is_unmoved = after.chain.seq == view.chain.seq
        return is_unmoved or (decision is not None and decision.action == UNDO_RENAME)

    def protect_table(self, table: ObjectId, *, protected: bool = True) -> None:
        """Make drops of a table refuse, or allow them again."""
        if self._is_by_directory(table):
            self._listed.protect_table(table, protected=protected)
        else:
            self._named.protect_table(table, protected=protected)

    def update_table(self, table: ObjectId, updates: Mapping[str, str | None]) -> Mapping[str, str]:
        """Change properties of a table; a root table's are kept in its row."""
        if not self._is_by_directory(table):
            return self._named.update_table(table, updates)
        check_properties(updates)
        info = self.describe_table(table)
        self.home.prepare()
        if PROTECTED in updates:
            self._listed.protect_table(table, protected=updates[PROTECTED] == "true")
        kept = {key: value for key, value in updates.items() if key != PROTECTED}
        if kept:
            self._rows.settle(table.name, {})
            self.manifest.change(lambda draft: _merge(draft, table.name, kept))
        return merge_properties(info.properties, updates)

    def purge_table(self, table: ObjectId, progress: PurgeProgress | None = None) -> None:
        """Delete the bytes of every dropped table of a name, expired or not."""
        done = False
        if self._can_be_listed(table):
            self._end_rename(self._listed.view(table.name))
            try:
                self._listed.purge_table(table, progress)
                done = True
            except TableNotFoundError:
                if self._row_key(table) is None:
                    raise
            self._rows.settle(table.name)
        try:
            self._named.purge_table(table, progress)
        except (TableNotFoundError, InvalidNameError):
            if not done:
                raise

    def purge_tables(
        self, tables: Sequence[ObjectId] | None = None, progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge exactly these tables, or all that are expired."""
        self.home.prepare()
        if tables is None:
            self._end_renames()
            listed = self._listed.purge_tables(None, progress)
            for table in listed.purged:
                self._rows.settle(table.name)
            named = self._named.purge_tables(None, progress)
            return PurgeReport([*listed.purged, *named.purged], {**listed.failed, **named.failed})
        return purge_each(tables, partial(self.purge_table, progress=progress))

    def purge_expired(
        self, tables: Sequence[ObjectId], progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge those drops of these tables whose time is over, or whose purge was cut off."""
        self.home.prepare()
        by_directory = [table for table in tables if self._can_be_listed(table)]
        listed = self._listed.purge_expired(by_directory, progress)
        for table in listed.purged:
            self._rows.settle(table.name)
        by_row = [table for table in tables if self._row_key(table) is not None]
        named = self._named.purge_expired(by_row, progress)
        return PurgeReport([*listed.purged, *named.purged], listed.failed)

    def settle_rename(self, table: ObjectId) -> None:
        """End a rename of a root table that was cut off, or undo it where its last step lacks.

        A rename that is under way loses by this, and leaves the table as it was.
        """
        self.home.prepare()
        view = self._listed.view(table.name)
        if self._end_rename(view):
            self._rows.settle(table.name)
            return
        self._renaming.call_off(view)
        chain = self._listed.chains.read(table.name)
        if chain.state in {None, State.LIVE}:
            self._listed.commits.require_open(chain)

    def _end_rename(self, view: TableView) -> bool:
        """Before a change: end a rename of a root table that was cut off at its very end."""
        if view.state is not State.RENAMING or self.read_only:
            return False
        return self._renaming.end(view, self.settings.default_ttl_ms)

    def _end_renames(self) -> None:
        """Bring the old directories of renames that were cut off at their end into the trash."""
        for name, hint in self._listed.scan().other.items():
            if hint.state is State.RENAMING:
                self._end_rename(self._listed.view(name))

    # -- the catalog itself --------------------------------------------------------------------

    def find_orphans(self, older_than_ms: int) -> list[Orphan]:
        """List directories that crashed creators left and nobody wrote to for a while."""
        return self._named.find_orphans(older_than_ms)

    def delete_orphans(self, orphans: list[Orphan]) -> list[Orphan]:
        """Delete such directories, except those that got a name since; return the deleted."""
        return self._named.delete_orphans(orphans)

    def initialize(
        self,
        *,
        default_ttl: Ttl | None = None,
        adopt: bool = False,
        allowed_locations: tuple[str, ...] | None = None,
        managed_versioning: bool | None = None,
        shared: bool = False,
    ) -> Settings:
        """Write the catalog's settings, and adopt a directory that others filled."""
        settings = self._listed.initialize(
            default_ttl=default_ttl,
            adopt=adopt,
            allowed_locations=allowed_locations,
            managed_versioning=managed_versioning,
        )
        if shared:
            self.manifest.share()
        return settings

    # -- who a name belongs to -------------------------------------------------------------------

    def _row_key(self, table: ObjectId) -> str | None:
        """Return the identifier of a table's row; None for a name that no row can have."""
        return None if table.level == 1 and DELIMITER in table.name else table.format()

    def _row(self, table: ObjectId) -> ManifestRow | None:
        """Return the row of a table, as the newest manifest has it."""
        return None if self._row_key(table) is None else self._named.find(table)

    def _is_listed(self, table: ObjectId, row: ManifestRow | None) -> bool:
        """Whether a table lives, would live or did live by its `<name>.lance` directory."""
        if not self._can_be_listed(table):
            return False
        if row is not None:
            return not is_named(row)
        if self.listing or self._row_key(table) is None:
            return self.listing
        # Without listings a directory counts only for what was decided about it.
        return self._listed.view(table.name).state not in {None, State.LIVE}

    def _can_be_listed(self, table: ObjectId) -> bool:
        """Whether there can be a directory for a table's name."""
        return table.level == 1 and is_table_name(table.name)

    def _is_by_directory(self, table: ObjectId) -> bool:
        """Before a change: whether a table is changed by a decision about its directory."""
        row = self._row(table)
        if not self._is_listed(table, row):
            return False
        view = self._listed.view(table.name)
        if row is not None and view.state is None:
            return False
        if self._end_rename(view):
            view = self._listed.view(table.name)
        if self._rows.is_registered_again(view):
            # Decide about the directory what another program decided by a row.
            self._listed.bring_back(view)
            self._rows.settle(table.name, {}, inherit=False)
            return True
        return view.state is State.LIVE or self._was_listed(table)

    def _is_bare(self, table: ObjectId) -> bool:
        """Whether a root table is a row without any directory: only declared."""
        return self._listed.view(table.name).state is None

    def _was_listed(self, table: ObjectId) -> bool:
        """Whether the newest drop of a name is one of a `<name>.lance` directory."""
        if not self._can_be_listed(table):
            return False
        listed, named = self._listed_status(table), self._trash_status(table)
        if not isinstance(named, SoftDeleted):
            return True
        return isinstance(listed, SoftDeleted) and listed.deleted_at_ms >= named.deleted_at_ms

    def _listed_status(self, table: ObjectId) -> TableStatus:
        """Tell what a table is by its directory alone."""
        return self._listed.table_status(table) if self._can_be_listed(table) else NotFound()

    def _trash_status(self, table: ObjectId) -> SoftDeleted | NotFound:
        return NotFound() if self._row_key(table) is None else self._named.trash_status(table)

    def _require_free(
        self, table: ObjectId, properties: Mapping[str, str] | None
    ) -> ManifestRow | None:
        """Refuse a root name that the manifest gave to something else; return its own row."""
        check_properties(properties or {})
        key = self._row_key(table)
        if key is None:
            msg = (
                f"{quote(table.name)} cannot be a new name: it holds the delimiter '{DELIMITER}',"
                " so it would read as a table in a namespace"
            )
            raise InvalidNameError(msg)
        row = self.manifest.find(key)
        if is_namespace(row):
            msg = f"{quote(key)} is the name of a namespace already"
            raise NamespaceAlreadyExistsError(msg)
        if row is not None and is_named(row):
            msg = f"table {quote(key)} exists already"
            raise TableAlreadyExistsError(msg)
        return row

    def _check(self, draft: Draft, key: str, kind: str) -> None:
        """While a change is planned: refuse a root name that a directory has, or cannot have."""
        del draft
        if DELIMITER in key:
            return
        state = self._listed.view(key).state if is_table_name(key) else None
        if state in {State.LIVE, State.RENAMING}:
            msg = f"table {quote(key)} exists already, in {quote(table_dir(key))}"
            raise TableAlreadyExistsError(msg)
        if kind == TABLE and state not in {None, State.PURGED, State.DEREGISTERED}:
            msg = f"{quote(key)} is the name of a dropped table: purge it, or choose another name"
            raise InvalidTableStateError(msg)

    def _is_directory_of_table(self, location: str) -> bool:
        """Whether a location is a root table's directory, which lives and goes with its chain."""
        state = self._state_at(location)
        return state not in {None, State.PURGED}

    def _state_at(self, location: str) -> State | None:
        if "/" in location or not location.endswith(TABLE_SUFFIX):
            return None
        return self._listed.view(location.removesuffix(TABLE_SUFFIX)).state

    def _require_stays(self, location: str) -> None:
        """While a registration is planned: refuse the directory of a table that is not live."""
        state = self._state_at(location)
        if state is State.RENAMING:
            raise being_renamed(location.removesuffix(TABLE_SUFFIX))
        if state not in {None, State.LIVE, State.DEREGISTERED}:
            msg = f"the table at {quote(location)} was dropped: undrop it first, or purge it"
            raise InvalidTableStateError(msg)

    # -- names and files that several claim ------------------------------------------------------

    def _is_held(self, name: str, nonce: str) -> bool:
        """Whether the rename of a root table that has this nonce can still be finished."""
        intent = intent_of(self.manifest.find(name))
        return intent is not None and intent.nonce == nonce

    def _take_name(
        self,
        table: ObjectId,
        properties: Mapping[str, str] | None,
        *,
        inherit: bool = False,
        fresh: bool = False,
    ) -> None:
        """Give a table that just became live its row, or give way.

        Raises:
            ConcurrentModificationError: another table got the name meanwhile; this one is in
                the trash.
            UnknownOutcomeError: whether one did cannot be seen.
        """
        try:
            self._rows.settle(
                table.name, properties or {}, inherit=inherit, fresh=fresh, is_decisive=True
            )
        except ConflictError as exc:
            with suppress(TableNotFoundError, ConcurrentModificationError):
                self._listed.drop_table(table)
            msg = f"the name {quote(table.name)} was given to another table meanwhile"
            raise ConcurrentModificationError(msg) from exc

    def _fence(self, name: str) -> None:
        """Make sure that no other name uses the files of a root table that is to be purged.

        Whoever registers such a name looks at the table after the manifest's version: with a
        new version in between it sees the purge that was announced.

        Raises:
            InvalidTableStateError: another name does.
        """
        if not self.manifest.exists:
            return
        self.manifest.fence()
        location = table_dir(name)
        with self.manifest.reading() as draft:
            for row in draft.rows():
                dropped = read_dropped(row)
                if (
                    row.object_id == name
                    or not row.location
                    or (dropped and dropped.record.purging)
                ):
                    continue
                if overlaps(location, row.location):
                    other = dropped.object_id if dropped else row.object_id
                    msg = (
                        f"the files of table {quote(name)} are also those of {quote(other)}:"
                        " drop and purge that one first, or deregister it"
                    )
                    raise InvalidTableStateError(msg)


def _unprotected(row: ManifestRow | None) -> dict[str, str]:
    """Return the properties of a root table's row; its protection is decided by its chain."""
    return {key: value for key, value in properties_of(row).items() if key != PROTECTED}


def _rows_of_root(draft: Draft) -> dict[str, ManifestRow]:
    names = draft.names("", TABLE)
    return {name: row for name in names if (row := draft.get(name)) is not None}


def _merge(draft: Draft, name: str, updates: Mapping[str, str | None]) -> None:
    row = draft.require_table(name)
    draft.put(with_properties(row, merge_properties(properties_of(row), updates)))
