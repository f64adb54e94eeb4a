"""Checks and edits against one version of a manifest, and the tree they look at."""

from __future__ import annotations

import pytest

from mooring.directory.draft import Draft
from mooring.directory.entries import DropRecord, make_dropped, make_row, read_dropped
from mooring.directory.trash import Drop
from mooring.directory.tree import Tree
from mooring.errors import (
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from mooring.tables.manifest import NAMESPACE, TABLE, ManifestRow, Named, Placed


def _space(key: str) -> ManifestRow:
    return make_row(key, NAMESPACE, None, None)


def _table(key: str, location: str = "l") -> ManifestRow:
    return make_row(key, TABLE, location, None)


def _dropped(key: str) -> ManifestRow:
    record = DropRecord(top=key, deleted_at_ms=1, by="ann")
    return make_dropped(_table(key), "d", record)


ROWS = {
    row.object_id: row
    for row in [
        _space("a"),
        _space("a$c"),
        _space("b"),
        _table("t"),
        _table("a$t"),
        _table("a$s"),
        _table("a$c$t"),
        _table("a'$t"),
        _dropped("a$gone"),
    ]
}


@pytest.fixture
def draft():
    return Draft(ROWS, Tree(ROWS), {"owner": "ann"})


# -- the tree -------------------------------------------------------------------------------------


def test_children_are_named_in_order_by_kind():
    tree = Tree(ROWS)
    assert tree.names("", NAMESPACE) == ["a", "b"]
    assert tree.names("", TABLE) == ["t"]
    assert tree.names("a", TABLE) == ["s", "t"]
    assert tree.names("a", NAMESPACE) == ["c"]
    assert tree.names("a'", TABLE) == ["t"]
    assert tree.names("b", TABLE) == tree.names("absent", TABLE) == []
    assert sorted(tree.children("a")) == ["a$c", "a$s", "a$t"]
    assert sorted(tree.children("")) == ["a", "b", "t"]


def test_children_are_cut_after_a_name():
    tree = Tree({f"{number:02}": _table(f"{number:02}") for number in range(20)})
    assert tree.names("", TABLE, after="07", limit=2) == ["08", "09"]
    assert tree.names("", TABLE, after="075", limit=1) == ["08"]
    assert tree.names("", TABLE, after="19") == []
    assert tree.names("", TABLE, limit=1) == ["00"]


def test_a_tree_follows_its_rows():
    rows = dict(ROWS)
    tree = Tree(rows)
    rows["a$n"] = _table("a$n")
    del rows["a$s"]
    rows["t"] = _space("t")
    rows["a$t"] = _table("a$t", "elsewhere")
    gone = _dropped("b")
    rows[gone.object_id] = gone
    tree.update(["a$n", "a$s", "t", "a$t", gone.object_id, "never there"], rows)
    for parent in ("", "a", "a$c", "b"):
        for kind in (NAMESPACE, TABLE):
            assert tree.names(parent, kind) == Tree(rows).names(parent, kind)
    assert set(tree.dropped) == set(Tree(rows).dropped)


# -- looking --------------------------------------------------------------------------------------


def test_a_draft_shows_rows_as_they_would_be(draft):
    draft.put(_table("a$new"))
    draft.remove("a$t")
    draft.put(_table("a$s", "moved"))
    assert draft.get("a$new") == _table("a$new")
    assert draft.get("a$t") is None
    assert draft.get("a$s") == _table("a$s", "moved")
    assert draft.get("t") == ROWS["t"]
    keys = {row.object_id for row in draft.rows()}
    assert keys == (ROWS.keys() - {"a$t"}) | {"a$new"}


def test_descendants_are_found_with_the_edits_of_the_same_commit(draft):
    """A child that another change of this commit creates keeps its namespace from being dropped."""
    assert {row.object_id for row in draft.descendants("a")} == {"a$c", "a$s", "a$t", "a$c$t"}
    draft.remove("a$s")
    draft.put(_space("a$new"))
    draft.put(_table("a$new$t"))
    found = [row.object_id for row in draft.descendants("a")]
    assert set(found) == {"a$c", "a$t", "a$c$t", "a$new", "a$new$t"}
    assert found.index("a$new") < found.index("a$new$t")
    assert draft.descendants("b") == []


def test_the_trash_is_read_with_the_edits_of_the_same_commit(draft):
    assert [row.object_id for row in draft.dropped()] == [_dropped("a$gone").object_id]
    draft.put(_dropped("a$t"))
    draft.remove(_dropped("a$gone").object_id)
    assert [row.object_id for row in draft.dropped()] == [_dropped("a$t").object_id]


def test_a_draft_tells_what_it_looked_at(draft):
    draft.get("t")
    draft.require_namespace("a")
    assert draft.touched == {"t", "a"}
    assert not draft.saw_all
    draft.names("a", TABLE)
    assert draft.saw_all


def test_a_draft_tells_what_it_looked_for(draft):
    """What a scope covers is not named once more."""
    draft.descendants("a")
    draft.get("a$t")
    draft.dropped_as("a$gone")
    draft.remove(_dropped("a$gone").object_id)
    draft.placed_at("l")
    assert draft.scopes == {Named("a$"), Named("__mooring_trash$", "$a$gone"), Placed("l")}
    assert draft.touched == set()
    assert not draft.saw_all


def test_all_that_a_draft_looks_for_is_in_its_scopes(draft):
    """So a few rows of a version are enough to plan on."""
    asks = [
        lambda some: some.descendants("a"),
        lambda some: some.dropped_as("a$gone"),
        lambda some: some.dropped_as("a", ["a$gone"]),
        lambda some: some.dropped_together("d"),
        lambda some: some.placed_at("l"),
        lambda some: some.placed_at("l/inside"),
    ]
    for ask in asks:
        found = ask(draft)
        assert found
        seen = {key: row for key, row in ROWS.items() if any(s.holds(row) for s in draft.scopes)}
        assert ask(Draft(seen, Tree(seen), {})) == found
        draft.scopes.clear()


def test_the_trash_of_a_name_is_read_with_the_edits_of_the_same_commit(draft):
    gone, other = _dropped("a$gone"), _dropped("a$t")
    assert draft.dropped_as("a$gone") == draft.dropped_together("d") == [gone]
    draft.remove(gone.object_id)
    draft.put(other)
    assert draft.dropped_as("a$gone") == []
    assert draft.dropped_as("a", ["a$t"]) == draft.dropped_together("d") == [other]


def test_rows_are_found_by_where_they_lie(draft):
    draft.put(_table("b$x", "l/deeper/x"))
    draft.put(_table("b$y", "lx"))
    assert {row.object_id for row in draft.placed_at("l/deeper")} == {
        "b$x",
        *(key for key, row in ROWS.items() if row.location == "l"),
    }
    assert [row.object_id for row in draft.placed_at("lx/z")] == ["b$y"]
    assert draft.placed_at("/l") == draft.placed_at("s3://l/x") == []


# -- drops ----------------------------------------------------------------------------------------


def _drop(drop: Drop, rows: dict, version: int, key: str = "a$t") -> ManifestRow:
    draft = Draft(rows, Tree(rows), {}, version)
    drop.move(draft, key, [rows[key]], None)
    [row] = draft.change.added
    return row


def test_a_drop_that_is_tried_again_makes_the_same_row():
    """What was written for the first try serves the next."""
    drop = Drop("id", "ann", 5)
    assert _drop(drop, ROWS, 10) == _drop(drop, ROWS, 99)


def test_a_drop_counts_after_all_others_of_its_name():
    """Also where they came between its tries: clocks and versions do not tell."""
    drop = Drop("id", "ann", 5)
    first = _drop(drop, ROWS, 10)
    between = _drop(Drop("other", "bob", 5), ROWS, 20)
    again = _drop(drop, {**ROWS, between.object_id: between}, 21)
    seqs = [read_dropped(row).record.seq for row in (first, between, again)]
    assert seqs == sorted(set(seqs))


# -- checks ---------------------------------------------------------------------------------------


def test_checks_refuse_what_is_not_so(draft):
    draft.require_namespace("")
    draft.require_namespace("a$c")
    draft.require_free("a$free")
    assert draft.require_table("a$t") == ROWS["a$t"]
    for absent in ("t", "absent", "a$t"):
        with pytest.raises(NamespaceNotFoundError, match=absent.replace("$", r"\$")):
            draft.require_namespace(absent)
    for absent in ("a", "absent"):
        with pytest.raises(TableNotFoundError):
            draft.require_table(absent)
    with pytest.raises(TableAlreadyExistsError):
        draft.require_free("t")
    with pytest.raises(NamespaceAlreadyExistsError):
        draft.require_free("a")


# -- edits ----------------------------------------------------------------------------------------


def test_a_change_holds_what_differs_in_the_end(draft):
    draft.put(ROWS["t"])
    draft.put(_table("a$new"))
    draft.remove("a$new")
    draft.remove("never there")
    assert draft.change.is_empty
    draft.put(_table("t", "moved"))
    draft.remove("b")
    assert draft.change.removed == {"t", "b"}
    assert draft.change.added == (_table("t", "moved"),)


def test_an_undone_edit_leaves_what_was_kept_before(draft):
    draft.put(_table("a$one"))
    draft.remove("t")
    draft.keep()
    draft.put(_table("a$one", "other"))
    draft.put(_table("t", "other"))
    draft.put(_table("a$two"))
    draft.undo()
    assert draft.get("a$one") == _table("a$one")
    assert draft.get("t") is None
    assert draft.get("a$two") is None
    assert draft.change.removed == {"t"}
    assert draft.change.added == (_table("a$one"),)
