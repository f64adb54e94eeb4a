"""Reading in compatibility mode: root tables by the manifest and one listing, all others by rows.

Spec: directory-namespace, "Compatibility Mode".
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from mooring.directory.compat_owners import can_be_listed, row_key
from mooring.directory.decisions import Hint, State
from mooring.directory.entries import (
    intent_of,
    is_table,
    parked_key,
    properties_of,
)
from mooring.directory.layout import table_dir
from mooring.directory.locations import any_by_hash, is_by_hash
from mooring.directory.past import in_order
from mooring.directory.root_rows import is_named
from mooring.identifiers import ROOT
from mooring.namespace.properties import PROTECTED
from mooring.namespace.states import Exists, NotFound, SoftDeleted
from mooring.tables.manifest import TABLE

if TYPE_CHECKING:
    from mooring.directory.compat_owners import Owners
    from mooring.directory.draft import Draft
    from mooring.directory.listing_backend import ListingBackend
    from mooring.directory.manifest_backend import ManifestBackend
    from mooring.directory.root_rows import RootRows
    from mooring.directory.view import TableView
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import Change, TableInfo
    from mooring.namespace.states import DroppedTable, TableStatus
    from mooring.tables.manifest import ManifestRow

__all__ = ["CompatReader"]


class CompatReader:
    """Lists and describes what a directory and a manifest hold together."""

    def __init__(
        self,
        owners: Owners,
        listed: ListingBackend,
        named: ManifestBackend,
        rows: RootRows,
        *,
        listing: bool,
    ) -> None:
        """Read a catalog.

        Args:
            owners: By what its tables live.
            listed: Its root tables that lie in `<name>.lance`.
            named: Its rows.
            rows: Those of root tables.
            listing: Whether root tables are found by their directories, too.
        """
        self._owners = owners
        self._listed = listed
        self._named = named
        self._manifest = named.manifest
        self._rows = rows
        self._listing = listing

    # -- lists -----------------------------------------------------------------------------------

    def root_tables(self) -> list[str]:
        """Name the live tables of the root, sorted."""
        # The manifest first: a table that is renamed meanwhile is listed twice rather than never.
        with self._manifest.reading() as draft:
            rows = _rows_of_root(draft)
            # Those that may be live although their directory is hidden.
            doubtful = {
                name
                for name, row in rows.items()
                if intent_of(row) is not None or draft.get(parked_key(name)) is not None
            }
        if not self._listing:
            return sorted(rows)
        scan = self._listed.scan()
        live = self._without_nested(scan.live)
        if not rows:
            return live
        told = {*live, *scan.unreadable}
        by_row = []
        for name, row in rows.items():
            if name in told:
                continue
            # A row whose directory is not there is a declared table; one in the trash is not.
            is_there = is_named(row) or name not in scan.other
            if is_there or (
                (name in doubtful or scan.other[name].state is State.RENAMING)
                and self._is_live_by_row(self._listed.view(name))
            ):
                by_row.append(name)
        return sorted([*live, *by_row])

    def _without_nested(self, names: list[str]) -> list[str]:
        """Leave out directories of nested tables, which others let end as those of the root."""
        if not any_by_hash(names):
            return names
        with self._manifest.reading() as draft:
            nested = {row.location for row in draft.rows() if is_by_hash(row)}
        return [name for name in names if table_dir(name) not in nested]

    def _is_live_by_row(self, view: TableView) -> bool:
        """Whether a root table that has a row is live although its directory is hidden.

        Until its row is switched, a table that is renamed is read under its old name, also where
        the rename was taken back.
        """
        return view.state is State.RENAMING or self._rows.is_registered_again(view)

    def all_tables(self) -> list[ObjectId]:
        """Return the identifiers of all live tables, sorted."""
        nested = [table for table in self._named.list_all_tables() if table.level > 1]
        return sorted([*map(ROOT.child, self.root_tables()), *nested], key=attrgetter("names"))

    def unrecorded_tables(self) -> list[ObjectId]:
        """Name the live root tables that only a listing finds, sorted."""
        if not self._listing:
            return []
        rows = self._root_rows()
        return [ROOT.child(name) for name in self._listed.scan().live if name not in rows]

    def states(self) -> list[tuple[ObjectId, Hint]]:
        """Tell what every table is, live or not, sorted."""
        rows = self._root_rows()
        live = self.all_tables()
        # What a row in its own directory makes live is not dropped, whatever was decided before.
        by_row = {ROOT.child(name) for name, row in rows.items() if not is_named(row)} & set(live)
        listed = [told for told in self._listed.states() if told[0] not in by_row]
        gone = [told for told in [*listed, *self._named.states()] if told[1].state != State.LIVE]
        return sorted([*((table, Hint(State.LIVE)) for table in live), *gone], key=itemgetter(0))

    def describe_all(self) -> list[TableInfo]:
        """Locate all live tables, those of the root also by listing it."""
        rows = self._root_rows()
        live = {ROOT.child(name) for name in self.root_tables()}
        named = self._named.describe_tables()
        found = {info.id: info for info in named if info.id.level > 1 or info.id in live}
        for info in self._listed.describe_tables():
            row = rows.get(info.id.name)
            if info.id in live and not (row is not None and is_named(row)):
                properties = {**_unprotected(row), **info.properties}
                found[info.id] = replace(info, properties=properties)
        return [found[table] for table in sorted(found)]

    def dropped(self, before_ms: int | None) -> list[DroppedTable]:
        """List the trash, sorted."""
        found = self._listed.list_purgable_tables(before_ms)
        found += self._named.list_purgable_tables(before_ms)
        return sorted(found, key=lambda table: table.id)

    def _root_rows(self) -> dict[str, ManifestRow]:
        with self._manifest.reading() as draft:
            return _rows_of_root(draft)

    # -- one table -------------------------------------------------------------------------------

    def describe(self, table: ObjectId, *, check_declared: bool) -> TableInfo:
        """Locate a live table: by the manifest, then by its directory."""
        row = self._owners.row_of(table)
        if not self._owners.is_listed(table, row):
            if row is None:
                raise self._named.why_not_live(table)
            return self._named.describe_row(row, check_declared=check_declared)
        view = self._listed.view(table.name)
        if row is not None and (view.state is None or self._is_live_by_row(view)):
            return self._named.describe_row(row, check_declared=check_declared)
        if view.state is not State.LIVE and not self._owners.was_listed(table):
            raise self._named.why_not_live(table)
        info = self._listed.describe_viewed(table, view, check_declared=check_declared)
        return replace(info, properties={**_unprotected(row), **info.properties})

    def status(self, table: ObjectId) -> TableStatus:
        """Tell whether a table is live, dropped or not there."""
        row = self._owners.row_of(table)
        if not self._owners.is_listed(table, row):
            return self._status_by_rows(table) if row is None else Exists()
        status = self._listed.table_status(table)
        if isinstance(status, Exists):
            return status
        if row is not None:
            view = self._listed.view(table.name)
            if view.state is None or self._is_live_by_row(view):
                return Exists()
        by_rows = self._status_by_rows(table)
        if isinstance(by_rows, SoftDeleted) and isinstance(status, SoftDeleted):
            return max(by_rows, status, key=lambda found: found.deleted_at_ms)
        return by_rows if isinstance(status, NotFound) else status

    def _status_by_rows(self, table: ObjectId) -> TableStatus:
        """Tell what a table is that has no directory of its name."""
        if row_key(table) is None:
            return NotFound()
        return self._named.status_beside(table, _is_elsewhere)

    def history(self, table: ObjectId) -> list[Change]:
        """Tell what happened to a table, oldest first."""
        changes = [] if row_key(table) is None else self._named.table_history(table)
        if can_be_listed(table):
            changes = [*changes, *self._listed.table_history(table)]
        unique = {(change.action, change.at_ms, change.version): change for change in changes}
        return in_order(unique.values())


def _is_elsewhere(row: ManifestRow | None) -> bool:
    """Whether a row is that of a table which has no directory of its name."""
    return row is not None and is_table(row) and is_named(row)


def _unprotected(row: ManifestRow | None) -> dict[str, str]:
    """Return the properties of a root table's row; its protection is decided by its chain."""
    return {key: value for key, value in properties_of(row).items() if key != PROTECTED}


def _rows_of_root(draft: Draft) -> dict[str, ManifestRow]:
    names = draft.names("", TABLE)
    return {name: row for name in names if (row := draft.get(name)) is not None}
