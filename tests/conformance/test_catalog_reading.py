"""Making tables and finding them: list, exists, describe, declare, create.

Spec: directory-namespace, "V1: Directory Listing"; lance-rest-openapi, the operations.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    MooringError,
    NamespaceNotFoundError,
    NotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TableSchemaValidationError,
    UnsupportedError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode
from mooring.namespace.states import Exists, NotFound
from mooring.store.observed import ObservedStore
from tests.conformance.kinds import every_kind, without_a_manifest
from tests.lakes import rows, table_id

READS = {"get", "read", "head", "existing", "list_dir", "list_prefix"}
T = table_id("t")


@every_kind
def test_a_missing_root_is_an_empty_catalog(lake):
    assert lake.backend.list_tables(ROOT) == []
    assert lake.backend.list_purgable_tables() == []
    assert lake.backend.table_status(T) == NotFound()
    assert lake.backend.table_history(T) == []


@every_kind
def test_reading_writes_nothing(lake):
    """Connecting, listing and describing have no side effects."""
    store = ObservedStore(lake.store)
    backend = lake.open(store=store)
    backend.list_tables(ROOT)
    backend.list_purgable_tables()
    backend.table_status(T)
    with pytest.raises(TableNotFoundError):
        backend.describe_table(T)
    assert set(store.counts) <= READS
    listing = lake.store.list_dir("")
    assert (listing.directories, listing.files) == ([], [])


@every_kind
def test_a_created_table_is_found_listed_and_read(lake):
    """Spec: "Table Existence"."""
    info = lake.create("t", [1, 2, 3])
    assert info.id == T
    assert info.version == 1
    assert lake.names() == ["t"]
    assert lake.open().table_status(T) == Exists()
    assert lake.values("t") == [1, 2, 3]


def test_a_table_lies_in_the_directory_of_its_name(lake):
    """Spec: "Directory Layout"."""
    info = lake.create("t")
    assert info.location == lake.store.location("t.lance")
    assert lake.directories() == {"t.lance"}
    assert {"_versions", "data"} <= set(lake.store.list_dir("t.lance").directories)


def test_names_are_listed_in_order(lake):
    for name in ("b", "a", "Z", "ä", "10", "9"):
        lake.store.put(f"{name}.lance/_versions/1.manifest", b"")
    assert lake.names() == sorted(["b", "a", "Z", "ä", "10", "9"])


@every_kind
def test_describe_gives_what_lance_needs_to_open_the_table(lake):
    lake.create("t", [7])
    info = lake.open().describe_table(T)
    opened = lance.dataset(info.location, storage_options=dict(info.storage_options) or None)
    assert opened.to_table()["n"].to_pylist() == [7]


@pytest.mark.parametrize(
    "act",
    [
        lambda backend: backend.describe_table(T),
        lambda backend: backend.drop_table(T),
        lambda backend: backend.undrop_table(T),
        lambda backend: backend.purge_table(T),
        lambda backend: backend.deregister_table(T),
        lambda backend: backend.register_table(T, "t.lance"),
        lambda backend: backend.protect_table(T),
    ],
    ids=["describe", "drop", "undrop", "purge", "deregister", "register", "protect"],
)
def test_an_absent_table_is_not_found(lake, act):
    lake.create("other")
    with pytest.raises(TableNotFoundError, match="'t'"):
        act(lake.backend)
    assert lake.names() == ["other"]


# -- declared tables ------------------------------------------------------------------------------


def test_a_declared_table_has_a_marker_and_no_data(lake):
    """Spec: "Marker Files", `.lance-reserved`."""
    info = lake.backend.declare_table(T)
    assert info.location == lake.store.location("t.lance")
    assert lake.files("t") == {".lance-reserved"}


@every_kind
def test_a_declared_table_exists_and_says_so_when_asked(lake):
    """Spec: lance-rest-openapi, DescribeTableRequest, `check_declared`."""
    lake.backend.declare_table(T)
    lake.create("full")
    backend = lake.open()
    assert backend.table_status(T) == Exists()
    assert backend.describe_table(T).is_only_declared is None
    assert backend.describe_table(T, check_declared=True).is_only_declared is True
    assert backend.describe_table(table_id("full"), check_declared=True).is_only_declared is False


@every_kind
def test_declared_tables_can_be_left_out_of_a_listing(lake):
    """Spec: lance-rest-openapi, ListTablesRequest, `include_declared`."""
    lake.backend.declare_table(T)
    lake.create("full")
    assert lake.backend.list_tables(ROOT) == ["full", "t"]
    assert lake.backend.list_tables(ROOT, include_declared=False) == ["full"]


@every_kind
def test_a_taken_name_cannot_be_declared(lake):
    lake.backend.declare_table(T)
    lake.create("full")
    for name in ("t", "full"):
        with pytest.raises(TableAlreadyExistsError, match=name):
            lake.backend.declare_table(table_id(name))


@every_kind
def test_data_can_be_written_into_a_declared_table(lake):
    lake.backend.declare_table(T)
    assert lake.create("t", [5]).version == 1
    assert lake.values("t") == [5]
    assert lake.backend.describe_table(T, check_declared=True).is_only_declared is False
    with pytest.raises(TableAlreadyExistsError):
        lake.create("t", [6])


@every_kind
def test_a_declared_table_can_be_dropped_undropped_and_purged(lake):
    lake.backend.declare_table(T)
    lake.drop("t")
    assert lake.names() == []
    lake.backend.undrop_table(T)
    assert lake.backend.describe_table(T, check_declared=True).is_only_declared is True
    lake.drop("t")
    lake.backend.purge_table(T)
    assert lake.backend.table_status(T) == NotFound()
    assert lake.create("t", [1]).version == 1


@pytest.mark.parametrize("location", ["elsewhere.lance", "", "/tmp/t.lance", "../t.lance"])
def test_a_table_is_declared_where_its_name_says_or_not_at_all(lake, location):
    with pytest.raises(InvalidInputError):
        lake.backend.declare_table(T, location)
    assert lake.backend.declare_table(T, "t.lance").location == lake.store.location("t.lance")


# -- modes of creation ----------------------------------------------------------------------------


def test_create_refuses_a_taken_name_and_leaves_no_trace(lake):
    """Spec: lance-rest-openapi, CreateTableRequest, mode Create."""
    lake.create("t", [1])
    before = lake.files("t")
    with pytest.raises(TableAlreadyExistsError, match="'t'"):
        lake.create("t", [2])
    assert lake.values("t") == [1]
    assert lake.files("t") == before


@every_kind
def test_exist_ok_keeps_the_existing_table(lake):
    """Spec: lance-rest-openapi, CreateTableRequest, mode ExistOk."""
    lake.create("t", [1])
    lake.create("t", [2], CreateMode.EXIST_OK)
    assert lake.values("t") == [1]
    lake.create("new", [3], CreateMode.EXIST_OK)
    assert lake.values("new") == [3]


@every_kind
def test_overwrite_is_the_next_version(lake):
    """Spec: lance-rest-openapi, CreateTableRequest, mode Overwrite."""
    lake.create("t", [1])
    other = pa.table({"word": ["x"]}).to_reader()
    info = lake.backend.create_table(T, other, CreateMode.OVERWRITE)
    assert info.version == 2
    assert lake.dataset("t").to_table().to_pylist() == [{"word": "x"}]
    assert lake.values("t", version=1) == [1]
    assert lake.create("new", [3], CreateMode.OVERWRITE).version == 1


@every_kind
def test_an_empty_table_can_be_created(lake):
    lake.create("t", [])
    assert lake.values("t") == []
    assert lake.dataset("t").schema == pa.schema([("n", pa.int64())])


@every_kind
def test_rows_that_fail_midway_leave_no_table(lake):
    """What an unacknowledged write left behind is invisible."""

    def batches():
        yield pa.record_batch({"n": [1]})
        msg = "the source broke"
        raise ValueError(msg)

    schema = pa.schema([("n", pa.int64())])
    broken = pa.RecordBatchReader.from_batches(schema, batches())
    with pytest.raises(MooringError, match="the source broke"):
        lake.backend.create_table(T, broken)
    assert lake.names() == []
    assert lake.backend.table_status(T) == NotFound()
    lake.create("t", [2])
    assert lake.values("t") == [2]


def test_rows_that_fail_after_a_whole_file_leave_no_table(disk_lake):
    """A file is full after 2**20 rows; those that follow break."""

    def batches():
        yield pa.record_batch({"n": pa.array(range(2**20 + 1), pa.int64())})
        msg = "the source broke"
        raise ValueError(msg)

    broken = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches())
    with pytest.raises(MooringError, match="the source broke"):
        disk_lake.backend.create_table(T, broken)
    disk_lake.settle()
    assert disk_lake.files("t") == set()
    assert disk_lake.names() == []


@every_kind
def test_a_type_that_lance_cannot_store_is_refused(lake):
    data = pa.table({"n": pa.array([None], pa.month_day_nano_interval())})
    with pytest.raises(TableSchemaValidationError):
        lake.backend.create_table(T, data.to_reader())
    assert lake.names() == []


def test_of_eight_creations_at_once_one_wins(lake):
    lake.backend.initialize()
    outcomes = _together(8, lambda number: lake.create("t", [number], backend=lake.open()))
    (winner,) = [number for number, failure in enumerate(outcomes) if failure is None]
    losers = {type(failure) for failure in outcomes if failure is not None}
    assert losers <= {TableAlreadyExistsError, ConcurrentModificationError}
    assert lake.values("t") == [winner]
    assert lake.dataset("t").version == 1
    assert len([path for path in lake.files("t") if path.startswith("data/")]) == 1


@every_kind
def test_of_eight_declarations_at_once_one_wins(lake):
    lake.backend.initialize()
    outcomes = _together(8, lambda _: lake.open().declare_table(T))
    assert outcomes.count(None) == 1
    assert {type(failure) for failure in outcomes if failure} == {TableAlreadyExistsError}


@every_kind
def test_one_opened_catalog_serves_many_threads(lake):
    names = [f"t{number}" for number in range(8)]
    assert _together(8, lambda number: lake.create(names[number], [number])) == [None] * 8
    assert lake.names() == names
    assert _together(8, lambda number: lake.drop(names[number])) == [None] * 8
    assert lake.trash() == names
    assert lake.open().settings.adopted


def _together(count, act) -> list[Exception | None]:
    """Run ``act(0..count-1)`` in threads that start at one moment; return their failures."""
    barrier = threading.Barrier(count)

    def run(number: int) -> Exception | None:
        barrier.wait()
        try:
            act(number)
        except MooringError as exc:
            return exc
        return None

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


# -- namespaces -----------------------------------------------------------------------------------


@every_kind
def test_the_root_exists_and_at_first_no_other_namespace(lake):
    """Spec: objects-and-relationships, "Root Namespace", "Leveled Namespace"."""
    assert lake.backend.levels == lake.kind.levels
    assert lake.backend.list_namespaces(ROOT) == []
    assert dict(lake.backend.describe_namespace(ROOT)) == {}
    child = ObjectId.of(["ns"])
    for ask in (
        lake.backend.list_namespaces,
        lake.backend.describe_namespace,
        lake.backend.list_tables,
    ):
        with pytest.raises(NamespaceNotFoundError, match="ns"):
            ask(child)


@every_kind
def test_a_table_in_a_namespace_that_is_not_there_is_not_found(lake):
    nested = ObjectId.of(["ns", "t"])
    with pytest.raises(NamespaceNotFoundError):
        lake.backend.create_table(nested, rows([1]))
    with pytest.raises(NamespaceNotFoundError):
        lake.backend.declare_table(nested)
    for act in (
        lake.backend.describe_table,
        lake.backend.drop_table,
        lake.backend.undrop_table,
        lake.backend.purge_table,
    ):
        with pytest.raises(NotFoundError):
            act(nested)
    if lake.kind.manifest:
        assert lake.backend.table_status(nested) == NotFound()
    else:
        with pytest.raises(TableNotFoundError, match="1-level"):
            lake.backend.table_status(nested)


@every_kind
def test_the_root_is_no_table(lake):
    with pytest.raises(InvalidInputError):
        lake.backend.create_table(ROOT, rows([1]))


@without_a_manifest
def test_a_plain_directory_renames_nothing(lake):
    lake.create("t", [1])
    with pytest.raises(UnsupportedError, match="new"):
        lake.backend.rename_table(T, table_id("new"))
    assert lake.names() == ["t"]


# -- what is no table -----------------------------------------------------------------------------


def test_a_plain_file_named_like_a_table_is_none(lake):
    lake.create("t")
    lake.store.put("x.lance", b"a file")
    lake.store.put("x.txt", b"a file")
    assert lake.names() == ["t"]
    assert lake.backend.table_status(table_id("x")) == NotFound()
    with pytest.raises(TableNotFoundError):
        lake.backend.describe_table(table_id("x"))
    with pytest.raises(TableNotFoundError):
        lake.backend.drop_table(table_id("x"))


def test_a_plain_file_in_the_way_of_a_new_table_is_reported(disk_lake):
    disk_lake.create("t")
    disk_lake.store.put("x.lance", b"a file")
    with pytest.raises(MooringError):
        disk_lake.create("x")
    assert disk_lake.store.get("x.lance") == b"a file"
    assert disk_lake.names() == ["t"]


@pytest.mark.parametrize("inside", ["", "data", "data/deeper"])
def test_a_directory_without_a_file_is_listed_where_it_exists_and_not_where_it_does_not(
    disk_lake, inside
):
    """Spec: "Table Existence": list, exists and describe give one answer."""
    disk_lake.create("t")
    Path(disk_lake.uri, "empty.lance", inside).mkdir(parents=True)
    exists = disk_lake.backend.table_status(table_id("empty")) == Exists()
    assert exists == ("empty" in disk_lake.names())
    disk_lake.create("empty", [4])
    assert disk_lake.values("empty") == [4]


def test_other_directories_are_no_tables(lake):
    lake.create("t")
    for path in (".lance/x", "notes/x", "x.lances/x", "x.LANCE/x", "deep/y.lance/x"):
        lake.store.put(path, b"")
    assert lake.names() == ["t"]


@pytest.mark.parametrize("how", ["declared", "created"])
def test_a_deregistered_name_whose_directory_was_removed_by_hand_is_free(lake, how):
    lake.create("t")
    lake.backend.deregister_table(T)
    lake.store.delete_prefix("t.lance")
    assert lake.open().table_status(T) == NotFound()
    assert lake.open().states() == [] or lake.kind.lists_emptied
    with pytest.raises(TableNotFoundError):
        lake.backend.register_table(T, None)
    if how == "declared":
        lake.backend.declare_table(T)
        assert lake.open().describe_table(T, check_declared=True).is_only_declared
    assert lake.create("t", [2]).version == 1
    assert lake.names() == ["t"]
    assert lake.values("t") == [2]


def test_a_table_whose_directory_was_removed_by_hand_is_gone(lake):
    lake.create("t")
    lake.drop("t")
    lake.backend.undrop_table(T)
    lake.store.delete_prefix("t.lance")
    if lake.kind.manifest:
        # Its row is left: a name without data, which anybody may fill.
        assert lake.backend.describe_table(T, check_declared=True).is_only_declared
    else:
        assert lake.backend.table_status(T) == NotFound()
        assert lake.names() == [] or lake.kind.lists_emptied
    assert lake.create("t", [2]).version == 1
    assert lake.values("t") == [2]


@every_kind
def test_two_opened_catalogs_see_each_others_changes(lake):
    other = lake.open(author="bob")
    lake.create("t", [1])
    assert other.list_tables(ROOT) == ["t"]
    other.drop_table(T)
    assert lake.backend.list_tables(ROOT) == []
    lake.backend.undrop_table(T)
    assert other.table_status(T) == Exists()
