"""An audit finds a planted fault of every kind, in every kind of catalog, and nothing else.

"Audit (finds unreadable tables, missing files, orphans, rows without directories,
leftovers of crashed operations, and offers a repair for each) ... a planted fault of every kind is
found".
"""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import mooring
from mooring.clock import DAY_MS
from mooring.errors import InvalidInputError, MooringError, NamespaceNotFoundError, ReadOnlyError
from mooring.identifiers import ObjectId
from mooring.jobs import address
from mooring.jobs.runner import Threads
from mooring.store.observed import ObservedStore
from mooring.tables.pending import PendingRun
from mooring.upkeep.audit import audit
from mooring.upkeep.findings import Fault, Repair, Severity
from mooring.upkeep.repairs import choose, repair
from tests.lakes import FakeClock
from tests.upkeep.faults import (
    COMPAT,
    FAULTS,
    METASTORE,
    V1,
    V2,
    damaged_manifest,
    fill,
    missing_data,
    orphan,
    pending_run,
    rows,
    stranger,
)

KINDS = (V1, COMPAT, V2, METASTORE)
PAIRS = [(kind, fault) for kind in KINDS for fault in FAULTS if kind in fault.where]


def connect(kind, root, **options):
    if kind == METASTORE:
        return mooring.connect(f"metastore+{root}", **options)
    flags = {"manifest_enabled": kind != V1, "dir_listing_enabled": kind != V2}
    return mooring.connect(root, **flags, **options)


def name_in(kind, name):
    """Name a table as this kind of catalog can; with a manifest alone it lies in a namespace."""
    return f"ns${name}" if kind in {V2, METASTORE} else name


def make(kind, root):
    """Make a catalog with two whole tables, one of which gets a fault."""
    catalog = connect(kind, root)
    if kind in {V2, METASTORE}:
        catalog.create_namespace("ns")
    fill(catalog, name_in(kind, "whole"))
    fill(catalog, name_in(kind, "broken"))
    return catalog


@pytest.fixture(autouse=True)
def _no_syncs(monkeypatch):
    """The machine does not die here, and a sync costs most of a test."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    """A catalog of every kind; to copy one is quicker than to make it."""
    root = tmp_path_factory.mktemp("templates")
    for kind in KINDS:
        make(kind, root / kind)
    return root


@pytest.fixture
def lake(templates, tmp_path):
    def open_copy(kind):
        shutil.copytree(templates / kind, tmp_path / kind)
        return connect(kind, tmp_path / kind)

    return open_copy


def later(days=8):
    """A clock for which all that was written just now is old."""
    return FakeClock(time.time_ns() // 1_000_000 + days * DAY_MS)


def look(catalog, **how):
    return audit(catalog, **{"clock": later(), "runner": Threads(2), **how})


@pytest.mark.parametrize(
    ("kind", "fault"), PAIRS, ids=[f"{kind}-{fault.name}" for kind, fault in PAIRS]
)
def test_a_planted_fault_is_found_and_its_repair_makes_it_go(kind, fault, lake, tmp_path):
    catalog = lake(kind)
    table = fault.plant(catalog, name_in(kind, "broken"))

    found = look(catalog, all_versions=fault.all_versions).findings
    ours = [one for one in found if one.kind is fault.kind]
    assert ours, [one.row() for one in found]
    assert {one.table for one in ours} == {table}
    assert {one.repair for one in ours} == {fault.repair}
    assert all(one.repair is not None or one.advice for one in ours)
    assert name_in(kind, "whole") not in {one.table for one in found}

    if fault.repair is None:
        return
    done = repair(catalog, choose(found, [fault.kind])[0], clock=later())
    assert {one.result for one in done} == {"repaired"}, done
    again = look(connect(kind, tmp_path / kind), all_versions=fault.all_versions).findings
    if fault.plant is damaged_manifest:
        # The table can be read again; now the damaged version is an older one.
        assert {one.repair for one in again if one.kind is fault.kind} == {Repair.FORGET_VERSION}
        repair(catalog, choose(again, [fault.kind])[0], clock=later())
        again = look(catalog).findings
    assert [one.row() for one in again if one.kind is fault.kind] == []
    # What a table that is back shows, and what is in the trash now, was there before.
    shown = {Fault.ORPHAN_FILE, Fault.EXPIRED_TRASH}
    assert {one.kind for one in again} - shown <= {one.kind for one in found}
    assert catalog.table(name_in(kind, "whole")).count() == 38


@pytest.mark.parametrize("kind", KINDS)
def test_a_clean_catalog_has_no_findings(kind, lake):
    catalog = lake(kind)
    name = fill(catalog, name_in(kind, "busy"))
    table = catalog.table(name)
    with table.handle.changing() as dataset:
        dataset.create_scalar_index("n", "BTREE")
    table.compact()
    table.tags.create("first", 1)
    table.branches.create("dev")
    table.insert(rows(5), branch="dev")
    catalog.drop_table(fill(catalog, name_in(kind, "gone")))
    catalog.undrop_table(name_in(kind, "gone"))
    catalog.drop_table(fill(catalog, name_in(kind, "trash")))
    if kind in {COMPAT, V2, METASTORE}:
        catalog.rename_table(name_in(kind, "gone"), name_in(kind, "renamed"))

    told = look(catalog, all_versions=True)

    assert [one.row() for one in told.findings if one.kind is not Fault.EXPIRED_TRASH] == []
    assert told.tables == len(catalog.list_all_tables())


@pytest.mark.parametrize("kind", KINDS)
def test_what_writers_have_just_written_is_no_finding(kind, lake):
    catalog = lake(kind)
    name = fill(catalog, name_in(kind, "busy"))
    orphan(catalog, name)
    pending_run(catalog, name)
    catalog.declare_table(name_in(kind, "soon"))

    assert audit(catalog).findings == ()
    # Only its age tells an orphan, so it never counts at once; a run is ended by a put.
    found = audit(catalog, older_than_ms=0).findings
    assert Fault.ORPHAN_FILE not in {one.kind for one in found}
    assert Fault.PENDING_RUN in {one.kind for one in found}


@pytest.mark.parametrize("kind", [V1, COMPAT, METASTORE])
def test_nothing_is_found_while_writers_work(kind, lake, tmp_path):
    """Rows come and go, files are merged and versions cleaned away under the audit."""
    catalog = lake(kind)
    names = [name_in(kind, "whole"), name_in(kind, "broken")]
    ends_at = time.monotonic() + 2.5

    def work(name):
        mine = connect(kind, tmp_path / kind).table(name)
        rounds = 0
        while time.monotonic() < ends_at:
            mine.insert(rows(rounds))
            mine.delete(f"n = {rounds}")
            mine.compact(keep=2)
            rounds += 1
        return rounds

    with ThreadPoolExecutor(2) as writers:
        at_work = [writers.submit(work, name) for name in names]
        looks = 0
        while not all(one.done() for one in at_work):
            found = audit(catalog, all_versions=looks % 2 == 0).findings
            assert [one.row() for one in found] == []
            looks += 1
        assert all(one.result() > 0 for one in at_work)
    assert looks > 1
    assert audit(catalog, older_than_ms=0, all_versions=True).findings == ()


def test_restore_is_done_only_where_its_kind_is_named(lake, tmp_path):
    catalog = lake(COMPAT)
    missing_data(catalog, "broken")
    orphan(catalog, "whole")
    found = look(catalog).findings

    chosen, left = choose(found)

    assert {one.kind for one in chosen} == {Fault.ORPHAN_FILE}
    assert {one.kind for one in left} == {Fault.MISSING_FILE}
    assert {one.kind for one in choose(found, [Fault.MISSING_FILE])[0]} == {Fault.MISSING_FILE}


def test_what_is_named_again_is_kept(lake, tmp_path):
    """A finding is old by the time of its repair: what somebody needs meanwhile stays."""
    catalog = lake(COMPAT)
    table = catalog.table("whole")
    found = look(catalog, footers=False)
    assert found.findings == ()
    orphan(catalog, "whole")
    finding = look(catalog).findings[0]
    store = catalog.backend.store
    store.delete([f"whole.lance/{finding.targets[0]}"])

    done = repair(catalog, [finding], clock=later())

    assert [one.result for one in done] == ["kept"]
    assert table.count() == 38


def test_a_live_run_is_not_ended_and_an_ended_one_cannot_commit(lake, tmp_path):
    catalog = lake(COMPAT)
    pending_run(catalog, "whole")
    found = look(catalog).findings
    assert [one.kind for one in found] == [Fault.PENDING_RUN]

    repair(catalog, found, clock=later())

    run = PendingRun(catalog.table("whole").handle.place, "lostrun")
    assert run.files() == set()
    assert look(catalog).findings == ()


def test_a_namespace_is_audited_alone(lake, tmp_path):
    catalog = lake(V2)
    catalog.create_namespace("other")
    orphan(catalog, fill(catalog, "other$a"))
    orphan(catalog, "ns$whole")

    told = audit(catalog, ObjectId(("other",)), clock=later())

    assert [(one.table, one.kind) for one in told.findings] == [("other$a", Fault.ORPHAN_FILE)]
    assert told.tables == 1
    with pytest.raises(NamespaceNotFoundError):
        audit(connect(METASTORE, tmp_path / "m"), ObjectId(("nowhere",)))


def test_findings_are_sorted_and_the_same_whoever_looks(lake, tmp_path):
    catalog = lake(COMPAT)
    for number in range(5):
        orphan(catalog, fill(catalog, f"t{number}"))

    once = look(catalog, runner=Threads(1))
    twice = look(catalog, runner=Threads(7))

    assert once == twice
    assert [one.table for one in once.findings] == [f"t{number}" for number in range(5)]
    assert all(one.severity is Severity.WARNING for one in once.findings)
    assert not once.is_clean


def test_information_alone_is_clean(lake, tmp_path):
    catalog = lake(COMPAT)
    stranger(catalog, "whole")

    told = look(catalog)

    assert [one.severity for one in told.findings] == [Severity.INFO]
    assert told.is_clean


def test_one_listing_a_table_and_no_request_a_file(lake, monkeypatch):
    catalog = lake(COMPAT)
    table = catalog.table("whole")
    for _ in range(10):
        table.insert(rows(1, 2))
    store = ObservedStore(catalog.backend.store)
    catalog.backend.home.store = store
    monkeypatch.setattr(address, "_open", lambda _: catalog)

    audit(catalog, footers=False)

    assert store.counts["list_prefix"] == 2  # one a table
    assert store.total < 16, store.counts


def test_bad_arguments_are_refused(lake, tmp_path):
    catalog = lake(V1)
    orphan(catalog, "whole")
    with pytest.raises(InvalidInputError):
        audit(catalog, older_than_ms=-1)
    found = look(catalog).findings
    with pytest.raises(ReadOnlyError):
        repair(connect(V1, tmp_path / V1, read_only=True), found, clock=later())
    assert issubclass(ReadOnlyError, MooringError)
