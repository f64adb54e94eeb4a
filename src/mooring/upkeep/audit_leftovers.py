"""What operations that crashed left in a table's directory, and tables that never got data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.directory.layout import RESERVED
from mooring.identifiers import ObjectId, quote
from mooring.metastore.backend import MetastoreBackend
from mooring.tables.seal import is_sealed_once, read_seal
from mooring.upkeep.findings import Fault, Repair, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.tables.files import Opened
    from mooring.upkeep.audit_look import TableLook
    from mooring.upkeep.findings import Finding

__all__ = ["find_runs", "find_seal", "find_staged", "find_unwritten"]


def find_staged(look: TableLook) -> Iterator[Finding]:
    """Find manifests of commits that never happened."""
    old = look.old([*look.files.staged, *_dead_copies(look)])
    if old:
        count = "a manifest" if len(old) == 1 else f"{len(old):,} manifests"
        yield look.finding(
            Fault.STAGED_MANIFEST,
            Severity.WARNING,
            old[0] if len(old) == 1 else "",
            f"{count} of a commit that never happened",
            files=len(old),
            bytes=look.files.size_of(old),
            repair=Repair.DELETE_FILES,
            targets=tuple(old),
        )


def _dead_copies(look: TableLook) -> list[str]:
    """Find copies of manifests in a metastore that became no version."""
    backend = look.catalog.backend
    old = look.old(look.files.copies)
    if not old or not isinstance(backend, MetastoreBackend):
        return []
    return backend.dead_manifests(ObjectId(look.names), old)


def find_runs(look: TableLook) -> Iterator[Finding]:
    """Find what runs left that were cut off."""
    for directory, paths in sorted(look.files.runs.items()):
        if look.files.newest_ms(paths) < look.checks.before_ms:
            run = directory.rpartition("/")[2]
            yield look.finding(
                Fault.PENDING_RUN,
                Severity.WARNING,
                directory,
                f"run {quote(run)} was cut off and left what its workers had written",
                files=len(paths),
                bytes=look.files.size_of(paths),
                repair=Repair.END_RUN,
                targets=(run, directory),
            )


def find_seal(look: TableLook, newest: Opened) -> Iterator[Finding]:
    """Find a rename that was cut off and closed the table."""
    if not is_sealed_once(newest.config()):
        return
    place = look.site.place
    seal = read_seal(place.store, place.directory)
    path = look.files.versions.get(None, {}).get(seal.version, "")
    if seal.nonce is None or not path or look.files.newest_ms([path]) >= look.checks.before_ms:
        return
    yield look.finding(
        Fault.UNFINISHED_RENAME,
        Severity.WARNING,
        path,
        "a rename that was cut off left the table closed to all writers",
        repair=Repair.SETTLE_RENAME,
    )


def find_unwritten(look: TableLook) -> Iterator[Finding]:
    """Tell of a table without data: declared long ago, cut off at its first write, or gone."""
    files = look.files
    if not files.metas and not _may_be_empty(look):
        yield from _gone(look)
        return
    since_ms = files.newest_ms() or _declared_ms(look)
    if since_ms >= look.checks.before_ms:
        return
    is_declared = set(files.metas) <= {RESERVED}
    yield look.finding(
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


def _may_be_empty(look: TableLook) -> bool:
    """Whether a table may be there without a file: it is only declared, or a bare directory."""
    if look.catalog.backend.keeps_versions:
        return look.handle.ledger.newest(None) is None
    place = look.site.place
    return place.store.list_dir(place.directory).exists


def _declared_ms(look: TableLook) -> int:
    """Tell when a table without files was declared, as far as the catalog knows."""
    known = look.catalog.history(list(look.names))
    return max((change.at_ms for change in known), default=0)


def _gone(look: TableLook) -> Iterator[Finding]:
    if look.catalog.backend.levels == 1:
        return  # in a plain directory the directory is the table
    yield look.finding(
        Fault.ROW_WITHOUT_DIRECTORY,
        Severity.ERROR,
        "",
        "the catalog names a table at a place where nothing is",
        repair=Repair.DEREGISTER,
    )
