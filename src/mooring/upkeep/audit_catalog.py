"""The audit of what a catalog keeps beside its tables: rows, decisions, directories, trash.

Each question is answered by one look at the catalog, whatever the number of tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.clock import format_time
from mooring.directory.compat_backend import CompatBackend
from mooring.directory.decisions import State
from mooring.directory.entries import intent_of, is_dropped
from mooring.directory.layout import TABLE_SUFFIX, decision_path, is_table_name, table_dir
from mooring.directory.listing_backend import ListingBackend
from mooring.directory.manifest import MANIFEST_DIR
from mooring.directory.manifest_backend import ManifestBackend
from mooring.directory.migration import Migration
from mooring.identifiers import ROOT, ObjectId, quote
from mooring.jobs.incoming import INCOMING_DIR, list_incoming
from mooring.metastore.backend import MetastoreBackend
from mooring.tables.seal import read_seal
from mooring.upkeep.findings import Fault, Finding, Repair, Severity
from mooring.upkeep.stored import stored_backend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.catalog import Catalog
    from mooring.directory.decisions import Hint
    from mooring.namespace.states import Standing
    from mooring.opening import StoredBackend

__all__ = ["Around", "age_of", "audit_catalog", "is_below"]

_OWN_DIRS = {MANIFEST_DIR, INCOMING_DIR.partition("/")[0]}
_UNFINISHED = {State.CREATING, State.UNDROPPING, State.REVIVING}


@dataclass(frozen=True, slots=True)
class Around:
    """What is looked at, and what counts as old.

    Attributes:
        within: The namespace; the root is the whole catalog.
        now_ms: The time.
        before_ms: What was written before this time is no longer anybody's who is at work.
    """

    within: ObjectId
    now_ms: int
    before_ms: int


def is_below(object_id: ObjectId, namespace: ObjectId) -> bool:
    """Whether an object lies in a namespace, at any level."""
    level = namespace.level
    return object_id.level > level and object_id.names[:level] == namespace.names


def age_of(backend: StoredBackend, time_ms: int) -> int:
    """Tell how long ago a time was by the catalog's own clock."""
    return backend.home.clock.now_ms() - time_ms


def audit_catalog(catalog: Catalog, around: Around) -> list[Finding]:
    """Find what is wrong beside the tables' own files."""
    backend = stored_backend(catalog)
    found = [*_trash(backend.states(), around)]
    if around.within.is_root:
        found += _incoming(catalog, around)
    if isinstance(backend, MetastoreBackend):
        return [*found, *(_metastore(backend, around) if around.within.is_root else ())]
    listing = ListingBackend(backend.home)
    if around.within.is_root and (not isinstance(backend, ManifestBackend)):
        found += _decisions(listing, around)
    if isinstance(backend, CompatBackend):
        found += _renames(backend, listing, around)
        if around.within.is_root:
            found += _rows(backend)
    if around.within.is_root:
        found += _directories(backend, around)
    return found


# -- the trash ------------------------------------------------------------------------------------


def _trash(
    states: list[tuple[ObjectId, Hint]] | list[tuple[ObjectId, Standing]], around: Around
) -> Iterator[Finding]:
    """Find what should have left the trash."""
    for table, hint in states:
        if not is_below(table, around.within):
            continue
        if hint.state == State.PURGING:
            yield _of_table(
                Fault.UNFINISHED_PURGE,
                table,
                "a purge of it was cut off: part of its files may be gone",
                repair=Repair.PURGE_EXPIRED,
            )
        elif hint.state == State.DELETED and hint.deleted_at_ms is not None:
            if hint.ttl_ms is None or hint.deleted_at_ms + hint.ttl_ms > around.now_ms:
                continue
            since = format_time(hint.deleted_at_ms + hint.ttl_ms)
            yield _of_table(
                Fault.EXPIRED_TRASH,
                table,
                f"it was dropped, and its time in the trash is over since {since}",
                repair=Repair.PURGE_EXPIRED,
            )


def _incoming(catalog: Catalog, around: Around) -> Iterator[Finding]:
    """Find data of tables that were to be made, by runs that were cut off before."""
    store = stored_backend(catalog).store
    for incoming in list_incoming(catalog):
        path = f"{INCOMING_DIR}/{incoming.run}"
        files = store.list_prefix(path)
        # Some stores show a directory for a while after its last file.
        if files and max(meta.modified_ms for meta in files) < around.before_ms:
            yield Finding(
                Fault.INCOMING_TABLE,
                Severity.WARNING,
                None,
                path,
                f"run {quote(incoming.run)} was cut off before it made its table",
                files=len(files),
                bytes=sum(meta.size_bytes for meta in files),
                repair=Repair.SWEEP_INCOMING,
                targets=(incoming.run,),
            )


# -- a directory of tables ------------------------------------------------------------------------


def _decisions(listing: ListingBackend, around: Around) -> Iterator[Finding]:
    """Find decisions that cannot be read, and changes that were cut off between two of them."""
    scan = listing.scan()
    for name in scan.unreadable:
        yield _of_table(
            Fault.UNREADABLE,
            ROOT.child(name),
            "a decision about the table is damaged, so nobody knows what it is",
            severity=Severity.ERROR,
            path=decision_path(name, 1).rpartition(".")[0],
            advice="bring the file back from a copy",
        )
    for name, hint in sorted(scan.other.items()):
        if hint.state not in _UNFINISHED:
            continue
        decision = listing.view(name).chain.decision
        if decision is None or decision.at_ms >= around.before_ms:
            continue
        yield _unfinished(name, hint.state)


def _unfinished(name: str, state: State) -> Finding:
    advice = None
    repair: Repair | None = None
    match state:
        case State.UNDROPPING:
            said, repair = "an undrop of it was cut off", Repair.UNDROP
        case State.CREATING:
            said, repair = "its creation over a purged table was cut off", Repair.PURGE
        case _:
            said = "its creation over a dropped table was cut off: it is in the trash as before"
            advice = "undrop or purge it"
    return _of_table(Fault.UNFINISHED_CHANGE, ROOT.child(name), said, repair=repair, advice=advice)


def _renames(backend: CompatBackend, listing: ListingBackend, around: Around) -> Iterator[Finding]:
    """Find renames that were cut off between two of their steps."""
    if not backend.manifest.exists:
        return
    with backend.manifest.reading() as draft:
        rows = list(draft.rows())
    announced = {
        row.object_id
        for row in rows
        if intent_of(row) is not None and not is_dropped(row.object_id)
    }
    hidden = {name for name, hint in listing.scan().other.items() if hint.state is State.RENAMING}
    for name in sorted(announced | hidden):
        table = ROOT.child(name)
        if is_below(table, around.within) and _renamed_ms(listing, name) < around.before_ms:
            yield _of_table(
                Fault.UNFINISHED_RENAME,
                table,
                "a rename of it was cut off, and keeps all writers out",
                path=table_dir(name),
                repair=Repair.SETTLE_RENAME,
            )


def _renamed_ms(listing: ListingBackend, name: str) -> int:
    """Tell when a rename came to where it is, as far as anything tells it."""
    decision = listing.view(name).chain.decision
    if decision is not None and decision.state is State.RENAMING:
        return decision.at_ms
    seal = read_seal(listing.store, table_dir(name))
    found = listing.store.list_prefix(f"{table_dir(name)}/_versions")
    return max((meta.modified_ms for meta in found), default=0) if seal.nonce is not None else 0


def _rows(backend: CompatBackend) -> Iterator[Finding]:
    """Find where the manifest does not say what the directories do."""
    if not backend.manifest.exists or not backend.listing:
        return
    report = Migration(backend).plan()
    for name in report.missing:
        yield _of_table(
            Fault.DIRECTORY_WITHOUT_ROW,
            ROOT.child(name),
            "the table is found by its directory alone: the manifest does not name it yet",
            severity=Severity.INFO,
            path=table_dir(name),
            repair=Repair.MIGRATE,
        )
    for name in report.stale:
        yield _of_table(
            Fault.STALE_ROW,
            ROOT.child(name),
            "its row in the manifest does not say what its directory does",
            path=table_dir(name),
            repair=Repair.MIGRATE,
        )


def _directories(
    backend: CompatBackend | ListingBackend | ManifestBackend, around: Around
) -> Iterator[Finding]:
    """Find directories of the root that no name leads to."""
    if isinstance(backend, ListingBackend):
        known: set[str] = set()
    else:
        orphans = backend.find_orphans(0)
        known = {orphan.location for orphan in orphans}
        for orphan in orphans:
            if not orphan.files or orphan.newest_at_ms >= around.before_ms:
                continue  # nothing is left of it, or somebody may be at it
            yield Finding(
                Fault.UNNAMED_DIRECTORY,
                Severity.INFO if orphan.is_table else Severity.WARNING,
                None,
                orphan.location,
                "a whole table that no name leads to: it may have been deregistered"
                if orphan.is_table
                else "no name leads to it: somebody crashed while creating a table",
                files=orphan.files,
                bytes=orphan.size_bytes,
                repair=None if orphan.is_table else Repair.SWEEP,
                advice="give it a name with 'mooring table register', or delete it by hand"
                if orphan.is_table
                else None,
                targets=(orphan.location,),
            )
    yield from _strangers(backend, known)


def _strangers(
    backend: CompatBackend | ListingBackend | ManifestBackend, known: set[str]
) -> Iterator[Finding]:
    """Find directories that are no table's, whoever made them."""
    found = set(backend.store.list_dir("").directories)
    used = _locations(backend)
    for name in sorted(found - known - used - _OWN_DIRS):
        if name.endswith(TABLE_SUFFIX) and is_table_name(name.removesuffix(TABLE_SUFFIX)):
            continue  # it is a table of its own, live or not
        if isinstance(backend, ListingBackend) and MANIFEST_DIR in found:
            continue  # only the manifest tells, and the catalog was opened without it
        yield Finding(
            Fault.UNNAMED_DIRECTORY,
            Severity.INFO,
            None,
            name,
            "no name leads to it, and it does not look like a table of this catalog",
            advice="delete it by hand if nobody needs it",
        )


def _locations(backend: CompatBackend | ListingBackend | ManifestBackend) -> set[str]:
    """Return the directories of the root that rows mention, those of the trash included."""
    if isinstance(backend, ListingBackend) or not backend.manifest.exists:
        return set()
    with backend.manifest.reading() as draft:
        rows = list(draft.rows())
    mentioned = [row.location for row in rows]
    mentioned += [intent.location for row in rows if (intent := intent_of(row))]
    return {location.split("/")[0] for location in mentioned if location}


# -- a metastore ----------------------------------------------------------------------------------


def _metastore(backend: MetastoreBackend, around: Around) -> Iterator[Finding]:
    """Find what transactions left that never committed, and data that no object names."""
    metastore = backend.metastore
    older_than_ms = age_of(backend, around.before_ms)
    for one in metastore.sweep(older_than_ms=older_than_ms, dry_run=True):
        yield Finding(
            Fault.TRANSACTION_LEFTOVER,
            Severity.WARNING,
            None,
            one.paths[0] if len(one.paths) == 1 else one.txn_id,
            "files of a transaction that never committed",
            files=len(one.paths),
            bytes=one.size_bytes,
            repair=Repair.VACUUM,
            targets=(one.txn_id,),
        )
    for stray in metastore.vacuum(older_than_ms=older_than_ms, dry_run=True):
        yield Finding(
            Fault.STRAY_DATA,
            Severity.WARNING,
            None,
            stray.path,
            "data that no object names: its transaction never committed, or it was deleted",
            files=1,
            bytes=stray.size_bytes,
            repair=Repair.VACUUM,
            targets=(stray.path,),
        )


def _of_table(
    kind: Fault,
    table: ObjectId,
    message: str,
    *,
    severity: Severity = Severity.WARNING,
    path: str = "",
    repair: Repair | None = None,
    advice: str | None = None,
) -> Finding:
    return Finding(
        kind,
        severity,
        str(table),
        path,
        message,
        repair=repair,
        advice=advice,
        names=table.names,
    )
