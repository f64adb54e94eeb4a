"""Tables of a manifest: declared, created, registered, deregistered, renamed, listed.

Spec: directory-namespace, "V2: Manifest", "Manifest Table Directory".
"""

from __future__ import annotations

import re
from pathlib import Path

import lance
import lance_namespace as spec
import pyarrow as pa
import pytest

import mooring
from mooring.directory.entries import make_row
from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidNameError,
    MooringError,
    NamespaceNotFoundError,
    ReadOnlyError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TableSchemaValidationError,
    UnsupportedError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode
from mooring.namespace.states import Exists, NotFound
from mooring.store.observed import ObservedStore
from mooring.store.scripted import ScriptedStore
from mooring.tables.manifest import TABLE
from tests.conformance.meanwhile import MANIFEST_COMMIT, Meanwhile
from tests.lakes import rows, table_id

NS = ObjectId.of(["ns"])
T = table_id("ns", "t")
U = table_id("ns", "u")


@pytest.fixture
def lake(nested):
    """A catalog with a namespace."""
    nested.make("ns")
    return nested


def _location(lake, table: ObjectId = T) -> str:
    """Return where a table lies, relative to the root."""
    location = lake.open().describe_table(table).location
    return location.removeprefix(lake.store.location("") + "/")


def _files(lake) -> set[str]:
    """List every file that is not the manifest's."""
    found = {meta.path for meta in lake.store.list_prefix("")}
    return {path for path in found if not path.startswith(("__manifest/", "_mooring-catalog"))}


def _elsewhere(lake, path: str, values=(1, 2)) -> None:
    """Write a table at a path below the root without asking the catalog."""
    lance.write_dataset(rows(values), str(Path(lake.uri, path)))


# -- where tables lie -----------------------------------------------------------------------------


def test_a_table_lies_in_a_directory_of_hash_and_identifier(lake):
    """Spec: "hash-based names in the format `<hash>_<object_id>`"."""
    lake.create(T, [1])
    lake.backend.declare_table(U)
    for table in (T, U):
        assert re.fullmatch(rf"[0-9a-f]{{8}}_{re.escape(str(table))}", _location(lake, table))
    assert lake.values(T) == [1]


def test_a_root_table_of_v2_lies_in_a_directory_of_hash_and_identifier(v2):
    """Spec: "Directory Layout", `a1b2c3d4_table2/`."""
    v2.create("t", [1])
    v2.backend.declare_table(table_id("d"))
    for name in ("t", "d"):
        assert re.fullmatch(rf"[0-9a-f]{{8}}_{name}", _location(v2, table_id(name)))
    assert v2.values("t") == [1]


def test_a_name_that_comes_again_gets_another_directory(lake):
    """Spec: "High entropy prevents issues when a table is created, deleted, and recreated"."""
    seen = set()
    for life in range(5):
        lake.create(T, [life])
        seen.add(_location(lake))
        lake.drop(T)
    assert len(seen) == 5
    assert lake.directories() == seen


def test_a_location_relative_to_the_root_moves_with_the_catalog(lake, tmp_path):
    """Spec: "Relative path to the table directory within the root"."""
    lake.create(T, [1])
    moved = tmp_path / "moved"
    Path(lake.uri).rename(moved)
    catalog = mooring.connect(moved, **lake.kind.flags)
    assert catalog.table(T).to_arrow()["n"].to_pylist() == [1]
    assert catalog.table(T).location.startswith(str(moved))


# -- declare --------------------------------------------------------------------------------------


def test_a_declared_table_is_a_row_that_anybody_may_fill(lake):
    info = lake.backend.declare_table(T, None, {"owner": "ann"})
    assert (info.is_only_declared, info.properties) == (True, {"owner": "ann"})
    found = lake.open().describe_table(T, check_declared=True)
    assert (found.is_only_declared, found.location) == (True, info.location)
    assert _files(lake) == {f"{_location(lake)}/.lance-reserved"}
    lance.write_dataset(rows([5]), info.location)
    assert lake.open().describe_table(T, check_declared=True).is_only_declared is False
    assert lake.values(T) == [5]


def test_a_declared_table_is_filled_where_it_was_declared(lake):
    location = lake.backend.declare_table(T).location
    info = lake.open().create_table(T, rows([5]))
    assert (info.location, info.version) == (location, 1)
    assert lake.values(T) == [5]
    with pytest.raises(TableAlreadyExistsError):
        lake.create(T, [6])


def test_a_row_whose_marker_never_came_is_a_declared_table(lake):
    """Protocol: "a row without a directory is a declared table that anyone may complete"."""
    lake.backend.declare_table(T)
    lake.store.delete_prefix(_location(lake))
    found = lake.open().describe_table(T, check_declared=True)
    assert found.is_only_declared is True
    assert lake.open().list_tables(NS) == ["t"]
    lake.create(T, [1])
    assert lake.values(T) == [1]


@pytest.mark.parametrize(
    "location", ["", "..", "../x", "/tmp/x", "__manifest", "a/../b", "s3://b/x"]
)
def test_a_table_is_not_declared_outside_of_the_root(lake, location):
    with pytest.raises(InvalidInputError):
        lake.backend.declare_table(T, location)
    assert lake.tables() == []


def test_a_table_is_not_declared_where_another_lies(lake):
    """A writer who fills the declared table would write into the other's files."""
    lake.create(U, [1])
    theirs = _location(lake, U)
    for location in (theirs, f"{theirs}/data"):
        with pytest.raises(MooringError):
            lake.backend.declare_table(T, location)
    assert lake.tables() == ["ns$u"]
    assert lake.values(U) == [1]


def test_declared_tables_can_be_left_out_of_a_listing(lake):
    """Spec: lance-rest-openapi, ListTablesRequest, `include_declared`."""
    for name in "aceg":
        lake.create(table_id("ns", name))
    for name in "bdfh":
        lake.backend.declare_table(table_id("ns", name))
    backend = lake.open()
    assert backend.list_tables(NS) == list("abcdefgh")
    assert backend.list_tables(NS, include_declared=False) == list("aceg")
    assert backend.list_tables(NS, include_declared=False, after="a", limit=2) == ["c", "e"]


# -- create ---------------------------------------------------------------------------------------


def test_create_refuses_a_taken_name_and_leaves_no_trace(lake):
    """Spec: lance-rest-openapi, CreateTableRequest, mode Create."""
    lake.create(T, [1])
    before = _files(lake)
    with pytest.raises(TableAlreadyExistsError, match=r"ns\$t"):
        lake.create(T, [2])
    assert lake.values(T) == [1]
    assert _files(lake) == before


def test_exist_ok_keeps_the_existing_table(lake):
    """Spec: lance-rest-openapi, CreateTableRequest, mode ExistOk."""
    location = lake.create(T, [1]).location
    assert lake.create(T, [2], CreateMode.EXIST_OK).location == location
    assert lake.values(T) == [1]
    lake.create(U, [3], CreateMode.EXIST_OK)
    assert lake.values(U) == [3]


def test_exist_ok_fills_a_declared_table(lake):
    lake.backend.declare_table(T)
    assert lake.create(T, [2], CreateMode.EXIST_OK).version == 1
    assert lake.values(T) == [2]


def test_overwrite_is_the_next_version_in_the_same_place(lake):
    """Spec: lance-rest-openapi, CreateTableRequest, mode Overwrite."""
    location = lake.create(T, [1]).location
    info = lake.create(T, [2], CreateMode.OVERWRITE)
    assert (info.version, info.location) == (2, location)
    assert lake.values(T) == [2]
    assert lake.values(T, version=1) == [1]
    assert lake.create(U, [3], CreateMode.OVERWRITE).version == 1


def test_a_creation_in_an_absent_namespace_writes_nothing(lake):
    before = {meta.path for meta in lake.store.list_prefix("")}
    for mode in CreateMode:
        with pytest.raises(NamespaceNotFoundError):
            lake.create(table_id("absent", "t"), [1], mode)
    assert {meta.path for meta in lake.store.list_prefix("")} == before


def _breaking(after: int) -> pa.RecordBatchReader:
    def batches():
        yield pa.record_batch({"n": pa.array(range(after), pa.int64())})
        msg = "the source broke"
        raise ValueError(msg)

    return pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches())


@pytest.mark.parametrize("after", [1, 2**20 + 1], ids=["in a file", "after a whole file"])
def test_a_creation_that_fails_leaves_nothing(lake, after):
    with pytest.raises(MooringError, match="the source broke"):
        lake.backend.create_table(T, _breaking(after))
    lake.settle()
    assert _files(lake) == set()
    assert lake.directories() == set()
    assert lake.backend.table_status(T) == NotFound()
    lake.create(T, [2])
    assert lake.values(T) == [2]


def test_a_type_that_lance_cannot_store_leaves_nothing(lake):
    data = pa.table({"n": pa.array([None], pa.month_day_nano_interval())})
    with pytest.raises(TableSchemaValidationError):
        lake.backend.create_table(T, data.to_reader())
    assert lake.directories() == set()
    assert lake.tables() == []


def test_a_creator_who_loses_leaves_no_directory(lake):
    """Deliver 2: "a loser leaves no orphan directory"."""
    rival = Meanwhile(lambda: lake.open().create_table(T, rows([9])), *MANIFEST_COMMIT)
    backend = lake.open(store=ScriptedStore(lake.store, rival))
    with pytest.raises(TableAlreadyExistsError):
        backend.create_table(T, rows([1]))
    assert rival.done
    assert lake.values(T) == [9]
    assert lake.directories() == {_location(lake)}


@pytest.mark.parametrize(
    "act",
    [
        lambda backend: backend.create_table(T, rows([1])),
        lambda backend: backend.declare_table(T),
        lambda backend: backend.create_namespace(ObjectId.of(["ns", "inner"]), {}),
        lambda backend: backend.rename_table(table_id("other", "t"), T),
    ],
    ids=["create", "declare", "create namespace", "rename"],
)
def test_a_namespace_that_is_dropped_meanwhile_gets_no_child(lake, act):
    """Deliver 2: "a child can never be created under a namespace that is being dropped"."""
    lake.make("other")
    lake.create(table_id("other", "t"), [5])
    before = lake.directories()
    rival = Meanwhile(lambda: lake.open(author="rival").drop_namespace(NS), *MANIFEST_COMMIT)
    with pytest.raises(NamespaceNotFoundError):
        act(lake.open(store=ScriptedStore(lake.store, rival)))
    assert rival.done
    assert lake.directories() == before
    assert lake.open().list_namespaces(ROOT) == ["other"]
    lake.backend.undrop_namespace(NS)
    assert lake.open().list_tables(NS) == []
    assert lake.tables() == ["other$t"]


def test_a_namespace_that_is_filled_meanwhile_is_not_dropped(lake):
    rival = Meanwhile(lambda: lake.open().create_table(T, rows([1])), *MANIFEST_COMMIT)
    with pytest.raises(mooring.errors.NamespaceNotEmptyError):
        lake.open(store=ScriptedStore(lake.store, rival)).drop_namespace(NS)
    assert rival.done
    assert lake.values(T) == [1]


def test_an_overwrite_of_a_table_that_is_dropped_meanwhile_is_no_success(lake):
    lake.create(T, [1])
    rival = Meanwhile(
        lambda: lake.open(author="rival").drop_table(T),
        "put_new",
        f"{_location(lake)}/_versions",
        after=True,
    )
    backend = lake.open(store=ScriptedStore(lake.store, rival))
    with pytest.raises(ConcurrentModificationError, match="dropped"):
        backend.create_table(T, rows([2]), CreateMode.OVERWRITE)
    lake.backend.undrop_table(T)
    assert lake.values(T, version=1) == [1]


# -- register -------------------------------------------------------------------------------------


def test_a_table_in_storage_gets_a_name_where_it_lies(lake):
    """Spec: "Relative path to the table directory within the root"."""
    _elsewhere(lake, "old/deep/data.lance", [1, 2])
    info = lake.backend.register_table(T, "old/deep/data.lance", properties={"owner": "ann"})
    assert (info.id, info.properties) == (T, {"owner": "ann"})
    assert _location(lake) == "old/deep/data.lance"
    assert lake.values(T) == [1, 2]


@pytest.mark.parametrize("spelling", ["x/y", "x/y/", "absolute", "absolute/"])
def test_a_location_is_kept_relative_however_it_is_written(lake, spelling):
    _elsewhere(lake, "x/y")
    absolute = str(Path(lake.uri, "x/y"))
    lake.backend.register_table(T, spelling.replace("absolute", absolute))
    assert _location(lake) == "x/y"
    row = lance.dataset(lake.store.location("__manifest")).to_table(filter="object_id = 'ns$t'")
    assert row["location"].to_pylist() == ["x/y"]


@pytest.mark.parametrize(
    "location",
    [
        "",
        "/",
        ".",
        "..",
        "x/..",
        "x/../../y",
        "./x",
        "../lake/x",
        "x//y",
        "__manifest",
        "__manifest/",
        "__manifest/data",
        "/etc",
        "/tmp/t.lance",
        "s3://elsewhere/t.lance",
        "file:///tmp/t.lance",
        "x\\y",
        "x\0y",
    ],
    ids=ascii,
)
def test_a_location_outside_of_the_root_is_refused(lake, location):
    """Deliver 1: "locations outside the root only by an allow-list in the catalog's settings"."""
    _elsewhere(lake, "x/y")
    for mode in (CreateMode.CREATE, CreateMode.OVERWRITE):
        with pytest.raises(InvalidInputError) as caught:
            lake.backend.register_table(T, location, mode)
        assert caught.value.code == 13
    assert lake.tables() == []


def test_the_root_itself_is_no_location(lake):
    """Must not: a table at the root, whose purge would delete the whole catalog."""
    for location in (lake.uri, f"{lake.uri}/", lake.store.location("")):
        with pytest.raises(InvalidInputError):
            lake.backend.register_table(T, location)


def test_a_location_must_be_given_and_be_there(lake):
    with pytest.raises(InvalidInputError, match="where"):
        lake.backend.register_table(T, None)
    with pytest.raises(TableNotFoundError, match=r"absent"):
        lake.backend.register_table(T, "absent.lance")
    assert lake.tables() == []


def test_a_location_in_another_table_is_refused(lake):
    """Its purge would delete a part of the other, or the other's a part of it."""
    _elsewhere(lake, "x/y")
    lake.backend.register_table(U, "x/y")
    for location in ("x/y/data", "x"):
        with pytest.raises(InvalidInputError, match=r"x/y"):
            lake.backend.register_table(T, location)
    lake.drop(U)
    with pytest.raises(InvalidInputError):
        lake.backend.register_table(T, "x")
    assert lake.tables() == []


def test_locations_outside_of_the_root_are_allowed_by_a_setting(lake, tmp_path):
    """Deliver 1: "an allow-list in the catalog's settings"."""
    shelf, other = tmp_path / "shelf", tmp_path / "shelf-other"
    for place in (shelf, other):
        lance.write_dataset(rows([4]), str(place / "t.lance"))
    lake.backend.initialize(allowed_locations=(str(shelf),))
    # Counts at once for those who opened the catalog before.
    lake.backend.register_table(T, str(shelf / "t.lance"))
    assert lake.values(T) == [4]
    assert lake.open().describe_table(T).location == str(shelf / "t.lance")
    for place in (other / "t.lance", shelf / ".." / "shelf-other" / "t.lance", shelf):
        with pytest.raises(InvalidInputError, match="allow"):
            lake.backend.register_table(U, str(place))


def test_a_table_outside_of_the_root_is_never_deleted(lake, tmp_path):
    """Whoever put it there keeps it; the catalog forgets the name."""
    shelf = tmp_path / "shelf"
    lance.write_dataset(rows([4]), str(shelf / "t.lance"))
    before = sorted(shelf.rglob("*"))
    lake.backend.initialize(allowed_locations=(str(shelf),))
    lake.backend.register_table(T, str(shelf / "t.lance"))
    with pytest.raises(UnsupportedError, match="outside"):
        lake.create(T, [5], CreateMode.OVERWRITE)
    with pytest.raises(TableAlreadyExistsError):
        lake.create(T, [5])
    lake.drop(T)
    lake.backend.undrop_table(T)
    assert lake.values(T) == [4]
    lake.drop(T)
    lake.backend.purge_table(T)
    assert lake.backend.table_status(T) == NotFound()
    assert sorted(shelf.rglob("*")) == before


def test_registering_refuses_a_taken_name_or_makes_it_free(lake):
    """Spec: lance-rest-openapi, RegisterTableRequest, modes Create and Overwrite."""
    lake.create(T, [1])
    mine = _location(lake)
    _elsewhere(lake, "x/y", [2])
    with pytest.raises(TableAlreadyExistsError):
        lake.backend.register_table(T, "x/y")
    lake.backend.register_table(T, mine, CreateMode.OVERWRITE)
    assert lake.values(T) == [1]
    assert lake.trash() == []
    lake.backend.register_table(T, "x/y", CreateMode.OVERWRITE)
    assert lake.values(T) == [2]
    assert lake.trash() == ["ns$t"]
    lake.backend.undrop_table(T, U)
    assert lake.values(U) == [1]


def test_a_deregistered_table_is_registered_again_where_it_lies(lake):
    """Spec: "preserving the table data for potential re-registration"."""
    lake.create(T, [1])
    lake.create(T, [2], CreateMode.OVERWRITE)
    location = _location(lake)
    info = lake.backend.deregister_table(T)
    assert info.location == lake.store.location(location)
    assert lake.backend.table_status(T) == NotFound()
    assert lake.tables() == lake.trash() == []
    lake.backend.register_table(U, location)
    assert lake.values(U) == [2]
    assert lake.values(U, version=1) == [1]
    lake.create(T, [3])
    assert lake.values(T) == [3]


# -- several names for one location ---------------------------------------------------------------


def _share(lake) -> None:
    lake.create(T, [1, 2])
    lake.backend.register_table(U, _location(lake))
    assert lake.values(U) == [1, 2]


@pytest.mark.parametrize(("gone", "stays"), [(T, U), (U, T)], ids=["the first", "the second"])
def test_dropping_and_purging_one_name_does_not_harm_the_other(lake, gone, stays):
    """Deliver 1: "several names for one location without one drop harming another"."""
    _share(lake)
    lake.drop(gone)
    assert lake.values(stays) == [1, 2]
    lake.backend.purge_table(gone)
    assert lake.open().table_status(gone) == NotFound()
    assert lake.open().table_status(stays) == Exists()
    assert lake.values(stays) == [1, 2]
    lake.drop(stays)
    lake.backend.undrop_table(stays)
    assert lake.values(stays) == [1, 2]


def test_the_last_name_takes_the_files_along(lake):
    _share(lake)
    location = _location(lake)
    lake.drop(T, U)
    lake.backend.purge_table(T)
    assert lake.store.list_prefix(location)
    lake.backend.undrop_table(U)
    assert lake.values(U) == [1, 2]
    lake.drop(U)
    lake.backend.purge_table(U)
    assert lake.store.list_prefix(location) == []
    assert lake.trash() == []


def test_both_names_purged_at_once_take_the_files_along(lake):
    _share(lake)
    location = _location(lake)
    lake.drop(T, U)
    report = lake.backend.purge_tables([T, U])
    assert report.purged == [T, U]
    assert lake.store.list_prefix(location) == []


def test_a_name_in_the_trash_keeps_the_files_too(lake):
    _share(lake)
    lake.drop(T)
    lake.backend.deregister_table(U)
    lake.backend.undrop_table(T)
    assert lake.values(T) == [1, 2]


def test_a_location_that_is_purged_cannot_get_another_name(lake):
    lake.create(T, [1])
    location = _location(lake)
    lake.drop(T)

    late = Meanwhile(
        lambda: lake.open(author="late").register_table(U, location), "list_prefix", location
    )
    lake.open(store=ScriptedStore(lake.store, late)).purge_table(T)
    assert isinstance(late.outcome, MooringError)
    assert lake.tables() == []


# -- rename ---------------------------------------------------------------------------------------


def _manifest_rows(lake) -> dict[str, dict]:
    table = lance.dataset(lake.store.location("__manifest")).to_table()
    return {row["object_id"]: row for row in table.to_pylist()}


@pytest.mark.parametrize(
    ("old", "new"),
    [("ns$t", "ns$u"), ("ns$t", "other$t"), ("ns$t", "other$deep$u"), ("ns$t", "u")],
    ids=["within", "across", "deeper", "to the root"],
)
def test_a_rename_changes_one_row_and_no_file(lake, old, new):
    """Deliver 1: "renamed within and across namespaces (one row changes ...)"."""
    lake.make("other", "other$deep")
    old_id, new_id = ObjectId.parse(old), ObjectId.parse(new)
    lake.backend.create_table(old_id, rows([1]), properties={"owner": "ann"})
    lake.create(U if new != "ns$u" else table_id("ns", "v"), [2])
    files, before = _files(lake), _manifest_rows(lake)
    opened = lake.dataset(old_id)
    info = lake.backend.rename_table(old_id, new_id)
    assert (info.id, info.properties) == (new_id, {"owner": "ann"})
    after = _manifest_rows(lake)
    assert {**before.pop(old), "object_id": new} == after.pop(new)
    assert before == after
    assert _files(lake) == files
    assert lake.values(new_id) == [1]
    assert opened.to_table()["n"].to_pylist() == [1]
    assert lake.backend.table_status(old_id) == NotFound()


def test_a_root_table_by_hash_is_renamed_by_its_row_alone(v2):
    v2.make("ns")
    v2.create("t", [1])
    files = _files(v2)
    for old, new in ((table_id("t"), table_id("u")), (table_id("u"), U), (U, table_id("t"))):
        v2.backend.rename_table(old, new)
        assert _files(v2) == files
        assert v2.values(new) == [1]


def test_a_rename_needs_a_free_name_in_a_namespace_that_is_there(lake):
    lake.create(T, [1])
    lake.create(U, [2])
    lake.make("ns$inner")
    with pytest.raises(TableAlreadyExistsError):
        lake.backend.rename_table(T, U)
    with pytest.raises(mooring.errors.NamespaceAlreadyExistsError):
        lake.backend.rename_table(T, table_id("ns", "inner"))
    with pytest.raises(NamespaceNotFoundError):
        lake.backend.rename_table(T, table_id("absent", "t"))
    with pytest.raises(TableNotFoundError):
        lake.backend.rename_table(table_id("ns", "absent"), table_id("ns", "v"))
    with pytest.raises(InvalidInputError):
        lake.backend.rename_table(T, ROOT)
    assert (lake.values(T), lake.values(U)) == ([1], [2])


def test_a_rename_to_the_same_name_changes_nothing(lake):
    lake.create(T, [1])
    version = lance.dataset(lake.store.location("__manifest")).version
    lake.backend.rename_table(T, T)
    assert lance.dataset(lake.store.location("__manifest")).version == version
    assert lake.values(T) == [1]


def test_a_renamed_table_keeps_its_protection(lake):
    lake.create(T)
    lake.backend.protect_table(T)
    lake.backend.rename_table(T, U)
    with pytest.raises(mooring.errors.ProtectedError):
        lake.drop(U)


def test_a_rename_speaks_the_words_of_the_specification(lake):
    """Spec: lance-rest-openapi, RenameTableRequest."""
    lake.make("other")
    lake.create(T, [1])
    client = mooring.DirectoryNamespace(**lake.properties)
    client.rename_table(spec.RenameTableRequest(id=["ns", "t"], new_table_name="u"))
    assert lake.tables() == ["ns$u"]
    client.rename_table(
        spec.RenameTableRequest(id=["ns", "u"], new_table_name="v", new_namespace_id=["other"])
    )
    assert lake.tables() == ["other$v"]
    client.rename_table(
        spec.RenameTableRequest(id=["other", "v"], new_table_name="w", new_namespace_id=[])
    )
    assert lake.tables() == ["w"]
    assert lake.values("w") == [1]


# -- properties -----------------------------------------------------------------------------------


def test_a_table_has_properties_from_its_start_and_later(lake):
    """Deliver 1: "descriptions, owners and labels as properties"."""
    for table in (T, table_id("root")):
        info = lake.backend.create_table(table, rows([1]), properties={"owner": "ann", "a": "b"})
        assert info.properties == {"owner": "ann", "a": "b"}
        changed = lake.backend.update_table(table, {"a": None, "label": "it's 日本"})
        expected = {"owner": "ann", "label": "it's 日本"}
        assert changed == lake.open().describe_table(table).properties == expected
        assert lake.backend.update_table(table, {}) == expected
        assert lake.values(table) == [1]


def test_an_overwrite_keeps_the_properties(lake):
    for table in (T, table_id("root")):
        lake.backend.create_table(table, rows([1]), properties={"owner": "ann"})
        lake.create(table, [2], CreateMode.OVERWRITE)
        assert lake.open().describe_table(table).properties == {"owner": "ann"}


@pytest.mark.parametrize("name", [["ns", "t"], ["t"]], ids=["nested", "root"])
def test_properties_outlive_a_drop(lake, name):
    """Deliver 5: "properties kept"."""
    table = ObjectId.of(name)
    lake.backend.create_table(table, rows([1]), properties={"owner": "ann"})
    lake.drop(table)
    lake.backend.undrop_table(table)
    assert lake.open().describe_table(table).properties == {"owner": "ann"}


@pytest.mark.parametrize("name", [["ns", "t"], ["t"]], ids=["nested", "root"])
def test_a_new_table_has_no_properties_of_an_older_one(lake, name):
    table = ObjectId.of(name)
    lake.backend.create_table(table, rows([1]), properties={"owner": "ann"})
    lake.drop(table)
    lake.create(table, [2])
    assert lake.open().describe_table(table).properties == {}


def test_protection_is_a_property(lake):
    for table in (T, table_id("root")):
        lake.create(table)
        lake.backend.update_table(table, {"mooring.protected": "true", "owner": "ann"})
        expected = {"mooring.protected": "true", "owner": "ann"}
        assert lake.open().describe_table(table).properties == expected
        with pytest.raises(mooring.errors.ProtectedError):
            lake.drop(table)
        lake.backend.protect_table(table, protected=False)
        assert lake.open().describe_table(table).properties == {"owner": "ann"}
        lake.drop(table)


# -- listing --------------------------------------------------------------------------------------


def test_all_tables_of_all_namespaces_are_listed(lake):
    """Deliver 1: `list_all_tables`; contract: "`list_all_tables` gives full identifiers"."""
    lake.make("ns$inner", "empty", "other")
    expected = []
    for names in (["root"], ["ns", "b"], ["ns", "a"], ["ns", "inner", "t"], ["other", "t"]):
        lake.backend.declare_table(ObjectId.of(names))
        expected.append(ObjectId.of(names))
    lake.create(table_id("ns", "dropped"))
    lake.drop(table_id("ns", "dropped"))
    assert lake.open().list_all_tables() == sorted(expected)


def test_all_tables_come_in_pages(lake):
    """Spec: lance-rest-openapi, ListAllTables, PageToken."""
    names = [["root"], ["ns", "a"], ["ns", "b"], ["ns", "c"]]
    for name in names:
        lake.backend.declare_table(ObjectId.of(name))
    client = mooring.DirectoryNamespace(**lake.properties)
    everything = client.list_all_tables(spec.ListTablesRequest())
    assert sorted(everything.tables) == ["ns$a", "ns$b", "ns$c", "root"]
    seen, token = [], None
    while True:
        page = client.list_all_tables(spec.ListTablesRequest(limit=3, page_token=token))
        seen += page.tables
        token = page.page_token
        if token is None:
            break
    assert seen == everything.tables


def test_pages_of_a_namespace_stay_right_while_names_come_and_go(lake):
    """Spec: lance-rest-openapi, PageToken, PageLimit."""
    for name in "bdfh":
        lake.backend.declare_table(table_id("ns", name))
    client = mooring.DirectoryNamespace(**lake.properties)

    def page(token: str | None, **asked):
        return client.list_tables(
            spec.ListTablesRequest(id=["ns"], limit=2, page_token=token, **asked)
        )

    first = page(None)
    assert first.tables == ["b", "d"]
    lake.drop(table_id("ns", "d"))
    for name in "ae":
        lake.backend.declare_table(table_id("ns", name))
    second = page(first.page_token)
    assert second.tables == ["e", "f"]
    third = page(second.page_token)
    assert (third.tables, third.page_token) == (["h"], None)
    lake.create(table_id("ns", "z"))
    assert page(None, include_declared=False).tables == ["z"]


def test_ten_names_of_many_cost_no_look_at_the_others(lake):
    """Deliver 1: "paging that does not scan everything for ten rows"."""
    lake.backend.manifest.change(_declaring([f"ns$t{number:04}" for number in range(300)]))
    store = ObservedStore(lake.store)
    reader = lake.open(store=store)
    reader.list_tables(NS)
    store.counts.clear()
    assert reader.list_tables(NS, after="t0099", limit=10) == [f"t{n:04}" for n in range(100, 110)]
    assert store.counts == {"list_dir": 1}


def _declaring(keys: list[str]):
    def plan(draft) -> None:
        for key in keys:
            draft.put(make_row(key, TABLE, f"00000000_{key}", None))

    return plan


# -- reading only ---------------------------------------------------------------------------------

CHANGES = {
    "create namespace": lambda b: b.create_namespace(table_id("new"), {}),
    "update namespace": lambda b: b.update_namespace(NS, {"a": "b"}),
    "update root": lambda b: b.update_namespace(ROOT, {"a": "b"}),
    "drop namespace": lambda b: b.drop_namespace(NS, cascade=True),
    "undrop namespace": lambda b: b.undrop_namespace(table_id("gone")),
    "declare": lambda b: b.declare_table(table_id("ns", "new")),
    "create": lambda b: b.create_table(table_id("ns", "new"), rows([1])),
    "overwrite": lambda b: b.create_table(T, rows([1]), CreateMode.OVERWRITE),
    "register": lambda b: b.register_table(table_id("ns", "new"), "x/y"),
    "deregister": lambda b: b.deregister_table(T),
    "rename": lambda b: b.rename_table(T, table_id("ns", "new")),
    "rename root": lambda b: b.rename_table(table_id("t"), table_id("new")),
    "update": lambda b: b.update_table(T, {"a": "b"}),
    "protect": lambda b: b.protect_table(T),
    "drop": lambda b: b.drop_table(T),
    "undrop": lambda b: b.undrop_table(U),
    "purge": lambda b: b.purge_table(U),
    "purge list": lambda b: b.purge_tables([U]),
    "purge expired": lambda b: b.purge_tables(),
}


def test_a_catalog_opened_to_read_refuses_every_change(lake):
    lake.create(T)
    lake.create("t")
    lake.create(U)
    lake.drop(U)
    lake.make("gone")
    lake.backend.drop_namespace(table_id("gone"))
    _elsewhere(lake, "x/y")
    before = {meta.path for meta in lake.store.list_prefix("")}
    backend = lake.open(read_only=True)
    for change, act in CHANGES.items():
        with pytest.raises(ReadOnlyError) as caught:
            act(backend)
        assert caught.value.code == 15, change
    assert backend.list_tables(NS) == ["t"]
    assert backend.describe_table(T, check_declared=True).is_only_declared is False
    assert [str(found.id) for found in backend.list_purgable_tables()] == ["ns$u"]
    assert {meta.path for meta in lake.store.list_prefix("")} == before


# -- names that no row can have -------------------------------------------------------------------


def test_a_name_that_holds_the_delimiter_is_refused(lake):
    """Rule: "Identifier levels are never ambiguous"."""
    for names in (["a$b"], ["ns", "a$b"], ["n$s", "t"], ["$"]):
        object_id = ObjectId.of(names)
        for act in (
            lambda: lake.create(object_id),  # noqa: B023  # called at once
            lambda: lake.backend.declare_table(object_id),  # noqa: B023  # called at once
            lambda: lake.backend.create_namespace(object_id, {}),  # noqa: B023  # called at once
        ):
            with pytest.raises(InvalidNameError):
                act()
    assert lake.tables() == []
    assert lake.open().list_namespaces(ROOT) == ["ns"]


def test_the_trash_is_nobodys_namespace(lake):
    lake.create(T, [1])
    lake.drop(T)
    trash = "__mooring_trash"
    for act in (
        lambda: lake.backend.create_namespace(ObjectId.of([trash]), {}),
        lambda: lake.backend.list_namespaces(ObjectId.of([trash])),
        lambda: lake.backend.list_tables(ObjectId.of([trash])),
        lambda: lake.backend.drop_namespace(ObjectId.of([trash]), cascade=True),
        lambda: lake.create(ObjectId.of([trash, "t"])),
    ):
        with pytest.raises(MooringError):
            act()
    assert lake.open().list_namespaces(ROOT) == ["ns"]
    lake.backend.undrop_table(T)
    assert lake.values(T) == [1]
