"""Paths of fields, as the specification writes them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mooring.tables.field_paths import list_fields, parse_path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ("a",)),
        ("a.b", ("a", "b")),
        ("`a`.b", ("a", "b")),
        ("a.`b.c`", ("a", "b.c")),
        ("`a``b`.c", ("a`b", "c")),
        ("with space.my-name", ("with space", "my-name")),
        ("", ("",)),
    ],
)
def test_a_path_is_read_by_its_dots_and_backticks(text, names):
    assert parse_path(text) == names


def test_fields_inside_structs_are_listed_with_paths_that_read_back():
    inner = pa.struct([("b.c", pa.int8()), ("d`e", pa.struct([("f", pa.int8())]))])
    fields = list(list_fields(pa.schema([("a", inner), ("g", pa.list_(inner))])))
    assert [str(field) for field in fields] == ["a", "a.`b.c`", "a.`d``e`", "a.`d``e`.f", "g"]
    assert [parse_path(str(field)) for field in fields] == [field.names for field in fields]
