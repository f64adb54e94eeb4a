"""What ``mooring doctor`` finds: settings and their sources, the store, the catalog, its tables.

Everything but the probe only reads: listings of the root, the manifest, the catalog's settings.
"""

from __future__ import annotations

import stat
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from mooring.cli.listing import (
    DEREGISTERED,
    DROPPED,
    LIVE,
    UNFINISHED,
    Listed,
    directory_of,
    is_iceberg,
    is_remote,
    list_everything,
    stored,
)
from mooring.cli.versions import installed, working_versions
from mooring.clock import format_duration
from mooring.config import config_path, mask_uris
from mooring.errors import InvalidNameError, MooringError
from mooring.hints import suggest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.catalog import Catalog
    from mooring.cli.session import Session
    from mooring.metastore.backend import MetastoreBackend
    from mooring.opening import DirectoryBackend, StoredBackend
    from mooring.store import Listing, Store

__all__ = ["OK", "PROBLEM", "SKIPPED", "WARNING", "Finding", "diagnose", "probe", "reason"]

OK, WARNING, PROBLEM, SKIPPED = "ok", "warning", "problem", "skipped"
_SKEW_MS = 5_000
_SHARED_BITS = stat.S_IRWXG | stat.S_IRWXO
_REMEDIES = {
    "creating": ("create it again, or clear it away", "trash purge"),
    "reviving": ("create it again, or bring the dropped table back", "table undrop"),
    "undropping": ("finish it", "table undrop"),
    "purging": ("finish it", "trash purge"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a diagnosis."""

    section: str
    name: str
    value: str | None
    status: str = OK
    note: str | None = None

    def row(self) -> dict[str, object]:
        """Return it as output."""
        return asdict(self)


def diagnose(session: Session, *, write_probe: bool = False) -> list[Finding]:
    """Look at everything, as far as it can be reached."""
    findings = [*_versions(), *_settings(session), *_config_file(session)]
    try:
        catalog = session.open_catalog()
        if is_iceberg(catalog):
            return [*findings, *_iceberg(catalog, write_probe=write_probe)]
        if is_remote(catalog):
            return [*findings, *_remote(catalog)]
        backend = stored(catalog)
        root = backend.store.list_dir("")
    except MooringError as exc:
        return [*findings, Finding("store", "reachable", "no", PROBLEM, reason(exc))]
    findings.append(Finding("store", "reachable", "yes", note=backend.store.location("")))
    findings.extend(_probe(backend, wanted=write_probe))
    findings.extend(_catalog(backend))
    try:
        findings.extend(_kind(catalog, root))
        findings.extend(_leftovers(root))
        findings.extend(_tables(catalog, session.clock.now_ms()))
    except MooringError as exc:
        findings.append(Finding("catalog", "readable", "no", PROBLEM, reason(exc)))
    return findings


def _iceberg(catalog: Catalog, *, write_probe: bool) -> Iterator[Finding]:
    from mooring.cli.iceberg_diagnosis import diagnose_iceberg

    return diagnose_iceberg(catalog, write_probe=write_probe)


def _remote(catalog: Catalog) -> Iterator[Finding]:
    from mooring.cli.remote_diagnosis import diagnose_remote

    return diagnose_remote(catalog)


def _kind(catalog: Catalog, root: Listing) -> Iterator[Finding]:
    """Tell what only one kind of catalog has."""
    from mooring.metastore.backend import MetastoreBackend

    if isinstance(catalog.backend, MetastoreBackend):
        yield from _metastore(catalog.backend)
        return
    directory = directory_of(catalog)
    yield from _adopted(directory)
    yield from _manifest(directory, root)
    yield from _unaddressable(directory, root)
    yield from _declared(directory, root)


def _metastore(backend: MetastoreBackend) -> Iterator[Finding]:
    """Tell how long the history is, and how much of it an opening reads."""
    yield Finding("catalog", "mode", "metastore", note=f"dialect {backend.metastore.dialect.name}")
    measured = backend.metastore.measure()
    yield Finding("metastore", "commits", str(measured.commits))
    yield Finding("metastore", "since checkpoint", str(measured.commits - measured.checkpoint))
    yield Finding("metastore", "objects", str(measured.objects), note="deleted ones count")


def _versions() -> Iterator[Finding]:
    for name, version in working_versions().items():
        yield Finding("version", name, version)
    yield from _spark()


def _spark() -> Iterator[Finding]:
    """Tell whether Spark can be used; nothing of it is started."""
    from mooring.spark.java import find_java

    found = installed("pyspark")
    if found is None:
        note = "jobs run in this process; pip install 'mooring[spark]' for more"
        yield Finding("version", "pyspark", None, SKIPPED, note)
        return
    yield Finding("version", "pyspark", found)
    try:
        java = find_java()
    except MooringError as exc:
        yield Finding("version", "java", None, WARNING, reason(exc))
    else:
        yield Finding("version", "java", java.version, note=str(java.path))


def _settings(session: Session) -> Iterator[Finding]:
    from mooring.opening import current_author

    for name, setting in session.config.shown():
        if name == "user" and setting.value is None:
            yield Finding("setting", name, current_author(), note="operating system")
        else:
            yield Finding("setting", name, setting.value, note=setting.source)


def _config_file(session: Session) -> Iterator[Finding]:
    path = config_path(session.environ)
    if not path.exists():
        yield Finding("setting", "config file", None, note=f"there is none at '{path}'")
    elif stat.S_IMODE(path.stat().st_mode) & _SHARED_BITS:
        note = f'others can read it: run "chmod 600 {path}"'
        yield Finding("setting", "config file", str(path), WARNING, note)
    else:
        yield Finding("setting", "config file", str(path))


def _probe(backend: StoredBackend, *, wanted: bool) -> Iterator[Finding]:
    if not wanted or backend.read_only:
        why = "the catalog is read-only" if wanted else "prove it with --write-probe"
        yield Finding("store", "safe", None, SKIPPED, why)
        return
    yield from probe(backend.store, "store")


def probe(store: Store, section: str) -> Iterator[Finding]:
    """Write to a store, to see whether it decides who came first, and how late it is there.

    Args:
        store: The store.
        section: Of the findings.
    """
    from mooring.store import probe_store

    try:
        probe_store(store)
        skew_ms = _measure_skew(store)
    except MooringError as exc:
        yield Finding(section, "safe", "no", PROBLEM, reason(exc))
        return
    yield Finding(section, "safe", "yes", note="a second creation of one key is refused")
    status = WARNING if abs(skew_ms) > _SKEW_MS else OK
    note = "how far this machine's clock is ahead of the store's"
    yield Finding(section, "clock skew", f"{skew_ms / 1000:+.1f} s", status, note)


def _measure_skew(store: Store) -> int:
    import secrets
    import time

    from mooring.store.passing import PROBE_PREFIX

    path = PROBE_PREFIX + secrets.token_hex(8)
    try:
        store.put_new(path, b"clock")
        now_ms = time.time_ns() // 1_000_000
        meta = store.head(path)
    finally:
        store.delete([path])
    return now_ms - meta.modified_ms if meta else 0


def _catalog(backend: StoredBackend) -> Iterator[Finding]:
    settings = backend.settings
    kept = settings.default_ttl_ms
    note = None if settings.revision else "a plain directory: it has no settings of its own yet"
    yield Finding("catalog", "format", str(settings.format), note=note)
    yield Finding("catalog", "default ttl", "never" if kept is None else format_duration(kept))
    if settings.allowed_locations:
        yield Finding("catalog", "allowed locations", ", ".join(settings.allowed_locations))
    managed = "through the catalog" if backend.managed_versioning else "beside the catalog"
    yield Finding("catalog", "commits of others", managed)
    yield Finding("catalog", "read-only", "yes" if backend.read_only else "no")


def _adopted(backend: DirectoryBackend) -> Iterator[Finding]:
    if backend.settings.adopted:
        yield Finding("catalog", "adopted", "yes")
        return
    note = 'listings look into each table for marks of others; "mooring init --adopt" ends that'
    yield Finding("catalog", "adopted", "no", note=note)


def _manifest(backend: DirectoryBackend, root: Listing) -> Iterator[Finding]:
    """Tell the mode, and how large the manifest is."""
    from mooring.directory.listing_backend import ListingBackend
    from mooring.directory.manifest import MANIFEST_DIR

    if isinstance(backend, ListingBackend):
        note = "its manifest is left out" if MANIFEST_DIR in root.directories else None
        yield Finding("catalog", "mode", "plain directory", note=note)
        return
    is_alone = not _lists(backend)
    note = "only what the manifest has" if is_alone else "the manifest, and what a listing finds"
    yield Finding("catalog", "mode", "manifest" if is_alone else "compatibility", note=note)
    version, rows = backend.measure_manifest()
    if not version:
        yield Finding("manifest", "version", None, note="there is none yet")
        return
    yield Finding("manifest", "version", str(version))
    yield Finding("manifest", "shared", "yes" if backend.manifest.is_shared else "no")
    yield Finding("manifest", "rows", str(rows), note="what was dropped and not yet purged counts")
    left_out = len(backend.unrecorded_tables())
    if left_out:
        note = 'root tables that only a listing finds; "mooring migrate" adds them'
        yield Finding("manifest", "not in it", str(left_out), note=note)


def _lists(backend: DirectoryBackend) -> bool:
    """Whether root tables are found by their directories."""
    from mooring.directory.compat_backend import CompatBackend
    from mooring.directory.manifest_backend import ManifestBackend

    if isinstance(backend, CompatBackend):
        return backend.listing
    return not isinstance(backend, ManifestBackend)


def _leftovers(root: Listing) -> Iterator[Finding]:
    """Name what a crash in the middle of a put leaves; it is invisible to catalogs."""
    from mooring.store.passing import is_passing

    for file in sorted(root.files):
        if is_passing(file):
            note = "left by a crash, or being written right now: delete it if it is old"
            yield Finding("leftover", file, None, WARNING, note)


def _unaddressable(backend: DirectoryBackend, root: Listing) -> Iterator[Finding]:
    from mooring.directory.layout import TABLE_SUFFIX, check_table_name
    from mooring.identifiers import DELIMITER, check_name

    if not _lists(backend):
        return
    for directory in sorted(root.directories):
        if not directory.endswith(TABLE_SUFFIX):
            continue
        name = directory.removesuffix(TABLE_SUFFIX)
        if backend.levels != 1 and DELIMITER in name:
            note = f"'{DELIMITER}' separates levels here: name it with --no-manifest"
            yield Finding("name", directory, None, WARNING, note)
            continue
        try:
            check_name(name)
            check_table_name(name)
        except InvalidNameError as exc:
            yield Finding("name", directory, None, WARNING, f"no command can name it: {exc}")


def reason(exc: MooringError) -> str:
    """Return what an error says, in one line and without secrets."""
    return mask_uris(" ".join(str(exc).split()))


def _tables(catalog: Catalog, now_ms: int) -> Iterator[Finding]:
    tables = list_everything(catalog)
    for state in (LIVE, DROPPED, DEREGISTERED):
        count = sum(table.state == state for table in tables)
        yield Finding("tables", state, str(count))
    for table in tables:
        yield from _attend(table, now_ms)


def _declared(backend: DirectoryBackend, root: Listing) -> Iterator[Finding]:
    """Name the tables without a directory: they are declared, and somebody may fill them."""
    from mooring.namespace.locations import is_outside

    top = backend.store.location("").rstrip("/") + "/"
    directories = set(root.directories)
    for info in backend.describe_tables():
        path = info.location.removeprefix(top)
        if is_outside(path):
            continue
        if path not in directories and ("/" not in path or not backend.store.list_dir(path).exists):
            note = f"declared: '{path}' is not there, and whoever writes it first completes it"
            yield Finding("table", str(info.id), "declared", note=note)


def _attend(table: Listed, now_ms: int) -> Iterator[Finding]:
    if table.state in UNFINISHED:
        advice, verb = _REMEDIES[table.state]
        note = f"under way or cut off by a crash; {advice}: {suggest(verb, table.name)}"
        yield Finding("table", table.name, table.state, WARNING, note)
    if table.deleted_at_ms is not None and table.deleted_at_ms > now_ms + _SKEW_MS:
        ahead = format_duration(table.deleted_at_ms - now_ms)
        note = f"dropped {ahead} in the future: the clock of this or of another machine is wrong"
        yield Finding("table", table.name, table.state, WARNING, note)
