"""Compatibility mode: a manifest beside directories of names, and readers of either.

Spec: directory-namespace, "Compatibility Mode", rule by rule.
"""

from __future__ import annotations

import re
from pathlib import Path

import lance
import lance.namespace
import lance_namespace as spec
import pyarrow as pa
import pytest

import mooring
from mooring.errors import (
    ConcurrentModificationError,
    InvalidNameError,
    InvalidTableStateError,
    MooringError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode
from mooring.namespace.states import Exists, NotFound, SoftDeleted
from mooring.store.observed import ObservedStore
from mooring.store.scripted import Crash, ScriptedStore
from mooring.tables.seal import put_seal
from mooring.tables.versions import manifest_name
from tests.conformance.test_manifest_lifecycle import DieAt
from tests.lakes import COMPAT_DISK, DISK, MANIFEST_DISK, Lake, rows, table_id

NS = ObjectId.of(["ns"])
T = table_id("t")
U = table_id("u")
ALIAS = table_id("ns", "alias")
READS = {"get", "read", "head", "existing", "list_dir", "list_prefix"}


@pytest.fixture
def lake(compat) -> Lake:
    return compat


@pytest.fixture
def v1(lake) -> Lake:
    """The same place, opened without its manifest."""
    return Lake(DISK, lake.uri, {}, lake.clock)


@pytest.fixture
def v2(lake) -> Lake:
    """The same place, opened without listings."""
    return Lake(MANIFEST_DISK, lake.uri, {}, lake.clock)


def _rows(lake) -> dict[str, str | None]:
    """Return the locations of all rows of the manifest, the trash left out."""
    table = lance.dataset(lake.store.location("__manifest")).to_table()
    found = zip(table["object_id"].to_pylist(), table["location"].to_pylist(), strict=True)
    return {key: location for key, location in found if not key.startswith("__mooring_trash")}


def _put_row(lake, key: str, location: str) -> None:
    """Write a row as another program would."""
    from mooring.directory.entries import make_row

    lake.open().manifest.change(lambda draft: draft.put(make_row(key, "table", location, None)))


def _pylance(lake, **properties: str):
    return lance.namespace.DirectoryNamespace(root=lake.uri, **properties)


def _listed(namespace, *parent: str) -> list[str]:
    return sorted(namespace.list_tables(spec.ListTablesRequest(id=list(parent))).tables)


def _is_found(namespace, *names: str) -> bool:
    try:
        namespace.table_exists(spec.TableExistsRequest(id=list(names)))
    except spec.errors.TableNotFoundError:
        return False
    return True


# -- rule 1: the manifest, then the directory -----------------------------------------------------


def test_a_root_table_is_found_by_its_directory_alone(lake):
    """Rule 1: "then falls back to checking if a `<table_name>.lance` directory exists"."""
    lake.write_elsewhere("t", [1])
    lake.make("ns")
    assert lake.open().table_status(T) == Exists()
    assert lake.open().describe_table(T).location == lake.store.location("t.lance")
    assert lake.values("t") == [1]
    assert "t" not in _rows(lake)


def test_a_root_table_is_found_by_its_row_alone(lake, v2):
    """Rule 1: "first checks the manifest table"."""
    v2.create("t", [1])
    assert lake.open().table_status(T) == Exists()
    assert lake.values("t") == [1]
    assert not Path(lake.uri, "t.lance").exists()


def test_where_both_are_there_the_row_is_right(lake, v2):
    """Rule 1 and 2: "manifest entries taking precedence when duplicates exist"."""
    v2.create("t", [1])
    lake.write_elsewhere("t", [2])
    backend = lake.open()
    assert backend.list_tables(ROOT) == ["t"]
    assert [str(table) for table in backend.list_all_tables()] == ["t"]
    assert backend.describe_table(T).location == lake.store.location(_rows(lake)["t"])
    assert lake.values("t") == [1]


@pytest.mark.parametrize("how", ["drop", "deregister"])
def test_a_directory_behind_a_row_comes_forth_when_the_row_goes(lake, v2, how):
    """Rule 1: "then falls back"."""
    v2.create("t", [1])
    lake.write_elsewhere("t", [2])
    getattr(lake.backend, f"{how}_table")(T)
    assert lake.names() == ["t"]
    assert lake.values("t") == [2]
    if how == "drop":
        with pytest.raises(TableAlreadyExistsError):
            lake.backend.undrop_table(T)
        lake.backend.undrop_table(T, U)
        assert lake.values("u") == [1]
    assert lake.values("t") == [2]


# -- rule 2: merged listings ----------------------------------------------------------------------


def test_listings_of_the_root_are_merged(lake, v1, v2):
    """Rule 2: "results from both the manifest table and directory listing are merged"."""
    v1.create("listed")
    v2.create("named")
    lake.create("both")
    lake.write_elsewhere("foreign")
    lake.backend.declare_table(table_id("declared"))
    lake.make("ns")
    lake.create(table_id("ns", "nested"))
    backend = lake.open()
    names = ["both", "declared", "foreign", "listed", "named"]
    assert backend.list_tables(ROOT) == names
    assert backend.list_tables(ROOT, after="declared", limit=2) == ["foreign", "listed"]
    assert backend.list_tables(ROOT, include_declared=False) == ["both", *names[2:]]
    assert [str(table) for table in backend.list_all_tables()] == sorted([*names, "ns$nested"])
    for name in names:
        assert backend.table_status(table_id(name)) == Exists()
        backend.describe_table(table_id(name))
    assert v1.names() == ["both", "declared", "foreign", "listed"]
    assert v2.names() == ["both", "declared", "named"]


def test_pages_of_a_merged_listing_follow_each_other(lake, v1, v2):
    for name in "ace":
        v1.create(name)
    for name in "bdf":
        v2.backend.declare_table(table_id(name))
    client = mooring.DirectoryNamespace(**lake.properties)
    seen, token = [], None
    while True:
        asked = spec.ListTablesRequest(id=[], limit=2, page_token=token)
        page = client.list_tables(asked)
        assert len(page.tables) <= 2
        seen += page.tables
        token = page.page_token
        if token is None:
            break
    assert seen == list("abcdef")


# -- rule 3: creation -----------------------------------------------------------------------------


def test_a_root_table_is_created_in_its_directory_and_registered(lake, v1):
    """Rule 3: "registered in the manifest and uses the V1 `<table_name>.lance` naming"."""
    info = lake.backend.create_table(T, rows([1]), properties={"owner": "ann"})
    assert info.location == lake.store.location("t.lance")
    lake.backend.declare_table(U, None, {"a": "b"})
    assert _rows(lake) == {"t": "t.lance", "u": "u.lance"}
    assert lake.open().describe_table(T).properties == {"owner": "ann"}
    assert lake.open().describe_table(U).properties == {"a": "b"}
    assert v1.names() == ["t", "u"]
    assert v1.values("t") == [1]
    assert _listed(_pylance(lake, manifest_enabled="false")) == ["t", "u"]
    assert _listed(_pylance(lake)) == ["t", "u"]
    assert _listed(_pylance(lake, dir_listing_enabled="false")) == ["t", "u"]


def test_a_name_that_a_directory_has_is_taken(lake):
    """Unlike pylance, which declares over a live V1 table."""
    lake.write_elsewhere("t", [1])
    lake.make("ns")
    lake.create(table_id("ns", "x"), [2])
    for act in (
        lambda: lake.backend.declare_table(T),
        lambda: lake.create("t", [3]),
        lambda: lake.backend.rename_table(table_id("ns", "x"), T),
        lambda: lake.backend.create_namespace(T, {}),
    ):
        with pytest.raises(TableAlreadyExistsError):
            act()
    assert lake.values("t") == [1]
    assert lake.values(table_id("ns", "x")) == [2]


def test_a_name_that_a_row_has_is_taken(lake, v2):
    v2.create("t", [1])
    for act in (
        lambda: lake.backend.declare_table(T),
        lambda: lake.create("t", [3]),
    ):
        with pytest.raises(TableAlreadyExistsError):
            act()
    lake.create("t", [2], CreateMode.OVERWRITE)
    assert v2.values("t") == [2]
    assert not Path(lake.uri, "t.lance").exists()


def test_the_name_of_a_namespace_is_taken(lake):
    lake.make("ns")
    for act in (lambda: lake.create("ns"), lambda: lake.backend.declare_table(NS)):
        with pytest.raises(NamespaceAlreadyExistsError):
            act()
    assert lake.directories() == set()


def test_a_row_follows_the_life_of_its_directory(lake):
    """A reader of manifests alone sees what a reader of directories sees."""
    pylance = _pylance(lake, dir_listing_enabled="false")

    def agree(*live: str) -> None:
        assert lake.names() == sorted(live)
        assert _listed(pylance) == sorted(live)
        assert _listed(_pylance(lake, manifest_enabled="false")) == sorted(live)

    lake.create("t", [1])
    agree("t")
    lake.drop("t")
    agree()
    lake.backend.undrop_table(T)
    agree("t")
    lake.backend.deregister_table(T)
    agree()
    lake.backend.register_table(T, "t.lance")
    agree("t")
    lake.drop("t")
    lake.create("t", [2])
    agree("t")
    lake.drop("t")
    lake.backend.purge_table(T)
    agree()
    lake.create("t", [3])
    agree("t")
    assert _rows(lake) == {"t": "t.lance"}


def test_a_table_of_v1_is_taken_into_the_manifest_where_it_lies(lake, v2):
    """Spec: "add all existing V1 table directory paths to the manifest table"."""
    lake.write_elsewhere("t", [1])
    assert v2.names() == []
    info = lake.backend.register_table(T, "t.lance", properties={"owner": "ann"})
    assert info.location == lake.store.location("t.lance")
    assert _rows(lake) == {"t": "t.lance"}
    assert v2.names() == ["t"]
    assert v2.values("t") == [1]
    assert v2.open().describe_table(T).properties == {"owner": "ann"}
    with pytest.raises(TableAlreadyExistsError):
        lake.backend.register_table(T, "t.lance")


@pytest.mark.parametrize("spelling", ["t.lance", "t.lance/", "absolute", None], ids=str)
def test_a_deregistered_root_table_is_registered_again_by_any_spelling_of_its_location(
    lake, spelling
):
    lake.create("t", [1])
    lake.backend.deregister_table(T)
    location = lake.store.location("t.lance") if spelling == "absolute" else spelling
    lake.backend.register_table(T, location)
    assert lake.names() == ["t"]
    assert lake.open().table_status(T) == Exists()
    assert lake.values("t") == [1]


# -- rule 4: rename -------------------------------------------------------------------------------


@pytest.mark.parametrize("new", [["u"], ["ns", "u"]], ids=["root", "nested"])
def test_a_renamed_root_table_lies_at_a_path_by_hash(lake, v1, new):
    """Rule 4: "it transitions to the V2 hash-based path naming"."""
    lake.make("ns")
    lake.backend.create_table(T, rows([1]), properties={"owner": "ann"})
    lake.create("t", [2], CreateMode.OVERWRITE)
    opened = lake.dataset("t")
    new_id = ObjectId.of(new)
    info = lake.backend.rename_table(T, new_id)
    path = info.location.removeprefix(lake.store.location("") + "/")
    assert re.fullmatch(rf"[0-9a-f]{{8}}_{re.escape(str(new_id))}", path)
    assert lake.tables() == [str(new_id)]
    assert lake.values(new_id) == [2]
    assert lake.values(new_id, version=1) == [1]
    assert lake.open().describe_table(new_id).properties == {"owner": "ann"}
    assert v1.names() == []
    assert _listed(_pylance(lake, manifest_enabled="false")) == []
    assert opened.to_table()["n"].to_pylist() == [2]
    lake.backend.rename_table(new_id, table_id("ns", "again"))
    assert lake.values(table_id("ns", "again")) == [2]


def test_a_declared_root_table_is_renamed_too(lake):
    lake.backend.declare_table(T, None, {"owner": "ann"})
    lake.backend.rename_table(T, U)
    assert lake.names() == ["u"]
    found = lake.open().describe_table(U, check_declared=True)
    assert (found.is_only_declared, found.properties) == (True, {"owner": "ann"})
    lake.create("u", [1])
    assert lake.values("u") == [1]


def test_a_table_of_v1_that_no_row_names_is_renamed(lake):
    lake.write_elsewhere("t", [1])
    lake.backend.rename_table(T, U)
    assert lake.names() == ["u"]
    assert lake.values("u") == [1]


def test_an_append_at_the_old_place_of_a_renamed_table_is_refused(lake):
    """Must show: "the append is in the renamed table or its writer got an error, never lost"."""
    lake.create("t", [1])
    old = lake.store.location("t.lance")
    late = lake.dataset("t")
    lake.backend.rename_table(T, U)
    for act in (
        lambda: lance.write_dataset(rows([9]), old, mode="append"),
        lambda: late.insert(rows([9]).read_all()),
    ):
        with pytest.raises(OSError, match="cannot be written"):
            act()
    assert lake.values("u") == [1]


def test_a_renamed_table_lives_on(lake):
    lake.create("t", [1])
    lake.backend.rename_table(T, U)
    lance.write_dataset(rows([2]), lake.open().describe_table(U).location, mode="append")
    assert lake.values("u") == [1, 2]
    lake.create("u", [3], CreateMode.OVERWRITE)
    lake.drop("u")
    assert lake.names() == []
    lake.backend.undrop_table(U)
    assert lake.values("u") == [3]
    lake.drop("u")
    lake.backend.purge_table(U)
    assert lake.open().table_status(U) == NotFound()


def test_the_old_name_of_a_renamed_table_can_be_used_again(lake, v1):
    lake.create("t", [1])
    lake.backend.rename_table(T, U)
    lake.create("t", [2])
    assert (lake.values("t"), lake.values("u")) == ([2], [1])
    assert v1.values("t") == [2]
    lance.write_dataset(rows([3]), lake.store.location("t.lance"), mode="append")
    assert lake.values("t") == [2, 3]
    lake.drop("t")
    lake.backend.purge_table(T)
    assert lake.values("u") == [1]


def test_a_rename_that_is_refused_changes_nothing(lake):
    lake.make("ns")
    lake.create("t", [1])
    lake.create("u", [2])
    before = {meta.path for meta in lake.store.list_prefix("t.lance")}
    with pytest.raises(TableAlreadyExistsError):
        lake.backend.rename_table(T, U)
    with pytest.raises(NamespaceAlreadyExistsError):
        lake.backend.rename_table(T, NS)
    with pytest.raises(NamespaceNotFoundError):
        lake.backend.rename_table(T, table_id("absent", "t"))
    with pytest.raises(InvalidNameError):
        lake.backend.rename_table(T, table_id("a$b"))
    assert {meta.path for meta in lake.store.list_prefix("t.lance")} == before
    assert lake.directories() == {"t.lance", "u.lance"}
    lance.write_dataset(rows([3]), lake.store.location("t.lance"), mode="append")
    assert lake.values("t") == [1, 3]


def test_an_undrop_to_a_new_name_moves_the_table(lake):
    """Deliver 5: "undrop by name or to a new name"."""
    lake.backend.create_table(T, rows([1]), properties={"owner": "ann"})
    lake.drop("t")
    lake.backend.undrop_table(T, U)
    assert lake.names() == ["u"]
    assert lake.values("u") == [1]
    assert lake.open().describe_table(U).properties == {"owner": "ann"}


def test_an_undrop_to_a_name_that_is_taken_leaves_the_table_in_the_trash(lake):
    lake.create("t", [1])
    lake.create("u", [2])
    lake.drop("t")
    for new, refusal in (
        (U, TableAlreadyExistsError),
        (table_id("absent", "t"), NamespaceNotFoundError),
    ):
        with pytest.raises(refusal):
            lake.backend.undrop_table(T, new)
        assert lake.names() == ["u"]
        assert lake.trash() == ["t"]


def _die_renaming(lake, decision: int) -> None:
    """Rename a table, and die before its decision of a number is put."""
    script = DieAt("put_new", f"t.lance-state.{decision:020}")
    with pytest.raises(Crash):
        lake.open(store=ScriptedStore(lake.store, script)).rename_table(T, U)


def test_a_table_that_a_rename_closed_and_left_lives_on(lake, v1):
    """Rule: "after it every further step is idempotent and anybody may finish it"."""
    lake.create("t", [1])
    _die_renaming(lake, 1)
    assert lake.values("t") == [1]
    lake.drop("t")
    lake.backend.undrop_table(T)
    lance.write_dataset(rows([2]), lake.store.location("t.lance"), mode="append")
    assert lake.values("t") == [1, 2]
    _die_renaming(lake, 3)
    lake.drop("t")
    lake.backend.purge_table(T)
    lake.create("t", [3])
    assert lake.names() == v1.names() == ["t"]
    assert lake.values("t") == [3]


def test_a_rename_that_closed_a_table_and_died_is_undone_by_an_undrop(lake, v1):
    """The error of every writer says so."""
    lake.create("t", [1])
    _die_renaming(lake, 1)
    with pytest.raises(ConcurrentModificationError, match="undrop t"):
        lake.backend.create_table(T, rows([2]), CreateMode.OVERWRITE)
    lake.open().undrop_table(T)
    assert lake.open()._listed.chains.history("t") == []  # nothing was decided yet
    assert lake.directories() == {"t.lance"}
    lake.backend.create_table(T, rows([2]), CreateMode.OVERWRITE)
    assert lake.values("t") == v1.values("t") == [2]
    with pytest.raises(TableNotFoundError, match="is live"):
        lake.backend.undrop_table(T)


def test_a_root_table_is_not_told_as_made_before_its_name_is_its_own(lake, monkeypatch):
    """Its row decides about the name; of a drop the directory has decided before."""
    backend = lake.open()

    def fail(_):
        raise ServiceUnavailableError("the store does not answer")

    monkeypatch.setattr(backend._rows, "_view", fail)
    with pytest.raises(UnknownOutcomeError, match="whether its name was given to another"):
        backend.create_table(T, rows([1]))
    assert lake.values("t") == [1]
    backend.drop_table(T)
    assert lake.names() == []
    with pytest.raises(UnknownOutcomeError):
        backend.undrop_table(T)
    assert lake.values("t") == [1]


def test_an_undrop_does_not_take_that_of_somebody_else_for_its_own(lake, monkeypatch):
    """The rename that it is about to undo comes to its end, and its table comes back by another."""
    lake.create("t", [1])
    _die_renaming(lake, 1)
    backend = lake.open()

    def come_late(_):
        other = lake.open()
        other.rename_table(T, U)
        other.undrop_table(T)

    monkeypatch.setattr(backend._renaming, "call_off", come_late)
    with pytest.raises(TableNotFoundError):
        backend.undrop_table(T)
    assert [link.decision.action for link in backend._listed.chains.history("t")][-1] == "undrop"
    assert lake.names() == ["t", "u"]


def test_a_purge_of_a_row_beside_a_directory_of_its_name_finds_nothing(lake, v1):
    """A program that only knows directories made one of a name that the manifest had given."""
    _name_elsewhere(lake)
    v1.create("t", [2])
    with pytest.raises(TableNotFoundError):
        lake.backend.purge_table(T)
    assert lake.values("t") == [1]
    assert v1.values("t") == [2]


def test_a_drop_that_was_decided_is_told_as_done_whoever_has_the_name_by_then(
    lake, v1, monkeypatch
):
    lake.create("t", [0])
    backend = lake.open()
    drop = backend._listed.drop_table

    def drop_and_dawdle(table, ttl):
        info = drop(table, ttl)
        lake.open().purge_table(T)
        _name_elsewhere(lake)
        v1.create("t", [2])
        return info

    monkeypatch.setattr(backend._listed, "drop_table", drop_and_dawdle)
    backend.drop_table(T)
    assert lake.values("t") == [1]


@pytest.mark.parametrize("name", ["t", "ns.t"])
def test_a_table_that_comes_back_while_its_status_is_read_is_never_told_as_not_there(
    lake, name, monkeypatch
):
    table = table_id(*name.split("."))
    lake.backend.create_namespace(NS, {})
    lake.backend.create_table(ALIAS, rows([1]))
    lake.backend.rename_table(ALIAS, table)
    lake.backend.drop_table(table)
    backend = lake.open()
    find = backend.manifest.find

    def find_and_dawdle(key):
        row = find(key)
        lake.open().undrop_table(table)
        return row

    monkeypatch.setattr(backend.manifest, "find", find_and_dawdle)
    assert isinstance(backend.table_status(table), Exists)


def test_a_declared_table_leaves_the_directory_of_its_name_to_the_next_one(lake):
    """Another program declared it by a row alone; it was dropped, and one was made in its place."""
    _put_row(lake, "t", "t.lance")
    lake.backend.drop_table(T)
    lake.create("t", [1])
    lake.backend.undrop_table(T, U)
    assert lake.backend.describe_table(U, check_declared=True).is_only_declared
    lake.backend.drop_table(U)
    lake.backend.drop_table(T)
    lake.backend.purge_table(T)
    assert lake.backend.table_status(T) == NotFound()


def test_a_declared_table_is_renamed_away_from_the_directory_of_its_name(lake):
    _put_row(lake, "t", "t.lance")
    lake.backend.rename_table(T, U)
    lake.create("u", [1])
    assert lake.names() == ["u"]
    lake.create("t", [2])
    assert (lake.values("t"), lake.values("u")) == ([2], [1])


@pytest.mark.parametrize("how", ["rename", "update"])
def test_a_change_of_a_directory_leaves_a_table_elsewhere_alone_that_got_its_name(
    lake, v1, how, monkeypatch
):
    """The name had no row when it was looked for; a rename would lose what has it now."""
    _name_elsewhere(lake)
    v1.create("t", [2])
    backend = lake.open()
    monkeypatch.setattr(backend, "_is_by_directory", lambda _: True)
    monkeypatch.setattr(backend._rows, "settle", lambda *_, **__: None)
    with pytest.raises(ConcurrentModificationError, match="given to another table"):
        backend.rename_table(T, U) if how == "rename" else backend.update_table(T, {"a": "b"})
    assert lake.names() == ["t"]
    assert lake.values("t") == [1]
    assert lake.backend.describe_table(T).properties == {}


@pytest.mark.parametrize("how", ["drop", "rename", "deregister"])
def test_a_change_by_row_leaves_a_table_alone_that_was_made_in_a_directory_meanwhile(
    lake, how, monkeypatch
):
    """Nothing of the name was live when it was looked for, and the last drop was that of a row."""
    _name_elsewhere(lake)
    lake.backend.drop_table(T)
    backend = lake.open()
    act = getattr(backend._named, f"{how}_table")

    def dawdle(*words):
        lake.open().create_table(T, rows([2]))
        return act(*words)

    monkeypatch.setattr(backend._named, f"{how}_table", dawdle)
    with pytest.raises(ConcurrentModificationError, match=f"during this {how}"):
        getattr(backend, f"{how}_table")(*([T, U] if how == "rename" else [T]))
    assert lake.names() == ["t"]
    assert lake.values("t") == [2]
    assert _rows(lake)["t"] == "t.lance"
    lake.backend.drop_table(T)
    lake.backend.purge_table(T)
    assert lake.backend.table_status(T) == NotFound()


def _name_elsewhere(lake: Lake) -> None:
    """Give the name `t` to a table that does not lie in `t.lance`."""
    lake.backend.create_namespace(NS, {})
    lake.backend.create_table(ALIAS, rows([1]))
    lake.backend.rename_table(ALIAS, T)


@pytest.mark.parametrize("how", ["create", "purge", "purge all", "rename"])
def test_the_old_name_of_a_rename_that_died_at_its_end_is_free(lake, v1, how):
    """The row is switched by then: what is left of the old directory goes into the trash."""
    lake.create("t", [1])
    _die_renaming(lake, 2)
    assert lake.names() == ["u"]
    backend = lake.open()
    match how:
        case "create":
            lake.create("t", [2])
            assert v1.values("t") == [2]
        case "purge":
            backend.purge_table(T)
        case "purge all":
            assert backend.purge_tables().failed == {}
            assert lake.trash() == ["t"]
        case "rename":
            with pytest.raises(TableNotFoundError):
                backend.rename_table(T, table_id("v"))
            assert lake.trash() == ["t"]
    assert lake.values("u") == [1]


# -- rule 5: child namespaces ---------------------------------------------------------------------


def test_child_namespaces_are_v2_only(lake, v1):
    """Rule 5: "only V2 behavior is used since V1 does not support nested namespaces"."""
    lake.make("ns")
    # A directory that looks like a nested V1 table is none.
    lake.store.put("ns/t.lance/_versions/1.manifest", b"")
    lake.store.put("ns$t.lance/_versions/1.manifest", b"")
    assert lake.open().list_tables(NS) == []
    assert lake.open().table_status(table_id("ns", "t")) == NotFound()
    lake.create(table_id("ns", "t"), [1])
    location = _rows(lake)["ns$t"]
    assert re.fullmatch(r"[0-9a-f]{8}_ns\$t", location)
    assert v1.names() == ["ns$t"]
    assert _listed(_pylance(lake, manifest_enabled="false")) == ["ns$t"]
    assert lake.values(table_id("ns", "t")) == [1]


def test_a_v1_reader_sees_no_nested_table(lake, v1):
    lake.make("ns")
    lake.create(table_id("ns", "t"), [1])
    lake.create("root", [2])
    assert v1.names() == ["root"]
    assert _listed(_pylance(lake, manifest_enabled="false")) == ["root"]
    assert v1.open().list_namespaces(ROOT) == []


def test_a_nested_table_that_is_named_like_a_directory_is_no_root_table(lake, v1):
    """A V1 reader that took it for one could drop and purge what is not its own."""
    lake.make("ns")
    lake.create(table_id("ns", "x.lance"), [1])
    lake.backend.declare_table(table_id("ns", "y.lance"))
    assert lake.names() == []
    assert lake.tables() == ["ns$x.lance", "ns$y.lance"]
    assert v1.names() == []
    assert _listed(_pylance(lake, manifest_enabled="false")) == []
    assert _listed(_pylance(lake), "ns") == ["x.lance", "y.lance"]


def test_a_directory_of_a_nested_table_of_pylance_is_no_root_table(lake):
    """Its directory may end like one of V1; its row says whose it is."""
    pylance = _pylance(lake)
    pylance.create_namespace(spec.CreateNamespaceRequest(id=["ns"]))
    declared = pylance.declare_table(spec.DeclareTableRequest(id=["ns", "x.lance"]))
    lance.write_dataset(rows([1]), declared.location)
    assert lake.names() == []
    assert lake.tables() == ["ns$x.lance"]
    assert lake.values(table_id("ns", "x.lance")) == [1]


# -- the lifecycle, seen by readers of either layout ----------------------------------------------


@pytest.mark.parametrize("mode", ["compat", "v1", "v2"])
def test_a_dropped_root_table_is_hidden_from_every_reader(lake, v1, v2, mode):
    """Deliver 5: "In compatibility mode a dropped root table is hidden from V1 readers too"."""
    writer = {"compat": lake, "v1": v1, "v2": v2}[mode]
    lake.create("t", [1])
    lake.create("other", [2])
    writer.open().drop_table(T)
    # A writer without the manifest leaves the row to those who look at the directory.
    for reader in (lake, v1, v2) if mode != "v1" else (lake, v1):
        assert reader.names() == ["other"]
        assert reader.open().table_status(T) != Exists()
        with pytest.raises(TableNotFoundError):
            reader.open().describe_table(T)
    for flags in ({"manifest_enabled": "false"}, {}):
        assert _listed(_pylance(lake, **flags)) == ["other"]
        assert not _is_found(_pylance(lake, **flags), "t")
    undropper = lake if mode != "v1" else v1
    undropper.open().undrop_table(T)
    for reader in (lake, v1, v2):
        assert reader.names() == ["other", "t"]
        assert reader.values("t") == [1]


def test_a_table_that_a_v1_client_dropped_is_dropped(lake, v1):
    """Its row is left behind; the decision on its chain counts."""
    lake.backend.create_table(T, rows([1]), properties={"owner": "ann"})
    v1.drop("t")
    assert lake.names() == []
    assert lake.trash() == ["t"]
    assert isinstance(lake.open().table_status(T), SoftDeleted)
    lake.backend.undrop_table(T)
    assert lake.open().describe_table(T).properties == {"owner": "ann"}
    v1.drop("t")
    v1.backend.purge_table(T)
    assert lake.names() == []
    lake.create("t", [2])
    assert lake.values("t") == [2]
    assert lake.open().describe_table(T).properties == {}


def test_a_dropped_root_table_keeps_its_name_from_rows(lake):
    """Two tables of one name in the trash, one by chain and one by row, would be one too many."""
    lake.make("ns")
    lake.create(table_id("ns", "x"), [2])
    lake.create("t", [1])
    lake.drop("t")
    with pytest.raises(InvalidTableStateError, match="purge"):
        lake.backend.rename_table(table_id("ns", "x"), T)
    lake.backend.undrop_table(T)
    assert lake.values("t") == [1]


def test_root_tables_of_either_kind_share_one_trash(lake, v2):
    lake.create("a", [1])
    v2.create("b", [2])
    lake.drop("a", "b")
    assert lake.trash() == ["a", "b"]
    report = lake.backend.purge_tables([table_id("a"), table_id("b"), table_id("c")])
    assert report.purged == [table_id("a"), table_id("b")]
    assert set(report.failed) == {table_id("c")}
    assert lake.trash() == []


def test_a_purge_of_the_expired_leaves_no_row(lake, v2):
    for name in ("ours", "theirs"):
        lake.create(name, [1])
    lake.drop("ours")
    lake.mark_deleted("theirs", b'{"deleted_at_ms": 1, "ttl_ms": 1}')
    lake.clock.advance(10**12)
    report = lake.backend.purge_tables()
    assert sorted(map(str, report.purged)) == ["ours", "theirs"]
    assert v2.names() == []
    assert lance.dataset(lake.store.location("__manifest")).count_rows() == 0


def test_protection_of_a_root_table_counts_in_every_mode(lake, v1, v2):
    lake.create("t", [1])
    lake.backend.protect_table(T)
    for writer in (lake, v1, v2):
        with pytest.raises(mooring.errors.ProtectedError):
            writer.open().drop_table(T)
        assert writer.open().describe_table(T).properties == {"mooring.protected": "true"}


# -- several names for one directory --------------------------------------------------------------


@pytest.fixture
def shared(lake):
    """A root table in its directory, and a name in a namespace for the same files."""
    lake.make("ns")
    lake.create("t", [1, 2])
    lake.backend.register_table(ALIAS, "t.lance")
    assert lake.values(ALIAS) == [1, 2]
    return lake


def test_a_purge_of_the_other_name_spares_the_directory(shared):
    """Deliver 1: "several names for one location without one drop harming another"."""
    shared.drop(ALIAS)
    assert shared.values("t") == [1, 2]
    shared.backend.purge_table(ALIAS)
    assert shared.values("t") == [1, 2]
    shared.drop("t")
    shared.backend.undrop_table(T)
    assert shared.values("t") == [1, 2]


def test_a_purge_of_the_directory_spares_the_other_name(shared):
    shared.drop("t")
    assert shared.values(ALIAS) == [1, 2]
    with pytest.raises(InvalidTableStateError, match=r"ns\$alias"):
        shared.backend.purge_table(T)
    assert shared.values(ALIAS) == [1, 2]
    assert shared.trash() == ["t"]
    shared.backend.undrop_table(T)
    assert shared.values("t") == [1, 2]
    shared.drop("t", ALIAS)
    with pytest.raises(InvalidTableStateError):
        shared.backend.purge_table(T)
    shared.backend.undrop_table(ALIAS)
    assert shared.values(ALIAS) == [1, 2]
    shared.drop(ALIAS)
    shared.backend.purge_table(ALIAS)
    shared.backend.purge_table(T)
    assert shared.trash() == []
    assert not [meta for meta in shared.store.list_prefix("t.lance") if "/data/" in meta.path]


def test_the_expired_are_purged_without_harm_to_the_other_name(shared):
    shared.drop("t")
    shared.clock.advance(10**12)
    report = shared.backend.purge_tables()
    assert report.purged == []
    assert isinstance(report.failed[T], InvalidTableStateError)
    assert shared.values(ALIAS) == [1, 2]


def test_a_table_created_over_a_dropped_one_does_not_change_what_another_name_shows(shared):
    shared.drop("t")
    try:
        shared.create("t", [9])
    except MooringError as exc:
        assert isinstance(exc, InvalidTableStateError)  # noqa: PT017  # it may find another place
    assert shared.values(ALIAS) == [1, 2]


def test_two_root_names_for_one_directory(lake):
    lake.create("t", [1])
    lake.backend.register_table(U, "t.lance")
    assert lake.names() == ["t", "u"]
    lake.drop("t")
    assert lake.names() == ["u"]
    assert lake.values("u") == [1]
    with pytest.raises(InvalidTableStateError):
        lake.backend.purge_table(T)
    lake.drop("u")
    lake.backend.purge_table(U)
    lake.backend.undrop_table(T)
    assert lake.values("t") == [1]


def test_a_deregistered_directory_can_get_another_name(lake):
    lake.create("t", [1])
    lake.backend.deregister_table(T)
    lake.backend.register_table(U, "t.lance")
    assert lake.names() == ["u"]
    assert lake.values("u") == [1]
    lake.backend.register_table(T, "t.lance")
    assert lake.names() == ["t", "u"]


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["x.deleted", "y" * 240, "z.lance-state.00000000000000000001"], ids=lambda n: n[:9]
)
def test_a_root_table_that_no_directory_could_name_lives_its_whole_life(lake, name):
    """Another program put it into the manifest; every operation but a creation works."""
    table = table_id(name)
    lance.write_dataset(rows([1]), str(Path(lake.uri, "01234567_x")))
    _put_row(lake, name, "01234567_x")
    assert lake.names() == [name]
    assert lake.values(name) == [1]
    lake.drop(name)
    assert lake.names() == []
    assert lake.trash() == [name]
    assert isinstance(lake.open().table_status(table), SoftDeleted)
    with pytest.raises(TableNotFoundError, match="undrop"):
        lake.open().describe_table(table)
    lake.backend.undrop_table(table)
    assert lake.values(name) == [1]
    assert lake.open().table_history(table) == []
    lake.backend.protect_table(table)
    lake.backend.protect_table(table, protected=False)
    lake.backend.update_table(table, {"a": "b"})
    lake.drop(name)
    lake.backend.purge_table(table)
    assert lake.open().table_status(table) == NotFound()
    for act in (
        lambda: lake.create(name),
        lambda: lake.backend.declare_table(table),
    ):
        with pytest.raises(InvalidNameError):
            act()
    assert lake.directories() == set()


def test_a_directory_whose_name_holds_the_delimiter_is_read_and_not_mistaken(lake):
    """`["a$b"]` is a table of the root, `["a", "b"]` one of a namespace."""
    lake.make("a")
    lake.write_elsewhere("a$b", [1])
    lake.create(table_id("a", "b"), [2])
    one, other = table_id("a$b"), table_id("a", "b")
    assert lake.names() == ["a$b"]
    assert (lake.values(one), lake.values(other)) == ([1], [2])
    lake.drop(one)
    assert lake.open().table_status(other) == Exists()
    assert isinstance(lake.open().table_status(one), SoftDeleted)
    lake.drop(other)
    lake.backend.undrop_table(one)
    assert isinstance(lake.open().table_status(other), SoftDeleted)
    lake.backend.purge_table(other)
    assert lake.values(one) == [1]
    with pytest.raises(InvalidNameError):
        lake.backend.rename_table(one, table_id("c$d"))


def test_a_directory_in_the_way_of_a_namespace_keeps_both_usable(lake):
    """Another program makes a V1 table of a namespace's name."""
    lake.make("ns")
    lake.create(table_id("ns", "t"), [1])
    lake.write_elsewhere("ns", [2])
    backend = lake.open()
    assert backend.list_namespaces(ROOT) == ["ns"]
    assert backend.list_tables(NS) == ["t"]
    assert lake.values(table_id("ns", "t")) == [1]
    for name in backend.list_tables(ROOT):
        assert backend.table_status(table_id(name)) == Exists()
    lake.backend.drop_namespace(NS, cascade=True)
    lake.backend.undrop_namespace(NS)
    assert lake.values(table_id("ns", "t")) == [1]


# -- reads have no side effects -------------------------------------------------------------------


def test_reading_a_directory_of_v1_makes_no_manifest(lake):
    """Rule: "Reads have no side effects": no `__manifest` appears."""
    lake.write_elsewhere("t", [1])
    before = {meta.path for meta in lake.store.list_prefix("")}
    store = ObservedStore(lake.store)
    backend = lake.open(store=store)
    assert backend.list_tables(ROOT) == ["t"]
    assert [str(table) for table in backend.list_all_tables()] == ["t"]
    assert backend.list_namespaces(ROOT) == []
    assert backend.describe_namespace(ROOT) == {}
    assert backend.table_status(T) == Exists()
    assert backend.describe_table(T, check_declared=True).is_only_declared is False
    assert backend.list_purgable_tables() == []
    backend.table_history(T)
    assert set(store.counts) <= READS
    assert {meta.path for meta in lake.store.list_prefix("")} == before


def test_reading_a_manifest_changes_nothing(lake, v1, v2):
    """Neither versions, nor hints, nor indexes come from a look; rows do not follow by a look."""
    lake.make("ns")
    lake.create(table_id("ns", "t"))
    lake.create("t")
    v1.drop("t")
    before = {meta.path: meta.tag for meta in lake.store.list_prefix("")}
    for reader in (lake, v1, v2):
        store = ObservedStore(reader.store)
        backend = reader.open(store=store)
        backend.list_tables(ROOT)
        backend.list_all_tables()
        backend.list_namespaces(ROOT)
        backend.table_status(T)
        backend.list_purgable_tables()
        backend.table_history(T)
        assert set(store.counts) <= READS
    assert {meta.path: meta.tag for meta in lake.store.list_prefix("")} == before


# -- what pylance writes --------------------------------------------------------------------------


def test_a_row_that_another_program_puts_for_a_dropped_table_makes_it_live(lake):
    """Rule 1: the manifest is checked first."""
    lake.create("t", [1])
    lake.drop("t")
    _put_row(lake, "t", "t.lance")
    assert lake.names() == ["t"]
    assert lake.open().table_status(T) == Exists()
    assert lake.values("t") == [1]
    lake.drop("t")
    assert lake.names() == []
    assert lake.trash() == ["t"]
    lake.backend.undrop_table(T)
    assert lake.values("t") == [1]


def test_a_row_to_nowhere_is_a_declared_table(lake):
    _put_row(lake, "t", "t.lance")
    assert lake.names() == ["t"]
    assert lake.open().describe_table(T, check_declared=True).is_only_declared is True
    lake.create("t", [1])
    assert lake.values("t") == [1]
    _put_row(lake, "u", "u.lance")
    lake.drop("u")
    assert lake.names() == ["t"]


def test_pylance_in_its_default_mode_writes_and_we_read(lake):
    pylance = _pylance(lake)
    pylance.create_namespace(spec.CreateNamespaceRequest(id=["ns"], properties={"owner": "bob"}))
    pylance.declare_table(spec.DeclareTableRequest(id=["ns", "d"]))
    location = pylance.declare_table(spec.DeclareTableRequest(id=["t"])).location
    lance.write_dataset(rows([1]), location)
    assert lake.names() == ["t"]
    assert lake.values("t") == [1]
    assert lake.open().describe_namespace(NS) == {"owner": "bob"}
    assert lake.open().describe_table(table_id("ns", "d"), check_declared=True).is_only_declared
    lake.drop("t")
    assert _listed(pylance) == []
    lake.backend.undrop_table(T)
    assert _listed(pylance) == ["t"]


# -- V2 only --------------------------------------------------------------------------------------


def test_without_listings_only_rows_count(lake, v2):
    """Spec: "compatibility mode can be disabled to use only V2 behavior"."""
    lake.write_elsewhere("listed", [1])
    lake.create("both", [2])
    assert v2.names() == ["both"]
    assert v2.open().table_status(table_id("listed")) == NotFound()
    with pytest.raises(TableNotFoundError):
        v2.open().describe_table(table_id("listed"))
    with pytest.raises(TableNotFoundError):
        v2.open().drop_table(table_id("listed"))
    assert v2.values("both") == [2]
    info = v2.create("new", [3])
    assert not info.location.endswith("new.lance")
    assert lake.names() == ["both", "listed", "new"]


def test_a_catalog_goes_from_v1_to_v2_and_back(lake, v1, v2):
    """Deliver 6: "Back again by listing is possible because nothing moved"."""
    for name in ("a", "b"):
        v1.create(name, [1])
    for name in ("a", "b"):
        lake.backend.register_table(table_id(name), f"{name}.lance")
    assert v2.names() == ["a", "b"]
    v2.create("a", [2], CreateMode.OVERWRITE)
    v2.drop("b")
    assert v1.names() == ["a"]
    assert v1.values("a") == [2]
    v2.backend.undrop_table(table_id("b"))
    assert v1.names() == ["a", "b"]


def test_kinds_differ_only_by_their_flags():
    assert (COMPAT_DISK.flags, DISK.flags, MANIFEST_DISK.flags) == (
        {"manifest_enabled": True, "dir_listing_enabled": True},
        {"manifest_enabled": False, "dir_listing_enabled": True},
        {"manifest_enabled": True, "dir_listing_enabled": False},
    )


# -- what else lies in a table's directory ---------------------------------------------------------


def test_rename_carries_tags_and_the_metadata_of_versions_along(compat):
    catalog = compat.connect()
    table = catalog.create_table("t", pa.table({"n": [1]}))
    table.insert(pa.table({"n": [2]}))
    table.tags.create("first", 1)
    directory = "t.lance/_versions"
    staged = f"{directory}/{manifest_name(3)}-given"
    compat.store.put(staged, compat.store.get(f"{directory}/{manifest_name(2)}"))
    catalog.backend.create_table_version(table.info.id, 3, staged, metadata={"who": "me"})
    catalog.rename_table("t", "u")
    renamed = catalog.table("u")
    assert renamed.query(tag="first").read_all()["n"].to_pylist() == [1]
    assert {one.version: dict(one.metadata) for one in renamed.versions()}[3] == {"who": "me"}


def test_table_with_branches_is_not_moved(compat):
    """A branch holds the path of the directory in which it was made."""
    catalog = compat.connect()
    table = catalog.create_table("t", pa.table({"n": [1]}))
    table.branches.create("dev")
    with pytest.raises(UnsupportedError, match="delete the branches first"):
        catalog.rename_table("t", "u")
    assert table.insert(pa.table({"n": [2]})).version == 2
    table.branches.delete("dev")
    catalog.rename_table("t", "u")
    assert catalog.table("u").count() == 2


def test_branch_that_comes_while_a_table_is_renamed_is_not_acknowledged(compat):
    catalog = compat.connect()
    table = catalog.create_table("t", pa.table({"n": [1]}))
    put_seal(compat.store, "t.lance", "another's rename")
    with pytest.raises(InvalidTableStateError, match="being renamed"):
        table.branches.create("dev")
    with pytest.raises(ConcurrentModificationError, match="being renamed"):
        table.tags.create("first", 1)
