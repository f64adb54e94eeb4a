"""An inventory tells what each table holds and takes; purges and migrations run in parts.

"Inventory with sizes and row counts, migrate, purge of expired tables: ... threads or
--spark by size, the same findings either way".
"""

from __future__ import annotations

import pytest

from mooring.errors import NamespaceNotFoundError, ReadOnlyError, UnsupportedError
from mooring.identifiers import ObjectId
from mooring.jobs.runner import Threads
from mooring.upkeep.inventory import keep, take_inventory
from mooring.upkeep.migrating import migrate
from mooring.upkeep.purging import purge
from tests.upkeep.faults import COMPAT, METASTORE, V1, V2, damaged_manifest, fill, index, rows
from tests.upkeep.test_audit import KINDS, connect, name_in


def make(kind, root):
    catalog = connect(kind, root, author="ada")
    if kind in {V2, METASTORE}:
        catalog.create_namespace("ns")
    return catalog


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_a_table_with_what_it_holds_and_takes(kind, tmp_path):
    catalog = make(kind, tmp_path)
    name = fill(catalog, name_in(kind, "busy"))
    index(catalog, name)
    catalog.declare_table(name_in(kind, "soon"))
    damaged_manifest(catalog, fill(catalog, name_in(kind, "wreck")))
    if kind != V1:
        catalog.update_table(name, {"owner": "grace"})

    found = take_inventory(catalog, runner=Threads(2))

    assert [(one.name.split("$")[-1], one.state) for one in found.tables] == [
        ("busy", "live"),
        ("soon", "declared"),
        ("wreck", "unreadable"),
    ]
    busy = found.tables[0]
    stats = catalog.table(name).stats()
    assert (busy.version, busy.versions, busy.rows) == (stats.version, stats.versions, 38)
    assert (busy.deleted_rows, busy.fragments, busy.small_fragments) == (2, 2, 2)
    assert (busy.data_bytes, busy.indexes) == (stats.file_bytes, 1)
    assert busy.total_bytes > busy.data_bytes
    assert busy.written_at_ms is not None
    assert busy.properties == ({} if kind == V1 else {"owner": "grace"})
    assert found.totals["rows"] == 38
    assert found.totals["tables"] == 3
    assert found.totals["total_bytes"] == sum(one.total_bytes for one in found.tables)


def test_who_wrote_last_is_told(tmp_path):
    catalog = make(COMPAT, tmp_path)
    catalog.create_table("t", rows(1))
    connect(COMPAT, tmp_path, author="grace").table("t").insert(rows(2))

    assert take_inventory(catalog).tables[0].written_by == "grace"


def test_an_inventory_is_kept_in_a_table_with_its_time(tmp_path):
    catalog = make(COMPAT, tmp_path)
    catalog.create_namespace("upkeep")
    fill(catalog, "t")

    keep(catalog, "upkeep$inventory", take_inventory(catalog))
    keep(catalog, "upkeep$inventory", take_inventory(catalog))

    kept = catalog.table("upkeep$inventory").handle.open().to_table().to_pylist()
    assert [row["name"] for row in kept] == ["t", "t", "upkeep$inventory"]
    assert len({row["taken_at"] for row in kept}) == 2
    assert {row["rows"] for row in kept if row["name"] == "t"} == {38}


def test_a_namespace_alone_and_one_that_is_not_there(tmp_path):
    catalog = make(V2, tmp_path)
    fill(catalog, "ns$t")
    fill(catalog, "root")

    found = take_inventory(catalog, ObjectId(("ns",)))

    assert [one.name for one in found.tables] == ["ns$t"]
    with pytest.raises(NamespaceNotFoundError):
        take_inventory(catalog, ObjectId(("nowhere",)))


@pytest.mark.parametrize("kind", KINDS)
def test_expired_tables_are_purged_in_parts_and_others_stay(kind, tmp_path):
    catalog = make(kind, tmp_path)
    names = [name_in(kind, f"t{number}") for number in range(5)]
    for name in names:
        catalog.create_table(name, rows(1, 2))
        catalog.drop_table(name, ttl="0s")
    kept = name_in(kind, "kept")
    catalog.create_table(kept, rows(3))
    catalog.drop_table(kept, ttl="9d")
    told = []

    report = purge(
        catalog,
        [ObjectId.parse(name) for name in [*names, kept]],
        runner=Threads(2),
        only_expired=True,
        progress=lambda table, files, size: told.append((str(table), files > 0, size > 0)),
    )

    assert sorted(map(str, report.purged)) == names
    assert report.failed == {}
    assert sorted(told) == [(name, True, True) for name in names]
    assert [str(one.id) for one in catalog.list_purgable_tables()] == [kept]
    catalog.undrop_table(kept)
    assert catalog.table(kept).count() == 1


def test_an_older_drop_of_a_name_goes_and_a_younger_one_stays(tmp_path):
    catalog = make(V2, tmp_path)
    catalog.create_table("ns$t", rows(1))
    catalog.drop_table("ns$t", ttl="0s")
    catalog.create_table("ns$t", rows(2, 3))
    catalog.drop_table("ns$t", ttl="9d")

    purge(catalog, [ObjectId(("ns", "t"))], runner=Threads(2), only_expired=True)

    catalog.undrop_table("ns$t")
    assert catalog.table("ns$t").count() == 2


def test_named_tables_are_purged_and_failures_told(tmp_path):
    catalog = make(COMPAT, tmp_path)
    catalog.create_table("a", rows(1))
    catalog.drop_table("a", ttl="9d")
    catalog.create_table("live", rows(1))
    wanted = [ObjectId(("a",)), ObjectId(("live",))]

    report = purge(catalog, wanted, runner=Threads(2), only_expired=False)

    assert list(map(str, report.purged)) == ["a"]
    assert list(map(str, report.failed)) == ["live"]
    read_only = connect(COMPAT, tmp_path, read_only=True)
    with pytest.raises(ReadOnlyError):
        purge(read_only, wanted, runner=Threads(2), only_expired=False)


def test_a_migration_in_groups_gives_every_table_its_row(tmp_path):
    plain = connect(V1, tmp_path)
    names = [f"t{number}" for number in range(7)]
    for name in names:
        plain.declare_table(name)
    catalog = connect(COMPAT, tmp_path)
    seen = []

    report = migrate(
        catalog, runner=Threads(3), group=2, progress=lambda done, total: seen.append((done, total))
    )

    assert list(report.added) == names
    assert report.is_complete
    assert seen[-1] == (7, 7)
    assert connect(V2, tmp_path).list_tables() == names
    assert migrate(catalog, runner=Threads(3)).added == ()
    with pytest.raises(UnsupportedError):
        migrate(plain, runner=Threads(1))
