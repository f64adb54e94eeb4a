"""Clients of the specification, and Lance itself, on the tables of a metastore.

Spec: objects-and-relationships, "External Manifest Store".
"""

from __future__ import annotations

import pickle
from datetime import timedelta

import lance
import lance_namespace as spec
import pyarrow as pa
import pytest

import mooring
from mooring.errors import TableVersionNotFoundError
from mooring.store.scripted import ScriptedStore
from mooring.tables.versions import manifest_name
from tests.conformance.content import fails_with, speak
from tests.conformance.meanwhile import Meanwhile
from tests.lakes import rows, table_id

NS = table_id("ns")
T = table_id("ns", "t")


@pytest.fixture
def lake(metastore):
    """A metastore on disk with a namespace."""
    metastore.make("ns")
    return metastore


def _at(lake, name: str = "t") -> dict[str, object]:
    """Return how Lance is told of a table."""
    return {"namespace_client": speak(lake), "table_id": ["ns", name]}


def _values(lake, **more: object) -> list[int]:
    return sorted(lance.dataset(**_at(lake), **more).to_table()["n"].to_pylist())


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


BODY = _ipc(pa.table({"n": [1, 2]}))


# -- Lance ----------------------------------------------------------------------------------------


def test_lance_writes_and_reads_tables_through_the_namespace(any_metastore):
    lake = any_metastore
    lake.make("ns")
    where = {**_at(lake), "storage_options": lake.options or None}
    lance.write_dataset(rows([1]), mode="create", **where)
    assert lake.tables() == ["ns$t"]
    lance.write_dataset(rows([2]), mode="append", **where)
    assert _values(lake) == [1, 2]
    lance.write_dataset(rows([3]), mode="overwrite", **where)
    opened = lance.dataset(**where)
    assert (opened.version, opened.to_table()["n"].to_pylist()) == (3, [3])
    assert _values(lake, version=2) == [1, 2]
    opened.insert(pa.table({"n": [4]}))
    opened.delete("n = 3")
    opened.merge_insert("n").when_not_matched_insert_all().execute(rows([4, 5]))
    opened.tags.create("now", 6)
    branch = opened.create_branch("dev")
    branch.insert(pa.table({"n": [6]}))
    assert _values(lake) == [4, 5]
    assert _values(lake, version="now") == [4, 5]
    found = lance.dataset(**where).checkout_version(("dev", None)).to_table()
    assert sorted(found["n"].to_pylist()) == [4, 5, 6]
    table = lake.connect().table(T)
    assert (table.version, table.branches.names()) == (6, ["dev"])
    assert [tag.name for tag in table.tags.list()] == ["now"]


def test_lance_cannot_create_a_table_twice(lake):
    where = _at(lake)
    lance.write_dataset(rows([1]), mode="create", **where)
    with pytest.raises((spec.errors.TableAlreadyExistsError, OSError)):
        lance.write_dataset(rows([2]), mode="create", **where)
    assert _values(lake) == [1]


def test_lance_does_not_find_a_dropped_table_and_begins_another(lake):
    namespace, where = speak(lake), _at(lake)
    lance.write_dataset(rows([1]), mode="create", **where)
    namespace.drop_table(spec.DropTableRequest(id=["ns", "t"]))
    with pytest.raises(spec.errors.TableNotFoundError):
        lance.dataset(**where)
    with pytest.raises(spec.errors.TableNotFoundError):
        lance.write_dataset(rows([2]), mode="append", **where)
    lance.write_dataset(rows([3]), mode="create", **where)
    assert _values(lake) == [3]
    namespace.undrop_table(["ns", "t"], ["ns", "u"])
    assert lance.dataset(**_at(lake, "u")).to_table()["n"].to_pylist() == [1]


def test_lance_indexes_and_compacts(lake):
    lance.write_dataset(rows(range(100)), mode="create", **_at(lake))
    for value in range(100, 103):
        lance.write_dataset(rows([value]), mode="append", **_at(lake))
    dataset = lance.dataset(**_at(lake))
    dataset.create_scalar_index("n", "BTREE")
    dataset.optimize.compact_files()
    dataset.optimize.optimize_indices()
    found = lake.connect().table(T)
    assert [index.name for index in found.indexes.list()] == ["n_idx"]
    assert found.stats().fragments == 1
    assert found.count("n >= 99") == 4


def test_what_lance_cleans_up_is_not_listed_and_not_found(lake):
    """Lance deletes files and tells nobody."""
    for value in range(5):
        mode = "append" if value else "create"
        lance.write_dataset(rows([value]), mode=mode, **_at(lake))
    dataset = lance.dataset(**_at(lake))
    dataset.tags.create("kept", 2)
    done = dataset.cleanup_old_versions(
        timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
    )
    assert done.old_versions == 3
    backend = lake.open()
    assert [one.version for one in backend.list_table_versions(T)] == [5, 2]
    assert [one.version for one in backend.list_table_versions(T, limit=1)] == [5]
    for gone in (1, 3, 4):
        with pytest.raises(TableVersionNotFoundError, match=f"no version {gone}"):
            backend.describe_table_version(T, gone)
        with fails_with(11):
            speak(lake).describe_table_version(
                spec.DescribeTableVersionRequest(id=["ns", "t"], version=gone)
            )
        with pytest.raises(TableVersionNotFoundError):
            lake.connect().table(T).to_lance(version=gone)
    assert _values(lake, version="kept") == [0, 1]
    lance.write_dataset(rows([9]), mode="append", **_at(lake))
    assert [one.version for one in lake.open().list_table_versions(T)] == [6, 5, 2]
    assert [entry.version for entry in lake.connect().table(T).log()] == [6, 5, 2]


def test_a_reader_keeps_its_version_while_others_write(lake):
    """The newest version is told by a copy, which stays for a while."""
    lake.create(T, [0])
    table = lake.connect().table(T)
    table.insert(pa.table({"n": [1]}))
    told = lake.open().describe_table_version(T, 2)
    for value in range(2, 12):
        table.insert(pa.table({"n": [value]}))
    assert lake.store.get(f"{told.manifest_path.partition('/lake/')[2]}") is not None


def test_copies_of_manifests_do_not_pile_up(lake):
    lake.create(T, [0])
    table = lake.connect().table(T)
    table.branches.create("dev")
    for value in range(1, 35):
        table.insert(pa.table({"n": [value]}))
        table.insert(pa.table({"n": [value]}), branch="dev")
    location = lake.open().describe_table(T).location.removeprefix(f"{lake.uri}/")
    copies = lake.store.list_prefix(f"{location}/_manifests")
    assert 2 * 16 <= len(copies) < 2 * 32
    assert sorted(table.to_lance(version=20).to_table()["n"].to_pylist()) == list(range(20))
    assert len(table.versions()) == 35


def test_a_version_written_past_the_catalog_is_taken_in_by_the_next_writer(lake):
    """Whoever opens the directory and not the table does not ask; nothing of theirs is lost."""
    lake.create(T, [1])
    location = lake.open().describe_table(T).location
    lance.write_dataset(rows([2]), location, mode="append")
    assert _values(lake) == [1]  # the catalog decides what the newest version is
    lance.write_dataset(rows([3]), mode="append", **_at(lake))
    assert _values(lake) == [1, 2, 3]
    assert [one.version for one in lake.open().list_table_versions(T)] == [3, 2, 1]


def test_what_was_written_past_the_catalog_goes_into_no_other_table(lake):
    """The name may mean another table by the time that somebody finds it."""
    location = lake.create(T, [1]).location
    lance.write_dataset(rows([2]), location, mode="append")

    def act() -> None:
        lake.open(author="rival").rename_table(T, table_id("ns", "old"))
        lake.create(T, [9], backend=lake.open(author="rival"))

    staged = f"{location.removeprefix(f'{lake.uri}/')}/_versions/{manifest_name(2)}-staged"
    lake.store.put(staged, b"")
    rival = Meanwhile(act, "head", manifest_name(2))
    with pytest.raises(mooring.errors.ConcurrentModificationError):
        lake.open(store=ScriptedStore(lake.store, rival)).create_table_version(T, 2, staged)
    assert rival.done
    assert [one.version for one in lake.open().list_table_versions(T)] == [1]
    assert lake.values(T) == [9]
    old = lake.connect().table(table_id("ns", "old"))
    assert old.insert(pa.table({"n": [4]})).version == 3
    assert sorted(old.to_arrow()["n"].to_pylist()) == [1, 2, 4]


# -- requests -------------------------------------------------------------------------------------


def test_the_words_of_the_specification_make_a_life(lake):
    names, t = speak(lake), ["ns", "t"]
    assert names.create_table(spec.CreateTableRequest(id=t), BODY).version == 1
    with fails_with(5):
        names.create_table(spec.CreateTableRequest(id=t), BODY)
    names.table_exists(spec.TableExistsRequest(id=t))
    described = names.describe_table(
        spec.DescribeTableRequest(id=t, load_detailed_metadata=True, with_table_uri=True)
    )
    assert (described.table, described.namespace, described.version) == ("t", ["ns"], 1)
    assert described.managed_versioning is True
    assert described.is_only_declared is False
    assert names.list_tables(spec.ListTablesRequest(id=["ns"])).tables == ["t"]
    assert names.list_all_tables(spec.ListTablesRequest()).tables == ["ns$t"]
    names.rename_table(spec.RenameTableRequest(id=t, new_table_name="u"))
    names.create_namespace(spec.CreateNamespaceRequest(id=["other"]))
    names.rename_table(
        spec.RenameTableRequest(id=["ns", "u"], new_table_name="v", new_namespace_id=["other"])
    )
    assert names.list_all_tables(spec.ListTablesRequest()).tables == ["other$v"]
    names.drop_table(spec.DropTableRequest(id=["other", "v"]))
    with fails_with(4):
        names.describe_table(spec.DescribeTableRequest(id=["other", "v"]))
    names.undrop_table(["other", "v"], t)
    gone = names.deregister_table(spec.DeregisterTableRequest(id=t))
    names.register_table(spec.RegisterTableRequest(id=t, location=gone.location))
    assert names.count_table_rows(spec.CountTableRowsRequest(id=t)).count == 2
    names.drop_namespace(spec.DropNamespaceRequest(id=["ns"], behavior="Cascade"))
    with fails_with(1):
        names.list_tables(spec.ListTablesRequest(id=["ns"]))
    assert names.undrop_namespace(["ns"]) == 2
    names.drop_table(spec.DropTableRequest(id=t))
    names.purge_table(t)
    assert names.list_all_tables(spec.ListTablesRequest()).tables == []


def test_tables_come_in_pages_while_names_come_and_go(lake):
    lake.make("other")
    for name in "bdfh":
        lake.backend.declare_table(table_id("ns", name))
    names = speak(lake)

    def page(token: str | None):
        return names.list_tables(spec.ListTablesRequest(id=["ns"], limit=2, page_token=token))

    first = page(None)
    assert first.tables == ["b", "d"]
    lake.drop(table_id("ns", "d"))
    for name in "ae":
        lake.backend.declare_table(table_id("ns", name))
    second = page(first.page_token)
    assert second.tables == ["e", "f"]
    third = page(second.page_token)
    assert (third.tables, third.page_token) == (["h"], None)
    assert names.list_tables(spec.ListTablesRequest(id=[])).tables == []
    assert names.list_namespaces(spec.ListNamespacesRequest(id=["ns"])).namespaces == []
    whole = names.list_all_tables(spec.ListTablesRequest()).tables
    first = names.list_all_tables(spec.ListTablesRequest(limit=3))
    rest = names.list_all_tables(spec.ListTablesRequest(limit=3, page_token=first.page_token))
    assert first.tables + rest.tables == whole


def test_a_namespace_pickles_and_tells_who_it_is(lake):
    names = speak(lake)
    names.create_table(spec.CreateTableRequest(id=["ns", "t"]), BODY)
    again = pickle.loads(pickle.dumps(names))  # noqa: S301  # our own bytes
    assert again.namespace_id() == names.namespace_id()
    assert lake.uri in again.namespace_id()
    assert again.list_tables(spec.ListTablesRequest(id=["ns"])).tables == ["t"]


@pytest.mark.parametrize(
    ("properties", "match"),
    [
        ({}, "root"),
        ({"root": "x", "manifest_enabled": "true"}, "unknown property 'manifest_enabled'"),
        ({"root": "x", "read_only": "perhaps"}, "read_only"),
    ],
    ids=["no root", "unknown", "not a flag"],
)
def test_properties_that_make_no_sense_are_refused(properties, match):
    with pytest.raises(spec.errors.InvalidInputError, match=match):
        mooring.MetastoreNamespace(**properties)


@pytest.mark.parametrize("names", [[], ["t"], ["ns", "a", "b"]], ids=["none", "root", "too deep"])
def test_a_table_lies_on_the_second_level(lake, names):
    space = speak(lake)
    for act in (
        lambda: space.create_table(spec.CreateTableRequest(id=names), BODY),
        lambda: space.declare_table(spec.DeclareTableRequest(id=names)),
        lambda: space.register_table(spec.RegisterTableRequest(id=names, location="x")),
    ):
        with fails_with(13):
            act()
    for act in (
        lambda: space.describe_table(spec.DescribeTableRequest(id=names)),
        lambda: space.table_exists(spec.TableExistsRequest(id=names)),
        lambda: space.drop_table(spec.DropTableRequest(id=names)),
        lambda: space.deregister_table(spec.DeregisterTableRequest(id=names)),
        lambda: space.list_table_versions(spec.ListTableVersionsRequest(id=names)),
        lambda: space.count_table_rows(spec.CountTableRowsRequest(id=names)),
    ):
        with fails_with(4 if names else 13):
            act()
    assert lake.tables() == []
