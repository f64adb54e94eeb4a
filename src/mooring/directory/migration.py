"""From directories to the manifest: every live `<name>.lance` table of the root gets its row.

Nothing moves and nothing is locked. A look at the root and one at the manifest tell what is
missing; rows are added some thousands at a time, each batch by one strict commit whose plan looks
at the root again. A run that is cut off leaves whole batches, and the next one goes on from there.
Others may change tables meanwhile, so whoever wrote looks again, until there is nothing to do.

Spec: directory-namespace, "Migration from V1 to V2".
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mooring.directory.decisions import State
from mooring.directory.entries import (
    TRASH,
    intent_of,
    is_dropped,
    is_namespace,
    is_table,
    make_parked,
    make_row,
    parked_key,
    parked_properties,
)
from mooring.directory.layout import (
    FOREIGN_SUFFIX,
    TABLE_SUFFIX,
    is_table_name,
    parse_state_file,
    table_dir,
)
from mooring.directory.listing import scan_tables
from mooring.directory.listing_backend import ListingBackend
from mooring.directory.migration_report import BY_STATE, MigrationReport, Reason, Skipped, skip
from mooring.directory.renaming import is_moving
from mooring.directory.root_rows import is_named
from mooring.identifiers import DELIMITER, quote
from mooring.store.api import Listing
from mooring.store.wrapped import WrappedStore
from mooring.tables.manifest import TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from mooring.directory.compat_backend import CompatBackend
    from mooring.directory.draft import Draft
    from mooring.directory.listing import Scan
    from mooring.directory.view import TableView
    from mooring.store import Store
    from mooring.tables.manifest import ManifestRow

    Progress = Callable[[int, int], None]
    # Settles groups of tables, and tells of each group as soon as it is done.
    SettleAll = Callable[
        [Sequence[Sequence[str]], Callable[["Settled"], None]], Sequence["Settled"]
    ]

__all__ = ["BATCH_ROWS", "Migration", "MigrationReport", "Reason", "Settled", "Skipped"]

BATCH_ROWS = 4096
_ROUNDS = 8


@dataclass(frozen=True)
class Settled:
    """What became of a group of tables.

    Attributes:
        tables: How many there were.
        added: Those that got their row.
        removed: Those whose row went.
    """

    tables: int
    added: frozenset[str]
    removed: frozenset[str]


class Migration:
    """Brings the manifest of a catalog in compatibility mode up to the tables of its root."""

    def __init__(self, backend: CompatBackend, *, batch_rows: int = BATCH_ROWS) -> None:
        """Prepare; nothing is read or written.

        Args:
            backend: The catalog.
            batch_rows: How many tables one commit takes.
        """
        self._home = backend.home
        self._manifest = backend.manifest
        self._listed = ListingBackend(backend.home)
        self._batch_rows = batch_rows

    def plan(self) -> MigrationReport:
        """Tell what a run would do; nothing is written."""
        return _compare(self._rows(), self._look())

    def is_complete(self) -> bool:
        """Whether the manifest names every live table, so that listings can be switched off."""
        return self.plan().is_complete

    def run(
        self, progress: Progress | None = None, settle: SettleAll | None = None
    ) -> MigrationReport:
        """Add the rows that are missing, and mend those that are stale.

        Args:
            progress: Told how many tables are done, of how many, after each commit.
            settle: Settles groups of tables elsewhere; here, one after the other, unless given.

        Raises:
            ReadOnlyError: the catalog was opened read-only.
            ConcurrentModificationError: others kept changing the manifest; what was done stays.
            UnknownOutcomeError: the store never said whether a commit landed: run it again.
        """
        added: set[str] = set()
        removed: set[str] = set()
        done = 0
        report = self.plan()
        for _ in range(_ROUNDS):
            if not report.to_do:
                break
            self._home.prepare()
            total = done + len(report.to_do)

            def on_done(part: Settled, total: int = total) -> None:
                nonlocal done
                done += part.tables
                if progress:
                    progress(done, total)

            batches = list(_cut(report.to_do, self._batch_rows))
            for part in (settle or self._settle_all)(batches, on_done):
                added = (added | part.added) - part.removed
                removed = (removed | part.removed) - part.added
            # Whoever wrote looks again: others dropped or made tables meanwhile.
            report = self.plan()
        return replace(
            report,
            already=tuple(name for name in report.already if name not in added),
            added=tuple(sorted(added)),
            removed=tuple(sorted(removed)),
        )

    def _settle_all(
        self, batches: Sequence[Sequence[str]], on_done: Callable[[Settled], None]
    ) -> list[Settled]:
        done = []
        for batch in batches:
            done.append(self.settle(batch))
            on_done(done[-1])
        return done

    def settle(self, names: Sequence[str]) -> Settled:
        """Bring the rows of some tables in line with their directories, by one commit."""

        def plan(draft: Draft) -> Settled:
            # Read after the version that this change builds on.
            look = self._look(names)
            report = _compare({row.object_id: row for row in draft.rows()}, look)
            for name in report.missing:
                parked = draft.get(parked_key(name))
                draft.put(make_row(name, TABLE, table_dir(name), parked_properties(parked)))
                _forget_parked(draft, name)
            gone = {name for name in report.stale if name in look.scan.other}
            for name in report.stale:
                if name in gone:
                    self._park(draft, name, look.scan.other[name].state)
                else:
                    _forget_parked(draft, name)
            return Settled(len(names), frozenset(report.missing), frozenset(gone))

        return self._manifest.change(plan)

    def _park(self, draft: Draft, name: str, state: State) -> None:
        """Remove the row of a table that is hidden, and keep its properties for an undrop."""
        row = draft.require_table(name)
        draft.remove(name)
        if state not in {State.PURGED, State.PURGING}:
            seq = self._listed.view(name).chain.seq
            draft.put(make_parked(row, self._home.author, seq))

    def _rows(self) -> dict[str, ManifestRow]:
        if not self._manifest.exists:
            return {}
        with self._manifest.reading() as draft:
            return {row.object_id: row for row in draft.rows()}

    def _look(self, names: Collection[str] | None = None) -> _Look:
        """Look at the root, by one listing: at all tables, or at some."""
        root = self._home.store.list_dir("")
        if names is not None:
            root = _only(root, set(names))
        store, settings = _Listed(self._home.store, root), self._home.settings
        scan = scan_tables(store, self._listed.view, adopted=settings.adopted)
        return _Look(scan, root, self._listed.view)


# -- what the root says ---------------------------------------------------------------------------


class _Listed(WrappedStore):
    """A store whose root was listed already."""

    def __init__(self, inner: Store, root: Listing) -> None:
        super().__init__(inner)
        self._root = root

    def list_dir(self, path: str) -> Listing:
        """List one level; the root as it was."""
        return super().list_dir(path) if path else self._root


@dataclass(frozen=True, slots=True)
class _Look:
    """The tables of a root at one moment."""

    scan: Scan
    root: Listing
    view: Callable[[str], TableView]

    def is_moving(self, row: ManifestRow) -> bool:
        """Whether a rename has taken a table's name away, and is to switch its row yet."""
        return intent_of(row) is not None and is_moving(row, self.view(row.object_id))

    def skipped(self) -> Iterator[Skipped]:
        """Go through what is no live table."""
        for name in self.scan.unreadable:
            yield skip(name, Reason.UNREADABLE)
        for name, hint in self.scan.other.items():
            if hint.state in BY_STATE:  # of a purged table nothing is left
                yield skip(name, BY_STATE[hint.state])
        for directory in self.root.directories:
            name = directory.removesuffix(TABLE_SUFFIX)
            if name != directory and not is_table_name(name):
                yield skip(name, Reason.INVALID_NAME)


def _only(root: Listing, names: set[str]) -> Listing:
    """Return what a listing says of some tables."""
    wanted = {table_dir(name) for name in names}
    return Listing(
        [directory for directory in root.directories if directory in wanted],
        [file for file in root.files if _owner(file) in names],
        exists=root.exists,
    )


def _owner(file: str) -> str:
    found = parse_state_file(file)
    return found.name if found else file.removesuffix(FOREIGN_SUFFIX)


# -- what the manifest says -----------------------------------------------------------------------


def _compare(rows: Mapping[str, ManifestRow], look: _Look) -> MigrationReport:
    """Compare the tables of a root with the rows of one version."""
    skipped = {found.name: found for found in look.skipped()}
    already: list[str] = []
    missing: list[str] = []
    stale: list[str] = []
    names_at = _names_at(rows)
    for name in look.scan.live:
        row = rows.get(name)
        if row is not None and _is_own(row):
            (stale if parked_key(name) in rows else already).append(name)
        elif obstacle := _obstacle(name, row, names_at):
            skipped[name] = obstacle
        else:
            missing.append(name)
    for name in look.scan.other:
        row = rows.get(name)
        if row is None or not _is_own(row):
            continue
        if look.is_moving(row):
            skipped[name] = skip(name, Reason.RENAMING)
        elif parked_key(name) in rows:
            # Another program registered it after it was hidden: the manifest is right.
            skipped.pop(name, None)
            already.append(name)
        else:
            stale.append(name)
    found = tuple(skipped[name] for name in sorted(skipped))
    return MigrationReport(tuple(already), tuple(missing), tuple(stale), found)


def _is_own(row: ManifestRow) -> bool:
    """Whether a row is that of the directory of its name."""
    return is_table(row) and not is_named(row)


def _names_at(rows: Mapping[str, ManifestRow]) -> dict[str, str]:
    """Return a live name of every location."""
    return {
        row.location: row.object_id
        for row in rows.values()
        if row.location and not is_dropped(row.object_id)
    }


def _obstacle(name: str, row: ManifestRow | None, names_at: Mapping[str, str]) -> Skipped | None:
    """Tell why a live table cannot have a row of its name."""
    reason = _refusal(name, row)
    if reason is None:
        return None
    other = names_at.get(table_dir(name))
    if other is None:
        return skip(name, reason)
    return Skipped(name, Reason.REGISTERED, f"its files are those of table {quote(other)}")


def _refusal(name: str, row: ManifestRow | None) -> Reason | None:
    if DELIMITER in name:
        return Reason.DELIMITER
    if name == TRASH:
        return Reason.RESERVED
    if not unicodedata.is_normalized("NFC", name):
        return Reason.DECOMPOSED
    if row is not None:
        return Reason.NAMESPACE if is_namespace(row) else Reason.OTHER_TABLE
    return None


def _forget_parked(draft: Draft, name: str) -> None:
    if draft.get(parked_key(name)) is not None:
        draft.remove(parked_key(name))


def _cut(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (names[start : start + size] for start in range(0, len(names), size))
