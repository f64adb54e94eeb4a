"""Catalogs under test: what each kind can do, and ways to play other programs in its storage."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import lance
import pyarrow as pa

from mooring.directory.backend import DirectoryBackend
from mooring.identifiers import ObjectId
from mooring.namespace.api import CreateMode
from mooring.store import open_store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.namespace.api import Backend, TableInfo
    from mooring.store import Store

__all__ = ["DISK", "KINDS", "MOTO", "SEAWEEDFS", "FakeClock", "Kind", "Lake", "rows", "table_id"]

NOON_MS = 1_800_000_000_000
_MARK_LIMIT_S = 10.0
_POLL_S = 0.05


class FakeClock:
    """Stands still until it is told."""

    def __init__(self, now_ms: int = NOON_MS) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, duration_ms: int) -> None:
        self._now_ms += duration_ms


@dataclass(frozen=True)
class Kind:
    """A kind of catalog on a kind of store, and what the pair can do.

    Attributes:
        name: For test ids.
        server: The fixture that serves it; None for the disk.
        levels: As the backend says.
        renames: Whether tables can get another name.
        honours_markers: Whether V1 markers of other programs count.
        has_directories: Whether the storage can hold an empty directory.
        lists_emptied: Whether a listing shows a directory for a while after its last object was
            deleted. SeaweedFS removes empty folders in the background, within minutes.
    """

    name: str
    server: str | None = None
    levels: int | None = 1
    renames: bool = False
    honours_markers: bool = True
    has_directories: bool = False
    lists_emptied: bool = False


DISK = Kind("directory-disk", has_directories=True)
MOTO = Kind("directory-moto", server="moto")
SEAWEEDFS = Kind("directory-seaweedfs", server="seaweedfs", lists_emptied=True)
KINDS = (DISK, MOTO, SEAWEEDFS)


def table_id(name: str) -> ObjectId:
    """Return the identifier of a table of the root."""
    return ObjectId.of([name])


def rows(values: Sequence[int]) -> pa.RecordBatchReader:
    """Return a stream of one column ``n``."""
    return pa.table({"n": pa.array(values, pa.int64())}).to_reader()


class Lake:
    """A place for a catalog: opens it any number of times, and lets others meddle."""

    def __init__(self, kind: Kind, uri: str, options: Mapping[str, str], clock: FakeClock) -> None:
        self.kind = kind
        self.uri = uri
        self.options = dict(options)
        self.clock = clock
        self.store = open_store(uri, options)
        self._backend: DirectoryBackend | None = None
        self._marks: dict[str, str] = {}

    # -- as its users ------------------------------------------------------------------------

    def open(
        self, *, author: str = "alice", read_only: bool = False, store: Store | None = None
    ) -> DirectoryBackend:
        """Open the catalog anew, as another process would."""
        store = store or open_store(self.uri, self.options)
        return DirectoryBackend(store, author=author, read_only=read_only, clock=self.clock)

    @property
    def backend(self) -> DirectoryBackend:
        """The catalog, opened once."""
        if self._backend is None:
            self._backend = self.open()
        return self._backend

    def create(
        self,
        name: str,
        values: Sequence[int] = (1, 2, 3),
        mode: CreateMode = CreateMode.CREATE,
        backend: Backend | None = None,
    ) -> TableInfo:
        """Create a table of one column."""
        return (backend or self.backend).create_table(table_id(name), rows(values), mode)

    def drop(self, *names: str) -> None:
        """Drop tables with the default time to live."""
        for name in names:
            self.backend.drop_table(table_id(name))

    def names(self) -> list[str]:
        """List the live tables, through a catalog opened anew."""
        return self.open().list_tables(ObjectId())

    def trash(self) -> list[str]:
        """List the dropped tables."""
        return [found.id.name for found in self.open().list_purgable_tables()]

    def dataset(self, name: str, version: int | None = None) -> lance.LanceDataset:
        """Open a live table with Lance."""
        info = self.backend.describe_table(table_id(name))
        return lance.dataset(
            info.location, version=version, storage_options=dict(info.storage_options) or None
        )

    def values(self, name: str, version: int | None = None) -> list[int]:
        """Read a live table of one column."""
        return self.dataset(name, version).to_table()["n"].to_pylist()

    def files(self, name: str) -> set[str]:
        """List what lies in a table's directory, by path below it."""
        top = f"{name}.lance/"
        found = self.store.list_prefix(top.rstrip("/"))
        return {meta.path.removeprefix(top) for meta in found}

    # -- as other programs -------------------------------------------------------------------

    def write_elsewhere(self, name: str, values: Sequence[int] = (1, 2, 3), **how: str) -> None:
        """Write a table without asking the catalog."""
        lance.write_dataset(
            rows(values),
            self.store.location(f"{name}.lance"),
            storage_options=self.options or None,
            **how,
        )

    def mark_deleted(self, name: str, body: bytes) -> None:
        """Leave another program's drop marker beside a table."""
        self._mark(f"{name}.deleted", body)

    def mark_deregistered(self, name: str, body: bytes = b"") -> None:
        """Leave another program's marker inside a table's directory."""
        self._mark(f"{name}.lance/.lance-deregistered", body)

    def _mark(self, path: str, body: bytes) -> None:
        """Write a marker that differs from an earlier one, if only by its time.

        S3 tells times to the second, and two drops by people are further apart than that.
        """
        earlier = self._marks.get(path)
        deadline = time.monotonic() + _MARK_LIMIT_S
        while True:
            self.store.put(path, body)
            meta = self.store.head(path)
            assert meta is not None
            if meta.mark != earlier:
                self._marks[path] = meta.mark
                return
            assert time.monotonic() < deadline, f"{path} never got another time"
            time.sleep(_POLL_S)
