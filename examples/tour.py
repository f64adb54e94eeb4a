"""A tour of Mooring on real data: the 336,776 flights that left New York City in 2013.

``make tour`` runs it. It makes the catalog ``./tour`` anew, prints every call that it makes with
what came of it, and leaves the catalog behind to be looked at.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pyarrow.parquet
from stage import Stage, load_data

import mooring
from mooring.ingest import ingest
from mooring.spark import create_views
from mooring.spark.session import SparkSettings, open_session
from mooring.upkeep.audit import audit
from mooring.upkeep.inventory import take_inventory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring import Catalog

AUTHOR = "mooring tour"
NEXT = {
    "mooring ls -c tour --all": "every table and its state",
    "mooring table describe flights -c tour": "",
    "mooring table query airports -c tour --limit 5": "rows, or a file of them",
    "mooring table history airlines -c tour": "",
    "mooring namespace tree -c tour": "",
    "mooring table history planes -c tour -o json": "",
    "mooring table drop airports -c tour --ttl 3d": "",
    "mooring trash list -c tour": "",
    "mooring table undrop airports -c tour": "",
    "mooring table drop flights -c tour": "refused: it is protected",
    "mooring inventory -c tour": "every table with its rows, files and bytes",
    "mooring audit -c tour": "whatever is broken or left over, and its repair",
    "mooring ingest tour/airports.lance --into copy -c tour": "or Parquet, CSV, JSON, ORC",
    "mooring doctor -c tour": "settings, store and catalog, checked",
}

tour = Stage("tour", AUTHOR, "Mooring on the flights that left New York City in 2013")


@tour.step
def create(lake: Catalog, data: dict[str, pa.Table]) -> object:
    """Create five tables from Arrow data."""
    for name, rows in data.items():
        lake.create_table(name, rows)
    return [(name, lake.table(name).count(), lake.table(name).version) for name in lake]


@tour.step
def query(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Ask which airlines are late: Lance reads, Arrow groups and joins."""
    delays = lake.table("flights").to_arrow(columns=["carrier", "arr_delay"])
    by_carrier = delays.group_by("carrier").aggregate([("arr_delay", "mean"), ([], "count_all")])
    named = by_carrier.join(lake.table("airlines").to_arrow(), "carrier")
    return named.sort_by([("arr_delay_mean", "descending")]).slice(length=5)


@tour.step
def count(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Count with a filter: over two hours late, to San Francisco."""
    return lake.table("flights").count("dest = 'SFO' AND arr_delay > 120")


@tour.step
def change(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Name a version, change rows by SQL, compare, and go back; each change is one commit."""
    airlines = lake.table("airlines")
    airlines.tags.create("as-published", 1)
    airlines.merge(
        [{"carrier": "MQ", "name": "Envoy"}, {"carrier": "NK", "name": "Spirit"}], "carrier"
    )
    airlines.delete("name LIKE '%Airways%'")
    difference = airlines.diff(1, 3).rows
    airlines.restore(1)
    versions = [
        f"version {one.version}: {one.operation}, {one.rows} rows" for one in airlines.log()
    ]
    return *versions, difference


@tour.step
def bring_in(lake: Catalog, data: dict[str, pa.Table]) -> object:
    """Bring a file in by key, in one commit; the same run a second time changes nothing."""
    with parquet_of(data["airports"].slice(0, 100)) as file:
        first = ingest(lake, file, "airports", mode="upsert", key="faa", run_id="load-1")
        again = ingest(lake, file, "airports", mode="upsert", key="faa", run_id="load-1")
    return f"{first.rows_updated} updated, {first.rows_inserted} inserted", f"{again.is_new = }"


@tour.step
def ask_spark(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Ask Spark: every table of the catalog is a view of SQL."""
    try:
        spark = open_session(SparkSettings("local[2]"), quiet=True)
    except mooring.errors.UnsupportedError as missing:
        return missing
    create_views(spark, lake)
    return spark.sql(
        "SELECT name, count(*) AS flights, round(avg(distance)) AS miles FROM flights"
        " JOIN airlines USING (carrier) GROUP BY name ORDER BY flights DESC LIMIT 5"
    ).toArrow()


@tour.step
def look_after(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Look after a whole catalog: what is in it, and whether anything is wrong."""
    tables = [(table.name, table.rows, table.version) for table in take_inventory(lake).tables]
    return tables, f"{audit(lake).is_clean = }"


@tour.step
def drop(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Drop two tables, one for half an hour only; an open reader reads on."""
    reader = lake.table("weather").to_lance()
    lake.drop_table("weather")
    lake.drop_table("planes", ttl="30m")
    return lake.list_tables(), f"the open reader still counts {reader.count_rows():,} rows"


@tour.step
def trash(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Look into the trash."""
    return lake.list_purgable_tables()


@tour.step
def undrop(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Bring one back, every row of it; delete the bytes of the other."""
    lake.undrop_table("weather")
    lake.purge_table("planes")
    return lake.table("weather").count(), lake.table_status("planes")


@tour.step
def history(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """See who did what to a table, and when."""
    return lake.history("weather")


@tour.step
def recreate(lake: Catalog, data: dict[str, pa.Table]) -> object:
    """Create the purged table again: its version numbers go on."""
    lake.create_table("planes", data["planes"])
    return lake.history("planes")


@tour.step
def protect(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Protect a table: drops are refused until that is lifted."""
    lake.protect_table("flights")
    try:
        return lake.drop_table("flights")
    except mooring.errors.ProtectedError as refusal:
        return refusal


@tour.step
def nest(lake: Catalog, data: dict[str, pa.Table]) -> object:
    """Make namespaces within namespaces; a table in them is renamed by one row."""
    lake.create_namespace("reference", {"owner": "data team", "mooring.retention": "30d"})
    lake.create_namespace("reference$codes")
    lake.create_table("reference$codes$carriers", data["airlines"])
    lake.rename_table("reference$codes$carriers", "reference$carriers")
    lake.rename_table("weather", "reference$weather")
    return lake.list_tables(), [str(table) for table in lake.list_all_tables()]


@tour.step
def drop_tree(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Drop a whole namespace in one commit, and bring it back whole."""
    lake.drop_namespace("reference", cascade=True)
    dropped = lake.list_purgable_tables()
    lake.undrop_namespace("reference")
    return dropped, f"{lake.table('reference$weather').count():,} rows of weather are back"


@tour.step
def through_lance(_: Catalog, __: dict[str, pa.Table]) -> object:
    """Open a table by name with Lance itself, through the catalog."""
    names = mooring.DirectoryNamespace(root="tour")
    flights = lance.dataset(namespace_client=names, table_id=["flights"])
    return flights.version, flights.count_rows(), flights.schema.names[:4]


@contextmanager
def parquet_of(rows: pa.Table) -> Iterator[str]:
    """Give a file with rows, which is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        pyarrow.parquet.write_table(rows, file)
        yield str(file)


def main() -> None:
    """Run every step."""
    tour.run(load_data(), NEXT)


if __name__ == "__main__":
    main()
