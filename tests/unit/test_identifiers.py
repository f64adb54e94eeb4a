"""Names and identifiers.

Spec: objects-and-relationships, "Object Name" to "Leveled Namespace".
"""

from __future__ import annotations

import pytest

from mooring.errors import InvalidInputError, InvalidNameError
from mooring.identifiers import DELIMITER, ROOT, ObjectId, check_composed, check_name, quote

REFUSED = {
    "": "empty",
    ".": "directory",
    "..": "directory",
    "a/b": "separator",
    "/": "separator",
    "../victim": "separator",
    "a\\b": "separator",
    "a\0b": "U+0000",
    "a\nb": "U+000A",
    "a\tb": "U+0009",
    "a\rb": "U+000D",
    "\x7f": "U+007F",
    "\x85": "U+0085",
    "\ud800": "Unicode",
}


@pytest.mark.parametrize("name", REFUSED, ids=ascii)
def test_a_refused_name_is_told_its_reason(name):
    with pytest.raises(InvalidNameError, match="cannot be a name") as caught:
        check_name(name)
    assert REFUSED[name].lower() in str(caught.value).lower()


@pytest.mark.parametrize("name", REFUSED, ids=ascii)
def test_a_message_about_a_refused_name_can_be_printed(name):
    with pytest.raises(InvalidNameError) as caught:
        check_name(name)
    assert str(caught.value).isprintable()
    str(caught.value).encode()


@pytest.mark.parametrize(
    "name",
    [
        "t",
        "...",
        "a..b",
        "it's",
        'say "hi"',
        "a$b",
        "%2e%2e",
        "100%",
        "a b",
        " a ",
        "*?#<>|:",
        "日本語",
        "العربية",
        "हिन्दी",
        "😀",
        "-rf",
        "~",
        "a" * 1000,
    ],
    ids=lambda name: ascii(name)[:20],
)
def test_any_other_unicode_is_a_name(name):
    check_name(name)
    assert ObjectId.of([name]).name == name


def test_a_decomposed_name_is_refused_with_its_composed_form():
    with pytest.raises(InvalidNameError, match="composed"):
        check_composed("cafe\u0301")
    check_composed("caf\u00e9")
    check_composed("日本語")


def test_quote_escapes_what_cannot_be_printed():
    assert quote("a\nb") == r"'a\nb'"
    assert quote("é") == "'é'"


def test_the_root_has_no_name_and_an_empty_identifier():
    """Spec: "Name and Identifier for Root Namespace"."""
    for root in (
        ROOT,
        ObjectId.of([]),
        ObjectId.of(None),
        ObjectId.parse(""),
        ObjectId.parse(None),
    ):
        assert root == ROOT
        assert root.is_root
        assert root.level == 0
        assert root.name == ""
        assert root.format() == ""
        assert root.parent == ROOT


def test_string_style_joins_names_by_dollar_or_another_delimiter():
    """Spec: "Object Identifier"."""
    table = ObjectId.of(["cat2", "cat5", "t1"])
    assert DELIMITER == "$"
    assert table.format() == "cat2$cat5$t1"
    assert str(table) == "cat2$cat5$t1"
    assert ObjectId.of(["cat4", "t3"]).format("#") == "cat4#t3"
    assert ObjectId.parse("cat4#t3", "#") == ObjectId.of(["cat4", "t3"])
    assert ObjectId.parse("cat4$t3", "#") == ObjectId.of(["cat4$t3"])


def test_level_is_the_number_of_names():
    """Spec: "Object Level"."""
    assert ObjectId.parse("ns1$ns2").level == 2
    assert ObjectId.parse("catalog1$database2$table3").level == 3


def test_parent_and_child_are_inverse():
    """Spec: "Parent & Child"."""
    namespace = ObjectId.of(["ns1"])
    table = namespace.child("t2")
    assert table == ObjectId.of(["ns1", "t2"])
    assert table.parent == namespace
    with pytest.raises(InvalidNameError):
        namespace.child("..")


def test_a_name_that_holds_the_delimiter_is_refused_where_it_would_be_ambiguous():
    table = ObjectId.of(["a$b"])
    with pytest.raises(InvalidNameError, match="delimiter"):
        table.format()
    assert table.format("#") == "a$b"


@pytest.mark.parametrize(
    ("names", "delimiter"), [(["a$", "b"], "$$"), (["a", "$b"], "$$"), (["ab", "ab"], "aba")]
)
def test_names_whose_edges_form_the_delimiter_are_never_read_as_others(names, delimiter):
    """What format gives, parse reads back; where it could not, format refuses."""
    table = ObjectId.of(names)
    try:
        text = table.format(delimiter)
    except InvalidNameError:
        return
    assert ObjectId.parse(text, delimiter) == table


@pytest.mark.parametrize("text", ["$", "a$", "$a", "a$$b"])
def test_an_empty_level_is_refused(text):
    with pytest.raises(InvalidNameError, match="empty"):
        ObjectId.parse(text)


def test_an_empty_delimiter_is_refused():
    with pytest.raises(InvalidInputError, match="delimiter"):
        ObjectId.parse("a", "")


def test_a_string_is_no_list_of_names():
    with pytest.raises(InvalidInputError, match="list of names"):
        ObjectId.of("abc")


def test_identifiers_sort_and_hash_by_names():
    ids = [ObjectId.of(["b"]), ObjectId.of(["a", "b"]), ObjectId.of(["a"])]
    assert [found.names for found in sorted(ids)] == [("a",), ("a", "b"), ("b",)]
    assert len({ObjectId.of(["a"]), ObjectId.parse("a"), ObjectId.of(["b"])}) == 2
