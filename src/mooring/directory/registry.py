"""The tables of a manifest: declared, created, registered, renamed, described.

A name is given by one commit of one row. Data is written first, into a directory nobody else
knows, so that a creator who loses leaves nothing; a declared name is a row whose directory
anybody may fill.

Spec: directory-namespace, "V2: Manifest"; "Manifest Table Directory".
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mooring.directory.entries import (
    is_table,
    make_row,
    parent_of,
    properties_of,
    read_dropped,
    with_properties,
)
from mooring.directory.layout import RESERVED
from mooring.directory.locations import new_location
from mooring.directory.manifest import MANIFEST_DIR
from mooring.directory.markers import Reservation
from mooring.directory.sweeping import last_sweep, require_not_condemned
from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
    MooringError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.identifiers import quote
from mooring.namespace.api import CreateMode
from mooring.namespace.locations import check_location, is_outside
from mooring.namespace.properties import merge_properties
from mooring.tables.manifest import TABLE
from mooring.tables.seal import read_seal
from mooring.tables.versions import VERSIONS_DIR, list_versions, newest_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from mooring.clock import Clock, IdSource
    from mooring.directory.draft import Draft
    from mooring.directory.manifest import Manifest
    from mooring.directory.trash import Trash
    from mooring.store import Store
    from mooring.tables.api import StagedTable, TableFiles
    from mooring.tables.manifest import ManifestRow

    Check = Callable[[Draft, str], None]

__all__ = ["Registry"]

_ROUNDS = 16


class Registry:
    """Gives names to tables, in a manifest."""

    def __init__(  # what it works on, all but two by name
        self,
        store: Store,
        manifest: Manifest,
        *,
        trash: Trash,
        tables: Callable[[], TableFiles],
        clock: Clock,
        ids: IdSource,
        author: str,
    ) -> None:
        """Work on a catalog's manifest in somebody's name."""
        self._store = store
        self._manifest = manifest
        self._trash = trash
        self._tables = tables
        self._clock = clock
        self._ids = ids
        self._author = author

    # -- looking -------------------------------------------------------------------------------

    def find(self, table: str) -> ManifestRow | None:
        """Return the row of a live table."""
        row = self._manifest.find(table)
        return row if is_table(row) else None

    def is_written(self, row: ManifestRow) -> bool:
        """Whether a table has a version; one that is only declared has none."""
        location = row.location or ""
        if is_outside(location):
            return True
        return newest_version(self._store, location) > 0

    # -- making names --------------------------------------------------------------------------

    def declare(
        self,
        table: str,
        *,
        properties: Mapping[str, str] | None = None,
        check: Check,
    ) -> ManifestRow:
        """Reserve an identifier: its directory gets the marker that shows it to others.

        The marker comes first, so that whoever purges the table finds it.
        """
        row = make_row(table, TABLE, new_location(table, self._ids), properties)
        body = Reservation(self._ids.new_id(), self._author, self._clock.now_ms()).encode()
        with suppress(ServiceUnavailableError):  # the row alone says that it is declared
            self._store.put(f"{row.location}/{RESERVED}", body, derived=True)
        try:
            self._manifest.change(lambda draft: self._add(draft, row, check))
        except UnknownOutcomeError:
            raise
        except MooringError:
            self._store.delete_prefix(row.location or "")
            raise
        return row

    def create(
        self,
        table: str,
        rows: pa.RecordBatchReader,
        *,
        properties: Mapping[str, str] | None = None,
        check: Check,
    ) -> tuple[ManifestRow, int]:
        """Create a table with data, or fill a declared one.

        Returns:
            Its row and version.
        """
        known = self._manifest.find(table)
        if known is not None and is_table(known):
            return self._fill(known, rows)
        swept = self._require_new_early(table, check)
        row = make_row(table, TABLE, new_location(table, self._ids), properties)
        staged = self._tables().stage(row.location or "", rows)

        def plan(draft: Draft) -> None:
            self._add(draft, row, check)
            self._require_unswept(draft, staged, swept)

        try:
            self._commit_first(staged, row)
            self._manifest.change(plan)
        except UnknownOutcomeError:
            raise
        except TableAlreadyExistsError as exc:
            self._store.delete_prefix(row.location or "")
            raise self._why_taken(table, exc) from exc
        except MooringError:
            self._store.delete_prefix(row.location or "")
            raise
        return row, 1

    def _require_new_early(self, table: str, check: Check) -> str:
        """Refuse a name that cannot be given before any data is written; tell the last sweep."""
        try:
            with self._manifest.reading() as draft:
                self._require_new(draft, table, check)
                return last_sweep(draft.metadata)
        except TableAlreadyExistsError as exc:
            raise self._why_taken(table, exc) from exc

    def _commit_first(self, staged: StagedTable, row: ManifestRow) -> None:
        if not self._tables().commit(staged, 1):
            msg = f"somebody else wrote to {quote(row.location or '')}, which was to be new"
            raise ConcurrentModificationError(msg)

    def _why_taken(self, table: str, refusal: TableAlreadyExistsError) -> MooringError:
        """Tell a true duplicate from a name that was only declared meanwhile."""
        winner = self.find(table)
        if winner is None or self.is_written(winner):
            return refusal
        msg = f"table {quote(table)} was declared by somebody else meanwhile: try again"
        return ConcurrentModificationError(msg)

    def _fill(self, row: ManifestRow, rows: pa.RecordBatchReader) -> tuple[ManifestRow, int]:
        if self.is_written(row):
            msg = f"table {quote(row.object_id)} exists already"
            raise TableAlreadyExistsError(msg)
        self._require_inside(row)
        staged = self._tables().stage(row.location or "", rows)
        with self._blaming(row), self._discarding(staged):
            if not self._tables().commit(staged, 1):
                self._tables().discard(staged)
                msg = f"table {quote(row.object_id)} exists already"
                raise TableAlreadyExistsError(msg)
        self._require_unmoved(row, 1, staged)
        return row, 1

    def overwrite(self, row: ManifestRow, rows: pa.RecordBatchReader) -> int:
        """Replace a table's content as its next version."""
        self._require_inside(row)
        location = row.location or ""
        with self._blaming(row):
            staged = self._tables().stage(location, rows)
        with self._blaming(row), self._discarding(staged):
            version = self._commit_next(staged, location)
        if version is None:
            self._tables().discard(staged)
            msg = f"other writers kept committing to {quote(row.object_id)} during this overwrite"
            raise ConcurrentModificationError(msg)
        self._require_unmoved(row, version, staged)
        return version

    def _commit_next(self, staged: StagedTable, location: str) -> int | None:
        """Commit as the version after the newest; None where others were faster all the time."""
        for _ in range(_ROUNDS):
            version = newest_version(self._store, location) + 1
            if self._tables().commit(staged, version):
                return version
        return None

    def register(  # what is registered, all but two by name
        self,
        table: str,
        location: str,
        *,
        allowed: Sequence[str],
        properties: Mapping[str, str] | None,
        mode: CreateMode,
        check: Check,
        fits: Callable[[str], None],
        drop: Callable[[Draft, ManifestRow], None],
    ) -> ManifestRow:
        """Give an identifier to a table that lies in storage already.

        Args:
            table: The identifier.
            location: Where the table lies.
            allowed: Where it may lie outside of the root.
            properties: Its properties.
            mode: Whether another table of the identifier makes way.
            check: Whether the identifier may be used.
            fits: Whether the location may be used, beyond what the manifest says.
            drop: Moves a table that makes way into the trash.
        """
        path = check_location(location, self._store.location(""), allowed, own=(MANIFEST_DIR,))
        row = make_row(table, TABLE, path, properties)

        def plan(draft: Draft) -> ManifestRow:
            known = draft.get(table)
            if mode is CreateMode.OVERWRITE and known is not None and is_table(known):
                if known.location == path:
                    return known
                drop(draft, known)
            _require_location_fits(draft, path)
            fits(path)
            # After the rows: a purge that is done has removed its rows and its files.
            self._require_directory(path)
            self._add(draft, row, check)
            return row

        return self._manifest.change(plan)

    def _require_directory(self, path: str) -> None:
        if not is_outside(path) and not self._store.list_dir(path).exists:
            msg = f"there is no table at {quote(path)}: the directory is not there"
            raise TableNotFoundError(msg)

    def deregister(self, table: str, require: Callable[[Draft, ManifestRow], None]) -> ManifestRow:
        """Forget an identifier and keep the bytes."""

        def plan(draft: Draft) -> ManifestRow:
            row = draft.require_table(table)
            require(draft, row)
            draft.remove(table)
            return row

        return self._manifest.change(plan)

    def rename(self, table: str, new: str, check: Check) -> ManifestRow:
        """Give a table another identifier: one row changes, its files stay where they are."""

        def plan(draft: Draft) -> ManifestRow:
            row = draft.require_table(table)
            if new == table:
                return row
            self._require_new(draft, new, check)
            moved = replace(row, object_id=new)
            draft.remove(table)
            draft.put(moved)
            return moved

        return self._manifest.change(plan)

    def update(self, table: str, updates: Mapping[str, str | None]) -> dict[str, str]:
        """Change properties of a table; None removes one."""

        def plan(draft: Draft) -> dict[str, str]:
            row = draft.require_table(table)
            properties = merge_properties(properties_of(row), updates)
            draft.put(with_properties(row, properties))
            return properties

        return self._manifest.change(plan)

    # -- small things --------------------------------------------------------------------------

    def _add(self, draft: Draft, row: ManifestRow, check: Check) -> None:
        self._require_new(draft, row.object_id, check)
        require_not_condemned(draft.metadata, row.location)
        draft.put(row)

    def _require_new(self, draft: Draft, table: str, check: Check) -> None:
        draft.require_namespace(parent_of(table))
        draft.require_free(table)
        check(draft, table)

    def _require_unswept(self, draft: Draft, staged: StagedTable, swept: str) -> None:
        """Refuse a row whose files a sweep has taken for those of a creator that crashed.

        The version that the change builds on tells whether any sweep is over since the files were
        written, and the files, read after it, whether they were swept. A later sweep makes the
        change start again.

        Raises:
            ConcurrentModificationError: they were.
        """
        if last_sweep(draft.metadata) == swept:
            return
        found = {meta.path for meta in self._store.list_prefix(staged.table_dir)}
        versions = f"{staged.table_dir}/{VERSIONS_DIR}/"
        if found.issuperset(staged.files) and any(path.startswith(versions) for path in found):
            return
        msg = f"the files at {quote(staged.table_dir)} were swept before they were named: try again"
        raise ConcurrentModificationError(msg)

    def _require_unmoved(self, row: ManifestRow, version: int, staged: StagedTable) -> None:
        """After a commit of data, refuse to call it a success if the table was dropped meanwhile.

        Raises:
            ConcurrentModificationError: it was.
            UnknownOutcomeError: whether it was cannot be seen; the commit has landed.
        """
        try:
            with self._manifest.reading() as draft:
                users = [found for found in draft.rows() if found.location == row.location]
        except ServiceUnavailableError as exc:
            msg = (
                f"table {quote(row.object_id)} was written as version {version}, and whether it was"
                f" dropped meanwhile cannot be seen: look what it holds ({exc})"
            )
            raise UnknownOutcomeError(msg) from exc
        dropped = [read_dropped(found) for found in users]
        if None in dropped:
            return
        if all(found is not None and found.record.purging for found in dropped):
            self._clear_away(row, version, staged)
        msg = (
            f"table {quote(row.object_id)} was written as version {version}, but dropped by"
            " somebody else meanwhile: look what it holds"
        )
        raise ConcurrentModificationError(msg)

    def _clear_away(self, row: ManifestRow, version: int, staged: StagedTable) -> None:
        """Delete what was written to a directory that a purge had emptied; nobody else will.

        One that holds anything else was not purged, but deregistered: its bytes are kept.
        """
        location = row.location or ""
        versions = list_versions(self._store, location)
        own = {*staged.files, *versions.values()}
        found = [meta.path for meta in self._store.list_prefix(location)]
        passing = (f"{location}/{VERSIONS_DIR}/", f"{location}/_transactions/")
        if set(versions) <= {version} and all(
            path in own or path.startswith(passing) for path in found
        ):
            self._store.delete_prefix(location)

    def _require_inside(self, row: ManifestRow) -> None:
        if is_outside(row.location or ""):
            msg = (
                f"table {quote(row.object_id)} lies outside of the catalog's root: write to it at"
                f" {quote(row.location or '')}"
            )
            raise UnsupportedError(msg)

    @contextmanager
    def _blaming(self, row: ManifestRow) -> Iterator[None]:
        """Blame a failure of Lance on whoever closed the files or took them away, if one did."""
        try:
            yield
        except UnknownOutcomeError:
            raise
        except ServiceUnavailableError as exc:
            location = row.location or ""
            if not self._is_live(location):
                msg = f"table {quote(row.object_id)} was dropped by somebody else meanwhile"
                raise ConcurrentModificationError(msg) from exc
            if read_seal(self._store, location).nonce is None:
                raise
            msg = (
                f"table {quote(row.object_id)} cannot be written to: its files at"
                f" {quote(location)} were closed by a rename of the table they belonged to"
            )
            raise ConcurrentModificationError(msg) from exc

    def _is_live(self, location: str) -> bool:
        with self._manifest.reading() as draft:
            return any(
                row.location == location and read_dropped(row) is None for row in draft.rows()
            )

    @contextmanager
    def _discarding(self, staged: StagedTable) -> Iterator[None]:
        """Leave nothing of a commit that certainly did not happen."""
        try:
            yield
        except UnknownOutcomeError:
            raise
        except ServiceUnavailableError:
            self._tables().discard(staged)
            raise


def _require_location_fits(draft: Draft, location: str) -> None:
    """Refuse a location that lies in another table's, or is being purged."""
    for row in draft.placed_at(location):
        dropped = read_dropped(row)
        if dropped is not None and dropped.record.purging:
            msg = f"the table at {quote(location)} is being purged"
            raise InvalidTableStateError(msg)
        if row.location != location:
            msg = (
                f"{quote(location)} cannot be the location of a table: table"
                f" {quote(dropped.object_id if dropped else row.object_id)} lies at"
                f" {quote(row.location or '')}"
            )
            raise InvalidInputError(msg)
