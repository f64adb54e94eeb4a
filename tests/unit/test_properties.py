"""Properties of namespaces and tables."""

from __future__ import annotations

import pytest

from mooring.errors import InvalidInputError
from mooring.namespace.properties import check_properties, merge_properties


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"owner": "ann", "a b": "", "日本": "$%"},
        {"owner": None},
        {"mooring.protected": "true"},
        {"mooring.protected": "false"},
        {"mooring.protected": None},
        {"mooring.retention": "30d"},
        {"mooring.retention": "never"},
        {"mooring.retention": None},
        {"mooring": "fine", "mooringx.y": "fine"},
    ],
    ids=str,
)
def test_strings_are_kept(properties):
    check_properties(properties)


@pytest.mark.parametrize(
    "properties",
    [
        {"": "x"},
        {"a": 7},
        {"a": True},
        {"a": ["x"]},
        {"mooring.protected": "TRUE"},
        {"mooring.protected": ""},
        {"mooring.retention": "soon"},
        {"mooring.retention": "-1d"},
        {"mooring.renaming": "x"},
        {"mooring.": "x"},
    ],
    ids=str,
)
def test_what_would_not_be_understood_is_refused(properties):
    with pytest.raises(InvalidInputError):
        check_properties(properties)


def test_updates_add_replace_and_remove():
    known = {"a": "1", "b": "2"}
    assert merge_properties(known, {"b": None, "c": "3", "d": None}) == {"a": "1", "c": "3"}
    assert merge_properties(known, {}) == known
    assert known == {"a": "1", "b": "2"}
