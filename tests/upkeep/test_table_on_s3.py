"""Upkeep of tables on an object store."""

from __future__ import annotations

from datetime import timedelta

import pyarrow.compute as pc
import pytest

from mooring.jobs.runner import Threads
from mooring.tables.draft import draft_for
from mooring.upkeep import RunState, build_index, cleanup, compact, fill_column, sweep_runs
from tests.upkeep.tables import KINDS, make_table, numbers, open_catalog

pytestmark = [pytest.mark.interop, pytest.mark.s3]


def names_in(table, folder):
    place = table.handle.place
    return {meta.path for meta in place.store.list_prefix(place.path(folder))}


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_on_s3_is_filled_indexed_compacted_and_cleaned(kind, seaweedfs, prefix):
    options = {"storage_options": seaweedfs.options}
    catalog, name = open_catalog(kind, seaweedfs.uri(prefix), **options)
    table = make_table(catalog, name, parts=3)
    fill_column(catalog, name, "y", lambda batch: pc.multiply(batch["id"], 2), runner=Threads(2))
    build_index(catalog, name, "id", runner=Threads(2))
    assert compact(catalog, name, runner=Threads(2)).fragments_added == 1
    assert table.count("y = id * 2") == 300
    assert names_in(table, "_pending") == set()

    handle = table.handle
    dataset = handle.open()
    draft = draft_for(handle.location, handle.options, "lost", dataset)
    rows = numbers(300, 400).append_column("y", pc.multiply(numbers(300, 400)["id"], 2))
    draft.write(rows.to_reader())
    before = names_in(table, "data")
    (young,) = sweep_runs(table)
    assert (young.state, young.goes) == (RunState.UNDECIDED, False)
    assert names_in(table, "data") == before
    done = cleanup(table, keep=1, runs_older_than=timedelta(0))
    assert [one.state for one in done.runs] == [RunState.ABANDONED]
    assert done.versions.versions >= 4
    assert len(names_in(table, "data")) == 1
    assert names_in(table, "_pending") == set()
    assert table.count("y = id * 2") == 300
