"""On a real cluster everything that uses Spark gives what local mode gives.

Each feature is a function that makes a table and tells what is in it. It is called in a driver of
the cluster, and here with a session of local mode; paths and sources are the same.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mooring
from mooring.jobs.runner import Threads
from mooring.spark.ingest import ingest_with, read_query
from mooring.spark.runner import SparkRunner
from mooring.spark.streaming import stream_table, write_stream
from mooring.spark.tables import create_view, read_table, write_table
from mooring.upkeep.audit import audit
from mooring.upkeep.compaction import compact
from mooring.upkeep.filling import fill_column
from mooring.upkeep.indexing import build_index
from mooring.upkeep.inventory import take_inventory
from mooring.upkeep.migrating import migrate
from mooring.upkeep.purging import purge
from tests.spark import cluster as driver
from tests.spark.places import DISK, Place
from tests.upkeep.faults import damaged_footer, fill, missing_data, orphan, pending_run

pytestmark = pytest.mark.interop

SOME = ("v1-disk", "v2-seaweedfs", "metastore-disk")


@pytest.fixture(params=SOME)
def places(request, tmp_path, prefix) -> tuple[Place, Place]:
    """Two catalogs of the same kind: one for the cluster, one for local mode."""
    kind = request.param
    if not kind.endswith("seaweedfs"):
        return Place.of(kind, str(tmp_path / "there")), Place.of(kind, str(tmp_path / "here"))
    server = request.getfixturevalue("seaweedfs")
    return (
        Place.of(kind, server.uri(f"{prefix}/there"), server.options),
        Place.of(kind, server.uri(f"{prefix}/here"), server.options),
    )


def compare(function, places, cluster, spark, *args):
    """Call a function with both sessions; return what both told."""
    there, here = places
    told = cluster.run(in_the_driver, function, there, *args)
    assert told == function(here, spark, *args)
    return told


def in_the_driver(function, place, *args):
    return function(place, driver.session(), *args)


def rows_of(table) -> list[tuple[object, ...]]:
    found = table.to_arrow()
    return sorted(tuple(row.values()) for row in found.to_pylist())


# -- the data source -------------------------------------------------------------------------------


def read_and_write(place: Place, spark) -> list[object]:
    catalog = place.open()
    frame = spark.range(0, 1000, 1, 4).selectExpr(
        "id", "id % 7 AS week", "cast(id AS string) AS word", "array(id, id + 1) AS pair"
    )
    made = write_table(frame, catalog, place.name)
    more = write_table(frame.where("id < 10"), catalog, place.name, mode="append")
    read = read_table(spark, catalog, place.name)
    view = create_view(spark, catalog, place.name, "numbers")
    found = [
        (made.version, made.rows, more.version, more.rows),
        read.where("id >= 990 OR word = '5'").orderBy("id").collect(),
        read_table(spark, catalog, place.name, version=made.version).count(),
        spark.sql("SELECT week, count(*) AS n FROM numbers GROUP BY week ORDER BY week").collect(),
    ]
    spark.catalog.dropTempView(view)
    write_table(frame.where("id < 3"), catalog, place.name, mode="overwrite")
    return [*found, rows_of(catalog.table(place.name))]


def test_the_data_source(places, cluster, spark):
    told = compare(read_and_write, places, cluster, spark)
    assert told[0][1:] == (1000, told[0][0] + 1, 10)
    assert len(told[-1]) == 3


# -- ingestion -------------------------------------------------------------------------------------


def bring_in(place: Place, spark, source: str) -> list[object]:
    catalog, runner = place.open(), SparkRunner(spark)
    told = []
    for options in (
        {"mode": "append", "run_id": "first"},
        {"mode": "append", "run_id": "first"},
        {"mode": "upsert", "key": "n"},
    ):
        done = ingest_with(runner, catalog, source, place.name, **options)
        told.append((done.is_new, done.rows_in, done.rows_inserted, done.rows_updated, done.files))
    query = read_query(runner, "SELECT id AS n, cast(id AS string) AS word FROM range(95, 105)")
    done = ingest_with(runner, catalog, query, place.name, mode="upsert", key="n")
    told.append((done.rows_in, done.rows_inserted, done.rows_updated))
    return [*told, rows_of(catalog.table(place.name))]


def test_ingestion(places, cluster, spark, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for part in range(4):
        numbers = range(25 * part, 25 * part + 25)
        rows = {"n": list(numbers), "word": [str(n) for n in numbers]}
        pq.write_table(pa.table(rows), source / f"{part}.parquet")
    told = compare(bring_in, places, cluster, spark, str(source))
    assert [one[0] for one in told[:3]] == [True, False, True]
    assert len(told[-1]) == 105


# -- maintenance -----------------------------------------------------------------------------------


def look_after(place: Place, spark, function: str) -> list[object]:
    catalog, runner = place.open(), SparkRunner(spark)
    table = catalog.create_table(place.name, pa.table({"n": list(range(100)), "x": [0.5] * 100}))
    for part in range(1, 6):
        rows = {"n": list(range(100 * part, 100 * part + 100)), "x": [float(part)] * 100}
        table.insert(pa.table(rows))
    filled = fill_column(catalog, place.name, "twice", function, runner=runner, reads=["n"])
    merged = compact(catalog, place.name, runner=runner, target_rows=300)
    built = build_index(catalog, place.name, "n", runner=runner)
    table = catalog.table(place.name)
    assert table.to_lance().scanner(filter="n = 250").explain_plan().count("ScalarIndexQuery") == 1
    return [
        filled.rows,
        (merged.fragments_removed, merged.fragments_added),
        (built.name, built.parts, built.whole_because),
        table.to_arrow(filter="n = 250").to_pylist(),
        rows_of(table),
    ]


def test_maintenance(places, cluster, spark, tmp_path):
    module = tmp_path / "functions.py"
    module.write_text(
        "import pyarrow.compute as pc\n\ndef twice(batch):\n    return pc.multiply(batch['n'], 2)\n"
    )
    told = compare(look_after, places, cluster, spark, f"{module}:twice")
    assert len(told[-1]) == 600


# -- the whole catalog -----------------------------------------------------------------------------


def audit_there(place: Place) -> tuple[object, object]:
    return look_through(place, SparkRunner(driver.session()))


def look_through(place: Place, runner) -> tuple[object, object]:
    catalog = place.open()
    found = audit(catalog, runner=runner, all_versions=True)
    return found, take_inventory(catalog, runner=runner).tables


def purge_there(place: Place) -> list[str]:
    catalog = place.open()
    expired = [one.id for one in catalog.list_purgable_tables()]
    report = purge(catalog, expired, runner=SparkRunner(driver.session()), only_expired=True)
    assert not report.failed
    return sorted(str(one) for one in report.purged)


@pytest.mark.parametrize("kind", DISK)
def test_jobs_over_a_whole_catalog(kind, cluster, spark, tmp_path):
    place = Place.of(kind, str(tmp_path / "lake"))
    catalog = place.open()
    above = "$".join([*place.names[:-1], ""])
    for plant in (damaged_footer, missing_data, orphan, pending_run):
        plant(catalog, fill(catalog, above + plant.__name__))
    for number in range(3):
        catalog.create_table(f"{above}old{number}", pa.table({"n": [number]}))
        catalog.drop_table(f"{above}old{number}", ttl="0s")
    there = cluster.run(audit_there, place)
    assert there == look_through(place, SparkRunner(spark))
    assert there == look_through(place, Threads(2))
    assert len(there[0].findings) >= 4
    assert cluster.run(purge_there, place) == [f"{above}old{number}" for number in range(3)]
    assert not catalog.list_purgable_tables()


def migrate_there(root: str) -> tuple[list[str], bool]:
    return migrate_with(root, SparkRunner(driver.session()))


def migrate_with(root: str, runner) -> tuple[list[str], bool]:
    moved = migrate(mooring.connect(root), runner=runner, group=2)
    return sorted(str(name) for name in moved.added), moved.is_complete


def test_migration(cluster, tmp_path):
    for side in ("there", "here"):
        plain = mooring.connect(tmp_path / side, manifest_enabled=False)
        for number in range(5):
            plain.create_table(f"t{number}", pa.table({"n": [number]}))
    there = cluster.run(migrate_there, str(tmp_path / "there"))
    assert there == migrate_with(str(tmp_path / "here"), Threads(2))
    assert there[1]
    names = mooring.connect(tmp_path / "there", dir_listing_enabled=False).list_tables()
    assert names == [f"t{number}" for number in range(5)]


# -- streams ---------------------------------------------------------------------------------------


def stream(place: Place, spark, inbox: str, checkpoints: str) -> list[object]:
    catalog = place.open()
    copy = [*place.names[:-1], "copy"]
    told = []
    for name in ("1.json", "2.json"):
        with open(f"{inbox}/{name}", "w") as file:  # noqa: PTH123  # in the driver, too
            file.writelines(
                f'{{"n": {n}}}\n' for n in range(10 * int(name[0]), 10 * int(name[0]) + 5)
            )
        rows = spark.readStream.schema("n long").json(inbox)
        checkpoint = f"{checkpoints}/{place.names[-1]}"
        write_stream(
            rows, catalog, place.name, checkpoint=checkpoint, available_now=True
        ).awaitTermination(120)
        table = catalog.table(place.name)
        told.append(rows_of(table))
    changes = stream_table(spark, catalog, place.name, startingVersion=1)
    write_stream(
        changes, catalog, copy, checkpoint=f"{checkpoints}/copy", available_now=True
    ).awaitTermination(120)
    return [*told, rows_of(catalog.table(copy))]


@pytest.mark.parametrize("places", ["v2-disk", "metastore-disk"], indirect=True)
def test_streams(places, cluster, spark, tmp_path):
    told = []
    for side, place in zip(("there", "here"), places, strict=True):
        paths = [str(tmp_path / f"{what}-{side}") for what in ("inbox", "checkpoints")]
        (tmp_path / f"inbox-{side}").mkdir()
        if side == "there":
            told.append(cluster.run(in_the_driver, stream, place, *paths))
        else:
            told.append(stream(place, spark, *paths))
    assert told[0] == told[1]
    assert [len(rows) for rows in told[0]] == [5, 10, 10]
