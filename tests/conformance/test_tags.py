"""Tags: names for versions.

Spec: lance-rest-openapi, ListTableTags, GetTableTagVersion, CreateTableTag, UpdateTableTag,
DeleteTableTag.
"""

from __future__ import annotations

import pytest

from mooring.errors import (
    InvalidInputError,
    ReadOnlyError,
    TableBranchNotFoundError,
    TableNotFoundError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
    UnreadableError,
)
from mooring.tables.tags import Tags
from tests.conformance.content import ask, fails_with, fill, together, watch
from tests.conformance.meanwhile import Meanwhile


@pytest.fixture
def table(plain_lake):
    return fill(plain_lake)


# -- on every kind of catalog ----------------------------------------------------------------------


def test_a_tag_is_created_found_moved_and_deleted_by_requests(any_lake):
    """Spec: CreateTableTag to DeleteTableTag."""
    table = fill(any_lake)
    ask(any_lake, "create_table_tag", tag="v1", version=2)
    assert ask(any_lake, "get_table_tag_version", tag="v1").version == 2
    ask(any_lake, "update_table_tag", tag="v1", version=1)
    (found,) = ask(any_lake, "list_table_tags").tags.values()
    size = table.versions()[-1].size_bytes
    assert (found.version, found.branch, found.manifest_size) == (1, None, size)
    assert table.to_lance(tag="v1").count_rows() == 2
    ask(any_lake, "delete_table_tag", tag="v1")
    assert ask(any_lake, "list_table_tags").tags == {}


def test_of_many_creators_of_one_tag_one_wins(any_lake):
    table = fill(any_lake)
    acts = [
        lambda version=version: table.tags.create("v1", version)
        for version in (1, 2, 3) * (1 if any_lake.kind.server else 4)
    ]
    outcomes = together(acts)
    won = [one for one in outcomes if not isinstance(one, Exception)]
    lost = [one for one in outcomes if isinstance(one, Exception)]
    assert len(won) == 1
    assert {type(one) for one in lost} == {TableTagAlreadyExistsError}
    assert table.tags.get("v1") == won[0]


def test_lance_reads_tags_of_mooring_and_mooring_those_of_lance(any_lake):
    table = fill(any_lake)
    made = table.tags.create("ours", 2)
    dataset = table.to_lance()
    (found,) = dataset.tags.list().values()
    assert (found["version"], found["manifest_size"]) == (2, made.size_bytes)
    assert found["created_at"] == made.created_at
    assert dataset.checkout_version("ours").count_rows() == 4
    dataset.tags.update("ours", 3)
    dataset.tags.create("theirs", 1)
    assert [(tag.name, tag.version) for tag in table.tags.list()] == [("ours", 3), ("theirs", 1)]


# -- variety, on disk ------------------------------------------------------------------------------


def test_a_tag_names_the_newest_version_unless_told_otherwise(table):
    assert table.tags.create("now").version == 3
    assert table.tags.create("first", 1).version == 1
    assert table.tags.update("first").version == 3


def test_a_tag_tells_who_made_it_and_when(table):
    made = table.tags.create("v1", 2)
    moved = table.tags.update("v1", 3)
    assert made.metadata == {"mooring.by": "alice"}
    assert moved.created_at == made.created_at
    assert moved.updated_at >= made.updated_at


def test_a_tag_can_name_a_version_of_a_branch(plain_lake, table):
    """The branch of the request counts; pylance ignores it."""
    table.branches.create("dev", version=2)
    table.insert([{"n": 9}], branch="dev")
    ask(plain_lake, "create_table_tag", tag="d", version=3, branch="dev")
    found = ask(plain_lake, "get_table_tag_version", tag="d")
    assert (found.version, found.branch) == (3, "dev")
    assert table.to_lance(tag="d").to_table()["n"].to_pylist() == [0, 1, 2, 3, 9]
    ask(plain_lake, "update_table_tag", tag="d", version=2, branch="main")
    assert table.tags.get("d").branch is None


def test_a_tag_that_exists_is_not_created_again(plain_lake, table):
    table.tags.create("v1", 1)
    with fails_with(9):
        ask(plain_lake, "create_table_tag", tag="v1", version=2)
    with pytest.raises(TableTagAlreadyExistsError, match="has a tag 'v1' already"):
        table.tags.create("v1", 1)
    assert table.tags.get("v1").version == 1


@pytest.mark.parametrize("operation", ["get_table_tag_version", "delete_table_tag"])
def test_an_unknown_tag_is_not_found(plain_lake, table, operation):
    with fails_with(8):
        ask(plain_lake, operation, tag="nope")
    with fails_with(8):
        ask(plain_lake, "update_table_tag", tag="nope", version=1)
    assert table.tags.list() == []


@pytest.mark.parametrize("operation", ["create_table_tag", "update_table_tag"])
def test_a_tag_names_only_versions_that_are_there(plain_lake, table, operation):
    table.tags.create("old", 1)
    tag = "old" if operation == "update_table_tag" else "new"
    with fails_with(11):
        ask(plain_lake, operation, tag=tag, version=9)
    with fails_with(22):
        ask(plain_lake, operation, tag=tag, version=1, branch="nope")
    with fails_with(13):
        ask(plain_lake, operation, tag=tag, version=0)
    assert [(found.name, found.version) for found in table.tags.list()] == [("old", 1)]


@pytest.mark.parametrize(
    "name", ["", "a/b", "../x", "a b", ".a", "a.", "a..b", "a.lock", "a@b", "x" * 300, "ü"]
)
def test_a_name_that_cannot_be_is_refused(plain_lake, table, name):
    """The last one is taken by pylance, which then can list no tag of the table any more."""
    for operation in ("create_table_tag", "update_table_tag"):
        with fails_with(13):
            ask(plain_lake, operation, tag=name, version=1)
    for operation in ("get_table_tag_version", "delete_table_tag"):
        with fails_with(13):
            ask(plain_lake, operation, tag=name)
    assert table.tags.names() == []


@pytest.mark.parametrize("name", ["v1.2.3", "-a", "A_b", "main", "x" * 250])
def test_any_other_name_works_in_lance_too(table, name):
    table.tags.create(name, 2)
    assert table.to_lance().checkout_version(name).version == 2
    assert list(table.to_lance().tags.list()) == [name]


def test_tags_are_listed_in_pages(plain_lake, table):
    for name in "edcba":
        table.tags.create(name, 1)
    first = ask(plain_lake, "list_table_tags", limit=2)
    second = ask(plain_lake, "list_table_tags", limit=2, page_token=first.page_token)
    third = ask(plain_lake, "list_table_tags", limit=2, page_token=second.page_token)
    assert [list(page.tags) for page in (first, second, third)] == [["a", "b"], ["c", "d"], ["e"]]
    assert third.page_token is None
    with fails_with(13):
        ask(plain_lake, "list_table_tags", limit=0)
    with fails_with(13):
        ask(plain_lake, "list_table_tags", page_token="?")


def test_a_read_only_catalog_refuses_changes_of_tags(plain_lake, table):
    table.tags.create("v1", 1)
    reading = plain_lake.connect(read_only=True).table("t")
    for act in (
        lambda: reading.tags.create("v2", 1),
        lambda: reading.tags.update("v1", 2),
        lambda: reading.tags.delete("v1"),
    ):
        with pytest.raises(ReadOnlyError):
            act()
    assert [(tag.name, tag.version) for tag in reading.tags.list()] == [("v1", 1)]


@pytest.mark.parametrize("verb", ["put_new", "put", "delete"])
def test_a_change_of_a_table_that_is_dropped_meanwhile_is_not_acknowledged(plain_lake, verb):
    table = fill(plain_lake)
    table.tags.create("v1", 1)
    drop = Meanwhile(lambda: plain_lake.connect().drop_table("t"), verb, "_refs/tags", after=True)
    tags = Tags(watch(table.handle, drop))
    acts = {
        "put_new": lambda: tags.create("v2", 1),
        "put": lambda: tags.update("v1", 2),
        "delete": lambda: tags.delete("v1"),
    }
    with pytest.raises(TableNotFoundError, match="was dropped"):
        acts[verb]()
    assert drop.done


def test_tags_of_a_table_that_was_dropped_before_are_not_touched(plain_lake, table):
    table.tags.create("v1", 1)
    plain_lake.connect().drop_table("t")
    for act in (
        lambda: table.tags.create("v2", 1),
        lambda: table.tags.update("v1", 2),
        lambda: table.tags.delete("v1"),
    ):
        with pytest.raises(TableNotFoundError):
            act()
    plain_lake.connect().undrop_table("t")
    assert [(tag.name, tag.version) for tag in table.tags.list()] == [("v1", 1)]


def test_a_tag_of_a_version_that_is_cleaned_up_meanwhile_is_not_acknowledged(plain_lake, table):
    clean = Meanwhile(lambda: table.compact(keep=1), "put_new", "_refs/tags", after=False)
    with pytest.raises(TableVersionNotFoundError):
        Tags(watch(table.handle, clean)).create("v1", 1)
    assert clean.done
    assert table.tags.names() == []


def test_a_tag_on_a_branch_that_is_deleted_meanwhile_is_not_acknowledged(table):
    table.branches.create("dev")
    rival = Meanwhile(lambda: table.branches.delete("dev"), "put_new", "_refs/tags")
    with pytest.raises(TableBranchNotFoundError):
        Tags(watch(table.handle, rival)).create("v1", 3, branch="dev")
    assert rival.done
    assert table.tags.names() == []


def test_an_update_that_others_overtake_is_made_on_what_they_left(moto_lake):
    table = fill(moto_lake)
    table.tags.create("v1", 1)
    rival = Meanwhile(lambda: table.tags.update("v1", 2), "put_if", "_refs/tags")
    moved = Tags(watch(table.handle, rival)).update("v1", 3)
    assert rival.outcome.version == 2
    assert table.tags.get("v1") == moved
    assert moved.updated_at >= rival.outcome.updated_at


def test_an_update_loses_to_a_deletion(moto_lake):
    table = fill(moto_lake)
    table.tags.create("v1", 1)
    rival = Meanwhile(lambda: table.tags.delete("v1"), "put_if", "_refs/tags")
    with pytest.raises(TableTagNotFoundError):
        Tags(watch(table.handle, rival)).update("v1", 3)
    assert table.tags.names() == []


def test_a_damaged_tag_is_named(plain_lake, table):
    plain_lake.store.put("t.lance/_refs/tags/bad.json", b"{")
    with pytest.raises(UnreadableError, match="tag 'bad' is damaged"):
        table.tags.list()


def test_a_table_without_data_has_no_version_to_name(plain_lake):
    plain_lake.connect().declare_table("t")
    with fails_with(11):
        ask(plain_lake, "create_table_tag", tag="v1", version=1)
    with pytest.raises(TableVersionNotFoundError, match="only declared"):
        plain_lake.connect().table("t").tags.create("v1")
    assert ask(plain_lake, "list_table_tags").tags == {}


def test_tags_of_a_table_that_is_not_there_are_an_error(plain_lake):
    fill(plain_lake)
    with fails_with(4):
        ask(plain_lake, "list_table_tags", id=["nope"])
    with fails_with(4):
        ask(plain_lake, "create_table_tag", id=["nope"], tag="v1", version=1)


def test_errors_in_python_have_classes_of_their_own(table):
    with pytest.raises(TableBranchNotFoundError, match="no branch 'nope'"):
        table.tags.create("v1", 1, branch="nope")
    with pytest.raises(InvalidInputError, match="cannot name a tag"):
        table.tags.create("a/b", 1)
    with pytest.raises(TableTagNotFoundError, match="no tag 'nope'"):
        table.tags.get("nope")


def test_tags_work_in_namespaces_and_with_names_that_uris_quote(nested_s3):
    nested_s3.make("ns")
    catalog = nested_s3.connect()
    table = catalog.create_table("ns$t ü", [{"n": 1}])
    table.tags.create("v1", 1)
    assert list(table.to_lance().tags.list()) == ["v1"]
    assert table.to_lance(tag="v1").count_rows() == 1


def test_a_page_of_tags_reads_only_its_own(plain_lake, table):
    for name in "abc":
        table.tags.create(name, 1)
    plain_lake.store.put("t.lance/_refs/tags/c.json", b"{")
    assert list(ask(plain_lake, "list_table_tags", limit=2).tags) == ["a", "b"]
