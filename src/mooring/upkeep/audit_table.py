"""The audit of one table: what its directory holds against what its versions name.

The directory is listed once, before the versions are read: a file that is committed meanwhile is
named by a version and no orphan. What then seems to be missing may have come after the listing, so
it is looked for once more before it is reported.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from time import sleep
from typing import TYPE_CHECKING

from mooring.config import mask_uris
from mooring.directory.layout import RESERVED
from mooring.errors import MooringError, TableNotFoundError
from mooring.identifiers import ObjectId, quote
from mooring.metastore.backend import MetastoreBackend
from mooring.namespace.api import TableInfo
from mooring.table import Table
from mooring.tables.files import find_damaged, named_by, named_by_all, open_version
from mooring.tables.handle import At
from mooring.tables.seal import is_sealed_once, read_seal
from mooring.upkeep.findings import Fault, Finding, Repair, Severity
from mooring.upkeep.places import shown_path, site_of
from mooring.upkeep.table_files import list_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mooring.catalog import Catalog
    from mooring.jobs.address import CatalogAddress
    from mooring.tables.files import Named, Opened
    from mooring.upkeep.table_files import TableFiles

__all__ = ["Checks", "Subject", "audit_tables"]

_AT_ONCE = 8
# For so long a file that older versions lack may be on its way out with them.
_PAUSES_S = (0.0, 0.1, 0.4, 1.0)
_SHOWN = 5
_LOOKS = 5
# What Lance raises for what it cannot read.
_FAILURES = (MooringError, OSError, ValueError, RuntimeError)


@dataclass(frozen=True)
class Checks:
    """What to look for; it travels to workers.

    Attributes:
        catalog: The catalog.
        before_ms: What was written before this time is no longer anybody's who is at work.
        orphans_before_ms: The same for files of which only their age tells.
        all_versions: Whether the files of all versions must be there, not only of the newest.
        footers: Whether the end of each data file is read.
    """

    catalog: CatalogAddress
    before_ms: int
    orphans_before_ms: int
    all_versions: bool = False
    footers: bool = True


@dataclass(frozen=True)
class Subject:
    """A table as the catalog locates it.

    Attributes:
        names: Its identifier, level by level.
        location: Where Lance finds it.
    """

    names: tuple[str, ...]
    location: str


def audit_tables(checks: Checks, subjects: Sequence[Subject]) -> list[Finding]:
    """Audit some tables, several at once."""
    catalog = checks.catalog.open()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda subject: _audit(catalog, checks, subject), subjects)
        return [finding for findings in found for finding in findings]


def _audit(catalog: Catalog, checks: Checks, subject: Subject) -> list[Finding]:
    """Audit a table; where something is wrong it is looked at again if it changed meanwhile."""
    found: list[Finding] = []
    known: int | None = None
    for _ in range(_LOOKS):
        look = _TableAudit(catalog, checks, subject)
        found = look.run()
        if not any(finding.severity is Severity.ERROR for finding in found):
            return found
        try:
            info = catalog.describe_table(list(subject.names))
        except TableNotFoundError:
            return []  # it was dropped meanwhile
        newest = look.newest_now()
        if info.location == subject.location and newest in {look.seen, known}:
            return found
        subject, known = replace(subject, location=info.location), newest
    # Whatever seemed wrong belongs to versions that others have long replaced.
    return [finding for finding in found if finding.severity is not Severity.ERROR]


class _TableAudit:
    """One look at one table."""

    def __init__(self, catalog: Catalog, checks: Checks, subject: Subject) -> None:
        self._catalog = catalog
        self._checks = checks
        self._names = subject.names
        self._site = site_of(catalog, subject.location)
        info = TableInfo(ObjectId(subject.names), subject.location, self._site.options, {})
        self._handle = Table(catalog.backend, info).handle
        self._whole: dict[str | None, int | None] = {}
        self._opened = 0

    @cached_property
    def _files(self) -> TableFiles:
        return list_files(self._site.place)

    def run(self) -> list[Finding]:
        """Find what is wrong."""
        found = [*self._staged(), *self._runs()]
        try:
            newest = self._open(None)
        except TableNotFoundError:
            return [*found, *self._without_versions()]
        except _FAILURES as exc:
            if not self._files.versions.get(None):
                return [*found, *self._without_versions()]
            return [*found, self._unreadable(None, exc)]
        self._opened = int(newest.version)
        found += self._seal(newest)
        return [*found, *self._content(newest)]

    @property
    def seen(self) -> int:
        """The newest version that was looked at, or seen where it could not be opened."""
        return self._opened or max(self._files.versions.get(None, {}), default=0)

    def newest_now(self) -> int:
        """Return the newest version, as the catalog says by now."""
        newest = self._handle.ledger.newest(None)
        return newest.version if newest else 0

    # -- versions and what they name -------------------------------------------------------------

    def _content(self, newest: Opened) -> Iterator[Finding]:
        opened: dict[str | None, Opened] = {None: newest}
        for name in self._files.branches:
            try:
                opened[name] = self._open(name)
            except _FAILURES as exc:
                yield self._unreadable(name, exc)
        named: set[str] = set()
        for branch, dataset in opened.items():
            told = named_by(dataset, self._site, branch)
            named |= told.files.keys()
            named |= {path for one in told.indexes for path in self._files.below(one)}
            yield from self._compare(branch, dataset, told)
        if len(opened) == 1 + len(self._files.branches):
            yield from self._past(opened, named)

    def _compare(self, branch: str | None, dataset: Opened, named: Named) -> Iterator[Finding]:
        """Find what a newest version names and is missing or damaged."""
        missing = self._missing(named.files)
        damaged = self._cut(named)
        for directory, index in named.indexes.items():
            yield from self._index(directory, index.name, index.size_bytes, branch)
        if self._checks.footers and not missing and not damaged:
            damaged = find_damaged(dataset, self._site, named)
        for path in missing:
            message = f"version {named.version}, the newest{_of(branch)}, names a file that is gone"
            yield self._lost(Fault.MISSING_FILE, path, message, branch)
        for path, why in sorted(damaged.items()):
            message = f"a file of version {named.version}{_of(branch)} is damaged: {why}"
            yield self._lost(Fault.UNREADABLE, path, message, branch)

    def _missing(self, paths: Iterable[str]) -> list[str]:
        """Tell which files are not there, those that came after the listing left out."""
        unseen = sorted(path for path in paths if path not in self._files.metas)
        if not unseen:
            return []
        there = self._existing(unseen)
        return [path for path in unseen if path not in there]

    def _existing(self, paths: Iterable[str]) -> set[str]:
        """Tell which files are there now."""
        place = self._site.place
        by_path = {place.path(path): path for path in paths}
        return {by_path[path] for path in place.store.existing(list(by_path))}

    def _cut(self, named: Named) -> dict[str, str]:
        """Find files of another size than was noted when they were written."""
        damaged = {}
        for path, size in named.files.items():
            meta = self._files.metas.get(path)
            if size is None or meta is None or meta.size_bytes == size:
                continue
            # It may have grown since it was listed.
            again = self._site.place.store.head(self._site.place.path(path))
            if again is not None and again.size_bytes != size:
                damaged[path] = f"it has {again.size_bytes:,} bytes of {size:,}"
        return damaged

    def _index(
        self, directory: str, name: str, size_bytes: int | None, branch: str | None
    ) -> Iterator[Finding]:
        found = self._files.size_of(self._files.below(directory))
        if found >= (size_bytes or 1):
            return
        again = self._site.place.store.list_prefix(self._site.place.path(directory))
        found = sum(meta.size_bytes for meta in again)
        if found < (size_bytes or 1):
            what = f"files of index {quote(name)}{_of(branch)}"
            yield self._finding(
                Fault.MISSING_FILE,
                Severity.ERROR,
                directory,
                f"{what} are gone or damaged: {found:,} bytes are there of {size_bytes or 0:,}",
                repair=Repair.DROP_INDEX,
                targets=(name, branch or ""),
            )

    def _lost(self, kind: Fault, path: str, message: str, branch: str | None) -> Finding:
        """Tell of content that is lost, and which version still has all of its own."""
        whole = self._find_whole(branch)
        return self._finding(
            kind,
            Severity.ERROR,
            path,
            message if whole is None else f"{message}; version {whole} is whole",
            files=1,
            bytes=self._files.size_of([path]),
            repair=None if whole is None else Repair.RESTORE,
            advice="no other version is whole: bring the file back from a copy"
            if whole is None
            else None,
            targets=(branch or "",),
            version=whole,
        )

    def _find_whole(self, branch: str | None) -> int | None:
        """Find the newest version before the last that has all of its files."""
        if branch not in self._whole:
            older = sorted(self._files.versions.get(branch, {}), reverse=True)[1:]
            self._whole[branch] = next((one for one in older if self._is_whole(branch, one)), None)
        return self._whole[branch]

    def _is_whole(self, branch: str | None, version: int) -> bool:
        try:
            dataset = self._open(branch, version)
            named = named_by(dataset, self._site, branch)
        except _FAILURES:
            return False
        if self._missing(named.files) or self._cut(named):
            return False
        return not (self._checks.footers and find_damaged(dataset, self._site, named))

    # -- what older versions name, and what none does --------------------------------------------

    def _past(self, opened: dict[str | None, Opened], named: set[str]) -> Iterator[Finding]:
        """Find files that no version names and, if wanted, what older versions lack."""
        if not self._checks.all_versions and not self._old(self._files.unnamed(named)):
            return
        lacking: dict[str, list[int]] = {}
        for branch, dataset in opened.items():
            try:
                versions = named_by_all(dataset, branch)
            except _FAILURES:
                yield from self._unreadable_versions(branch)
                return  # what they name is not known, so nothing is known to be an orphan
            if self._checks.all_versions:
                older = {one: versions[one] for one in versions.keys() - {int(dataset.version)}}
                for path, made in self._lacked(branch, older).items():
                    lacking.setdefault(path, []).extend(made)
            named |= {path for paths in versions.values() for path in paths}
        for path, made in sorted(lacking.items()):
            if not _is_transaction(path):
                yield self._lacking(path, made)
        orphans = self._old(self._files.unnamed(named | self._files.noted_by_runs()))
        if orphans:
            yield self._orphans(orphans)

    def _lacked(self, branch: str | None, versions: dict[int, set[str]]) -> dict[str, list[int]]:
        """Tell which files versions lack that are still there, and which versions."""
        gone = self._missing({path for paths in versions.values() for path in paths})
        if not gone:
            return {}
        # A cleanup that came by deletes the manifests, too, a moment after the files.
        manifests = self._files.versions.get(branch, {})
        told: dict[str, list[int]] = {}
        for pause_s in _PAUSES_S:
            sleep(pause_s)
            there = self._existing(manifests[one] for one in versions if one in manifests)
            left = [one for one in sorted(versions) if manifests.get(one) in there]
            lacked = {path: [one for one in left if path in versions[one]] for path in gone}
            told = {path: made for path, made in lacked.items() if made}
            if not told:
                break
        return told

    def _old(self, paths: Iterable[str]) -> list[str]:
        limit = self._checks.orphans_before_ms
        return [path for path in paths if self._files.metas[path].modified_ms < limit]

    def _orphans(self, paths: list[str]) -> Finding:
        count = len(paths)
        what = (
            "a file that no version names is"
            if count == 1
            else f"{count:,} files that no version names are"
        )
        return self._finding(
            Fault.ORPHAN_FILE,
            Severity.WARNING,
            paths[0] if count == 1 else "",
            f"{what} left by a writer that never committed",
            files=count,
            bytes=self._files.size_of(paths),
            repair=Repair.DELETE_FILES,
            targets=tuple(paths),
        )

    def _lacking(self, path: str, versions: list[int]) -> Finding:
        shown = ", ".join(map(str, sorted(versions)[:_SHOWN]))
        more = f" and {len(versions) - _SHOWN:,} more" if len(versions) > _SHOWN else ""
        return self._finding(
            Fault.MISSING_FILE,
            Severity.WARNING,
            path,
            f"older versions name a file that is gone: {shown}{more}",
            files=1,
            advice="the newest version does not need it: let a cleanup delete older versions",
        )

    def _unreadable_versions(self, branch: str | None) -> Iterator[Finding]:
        """Find manifests of older versions that cannot be read."""
        versions = self._files.versions.get(branch, {})
        for version in sorted(versions)[:-1]:
            try:
                self._open(branch, version)
            except _FAILURES as exc:
                if not self._existing([versions[version]]):
                    continue  # a cleanup came by
                yield self._finding(
                    Fault.UNREADABLE,
                    Severity.WARNING,
                    versions[version],
                    f"version {version}{_of(branch)} cannot be opened: {_reason(exc)}",
                    files=1,
                    bytes=self._files.size_of([versions[version]]),
                    repair=Repair.FORGET_VERSION,
                    targets=(branch or "",),
                    version=version,
                )

    def _unreadable(self, branch: str | None, exc: Exception) -> Finding:
        versions = self._files.versions.get(branch, {})
        newest = max(versions, default=0)
        message = f"version {newest}, the newest{_of(branch)}, cannot be opened: {_reason(exc)}"
        return self._lost(Fault.UNREADABLE, versions.get(newest, ""), message, branch)

    def _open(self, branch: str | None, version: int | None = None) -> Opened:
        if version is None:
            return self._handle.open(At(branch=branch))
        return open_version(self._site, version, branch)

    # -- what crashed operations left ------------------------------------------------------------

    def _staged(self) -> Iterator[Finding]:
        old = self._old([*self._files.staged, *self._dead_copies()])
        if old:
            count = "a manifest" if len(old) == 1 else f"{len(old):,} manifests"
            yield self._finding(
                Fault.STAGED_MANIFEST,
                Severity.WARNING,
                old[0] if len(old) == 1 else "",
                f"{count} of a commit that never happened",
                files=len(old),
                bytes=self._files.size_of(old),
                repair=Repair.DELETE_FILES,
                targets=tuple(old),
            )

    def _dead_copies(self) -> list[str]:
        """Find copies of manifests in a metastore that became no version."""
        backend = self._catalog.backend
        old = self._old(self._files.copies)
        if not old or not isinstance(backend, MetastoreBackend):
            return []
        return backend.dead_manifests(ObjectId(self._names), old)

    def _runs(self) -> Iterator[Finding]:
        for directory, paths in sorted(self._files.runs.items()):
            if self._files.newest_ms(paths) < self._checks.before_ms:
                run = directory.rpartition("/")[2]
                yield self._finding(
                    Fault.PENDING_RUN,
                    Severity.WARNING,
                    directory,
                    f"run {quote(run)} was cut off and left what its workers had written",
                    files=len(paths),
                    bytes=self._files.size_of(paths),
                    repair=Repair.END_RUN,
                    targets=(run, directory),
                )

    def _seal(self, newest: Opened) -> Iterator[Finding]:
        if not is_sealed_once(newest.config()):
            return
        place = self._site.place
        seal = read_seal(place.store, place.directory)
        path = self._files.versions.get(None, {}).get(seal.version, "")
        if (
            seal.nonce is None
            or not path
            or self._files.newest_ms([path]) >= self._checks.before_ms
        ):
            return
        yield self._finding(
            Fault.UNFINISHED_RENAME,
            Severity.WARNING,
            path,
            "a rename that was cut off left the table closed to all writers",
            repair=Repair.SETTLE_RENAME,
        )

    def _without_versions(self) -> Iterator[Finding]:
        """Tell of a table without data: declared long ago, cut off at its first write, or gone."""
        files = self._files
        if not files.metas and not self._may_be_empty():
            yield from self._gone()
            return
        since_ms = files.newest_ms() or self._declared_ms()
        if since_ms >= self._checks.before_ms:
            return
        is_declared = set(files.metas) <= {RESERVED}
        yield self._finding(
            Fault.NEVER_WRITTEN,
            Severity.WARNING,
            "",
            "the table was declared and never written"
            if is_declared
            else "the table has no version: its first write was cut off",
            files=len(files.metas),
            bytes=files.bytes,
            repair=Repair.DROP,
        )

    def _may_be_empty(self) -> bool:
        """Whether a table may be there without a file: it is only declared, or a bare directory."""
        if self._catalog.backend.keeps_versions:
            return self._handle.ledger.newest(None) is None
        place = self._site.place
        return place.store.list_dir(place.directory).exists

    def _declared_ms(self) -> int:
        """Tell when a table without files was declared, as far as the catalog knows."""
        known = self._catalog.history(list(self._names))
        return max((change.at_ms for change in known), default=0)

    def _gone(self) -> Iterator[Finding]:
        if self._catalog.backend.levels == 1:
            return  # in a plain directory the directory is the table
        yield self._finding(
            Fault.ROW_WITHOUT_DIRECTORY,
            Severity.ERROR,
            "",
            "the catalog names a table at a place where nothing is",
            repair=Repair.DEREGISTER,
        )

    def _finding(  # the fields of a finding, most by name
        self,
        kind: Fault,
        severity: Severity,
        path: str,
        message: str,
        *,
        files: int = 0,
        bytes: int = 0,  # noqa: A002  # the finding's word
        repair: Repair | None = None,
        advice: str | None = None,
        targets: tuple[str, ...] = (),
        version: int | None = None,
    ) -> Finding:
        return Finding(
            kind,
            severity,
            str(ObjectId(self._names)),
            shown_path(self._catalog, self._site, path),
            message,
            files=files,
            bytes=bytes,
            repair=repair,
            advice=advice,
            names=self._names,
            targets=targets,
            version=version,
        )


def _of(branch: str | None) -> str:
    return "" if branch is None else f" of branch {quote(branch)}"


def _reason(exc: Exception) -> str:
    return mask_uris(str(exc).partition(", /")[0])


def _is_transaction(path: str) -> bool:
    """Whether a file only tells how a version was made: nothing is read from it."""
    return "_transactions" in path.split("/")
