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
from typing import TYPE_CHECKING, ClassVar, Self

from mooring.directory.listing_backend import ListingBackend
from mooring.errors import ServiceUnavailableError, UnsupportedError
from mooring.namespace.home import Home
from mooring.namespace.settings import Settings
from mooring.store.api import Capabilities, Listing, ObjectMeta, ObjectTag, StoredObject
from mooring.store.local import LocalStore
from mooring.store.numbered import create_once
from mooring.store.wrapped import Call, WrappedStore
from mooring.tables.api import StagedTable
from mooring.tables.versions import list_versions, newest_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

NAME = "t"
_LARGEST = 2**64 - 1
SETTINGS = Settings(adopted=False, revision=1)


class FrozenClock:
    """Stands still, so that equal states are equal."""

    def now_ms(self) -> int:
        return 1_700_000_000_000


class OneByOne:
    """Runs what others run in threads in a row."""

    def __init__(self, _: int) -> None:
        self.map = map

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is under way."""


class CountedIds:
    """Gives each actor its own row of nonces, the same in every run."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._count = 0

    def new_id(self) -> str:
        self._count += 1
        return f"{self._owner}{self._count}"


class MemoryStore:
    """An object store that is a dictionary: as fast as exhaustive exploration needs it."""

    capabilities = Capabilities(compare_and_swap=True)
    options: ClassVar[dict[str, str]] = {}

    def __init__(self, content: dict[str, bytes]) -> None:
        self.content = dict(content)

    def location(self, path: str) -> str:
        return f"memory:///{path}" if path else "memory://"

    def get(self, path: str) -> bytes | None:
        return self.content.get(path)

    def read(self, path: str) -> StoredObject | None:
        body = self.content.get(path)
        return None if body is None else StoredObject(body, _meta(path, body))

    def head(self, path: str) -> ObjectMeta | None:
        body = self.content.get(path)
        return None if body is None else _meta(path, body)

    def existing(self, paths: Sequence[str]) -> set[str]:
        return self.content.keys() & set(paths)

    def list_dir(self, path: str) -> Listing:
        top = f"{path}/" if path else ""
        below = [key[len(top) :] for key in self.content if key.startswith(top)]
        directories = {name.partition("/")[0] for name in below if "/" in name}
        files = [name for name in below if "/" not in name]
        return Listing(sorted(directories), sorted(files), exists=bool(below))

    def list_prefix(self, path: str) -> list[ObjectMeta]:
        top = f"{path}/" if path else ""
        return [
            _meta(key, body) for key, body in sorted(self.content.items()) if key.startswith(top)
        ]

    def iter_dir(self, path: str, *, after: str = "") -> Iterator[ObjectMeta]:
        for name in self.list_dir(path).files:
            if name > after:
                yield _meta(f"{path}/{name}", self.content[f"{path}/{name}"])

    def prune(self, path: str) -> None:
        """Do nothing: there are no empty directories."""

    def sync(self, paths: Iterable[str]) -> None:
        """Do nothing: nothing here survives anyway."""

    def put_new(self, path: str, body: bytes) -> bool:
        if path in self.content:
            return False
        self.content[path] = body
        return True

    def put(self, path: str, body: bytes, *, derived: bool = False) -> None:
        self.content[path] = body

    def copy(self, source: str, target: str) -> bool:
        if source not in self.content:
            return False
        self.content[target] = self.content[source]
        return True

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.content.pop(path, None)

    def delete_prefix(self, path: str) -> int:
        found = self.list_prefix(path)
        self.delete(meta.path for meta in found)
        return len(found)


def _meta(path: str, body: bytes) -> ObjectMeta:
    etag = hashlib.sha1(body, usedforsecurity=False).hexdigest()
    return ObjectMeta(path, len(body), 0, ObjectTag(etag=etag))


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

    def delete_prefix(self, path: str) -> int:
        for known in [known for known in self.content if known.startswith(f"{path}/")]:
            del self.content[known]
        return self.inner.delete_prefix(path)


class StoreTables:
    """Tables as files of the store alone: a data file, then the manifest that names it.

    With ``seals``, a writer looks whether a rename has sealed the version it builds on.
    """

    def __init__(self, store, ids: CountedIds, *, seals: bool = False) -> None:
        self._store = store
        self._ids = ids
        self._seals = seals

    def stage(self, table_dir: str, rows: str) -> StagedTable:
        path = f"{table_dir}/data/{self._ids.new_id()}.lance"
        self._store.put(path, rows.encode())
        return StagedTable(table_dir, None, (), (path,), self._ids.new_id())

    def commit(self, staged: StagedTable, version: int) -> bool:
        before = manifest(staged.table_dir, version - 1)
        body = self._store.get(before) if self._seals and version > 1 else None
        if body is not None and is_sealed(body):
            msg = f"'{staged.table_dir}' is sealed"
            raise ServiceUnavailableError(msg)
        files = [path.removeprefix(f"{staged.table_dir}/") for path in staged.files]
        return self._put(staged.table_dir, version, files, staged.nonce)

    def discard(self, staged: StagedTable) -> None:
        self._store.delete(staged.files)

    def restore(self, table_dir: str, version: int, as_version: int) -> bool:
        body = self._store.get(manifest(table_dir, version))
        if body is None:
            return False
        return self._put(table_dir, as_version, json.loads(body)["files"], self._ids.new_id())

    def append(self, table_dir: str, rows: str) -> None:
        """Add to a table as a writer does that knows nothing of catalogs.

        Raises:
            UnsupportedError: the table is not there, or sealed.
        """
        staged = self.stage(table_dir, rows)
        (added,) = staged.files
        while True:
            newest = newest_version(self._store, table_dir)
            body = self._store.get(manifest(table_dir, newest))
            if body is None or is_sealed(body):
                self.discard(staged)
                msg = f"'{table_dir}' cannot be written to"
                raise UnsupportedError(msg)
            files = [*json.loads(body)["files"], added.removeprefix(f"{table_dir}/")]
            if self._put(table_dir, newest + 1, files, staged.nonce):
                return

    def _put(self, table_dir: str, version: int, files: list[str], nonce: str) -> bool:
        body = json.dumps({"files": files, "nonce": nonce, "version": version})
        return create_once(self._store, manifest(table_dir, version), body.encode())

    def read(self, table_dir: str) -> str | None:
        """Return the content of the newest version; None without one."""
        newest = newest_version(self._store, table_dir)
        if not newest:
            return None
        found = json.loads(self._store.get(list_versions(self._store, table_dir)[newest]))
        bodies = [self._store.get(f"{table_dir}/{path}") for path in found["files"]]
        return "LOST" if None in bodies else "+".join(body.decode() for body in bodies)


def is_sealed(body: bytes) -> bool:
    """Whether a manifest of `StoreTables` refuses all writers."""
    return json.loads(body).get("sealed") is not None


def sealed_copy(path: str, body: bytes, version: int, nonce: str | None) -> bytes:
    """Seal or open a manifest of `StoreTables`, as `tables.seal` does with one of Lance."""
    found = {**json.loads(body), "version": version, "sealed": nonce}
    return json.dumps(found).encode()


def seal_of(path: str, body: bytes) -> str | None:
    """Tell who sealed a manifest of `StoreTables`; one of Lance is never sealed here."""
    if not body.startswith(b"{"):
        return None
    return json.loads(body).get("sealed")


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

    def open(self, content: dict[str, bytes]) -> MemoryStore:
        return MemoryStore(content)

    def close(self, store: MemoryStore) -> None:
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


def open_backend(store, owner: str, *, lance: bool = False) -> ListingBackend:
    """Open the real backend on a store, with the nonces and tables of one actor."""
    ids = CountedIds(owner)
    tables = LanceTablesOfTokens(store) if lance else StoreTables(store, ids)
    return ListingBackend(
        Home(store, author=owner, clock=FrozenClock(), ids=ids, tables=tables, settings=SETTINGS)
    )
