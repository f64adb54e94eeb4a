"""A catalog under the scheduler: stores whose state can be copied, and tables made of store calls.

The memory world is exhaustive and fast; the POSIX world runs the same schedules on real files,
with tables written by the same store calls or by Lance itself.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from mooring.directory.backend import DirectoryBackend
from mooring.directory.settings import Settings
from mooring.store.api import ObjectMeta, ObjectTag, StoredObject
from mooring.store.local import LocalStore
from mooring.store.numbered import create_once
from mooring.store.remote import RemoteStore
from mooring.store.wrapped import Call, WrappedStore
from mooring.tables.api import StagedTable
from mooring.tables.versions import list_versions, newest_version

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "t"
_LARGEST = 2**64 - 1
SETTINGS = Settings(adopted=False, revision=1)


class FrozenClock:
    """Stands still, so that equal states are equal."""

    def now_ms(self) -> int:
        return 1_700_000_000_000


class CountedIds:
    """Gives each actor its own row of nonces, the same in every run."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._count = 0

    def new_id(self) -> str:
        self._count += 1
        return f"{self._owner}{self._count}"


class TimelessStore(WrappedStore):
    """Tells nothing that differs from run to run, and keeps a copy of what it holds."""

    def __init__(self, inner) -> None:
        super().__init__(inner)
        self.content: dict[str, bytes] = {}

    def head(self, path: str) -> ObjectMeta | None:
        found = self.inner.head(path)
        if found is None:
            return None
        etag = hashlib.sha1(self.inner.get(path) or b"", usedforsecurity=False).hexdigest()
        return ObjectMeta(path, found.size_bytes, 0, ObjectTag(etag=etag))

    def read(self, path: str) -> StoredObject | None:
        body, meta = self.inner.get(path), self.head(path)
        return None if body is None or meta is None else StoredObject(body, meta)

    def put_new(self, path: str, body: bytes) -> bool:
        created = self.inner.put_new(path, body)
        if created:
            self.content[path] = body
        return created

    def put(self, path: str, body: bytes, *, derived: bool = False) -> None:
        self.inner.put(path, body, derived=derived)
        self.content[path] = body

    def delete(self, paths: Iterable[str]) -> None:
        doomed = list(paths)
        self.inner.delete(doomed)
        for path in doomed:
            self.content.pop(path, None)


class StoreTables:
    """Tables as files of the store alone: a data file, then the manifest that names it."""

    def __init__(self, store, ids: CountedIds) -> None:
        self._store = store
        self._ids = ids

    def stage(self, table_dir: str, rows: str) -> StagedTable:
        path = f"{table_dir}/data/{self._ids.new_id()}.lance"
        self._store.put(path, rows.encode())
        return StagedTable(table_dir, None, (), (path,), self._ids.new_id())

    def commit(self, staged: StagedTable, version: int) -> bool:
        body = json.dumps({"files": staged.files, "nonce": staged.nonce, "version": version})
        return create_once(self._store, manifest(staged.table_dir, version), body.encode())

    def discard(self, staged: StagedTable) -> None:
        self._store.delete(staged.files)

    def restore(self, table_dir: str, version: int, as_version: int) -> bool:
        body = self._store.get(manifest(table_dir, version))
        if body is None:
            return False
        old = json.loads(body)
        nonce = self._ids.new_id()
        body = json.dumps({"files": old["files"], "nonce": nonce, "version": as_version})
        return create_once(self._store, manifest(table_dir, as_version), body.encode())

    def read(self, table_dir: str) -> str | None:
        """Return the content of the newest version; None without one."""
        newest = newest_version(self._store, table_dir)
        if not newest:
            return None
        found = json.loads(self._store.get(list_versions(self._store, table_dir)[newest]))
        (path,) = found["files"]
        body = self._store.get(path)
        return "LOST" if body is None else body.decode()


class LanceTablesOfTokens:
    """Real Lance tables of one row, which holds the token."""

    def __init__(self, store) -> None:
        from mooring.tables.data import LanceTables

        self._store = store
        self._inner = LanceTables(store, author="race", clock=FrozenClock())
        self.commit = self._inner.commit
        self.discard = self._inner.discard
        self.restore = self._inner.restore

    def stage(self, table_dir: str, rows: str) -> StagedTable:
        import pyarrow as pa

        # Lance writes its data file without the store: give the scheduler its step.
        self._store._around(Call("stage", table_dir), lambda: None)
        return self._inner.stage(table_dir, pa.table({"token": [rows]}).to_reader())

    def read(self, table_dir: str) -> str | None:
        import lance

        if not newest_version(self._store, table_dir):
            return None
        try:
            return lance.dataset(self._store.location(table_dir)).to_table()["token"][0].as_py()
        except (OSError, ValueError):
            return "LOST"


def manifest(table_dir: str, version: int) -> str:
    return f"{table_dir}/_versions/{_LARGEST - version:020d}.manifest"


class MemoryWorld:
    """Fresh memory stores."""

    lance = False

    def open(self, content: dict[str, bytes]) -> TimelessStore:
        store = TimelessStore(RemoteStore("memory://", {}))
        for path, body in content.items():
            store.put(path, body)
        return store

    def close(self, store: TimelessStore) -> None:
        """Let the memory go."""


class PosixWorld:
    """Fresh directories of real files."""

    def __init__(self, *, lance: bool = False) -> None:
        self.lance = lance

    def open(self, content: dict[str, bytes]) -> TimelessStore:
        root = tempfile.mkdtemp(prefix="mooring-race-")
        store = TimelessStore(LocalStore(root, durable=False))
        for path, body in content.items():
            store.put(path, body)
        return store

    def close(self, store: TimelessStore) -> None:
        shutil.rmtree(store.location(""), ignore_errors=True)

    def content_of(self, store: TimelessStore) -> dict[str, bytes]:
        """Read everything back: Lance writes files that the store does not see."""
        root = Path(store.location(""))
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }


def open_backend(store, owner: str, *, lance: bool = False) -> DirectoryBackend:
    """Open the real backend on a store, with the nonces and tables of one actor."""
    ids = CountedIds(owner)
    tables = LanceTablesOfTokens(store) if lance else StoreTables(store, ids)
    return DirectoryBackend(
        store, author=owner, clock=FrozenClock(), ids=ids, tables=tables, settings=SETTINGS
    )
