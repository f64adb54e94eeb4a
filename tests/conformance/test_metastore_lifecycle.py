"""Tables of a metastore: made, named, dropped, brought back, purged, and what remains of it.

Spec: soft-delete, all of it; deltacat-storage-model, names and revisions.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import lance
import pyarrow as pa
import pytest

import mooring
from mooring.clock import DAY_MS
from mooring.errors import (
    InvalidInputError,
    InvalidNameError,
    InvalidTableStateError,
    MooringError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    NotFoundError,
    ProtectedError,
    ReadOnlyError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TableSchemaValidationError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode, Ttl
from mooring.namespace.states import Exists, NotFound, SoftDeleted
from mooring.store.observed import ObservedStore
from mooring.store.scripted import Crash, ScriptedStore
from mooring.tables.versions import manifest_name
from tests.conformance.meanwhile import Meanwhile
from tests.lakes import NOON_MS, rows, table_id

NS = table_id("ns")
T = table_id("ns", "t")
U = table_id("ns", "u")
WEEK_MS = 7 * DAY_MS
COMMIT = ("put_new", "txn/_commits")
READS = {"get", "read", "head", "existing", "list_dir", "list_prefix", "iter_dir"}


@pytest.fixture
def lake(metastore):
    """A metastore on disk with a namespace."""
    metastore.make("ns")
    return metastore


@pytest.fixture
def any_store(any_metastore):
    """A metastore on any store with a namespace."""
    any_metastore.make("ns")
    return any_metastore


def _location(lake, table: ObjectId = T) -> str:
    """Return where a table lies, relative to the root."""
    location = lake.open().describe_table(table).location
    path = location.removeprefix(lake.store.location("").rstrip("/") + "/")
    return unquote(path) if lake.kind.server else path


def _directories(lake) -> set[str]:
    """Name the directories of tables that the catalog made."""
    return {f"_tables/{name}" for name in lake.store.list_dir("_tables").directories}


def _files(lake) -> set[str]:
    return {meta.path for meta in lake.store.list_prefix("")}


def _commits(lake) -> int:
    return len(lake.store.list_dir("txn/_commits").files)


def _elsewhere(lake, path: str, values=(1, 2)) -> None:
    """Write a table below the root without asking the catalog."""
    lance.write_dataset(
        rows(values), lake.store.location(path), storage_options=lake.options or None
    )


# -- on every store -------------------------------------------------------------------------------


def test_a_whole_life(any_store):
    """Deliver 5: "soft drop, undrop also to a new name, purge"."""
    _live(any_store)


@pytest.mark.s3
def test_a_whole_life_in_a_bucket(moto_metastore):
    """The same where `make test` has a bucket; every store in `make interop`."""
    moto_metastore.make("ns")
    _live(moto_metastore)


def _live(lake) -> None:
    lake.make("other")
    odd = table_id("other", "it's #1? 日本 a.b%")
    lake.create(T, [1])
    lake.create(T, [2], CreateMode.OVERWRITE)
    location = _location(lake)
    lake.drop(T)
    assert (lake.tables(), lake.trash()) == ([], ["ns$t"])
    lake.backend.undrop_table(T, odd)
    assert (lake.tables(), lake.trash()) == ([str(odd)], [])
    assert _location(lake, odd) == location
    assert (lake.values(odd), lake.values(odd, 1)) == ([2], [1])
    lake.backend.rename_table(odd, T)
    assert lake.values(T) == [2]
    lake.backend.drop_namespace(NS, cascade=True)
    assert (lake.tables(), lake.trash()) == ([], ["ns$t"])
    assert lake.backend.undrop_namespace(NS) == 2
    assert lake.values(T) == [2]
    answered = lake.backend.deregister_table(T).location
    lake.backend.register_table(U, answered)
    assert lake.open().describe_table(U).location == answered
    assert lake.values(U) == [2]
    lake.drop(U)
    lake.backend.purge_table(U)
    assert lake.store.list_prefix(location) == []
    assert lake.open().table_status(U) == NotFound()
    assert _directories(lake) == set() or lake.kind.lists_emptied


def test_an_expired_namespace_goes_with_its_tables(any_store):
    lake = any_store
    lake.create(T, [1])
    lake.backend.declare_table(U)
    lake.backend.drop_namespace(NS, cascade=True, ttl=Ttl(1000))
    lake.clock.advance(1000)
    report = lake.backend.purge_tables()
    assert sorted(map(str, report.purged)) == ["ns$t", "ns$u"]
    assert lake.trash() == []
    assert lake.open().dropped_namespaces() == []
    with pytest.raises(NamespaceNotFoundError):
        lake.backend.undrop_namespace(NS)


# -- where tables lie -----------------------------------------------------------------------------


def test_a_name_that_comes_again_gets_another_directory(lake):
    seen = set()
    for life in range(4):
        lake.create(T, [life])
        seen.add(_location(lake))
        lake.drop(T)
    assert len(seen) == 4
    assert _directories(lake) == seen


def test_a_catalog_moves_with_all_its_tables(lake, tmp_path):
    """Locations are relative to the root."""
    lake.create(T, [1])
    moved = tmp_path / "moved"
    Path(lake.uri).rename(moved)
    table = mooring.connect(f"metastore+{moved}").table(T)
    assert table.to_arrow()["n"].to_pylist() == [1]
    assert table.insert(pa.table({"n": [2]})).version == 2
    assert table.location.startswith(str(moved))


# -- declare and create ---------------------------------------------------------------------------


def test_a_declared_table_is_filled_by_anybody(lake):
    info = lake.backend.declare_table(T, None, {"owner": "ann"})
    assert (info.is_only_declared, info.properties) == (True, {"owner": "ann"})
    found = lake.open().describe_table(T, check_declared=True)
    assert (found.is_only_declared, found.location) == (True, info.location)
    assert _directories(lake) == set()
    with pytest.raises(TableAlreadyExistsError):
        lake.backend.declare_table(T)
    assert lake.create(T, [5]).version == 1
    found = lake.open().describe_table(T, check_declared=True)
    assert (found.is_only_declared, found.properties) == (False, {"owner": "ann"})
    assert lake.values(T) == [5]
    with pytest.raises(TableAlreadyExistsError):
        lake.create(T, [6])


def test_the_location_of_a_table_is_chosen_by_the_catalog(lake):
    for location in ("x", "/tmp/x", "s3://b/x", ""):
        with pytest.raises(InvalidInputError, match="leave it out"):
            lake.backend.declare_table(T, location)
    assert lake.tables() == []


def test_declared_tables_can_be_left_out_of_a_listing(lake):
    for name in "ac":
        lake.create(table_id("ns", name))
    for name in "bd":
        lake.backend.declare_table(table_id("ns", name))
    backend = lake.open()
    assert backend.list_tables(NS) == list("abcd")
    assert backend.list_tables(NS, include_declared=False) == list("ac")
    assert backend.list_tables(NS, include_declared=False, after="a", limit=2) == ["c"]
    assert backend.list_tables(ROOT) == []


def test_create_refuses_a_taken_name_and_leaves_no_trace(lake):
    lake.create(T, [1])
    before = _files(lake)
    with pytest.raises(TableAlreadyExistsError, match=r"ns\$t"):
        lake.create(T, [2])
    assert lake.values(T) == [1]
    assert _files(lake) == before


def test_exist_ok_keeps_and_overwrite_goes_on(lake):
    location = lake.create(T, [1]).location
    assert lake.create(T, [2], CreateMode.EXIST_OK).location == location
    assert lake.values(T) == [1]
    info = lake.create(T, [3], CreateMode.OVERWRITE)
    assert (info.version, info.location) == (2, location)
    assert (lake.values(T), lake.values(T, 1)) == ([3], [1])
    for name, mode in (("a", CreateMode.EXIST_OK), ("b", CreateMode.OVERWRITE)):
        assert lake.create(table_id("ns", name), [4], mode).version == 1
        lake.backend.declare_table(table_id("ns", f"declared-{name}"))
        assert lake.create(table_id("ns", f"declared-{name}"), [5], mode).version == 1


def test_an_overwrite_may_bring_another_schema(lake):
    lake.create(T, [1])
    lake.backend.create_table(T, pa.table({"s": ["x"]}).to_reader(), CreateMode.OVERWRITE)
    assert lake.dataset(T).to_table().to_pydict() == {"s": ["x"]}


def test_a_creation_in_an_absent_namespace_writes_nothing(lake):
    before = _files(lake)
    for mode in CreateMode:
        with pytest.raises(NamespaceNotFoundError):
            lake.create(table_id("absent", "t"), [1], mode)
    with pytest.raises(NamespaceNotFoundError):
        lake.backend.declare_table(table_id("absent", "t"))
    assert _files(lake) == before


def _breaking(after: int) -> pa.RecordBatchReader:
    def batches():
        yield pa.record_batch({"n": pa.array(range(after), pa.int64())})
        msg = "the source broke"
        raise ValueError(msg)

    return pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches())


@pytest.mark.parametrize("after", [1, 2**20 + 1], ids=["in a file", "after a whole file"])
def test_a_creation_that_fails_leaves_nothing(lake, after):
    before = _files(lake)
    with pytest.raises(MooringError, match="the source broke"):
        lake.backend.create_table(T, _breaking(after))
    lake.settle()
    data = pa.table({"n": pa.array([None], pa.month_day_nano_interval())})
    with pytest.raises(TableSchemaValidationError):
        lake.backend.create_table(T, data.to_reader())
    assert _files(lake) == before
    assert _directories(lake) == set()
    lake.create(T, [2])
    assert lake.values(T) == [2]


def test_a_creator_who_loses_leaves_no_directory(lake):
    rival = Meanwhile(lambda: lake.open().create_table(T, rows([9])), *COMMIT)
    with pytest.raises(TableAlreadyExistsError):
        lake.open(store=ScriptedStore(lake.store, rival)).create_table(T, rows([1]))
    assert rival.done
    assert lake.values(T) == [9]
    assert _directories(lake) == {_location(lake)}


ACTS = {
    "create": lambda backend: backend.create_table(T, rows([1])),
    "declare": lambda backend: backend.declare_table(T),
    "rename": lambda backend: backend.rename_table(table_id("other", "t"), T),
    "undrop": lambda backend: backend.undrop_table(table_id("other", "d"), T),
    "register": lambda backend: backend.register_table(T, "x/y"),
}


@pytest.mark.parametrize("act", ACTS)
def test_a_namespace_that_is_dropped_meanwhile_gets_no_child(lake, act):
    lake.make("other")
    for name in "td":
        lake.create(table_id("other", name), [5])
    lake.drop(table_id("other", "d"))
    _elsewhere(lake, "x/y")
    before = _directories(lake)
    rival = Meanwhile(lambda: lake.open(author="rival").drop_namespace(NS), *COMMIT)
    with pytest.raises(NamespaceNotFoundError):
        ACTS[act](lake.open(store=ScriptedStore(lake.store, rival)))
    assert rival.done
    assert _directories(lake) == before
    lake.backend.undrop_namespace(NS)
    assert (lake.tables(), lake.trash()) == (["other$t"], ["other$d"])


def test_a_namespace_that_is_filled_meanwhile_is_not_dropped(lake):
    rival = Meanwhile(lambda: lake.open().create_table(T, rows([1])), *COMMIT)
    with pytest.raises(NamespaceNotEmptyError):
        lake.open(store=ScriptedStore(lake.store, rival)).drop_namespace(NS)
    assert rival.done
    assert lake.values(T) == [1]


def test_a_write_that_a_drop_comes_before_is_not_made(lake):
    """One chain decides about both; nothing of the write is left where readers look."""
    lake.create(T, [1])
    location = _location(lake)
    rival = Meanwhile(lambda: lake.open(author="rival").drop_table(T), *COMMIT)
    backend = lake.open(store=ScriptedStore(lake.store, rival))
    table = mooring.Table(backend, backend.describe_table(T))
    with pytest.raises(TableNotFoundError):
        table.insert(pa.table({"n": [2]}))
    assert rival.done
    names = lake.store.list_dir(f"{location}/_versions").files
    assert [name for name in names if ".manifest" in name] == [manifest_name(1)]
    assert lake.store.list_prefix(f"{location}/_manifests") == []
    lake.backend.undrop_table(T)
    assert lake.values(T) == [1]


# -- register and deregister ----------------------------------------------------------------------


def test_a_table_in_storage_gets_a_name_with_all_its_versions(lake):
    _elsewhere(lake, "old/deep/data.lance", [1, 2])
    lance.write_dataset(rows([3]), lake.store.location("old/deep/data.lance"), mode="append")
    info = lake.backend.register_table(T, "old/deep/data.lance", properties={"owner": "ann"})
    assert (info.id, info.properties) == (T, {"owner": "ann"})
    assert _location(lake) == "old/deep/data.lance"
    assert (lake.values(T), lake.values(T, 1)) == ([1, 2, 3], [1, 2])
    found = lake.open().list_table_versions(T)
    assert [one.version for one in found] == [2, 1]
    assert all(one.size_bytes > 0 for one in found)
    assert lake.connect().table(T).insert(pa.table({"n": [4]})).version == 3


@pytest.mark.parametrize("spelling", ["x/y", "x/y/", "absolute", "absolute/"])
def test_a_location_is_kept_relative_however_it_is_written(lake, spelling):
    _elsewhere(lake, "x/y")
    absolute = str(Path(lake.uri, "x/y"))
    lake.backend.register_table(T, spelling.replace("absolute", absolute))
    assert _location(lake) == "x/y"


@pytest.mark.parametrize(
    "location",
    ["", "/", ".", "..", "x/..", "./x", "x//y", "txn", "txn/_commits", "/etc", "s3://b/t", "x\\y"],
    ids=ascii,
)
def test_a_location_that_cannot_be_a_tables_is_refused(lake, location):
    _elsewhere(lake, "x/y")
    for mode in (CreateMode.CREATE, CreateMode.OVERWRITE):
        with pytest.raises(InvalidInputError) as caught:
            lake.backend.register_table(T, location, mode)
        assert caught.value.code == 13
    with pytest.raises(InvalidInputError):
        lake.backend.register_table(T, lake.uri)
    assert lake.tables() == []


def test_a_location_must_be_given_and_be_there(lake):
    with pytest.raises(InvalidInputError, match="where"):
        lake.backend.register_table(T, None)
    with pytest.raises(TableNotFoundError, match="absent"):
        lake.backend.register_table(T, "absent.lance")
    with pytest.raises(NamespaceNotFoundError):
        lake.backend.register_table(table_id("absent", "t"), "absent.lance")
    assert lake.tables() == []


def test_a_location_of_another_table_or_around_it_is_refused(lake):
    """Every table has versions of its own: two in one directory would give out the same numbers."""
    _elsewhere(lake, "x/y")
    lake.backend.register_table(U, "x/y")
    for location in ("x/y", "x/y/data", "x"):
        with pytest.raises(InvalidInputError, match=r"x/y"):
            lake.backend.register_table(T, location)
    lake.drop(U)
    for location in ("x/y", "x"):
        with pytest.raises(InvalidInputError, match="dropped"):
            lake.backend.register_table(T, location)
    assert lake.tables() == []
    lake.backend.undrop_table(U)
    lake.backend.deregister_table(U)
    lake.backend.register_table(T, "x/y")
    assert lake.values(T) == [1, 2]


def test_locations_outside_of_the_root_are_allowed_by_a_setting(lake, tmp_path):
    shelf, other = tmp_path / "shelf", tmp_path / "shelf-other"
    for place in (shelf, other):
        lance.write_dataset(rows([4]), str(place / "t.lance"))
    lake.backend.initialize(allowed_locations=(str(shelf),))
    lake.backend.register_table(T, str(shelf / "t.lance"))
    assert lake.values(T) == [4]
    assert lake.open().describe_table(T).location == str(shelf / "t.lance")
    for place in (other / "t.lance", shelf / ".." / "shelf-other" / "t.lance", shelf):
        with pytest.raises(InvalidInputError, match="allow"):
            lake.backend.register_table(U, str(place))


def test_a_table_outside_of_the_root_is_written_and_never_deleted(lake, tmp_path):
    """Whoever put it there keeps it; the catalog forgets the name."""
    shelf = tmp_path / "shelf"
    lance.write_dataset(rows([4]), str(shelf / "t.lance"))
    lake.backend.initialize(allowed_locations=(str(shelf),))
    lake.backend.register_table(T, str(shelf / "t.lance"))
    lake.create(T, [5], CreateMode.OVERWRITE)
    assert lake.connect().table(T).insert(pa.table({"n": [6]})).version == 3
    lake.drop(T)
    lake.backend.undrop_table(T)
    assert lake.values(T) == [5, 6]
    before = sorted(shelf.rglob("*"))
    lake.drop(T)
    lake.backend.purge_table(T)
    assert lake.backend.table_status(T) == NotFound()
    assert sorted(shelf.rglob("*")) == before
    assert lance.dataset(str(shelf / "t.lance")).to_table()["n"].to_pylist() == [5, 6]


def test_registering_refuses_a_taken_name_or_makes_it_free(lake):
    lake.create(T, [1])
    mine = _location(lake)
    _elsewhere(lake, "x/y", [2])
    with pytest.raises(TableAlreadyExistsError):
        lake.backend.register_table(T, "x/y")
    lake.backend.register_table(T, mine, CreateMode.OVERWRITE)
    assert (lake.values(T), lake.trash()) == ([1], [])
    lake.backend.protect_table(T)
    with pytest.raises(ProtectedError):
        lake.backend.register_table(T, "x/y", CreateMode.OVERWRITE)
    lake.backend.protect_table(T, protected=False)
    lake.backend.register_table(T, "x/y", CreateMode.OVERWRITE)
    assert (lake.values(T), lake.trash()) == ([2], ["ns$t"])
    lake.backend.undrop_table(T, U)
    assert lake.values(U) == [1]


def test_a_deregistered_table_is_registered_again_where_it_lies(lake):
    lake.create(T, [1])
    lake.create(T, [2], CreateMode.OVERWRITE)
    location = _location(lake)
    info = lake.backend.deregister_table(T)
    assert info.location == lake.store.location(location)
    assert lake.backend.table_status(T) == NotFound()
    assert lake.tables() == lake.trash() == []
    lake.backend.register_table(U, location)
    assert (lake.values(U), lake.values(U, 1)) == ([2], [1])
    lake.create(T, [3])
    assert lake.values(T) == [3]


def test_tags_and_branches_outlive_a_new_name(lake):
    lake.create(T, [1])
    table = lake.connect().table(T)
    table.tags.create("v1")
    table.branches.create("dev")
    table.insert(pa.table({"n": [2]}), branch="dev")
    location = lake.backend.deregister_table(T).location
    lake.backend.register_table(U, location)
    again = lake.connect().table(U)
    assert again.tags.get("v1").version == 1
    assert again.branches.names() == ["dev"]
    assert sorted(again.to_lance(branch="dev").to_table()["n"].to_pylist()) == [1, 2]
    assert again.insert(pa.table({"n": [3]}), branch="dev").version == 3


# -- rename ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("new", ["ns$u", "other$t", "other$u"], ids=["within", "across", "both"])
def test_a_rename_is_one_commit_and_moves_no_file(lake, new):
    lake.make("other")
    new_id = ObjectId.parse(new)
    lake.backend.create_table(T, rows([1]), properties={"owner": "ann"})
    lake.create(T, [2], CreateMode.OVERWRITE)
    table = lake.connect().table(T)
    table.branches.create("dev")
    table.insert(pa.table({"n": [3]}), branch="dev")
    location, before = _location(lake), _commits(lake)
    files = {meta.path for meta in lake.store.list_prefix(location)}
    opened = lake.dataset(T)
    info = lake.backend.rename_table(T, new_id)
    assert (info.id, info.properties) == (new_id, {"owner": "ann"})
    assert _commits(lake) == before + 1
    assert _location(lake, new_id) == location
    assert {meta.path for meta in lake.store.list_prefix(location)} == files
    assert (lake.values(new_id), lake.values(new_id, 1)) == ([2], [1])
    assert opened.to_table()["n"].to_pylist() == [2]
    assert lake.backend.table_status(T) == NotFound()
    renamed = lake.connect().table(new_id)
    assert renamed.insert(pa.table({"n": [4]})).version == 3
    assert renamed.insert(pa.table({"n": [5]}), branch="dev").version == 4
    with pytest.raises(TableNotFoundError):
        table.insert(pa.table({"n": [9]}))


def test_a_rename_needs_a_free_name_in_a_namespace_that_is_there(lake):
    lake.create(T, [1])
    lake.create(U, [2])
    with pytest.raises(TableAlreadyExistsError):
        lake.backend.rename_table(T, U)
    with pytest.raises(NamespaceNotFoundError):
        lake.backend.rename_table(T, table_id("absent", "t"))
    with pytest.raises(TableNotFoundError):
        lake.backend.rename_table(table_id("ns", "absent"), table_id("ns", "v"))
    with pytest.raises(TableNotFoundError):
        lake.backend.rename_table(table_id("absent", "t"), table_id("ns", "v"))
    for wrong in (ROOT, table_id("t"), table_id("ns", "a", "b")):
        with pytest.raises(InvalidInputError):
            lake.backend.rename_table(T, wrong)
    before = _commits(lake)
    lake.backend.rename_table(T, T)
    assert _commits(lake) == before
    assert (lake.values(T), lake.values(U)) == ([1], [2])


# -- drop and undrop ------------------------------------------------------------------------------


def test_one_commit_drops_and_one_undrops(lake):
    lake.create(T, [1])
    location, before = _location(lake), _commits(lake)
    files = {meta.path for meta in lake.store.list_prefix(location)}
    lake.drop(T)
    assert _commits(lake) == before + 1
    assert {meta.path for meta in lake.store.list_prefix(location)} == files
    lake.backend.undrop_table(T)
    assert _commits(lake) == before + 2
    assert (_location(lake), lake.values(T)) == (location, [1])


def test_a_dropped_table_is_found_by_no_read(lake):
    lake.create(T)
    lake.drop(T)
    backend = lake.open()
    assert backend.list_tables(NS) == backend.list_all_tables() == backend.describe_tables() == []
    with pytest.raises(TableNotFoundError, match=r"dropped .* undrop"):
        backend.describe_table(T)
    with pytest.raises(TableNotFoundError):
        backend.list_table_versions(T)
    assert backend.table_status(T) == SoftDeleted(NOON_MS, NOON_MS + WEEK_MS)
    (found,) = backend.list_purgable_tables()
    assert (found.id, found.deleted_at_ms, found.expires_at_ms) == (T, NOON_MS, NOON_MS + WEEK_MS)
    assert backend.list_purgable_tables(NOON_MS) == []
    assert [one.id for one in backend.list_purgable_tables(NOON_MS + 1)] == [T]


def test_the_hint_of_a_dropped_table_tells_how_to_get_it_back(lake):
    lake.create(T)
    lake.drop(T)
    lake.clock.advance(2 * 3_600_000)
    with pytest.raises(TableNotFoundError, match=r"2 h ago; .*undrop"):
        lake.open().describe_table(T)
    lake.backend.undrop_table(T)
    with pytest.raises(TableNotFoundError, match="live"):
        lake.backend.undrop_table(T)
    lake.backend.drop_namespace(NS, cascade=True)
    with pytest.raises(TableNotFoundError, match=r"with namespace 'ns'; .*namespace undrop ns"):
        lake.open().describe_table(T)


def test_an_undrop_needs_a_free_name_and_its_namespace(lake):
    lake.make("gone")
    table = table_id("gone", "t")
    lake.create(table, [1])
    lake.drop(table)
    lake.create(T, [2])
    with pytest.raises(TableAlreadyExistsError):
        lake.backend.undrop_table(table, T)
    with pytest.raises(TableNotFoundError):
        lake.backend.undrop_table(table_id("gone", "never"))
    lake.backend.drop_namespace(table_id("gone"))
    with pytest.raises(NamespaceNotFoundError, match="gone"):
        lake.backend.undrop_table(table)
    lake.backend.undrop_table(table, U)
    assert (lake.values(T), lake.values(U)) == ([2], [1])


def test_every_drop_of_a_name_comes_back_newest_first(lake):
    for life in (1, 2, 3):
        lake.create(T, [life])
        lake.clock.advance(1000)
        lake.drop(T)
    assert lake.trash() == ["ns$t"] * 3
    assert lake.open().table_status(T) == SoftDeleted(NOON_MS + 3000, NOON_MS + 3000 + WEEK_MS)
    for life, name in ((3, "a"), (2, "b"), (1, "c")):
        lake.backend.undrop_table(T, table_id("ns", name))
        assert lake.values(table_id("ns", name)) == [life]
    assert lake.open().table_status(T) == NotFound()


def test_the_last_drop_comes_back_whatever_the_clock_says(lake):
    for number, skew_ms in enumerate((0, -5000, 0)):
        table = table_id("ns", f"t{number}")
        lake.create(table, [1])
        lake.drop(table)
        lake.clock.advance(skew_ms)
        lake.create(table, [2])
        lake.drop(table)
        lake.backend.undrop_table(table)
        assert lake.values(table) == [2]


def test_a_dropped_name_is_free(lake):
    lake.create(T, [1])
    lake.drop(T)
    lake.backend.declare_table(T)
    lake.drop(T)
    lake.create(T, [2])
    assert lake.trash() == ["ns$t", "ns$t"]
    with pytest.raises(TableAlreadyExistsError):
        lake.backend.undrop_table(T)
    assert lake.values(T) == [2]


# -- purge ----------------------------------------------------------------------------------------


def test_a_purge_deletes_every_byte_and_the_object(lake):
    lake.create(T, [1])
    lake.create(T, [2], CreateMode.OVERWRITE)
    lake.drop(T)
    heard = []
    lake.backend.purge_table(T, lambda *told: heard.append(told))
    assert _directories(lake) == set()
    assert lake.open().table_status(T) == NotFound()
    (table, files, size_bytes) = heard[-1]
    assert table == T
    assert files >= 4
    assert size_bytes > 0


def test_a_purge_of_a_name_takes_all_its_drops_and_no_live_table(lake):
    for life in (1, 2):
        lake.create(T, [life])
        lake.drop(T)
    lake.create(T, [3])
    lake.backend.purge_table(T)
    assert lake.trash() == []
    assert _directories(lake) == {_location(lake)}
    assert lake.values(T) == [3]
    with pytest.raises(TableNotFoundError, match="live"):
        lake.backend.purge_table(T)
    with pytest.raises(TableNotFoundError, match="nothing dropped"):
        lake.backend.purge_table(U)


def test_many_are_purged_and_who_cannot_be_is_told(lake):
    lake.create(T, [1])
    lake.create(U, [1])
    lake.drop(T)
    report = lake.backend.purge_tables([T, U])
    assert report.purged == [T]
    assert {table: type(exc) for table, exc in report.failed.items()} == {U: TableNotFoundError}
    assert lake.values(U) == [1]


def test_only_what_is_over_goes_with_the_expired(lake):
    for name, ttl in (("brief", Ttl(10)), ("week", None), ("ever", Ttl(None)), ("live", ...)):
        lake.create(table_id("ns", name), [1])
        if ttl is not ...:
            lake.backend.drop_table(table_id("ns", name), ttl)
    lake.clock.advance(9)
    assert lake.backend.purge_tables().purged == []
    lake.clock.advance(1)
    assert lake.backend.purge_tables().purged == [table_id("ns", "brief")]
    lake.clock.advance(1000 * WEEK_MS)
    assert lake.backend.purge_tables().purged == [table_id("ns", "week")]
    assert lake.trash() == ["ns$ever"]
    assert lake.values(table_id("ns", "live")) == [1]


def test_an_undrop_that_comes_first_keeps_the_files(lake):
    lake.create(T, [1])
    lake.drop(T)
    rival = Meanwhile(lambda: lake.open().undrop_table(T), *COMMIT)
    with pytest.raises(MooringError):
        lake.open(store=ScriptedStore(lake.store, rival)).purge_table(T)
    assert rival.done
    assert not isinstance(rival.outcome, MooringError)
    assert lake.open().table_status(T) == Exists()
    assert lake.values(T) == [1]


def test_an_undrop_that_comes_second_is_refused(lake):
    lake.create(T, [1])
    lake.drop(T)
    rival = Meanwhile(lambda: lake.open().undrop_table(T), "list_prefix", "_tables/")
    lake.open(store=ScriptedStore(lake.store, rival)).purge_table(T)
    assert rival.done
    assert isinstance(rival.outcome, TableNotFoundError)
    assert lake.open().table_status(T) == NotFound()
    assert _directories(lake) == set()


def test_a_location_that_is_purged_gets_no_other_name(lake):
    _elsewhere(lake, "x/y")
    lake.backend.register_table(T, "x/y")
    lake.drop(T)
    late = Meanwhile(
        lambda: lake.open(author="late").register_table(U, "x/y"), "list_prefix", "x/y"
    )
    lake.open(store=ScriptedStore(lake.store, late)).purge_table(T)
    assert isinstance(late.outcome, MooringError)
    assert lake.tables() == []
    _elsewhere(lake, "x/y")
    with pytest.raises(InvalidInputError, match="purged"):
        lake.backend.register_table(U, "x/y")


class _DieAt:
    """Die at a verb on a path; the dead make no further calls."""

    def __init__(self, verb: str, part: str) -> None:
        self._verb, self._part = verb, part
        self.dead = False

    def before(self, call):
        self.dead = self.dead or (call.verb == self._verb and self._part in call.path)
        if self.dead:
            raise Crash

    def after(self, call, result):
        pass


def _die_purging(lake, table: ObjectId) -> None:
    script = _DieAt("list_prefix", "_tables/")
    with pytest.raises(Crash):
        lake.open(store=ScriptedStore(lake.store, script)).purge_table(table)
    assert script.dead


def test_a_purge_that_died_is_finished_by_anybody_and_is_in_nobodys_way(lake):
    lake.create(T, [1])
    lake.backend.drop_table(T, Ttl(None))
    _die_purging(lake, T)
    backend = lake.open(author="next")
    assert backend.table_status(T) == NotFound()
    assert backend.list_purgable_tables() == []
    with pytest.raises(TableNotFoundError):
        backend.undrop_table(T)
    lake.create(T, [2])
    assert backend.purge_tables().purged == [T]
    assert lake.values(T) == [2]
    assert _directories(lake) == {_location(lake)}


def test_a_namespace_with_a_table_that_is_purged_does_not_come_back(lake):
    lake.create(T, [1])
    lake.create(U, [2])
    lake.backend.drop_namespace(NS, cascade=True)
    _die_purging(lake, T)
    with pytest.raises(InvalidTableStateError, match=r"ns\$t"):
        lake.backend.undrop_namespace(NS)
    lake.open().purge_tables([T])
    assert lake.backend.undrop_namespace(NS) == 2
    assert lake.values(U) == [2]


# -- who and when ---------------------------------------------------------------------------------


def test_history_names_who_did_what_and_when(lake):
    lake.create(T, [1], backend=lake.open(author="ann"))
    lake.clock.advance(10)
    lake.create(T, [2], CreateMode.OVERWRITE, backend=lake.open(author="bob"))
    lake.clock.advance(10)
    lake.open(author="cid").drop_table(T)
    lake.clock.advance(10)
    lake.open(author="dan").undrop_table(T)
    lake.clock.advance(10)
    lake.open(author="eve").rename_table(T, U)
    told = [(one.action, one.by, one.at_ms - NOON_MS) for one in lake.open().table_history(U)]
    assert told == [
        ("create", "ann", 0),
        ("write", "ann", 0),
        ("write", "bob", 10),
        ("drop", "cid", 20),
        ("undrop", "dan", 30),
        ("rename", "eve", 40),
    ]
    assert lake.open().table_history(T) == []


# -- properties, protection, retention ------------------------------------------------------------


def test_a_table_has_properties_from_its_start_to_its_end(lake):
    info = lake.backend.create_table(T, rows([1]), properties={"owner": "ann", "a": "b"})
    assert info.properties == {"owner": "ann", "a": "b"}
    changed = lake.backend.update_table(T, {"a": None, "label": "it's 日本"})
    expected = {"owner": "ann", "label": "it's 日本"}
    assert changed == lake.open().describe_table(T).properties == expected
    lake.create(T, [2], CreateMode.OVERWRITE)
    lake.drop(T)
    lake.create(T, [3])
    assert lake.open().describe_table(T).properties == {}
    lake.backend.undrop_table(T, U)
    assert lake.open().describe_table(U).properties == expected


def test_what_is_protected_cannot_be_dropped(lake):
    lake.create(T)
    lake.backend.protect_table(T)
    lake.backend.rename_table(T, U)
    for act in (lake.backend.drop_table, lake.backend.deregister_table):
        with pytest.raises(ProtectedError, match=r"ns\$u") as caught:
            act(U)
        assert caught.value.code == 19
    with pytest.raises(ProtectedError, match=r"ns\$u"):
        lake.backend.drop_namespace(NS, cascade=True)
    lake.backend.protect_table(U, protected=False)
    lake.backend.update_namespace(NS, {"mooring.protected": "true"})
    for act in (
        lambda: lake.backend.drop_table(U),
        lambda: lake.backend.deregister_table(U),
        lambda: lake.backend.drop_namespace(NS, cascade=True),
    ):
        with pytest.raises(ProtectedError, match=r"namespace 'ns' is protected"):
            act()
    lake.create(T)
    lake.backend.update_namespace(NS, {"mooring.protected": None})
    lake.backend.drop_namespace(NS, cascade=True)
    assert lake.tables() == []


def test_the_nearest_retention_counts_and_one_that_is_said_wins(lake):
    lake.make("plain")
    lake.backend.update_namespace(NS, {"mooring.retention": "30d"})
    expected = {"ns": 30 * DAY_MS, "plain": 7 * DAY_MS}
    for name, ttl_ms in expected.items():
        for table in "abc":
            lake.create(table_id(name, table))
        lake.drop(table_id(name, "a"))
        assert lake.open().table_status(table_id(name, "a")) == SoftDeleted(
            NOON_MS, NOON_MS + ttl_ms
        )
        lake.backend.drop_table(table_id(name, "b"), Ttl(1))
        assert lake.open().table_status(table_id(name, "b")) == SoftDeleted(NOON_MS, NOON_MS + 1)
        lake.backend.update_table(table_id(name, "c"), {"mooring.retention": "never"})
        lake.drop(table_id(name, "c"))
        assert lake.open().table_status(table_id(name, "c")) == SoftDeleted(NOON_MS, None)
    lake.backend.initialize(default_ttl=Ttl(5))
    lake.create(table_id("plain", "d"))
    lake.backend.drop_namespace(table_id("plain"), cascade=True)
    assert lake.open().table_status(table_id("plain", "d")) == SoftDeleted(NOON_MS, NOON_MS + 5)


# -- reading only, missing roots, other kinds -----------------------------------------------------

CHANGES = {
    "create namespace": lambda b: b.create_namespace(table_id("new"), {}),
    "update namespace": lambda b: b.update_namespace(NS, {"a": "b"}),
    "drop namespace": lambda b: b.drop_namespace(NS, cascade=True),
    "undrop namespace": lambda b: b.undrop_namespace(table_id("gone")),
    "declare": lambda b: b.declare_table(table_id("ns", "new")),
    "create": lambda b: b.create_table(table_id("ns", "new"), rows([1])),
    "overwrite": lambda b: b.create_table(T, rows([1]), CreateMode.OVERWRITE),
    "register": lambda b: b.register_table(table_id("ns", "new"), "x/y"),
    "deregister": lambda b: b.deregister_table(T),
    "rename": lambda b: b.rename_table(T, table_id("ns", "new")),
    "update": lambda b: b.update_table(T, {"a": "b"}),
    "protect": lambda b: b.protect_table(T),
    "drop": lambda b: b.drop_table(T),
    "undrop": lambda b: b.undrop_table(U),
    "purge": lambda b: b.purge_table(U),
    "purge list": lambda b: b.purge_tables([U]),
    "purge expired": lambda b: b.purge_tables(),
    "initialize": lambda b: b.initialize(),
}


def test_a_catalog_opened_to_read_refuses_every_change(lake):
    lake.create(T)
    lake.create(U)
    lake.drop(U)
    lake.make("gone")
    lake.backend.drop_namespace(table_id("gone"))
    _elsewhere(lake, "x/y")
    before = _files(lake)
    backend = lake.open(read_only=True)
    for change, act in CHANGES.items():
        with pytest.raises(ReadOnlyError) as caught:
            act(backend)
        assert caught.value.code == 15, change
    assert backend.list_tables(NS) == ["t"]
    assert backend.describe_table(T, check_declared=True).is_only_declared is False
    assert [str(found.id) for found in backend.list_purgable_tables()] == ["ns$u"]
    assert _files(lake) == before


def test_reading_writes_nothing(metastore):
    store = ObservedStore(metastore.store)
    backend = metastore.open(store=store)
    assert backend.list_namespaces(ROOT) == backend.list_all_tables() == []
    assert backend.list_purgable_tables() == []
    assert backend.table_status(T) == NotFound()
    for act in (backend.describe_namespace, backend.list_namespaces, backend.list_tables):
        with pytest.raises(NamespaceNotFoundError):
            act(NS)
    with pytest.raises(TableNotFoundError):
        backend.describe_table(T)
    assert set(store.counts) <= READS
    assert not Path(metastore.uri).exists()


def test_a_change_that_is_refused_makes_no_catalog(metastore):
    """A mistyped path stays a mistyped path."""
    for act in (
        lambda: metastore.backend.drop_namespace(NS),
        lambda: metastore.backend.undrop_namespace(NS),
        lambda: metastore.backend.update_namespace(NS, {"a": "b"}),
        lambda: metastore.backend.drop_table(T),
        lambda: metastore.backend.undrop_table(T),
        lambda: metastore.backend.purge_table(T),
        lambda: metastore.backend.deregister_table(T),
        lambda: metastore.backend.register_table(T, "t.lance"),
        lambda: metastore.backend.protect_table(T),
        lambda: metastore.backend.rename_table(T, U),
    ):
        with pytest.raises(NotFoundError):
            act()
    with pytest.raises(InvalidNameError):
        metastore.backend.create_namespace(ObjectId(("a/b",)), {})
    assert not Path(metastore.uri).exists()


def test_a_catalog_of_another_kind_is_told_apart(lake, tmp_path):
    with pytest.raises(InvalidInputError, match=r"is a metastore: open it as 'metastore\+"):
        mooring.connect(lake.uri)
    directory = tmp_path / "directory"
    mooring.connect(directory).create_table("t", pa.table({"n": [1]}))
    with pytest.raises(InvalidInputError, match=r"is a directory"):
        mooring.connect(f"metastore+{directory}")


def test_the_settings_of_a_metastore_are_its_own(lake):
    assert lake.backend.managed_versioning is True
    for wrong in ({"managed_versioning": False}, {"shared": True}):
        with pytest.raises(InvalidInputError, match="metastore"):
            lake.backend.initialize(**wrong)
    assert lake.backend.initialize(default_ttl=Ttl(7)).default_ttl_ms == 7
