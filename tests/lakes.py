"""Catalogs under test: what each kind can do, and ways to play other programs in its storage."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import lance
import lance_namespace as spec
import pyarrow as pa

import mooring
from mooring.directory.compat_backend import CompatBackend
from mooring.directory.listing_backend import ListingBackend
from mooring.directory.manifest import MANIFEST_DIR
from mooring.identifiers import ROOT, ObjectId
from mooring.metastore.backend import MetastoreBackend
from mooring.namespace.api import CreateMode
from mooring.namespace.home import Home
from mooring.namespace.settings import METASTORE
from mooring.store import open_store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.catalog import Catalog
    from mooring.namespace.api import Backend, TableInfo
    from mooring.opening import DirectoryBackend
    from mooring.store import Store

__all__ = [
    "COMPAT_DISK",
    "COMPAT_MOTO",
    "DISK",
    "KINDS",
    "MANIFEST_DISK",
    "MANIFEST_MOTO",
    "METASTORES",
    "METASTORE_DISK",
    "METASTORE_MOTO",
    "MOTO",
    "FakeClock",
    "Kind",
    "Lake",
    "rows",
    "table_id",
]

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
        manifest: Whether the catalog keeps a manifest: it has namespaces, properties and several
            names for one location, and identifiers have their delimiter.
        listing: Whether root tables lie in `<name>.lance`, where a V1 reader finds them, and live
            by their chain of decisions.
        metastore: Whether the catalog is a metastore: tables lie in a namespace, versions are
            records of the catalog, and several tables change together.
        has_directories: Whether the storage can hold an empty directory.
        lists_emptied: Whether a listing shows a directory for a while after its last object was
            deleted. SeaweedFS removes empty folders in the background, within minutes.
    """

    name: str
    server: str | None = None
    manifest: bool = False
    listing: bool = True
    metastore: bool = False
    has_directories: bool = False
    lists_emptied: bool = False

    @property
    def levels(self) -> int | None:
        """The level of every table where there is one level only."""
        if self.metastore:
            return 2
        return None if self.manifest else 1

    @property
    def namespace(self) -> str:
        """The class by which clients of the specification open this kind."""
        return f"mooring.{'Metastore' if self.metastore else 'Directory'}Namespace"

    @property
    def flags(self) -> dict[str, bool]:
        """The arguments of ``mooring.connect`` that open this kind."""
        if self.metastore:
            return {}
        return {"manifest_enabled": self.manifest, "dir_listing_enabled": self.listing}


DISK = Kind("directory-disk", has_directories=True)
MOTO = Kind("directory-moto", server="moto")
SEAWEEDFS = Kind("directory-seaweedfs", server="seaweedfs", lists_emptied=True)
COMPAT_DISK = replace(DISK, name="compat-disk", manifest=True)
COMPAT_MOTO = replace(MOTO, name="compat-moto", manifest=True)
COMPAT_SEAWEEDFS = replace(SEAWEEDFS, name="compat-seaweedfs", manifest=True)
MANIFEST_DISK = replace(COMPAT_DISK, name="manifest-disk", listing=False)
MANIFEST_MOTO = replace(COMPAT_MOTO, name="manifest-moto", listing=False)
MANIFEST_SEAWEEDFS = replace(COMPAT_SEAWEEDFS, name="manifest-seaweedfs", listing=False)
KINDS = (
    DISK,
    MOTO,
    SEAWEEDFS,
    COMPAT_DISK,
    COMPAT_MOTO,
    COMPAT_SEAWEEDFS,
    MANIFEST_DISK,
    MANIFEST_MOTO,
    MANIFEST_SEAWEEDFS,
)
METASTORE_DISK = replace(DISK, name="metastore-disk", listing=False, metastore=True)
METASTORE_MOTO = replace(MOTO, name="metastore-moto", listing=False, metastore=True)
METASTORE_SEAWEEDFS = replace(SEAWEEDFS, name="metastore-seaweedfs", listing=False, metastore=True)
METASTORES = (METASTORE_DISK, METASTORE_MOTO, METASTORE_SEAWEEDFS)


def table_id(*names: str) -> ObjectId:
    """Return the identifier of a table, of the root or of namespaces."""
    return ObjectId.of(names)


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
        self._backend: DirectoryBackend | MetastoreBackend | None = None
        self._around = ROOT
        self._marks: dict[str, str] = {}

    # -- as its users ------------------------------------------------------------------------

    def open(
        self, *, author: str = "alice", read_only: bool = False, store: Store | None = None
    ) -> DirectoryBackend | MetastoreBackend:
        """Open the catalog anew, as another process would: it shares nothing with any other."""
        store = store or open_store(self.uri, self.options)
        if self.kind.metastore:
            return MetastoreBackend(
                Home(store, author=author, read_only=read_only, clock=self.clock, kind=METASTORE)
            )
        home = Home(store, author=author, read_only=read_only, clock=self.clock)
        if not self.kind.manifest:
            return ListingBackend(home)
        return CompatBackend(home, listing=self.kind.listing)

    def connect(self, **options: object) -> Catalog:
        """Open the catalog as people do, in its kind."""
        scheme = "metastore+" if self.kind.metastore else ""
        return mooring.connect(
            f"{scheme}{self.uri}", storage_options=self.options, **{**self.kind.flags, **options}
        )

    @property
    def properties(self) -> dict[str, str]:
        """What the kind's namespace class needs to open the catalog."""
        storage = {f"storage.{key}": value for key, value in self.options.items()}
        flags = {key: str(value).lower() for key, value in self.kind.flags.items()}
        return {"root": self.uri, **flags, **storage}

    @property
    def managed(self) -> dict[str, str]:
        """The same, with Lance told to commit through the catalog; a metastore always tells it."""
        flags = {} if self.kind.metastore else {"table_version_tracking_enabled": "true"}
        return {**self.properties, **flags}

    @property
    def backend(self) -> DirectoryBackend | MetastoreBackend:
        """The catalog, opened once."""
        if self._backend is None:
            self._backend = self.open()
        return self._backend

    def settle(self) -> None:
        """Wait until calls that were given up do nothing any more; here they are over by then."""

    @property
    def listed(self) -> ListingBackend:
        """The part of the catalog that decides about `<name>.lance` directories."""
        backend = self.backend
        return backend if isinstance(backend, ListingBackend) else backend._listed

    def id(self, name: str | ObjectId) -> ObjectId:
        """Return the identifier of a table, in a namespace where tables need one.

        The namespace is made the first time that it is needed.
        """
        if isinstance(name, ObjectId):
            return name
        if self.kind.metastore and self._around.is_root:
            self._around = ROOT.child("main")
            self.backend.create_namespace(self._around, {}, CreateMode.EXIST_OK)
        return self._around.child(name)

    def path(self, name: str) -> list[str]:
        """Return the same as requests write it."""
        return list(self.id(name).names)

    def create(
        self,
        name: str | ObjectId,
        values: Sequence[int] = (1, 2, 3),
        mode: CreateMode = CreateMode.CREATE,
        backend: Backend | None = None,
    ) -> TableInfo:
        """Create a table of one column."""
        return (backend or self.backend).create_table(self.id(name), rows(values), mode)

    def make(self, *namespaces: str) -> None:
        """Make namespaces, given in string style."""
        for name in namespaces:
            self.backend.create_namespace(ObjectId.parse(name), {})

    def drop(self, *names: str | ObjectId) -> None:
        """Drop tables with the default time to live."""
        for name in names:
            self.backend.drop_table(self.id(name))

    def names(self) -> list[str]:
        """List the live tables that need no namespace named, through a catalog opened anew."""
        return self.open().list_tables(self._around)

    def tables(self) -> list[str]:
        """List the live tables of all namespaces, through a catalog opened anew."""
        return [str(found) for found in self.open().list_all_tables()]

    def trash(self) -> list[str]:
        """List the dropped tables."""
        return [str(found.id) for found in self.open().list_purgable_tables()]

    def dataset(self, name: str | ObjectId, version: int | None = None) -> lance.LanceDataset:
        """Open a live table with Lance, which asks the catalog where that keeps versions."""
        if self.kind.metastore:
            client = spec.connect(self.kind.namespace, self.properties)
            return lance.dataset(
                namespace_client=client, table_id=list(self.id(name).names), version=version
            )
        info = self.backend.describe_table(self.id(name))
        return lance.dataset(
            info.location, version=version, storage_options=dict(info.storage_options) or None
        )

    def values(self, name: str | ObjectId, version: int | None = None) -> list[int]:
        """Read a live table of one column."""
        return self.dataset(name, version).to_table()["n"].to_pylist()

    def files(self, name: str) -> set[str]:
        """List what lies in the directory of a root table, by path below it."""
        top = f"{name}.lance/"
        found = self.store.list_prefix(top.rstrip("/"))
        return {meta.path.removeprefix(top) for meta in found}

    def directories(self) -> set[str]:
        """Name the directories of tables below the root, the manifest's left out."""
        return set(self.store.list_dir("").directories) - {MANIFEST_DIR}

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
