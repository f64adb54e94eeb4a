"""The audit of one table: what its directory holds against what its versions name.

The directory is listed once, before the versions are read: a file that is committed meanwhile is
named by a version and no orphan. What then seems to be missing may have come after the listing, so
it is looked for once more before it is reported.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import sleep
from typing import TYPE_CHECKING

from mooring.config import mask_uris
from mooring.errors import MooringError, TableNotFoundError
from mooring.identifiers import quote
from mooring.tables.files import find_damaged, named_by, named_by_all
from mooring.upkeep.audit_leftovers import find_runs, find_seal, find_staged, find_unwritten
from mooring.upkeep.audit_look import TableLook
from mooring.upkeep.findings import Fault, Repair, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mooring.catalog import Catalog
    from mooring.tables.files import Named, Opened
    from mooring.upkeep.audit_look import Checks, Subject
    from mooring.upkeep.findings import Finding

__all__ = ["audit_tables"]

_AT_ONCE = 8
# For so long a file that older versions lack may be on its way out with them.
_PAUSES_S = (0.0, 0.1, 0.4, 1.0)
_SHOWN = 5
_LOOKS = 5
# What Lance raises for what it cannot read.
_FAILURES = (MooringError, OSError, ValueError, RuntimeError)


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
        audit = _TableAudit(TableLook(catalog, checks, subject))
        found = audit.run()
        if not any(finding.severity is Severity.ERROR for finding in found):
            return found
        try:
            info = catalog.describe_table(list(subject.names))
        except TableNotFoundError:
            return []  # it was dropped meanwhile
        newest = audit.newest_now()
        if info.location == subject.location and newest in {audit.seen, known}:
            return found
        subject, known = replace(subject, location=info.location), newest
    # Whatever seemed wrong belongs to versions that others have long replaced.
    return [finding for finding in found if finding.severity is not Severity.ERROR]


class _TableAudit:
    """What one look at one table tells."""

    def __init__(self, look: TableLook) -> None:
        self._look = look
        self._whole: dict[str | None, int | None] = {}
        self._opened = 0

    def run(self) -> list[Finding]:
        """Find what is wrong."""
        found = [*find_staged(self._look), *find_runs(self._look)]
        try:
            newest = self._look.open(None)
        except TableNotFoundError:
            return [*found, *find_unwritten(self._look)]
        except _FAILURES as exc:
            if not self._look.files.versions.get(None):
                return [*found, *find_unwritten(self._look)]
            return [*found, self._unreadable(None, exc)]
        self._opened = int(newest.version)
        found += find_seal(self._look, newest)
        return [*found, *self._content(newest)]

    @property
    def seen(self) -> int:
        """The newest version that was looked at, or seen where it could not be opened."""
        return self._opened or max(self._look.files.versions.get(None, {}), default=0)

    def newest_now(self) -> int:
        """Return the newest version, as the catalog says by now."""
        newest = self._look.handle.ledger.newest(None)
        return newest.version if newest else 0

    # -- versions and what they name -------------------------------------------------------------

    def _content(self, newest: Opened) -> Iterator[Finding]:
        opened: dict[str | None, Opened] = {None: newest}
        for name in self._look.files.branches:
            try:
                opened[name] = self._look.open(name)
            except _FAILURES as exc:
                yield self._unreadable(name, exc)
        named: set[str] = set()
        for branch, dataset in opened.items():
            told = named_by(dataset, self._look.site, branch)
            named |= told.files.keys()
            named |= {path for one in told.indexes for path in self._look.files.below(one)}
            yield from self._compare(branch, dataset, told)
        if len(opened) == 1 + len(self._look.files.branches):
            yield from self._past(opened, named)

    def _compare(self, branch: str | None, dataset: Opened, named: Named) -> Iterator[Finding]:
        """Find what a newest version names and is missing or damaged."""
        missing = self._look.missing(named.files)
        damaged = self._cut(named)
        for directory, index in named.indexes.items():
            yield from self._index(directory, index.name, index.size_bytes, branch)
        if self._look.checks.footers and not missing and not damaged:
            damaged = find_damaged(dataset, self._look.site, named)
        for path in missing:
            message = f"version {named.version}, the newest{_of(branch)}, names a file that is gone"
            yield self._lost(Fault.MISSING_FILE, path, message, branch)
        for path, why in sorted(damaged.items()):
            message = f"a file of version {named.version}{_of(branch)} is damaged: {why}"
            yield self._lost(Fault.UNREADABLE, path, message, branch)

    def _cut(self, named: Named) -> dict[str, str]:
        """Find files of another size than was noted when they were written."""
        place = self._look.site.place
        damaged = {}
        for path, size in named.files.items():
            meta = self._look.files.metas.get(path)
            if size is None or meta is None or meta.size_bytes == size:
                continue
            # It may have grown since it was listed.
            again = place.store.head(place.path(path))
            if again is not None and again.size_bytes != size:
                damaged[path] = f"it has {again.size_bytes:,} bytes of {size:,}"
        return damaged

    def _index(
        self, directory: str, name: str, size_bytes: int | None, branch: str | None
    ) -> Iterator[Finding]:
        found = self._look.files.size_of(self._look.files.below(directory))
        if found >= (size_bytes or 1):
            return
        place = self._look.site.place
        found = sum(meta.size_bytes for meta in place.store.list_prefix(place.path(directory)))
        if found < (size_bytes or 1):
            what = f"files of index {quote(name)}{_of(branch)}"
            yield self._look.finding(
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
        return self._look.finding(
            kind,
            Severity.ERROR,
            path,
            message if whole is None else f"{message}; version {whole} is whole",
            files=1,
            bytes=self._look.files.size_of([path]),
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
            older = sorted(self._look.files.versions.get(branch, {}), reverse=True)[1:]
            self._whole[branch] = next((one for one in older if self._is_whole(branch, one)), None)
        return self._whole[branch]

    def _is_whole(self, branch: str | None, version: int) -> bool:
        try:
            dataset = self._look.open(branch, version)
            named = named_by(dataset, self._look.site, branch)
        except _FAILURES:
            return False
        if self._look.missing(named.files) or self._cut(named):
            return False
        return not (self._look.checks.footers and find_damaged(dataset, self._look.site, named))

    # -- what older versions name, and what none does --------------------------------------------

    def _past(self, opened: dict[str | None, Opened], named: set[str]) -> Iterator[Finding]:
        """Find files that no version names and, if wanted, what older versions lack."""
        look = self._look
        if not look.checks.all_versions and not look.old(look.files.unnamed(named)):
            return
        lacking: dict[str, list[int]] = {}
        for branch, dataset in opened.items():
            try:
                versions = named_by_all(dataset, branch)
            except _FAILURES:
                yield from self._unreadable_versions(branch)
                return  # what they name is not known, so nothing is known to be an orphan
            if look.checks.all_versions:
                older = {one: versions[one] for one in versions.keys() - {int(dataset.version)}}
                for path, made in self._lacked(branch, older).items():
                    lacking.setdefault(path, []).extend(made)
            named |= {path for paths in versions.values() for path in paths}
        for path, made in sorted(lacking.items()):
            if not _is_transaction(path):
                yield self._lacking(path, made)
        orphans = look.old(look.files.unnamed(named | look.files.noted_by_runs()))
        if orphans:
            yield self._orphans(orphans)

    def _lacked(self, branch: str | None, versions: dict[int, set[str]]) -> dict[str, list[int]]:
        """Tell which files versions lack that are still there, and which versions."""
        gone = self._look.missing({path for paths in versions.values() for path in paths})
        if not gone:
            return {}
        # A cleanup that came by deletes the manifests, too, a moment after the files.
        manifests = self._look.files.versions.get(branch, {})
        told: dict[str, list[int]] = {}
        for pause_s in _PAUSES_S:
            sleep(pause_s)
            there = self._look.existing(manifests[one] for one in versions if one in manifests)
            left = [one for one in sorted(versions) if manifests.get(one) in there]
            lacked = {path: [one for one in left if path in versions[one]] for path in gone}
            told = {path: made for path, made in lacked.items() if made}
            if not told:
                break
        return told

    def _orphans(self, paths: list[str]) -> Finding:
        count = len(paths)
        what = (
            "a file that no version names is"
            if count == 1
            else f"{count:,} files that no version names are"
        )
        return self._look.finding(
            Fault.ORPHAN_FILE,
            Severity.WARNING,
            paths[0] if count == 1 else "",
            f"{what} left by a writer that never committed",
            files=count,
            bytes=self._look.files.size_of(paths),
            repair=Repair.DELETE_FILES,
            targets=tuple(paths),
        )

    def _lacking(self, path: str, versions: list[int]) -> Finding:
        shown = ", ".join(map(str, sorted(versions)[:_SHOWN]))
        more = f" and {len(versions) - _SHOWN:,} more" if len(versions) > _SHOWN else ""
        return self._look.finding(
            Fault.MISSING_FILE,
            Severity.WARNING,
            path,
            f"older versions name a file that is gone: {shown}{more}",
            files=1,
            advice="the newest version does not need it: let a cleanup delete older versions",
        )

    def _unreadable_versions(self, branch: str | None) -> Iterator[Finding]:
        """Find manifests of older versions that cannot be read."""
        versions = self._look.files.versions.get(branch, {})
        for version in sorted(versions)[:-1]:
            try:
                self._look.open(branch, version)
            except _FAILURES as exc:
                if not self._look.existing([versions[version]]):
                    continue  # a cleanup came by
                yield self._look.finding(
                    Fault.UNREADABLE,
                    Severity.WARNING,
                    versions[version],
                    f"version {version}{_of(branch)} cannot be opened: {_reason(exc)}",
                    files=1,
                    bytes=self._look.files.size_of([versions[version]]),
                    repair=Repair.FORGET_VERSION,
                    targets=(branch or "",),
                    version=version,
                )

    def _unreadable(self, branch: str | None, exc: Exception) -> Finding:
        versions = self._look.files.versions.get(branch, {})
        newest = max(versions, default=0)
        message = f"version {newest}, the newest{_of(branch)}, cannot be opened: {_reason(exc)}"
        return self._lost(Fault.UNREADABLE, versions.get(newest, ""), message, branch)


def _of(branch: str | None) -> str:
    return "" if branch is None else f" of branch {quote(branch)}"


def _reason(exc: Exception) -> str:
    return mask_uris(str(exc).partition(", /")[0])


def _is_transaction(path: str) -> bool:
    """Whether a file only tells how a version was made: nothing is read from it."""
    return "_transactions" in path.split("/")
