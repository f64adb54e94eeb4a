"""Audits of catalogs in buckets: the same faults, one listing a table, and repairs that hold.

"Catalogs on disk and on SeaweedFS, directory V1, V2 and metastore backends".
"""

from __future__ import annotations

import pytest

import mooring
from mooring.jobs.runner import Threads
from mooring.upkeep.audit import audit
from mooring.upkeep.findings import Fault, Severity
from mooring.upkeep.inventory import take_inventory
from mooring.upkeep.repairs import choose, repair
from tests.upkeep.faults import (
    COMPAT,
    METASTORE,
    V1,
    V2,
    damaged_footer,
    damaged_manifest,
    fill,
    half_purged,
    half_purged_row,
    incoming,
    left_by_creator,
    missing_data,
    missing_index,
    never_written,
    orphan,
    pending_run,
    staged_manifest,
    stray_table,
    vanished,
)
from tests.upkeep.test_audit import later, name_in

_ANYWHERE = (
    damaged_footer,
    damaged_manifest,
    missing_data,
    missing_index,
    orphan,
    pending_run,
    incoming,
    staged_manifest,
    never_written,
)
_FAULTS = {
    V1: (*_ANYWHERE, half_purged),
    COMPAT: (*_ANYWHERE, half_purged, left_by_creator),
    V2: (*_ANYWHERE, half_purged_row, left_by_creator, vanished),
    METASTORE: (*_ANYWHERE, half_purged, stray_table, vanished),
}


def connect(kind, server, prefix):
    scheme = "metastore+" if kind == METASTORE else ""
    flags = {"manifest_enabled": kind != V1, "dir_listing_enabled": kind != V2}
    return mooring.connect(
        f"{scheme}{server.uri(prefix)}",
        storage_options=server.options,
        **({} if kind == METASTORE else flags),
    )


def check(kind, server, prefix, faults):
    """Plant faults, find each, and repair all of them."""
    catalog = connect(kind, server, prefix)
    if kind in {V2, METASTORE}:
        catalog.create_namespace("ns")
    whole = fill(catalog, name_in(kind, "whole"))
    assert audit(catalog, clock=later(), all_versions=True).findings == ()
    about = [fault(catalog, fill(catalog, name_in(kind, fault.__name__))) for fault in faults]

    told = audit(catalog, clock=later(), runner=Threads(4))

    assert {one.table for one in told.findings} == set(about)
    assert all(one.repair for one in told.findings), told.findings
    rows = {one.name: one.rows for one in take_inventory(catalog).tables}
    assert rows[whole] == 38
    wanted = [kind for kind in Fault if kind is not Fault.EXPIRED_TRASH]
    # Once another is restored the damaged version is forgotten, then what only that one named.
    for _ in range(3):
        found = audit(catalog, clock=later()).findings
        done = repair(catalog, choose(found, wanted)[0], clock=later())
        assert {one.result for one in done} <= {"repaired"}, done
    # What was dropped for a repair is in the trash, and by this clock its time is over.
    left = {one.kind for one in audit(catalog, clock=later()).findings}
    assert left <= {Fault.EXPIRED_TRASH}
    assert catalog.table(whole).count() == 38
    assert audit(catalog).is_clean


@pytest.mark.s3
@pytest.mark.interop
def test_faults_in_a_bucket_are_found_and_repaired(moto, prefix):
    check(COMPAT, moto, prefix, (missing_data, orphan, pending_run, staged_manifest))


@pytest.mark.s3
@pytest.mark.interop
@pytest.mark.parametrize("kind", [V1, COMPAT, V2, METASTORE])
def test_faults_on_seaweedfs_are_found_and_repaired(kind, seaweedfs, prefix):
    check(kind, seaweedfs, prefix, _FAULTS[kind])


@pytest.mark.s3
def test_no_secret_is_in_a_finding(moto, prefix):
    catalog = connect(COMPAT, moto, prefix)
    damaged_manifest(catalog, fill(catalog, "t"))

    found = audit(catalog, clock=later()).findings

    assert [one.severity for one in found] == [Severity.ERROR]
    secret = moto.options["aws_secret_access_key"]
    assert secret not in repr(found)
    assert secret not in repr([one.row() for one in found])
