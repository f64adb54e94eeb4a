"""Names of files in a directory catalog.

Spec: directory-namespace, "Directory Layout", "Marker Files"; soft-delete, "Marker naming".
"""

from __future__ import annotations

import pytest

from mooring.directory import layout
from mooring.directory.decisions import Hint, State
from mooring.directory.layout import MAX_NAME_BYTES, StateFile, check_table_name, parse_state_file
from mooring.errors import InvalidNameError
from mooring.namespace.settings import settings_path
from mooring.store.passing import PROBE_PREFIX

LAST_SEQ = 10**20 - 1
# The largest time whose base 36 has nine digits: the year 5188.
LAST_TIME_MS = 36**9 - 1


def test_paths_are_those_of_the_document():
    assert layout.table_dir("t") == "t.lance"
    assert layout.nested_marker_path("t") == "t.lance/.lance-deregistered"
    assert layout.reserved_marker_path("t") == "t.lance/.lance-reserved"
    assert layout.foreign_marker_path("t") == "t.deleted"


def test_a_decision_never_holds_its_outcome():
    """Contenders for different outcomes meet on one key."""
    assert layout.decision_path("t", 7) == "t.lance-state.00000000000000000007"
    hint = layout.hint_path("t", 7, "live")
    assert hint == "t.lance-state.00000000000000000007.live"
    assert settings_path(1) == "_mooring-catalog.00000000000000000001"


@pytest.mark.parametrize("name", ["t", "a.b", "x.lance", "日本", "a.lance-stat", "7", "a b", "$"])
@pytest.mark.parametrize("hint", [None, "live", "deleted.kx1.zik0zj"])
def test_state_files_are_read_back(name, hint):
    path = layout.hint_path(name, 12, hint) if hint else layout.decision_path(name, 12)
    assert parse_state_file(path) == StateFile(name, 12, hint)


@pytest.mark.parametrize(
    "file",
    [
        "t.lance",
        "t.deleted",
        "t.lance-state.",
        "t.lance-state.1",
        "t.lance-state.0000000000000000000x",
        "t.lance-state.000000000000000000012",
        "t.lance-state.00000000000000000001.",
        "t.lance-state.00000000000000000001.UPPER",
        ".lance-state.00000000000000000001",
        "t.lance-state.00000000000000000001\n",
        "t.lance-state." + "\u0661" * 20,
        settings_path(1),
        f"{PROBE_PREFIX}0123",
        "",
    ],
    ids=ascii,
)
def test_other_files_are_no_state_files(file):
    assert parse_state_file(file) is None


def test_the_longest_name_is_what_the_longest_suffix_leaves_of_255_bytes():
    times = LAST_TIME_MS, LAST_TIME_MS
    hints = [Hint(state, *(times if state.in_trash else ())).format() for state in State]
    longest = max(len(layout.hint_path("", LAST_SEQ, hint)) for hint in hints)
    assert longest + MAX_NAME_BYTES == 255


@pytest.mark.parametrize("letter", ["a", "é", "語", "😀"])
def test_length_is_counted_in_bytes(letter):
    size = len(letter.encode())
    check_table_name(letter * (MAX_NAME_BYTES // size))
    with pytest.raises(InvalidNameError, match=r"bytes"):
        check_table_name(letter * (MAX_NAME_BYTES // size + 1))


@pytest.mark.parametrize(
    "name",
    [
        "x.deleted",
        ".deleted",
        "x.lance-state.00000000000000000001",
        "x.lance-state.00000000000000000001.live",
        "x.lance-state.",
        "a.lance-state.b",
    ],
)
def test_a_name_that_reads_as_a_lifecycle_entry_is_refused(name):
    with pytest.raises(InvalidNameError, match="mark what happened"):
        check_table_name(name)


@pytest.mark.parametrize(
    "name", ["deleted", "x.deleted.y", "x.lance", "x.lance-state", "__manifest"]
)
def test_names_that_only_resemble_one_are_fine(name):
    check_table_name(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a\\b", "a\0b", "a\nb", "\ud800"], ids=ascii
)
def test_the_layout_refuses_what_cannot_be_a_name_at_all(name):
    """Whoever builds an identifier by hand cannot leave the root either."""
    with pytest.raises(InvalidNameError):
        check_table_name(name)
