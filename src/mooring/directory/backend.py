"""A directory of Lance tables as a catalog (V1): one level, no server, nothing to set up.

Spec: directory-namespace, "V1: Directory Listing".
"""

from __future__ import annotations

import threading
import unicodedata
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from mooring.clock import RandomIds, SystemClock
from mooring.directory.chain import Chains
from mooring.directory.commits import VersionCommits
from mooring.directory.creation import Creation
from mooring.directory.decisions import State
from mooring.directory.layout import check_table_name, reserved_marker_path, table_dir
from mooring.directory.lifecycle import Lifecycle
from mooring.directory.listing import scan_tables
from mooring.directory.markers import Reservation
from mooring.directory.purge import Purge
from mooring.directory.settings import Settings, load_settings, save_settings
from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    MooringError,
    NamespaceNotFoundError,
    ReadOnlyError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedError,
)
from mooring.identifiers import ROOT, check_composed, quote
from mooring.namespace.api import Change, CreateMode, PurgeReport, TableInfo, Ttl
from mooring.namespace.states import DroppedTable, Exists, NotFound, SoftDeleted, TableStatus
from mooring.store.passing import is_passing
from mooring.store.probe import probe_store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from mooring.clock import Clock, IdSource
    from mooring.directory.listing import Scan
    from mooring.identifiers import ObjectId
    from mooring.namespace.api import PurgeProgress
    from mooring.store import Store
    from mooring.tables.api import TableFiles

__all__ = ["DirectoryBackend"]


class DirectoryBackend:
    """A catalog whose tables are the `<name>.lance` directories of one root."""

    def __init__(  # all but the store by name
        self,
        store: Store,
        *,
        author: str,
        read_only: bool = False,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        tables: TableFiles | None = None,
        settings: Settings | None = None,
    ) -> None:
        """Open a catalog; nothing is written, and a missing root is an empty catalog.

        Args:
            store: Where the catalog is.
            author: In whose name changes are recorded.
            read_only: Refuse every change, and ask for no permission to write.
            clock: Stamps changes.
            ids: Makes nonces.
            tables: Writes tables; Lance does unless told otherwise.
            settings: Settings that are known already: nothing is read, probed or set up.

        Raises:
            CatalogFormatError: the catalog is newer than this release.
        """
        self.store = store
        self.author = author
        self.read_only = read_only
        self._clock = clock or SystemClock()
        self._ids = ids or RandomIds()
        self._tables = tables
        self._ready = settings is not None
        self._opening = threading.Lock()
        self.settings = settings or load_settings(store)
        self._chains = Chains(store, self._clock, self._ids, author)
        self._commits = commits = VersionCommits(store, self._chains, self._open_tables)
        self._life = Lifecycle(store, self._chains, commits, self._clock)
        self._purge = Purge(store, self._chains, commits)
        self._creation = Creation(
            store, self._chains, commits, clock=self._clock, ids=self._ids, author=author
        )

    @property
    def levels(self) -> int | None:
        """Every table is directly below the root."""
        return 1

    # -- namespaces: the root alone ----------------------------------------------------------

    def list_namespaces(self, parent: ObjectId) -> list[str]:
        """Name the child namespaces: there are none."""
        self._require_root(parent)
        return []

    def describe_namespace(self, namespace: ObjectId) -> Mapping[str, str]:
        """Return the root's properties."""
        self._require_root(namespace)
        return {}

    # -- reading -----------------------------------------------------------------------------

    def list_tables(self, namespace: ObjectId, *, include_declared: bool = True) -> list[str]:
        """Name the live tables, sorted, from one listing.

        Leaving out declared tables takes a look at each, for only its files tell.
        """
        self._require_root(namespace)
        live = self.scan().live
        return (
            live if include_declared else [name for name in live if self._commits.is_written(name)]
        )

    def scan(self) -> Scan:
        """Tell the state of every table from one listing."""
        return scan_tables(self.store, self._life.view, adopted=self.settings.adopted)

    def describe_table(self, table: ObjectId, *, check_declared: bool = False) -> TableInfo:
        """Locate a live table."""
        name = self._name_of(table)
        view = self._life.view(name)
        view.require_live(self._clock)
        declared = not self._commits.is_written(name) if check_declared else None
        properties = {"protected": "true"} if view.is_protected else {}
        return self._info(table, is_only_declared=declared, properties=properties)

    def table_status(self, table: ObjectId) -> TableStatus:
        """Tell whether a table is live, dropped or not there."""
        view = self._life.view(self._name_of(table))
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
        name = self._name_of(table)
        changes = [
            Change(said.action, said.state.value, said.by, said.at_ms, said.version)
            for link in self._chains.history(name)
            if (said := link.decision)
        ]
        changes += self._told_by_files(name)
        return sorted(changes, key=lambda change: change.at_ms)

    def _told_by_files(self, name: str) -> list[Change]:
        told = []
        if reservation := Reservation.decode(self.store.get(reserved_marker_path(name))):
            told.append(Change("declare", "live", reservation.by, reservation.at_ms))
        if self._commits.is_written(name):
            told += [
                Change("write", "live", write.by, write.at_ms, write.version)
                for write in self._open_tables().writes(table_dir(name))
            ]
        return told

    # -- making tables -------------------------------------------------------------------------

    def declare_table(self, table: ObjectId, location: str | None = None) -> TableInfo:
        """Reserve a name without data."""
        name = self._new_name(table)
        if location is not None:
            self._require_own_location(name, location)
        self._prepare(creates=True)
        self._creation.declare(name)
        return self._info(table, is_only_declared=True)

    def create_table(
        self, table: ObjectId, rows: pa.RecordBatchReader, mode: CreateMode = CreateMode.CREATE
    ) -> TableInfo:
        """Create a table with data, also over a dropped or purged one."""
        name = self._new_name(table)
        self._prepare(creates=True)
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
        self, table: ObjectId, location: str | None, mode: CreateMode = CreateMode.CREATE
    ) -> TableInfo:
        """Bring a deregistered table back; a table of a directory lies where its name says."""
        name = self._new_name(table)
        if location is not None:
            self._require_own_location(name, location)
        self._prepare()
        if mode is CreateMode.OVERWRITE and self._life.view(name).state is State.LIVE:
            return self._info(table)
        self._life.register(name)
        return self._info(table)

    # -- the lifecycle -------------------------------------------------------------------------

    def deregister_table(self, table: ObjectId) -> TableInfo:
        """Forget a live table's name and keep its bytes."""
        name = self._name_of(table)
        self._prepare()
        self._life.deregister(name)
        return self._info(table)

    def rename_table(self, table: ObjectId, new: ObjectId) -> TableInfo:
        """Refuse: a table of a plain directory lies where its name says.

        Raises:
            UnsupportedError: always.
        """
        msg = (
            f"table {quote(table.name)} cannot become {quote(new.name)}: in a plain directory the"
            " name is the location, and no store moves a directory in one step"
        )
        raise UnsupportedError(msg)

    def drop_table(self, table: ObjectId, ttl: Ttl | None = None) -> TableInfo:
        """Hide a live table, reversibly."""
        name = self._name_of(table)
        self._prepare()
        if ttl is None:
            self.settings = load_settings(self.store, self.settings)
            ttl = Ttl(self.settings.default_ttl_ms)
        self._life.drop(name, ttl.ms)
        return self._info(table)

    def undrop_table(self, table: ObjectId, new: ObjectId | None = None) -> TableInfo:
        """Make a dropped table live again, under its own name."""
        name = self._name_of(table)
        if new is not None and new != table:
            return self.rename_table(table, new)
        self._prepare()
        self._life.undrop(name)
        return self._info(table)

    def protect_table(self, table: ObjectId, *, protected: bool = True) -> None:
        """Make drops of a table refuse, or allow them again."""
        name = self._name_of(table)
        self._prepare()
        self._life.protect(name, protected=protected)

    def purge_table(self, table: ObjectId, progress: PurgeProgress | None = None) -> None:
        """Delete the bytes of a dropped table, expired or not."""
        name = self._name_of(table)
        self._prepare()

        def report(files: int, size_bytes: int) -> None:
            if progress:
                progress(table, files, size_bytes)

        self._purge.run(name, report)

    def purge_tables(
        self, tables: Sequence[ObjectId] | None = None, progress: PurgeProgress | None = None
    ) -> PurgeReport:
        """Purge exactly these tables, or all that are expired.

        One that cannot be purged does not keep the others from it.
        """
        self._prepare()
        report = PurgeReport([], {})
        for table in self._expired() if tables is None else tables:
            try:
                self.purge_table(table, progress)
            except MooringError as exc:
                report.failed[table] = exc
            else:
                report.purged.append(table)
        return report

    # -- the catalog itself --------------------------------------------------------------------

    def initialize(self, *, default_ttl: Ttl | None = None, adopt: bool = False) -> Settings:
        """Write the catalog's settings, and adopt a directory that others filled.

        Args:
            default_ttl: How long dropped tables stay in the trash from now on.
            adopt: Lift the nested markers of other programs into decisions of ours, so that
                listings need no longer look for them.

        Raises:
            ConcurrentModificationError: somebody else changed the settings at the same time.
        """
        self._prepare(creates=True)
        self.settings = load_settings(self.store, self.settings)
        adopted = self.settings.adopted or adopt
        if adopt:
            self._lift_foreign_markers()
        ttl_ms = default_ttl.ms if default_ttl else self.settings.default_ttl_ms
        changed = adopted != self.settings.adopted or ttl_ms != self.settings.default_ttl_ms
        if changed or self.settings.revision == 0:
            self._save(adopted=adopted, default_ttl_ms=ttl_ms)
        return self.settings

    def _lift_foreign_markers(self) -> None:
        for name, hint in scan_tables(self.store, self._life.view, adopted=False).other.items():
            if hint.state is State.DELETED:
                # A table that somebody changes meanwhile has a chain, so it needs no lifting.
                with suppress(ConcurrentModificationError):
                    self._life.adopt(name)

    def _save(self, *, adopted: bool, default_ttl_ms: int | None) -> None:
        changed = msgspec.structs.replace(
            self.settings,
            adopted=adopted,
            default_ttl_ms=default_ttl_ms,
            nonce=self._ids.new_id(),
            by=self.author,
            at_ms=self._clock.now_ms(),
        )
        self.settings = save_settings(self.store, changed)

    def _prepare(self, *, creates: bool = False) -> None:
        """Before the first change: prove the store, and give a new catalog its settings.

        What does not create anything leaves a root that is not there alone, for it will fail.
        """
        if self.read_only:
            msg = "this catalog was opened read-only"
            raise ReadOnlyError(msg)
        with self._opening:
            if self._ready or (not creates and not self.store.list_dir("").exists):
                return
            probe_store(self.store)
            if self.settings.revision == 0:
                self._settle_in()
            self._ready = True

    def _settle_in(self) -> None:
        """Note the format, and call an empty root ours: no marker of others is in it."""
        root = self.store.list_dir("")
        # What others leave while they open the same new catalog does not count.
        is_empty = not root.directories and all(is_passing(name) for name in root.files)
        try:
            self._save(adopted=is_empty, default_ttl_ms=self.settings.default_ttl_ms)
        except ConcurrentModificationError:
            self.settings = load_settings(self.store)

    # -- small things --------------------------------------------------------------------------

    def _expired(self) -> list[ObjectId]:
        """Tell whose time is over; a purge that was cut off is always to be finished."""
        now_ms = self._clock.now_ms()
        expired = [table.id for table in self.list_purgable_tables() if table.is_expired(now_ms)]
        states = self.scan().other.items()
        return expired + [ROOT.child(name) for name, hint in states if hint.state is State.PURGING]

    def _is_written_and_live(self, name: str) -> bool:
        return self._life.view(name).state is State.LIVE and self._commits.is_written(name)

    def _name_of(self, table: ObjectId) -> str:
        """Return the name of a table that may exist."""
        if table.level != 1:
            msg = (
                f"there is no table {quote(str(table))}: a plain directory is a 1-level namespace"
                f" and this identifier has {table.level}"
            )
            raise TableNotFoundError(msg)
        check_table_name(table.name)
        if not unicodedata.is_normalized("NFC", table.name):
            self._require_composed_or_there(table.name)
        return table.name

    def _require_composed_or_there(self, name: str) -> None:
        """Refuse a decomposed name, unless another program made a table of it."""
        if not self.store.list_dir(table_dir(name)).exists:
            check_composed(name)

    def _new_name(self, table: ObjectId) -> str:
        """Return the name of a table that is to be made."""
        if table.is_root:
            msg = "a table needs a name"
            raise InvalidInputError(msg)
        self._require_root(table.parent)
        return self._name_of(table)

    def _require_root(self, namespace: ObjectId) -> None:
        if not namespace.is_root:
            msg = (
                f"there is no namespace {quote(str(namespace))}: a plain directory is a 1-level"
                " namespace, with tables only"
            )
            raise NamespaceNotFoundError(msg)

    def _require_own_location(self, name: str, location: str) -> None:
        own = table_dir(name)
        if location != own:
            msg = (
                f"{quote(location)} cannot be the location of table {quote(name)}: in a plain"
                f" directory it lies in {quote(own)}, relative to the root"
            )
            raise InvalidInputError(msg)

    def _info(
        self,
        table: ObjectId,
        *,
        is_only_declared: bool | None = None,
        version: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> TableInfo:
        return TableInfo(
            id=table,
            location=self.store.location(table_dir(table.name)),
            storage_options=self.store.options,
            properties=properties or {},
            is_only_declared=is_only_declared,
            version=version,
        )

    def _open_tables(self) -> TableFiles:
        if self._tables is None:
            # lance costs 0.6 s to import, which listing and dropping need not pay.
            from mooring.tables.data import LanceTables

            self._tables = LanceTables(self.store, author=self.author, clock=self._clock)
        return self._tables


def _expiry(deleted_at_ms: int, ttl_ms: int | None) -> int | None:
    return None if ttl_ms is None else deleted_at_ms + ttl_ms
