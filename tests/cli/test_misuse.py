"""Python that is wrong is answered with what was expected instead."""

import pytest

import mooring
from mooring.errors import InvalidInputError
from mooring.tables.filters import whole
from mooring.tables.rows import to_reader


@pytest.mark.parametrize("uri", [None, 5, ["lake"]])
def test_a_catalog_is_named_by_a_path_or_a_uri(uri):
    with pytest.raises(InvalidInputError, match=f"not by {type(uri).__name__}"):
        mooring.connect(uri)


def test_an_expression_is_text():
    with pytest.raises(InvalidInputError, match="not int: write '5'"):
        whole(5, "expression")


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ({"a": [1]}, r"dictionary of columns pyarrow\.table makes one"),
        ([1, 2], "a row is a dictionary of names and values"),
        ([], "has no schema: give one"),
    ],
)
def test_rows_that_are_none_are_told_what_rows_are(rows, told):
    with pytest.raises(InvalidInputError, match=told):
        to_reader(rows).read_all()
