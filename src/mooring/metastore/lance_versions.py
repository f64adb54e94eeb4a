"""The versions of Lance tables as deltas: whoever commits one commits a transaction.

A manifest that was written is first copied to a path of its own. The transaction that makes it a
version decides; after it the manifest gets the name by which readers of the directory find it.
Whoever comes next does that for a writer who died in between, before anything is built on it. So
several tables change together or not at all, and the newest version is always readable where the
catalog says, with no look at the directory.

Spec: objects-and-relationships, "External Manifest Store".
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    MooringError,
    ServiceUnavailableError,
    TableBranchNotFoundError,
    TableNotFoundError,
    TableVersionNotFoundError,
    UnknownOutcomeError,
)
from mooring.identifiers import quote
from mooring.metastore.lance_table import (
    branch_id,
    branch_locator,
    find_table,
    locator_of,
    partition_of,
    stream_locator,
)
from mooring.metastore.model import DataFile, Delta, Manifest, Partition
from mooring.namespace.locations import is_outside
from mooring.store.numbered import create_once
from mooring.tables.api import VersionRecord
from mooring.tables.records import ALL, VersionRecords, final_name, key_for_lance
from mooring.tables.versions import (
    BRANCHES_DIR,
    VERSIONS_DIR,
    list_versions,
    manifest_name,
    parse_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from mooring.identifiers import ObjectId
    from mooring.metastore.lance_table import LanceTable
    from mooring.metastore.locator import Locator
    from mooring.metastore.metastore import Metastore
    from mooring.metastore.transaction import Transaction
    from mooring.namespace.api import CreateVersion
    from mooring.namespace.home import Home
    from mooring.tables.api import VersionRange
    from mooring.tables.place import Place

__all__ = ["BranchFiles", "DeleteVersions", "LanceVersions", "NewVersion", "take_in"]

MANIFEST_TYPE = "application/x-lance-manifest"
_COPIES_DIR = "_manifests"
# A reader who was told of a copy may still open it when so many more versions have been made.
_KEPT_COPIES = 16


@dataclass(frozen=True, slots=True)
class BranchFiles:
    """Where the manifests of one branch lie."""

    place: Place
    location: str
    branch: str | None

    @property
    def directory(self) -> str:
        """The directory of the branch, in the store."""
        below = self.place.directory
        return f"{below}/{BRANCHES_DIR}/{self.branch}" if self.branch else below

    @property
    def records(self) -> VersionRecords:
        """Its versions as files."""
        return VersionRecords(self.place.store, self.place.directory, self.branch)

    @property
    def copies(self) -> str:
        """The directory of manifests that were copied before they became versions."""
        return self.place.path(f"{_COPIES_DIR}/{branch_id(self.branch)}")

    def final(self, copy: str) -> str:
        """Return the path of the same manifest where readers of the directory look."""
        return f"{self.directory}/{VERSIONS_DIR}/{copy.rpartition('/')[2]}"

    def in_store(self, path: str) -> str:
        """Return the store's path of a manifest that a delta names."""
        return self.place.path(path.removeprefix(f"{self.location}/"))

    def named(self, stored: str) -> str:
        """Return the path by which a delta names a manifest of the store."""
        return f"{self.location}/{stored.removeprefix(self.place.directory + '/')}"


class LanceVersions:
    """Reads and makes versions of Lance tables in a metastore."""

    def __init__(self, home: Home, metastore: Metastore, place_of: Callable[[str], Place]) -> None:
        """Work for a catalog.

        Args:
            home: Where the catalog is.
            metastore: Its objects.
            place_of: Tells the store and directory of a table's location.
        """
        self.home = home
        self.metastore = metastore
        self.place_of = place_of

    def location_of(self, location: str) -> str:
        """Return where Lance finds a table."""
        return location if is_outside(location) else self.home.store.location(location)

    # -- reading ---------------------------------------------------------------------------------

    def newest_first(
        self, txn: Transaction, table: LanceTable, branch: str | None, limit: int | None
    ) -> list[VersionRecord]:
        """Return the versions, the newest first; the newest alone without a look at files."""
        main = txn.find(branch_locator(table.locator, branch))
        newest = cast("Partition", main.value).stream_position if main else None
        if main is None or newest is None:
            if branch:
                raise no_branch(table.id, branch)
            return []
        files = self.files(table, branch)
        if limit == 1:
            delta = txn.get(main.locator.child(str(newest)))
            return [record(files, cast("Delta", delta.value), by_copy=True)]
        deltas = [cast("Delta", found.value) for found in txn.children(main.locator)]
        deltas.sort(key=lambda delta: delta.stream_position or 0, reverse=True)
        finals = final_versions(files)
        told = (_tell(files, delta, newest, finals) for delta in deltas)
        return [one for one in told if one is not None][:limit]

    def describe(
        self, txn: Transaction, table: LanceTable, version: int, branch: str | None
    ) -> VersionRecord:
        """Return one version.

        Raises:
            TableVersionNotFoundError: there is no such version.
        """
        main = txn.find(branch_locator(table.locator, branch))
        if main is None and branch:
            raise no_branch(table.id, branch)
        found = main and txn.find(main.locator.child(str(version)))
        if main is None or found is None:
            raise no_version(table.id, version, branch)
        delta = cast("Delta", found.value)
        files = self.files(table, branch)
        newest = cast("Partition", main.value).stream_position
        if version == newest or is_final(files, delta):
            return record(files, delta, by_copy=version == newest)
        told = _tell(files, delta, newest, final_versions(files))
        if told is None:
            raise no_version(table.id, version, branch)
        return told

    def complete(self, seq: int, table: LanceTable) -> None:
        """Give the versions that a table has in a state their final names, on all branches."""
        view = self.metastore.begin(at=seq)
        for found in view.children(stream_locator(table.locator)):
            newest = newest_delta(view, found.locator)
            if newest is not None:
                values = cast("Partition", found.value).values
                files = self.files(table, str(values[0]) if values else None)
                finalize(files, view, found.locator, newest)

    def files(self, table: LanceTable, branch: str | None) -> BranchFiles:
        """Tell where the manifests of a branch lie."""
        return BranchFiles(self.place_of(table.location), table.location, branch)


@dataclass
class NewVersion:
    """A version in the making: prepared, planned within a transaction, then finished.

    Attributes:
        versions: What reads and makes versions.
        wanted: What was asked for.
        branch: The branch; None for main.
    """

    versions: LanceVersions
    wanted: CreateVersion
    branch: str | None = None
    _files: BranchFiles | None = None
    _staged: str = ""
    _copy: str = ""
    _body: bytes = b""
    _delta: Delta | None = None

    @property
    def message(self) -> str:
        """What it does, in words."""
        return f"version {self.wanted.version} of table {self.wanted.table}"

    def prepare(self, txn: Transaction) -> None:
        """Copy the manifest to a path of its own.

        Raises:
            TableNotFoundError: no live table has this identifier.
            ConcurrentModificationError: the version exists.
            InvalidInputError: there is no such manifest, or no such version.
        """
        found = require_table(txn, self.wanted.table)
        files = self._files = self.versions.files(found, self.branch)
        store = files.place.store
        staged = files.records.staged_path(self.wanted.manifest_path)
        if self.wanted.version < 1:
            msg = f"versions begin with 1, and {self.wanted.version} was asked for"
            raise InvalidInputError(msg)
        self._staged = staged
        last = self._complete(txn, found)
        body = store.get(staged)
        if body is None:
            raise self._not_there()
        self._body = body
        counting_down = last is None or counts_down(manifest_of(last).path)
        name = final_name(staged, self.wanted.version, counting_down=counting_down)
        unique = self.versions.home.ids.new_id()
        self._copy = f"{files.copies}/{unique}/{name}"
        if store.head(files.final(self._copy)) is not None:
            self._take_in()
            raise self._taken()
        store.put(self._copy, body)

    def _take_in(self) -> None:
        """Record what was written past the catalog, so that this writer builds on it."""
        files = self._require_files()

        def work(txn: Transaction) -> None:
            table = require_table(txn, self.wanted.table)
            if table.location == files.location:
                take_in(txn, table, files, self.versions.home)

        self.versions.metastore.run(
            work,
            message=f"take in versions of {self.wanted.table} that were written past the catalog",
        )

    def _complete(self, txn: Transaction, table: LanceTable) -> Delta | None:
        """Finish the version before, whose writer may have died, and refuse one that exists.

        Raises:
            ConcurrentModificationError: the version exists.
        """
        branch = branch_locator(table.locator, self.branch)
        last = newest_delta(txn, branch)
        if last is None:
            return None
        finalize(self._require_files(), txn, branch, last)
        newest = last.stream_position or 0
        if self.wanted.version <= newest:
            raise self._taken()
        if self.wanted.version > newest + 1:
            self._take_in()  # it may be built on what was written past the catalog
        return last

    def _not_there(self) -> MooringError:
        """Word that the manifest is gone, which whoever made the version may have seen to."""
        view = self.versions.metastore.begin()
        table = find_table(view, locator_of(self.wanted.table))
        last = table and newest_delta(view, branch_locator(table.locator, self.branch))
        if last and self.wanted.version <= (last.stream_position or 0):
            return self._taken()
        msg = f"there is no manifest {quote(self.wanted.manifest_path)} that could be version"
        return InvalidInputError(f"{msg} {self.wanted.version}")

    def plan(self, txn: Transaction) -> None:
        """Make the manifest a version, within a transaction.

        Raises:
            TableNotFoundError: the table is gone.
            ConcurrentModificationError: the version exists, or the name means another table.
            InvalidInputError: the number leaves a gap.
        """
        files = self._require_files()
        table = require_table(txn, self.wanted.table)
        if table.location != files.location:
            msg = f"{quote(str(self.wanted.table))} names another table now: ask the catalog again"
            raise ConcurrentModificationError(msg)
        locator = branch_locator(table.locator, self.branch)
        found = txn.find(locator)
        known = cast("Partition", found.value) if found else partition_of(locator, self.branch)
        self._require_next(known)
        self._delta = Delta(
            stream_position=self.wanted.version,
            previous_position=known.stream_position,
            at_ms=self.versions.home.clock.now_ms(),
            manifest=Manifest(
                files=(
                    DataFile(
                        path=files.named(self._copy),
                        content_type=MANIFEST_TYPE,
                        size_bytes=len(self._body),
                    ),
                ),
                author=self.versions.home.author,
            ),
            properties=dict(self.wanted.metadata or {}),
        )
        moved = replace(known, stream_position=self.wanted.version)
        if found is None:
            txn.create(locator, moved)
        else:
            txn.update(locator, moved)
        txn.create(locator.child(str(self.wanted.version)), self._delta)

    def _require_next(self, known: Partition) -> None:
        newest, version = known.stream_position, self.wanted.version
        if newest is not None and version > newest + 1:
            msg = f"versions have no gaps: after {newest} comes {newest + 1}, not {version}"
            raise InvalidInputError(msg)
        if version <= max(newest or 0, known.previous_position or 0):
            raise self._taken()

    def finish(self) -> VersionRecord:
        """Give the manifest the name by which readers of the directory find it."""
        files, delta = self._require_files(), self._delta
        assert delta is not None  # noqa: S101  # planned before
        # What follows from the commit can be done by whoever comes later as well.
        with suppress(ServiceUnavailableError):
            put_final(files, files.final(self._copy), self._body)
            files.place.store.delete([self._staged, *self._leftovers()])
        return record(files, delta, by_copy=True)

    def _leftovers(self) -> list[str]:
        """Now and then, find what nobody opens any more: old copies, and what the dead staged."""
        version, files = self.wanted.version, self._require_files()
        if version % _KEPT_COPIES:
            return []
        copies = files.place.store.list_prefix(files.copies)
        old = [meta.path for meta in copies if version_of(meta.path) <= version - _KEPT_COPIES]
        return [*old, *files.records.dead(version)]

    def abandon(self) -> None:
        """Leave nothing of a version that certainly did not come about."""
        if self._files is not None and self._staged:
            self._files.place.store.delete(filter(None, [self._staged, self._copy]))

    def unsettle(self) -> None:
        """Note that nobody said whether the version came about."""
        if self._files is None:
            return  # it came to nothing before
        home = self.versions.home
        location = self.versions.location_of(self._files.location)
        home.unsettled.add((location, self.branch, self.wanted.version))

    def _taken(self) -> ConcurrentModificationError:
        msg = f"version {self.wanted.version} was made by another writer: try again on the newest"
        return ConcurrentModificationError(msg)

    def _require_files(self) -> BranchFiles:
        assert self._files is not None  # noqa: S101  # prepared before
        return self._files


@dataclass
class DeleteVersions:
    """Records of versions that go; their data stays.

    Attributes:
        versions: What reads and makes versions.
        table: The identifier.
        ranges: Which go.
        branch: The branch; None for main.
    """

    versions: LanceVersions
    table: ObjectId
    ranges: Sequence[VersionRange]
    branch: str | None = None
    _doomed: list[int] = field(default_factory=list)
    _files: BranchFiles | None = None
    _copies: list[str] = field(default_factory=list)

    @property
    def message(self) -> str:
        """What it does, in words."""
        return f"delete version records of table {self.table}"

    def prepare(self, txn: Transaction) -> None:
        """Refuse what is not there before anything is done."""
        require_table(txn, self.table)

    def plan(self, txn: Transaction) -> None:
        """Delete the records, within a transaction.

        Raises:
            InvalidTableStateError: what is left would not be the table any more.
        """
        table = require_table(txn, self.table)
        locator = branch_locator(table.locator, self.branch)
        files = self._files = self.versions.files(table, self.branch)
        branch = txn.find(locator)
        deltas = [] if branch is None else txn.children(locator)
        existing = sorted(int(found.id) for found in deltas)
        self._doomed = files.records.choose(self.ranges, existing)
        self._copies = [
            files.in_store(manifest_of(cast("Delta", found.value)).path)
            for found in deltas
            if int(found.id) in self._doomed
        ]
        if branch is None:
            return
        if self.branch and ALL in self.ranges:
            txn.delete(locator, cascade=True)  # a branch of the name may begin anew
            return
        for version in self._doomed:
            txn.delete(locator.child(str(version)))
        if self._doomed and self._doomed == existing:
            # No number is given out again: a sleeping writer may still write its file.
            known = cast("Partition", branch.value)
            txn.update(
                locator,
                replace(known, stream_position=None, previous_position=known.stream_position),
            )

    def finish(self) -> int:
        """Delete the manifests of the records that are gone."""
        if self._files is not None and self._doomed:
            with suppress(ServiceUnavailableError):  # nobody looks at them any more
                self._files.records.remove(self._doomed)
                self._files.place.store.delete(self._copies)
        return len(self._doomed)

    def abandon(self) -> None:
        """Nothing was written."""

    def unsettle(self) -> None:
        """Deleting again is no harm."""


def require_table(txn: Transaction, table: ObjectId) -> LanceTable:
    """Return a live table.

    Raises:
        TableNotFoundError: no live table has this identifier.
    """
    found = find_table(txn, locator_of(table))
    if found is None:
        msg = f"there is no table {quote(str(table))}"
        raise TableNotFoundError(msg)
    return found


def manifest_of(delta: Delta) -> DataFile:
    """Return the manifest that a delta makes a version."""
    return delta.manifest.files[0]


def newest_delta(txn: Transaction, branch: Locator) -> Delta | None:
    """Return the newest version of a branch; None where it has none."""
    found = txn.find(branch)
    newest = cast("Partition", found.value).stream_position if found else None
    return None if newest is None else cast("Delta", txn.get(branch.child(str(newest))).value)


def version_at(files: BranchFiles, found: VersionRecord, author: str, at_ms: int | None) -> Delta:
    """Return the delta of a version that lies where readers of the directory find it."""
    manifest = DataFile(
        path=files.named(files.final(found.manifest_path)),
        content_type=MANIFEST_TYPE,
        size_bytes=found.size_bytes,
    )
    return Delta(
        stream_position=found.version,
        at_ms=at_ms,
        manifest=Manifest(files=(manifest,), author=author),
        properties=dict(found.metadata),
    )


def take_in(txn: Transaction, table: LanceTable, files: BranchFiles, home: Home) -> int:
    """Record the versions of a table's directory that are newer than those recorded.

    Returns:
        How many there were.
    """
    locator = branch_locator(table.locator, files.branch)
    found = txn.find(locator)
    known = cast("Partition", found.value) if found else partition_of(locator, files.branch)
    last = max(known.stream_position or 0, known.previous_position or 0)
    # A version may lie there under names that count up and down: it is one.
    there = {one.version: one for one in files.records.newest_first()}
    fresh = sorted(version for version in there if version > last)
    if not fresh:
        return 0
    moved = replace(known, stream_position=fresh[-1])
    if found is None:
        txn.create(locator, moved)
    else:
        txn.update(locator, moved)
    for version in fresh:
        delta = version_at(files, there[version], home.author, there[version].at_ms)
        txn.create(locator.child(str(version)), delta)
    return len(fresh)


def record(files: BranchFiles, delta: Delta, *, by_copy: bool) -> VersionRecord:
    """Return a version as it is told: the newest by its copy, older ones by their final names."""
    manifest = manifest_of(delta)
    stored = files.in_store(manifest.path)
    path = stored if by_copy else files.final(stored)
    return VersionRecord(
        delta.stream_position or 0,
        key_for_lance(files.place.store.location(path)),
        manifest.size_bytes,
        None,
        delta.at_ms,
        dict(delta.properties),
    )


def _tell(
    files: BranchFiles, delta: Delta, newest: int | None, finals: Collection[int]
) -> VersionRecord | None:
    """Return a version as it is told; None where Lance cleaned it up, which it does not tell.

    One that is newer than all final ones is not yet final: its writer is at it, or died.
    """
    version = delta.stream_position or 0
    by_copy = version == newest or version > max(finals, default=0)
    return record(files, delta, by_copy=by_copy) if by_copy or version in finals else None


def final_versions(files: BranchFiles) -> Collection[int]:
    """Return the versions whose manifests have their final names."""
    return list_versions(files.place.store, files.directory).keys()


def is_final(files: BranchFiles, delta: Delta) -> bool:
    """Whether a version's manifest has its final name."""
    return files.place.store.head(files.final(manifest_of(delta).path)) is not None


def finalize(files: BranchFiles, txn: Transaction, branch: Locator, newest: Delta) -> None:
    """Give versions' manifests their final names where their writer did not come to it.

    Of several that one transaction made, the older ones come first.
    """
    delta: Delta | None = newest
    while delta is not None and not _is_named(files, delta):
        before = txn.find(branch.child(str((delta.stream_position or 0) - 1)))
        delta = cast("Delta", before.value) if before else None
    at = (delta.stream_position or 0) if delta else 0
    for version in range(at + 1, (newest.stream_position or 0) + 1):
        found = txn.find(branch.child(str(version)))
        if found is None:
            continue
        copy = files.in_store(manifest_of(cast("Delta", found.value)).path)
        body = files.place.store.get(copy)
        if body is not None:
            _put_final_surely(files, files.final(copy), body)


def _is_named(files: BranchFiles, delta: Delta) -> bool:
    copy = files.in_store(manifest_of(delta).path)
    return copy == files.final(copy) or is_final(files, delta)


def _put_final_surely(files: BranchFiles, final: str, body: bytes) -> None:
    """Put a manifest under its final name before something is built on it.

    Raises:
        ServiceUnavailableError: the store did not say that it is there, and nothing else was done.
    """
    try:
        put_final(files, final, body)
    except UnknownOutcomeError as exc:
        msg = f"the version before could not be completed: {exc}"
        raise ServiceUnavailableError(msg) from exc


def put_final(files: BranchFiles, final: str, body: bytes) -> None:
    """Put a manifest under its final name, which only the catalog gives out."""
    if create_once(files.place.store, final, body):
        return
    # Somebody wrote past the catalog, which has decided otherwise: what that was is kept.
    other = files.place.store.get(final)
    if other is not None and other != body:
        files.place.store.put(f"{final}-past-the-catalog", other)
    files.place.store.put(final, body)


def counts_down(path: str) -> bool:
    """Whether a manifest is named so that the newest comes first."""
    name = path.rpartition("/")[2]
    return name == manifest_name(version_of(path))


def version_of(path: str) -> int:
    """Return the version that a manifest is named for; 0 for any other file."""
    return parse_manifest(path.rpartition("/")[2]) or 0


def no_branch(table: ObjectId, branch: str) -> TableBranchNotFoundError:
    """Word that there is no such branch."""
    return TableBranchNotFoundError(f"table {quote(str(table))} has no branch {quote(branch)}")


def no_version(table: ObjectId, version: int, branch: str | None) -> TableVersionNotFoundError:
    """Word that there is no such version."""
    where = f"branch {quote(branch)} of " if branch else ""
    return TableVersionNotFoundError(f"{where}table {quote(str(table))} has no version {version}")
