"""Compaction of a table, and cleaning of its versions."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from mooring.errors import (
    InvalidInputError,
    ReadOnlyError,
    TableBranchNotFoundError,
    TableNotFoundError,
)
from mooring.tables.compaction import Cleaned
from tests.conformance.content import fill, together

NOW = timedelta(0)


@pytest.fixture
def table(plain_lake):
    return fill(plain_lake, versions=4)


def _versions(table, branch=None) -> list[int]:
    return [entry.version for entry in table.log(branch=branch)]


def _values(table, **at) -> list[int]:
    return sorted(table.to_lance(**at).to_table()["n"].to_pylist())


def test_fragments_are_merged_and_old_versions_go(any_lake):
    table = fill(any_lake)
    table.delete("n = 3")
    done = table.compact(keep=1)
    assert (done.fragments_removed, done.fragments_added) == (3, 1)
    assert (done.files_removed, done.files_added) == (4, 1)
    assert done.version == 6
    assert done.cleaned.versions == 5
    assert (done.cleaned.files > 0, done.cleaned.bytes > 0) == (True, True)
    assert _versions(table) == [6]
    assert _values(table) == [0, 1, 2, 4, 5]
    assert table.stats().deleted_rows == 0


def test_compacting_alone_keeps_every_version(table):
    done = table.compact()
    assert done.cleaned is None
    assert _versions(table) == [6, 5, 4, 3, 2, 1]
    assert _values(table, version=2) == [0, 1, 2, 3]


def test_a_table_that_is_compact_stays_as_it_is(table):
    table.compact()
    again = table.compact()
    assert (again.version, again.fragments_removed, again.fragments_added) == (6, 0, 0)


def test_a_dry_run_says_what_would_be_done_and_does_nothing(plain_lake, table):
    table.tags.create("v1", 2)
    files = plain_lake.files("t")
    plan = table.compact(keep=1, dry_run=True)
    assert (plan.is_plan, plan.version) == (True, 4)
    assert (plan.fragments_removed, plan.fragments_added) == (4, 1)
    assert plan.cleaned.versions == 2
    assert plain_lake.files("t") == files
    done = table.compact()
    assert (done.is_plan, done.fragments_removed, done.fragments_added) == (False, 4, 1)
    assert (done.files_removed, done.files_added) == (plan.files_removed, plan.files_added)


def test_fragments_get_about_as_many_rows_as_wanted(table):
    plan = table.compact(target_rows=4, dry_run=True)
    done = table.compact(target_rows=4)
    assert (done.fragments_removed, done.fragments_added) == (4, 2)
    assert plan.fragments_added == 2
    assert table.stats().lengths.max == 4


def test_versions_that_tags_name_are_never_cleaned(table):
    table.tags.create("v1", 2)
    done = table.compact(older_than=NOW)
    assert _versions(table) == [6, 2]
    assert _values(table, tag="v1") == [0, 1, 2, 3]
    assert done.cleaned.versions == 4
    table.tags.delete("v1")
    table.compact(older_than=NOW)
    assert _versions(table) == [6]


def test_what_branches_and_tags_on_them_need_is_never_cleaned(table):
    table.branches.create("dev", version=2)
    table.insert(pa.table({"n": [9]}), branch="dev")
    table.insert(pa.table({"n": [10]}), branch="dev")
    table.tags.create("on-dev", 3, branch="dev")
    table.compact(older_than=NOW)
    assert _values(table, branch="dev") == [0, 1, 2, 3, 9, 10]
    table.compact(older_than=NOW, branch="dev")
    assert _values(table, branch="dev") == [0, 1, 2, 3, 9, 10]
    assert _values(table, tag="on-dev") == [0, 1, 2, 3, 9]
    assert _versions(table, "dev")[-1] == 3
    assert _values(table) == list(range(8))


def test_only_versions_that_are_old_enough_go(table):
    done = table.compact(older_than=timedelta(hours=1))
    assert done.cleaned == Cleaned(0, 0, 0)
    assert _versions(table) == [6, 5, 4, 3, 2, 1]


def test_so_many_versions_are_kept(table):
    table.compact(keep=3)
    assert _versions(table) == [6, 5, 4]
    table.compact(keep=1, older_than=timedelta(hours=1))
    assert _versions(table) == [6, 5, 4]


@pytest.mark.parametrize(
    "wrong", [{"target_rows": 0}, {"target_rows": -1}, {"keep": 0}, {"older_than": timedelta(-1)}]
)
def test_arguments_that_make_no_sense_are_refused(table, wrong):
    for dry_run in (True, False):
        with pytest.raises(InvalidInputError):
            table.compact(dry_run=dry_run, **wrong)
    assert table.version == 4


def test_a_read_only_catalog_plans_and_does_nothing(plain_lake, table):
    del table
    reading = plain_lake.connect(read_only=True).table("t")
    assert reading.compact(keep=1, dry_run=True).fragments_removed == 4
    with pytest.raises(ReadOnlyError):
        reading.compact()


def test_a_table_that_is_not_there_is_not_compacted(plain_lake, table):
    with pytest.raises(TableBranchNotFoundError):
        table.compact(branch="nope")
    plain_lake.connect().drop_table("t")
    with pytest.raises(TableNotFoundError):
        table.compact()


def test_writers_go_on_while_a_table_is_compacted(table):
    appended = [
        lambda value=value: table.insert(pa.table({"n": [value]})) for value in range(100, 104)
    ]
    outcomes = together([table.compact, *appended])
    assert [one for one in outcomes if isinstance(one, Exception)] == []
    assert _values(table) == [*range(8), *range(100, 104)]
