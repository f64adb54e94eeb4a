"""Branches: lines of versions of their own.

Spec: lance-rest-openapi, ListTableBranches, CreateTableBranch, DeleteTableBranch.
"""

from __future__ import annotations

import lance
import lance_namespace as spec
import pyarrow as pa
import pytest
from lance_namespace_urllib3_client import models

from mooring.errors import (
    InvalidInputError,
    InvalidTableStateError,
    ReadOnlyError,
    TableBranchAlreadyExistsError,
    TableBranchNotFoundError,
    TableNotFoundError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnreadableError,
)
from mooring.store.scripted import Crash
from mooring.tables.branches import Branches
from mooring.tables.handle import At
from tests.conformance.content import ask, fails_with, fill, speak, together, watch
from tests.conformance.meanwhile import Meanwhile

BAD_NAMES = ["../x", "a/../b", "a b", "/a", "a/", "a//b", ".", "a/./b", "a..b", "a.lock", "a\\b"]


@pytest.fixture
def table(plain_lake):
    return fill(plain_lake)


def _values(table, **at) -> list[int]:
    return table.to_lance(**at).to_table()["n"].to_pylist()


def _tree(lake) -> list[str]:
    return sorted(meta.path for meta in lake.store.list_prefix("t.lance/tree"))


class _CrashAt:
    """Ends a process before its first call of a kind."""

    def __init__(self, verb: str, part: str) -> None:
        self._verb, self._part = verb, part

    def before(self, call):
        if call.verb == self._verb and self._part in call.path:
            raise Crash

    def after(self, call, result): ...


# -- on every kind of catalog ----------------------------------------------------------------------


def test_a_branch_is_made_written_listed_and_deleted_by_requests(any_lake):
    """Spec: CreateTableBranch, ListTableBranches, DeleteTableBranch."""
    table = fill(any_lake)
    ask(any_lake, "create_table_branch", name="dev", from_version=2)
    ask(any_lake, "create_table_branch", name="dev/sub", from_branch="dev")
    table.insert(pa.table({"n": [9]}), branch="dev")
    found = ask(any_lake, "list_table_branches").branches
    sizes = [record.size_bytes for record in table.versions()]
    dev, sub = found["dev"], found["dev/sub"]
    assert (dev.parent_branch, dev.parent_version, dev.manifest_size) == (None, 2, sizes[1])
    assert (sub.parent_branch, sub.parent_version) == ("dev", 2)
    assert dev.metadata == {"mooring.by": any_lake.connect().backend.author}
    assert _values(table, branch="dev") == [0, 1, 2, 3, 9]
    assert _values(table, branch="dev/sub") == [0, 1, 2, 3]
    assert table.count() == 6
    ask(any_lake, "delete_table_branch", name="dev/sub")
    ask(any_lake, "delete_table_branch", name="dev")
    assert ask(any_lake, "list_table_branches").branches == {}
    with pytest.raises(TableBranchNotFoundError):
        table.to_lance(branch="dev")


def test_of_many_creators_of_one_branch_one_wins(any_lake):
    """Also where they begin at different versions; in Lance the loser's version stays in it."""
    table = fill(any_lake)
    acts = [
        lambda version=version: table.branches.create("dev", version=version)
        for version in (1, 2, 3) * (1 if any_lake.kind.server else 3)
    ]
    outcomes = together(acts)
    won = [one for one in outcomes if not isinstance(one, Exception)]
    lost = [one for one in outcomes if isinstance(one, Exception)]
    assert len(won) == 1
    assert {type(one) for one in lost} == {TableBranchAlreadyExistsError}
    assert table.branches.list() == won
    (only,) = any_lake.open().list_table_versions(table.info.id, branch="dev")
    assert only.version == won[0].parent_version
    assert table.to_lance(branch="dev").count_rows() == 2 * only.version


def test_lance_works_with_branches_of_mooring_and_mooring_with_those_of_lance(any_lake):
    table = fill(any_lake)
    table.branches.create("ours/a", version=2)
    dataset = table.to_lance()
    assert dataset.branches.list()["ours/a"]["parent_version"] == 2
    lance.write_dataset(
        pa.table({"n": [7]}), dataset.checkout_version(("ours/a", None)), mode="append"
    )
    dataset.create_branch("theirs", ("ours/a", None))
    assert [(one.name, one.parent_branch) for one in table.branches.list()] == [
        ("ours/a", None),
        ("theirs", "ours/a"),
    ]
    assert _values(table, branch="theirs") == [0, 1, 2, 3, 7]
    with pytest.raises(OSError, match="referenced by"):
        dataset.branches.delete("ours/a")
    table.branches.delete("theirs")
    dataset.branches.delete("ours/a")
    assert table.branches.list() == []


def test_lance_makes_a_branch_through_a_catalog_that_manages_versions(any_lake):
    fill(any_lake)
    managed = speak(any_lake, **any_lake.managed)
    dataset = lance.dataset(
        namespace_client=managed,
        table_id=any_lake.path("t"),
        storage_options=any_lake.options or None,
    )
    branch = dataset.create_branch("dev", 2)
    lance.write_dataset(pa.table({"n": [7]}), branch, mode="append")
    table = any_lake.connect().table(any_lake.id("t"))
    assert table.branches.names() == ["dev"]
    assert _values(table, branch="dev") == [0, 1, 2, 3, 7]


# -- variety, on disk ------------------------------------------------------------------------------


def test_a_branch_begins_at_a_version_a_branch_or_a_tag(table):
    table.tags.create("v1", 1)
    assert table.branches.create("a").parent_version == 3
    assert table.branches.create("b", version=2).parent_version == 2
    table.insert(pa.table({"n": [9]}), branch="b")
    assert table.branches.create("c", branch="b").parent_version == 3
    assert table.branches.create("d", tag="v1").parent_version == 1
    table.tags.create("on-b", 3, branch="b")
    made = table.branches.create("e", tag="on-b")
    assert (made.parent_branch, made.parent_version) == ("b", 3)
    assert table.branches.get("e") == made
    assert _values(table, branch="e") == _values(table, branch="c") == [0, 1, 2, 3, 9]


def test_main_is_no_branch_like_others(plain_lake, table):
    assert table.branches.create("a", branch="main", version=1).parent_branch is None
    for operation in ("create_table_branch", "delete_table_branch"):
        with fails_with(13):
            ask(plain_lake, operation, name="main")
    versions = ask(plain_lake, "list_table_versions", branch="main").versions
    assert [one.version for one in versions] == [3, 2, 1]


def test_a_branch_that_exists_is_not_made_again(plain_lake, table):
    table.branches.create("dev", version=2)
    for version in (None, 1, 2):
        with fails_with(23):
            ask(plain_lake, "create_table_branch", name="dev", from_version=version)
    assert table.branches.get("dev").parent_version == 2


def test_a_branch_begins_only_at_what_is_there(plain_lake, table):
    with fails_with(11):
        ask(plain_lake, "create_table_branch", name="x", from_version=9)
    with fails_with(11):
        ask(plain_lake, "create_table_branch", name="x", from_version=0)
    with fails_with(22):
        ask(plain_lake, "create_table_branch", name="x", from_branch="nope")
    with fails_with(22):
        ask(plain_lake, "create_table_branch", name="x", from_branch="nope", from_version=1)
    with pytest.raises(TableTagNotFoundError):
        table.branches.create("x", tag="nope")
    with pytest.raises(InvalidInputError, match="a tag names a version"):
        table.branches.create("x", tag="nope", version=1)
    assert table.branches.list() == []
    assert _tree(plain_lake) == []


@pytest.mark.parametrize("name", ["", *BAD_NAMES, "x" * 300, "dev/data", "dev/_versions"])
def test_a_name_that_cannot_be_is_refused(plain_lake, table, name):
    with fails_with(13):
        ask(plain_lake, "create_table_branch", name=name)
    with pytest.raises(InvalidInputError, match="branch"):
        table.branches.create(name)
    assert _tree(plain_lake) == []


@pytest.mark.parametrize("name", BAD_NAMES)
def test_no_request_leaves_the_tables_directory_by_a_branchs_name(plain_lake, table, name):
    backend = plain_lake.open()
    target = table.info.id
    staged = "t.lance/_versions/x"
    for act in (
        lambda: backend.list_table_versions(target, branch=name),
        lambda: backend.describe_table_version(target, 1, branch=name),
        lambda: backend.create_table_version(target, 4, staged, branch=name),
        lambda: backend.delete_table_versions(target, [], branch=name),
        lambda: table.to_lance(branch=name),
        lambda: table.insert([{"n": 1}], branch=name),
        lambda: table.stats(branch=name),
        lambda: table.branches.delete(name),
    ):
        with pytest.raises(InvalidInputError, match="cannot name a branch"):
            act()
    for operation, more in (
        ("list_table_versions", {}),
        ("describe_table_version", {"version": 1}),
        ("create_table_tag", {"tag": "x", "version": 1}),
        ("get_table_stats", {}),
    ):
        with fails_with(13):
            ask(plain_lake, operation, branch=name, **more)


@pytest.mark.parametrize("name", ["a/b/c", "-a", "v1.2", ".a", "ü", "_versions2", "x" * 200])
def test_any_other_name_works_in_lance_too(table, name):
    table.branches.create(name, version=2)
    assert list(table.to_lance().branches.list()) == [name]
    assert table.to_lance().checkout_version((name, None)).count_rows() == 4
    table.branches.delete(name)
    assert table.to_lance().branches.list() == {}


def test_branches_are_listed_in_pages(plain_lake, table):
    for name in ("c", "b/x", "a"):
        table.branches.create(name)
    first = ask(plain_lake, "list_table_branches", limit=2)
    second = ask(plain_lake, "list_table_branches", limit=2, page_token=first.page_token)
    assert [list(page.branches) for page in (first, second)] == [["a", "b/x"], ["c"]]
    assert second.page_token is None


def test_an_unknown_branch_is_not_found(plain_lake, table):
    with fails_with(22):
        ask(plain_lake, "delete_table_branch", name="nope")
    with pytest.raises(TableBranchNotFoundError, match="no branch 'nope'"):
        table.branches.get("nope")
    with pytest.raises(TableBranchNotFoundError, match="no branch 'nope'"):
        table.insert([{"n": 1}], branch="nope")


def test_a_branch_that_others_hang_on_stays(plain_lake, table):
    table.branches.create("dev")
    table.branches.create("sub", branch="dev")
    with fails_with(19):
        ask(plain_lake, "delete_table_branch", name="dev")
    table.branches.delete("sub")
    table.tags.create("v1", 3, branch="dev")
    with pytest.raises(InvalidTableStateError, match="tag 'v1' names a version of it"):
        table.branches.delete("dev")
    table.tags.delete("v1")
    table.branches.delete("dev")
    assert _tree(plain_lake) == []


def test_a_branch_in_the_directory_of_another_survives_its_deletion(plain_lake, table):
    """Lance leaves the files of the outer one, and cannot make it again."""
    table.branches.create("dev", version=1)
    table.insert(pa.table({"n": [8]}), branch="dev")
    table.branches.create("dev/x", version=2)
    table.branches.delete("dev")
    assert all(path.startswith("t.lance/tree/dev/x/") for path in _tree(plain_lake))
    assert _values(table, branch="dev/x") == [0, 1, 2, 3]
    table.branches.create("dev", version=3)
    assert _values(table, branch="dev") == [0, 1, 2, 3, 4, 5]


def test_a_read_only_catalog_refuses_changes_of_branches(plain_lake, table):
    table.branches.create("dev")
    reading = plain_lake.connect(read_only=True).table("t")
    with pytest.raises(ReadOnlyError):
        reading.branches.create("x")
    with pytest.raises(ReadOnlyError):
        reading.branches.delete("dev")
    assert reading.branches.names() == ["dev"]


def test_a_branch_of_a_table_that_is_dropped_meanwhile_is_not_acknowledged(plain_lake, table):
    drop = Meanwhile(
        lambda: plain_lake.connect().drop_table("t"), "put_new", "_refs/branches", after=True
    )
    with pytest.raises(TableNotFoundError):
        Branches(watch(table.handle, drop)).create("dev")
    assert drop.done


def test_a_deletion_in_a_table_that_is_dropped_meanwhile_is_not_acknowledged(plain_lake, table):
    table.branches.create("dev")
    drop = Meanwhile(
        lambda: plain_lake.connect().drop_table("t"), "delete", "_refs/branches", after=True
    )
    with pytest.raises(TableNotFoundError):
        Branches(watch(table.handle, drop)).delete("dev")
    assert drop.done


def test_branches_of_a_table_that_was_dropped_before_are_not_touched(plain_lake, table):
    table.branches.create("dev")
    plain_lake.connect().drop_table("t")
    with pytest.raises(TableNotFoundError):
        table.branches.create("x")
    with pytest.raises(TableNotFoundError):
        table.branches.delete("dev")
    plain_lake.connect().undrop_table("t")
    assert table.branches.names() == ["dev"]


def test_a_branch_of_a_version_that_is_cleaned_up_meanwhile_is_not_acknowledged(plain_lake, table):
    clean = Meanwhile(lambda: table.compact(keep=1), "put_new", "_refs/branches")
    with pytest.raises(TableVersionNotFoundError):
        Branches(watch(table.handle, clean)).create("dev", version=2)
    assert clean.done
    assert table.branches.names() == []
    assert _tree(plain_lake) == []


def test_a_branch_whose_parent_is_deleted_meanwhile_is_not_acknowledged(plain_lake, table):
    table.branches.create("dev")
    rival = Meanwhile(lambda: table.branches.delete("dev"), "put_new", "_refs/branches")
    with pytest.raises(TableBranchNotFoundError):
        Branches(watch(table.handle, rival)).create("sub", branch="dev")
    assert rival.done
    assert table.branches.names() == []
    assert _tree(plain_lake) == []


def test_a_loser_leaves_no_file(plain_lake, table):
    rival = Meanwhile(lambda: table.branches.create("dev", version=1), "put_new", "_refs/branches")
    with pytest.raises(TableBranchAlreadyExistsError):
        Branches(watch(table.handle, rival)).create("dev", version=3)
    assert rival.outcome.parent_version == 1
    kinds = [path.rpartition("/")[2].partition(".")[2] for path in _tree(plain_lake)]
    assert sorted(kinds) == ["json", "manifest", "txn"]
    assert table.insert(pa.table({"n": [5]}), branch="dev").version == 2
    assert _values(table, branch="dev") == [0, 1, 5]


def test_a_creator_that_crashes_before_the_decision_harms_nobody(plain_lake, table):
    crash = _CrashAt("put_new", "_refs/branches")
    with pytest.raises(Crash):
        Branches(watch(table.handle, crash)).create("dev")
    assert table.branches.list() == []
    table.branches.create("dev", version=2)
    assert _values(table, branch="dev") == [0, 1, 2, 3]


def test_what_a_creator_left_that_crashed_after_the_decision_can_be_deleted(plain_lake, table):
    def die(*_):
        raise Crash

    handle = table.handle
    handle.ledger.create = die
    with pytest.raises(Crash):
        Branches(handle).create("dev")
    with pytest.raises(TableBranchAlreadyExistsError):
        table.branches.create("dev")
    table.branches.delete("dev")
    table.branches.create("dev")
    assert _values(table, branch="dev") == [0, 1, 2, 3, 4, 5]


def test_what_is_left_of_a_branch_without_a_name_is_in_the_way_until_it_is_deleted(
    plain_lake, table
):
    """Lance leaves it where it dies between the two files; and then has no way to delete it."""
    table.branches.create("dev", version=2)
    plain_lake.store.delete(["t.lance/_refs/branches/dev.json"])
    with pytest.raises(InvalidTableStateError, match="delete the branch first"):
        table.branches.create("dev", version=3)
    table.branches.delete("dev")
    table.branches.create("dev", version=3)
    assert _values(table, branch="dev") == [0, 1, 2, 3, 4, 5]


def test_a_damaged_branch_is_named(plain_lake, table):
    plain_lake.store.put("t.lance/_refs/branches/bad.json", b"{")
    with pytest.raises(UnreadableError, match="branch 'bad' is damaged"):
        table.branches.list()


def test_a_table_without_data_has_nothing_to_branch_from(plain_lake):
    plain_lake.connect().declare_table("t")
    with fails_with(11):
        ask(plain_lake, "create_table_branch", name="dev")
    with pytest.raises(TableVersionNotFoundError, match="only declared"):
        plain_lake.connect().table("t").branches.create("dev")


def test_a_state_knows_main_by_no_name():
    assert At(branch="main") == At(branch="") == At()
    with pytest.raises(InvalidInputError):
        At(branch="..")


def test_lance_is_told_that_a_branch_is_not_there_without_an_error(plain_lake, table):
    """Lance asks before it makes one; everybody else gets the error."""
    namespace = speak(plain_lake)
    asked = {"id": ["t"], "branch": "nope", "limit": 1}
    assert namespace.list_table_versions(asked).versions == []
    with fails_with(22):
        namespace.list_table_versions(models.ListTableVersionsRequest(**asked))
    assert isinstance(namespace, spec.LanceNamespace)
    assert table.branches.names() == []
