"""Names: each one works in every operation, or is refused with code 13 by every one.

Spec: objects-and-relationships, "Object Name".
"""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import lance
import lance_namespace as spec
import pyarrow as pa
import pytest

import mooring
from mooring.directory.compat_backend import CompatBackend
from mooring.directory.layout import MAX_NAME_BYTES
from mooring.directory.listing_backend import ListingBackend
from mooring.errors import (
    InvalidNameError,
    MooringError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode
from mooring.namespace.home import Home
from mooring.namespace.states import Exists, NotFound, SoftDeleted
from mooring.store.api import Capabilities, Listing
from mooring.store.local import LocalStore
from mooring.store.wrapped import WrappedStore
from tests.lakes import COMPAT_DISK, COMPAT_MOTO, DISK, MOTO, Kind, rows, table_id

GOOD = {
    "single quote": "it's",
    "double quote": 'say "hi"',
    "dollar": "a$b",
    "only a dollar": "$",
    "dots": "...",
    "dots inside": "a..b",
    "encoded dots": "%2e%2e",
    "encoded slash": "a%2Fb",
    "encoded space": "a%20b",
    "percent": "100%",
    "space": "a b",
    "spaces around": " a ",
    "glob": '*?#"<>|',
    "hash": "a#b",
    "query": "a?b=c&d",
    "plus": "a+b",
    "colon": "c:",
    "scheme": "s3:",
    "shell": "`id`;$(id)",
    "home": "~root",
    "option": "-rf",
    "braces": "{a,b}[c]",
    "sql": "' OR 1=1 --",
    "markup": "<script>",
    "hidden": ".hidden",
    "emoji": "😀",
    "joined emoji": "🏳️‍🌈",
    "japanese": "日本語",
    "arabic": "العربية",
    "hindi": "हिन्दी",
    "composed": "caf\u00e9",
    "sharp s": "ß",
    "zero width": "a\u200bb",
    "right to left": "\u202eabc",
    "line separator": "a\u2028b",
    "ends like a table": "x.lance",
    "manifest": "__manifest",
    "versions": "_versions",
    "like settings": "_mooring-catalog.00000000000000000001",
    "like a probe": "_mooring-probe.x",
    "like a temporary file": ".mooring-tmp-x",
    "device": "NUL",
    "longest": "x" * MAX_NAME_BYTES,
    "longest in bytes": "語" * (MAX_NAME_BYTES // 3),
}
# Each costs a second or two on moto: the ones that a URL, a signature or a key could break.
GOOD_ON_S3 = [
    "double quote",
    "dots inside",
    "encoded dots",
    "encoded slash",
    "percent",
    "spaces around",
    "glob",
    "query",
    "plus",
    "joined emoji",
    "arabic",
    "longest in bytes",
]
# A manifest adds one place where names are kept: its rows, which are the same on every store.
GOOD_IN_ROWS_ON_S3 = ["glob", "spaces around", "longest in bytes"]
WITH_DELIMITER = [label for label, name in GOOD.items() if "$" in name]
BAD = {
    "empty": "",
    "here": ".",
    "up": "..",
    "slash": "a/b",
    "climbing": "../victim",
    "absolute": "/tmp/victim",
    "backslash": "a\\b",
    "nul": "a\0b",
    "newline": "a\nb",
    "return": "a\rb",
    "tab": "a\tb",
    "escape": "a\x1b[31mb",
    "delete": "a\x7fb",
    "c1 control": "a\x85b",
    "surrogate": "a\ud800b",
    "decomposed": "cafe\u0301",
    "kelvin sign": "\u212a",
    "drop marker": "x.deleted",
    "decision": "x.lance-state.00000000000000000001",
    "hint": "x.lance-state.00000000000000000001.live",
    "200 letters": "x" * 200,
    "one byte too long": "x" * (MAX_NAME_BYTES + 1),
    "too long in bytes": "語" * (MAX_NAME_BYTES // 3 + 1),
}


ONLY_IN_DIRECTORIES = [
    "drop marker",
    "decision",
    "hint",
    "200 letters",
    "one byte too long",
    "too long in bytes",
]


def _cases(kind: Kind, labels) -> list[object]:
    """Return a kind with names; where there are namespaces, `$` separates levels."""
    return [
        pytest.param(kind, label, id=f"{kind.name}-{label}")
        for label in labels
        if not (kind.manifest and label in WITH_DELIMITER)
    ]


on_disk = pytest.mark.parametrize(
    ("disk_lake", "label"),
    [*_cases(DISK, GOOD), *_cases(COMPAT_DISK, GOOD)],
    indirect=["disk_lake"],
)


def _catalog(lake) -> mooring.Catalog:
    return mooring.Catalog(lake.backend, lake.uri)


def _live_through_everything(lake, name: str) -> None:
    """Take one name through every operation, looking after each."""
    catalog = _catalog(lake)
    assert catalog.create_table(name, [{"n": 1}]).name == name
    _must_be_live(lake, name, [1])
    lake.write_elsewhere(name, [2], mode="append")
    _must_be_live(lake, name, [1, 2])
    catalog.drop_table(name)
    _must_be_dropped(lake, name)
    catalog.undrop_table(name)
    _must_be_live(lake, name, [1, 2])
    catalog.deregister_table(name)
    assert name not in lake.names()
    catalog.register_table(name)
    catalog.protect_table(name)
    with pytest.raises(MooringError, match="protected"):
        catalog.drop_table(name)
    catalog.protect_table(name, protected=False)
    catalog.drop_table(name)
    catalog.create_table(name, [{"n": 3}])
    _must_be_live(lake, name, [3])
    catalog.create_table(name, [{"n": 4}], mode="overwrite")
    catalog.drop_table(name)
    catalog.purge_table(name)
    assert name not in lake.names()
    assert lake.trash() == []
    assert catalog.table_status(name) == NotFound()
    catalog.create_table(name, [{"n": 5}])
    _must_be_live(lake, name, [5])
    assert catalog.history(name)
    namespace = mooring.DirectoryNamespace(**lake.properties)
    opened = lance.dataset(namespace_client=namespace, table_id=[name])
    assert opened.to_table()["n"].to_pylist() == [5]


def _must_be_live(lake, name: str, values: list[int]) -> None:
    assert name in lake.names()
    assert lake.open().table_status(table_id(name)) == Exists()
    assert lake.values(name) == values


def _must_be_dropped(lake, name: str) -> None:
    assert name not in lake.names()
    assert lake.trash() == [name]
    assert isinstance(lake.open().table_status(table_id(name)), SoftDeleted)


def _surroundings(lake) -> set[str]:
    """List what lies around the root: on disk the directory that holds it."""
    if lake.kind.server:
        return set()
    return {path.name for path in Path(lake.uri).parent.iterdir()}


@on_disk
def test_a_good_name_works_in_every_operation_on_disk(disk_lake, label):
    _live_through_everything(disk_lake, GOOD[label])
    assert _surroundings(disk_lake) == {"lake"}
    assert disk_lake.directories() == {f"{GOOD[label]}.lance"}


@pytest.mark.s3
@pytest.mark.parametrize(
    ("moto_lake", "label"),
    [*_cases(MOTO, GOOD_ON_S3), *_cases(COMPAT_MOTO, GOOD_IN_ROWS_ON_S3)],
    indirect=["moto_lake"],
)
def test_a_good_name_works_in_every_operation_on_s3(moto_lake, label):
    _live_through_everything(moto_lake, GOOD[label])


@on_disk
def test_a_good_name_works_through_the_lance_namespace(disk_lake, label):
    name = GOOD[label]
    namespace = mooring.DirectoryNamespace(**disk_lake.properties)
    lance.write_dataset(rows([1]), namespace_client=namespace, table_id=[name], mode="create")
    lance.write_dataset(rows([2]), namespace_client=namespace, table_id=[name], mode="append")
    opened = lance.dataset(namespace_client=namespace, table_id=[name])
    assert opened.to_table()["n"].to_pylist() == [1, 2]
    assert namespace.list_tables(spec.ListTablesRequest(id=[])).tables == [name]
    namespace.table_exists(spec.TableExistsRequest(id=[name]))
    namespace.drop_table(spec.DropTableRequest(id=[name]))
    assert namespace.list_tables(spec.ListTablesRequest(id=[])).tables == []


def test_all_good_names_live_beside_each_other(disk_lake):
    names = sorted(name for name in GOOD.values() if not (disk_lake.kind.manifest and "$" in name))
    for name in names:
        disk_lake.backend.declare_table(table_id(name))
    assert disk_lake.names() == names
    disk_lake.drop(*names)
    assert disk_lake.names() == []
    assert disk_lake.trash() == names
    report = disk_lake.backend.purge_tables([table_id(name) for name in names])
    assert len(report.purged) == len(names)
    assert disk_lake.trash() == []


OPERATIONS = {
    "create": lambda backend, table: backend.create_table(table, rows([1])),
    "create if absent": lambda backend, table: backend.create_table(
        table, rows([1]), CreateMode.EXIST_OK
    ),
    "overwrite": lambda backend, table: backend.create_table(
        table, rows([1]), CreateMode.OVERWRITE
    ),
    "declare": lambda backend, table: backend.declare_table(table),
    "describe": lambda backend, table: backend.describe_table(table),
    "status": lambda backend, table: backend.table_status(table),
    "drop": lambda backend, table: backend.drop_table(table),
    "undrop": lambda backend, table: backend.undrop_table(table),
    "purge": lambda backend, table: backend.purge_table(table),
    "register": lambda backend, table: backend.register_table(table, f"{table.name}.lance"),
    "deregister": lambda backend, table: backend.deregister_table(table),
    "protect": lambda backend, table: backend.protect_table(table),
    "history": lambda backend, table: backend.table_history(table),
}


CREATIONS = {"create", "create if absent", "overwrite", "declare", "register"}


def _refused(lake, label: str, operation: str) -> tuple[type[MooringError], ...]:
    """Tell how an operation refuses a name.

    A row of another program may have a name that only a directory cannot have, so with a manifest
    such a name is looked for, and is not found.
    """
    if lake.kind.manifest and label in ONLY_IN_DIRECTORIES and operation not in CREATIONS:
        return (TableNotFoundError,)
    return (InvalidNameError,)


def test_a_bad_name_is_refused_by_every_operation(lake):
    lake.create("x")
    lake.drop("x")
    lake.backend.undrop_table(table_id("x"))
    before = {meta.path for meta in lake.store.list_prefix("")}
    around = _surroundings(lake)
    for label, name in BAD.items():
        # An identifier built by hand passes no check on its way in.
        table = ObjectId((name,))
        if lake.kind.manifest and label in ONLY_IN_DIRECTORIES:
            assert lake.backend.table_status(table) == NotFound()
            assert lake.backend.table_history(table) == []
        operations = dict(OPERATIONS)
        if lake.kind.manifest and label in ONLY_IN_DIRECTORIES:
            del operations["status"], operations["history"]
        for operation, act in operations.items():
            with pytest.raises(_refused(lake, label, operation)) as caught:
                act(lake.backend, table)
            assert caught.value.code in {4, 13}, (label, operation)
            assert str(caught.value).isprintable(), (label, operation)
        report = lake.backend.purge_tables([table])
        assert isinstance(report.failed[table], _refused(lake, label, "purge")), label
    assert {meta.path for meta in lake.store.list_prefix("")} == before
    assert _surroundings(lake) == around


@pytest.mark.parametrize("label", BAD)
def test_a_bad_name_is_refused_by_the_friendly_surface(disk_lake, label):
    catalog, name = _catalog(disk_lake), BAD[label]
    acts = {
        "create": lambda: catalog.create_table(name, [{"n": 1}]),
        "declare": lambda: catalog.declare_table(name),
        "register": lambda: catalog.register_table(name),
        "describe": lambda: catalog.table(name),
        "drop": lambda: catalog.drop_table(name),
        "undrop": lambda: catalog.undrop_table(name),
        "purge": lambda: catalog.purge_table(name),
        "deregister": lambda: catalog.deregister_table(name),
    }
    for operation, act in acts.items():
        with pytest.raises(_refused(disk_lake, label, operation)):
            act()
    if disk_lake.kind.manifest and label in ONLY_IN_DIRECTORIES:
        assert not catalog.table_exists(name)
        assert catalog.history(name) == []
    else:
        for look in (catalog.table_exists, catalog.history):
            with pytest.raises(InvalidNameError):
                look(name)
    assert disk_lake.directories() == set()


@pytest.mark.parametrize("label", BAD)
def test_a_bad_name_is_refused_through_the_lance_namespace(disk_lake, label):
    namespace, bad = mooring.DirectoryNamespace(**disk_lake.properties), [BAD[label]]
    body = _ipc(pa.table({"n": [1]}))
    acts = {
        "create": lambda: namespace.create_table(spec.CreateTableRequest(id=bad), body),
        "declare": lambda: namespace.declare_table(spec.DeclareTableRequest(id=bad)),
        "register": lambda: namespace.register_table(
            spec.RegisterTableRequest(id=bad, location="x.lance")
        ),
        "describe": lambda: namespace.describe_table(spec.DescribeTableRequest(id=bad)),
        "exists": lambda: namespace.table_exists(spec.TableExistsRequest(id=bad)),
        "drop": lambda: namespace.drop_table(spec.DropTableRequest(id=bad)),
        "deregister": lambda: namespace.deregister_table(spec.DeregisterTableRequest(id=bad)),
        "undrop": lambda: namespace.undrop_table(bad),
        "purge": lambda: namespace.purge_table(bad),
        "open": lambda: lance.dataset(namespace_client=namespace, table_id=bad),
    }
    for operation, act in acts.items():
        (refusal,) = _refused(disk_lake, label, operation)
        with pytest.raises(spec.errors.LanceNamespaceError) as caught:
            act()
        assert caught.value.code == refusal.code, operation
    assert disk_lake.directories() == set()


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


# -- tables that other programs named -------------------------------------------------------------


def test_every_listed_name_can_be_used(disk_lake):
    """Whatever directories others made: what a listing shows, describe finds."""
    disk_lake.create("ours")
    not_unicode = os.fsdecode(b"\xff")
    for name in (
        "x.deleted",
        "a\nb",
        "y" * 220,
        "z.lance-state.1",
        "cafe\u0301",
        "back\\slash",
        not_unicode,
    ):
        path = Path(disk_lake.uri, f"{name}.lance", "_versions")
        path.mkdir(parents=True)
        (path / "1.manifest").touch()
    backend = disk_lake.open()
    for name in backend.list_tables(ROOT):
        assert backend.describe_table(ObjectId((name,))).location.endswith(f"{name}.lance")


def test_a_decomposed_table_of_another_program_can_be_read_and_dropped(disk_lake):
    name = "cafe\u0301"
    disk_lake.write_elsewhere(name, [1])
    assert disk_lake.names() == [name]
    assert disk_lake.values(name) == [1]
    disk_lake.drop(name)
    assert disk_lake.trash() == [name]
    disk_lake.backend.undrop_table(table_id(name))
    assert disk_lake.values(name) == [1]


# -- spellings ------------------------------------------------------------------------------------


def test_names_that_differ_by_case_are_two_tables_where_the_disk_says_so(disk_lake):
    assert disk_lake.store.capabilities.case_sensitive
    disk_lake.create("Flights", [1])
    disk_lake.create("flights", [2])
    assert disk_lake.names() == ["Flights", "flights"]
    disk_lake.drop("Flights")
    assert disk_lake.values("flights") == [2]


def test_a_composed_name_cannot_shadow_a_decomposed_one(lake):
    lake.write_elsewhere("cafe\u0301", [1])
    with pytest.raises(TableAlreadyExistsError, match="spelling"):
        lake.create("caf\u00e9", [2])
    with pytest.raises(TableAlreadyExistsError):
        lake.backend.declare_table(table_id("caf\u00e9"))
    assert lake.names() == ["cafe\u0301"]
    assert lake.values("cafe\u0301") == [1]


def test_a_decomposed_name_cannot_shadow_a_composed_one(lake):
    lake.create("caf\u00e9", [1])
    with pytest.raises(InvalidNameError):
        lake.create("cafe\u0301", [2])
    assert lake.names() == ["caf\u00e9"]


class CaseBlindStore(WrappedStore):
    """A disk that keeps the case of names and ignores it, as those of two systems do.

    Every path is looked up among the names that are there, as the file system would.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(LocalStore(root, durable=False))

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(compare_and_swap=False, case_sensitive=False)

    def _seen(self, path: str) -> str:
        """Return the path by which the disk knows it already, as far as it does."""
        known = ""
        for segment in path.split("/"):
            listing = self.inner.list_dir(known)
            names = [*listing.directories, *listing.files]
            match = next((name for name in names if _fold(name) == _fold(segment)), segment)
            known = f"{known}/{match}" if known else match
        return known

    def location(self, path: str) -> str:
        return self.inner.location(self._seen(path) if path else "")

    def get(self, path: str) -> bytes | None:
        return super().get(self._seen(path))

    def read(self, path: str):
        return super().read(self._seen(path))

    def head(self, path: str):
        return super().head(self._seen(path))

    def existing(self, paths) -> set[str]:
        return {path for path in paths if self.head(path)}

    def list_dir(self, path: str) -> Listing:
        return super().list_dir(self._seen(path) if path else "")

    def list_prefix(self, path: str):
        return super().list_prefix(self._seen(path))

    def prune(self, path: str) -> None:
        super().prune(self._seen(path))

    def put_new(self, path: str, body: bytes) -> bool:
        return super().put_new(self._seen(path), body)

    def put(self, path: str, body: bytes, *, derived: bool = False) -> None:
        super().put(self._seen(path), body)

    def delete(self, paths) -> None:
        super().delete([self._seen(path) for path in paths])


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


@pytest.fixture(params=[ListingBackend, CompatBackend])
def case_blind(request, tmp_path, clock):
    store = CaseBlindStore(tmp_path / "lake")
    return request.param(Home(store, author="alice", clock=clock))


def _values(backend: ListingBackend | CompatBackend, name: str) -> list[int]:
    location = backend.describe_table(table_id(name)).location
    return lance.dataset(location).to_table()["n"].to_pylist()


SPELLINGS = [("Flights", "flights"), ("flights", "FLIGHTS"), ("Straße", "STRASSE")]


@pytest.mark.parametrize(("first", "second"), SPELLINGS)
def test_on_a_case_blind_disk_another_spelling_is_taken(case_blind, first, second):
    case_blind.create_table(table_id(first), rows([1]))
    for act in (
        lambda: case_blind.create_table(table_id(second), rows([2])),
        lambda: case_blind.create_table(table_id(second), rows([2]), CreateMode.OVERWRITE),
        lambda: case_blind.create_table(table_id(second), rows([2]), CreateMode.EXIST_OK),
        lambda: case_blind.declare_table(table_id(second)),
    ):
        with pytest.raises(TableAlreadyExistsError, match="spelling"):
            act()
    assert case_blind.list_tables(ROOT) == [first]
    assert _values(case_blind, first) == [1]


@pytest.mark.parametrize(("first", "second"), SPELLINGS)
def test_on_a_case_blind_disk_another_spelling_finds_nothing(case_blind, first, second):
    case_blind.create_table(table_id(first), rows([1]))
    assert case_blind.table_status(table_id(second)) == NotFound()
    for act in (
        lambda: case_blind.describe_table(table_id(second)),
        lambda: case_blind.drop_table(table_id(second)),
        lambda: case_blind.deregister_table(table_id(second)),
        lambda: case_blind.protect_table(table_id(second)),
    ):
        with pytest.raises(MooringError):
            act()
    assert case_blind.list_tables(ROOT) == [first]


@pytest.mark.parametrize(("first", "second"), SPELLINGS)
def test_on_a_case_blind_disk_a_dropped_table_is_only_reached_by_its_own_spelling(
    case_blind, first, second
):
    case_blind.create_table(table_id(first), rows([1]))
    case_blind.drop_table(table_id(first))
    for act in (
        lambda: case_blind.undrop_table(table_id(second)),
        lambda: case_blind.purge_table(table_id(second)),
        lambda: case_blind.create_table(table_id(second), rows([2])),
    ):
        with pytest.raises(MooringError):
            act()
    assert [found.id.name for found in case_blind.list_purgable_tables()] == [first]
    case_blind.undrop_table(table_id(first))
    assert case_blind.list_tables(ROOT) == [first]
    assert _values(case_blind, first) == [1]


def test_on_a_case_blind_disk_every_operation_works_with_one_spelling(case_blind):
    table = table_id("Flights")
    for life in range(2):
        case_blind.create_table(table, rows([life]))
        case_blind.drop_table(table)
        case_blind.undrop_table(table)
        assert _values(case_blind, "Flights") == [life]
        case_blind.drop_table(table)
        case_blind.purge_table(table)
        assert case_blind.list_tables(ROOT) == []
