"""Making a version of a Lance table, and deleting records of versions, as steps of a transaction.

Spec: objects-and-relationships, "External Manifest Store", "Version Cleanup".
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
)
from mooring.identifiers import quote
from mooring.metastore.lance_table import branch_locator, find_table, locator_of, partition_of
from mooring.metastore.lance_versions import newest_delta, record, require_table, take_in
from mooring.metastore.manifests import (
    MANIFEST_TYPE,
    counts_down,
    finalize,
    manifest_of,
    version_of,
)
from mooring.metastore.model import DataFile, Delta, Manifest, Partition
from mooring.tables.final_manifests import put_final
from mooring.tables.records import ALL, final_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.identifiers import ObjectId
    from mooring.metastore.lance_table import LanceTable
    from mooring.metastore.lance_versions import LanceVersions
    from mooring.metastore.manifests import BranchFiles
    from mooring.metastore.transaction import Transaction
    from mooring.namespace.table_operations import CreateVersion
    from mooring.tables.api import VersionRange, VersionRecord

__all__ = ["DeleteVersions", "NewVersion"]

# A reader who was told of a copy may still open it when so many more versions have been made.
_KEPT_COPIES = 16


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
    # Whether the version before is made by the same transaction.
    _is_follower: bool = False

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
        self._is_follower = self.wanted.version > ((last and last.stream_position) or 0) + 1
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
            self._name(files, delta)
            files.place.store.delete([self._staged, *self._leftovers()])
        return record(files, delta, by_copy=True)

    def _name(self, files: BranchFiles, delta: Delta) -> None:
        """Give the manifest its final name, unless the version before has none yet.

        Whoever completes versions goes back to the newest that has its name: none before that one
        may lack it.
        """
        if not self._is_follower:
            put_final(files.place.store, files.final(self._copy), self._body, self._is_recorded)
            return
        view = self.versions.metastore.begin()
        table = find_table(view, locator_of(self.wanted.table))
        if table and table.location == files.location:
            finalize(files, view, branch_locator(table.locator, self.branch), delta)

    def _is_recorded(self) -> bool:
        """Whether the version is still this one: a branch may go, and come again by its name."""
        view = self.versions.metastore.begin()
        table = find_table(view, locator_of(self.wanted.table))
        branch = table and branch_locator(table.locator, self.branch)
        found = branch and view.find(branch.child(str(self.wanted.version)))
        if not found:
            return False
        return manifest_of(cast("Delta", found.value)).path == self._require_files().named(
            self._copy
        )

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
