"""A directory of Lance tables as a catalog (V1): one level, no server, nothing to set up.

Spec: directory-namespace, "V1: Directory Listing".
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from mooring.directory.chain import Chains
from mooring.directory.commits import VersionCommits
from mooring.directory.creation import Creation
from mooring.directory.decisions import Hint, State
from mooring.directory.layout import parse_state_file, reserved_marker_path, table_dir
from mooring.directory.lifecycle import Lifecycle
from mooring.directory.listing import scan_tables
from mooring.directory.markers import Reservation
from mooring.directory.one_level import (
    name_of,
    new_name,
    no_namespaces,
    no_renames,
    refuse_properties,
    require_own_location,
    require_root,
)
from mooring.directory.past import decisions_about, in_order, writes_to
from mooring.directory.purge import Purge
from mooring.directory.versioned import Versioned
from mooring.errors import ConcurrentModificationError, InvalidInputError, TableAlreadyExistsError
from mooring.identifiers import ROOT
from mooring.namespace.api import Change, CreateMode, PurgeReport, TableInfo, Ttl
from mooring.namespace.paging import cut
from mooring.namespace.properties import PROTECTED
from mooring.namespace.purging import purge_each
from mooring.namespace.states import DroppedTable, Exists, NotFound, SoftDeleted, TableStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from mooring.directory.listing import Scan
    from mooring.directory.view import TableView
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import PurgeProgress
    from mooring.namespace.home import Home
    from mooring.namespace.settings import Settings

__all__ = ["ListingBackend"]


class ListingBackend(Versioned):
    """A catalog whose tables are the `<name>.lance` directories of one root."""

    def __init__(
        self,
        home: Home,
        *,
        fence: Callable[[str], None] | None = None,
        is_held: Callable[[str, str], bool] | None = None,
    ) -> None:
        """Open a catalog; nothing is written.

        Args:
            home: Where the catalog is.
            fence: Makes sure, once a purge or a creation over a dropped table is announced, that
                nobody else uses the files.
            is_held: Whether the rename of a table that has this nonce is still under way.
        """
        super().__init__(home)
        store, clock = home.store, home.clock
        self._chains = Chains(store, clock, home.ids, home.author)
        self._commits = commits = VersionCommits(store, self._chains, home.open_tables, is_held)
        self._life = Lifecycle(store, self._chains, commits, clock)
        self._purge = Purge(store, self._chains, commits, fence)
        self._creation = Creation(
            store,
            self._chains,
            commits,
            clock=clock,
            ids=home.ids,
            author=home.author,
            fence=fence,
        )

    @property
    def chains(self) -> Chains:
        """The chains of decisions about its tables."""
        return self._chains

    @property
    def commits(self) -> VersionCommits:
        """Commits of versions under those chains."""
        return self._commits

    @property
    def levels(self) -> int | None:
        """Every table is directly below the root."""
        return 1

    # -- namespaces: the root alone ----------------------------------------------------------

    def list_namespaces(
        self, parent: ObjectId, *, after: str | None = None, limit: int | None = None
    ) -> list[str]:
        """Name the child namespaces: there are none."""
        del after, limit
        require_root(parent)
        return []

    def create_namespace(
        self,
        namespace: ObjectId,
        properties: Mapping[str, str],
        mode: CreateMode = CreateMode.CREATE,
    ) -> Mapping[str, str]:
        """Refuse: a plain directory has the root only."""
        del properties, mode
        raise no_namespaces(namespace)

    def update_namespace(
        self, namespace: ObjectId, updates: Mapping[str, str | None]
    ) -> Mapping[str, str]:
        """Refuse: a plain directory keeps no properties."""
        require_root(namespace)
        refuse_properties(updates)
        return {}

    def drop_namespace(
        self, namespace: ObjectId, *, cascade: bool = False, ttl: Ttl | None = None
    ) -> Mapping[str, str]:
        """Refuse: a plain directory has the root only."""
        del cascade, ttl
        raise no_namespaces(namespace)

    def undrop_namespace(self, namespace: ObjectId) -> int:
        """Refuse: a plain directory has the root only."""
        raise no_namespaces(namespace)

    def describe_namespace(self, namespace: ObjectId) -> Mapping[str, str]:
        """Return the root's properties."""
        require_root(namespace)
        return {}

    # -- reading -----------------------------------------------------------------------------

    def list_tables(
        self,
        namespace: ObjectId,
        *,
        include_declared: bool = True,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """Name the live tables, sorted, from one listing.

        Leaving out declared tables takes a look at each, for only its files tell.
        """
        require_root(namespace)
        is_wanted = None if include_declared else self._commits.is_written
        return cut(self.scan().live, after, limit, is_wanted)

    def list_all_tables(self) -> list[ObjectId]:
        """Return the identifiers of all live tables."""
        return [ROOT.child(name) for name in self.scan().live]

    def scan(self) -> Scan:
        """Tell the state of every table from one listing."""
        return scan_tables(self.store, self._life.view, adopted=self.settings.adopted)

    def states(self) -> list[tuple[ObjectId, Hint]]:
        """Tell what every table is, live or not, sorted, from one listing."""
        scan = self.scan()
        found = dict.fromkeys(scan.live, Hint(State.LIVE)) | scan.other
        return [(ROOT.child(name), found[name]) for name in sorted(found)]

    def describe_tables(self, within: ObjectId = ROOT) -> list[TableInfo]:
        """Locate all live tables, sorted; only those with decisions are looked at closely."""
        require_root(within)
        files = self.store.list_dir("").files
        decided = {found.name for file in files if (found := parse_state_file(file))}
        infos = []
        for name in self.scan().live:
            is_protected = name in decided and self.view(name).is_protected
            infos.append(self._info(ROOT.child(name), is_protected=is_protected))
        return infos

    def describe_namespaces(self) -> list[tuple[ObjectId, Mapping[str, str]]]:
        """Return every namespace with its properties: the root, which has none."""
        return [(ROOT, {})]

    def dropped_namespaces(self) -> list[tuple[ObjectId, Hint]]:
        """List the namespaces in the trash: there are none."""
        return []

    def unrecorded_tables(self) -> list[ObjectId]:
        """Name the live tables that the manifest lacks: there is none to lack them."""
        return []

    def view(self, name: str) -> TableView:
        """Look at one table closely."""
        return self._life.view(name)

    def bring_back(self, view: TableView) -> None:
        """Make a table live that was hidden when it was looked at.

        Raises:
            ConcurrentModificationError: it was changed since.
        """
        self.home.prepare()
        self._life.bring_back(view)

    def describe_table(self, table: ObjectId, *, check_declared: bool = False) -> TableInfo:
        """Locate a live table."""
        view = self._life.view(name_of(table, self.store))
        return self.describe_viewed(table, view, check_declared=check_declared)

    def describe_viewed(
        self, table: ObjectId, view: TableView, *, check_declared: bool = False
    ) -> TableInfo:
        """Locate a table that was looked at already.

        Raises:
            TableNotFoundError: it is not live.
        """
        view.require_live(self.home.clock)
        declared = not self._commits.is_written(view.name) if check_declared else None
        return self._info(table, is_only_declared=declared, is_protected=view.is_protected)

    def table_status(self, table: ObjectId) -> TableStatus:
        """Tell whether a table is live, dropped or not there."""
        view = self._life.view(name_of(table, self.store))
        match view.state:
            case State.LIVE:
                return Exists()
            case State.DELETED | State.REVIVING | State.UNDROPPING:
                deleted_at_ms, ttl_ms = view.deletion
                return SoftDeleted(deleted_at_ms, _expiry(deleted_at_ms, ttl_ms))
            case _:
                return NotFound()

    def list_purgable_tables(self, deleted_before_ms: int | None = None) -> list[DroppedTable]:
        """List the trash, sorted, from one listing."""
        dropped = [
            DroppedTable(
                ROOT.child(name),
                hint.deleted_at_ms or 0,
                _expiry(hint.deleted_at_ms or 0, hint.ttl_ms),
            )
            for name, hint in sorted(self.scan().other.items())
            if hint.state.in_trash
        ]
        if deleted_before_ms is None:
            return dropped
        return [table for table in dropped if table.deleted_at_ms < deleted_before_ms]

    def table_history(self, table: ObjectId) -> list[Change]:
        """Tell what happened to a table, oldest first.

        Decisions come from its chain, what was written to it from its versions.
        """
        name = name_of(table, self.store)
        return in_order([*decisions_about(name, self._chains), *self._told_by_files(name)])

    def _told_by_files(self, name: str) -> list[Change]:
        told = []
        if reservation := Reservation.decode(self.store.get(reserved_marker_path(name))):
            told.append(Change("declare", "live", reservation.by, reservation.at_ms))
        if self._commits.is_written(name):
            told += writes_to(table_dir(name), self.home.open_tables())
        return told

    # -- making tables -------------------------------------------------------------------------

    def declare_table(
        self,
        table: ObjectId,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Reserve a name without data."""
        refuse_properties(properties)
        name = new_name(table, self.store)
        require_own_location(name, location)
        self.home.prepare(creates=True)
        self._creation.declare(name)
        return self._info(table, is_only_declared=True)

    def create_table(
        self,
        table: ObjectId,
        rows: pa.RecordBatchReader,
        mode: CreateMode = CreateMode.CREATE,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Create a table with data, also over a dropped or purged one."""
        refuse_properties(properties)
        name = new_name(table, self.store)
        self.home.prepare(creates=True)
        if mode is CreateMode.OVERWRITE:
            return self._info(table, version=self._creation.overwrite(name, rows))
        exist_ok = mode is CreateMode.EXIST_OK
        if exist_ok and self._is_written_and_live(name):
            return self.describe_table(table)
        try:
            return self._info(table, version=self._creation.create(name, rows))
        except TableAlreadyExistsError:
            if not exist_ok or not self._is_written_and_live(name):
                raise
            return self.describe_table(table)

    def register_table(
        self,
        table: ObjectId,
        location: str | None,
        mode: CreateMode = CreateMode.CREATE,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        """Bring a deregistered table back; a table of a directory lies where its name says."""
        refuse_properties(properties)
        name = new_name(table, self.store)
        require_own_location(name, location)
        self.home.prepare()
        if mode is CreateMode.OVERWRITE and self._life.view(name).state is State.LIVE:
            return self._info(table)
        self._life.register(name)
        return self._info(table)

    # -- the lifecycle -------------------------------------------------------------------------

    def deregister_table(self, table: ObjectId) -> TableInfo:
        """Forget a live table's name and keep its bytes."""
        name = name_of(table, self.store)
        self.home.prepare()
        self._life.deregister(name)
        return self._info(table)

    def rename_table(self, table: ObjectId, new: ObjectId) -> TableInfo:
        """Refuse: a table of a plain directory lies where its name says.

        Raises:
            UnsupportedError: always.
        """
        raise no_renames(table, new)

    def drop_table(self, table: ObjectId, ttl: Ttl | None = None) -> TableInfo:
        """Hide a live table, reversibly."""
        name = name_of(table, self.store)
        self.home.prepare()
        if ttl is None:
            ttl = Ttl(self.home.reload_settings().default_ttl_ms)
        self._life.drop(name, ttl.ms)
        return self._info(table)

    def undrop_table(self, table: ObjectId, new: ObjectId | None = None) -> TableInfo:
        """Make a dropped table live again, under its own name."""
        name = name_of(table, self.store)
        if new is not None and new != table:
            return self.rename_table(table, new)
        self.home.prepare()
        self._life.undrop(name)
        return self._info(table)

    def update_table(self, table: ObjectId, updates: Mapping[str, str | None]) -> Mapping[str, str]:
        """Refuse: a plain directory keeps no properties."""
        self.describe_table(table)
        refuse_properties(updates)
        return {}

    def protect_table(self, table: ObjectId, *, protected: bool = True) -> None:
        """Make drops of a table refuse, or allow them again."""
        name = name_of(table, self.store)
        self.home.prepare()
        self._life.protect(name, protected=protected)

    def purge_table(self, table: ObjectId, progress: PurgeProgress | None = None) -> None:
        """Delete the bytes of a dropped table, expired or not."""
        self._purge_one(table, progress)

    def purge_tables(
        self, tables: Sequence[ObjectId] | None = None, progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge exactly these tables, or all that are expired.

        One that cannot be purged does not keep the others from it.
        """
        self.home.prepare()
        if tables is None:
            return self._purge_over(self._expired(), progress)
        return purge_each(tables, partial(self.purge_table, progress=progress))

    def purge_expired(
        self, tables: Sequence[ObjectId], progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge those of these tables whose time is over, or whose purge was cut off."""
        self.home.prepare()
        wanted = set(tables)
        return self._purge_over([table for table in self._expired() if table in wanted], progress)

    def _purge_over(self, tables: list[ObjectId], progress: PurgeProgress | None) -> PurgeReport:
        """Purge tables whose time was over when they were listed, if it still is."""
        now_ms = self.home.clock.now_ms()
        return purge_each(tables, partial(self._purge_one, progress=progress, over_at_ms=now_ms))

    def _purge_one(
        self, table: ObjectId, progress: PurgeProgress | None, over_at_ms: int | None = None
    ) -> None:
        name = name_of(table, self.store)
        self.home.prepare()

        def report(files: int, size_bytes: int) -> None:
            if progress:
                progress(table, files, size_bytes)

        self._purge.run(name, report, over_at_ms=over_at_ms)

    # -- the catalog itself --------------------------------------------------------------------

    def initialize(
        self,
        *,
        default_ttl: Ttl | None = None,
        adopt: bool = False,
        allowed_locations: tuple[str, ...] | None = None,
        managed_versioning: bool | None = None,
        shared: bool = False,
    ) -> Settings:
        """Write the catalog's settings, and adopt a directory that others filled.

        Args:
            default_ttl: How long dropped tables stay in the trash from now on.
            adopt: Lift the nested markers of other programs into decisions of ours, so that
                listings need no longer look for them.
            allowed_locations: Where tables may lie outside of the root, from now on.
            managed_versioning: Whether all are to commit through the catalog from now on.
            shared: Keep the numbers of the manifest's versions for other programs, for good.

        Raises:
            InvalidInputError: a plain directory is to be shared: it has no manifest.
            ConcurrentModificationError: somebody else changed the settings at the same time.
        """
        if shared:
            msg = "a plain directory has no manifest whose versions could be kept: leave it out"
            raise InvalidInputError(msg)
        self.home.prepare(creates=True)
        settings = self.home.reload_settings()
        if adopt:
            self._lift_foreign_markers()
        return self.home.change_settings(
            adopted=settings.adopted or adopt,
            default_ttl=default_ttl,
            allowed_locations=allowed_locations,
            managed_versioning=managed_versioning,
        )

    def _lift_foreign_markers(self) -> None:
        for name, hint in scan_tables(self.store, self._life.view, adopted=False).other.items():
            if hint.state is State.DELETED:
                # A table that somebody changes meanwhile has a chain, so it needs no lifting.
                with suppress(ConcurrentModificationError):
                    self._life.adopt(name)

    # -- small things --------------------------------------------------------------------------

    def _expired(self) -> list[ObjectId]:
        """Tell whose time is over; a purge that was cut off is always to be finished."""
        now_ms = self.home.clock.now_ms()
        expired = [table.id for table in self.list_purgable_tables() if table.is_expired(now_ms)]
        states = self.scan().other.items()
        return expired + [ROOT.child(name) for name, hint in states if hint.state is State.PURGING]

    def _is_written_and_live(self, name: str) -> bool:
        return self._life.view(name).state is State.LIVE and self._commits.is_written(name)

    def _info(
        self,
        table: ObjectId,
        *,
        is_only_declared: bool | None = None,
        version: int | None = None,
        is_protected: bool = False,
    ) -> TableInfo:
        return TableInfo(
            id=table,
            location=self.store.location(table_dir(table.name)),
            storage_options=self.store.options,
            properties={PROTECTED: "true"} if is_protected else {},
            is_only_declared=is_only_declared,
            version=version,
        )


def _expiry(deleted_at_ms: int, ttl_ms: int | None) -> int | None:
    return None if ttl_ms is None else deleted_at_ms + ttl_ms
