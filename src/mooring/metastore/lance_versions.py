"""The versions of Lance tables as deltas: whoever commits one commits a transaction.

A manifest that was written is first copied to a path of its own. The transaction that makes it a
version decides; after it the manifest gets the name by which readers of the directory find it.
Whoever comes next does that for a writer who died in between, before anything is built on it. So
several tables change together or not at all, and the newest version is always readable where the
catalog says, with no look at the directory.

Spec: objects-and-relationships, "External Manifest Store".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from mooring.errors import (
    TableBranchNotFoundError,
    TableNotFoundError,
    TableVersionNotFoundError,
)
from mooring.identifiers import quote
from mooring.metastore.lance_table import (
    branch_locator,
    find_table,
    locator_of,
    partition_of,
    stream_locator,
)
from mooring.metastore.manifests import (
    MANIFEST_TYPE,
    BranchFiles,
    final_versions,
    finalize,
    is_final,
    manifest_of,
    version_of,
)
from mooring.metastore.model import DataFile, Delta, Manifest, Partition
from mooring.namespace.locations import is_outside
from mooring.tables.api import VersionRecord
from mooring.tables.records import key_for_lance

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mooring.identifiers import ObjectId
    from mooring.metastore.lance_table import LanceTable
    from mooring.metastore.locator import Locator
    from mooring.metastore.metastore import Metastore
    from mooring.metastore.transaction import Transaction
    from mooring.namespace.home import Home
    from mooring.tables.place import Place

__all__ = ["LanceVersions", "newest_delta", "record", "require_table", "take_in", "version_at"]


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

    def dead_copies(self, table: ObjectId, copies: Collection[str]) -> list[str]:
        """Tell which copies of manifests can never become a version any more.

        They are named for a version that another manifest has become.

        Args:
            table: A live table.
            copies: Paths below the table's directory.
        """
        txn = self.metastore.begin()
        found = find_table(txn, locator_of(table))
        dead = []
        for branch in txn.children(stream_locator(found.locator)) if found else ():
            values = cast("Partition", branch.value).values
            files = self.files(cast("LanceTable", found), str(values[0]) if values else None)
            newest = cast("Partition", branch.value).stream_position or 0
            named = {
                files.in_store(manifest_of(cast("Delta", delta.value)).path)
                for delta in txn.children(branch.locator)
            }
            dead += [
                copy
                for copy in copies
                if (path := files.place.path(copy)).startswith(f"{files.copies}/")
                and path not in named
                and 0 < version_of(path) <= newest
            ]
        return dead

    def files(self, table: LanceTable, branch: str | None) -> BranchFiles:
        """Tell where the manifests of a branch lie."""
        return BranchFiles(self.place_of(table.location), table.location, branch)


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
        delta.manifest.author,
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


def no_branch(table: ObjectId, branch: str) -> TableBranchNotFoundError:
    """Word that there is no such branch."""
    return TableBranchNotFoundError(f"table {quote(str(table))} has no branch {quote(branch)}")


def no_version(table: ObjectId, version: int, branch: str | None) -> TableVersionNotFoundError:
    """Word that there is no such version."""
    where = f"branch {quote(branch)} of " if branch else ""
    return TableVersionNotFoundError(f"{where}table {quote(str(table))} has no version {version}")
