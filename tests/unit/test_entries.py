"""What the rows of a manifest mean."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.directory.entries import (
    TRASH,
    DropRecord,
    RenameIntent,
    dropped_id,
    intent_of,
    is_dropped,
    is_namespace,
    is_table,
    make_dropped,
    make_row,
    object_id_of,
    parent_of,
    properties_of,
    read_dropped,
    with_intent,
    with_properties,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.tables.manifest import NAMESPACE, TABLE, ManifestRow

ROW = ManifestRow("a$t", TABLE, "01234567_a$t", '{"owner":"ann"}', ("x",))
RECORD = DropRecord(top="a", deleted_at_ms=5, by="bob", seq=3, ttl_ms=10)
INTENT = RenameIntent(nonce="n", to="a$u", location="l", by="ann")


def test_a_row_is_a_tables_or_a_namespaces_or_nobodys():
    """Spec: directory-namespace, "`object_type`: Either "namespace" or "table""."""
    space = make_row("a", NAMESPACE, None, None)
    assert (is_table(ROW), is_namespace(ROW)) == (True, False)
    assert (is_table(space), is_namespace(space)) == (False, True)
    assert (is_table(None), is_namespace(None)) == (False, False)
    other = ManifestRow("v", "view")
    assert (is_table(other), is_namespace(other)) == (False, False)


@pytest.mark.parametrize(
    ("key", "parent", "names"),
    [("t", "", ("t",)), ("a$t", "a", ("a", "t")), ("a$b$t", "a$b", ("a", "b", "t"))],
)
def test_an_identifier_tells_its_parent(key, parent, names):
    """Spec: directory-namespace, "the namespace path joined by `$` delimiter"."""
    assert parent_of(key) == parent
    assert object_id_of(key) == ObjectId(names)
    assert object_id_of("") == ROOT


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        (None, {}),
        ("", {}),
        ("junk", {}),
        ("[1]", {}),
        ("null", {}),
        ('{"a":"b"}', {"a": "b"}),
        ('{"a":7,"b":null,"c":[1,"x"]}', {"a": "7", "b": "null", "c": '[1,"x"]'}),
    ],
)
def test_metadata_is_read_as_strings(text, properties):
    assert properties_of(replace(ROW, metadata=text)) == properties


def test_a_row_without_properties_has_no_metadata():
    """As pylance writes it."""
    assert make_row("a", NAMESPACE, None, {}).metadata is None
    assert with_properties(ROW, {}).metadata is None
    assert with_properties(ROW, {"it's": '"'}).metadata == '{"it\'s":"\\""}'


def test_a_dropped_row_keeps_all_of_the_row():
    dropped = make_dropped(ROW, "d1", RECORD)
    assert dropped.object_id == f"{TRASH}$d1$a$t"
    assert is_dropped(dropped.object_id)
    assert dropped_id(dropped.object_id) == "a$t"
    assert (dropped.object_type, dropped.location) == (TABLE, ROW.location)
    found = read_dropped(dropped)
    assert found is not None
    assert (found.drop_id, found.object_id, found.expires_at_ms) == ("d1", "a$t", 15)
    assert (found.record.top, found.record.by, found.record.seq) == ("a", "bob", 3)
    assert found.restored("a$t") == ROW
    assert found.restored("b$u") == replace(ROW, object_id="b$u")


def test_a_drop_for_ever_never_expires():
    for_ever = DropRecord(top="a$t", deleted_at_ms=5, by="bob")
    found = read_dropped(make_dropped(ROW, "d", for_ever))
    assert found is not None
    assert found.expires_at_ms is None


def test_a_row_that_is_marked_stays_marked_and_else_the_same():
    found = read_dropped(make_dropped(ROW, "d", RECORD))
    assert found is not None
    assert not found.record.purging
    marked = read_dropped(found.marked_purging())
    assert marked is not None
    assert marked.record.purging
    assert (marked.key, marked.restored("a$t")) == (found.key, ROW)


@pytest.mark.parametrize("text", [None, "", "junk", "{}", '{"top":"a"}'])
def test_a_row_of_the_trash_that_nobody_understands_is_none(text):
    assert read_dropped(ManifestRow(f"{TRASH}$d$a$t", TABLE, "l", text)) is None


@pytest.mark.parametrize("key", ["a$t", TRASH, f"{TRASH}x$d$t", f"a${TRASH}$t", "__mooring"])
def test_other_identifiers_are_none_of_the_trash(key):
    assert not is_dropped(key)
    assert read_dropped(ManifestRow(key, TABLE)) is None


def test_an_intent_to_rename_is_no_property():
    row = with_intent(ROW, INTENT)
    assert intent_of(row) == INTENT
    assert properties_of(row) == {"owner": "ann"}
    assert intent_of(with_properties(row, {"a": "b"})) == INTENT
    assert with_intent(row, None) == ROW
    assert intent_of(ROW) is None
    assert intent_of(None) is None


@pytest.mark.parametrize("text", ['"junk"', '"{}"', "7", '"{\\"nonce\\":1}"'])
def test_an_intent_that_nobody_understands_is_none(text):
    row = replace(ROW, metadata=f'{{"mooring.renaming":{text}}}')
    assert intent_of(row) is None
