"""What is supported, beside the reference implementation: the matrix of `doctor --operations`.

Spec: lance-rest-openapi, every operation.
"""

from __future__ import annotations

import lance_namespace
import pytest

from mooring.survey import COLUMNS, QUESTIONS, compare

MODES = ("plain", "compatibility", "manifest")
OURS = (*MODES, "metastore")
NEEDED = {
    "create_namespace, mode exist_ok",
    "create_namespace, mode overwrite",
    "drop_namespace, behavior cascade",
    "drop_namespace, mode skip",
    "list_all_tables",
    "register_table, mode overwrite",
    "register_table, properties",
    "rename_table",
    "update_field_metadata",
}


@pytest.fixture(scope="module")
def matrix():
    return {row["operation"]: row for row in compare()}


def test_every_operation_is_asked_for():
    # Deprecated and without a model: declare_table took its place.
    left_out = {"create_empty_table", "namespace_id"}
    official = {
        name
        for name, member in vars(lance_namespace.LanceNamespace).items()
        if callable(member) and not name.startswith("_")
    }
    assert {question.partition(",")[0] for question in QUESTIONS} == official - left_out


@pytest.mark.parametrize("mode", MODES)
def test_everything_that_pylance_supports_is_supported(matrix, mode):
    missing = [name for name, row in matrix.items() if row[f"pylance {mode}"] == "yes" != row[mode]]
    assert missing == []


def test_a_metastore_supports_what_a_manifest_does_and_several_tables_together(matrix):
    more = {
        "batch_create_table_versions, several together",
        "batch_commit_tables, several together",
    }
    differing = {name for name, row in matrix.items() if row["metastore"] != row["manifest"]}
    assert differing == more
    assert {matrix[name]["metastore"] for name in more} == {"yes"}


def test_nothing_is_ignored_and_nothing_breaks(matrix):
    bad = {
        (name, mode)
        for name, row in matrix.items()
        for mode in OURS
        if row[mode] in {"ignored", "failed"}
    }
    assert bad == set()


def test_what_is_not_offered_has_its_reason(matrix):
    for name, row in matrix.items():
        if "no" in {row[mode] for mode in OURS}:
            assert row["note"], name
            assert "Not supported:" not in row["note"], name


def test_more_than_pylance_supports(matrix):
    lacking = {name for name in NEEDED if {matrix[name][mode] for mode in OURS[1:]} != {"yes"}}
    assert lacking == set()
    assert any(matrix[name]["pylance manifest"] != "yes" for name in NEEDED)


def test_reference_is_asked_in_the_same_modes():
    assert [*OURS, *(f"pylance {mode}" for mode in MODES)] == list(COLUMNS)
