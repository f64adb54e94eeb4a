"""Faults to plant in a catalog: what crashes, disks and other programs leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import lance
import pyarrow as pa

from mooring.directory.listing_backend import ListingBackend
from mooring.directory.renaming import Renaming
from mooring.identifiers import ObjectId
from mooring.jobs.incoming import Incoming
from mooring.metastore.layout import Operation, RevisionName, revision_path
from mooring.tables.draft import draft_for
from mooring.tables.handle import At
from mooring.tables.versions import list_versions, manifest_path
from mooring.upkeep.findings import Fault, Repair
from mooring.upkeep.places import site_of
from mooring.upkeep.stored import stored_backend

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.catalog import Catalog
    from mooring.tables.files import Site

__all__ = ["FAULTS", "Planted", "fill"]

V1, COMPAT, V2, METASTORE = "directory", "compat", "manifest", "metastore"
EVERYWHERE = (V1, COMPAT, V2, METASTORE)
UUID = "0b0c7c6e-3f64-4d8e-9c6f-000000000001"


class Crashed(BaseException):
    """The process ends here."""


@dataclass(frozen=True)
class Planted:
    """A fault and what an audit must say of it.

    Attributes:
        name: For test ids.
        plant: Plants it on a table and returns the table it is about, if it is about one.
        kind: The kind of finding.
        repair: What is offered.
        where: Which kinds of catalogs can have it.
        all_versions: Whether it is looked for only on demand.
    """

    name: str
    plant: Callable[[Catalog, str], str | None]
    kind: Fault
    repair: Repair | None
    where: tuple[str, ...] = EVERYWHERE
    all_versions: bool = False


def rows(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def fill(catalog: Catalog, name: str) -> str:
    """Make a table with three versions: an insert, and a deletion."""
    table = catalog.create_table(name, rows(*range(20)))
    table.insert(rows(*range(20, 40)))
    table.delete("n < 2")
    return name


def site(catalog: Catalog, name: str) -> Site:
    return site_of(catalog, catalog.describe_table(name).location)


def named(catalog: Catalog, name: str, top: str) -> list[str]:
    """Return the paths in the store of a table's files in one of its directories."""
    place = site(catalog, name).place
    return sorted(meta.path for meta in place.store.list_prefix(place.path(top)))


def newest_file(catalog: Catalog, name: str) -> str:
    """Return the path of the data file that only the versions after the first name."""
    first = catalog.table(name).handle.open(At(1)).get_fragments()[0].metadata.files[0].path
    return next(path for path in named(catalog, name, "data") if not path.endswith(first))


def overwrite(catalog: Catalog, name: str, path: str, change: Callable[[bytes], bytes]) -> None:
    store = site(catalog, name).place.store
    store.put(path, change(store.get(path) or b""))


def manifests(catalog: Catalog, name: str) -> dict[int, str]:
    place = site(catalog, name).place
    return list_versions(place.store, place.directory)


# -- content --------------------------------------------------------------------------------------


def damaged_manifest(catalog: Catalog, name: str) -> str:
    versions = manifests(catalog, name)
    overwrite(catalog, name, versions[max(versions)], lambda body: body[: len(body) // 2])
    if catalog.backend.keeps_versions:  # the catalog reads the copy that it decided about
        for path in named(catalog, name, "_manifests"):
            if path.endswith(versions[max(versions)].rpartition("/")[2]):
                overwrite(catalog, name, path, lambda body: body[: len(body) // 2])
    return name


def damaged_older_manifest(catalog: Catalog, name: str) -> str:
    site(catalog, name).place.store.put(manifests(catalog, name)[1], b"nothing of the kind" * 9)
    orphan(catalog, name)  # only then older versions are read
    return name


def damaged_footer(catalog: Catalog, name: str) -> str:
    overwrite(catalog, name, newest_file(catalog, name), lambda body: body[:-40] + b"x" * 40)
    return name


def cut_data(catalog: Catalog, name: str) -> str:
    overwrite(catalog, name, newest_file(catalog, name), lambda body: body[:-100])
    return name


def damaged_deletion(catalog: Catalog, name: str) -> str:
    path = named(catalog, name, "_deletions")[0]
    overwrite(catalog, name, path, lambda body: b"y" * len(body))
    return name


def missing_data(catalog: Catalog, name: str) -> str:
    site(catalog, name).place.store.delete([newest_file(catalog, name)])
    return name


def missing_deletion(catalog: Catalog, name: str) -> str:
    site(catalog, name).place.store.delete([named(catalog, name, "_deletions")[0]])
    return name


def missing_everywhere(catalog: Catalog, name: str) -> str:
    site(catalog, name).place.store.delete(named(catalog, name, "data"))
    return name


def missing_index(catalog: Catalog, name: str) -> str:
    index(catalog, name)
    site(catalog, name).place.store.delete(named(catalog, name, "_indices")[:1])
    return name


def index(catalog: Catalog, name: str) -> None:
    with catalog.table(name).handle.changing() as dataset:
        dataset.create_scalar_index("n", "BTREE")


def missing_older(catalog: Catalog, name: str) -> str:
    table = catalog.table(name)
    table.insert(rows(7), overwrite=True)
    old = table.handle.open(At(1)).get_fragments()[0].metadata.files[0].path
    place = site(catalog, name).place
    place.store.delete([place.path(f"data/{old}")])
    return name


# -- what writers left ----------------------------------------------------------------------------


def orphan(catalog: Catalog, name: str) -> str:
    place = site(catalog, name).place
    place.store.put(place.path("data/0101orphan.lance"), b"written and never committed")
    return name


def orphan_index(catalog: Catalog, name: str) -> str:
    place = site(catalog, name).place
    place.store.put(place.path(f"_indices/{UUID}/page_data.lance"), b"built and never committed")
    place.store.put(place.path(f"_indices/{UUID}/page_lookup.lance"), b"likewise")
    return name


def staged_manifest(catalog: Catalog, name: str) -> str:
    versions = manifests(catalog, name)
    place = site(catalog, name).place
    body = place.store.get(versions[max(versions)]) or b""
    path = manifest_path(place.directory, max(versions) + 1, like=versions[max(versions)])
    place.store.put(f"{path}-{UUID}", body)
    return name


def copied_manifest(catalog: Catalog, name: str) -> str:
    """Leave the copy of a manifest that a commit made before it lost its race, and died."""
    versions = manifests(catalog, name)
    place = site(catalog, name).place
    newest = versions[max(versions)].rpartition("/")[2]
    place.store.put(place.path(f"_manifests/main/{UUID}/{newest}"), b"of another writer")
    # One for the next version may be on its way.
    path = manifest_path(place.directory, max(versions) + 1, like=newest).rpartition("/")[2]
    place.store.put(place.path(f"_manifests/main/{UUID}/{path}"), b"of a writer at work")
    return name


def pending_run(catalog: Catalog, name: str) -> str:
    handle = catalog.table(name).handle
    draft = draft_for(handle.location, handle.options, "lostrun", handle.open())
    draft.write(rows(99).to_reader())  # its driver dies before the commit
    return name


def incoming(catalog: Catalog, name: str) -> None:
    """Write the first rows of a table that nobody comes to make."""
    Incoming.of(catalog, "lostrun").draft.write(rows(99).to_reader())


def never_written(catalog: Catalog, name: str) -> str:
    catalog.declare_table(f"{name}x")
    return f"{name}x"


def first_write_cut_off(catalog: Catalog, name: str) -> str:
    stored_backend(catalog).store.put(f"{name}x.lance/data/01.lance", b"half of a table")
    return f"{name}x"


# -- names and directories ------------------------------------------------------------------------


def vanished(catalog: Catalog, name: str) -> str:
    place = site(catalog, name).place
    place.store.delete_prefix(place.directory)
    return name


def unrecorded(catalog: Catalog, name: str) -> str:
    store = stored_backend(catalog).store
    lance.write_dataset(
        rows(1), store.location("plain.lance"), storage_options=dict(store.options) or None
    )
    return "plain"


def left_by_creator(catalog: Catalog, name: str) -> None:
    stored_backend(catalog).store.put("0123abcd_gone$t/data/01.lance", b"half of a table")


def stranger(catalog: Catalog, name: str) -> None:
    stored_backend(catalog).store.put("backup/readme.txt", b"what is this?")


def stale_row(catalog: Catalog, name: str) -> str:
    """Hide a table by its directory alone, as one does who crashes before its row follows."""
    ListingBackend(stored_backend(catalog).home).drop_table(ObjectId((name,)))
    return name


def damaged_decision(catalog: Catalog, name: str) -> str:
    catalog.drop_table(name)
    store = stored_backend(catalog).store
    for file in store.list_dir("").files:
        if file.startswith(f"{name}.lance-state."):
            store.put(file, b"{")
            if not file.endswith("1"):
                store.delete([file])  # its hint would do
    return name


# -- operations that were cut off -----------------------------------------------------------------


def _cut_off(owner: object, method: str, work: Callable[[], object]) -> None:
    """Do something up to where it calls a method: the process ends there."""

    def crash(*_: object, **__: object) -> None:
        raise Crashed

    kept = getattr(owner, method)
    setattr(owner, method, crash)
    try:
        work()
    except Crashed:
        return
    finally:
        setattr(owner, method, kept)
    msg = f"{method} was never called"
    raise AssertionError(msg)


def rename_announced(catalog: Catalog, name: str) -> str:
    _cut_off(Renaming, "_take_away", lambda: catalog.rename_table(name, f"{name}x"))
    return name


def rename_sealed(catalog: Catalog, name: str) -> str:
    _cut_off(Renaming, "_copy_files", lambda: catalog.rename_table(name, f"{name}x"))
    return name


def rename_decided(catalog: Catalog, name: str) -> str:
    _cut_off(Renaming, "_switch", lambda: catalog.rename_table(name, f"{name}x"))
    return name


def rename_switched(catalog: Catalog, name: str) -> str:
    _cut_off(Renaming, "_put_into_trash", lambda: catalog.rename_table(name, f"{name}x"))
    return name


def half_purged(catalog: Catalog, name: str) -> str:
    catalog.drop_table(name)
    backend = stored_backend(catalog)
    if hasattr(backend, "_trash"):
        _cut_off(backend._trash, "_delete_files", lambda: catalog.purge_table(name))
    else:
        listed = backend if isinstance(backend, ListingBackend) else backend._listed
        _cut_off(listed._purge, "_delete_files", lambda: catalog.purge_table(name))
    return name


def half_purged_row(catalog: Catalog, name: str) -> str:
    catalog.drop_table(name)
    trash = stored_backend(catalog)._named._trash
    _cut_off(trash, "_delete_files", lambda: catalog.purge_table(name))
    return name


def half_created(catalog: Catalog, name: str) -> str:
    catalog.drop_table(name)
    catalog.purge_table(name)
    backend = stored_backend(catalog)
    listed = backend if isinstance(backend, ListingBackend) else backend._listed
    _cut_off(listed._commits, "commit_next", lambda: catalog.create_table(name, rows(1)))
    return name


def half_undropped(catalog: Catalog, name: str) -> str:
    catalog.drop_table(name)
    backend = stored_backend(catalog)
    listed = backend if isinstance(backend, ListingBackend) else backend._listed
    _cut_off(listed._commits, "commit_next", lambda: catalog.create_table(name, rows(1)))
    _cut_off(listed._commits, "restore", lambda: catalog.undrop_table(name))
    return name


def expired(catalog: Catalog, name: str) -> str:
    catalog.drop_table(name, ttl="0s")
    return name


# -- a metastore ----------------------------------------------------------------------------------


def stray_table(catalog: Catalog, name: str) -> None:
    stored_backend(catalog).store.put("_tables/0123456789abcdef.lance/data/01.lance", b"half")


def stray_data(catalog: Catalog, name: str) -> None:
    stored_backend(catalog).store.put("_data/0123456789abcdef/01.parquet", b"never named")


def left_by_transaction(catalog: Catalog, name: str) -> None:
    told = RevisionName(9, Operation.CREATE, f"1700000000000_{UUID}")
    stored_backend(catalog).store.put(revision_path(("abcd",), told), b"never committed")


FAULTS = (
    Planted("damaged-manifest", damaged_manifest, Fault.UNREADABLE, Repair.RESTORE),
    Planted("damaged-older", damaged_older_manifest, Fault.UNREADABLE, Repair.FORGET_VERSION),
    Planted("damaged-footer", damaged_footer, Fault.UNREADABLE, Repair.RESTORE),
    Planted("cut-data", cut_data, Fault.UNREADABLE, Repair.RESTORE),
    Planted("damaged-deletion", damaged_deletion, Fault.UNREADABLE, Repair.RESTORE),
    Planted("missing-data", missing_data, Fault.MISSING_FILE, Repair.RESTORE),
    Planted("missing-deletion", missing_deletion, Fault.MISSING_FILE, Repair.RESTORE),
    Planted("missing-index", missing_index, Fault.MISSING_FILE, Repair.DROP_INDEX),
    Planted("missing-everywhere", missing_everywhere, Fault.MISSING_FILE, None),
    Planted("missing-older", missing_older, Fault.MISSING_FILE, None, all_versions=True),
    Planted("orphan", orphan, Fault.ORPHAN_FILE, Repair.DELETE_FILES),
    Planted("orphan-index", orphan_index, Fault.ORPHAN_FILE, Repair.DELETE_FILES),
    Planted("staged-manifest", staged_manifest, Fault.STAGED_MANIFEST, Repair.DELETE_FILES),
    Planted(
        "copied-manifest",
        copied_manifest,
        Fault.STAGED_MANIFEST,
        Repair.DELETE_FILES,
        (METASTORE,),
    ),
    Planted("pending-run", pending_run, Fault.PENDING_RUN, Repair.END_RUN),
    Planted("incoming", incoming, Fault.INCOMING_TABLE, Repair.SWEEP_INCOMING),
    Planted("never-written", never_written, Fault.NEVER_WRITTEN, Repair.DROP),
    Planted("first-write", first_write_cut_off, Fault.NEVER_WRITTEN, Repair.DROP, (V1, COMPAT)),
    Planted("vanished", vanished, Fault.ROW_WITHOUT_DIRECTORY, Repair.DEREGISTER, (V2, METASTORE)),
    Planted("unrecorded", unrecorded, Fault.DIRECTORY_WITHOUT_ROW, Repair.MIGRATE, (COMPAT,)),
    Planted(
        "left-by-creator", left_by_creator, Fault.UNNAMED_DIRECTORY, Repair.SWEEP, (COMPAT, V2)
    ),
    Planted("stranger", stranger, Fault.UNNAMED_DIRECTORY, None, (V1, COMPAT, V2)),
    Planted("stale-row", stale_row, Fault.STALE_ROW, Repair.MIGRATE, (COMPAT,)),
    Planted("damaged-decision", damaged_decision, Fault.UNREADABLE, None, (V1,)),
    Planted(
        "rename-announced",
        rename_announced,
        Fault.UNFINISHED_RENAME,
        Repair.SETTLE_RENAME,
        (COMPAT,),
    ),
    Planted(
        "rename-sealed", rename_sealed, Fault.UNFINISHED_RENAME, Repair.SETTLE_RENAME, (COMPAT,)
    ),
    Planted(
        "rename-decided", rename_decided, Fault.UNFINISHED_RENAME, Repair.SETTLE_RENAME, (COMPAT,)
    ),
    Planted(
        "rename-switched",
        rename_switched,
        Fault.UNFINISHED_RENAME,
        Repair.SETTLE_RENAME,
        (COMPAT,),
    ),
    Planted(
        "half-purged",
        half_purged,
        Fault.UNFINISHED_PURGE,
        Repair.PURGE_EXPIRED,
        (V1, COMPAT, METASTORE),
    ),
    Planted(
        "half-purged-row", half_purged_row, Fault.UNFINISHED_PURGE, Repair.PURGE_EXPIRED, (V2,)
    ),
    Planted("half-created", half_created, Fault.UNFINISHED_CHANGE, Repair.PURGE, (V1, COMPAT)),
    Planted("half-undropped", half_undropped, Fault.UNFINISHED_CHANGE, Repair.UNDROP, (V1, COMPAT)),
    Planted("expired", expired, Fault.EXPIRED_TRASH, Repair.PURGE_EXPIRED),
    Planted("stray-table", stray_table, Fault.STRAY_DATA, Repair.VACUUM, (METASTORE,)),
    Planted("stray-data", stray_data, Fault.STRAY_DATA, Repair.VACUUM, (METASTORE,)),
    Planted(
        "left-by-transaction",
        left_by_transaction,
        Fault.TRANSACTION_LEFTOVER,
        Repair.VACUUM,
        (METASTORE,),
    ),
)
