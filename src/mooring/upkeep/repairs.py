"""Repairs of what an audit found.

Each is safe while others work. What decides is looked at again before anything goes: a run is
given up by a put that its commit would need, a name by the catalog's own commit, data of a
metastore by an entry of its chain. Files of which only their age tells are compared with all
versions once more.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.clock import SystemClock
from mooring.directory.compat_backend import CompatBackend
from mooring.directory.listing_backend import ListingBackend
from mooring.directory.migration import Migration
from mooring.errors import (
    ConcurrentModificationError,
    InvalidTableStateError,
    MooringError,
    UnsupportedError,
)
from mooring.identifiers import ObjectId, quote
from mooring.jobs.incoming import sweep_incoming
from mooring.metastore.backend import MetastoreBackend
from mooring.tables.api import VersionRange
from mooring.tables.files import find_damaged, named_by, named_by_all, open_version
from mooring.tables.handle import At
from mooring.tables.indexes import Indexes
from mooring.tables.seal import renumber
from mooring.tables.versions import BRANCHES_DIR, VERSIONS_DIR, manifest_path
from mooring.upkeep.audit import OLDER_THAN_MS, YOUNGEST_ORPHAN_MS
from mooring.upkeep.audit_catalog import age_of
from mooring.upkeep.cleaning import sweep_runs
from mooring.upkeep.findings import EXPLICIT, Fault, Repair
from mooring.upkeep.places import site_of
from mooring.upkeep.stored import stored_backend
from mooring.upkeep.table_files import list_files

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from mooring.catalog import Catalog
    from mooring.clock import Clock
    from mooring.table import Table
    from mooring.tables.files import Site
    from mooring.upkeep.findings import Finding

__all__ = ["Repaired", "choose", "repair"]


@dataclass(frozen=True, slots=True)
class Repaired:
    """What became of a finding.

    Attributes:
        finding: The finding.
        result: ``repaired``, ``kept`` where somebody needs it after all, or ``failed``.
        detail: What was done, or why not.
        error: The failure, where it is one of ours.
    """

    finding: Finding
    result: str
    detail: str
    error: MooringError | None = None


def choose(
    findings: Iterable[Finding], kinds: Collection[Fault] = ()
) -> tuple[list[Finding], list[Finding]]:
    """Divide findings into those that would be repaired and those that would not.

    Args:
        findings: What was found.
        kinds: The kinds to repair, by name; without any, all but what changes content.
    """
    chosen: list[Finding] = []
    left: list[Finding] = []
    for finding in findings:
        wanted = finding.repair is not None and (
            finding.kind in kinds if kinds else finding.repair not in EXPLICIT
        )
        (chosen if wanted else left).append(finding)
    return chosen, left


def repair(
    catalog: Catalog,
    findings: Sequence[Finding],
    *,
    older_than_ms: int = OLDER_THAN_MS,
    clock: Clock | None = None,
    progress: Callable[[Finding], None] | None = None,
) -> list[Repaired]:
    """Repair what was found, one after the other; one that fails does not keep the others from it.

    Args:
        catalog: The catalog.
        findings: What to repair; what nothing is offered for is left out.
        older_than_ms: What was written longer ago is no longer anybody's who is at work.
        clock: Tells how old something is.
        progress: Told each finding before its repair.

    Raises:
        ReadOnlyError: the catalog was opened read-only.
    """
    catalog.backend.require_writable()
    now_ms = (clock or SystemClock()).now_ms()
    mender = _Mender(catalog, older_than_ms, now_ms)
    done = []
    for finding in _in_order(findings):
        if progress:
            progress(finding)
        done.append(mender.mend(finding))
    return done


def _in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Put those first after which others may have nothing left to do."""
    offered = [finding for finding in findings if finding.repair is not None]
    return sorted(offered, key=lambda one: (one.repair is Repair.DELETE_FILES, one.order))


class _Mender:
    """Repairs findings of one catalog."""

    def __init__(self, catalog: Catalog, older_than_ms: int, now_ms: int) -> None:
        self._catalog = catalog
        self._older_than_ms = older_than_ms
        self._now_ms = now_ms
        self._restored: set[tuple[str, ...]] = set()
        self._once: dict[Repair, set[str]] = {}
        self._ways: dict[Repair, Callable[[Finding], str | None]] = {
            Repair.RESTORE: self._restore,
            Repair.FORGET_VERSION: self._forget_version,
            Repair.DROP_INDEX: self._drop_index,
            Repair.DELETE_FILES: self._delete_files,
            Repair.END_RUN: self._end_run,
            Repair.SWEEP_INCOMING: self._sweep_incoming,
            Repair.DEREGISTER: self._deregister,
            Repair.DROP: self._drop,
            Repair.SETTLE_RENAME: self._settle_rename,
            Repair.UNDROP: self._undrop,
            Repair.PURGE: self._purge,
            Repair.PURGE_EXPIRED: self._purge_expired,
            Repair.SWEEP: self._sweep,
            Repair.VACUUM: self._vacuum,
            Repair.MIGRATE: self._migrate,
        }

    def mend(self, finding: Finding) -> Repaired:
        """Repair one."""
        assert finding.repair is not None  # noqa: S101  # others are left out
        try:
            said = self._ways[finding.repair](finding)
        except MooringError as exc:
            return Repaired(finding, "failed", str(exc), exc)
        if said is None:
            return Repaired(finding, "kept", "somebody needs it after all, or has seen to it")
        return Repaired(finding, "repaired", said)

    def _table(self, finding: Finding) -> Table:
        return self._catalog.table(list(finding.names))

    def _site(self, finding: Finding) -> Site:
        return site_of(self._catalog, self._table(finding).info.location)

    # -- content ---------------------------------------------------------------------------------

    def _restore(self, finding: Finding) -> str | None:
        """Make the content of the newest whole version the newest, also past a damaged one."""
        branch = finding.targets[0] or None
        key = (*finding.names, finding.targets[0])
        if finding.version is None:
            return None
        if key in self._restored:
            return f"version {finding.version} was restored"
        table = self._table(finding)
        site = site_of(self._catalog, table.info.location)
        if _is_whole(table, site, branch):
            return None
        try:
            made = table.restore(finding.version, branch=branch).version
        except ConcurrentModificationError:
            raise
        except MooringError:
            # Lance reads the newest version first, which may be what is damaged.
            made = self._put_copy(table, site, finding.version, branch)
        self._restored.add(key)
        return f"version {finding.version} was restored, as version {made}"

    def _put_copy(self, table: Table, site: Site, version: int, branch: str | None) -> int:
        """Have the catalog make a copy of an older manifest the next version."""
        store = site.place.store
        known = list_files(site.place).versions.get(branch, {})
        path = site.place.path(known[version])
        body = store.get(path)
        if body is None:
            msg = f"version {version} was cleaned up meanwhile: look again"
            raise ConcurrentModificationError(msg)
        new = max(known) + 1
        above = f"{BRANCHES_DIR}/{branch}" if branch else ""
        directory = site.place.path(above) if branch else site.place.directory
        staged = f"{manifest_path(directory, new, like=path)}-{uuid.uuid4()}"
        store.put(staged, renumber(path, body, new))
        name = f"{VERSIONS_DIR}/{staged.rpartition('/')[2]}"
        self._catalog.backend.create_table_version(table.info.id, new, name, branch=branch)
        return new

    def _forget_version(self, finding: Finding) -> str | None:
        """Delete the record of an older version that cannot be opened."""
        version, branch = finding.version or 0, finding.targets[0] or None
        table = self._table(finding)
        try:
            open_version(site_of(self._catalog, table.info.location), version, branch)
        except MooringError:
            gone = self._catalog.backend.delete_table_versions(
                table.info.id, [VersionRange(version, version + 1)], branch=branch
            )
            return f"version {version} was forgotten" if gone else None
        return None

    def _drop_index(self, finding: Finding) -> str | None:
        name, branch = finding.targets
        Indexes(self._table(finding).handle).drop(name, branch=branch or None)
        return f"index {quote(name)} was dropped: build it again"

    # -- files that writers left -----------------------------------------------------------------

    def _delete_files(self, finding: Finding) -> str | None:
        """Delete what no version names and nobody wrote to lately."""
        table = self._table(finding)
        site = site_of(self._catalog, table.info.location)
        files = list_files(site.place)
        limit_ms = self._now_ms - max(self._older_than_ms, YOUNGEST_ORPHAN_MS)
        old = [
            path
            for path in finding.targets
            if path in files.metas and files.metas[path].modified_ms < limit_ms
        ]
        if finding.kind is Fault.ORPHAN_FILE:
            # After the listing, as it was for the audit.
            named = _all_named(table, site, files.branches) | files.noted_by_runs()
            old = [path for path in files.unnamed(named) if path in old]
        if not old:
            return None
        site.place.store.delete(site.place.path(path) for path in old)
        for directory in sorted({path.rpartition("/")[0] for path in old}):
            if directory.rpartition("/")[2] not in {
                "data",
                "_deletions",
                "_transactions",
                VERSIONS_DIR,
            }:
                site.place.store.prune(site.place.path(directory))
        return f"{len(old):,} files were deleted, {files.size_of(old):,} bytes"

    def _end_run(self, finding: Finding) -> str | None:
        """End a run by its own record: one that may still be at work is given up by a put."""
        run, directory = finding.targets
        table = self._table(finding)
        files = list_files(site_of(self._catalog, table.info.location).place)
        paths = files.runs.get(directory, [])
        if not paths or files.newest_ms(paths) >= self._before_ms:
            return None
        swept = sweep_runs(table, run=run)
        stuck = next((one for one in swept if not one.goes), None)
        if stuck is not None:
            msg = (
                f"run {quote(run)} was about to commit, and no version has its files: if it is not"
                f' at work, say so with "mooring table cleanup {finding.table} --run {run} --force"'
            )
            raise InvalidTableStateError(msg)
        gone, size = sum(len(one.files) for one in swept), sum(one.bytes for one in swept)
        return f"the run was ended: {gone:,} files were deleted, {size:,} bytes"

    def _sweep_incoming(self, finding: Finding) -> str | None:
        gone = self._do_once(
            Repair.SWEEP_INCOMING,
            lambda: {one.run for one in sweep_incoming(self._catalog, self._before_ms)},
        )
        return "it was deleted" if finding.targets[0] in gone else None

    @property
    def _before_ms(self) -> int:
        return self._now_ms - self._older_than_ms

    # -- names -----------------------------------------------------------------------------------

    def _deregister(self, finding: Finding) -> str | None:
        """Forget a name at whose place nothing is."""
        site = self._site(finding)
        if list_files(site.place).metas:
            return None
        self._catalog.deregister_table(list(finding.names))
        return "the name was forgotten"

    def _drop(self, finding: Finding) -> str | None:
        """Drop a table that has no data; it can be brought back."""
        table = self._table(finding)
        if table.handle.ledger.newest(None) is not None:
            return None
        self._catalog.drop_table(list(finding.names))
        return "the table was dropped: undrop brings it back"

    def _settle_rename(self, finding: Finding) -> str | None:
        backend = self._catalog.backend
        if not isinstance(backend, CompatBackend):
            msg = "a rename is ended or undone with the manifest: open the catalog with it"
            raise UnsupportedError(msg)
        backend.settle_rename(ObjectId(finding.names))
        return "the rename was ended, or undone"

    def _undrop(self, finding: Finding) -> str | None:
        self._catalog.undrop_table(list(finding.names))
        return "the undrop was finished"

    def _purge(self, finding: Finding) -> str | None:
        self._catalog.purge_table(list(finding.names))
        return "what was left of it was purged"

    def _purge_expired(self, finding: Finding) -> str | None:
        report = stored_backend(self._catalog).purge_expired([ObjectId(finding.names)])
        for failure in report.failed.values():
            if isinstance(failure, MooringError):
                raise failure
        return "it was purged" if report.purged else None

    # -- the whole catalog -----------------------------------------------------------------------

    def _sweep(self, finding: Finding) -> str | None:
        gone = self._do_once(Repair.SWEEP, self._sweep_all)
        return "the directory was deleted" if finding.targets[0] in gone else None

    def _sweep_all(self) -> set[str]:
        backend = stored_backend(self._catalog)
        if isinstance(backend, ListingBackend | MetastoreBackend):
            msg = "only a catalog with a manifest has directories to sweep"
            raise InvalidTableStateError(msg)
        orphans = backend.find_orphans(0)
        old = [orphan for orphan in orphans if orphan.newest_at_ms < self._before_ms]
        return {orphan.location for orphan in backend.delete_orphans(old)}

    def _vacuum(self, finding: Finding) -> str | None:
        gone = self._do_once(Repair.VACUUM, self._vacuum_all)
        return "it was deleted" if finding.targets[0] in gone else None

    def _vacuum_all(self) -> set[str]:
        metastore = self._catalog.metastore
        older_than_ms = age_of(stored_backend(self._catalog), self._before_ms)
        swept = metastore.sweep(older_than_ms=older_than_ms)
        gone = metastore.vacuum(older_than_ms=older_than_ms)
        return {one.txn_id for one in swept} | {one.path for one in gone}

    def _migrate(self, finding: Finding) -> str | None:
        settled = self._do_once(Repair.MIGRATE, self._migrate_all)
        return "its row says what its directory does" if finding.names[0] in settled else None

    def _migrate_all(self) -> set[str]:
        backend = self._catalog.backend
        if not isinstance(backend, CompatBackend):
            msg = "only a catalog that is opened with its manifest can be migrated"
            raise UnsupportedError(msg)
        before = Migration(backend).plan()
        report = Migration(backend).run()
        return {*before.to_do} - {*report.to_do}

    def _do_once(self, what: Repair, work: Callable[[], set[str]]) -> set[str]:
        """Do what concerns the whole catalog once, whatever the number of its findings."""
        if what not in self._once:
            self._once[what] = work()
        return self._once[what]


def _all_named(table: Table, site: Site, branches: Sequence[str]) -> set[str]:
    """Name all files that any version of a table needs."""
    named: set[str] = set()
    for branch in (None, *branches):
        dataset = table.handle.open(At(branch=branch))
        named |= named_by(dataset, site, branch).files.keys()
        for paths in named_by_all(dataset, branch).values():
            named |= paths
    return named


def _is_whole(table: Table, site: Site, branch: str | None) -> bool:
    """Whether the newest version has all of its files by now."""
    try:
        dataset = table.handle.open(At(branch=branch))
        named = named_by(dataset, site, branch)
    except (MooringError, OSError, ValueError, RuntimeError):
        return False
    place = site.place
    there = place.store.existing([place.path(path) for path in named.files])
    if len(there) < len(named.files):
        return False
    return not find_damaged(dataset, site, named)
