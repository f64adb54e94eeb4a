"""Compatibility mode: a manifest, and beside it the root tables that a listing finds.

A root table in `<name>.lance` lives by its chain of decisions, whoever looks at it; its row in the
manifest follows from that and is there for those who read manifests. A root table elsewhere, and
everything in a namespace, lives by its row alone. Where both claim a name, the manifest is right.

Spec: directory-namespace, "Compatibility Mode".
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mooring.directory.compat_claims import Claims
from mooring.directory.compat_names import RootNames
from mooring.directory.compat_owners import Owners, can_be_listed, given_away, require_free, row_key
from mooring.directory.compat_reader import CompatReader
from mooring.directory.compat_renames import OpenRenames
from mooring.directory.decisions import State
from mooring.directory.entries import properties_of, with_properties
from mooring.directory.listing_backend import ListingBackend
from mooring.directory.manifest_backend import ManifestBackend
from mooring.directory.manifest_opening import open_manifest
from mooring.directory.renaming import Renaming
from mooring.directory.root_rows import RootRows, is_named
from mooring.directory.row_keys import new_key
from mooring.directory.versioned import Versioned
from mooring.errors import (
    InvalidNameError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from mooring.identifiers import ROOT, quote
from mooring.namespace.api import CreateMode, PurgeReport, TableInfo, Ttl
from mooring.namespace.paging import cut
from mooring.namespace.properties import PROTECTED, check_properties, merge_properties
from mooring.namespace.purging import purge_each
from mooring.namespace.states import SoftDeleted
from mooring.tables.manifest import TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from mooring.directory.decisions import Hint
    from mooring.directory.draft import Draft
    from mooring.directory.manifest import Manifest
    from mooring.directory.sweeping import Orphan
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import Change, PurgeProgress
    from mooring.namespace.home import Home
    from mooring.namespace.settings import Settings
    from mooring.namespace.states import DroppedTable, TableStatus

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
        self.manifest = manifest or open_manifest(home)
        self._claims = claims = Claims(
            self.manifest,
            lambda name: self._listed.view(name),  # noqa: PLW0108  # it is made below, with claims
        )
        self._listed = ListingBackend(home, fence=claims.fence, is_held=claims.is_held)
        self._named = ManifestBackend(
            home,
            manifest=self.manifest,
            check=claims.check_name,
            fits=claims.require_stays,
            keeps=claims.is_directory_of_table,
        )
        self._rows = RootRows(self.manifest, self._listed.view, author=home.author)
        self._names = RootNames(home, self.manifest, self._listed, self._rows)
        self._owners = Owners(self._listed, self._named, listing=listing)
        self._reader = CompatReader(
            self._owners, self._listed, self._named, self._rows, listing=listing
        )
        self._renaming = self._renaming_with(
            lambda draft, new: claims.check_name(draft, new, TABLE)
        )
        self._renames = OpenRenames(home, self._owners, self._listed, self._renaming)

    def _renaming_with(self, check: Callable[[Draft, str], None]) -> Renaming:
        listed = self._listed
        return Renaming(self.home, self.manifest, listed.chains, listed.commits, check=check)

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

        names = self._reader.root_tables()
        return cut(names, after, limit, None if include_declared else is_written)

    def list_all_tables(self) -> list[ObjectId]:
        """Return the identifiers of all live tables, sorted."""
        return self._reader.all_tables()

    def states(self) -> list[tuple[ObjectId, Hint]]:
        """Tell what every table is, live or not, sorted."""
        return self._reader.states()

    def describe_tables(self, within: ObjectId = ROOT) -> list[TableInfo]:
        """Locate all live tables below a namespace, those of the root also by listing it."""
        return (
            self._reader.describe_all() if within.is_root else self._named.describe_tables(within)
        )

    def describe_namespaces(self) -> list[tuple[ObjectId, Mapping[str, str]]]:
        """Return every namespace with its properties, parents first; the root is the first."""
        return self._named.describe_namespaces()

    def dropped_namespaces(self) -> list[tuple[ObjectId, Hint]]:
        """List the namespaces in the trash, sorted; one that went with another is left out."""
        return self._named.dropped_namespaces()

    def unrecorded_tables(self) -> list[ObjectId]:
        """Name the live root tables that only a listing finds, sorted."""
        return self._reader.unrecorded_tables()

    def measure_manifest(self) -> tuple[int, int]:
        """Tell the manifest's newest version and its number of rows, the trash included."""
        return self._named.measure_manifest()

    def describe_table(self, table: ObjectId, *, check_declared: bool = False) -> TableInfo:
        """Locate a live table: by the manifest, then by its directory."""
        return self._reader.describe(table, check_declared=check_declared)

    def table_status(self, table: ObjectId) -> TableStatus:
        """Tell whether a table is live, dropped or not there."""
        return self._reader.status(table)

    def list_purgable_tables(self, deleted_before_ms: int | None = None) -> list[DroppedTable]:
        """List the trash."""
        return self._reader.dropped(deleted_before_ms)

    def table_history(self, table: ObjectId) -> list[Change]:
        """Tell what happened to a table, oldest first."""
        return self._reader.history(table)

    # -- making tables -------------------------------------------------------------------------

    def declare_table(
        self,
        table: ObjectId,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Reserve a name without data; in the root as `<name>.lance`."""
        row = self._owners.find(table)
        if not self._owners.is_listed(table, row):
            return self._named.declare_table(table, location, properties)
        check_properties(properties or {})
        require_free(table, row)
        if row is not None and self._owners.is_bare(table):
            msg = f"table {quote(table.name)} is declared already"
            raise TableAlreadyExistsError(msg)
        info = self._listed.declare_table(table, location)
        self._names.take(table, properties)
        return replace(info, properties=dict(properties or {}))

    def create_table(
        self,
        table: ObjectId,
        rows: pa.RecordBatchReader,
        mode: CreateMode = CreateMode.CREATE,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Create a table with data; in the root as `<name>.lance`."""
        # One look decides whose the name is: a second might see another's, and refuse to overwrite.
        row = self._owners.find(table)
        if not self._owners.is_listed(table, row):
            return self._named.create_table(table, rows, mode, properties)
        check_properties(properties or {})
        require_free(table, row)
        view = self._listed.view(table.name)
        was_live = view.state is State.LIVE
        self._renames.end(view)
        info = self._listed.create_table(table, rows, mode)
        self._names.take(table, properties, fresh=not was_live)
        return replace(info, properties={**(properties or {}), **info.properties})

    def register_table(
        self,
        table: ObjectId,
        location: str | None,
        mode: CreateMode = CreateMode.CREATE,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Give a name to a table in storage; one in `<name>.lance` is taken into the manifest."""
        if not self._owners.is_own(table, location):
            return self._named.register_table(table, location, mode, properties)
        if row_key(table) is None:
            return self._listed.register_table(table, None, mode, properties)
        row = self._owners.find(table)
        check_properties(properties or {})
        require_free(table, row)
        if row is None and self._listed.view(table.name).state is State.LIVE:
            self._listed.home.prepare()
            info = self._listed.describe_table(table)
        else:
            info = self._listed.register_table(table, None, mode)
        self._names.take(table, properties, inherit=True)
        return info

    # -- the lifecycle -------------------------------------------------------------------------

    def deregister_table(self, table: ObjectId) -> TableInfo:
        """Forget a name and keep the bytes."""
        if not self._is_by_directory(table):
            return self._by_row(table, "deregister", lambda: self._named.deregister_table(table))
        info = self._listed.deregister_table(table)
        self._names.settle(table.name)
        return info

    def rename_table(self, table: ObjectId, new: ObjectId) -> TableInfo:
        """Give a live table another name; one in `<name>.lance` moves to a path by hash."""
        if not self._is_by_directory(table):
            return self._rename_row(table, new)
        key = new_key(new, "table")
        if new == table:
            return self.describe_table(table)
        self.home.prepare()
        ttl_ms = self.home.reload_settings().default_ttl_ms
        renaming = self._renaming_with(
            lambda draft, new: self._claims.check_move(draft, table.name, new)
        )
        row = renaming.run(table.name, key, ttl_ms)
        self._names.settle(table.name)
        return self._named.info(row)

    def _rename_row(self, table: ObjectId, new: ObjectId) -> TableInfo:
        if new == table:
            return self._named.rename_table(table, new)
        is_bare = self._names.bare_row(table) is not None
        if is_bare:
            # What is refused leaves the row where it is, for whoever is to fill the directory.
            self._renaming.require_new(new_key(new, "table"))
            self._names.let_go(table.name)
        info = self._by_row(table, "rename", lambda: self._named.rename_table(table, new))
        if is_bare:
            self._names.settle(table.name)
        return info

    def drop_table(self, table: ObjectId, ttl: Ttl | None = None) -> TableInfo:
        """Hide a live table, reversibly."""
        if not self._is_by_directory(table):
            return self._drop_row(table, ttl)
        info = self._listed.drop_table(table, ttl)
        self._names.settle(table.name)
        return info

    def _drop_row(self, table: ObjectId, ttl: Ttl | None) -> TableInfo:
        row = self._names.bare_row(table)
        is_bare = row is not None and properties_of(row).get(PROTECTED) != "true"
        if is_bare:
            self._names.let_go(table.name)
        info = self._by_row(table, "drop", lambda: self._named.drop_table(table, ttl))
        if is_bare:
            self._names.settle(table.name)
        return info

    def _by_row(self, table: ObjectId, action: str, act: Callable[[], TableInfo]) -> TableInfo:
        """Take a row away from its name, unless a directory has come to have the name."""
        info = act()
        if can_be_listed(table):
            self._names.reclaim(table.name, info, action)
        return info

    def undrop_table(self, table: ObjectId, new: ObjectId | None = None) -> TableInfo:
        """Make a dropped table live again: the one that was dropped last."""
        row = self._owners.row_of(table)
        in_trash = isinstance(self._owners.listed_status(table), SoftDeleted)
        is_elsewhere = row is not None and is_named(row) and not in_trash
        if is_elsewhere or not self._owners.was_listed(table):
            return self._named.undrop_table(table, new)
        if row_key(table) is not None:
            require_free(table, self._owners.find(table))
        if new is not None and new != table:
            # Before the table comes back, for it stays back if it cannot be renamed.
            self._renaming.require_new(new_key(new, "table"))
        if self._renames.call_back(table):
            info = self.describe_table(table)
        else:
            info = self._listed.undrop_table(table)
            self._names.take(table, None, inherit=True)
        return info if new is None or new == table else self.rename_table(table, new)

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
        if can_be_listed(table):
            self._renames.end(self._listed.view(table.name))
            try:
                self._listed.purge_table(table, progress)
                done = True
            except TableNotFoundError:
                if row_key(table) is None:
                    raise
            self._names.settle(table.name)
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
            self._renames.end_all()
            listed = self._listed.purge_tables(None, progress)
            for table in listed.purged:
                self._names.settle(table.name)
            named = self._named.purge_tables(None, progress)
            return PurgeReport([*listed.purged, *named.purged], {**listed.failed, **named.failed})
        return purge_each(tables, partial(self.purge_table, progress=progress))

    def purge_expired(
        self, tables: Sequence[ObjectId], progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge those drops of these tables whose time is over, or whose purge was cut off."""
        self.home.prepare()
        by_directory = [table for table in tables if can_be_listed(table)]
        listed = self._listed.purge_expired(by_directory, progress)
        for table in listed.purged:
            self._names.settle(table.name)
        by_row = [table for table in tables if row_key(table) is not None]
        named = self._named.purge_expired(by_row, progress)
        return PurgeReport([*listed.purged, *named.purged], listed.failed)

    def settle_rename(self, table: ObjectId) -> None:
        """End a rename of a root table that was cut off, or undo it where its last step lacks.

        A rename that is under way loses by this, and leaves the table as it was.
        """
        self.home.prepare()
        view = self._listed.view(table.name)
        if self._renames.end(view):
            self._names.settle(table.name)
        else:
            self._renames.undo(view)

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

    # -- directories and their rows --------------------------------------------------------------

    def _is_by_directory(self, table: ObjectId) -> bool:
        """Before a change: whether a table is changed by a decision about its directory."""
        row = self._owners.row_of(table)
        if not self._owners.is_listed(table, row):
            return False
        view = self._listed.view(table.name)
        if row is not None and view.state is None:
            return False
        if self._renames.end(view):
            view = self._listed.view(table.name)
        if self._rows.is_registered_again(view):
            # Decide about the directory what another program decided by a row.
            self._listed.bring_back(view)
            self._rows.settle(table.name, {}, inherit=False)
            return True
        return view.state is State.LIVE or self._owners.was_listed(table)


def _merge(draft: Draft, name: str, updates: Mapping[str, str | None]) -> None:
    row = draft.require_table(name)
    if is_named(row):
        raise given_away(name)
    draft.put(with_properties(row, merge_properties(properties_of(row), updates)))
