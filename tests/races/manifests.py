"""A manifest made of store calls: every version is one object that holds all rows and the map.

It stands where the Lance table stands and keeps its contract, strict commits by a create-only put
with a nonce in the body, so that each read and each commit is a step that can be scheduled.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import astuple

from mooring.directory.compat_backend import CompatBackend
from mooring.directory.manifest import MANIFEST_DIR, Manifest
from mooring.directory.manifest_backend import ManifestBackend
from mooring.directory.shared_manifest import SharedManifest
from mooring.errors import TableVersionNotFoundError
from mooring.identifiers import DELIMITER
from mooring.namespace.home import Home
from mooring.namespace.settings import settings_path
from mooring.store.numbered import create_once
from mooring.tables.lance_manifest import LanceManifest
from mooring.tables.manifest import Glimpse, ManifestRow, RowChange
from mooring.tables.versions import list_versions, newest_version

from .world import SETTINGS, CountedIds, FrozenClock, StoreTables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NEXT_SETTINGS = settings_path(SETTINGS.revision + 1)
_FRESH = re.compile("[0-9a-f]{8}_")
VERSION = re.compile(rf"{MANIFEST_DIR}/_versions/(\d+)\.manifest")


class HashIds(CountedIds):
    """Nonces that begin like the hash of a directory: who, then which."""

    def new_id(self) -> str:
        self._count += 1
        return f"{ord(self._owner):02x}{self._count:06x}"


def version_path(version: int) -> str:
    return f"{MANIFEST_DIR}/_versions/{version}.manifest"


class Version(NamedTuple):
    """A version as it was read or committed; ``base`` is the nonce of the one before."""

    version: int
    nonce: str
    rows: dict[str, ManifestRow]
    metadata: dict[str, str]
    base: str = ""


class StoreManifest:
    """The rows of a catalog, a version an object."""

    kept: int | None = None
    by_us = True

    def __init__(self, store, ids: CountedIds) -> None:
        self._store = store
        self._path = MANIFEST_DIR
        self._ids = ids
        self._copy = Version(0, "", {}, {})

    @property
    def version(self) -> int:
        return self._copy.version

    @property
    def rows(self) -> dict[str, ManifestRow]:
        return self._copy.rows

    @property
    def metadata(self) -> dict[str, str]:
        return self._copy.metadata

    def newest(self) -> int:
        return newest_version(self._store, MANIFEST_DIR)

    def create(self) -> None:
        if not self.newest():
            self._put(self._copy, {}, {})

    def follow(self, version: int) -> set[str]:
        return self._settle(self._read(version))

    def look(self, version: int, object_ids: Iterable[str], scopes: Iterable = ()) -> Glimpse:
        found = self._read(version)
        wanted = {key: found.rows[key] for key in object_ids if key in found.rows}
        wanted |= {
            key: row for key, row in found.rows.items() if any(scope.holds(row) for scope in scopes)
        }
        return Glimpse(version, wanted, found.metadata, self.by_us, found)

    def children(self, version: int, parent: str, kind: str) -> list[str]:
        rows = self._read(version).rows.values()
        parted = [(row, *row.object_id.rpartition(DELIMITER)[::2]) for row in rows]
        return [name for row, above, name in parted if above == parent and row.object_type == kind]

    def commit(self, change: RowChange, properties: Mapping[str, str]):
        made = self._put(self._copy, _changed(self.rows, change), self.metadata)
        return self._kept(made, change)

    def commit_on(self, glimpse: Glimpse, change: RowChange, properties: Mapping[str, str]) -> bool:
        base = glimpse.handle
        made = self._put(base, _changed(base.rows, change), base.metadata)
        return self._kept(made, change) is not None

    def commit_metadata(
        self, glimpse: Glimpse, updates: Mapping[str, str | None], properties: Mapping[str, str]
    ) -> bool:
        base = glimpse.handle
        merged = {**base.metadata, **updates}
        metadata = {key: value for key, value in merged.items() if value is not None}
        made = self._put(base, base.rows, metadata)
        return self._kept(made, RowChange(), updates) is not None

    def give_up(self) -> None:
        """Do nothing: no files are written before a commit."""

    def tidy(self) -> None:
        """Remove old versions in order, where this is asked for at all."""
        if self.kept is None:
            return
        known = list_versions(self._store, MANIFEST_DIR)
        for version in sorted(known)[: -self.kept]:
            self._store.delete([known[version]])

    def _put(
        self, base: Version, rows: dict[str, ManifestRow], metadata: dict[str, str]
    ) -> Version | None:
        made = Version(base.version + 1, self._ids.new_id(), rows, metadata, base.nonce)
        is_made = create_once(self._store, version_path(made.version), _encode(made))
        return made if is_made else None

    def _kept(
        self,
        made: Version | None,
        change: RowChange,
        updates: Mapping[str, str | None] | None = None,
    ):
        if made is None:
            return None
        self._require_kept(made, change, updates)
        return lambda: self._settle(made)

    # The rule itself is the real one: whether a number was one that tidying had set free.
    _require_kept = LanceManifest._require_kept

    def _is_built_on(self, made: Version, known: Mapping[int, str]) -> bool:
        before = made.version - 1
        body = self._store.get(known[before]) if before in known else None
        return body is not None and decode_version(before, body).nonce == made.base

    def _settle(self, found: Version) -> set[str]:
        known, self._copy = self.rows, found
        keys = found.rows.keys() | known.keys()
        return {key for key in keys if found.rows.get(key) != known.get(key)}

    def _read(self, version: int) -> Version:
        body = self._store.get(version_path(version))
        if body is None:
            msg = f"version {version} was tidied away"
            raise TableVersionNotFoundError(msg)
        return decode_version(version, body)


def _encode(made: Version) -> bytes:
    listed = [astuple(made.rows[key]) for key in sorted(made.rows)]
    body = {"nonce": made.nonce, "rows": listed, "metadata": made.metadata}
    return json.dumps(body).encode()


def _changed(rows: Mapping[str, ManifestRow], change: RowChange) -> dict[str, ManifestRow]:
    changed = {key: row for key, row in rows.items() if key not in change.removed}
    for row in change.added:
        assert row.object_id not in changed, f"{row.object_id} would be there twice"
        changed[row.object_id] = row
    return changed


def decode_version(version: int, body: bytes) -> Version:
    """Read a version; an identifier that is there twice is a fault of the code under test."""
    found = json.loads(body)
    rows = [ManifestRow(*row) for row in found["rows"]]
    by_id = {row.object_id: row for row in rows}
    assert len(by_id) == len(rows), "an identifier is there twice"
    return Version(version, found["nonce"], by_id, found["metadata"])


def newest_rows(content: Mapping[str, bytes]) -> dict[str, ManifestRow]:
    """Read the newest version of a manifest straight from a store's content."""
    versions = [int(match[1]) for path in content if (match := VERSION.fullmatch(path))]
    if not versions:
        return {}
    newest = max(versions)
    return decode_version(newest, content[version_path(newest)]).rows


def settled(call, content: Mapping[str, bytes], *, faults_left: bool) -> bool:
    """Whether a call answers and does the same whatever others do, if nothing is tidied away.

    A version never changes, nobody here saves settings, and nobody knows of a table's directory
    before a row mentions it.
    """
    if call.verb == "get" and call.path.startswith(MANIFEST_DIR):
        return call.path in content
    if call.verb == "get" and call.path == _NEXT_SETTINGS:
        return True
    return not faults_left and _is_private(call.path, content)


def _is_private(path: str, content: Mapping[str, bytes]) -> bool:
    """Whether a path is in a fresh directory that no version ever mentioned."""
    top = path.partition("/")[0]
    if _FRESH.match(top) is None:
        return False
    mention = top.encode()
    return not any(
        mention in body for known, body in content.items() if known.startswith(MANIFEST_DIR)
    )


def open_manifest_backend(store, owner: str, *, kind: type = StoreManifest) -> ManifestBackend:
    """Open the real V2 backend on a store, with the nonces, tables and manifest of one actor."""
    home = _home(store, owner)
    return ManifestBackend(home, manifest=_manifest(home, kind))


def open_compat_backend(store, owner: str, *, kind: type = StoreManifest) -> CompatBackend:
    """Open the real backend of compatibility mode in the same way."""
    home = _home(store, owner, seals=True)
    return CompatBackend(home, manifest=_manifest(home, kind))


def _home(store, owner: str, *, seals: bool = False) -> Home:
    ids = HashIds(owner)
    tables = StoreTables(store, ids, seals=seals)
    return Home(store, author=owner, clock=FrozenClock(), ids=ids, tables=tables, settings=SETTINGS)


def _manifest(home: Home, kind: type) -> Manifest:
    shared = SharedManifest(home.store, lambda: kind(home.store, home.ids))
    return Manifest(shared, home.author)
