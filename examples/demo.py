"""A year of flights as changes: 53 weekly batches, merged, compacted, published as a Lance table.

``make demo`` runs it. It makes the metastore ``./lake`` anew, prints every call that it makes with
what came of it, and leaves the catalog behind to be looked at.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.progress import track
from stage import Stage, console, load_data

from mooring.changes import Batch, ChangeTable, create_change_table, write_changes
from mooring.changes.compaction import compact
from mooring.changes.publishing import publish
from mooring.changes.vectors import Vector
from mooring.spark import read_table
from mooring.spark import write_changes as write_by_spark
from mooring.spark.runner import SparkRunner
from mooring.spark.session import SparkSettings, open_session

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mooring import Catalog

AUTHOR = "mooring demo"
KEYS = ["time_hour", "carrier", "flight"]
LAST_WEEKS = 2  # these are left to the executors of Spark
NEXT = {
    "mooring -c metastore+lake changes show 'air$flights'": "positions and partitions",
    "mooring -c metastore+lake changes log 'air$flights' -o csv": "every change",
    "mooring -c metastore+lake changes read 'air$flights' --at-position 3 --limit 3": "time travel",
    "mooring -c metastore+lake compact 'air$flights' --plan": "what a compaction would do",
    "mooring -c metastore+lake publish 'air$flights' --status": "published positions and versions",
    "mooring -c metastore+lake table query 'air$published' --limit 3": "the Lance table",
    "mooring -c metastore+lake txn list --limit 5": "the last transactions",
    "mooring -c metastore+lake table drop 'air$flights' --ttl 3d": "changes, bases and all",
    "mooring -c metastore+lake table undrop 'air$flights'": "and back",
    "mooring -c metastore+lake vacuum --older-than 0s --dry-run": "what nobody needs any more",
}

demo = Stage(
    "lake",
    AUTHOR,
    "A year of flights out of New York City, as 53 weekly batches of changes",
    scheme="metastore+",
)


@dataclass(frozen=True)
class Week:
    """What arrives in a week.

    Attributes:
        flights: Flights of the week.
        corrections: Delays of earlier flights as they turned out to be; only these columns.
        cancelled: Keys of earlier flights that never left.
    """

    flights: pa.Table
    corrections: pa.Table
    cancelled: pa.Table


@demo.step
def create(lake: Catalog, weeks: list[Week]) -> object:
    """Create a change table: rows are known by three columns, and parted by month."""
    lake.create_namespace("air")
    table = create_change_table(
        lake,
        "air$flights",
        weeks[0].flights.schema,
        keys=["time_hour", "carrier", "flight"],
        partition_by=["month(time_hour)"],
        buckets=4,
    )
    return [{"what": what, "is": value} for what, value in table.definition.describe().items()]


@demo.step
def arrive(lake: Catalog, weeks: list[Week]) -> object:
    """Write the weeks as they arrive: new flights, corrections and cancellations, all at once."""
    for number, week in shown(weeks[:-LAST_WEEKS]):
        changes = [
            Batch("air$flights", week.flights, "upsert"),
            Batch("air$flights", week.corrections, "upsert"),
            Batch("air$flights", week.cancelled, "delete"),
        ]
        write_changes(lake, changes, run=f"week {number}")
    again = write_changes(lake, changes, run=f"week {number}")
    table = ChangeTable(lake, "air$flights")
    return (
        f"position {table.position}, {table.count():,} flights",
        f"the last week once more: {again[0].is_new = }",
    )


@demo.step
def arrive_by_spark(lake: Catalog, weeks: list[Week]) -> object:
    """Let Spark's executors write the last weeks, in one transaction."""
    spark = open_session(SparkSettings("local[2]"), quiet=True)
    changes = [
        (spark.createDataFrame(rows), "air$flights", type_)
        for week in weeks[-LAST_WEEKS:]
        for rows, type_ in ((week.flights, "upsert"), (week.corrections, "upsert"))
    ]
    landed = write_by_spark(lake, changes, run="the last weeks")
    return [f"position {one.position}: {one.rows:,} rows" for one in landed]


@demo.step
def ask(lake: Catalog, _: list[Week]) -> object:
    """Ask Spark: it sees the changes merged."""
    spark = open_session(SparkSettings("local[2]"), quiet=True)
    read_table(spark, lake, "air$flights").createOrReplaceTempView("flights")
    return spark.sql(
        "SELECT carrier, count(*) AS flights, round(avg(arr_delay), 1) AS late FROM flights"
        " GROUP BY carrier ORDER BY late DESC LIMIT 4"
    ).toArrow()


@demo.step
def travel(lake: Catalog, _: list[Week]) -> object:
    """Go back in time, and read only what a condition leaves."""
    table = ChangeTable(lake, "air$flights")
    july = "time_hour >= TIMESTAMP '2013-07-01 00:00:00' AND carrier = 'HA'"
    plan = table.plan(where=july)
    then = table.to_arrow(position=40, columns=["flight"]).num_rows
    return (
        f"at position 40 there were {then:,}",
        f"{table.count(july)} flights of Hawaiian since July",
        f"{len(plan.buckets)} buckets are read for it, {plan.left_out} left out by statistics",
    )


@demo.step
def put_together(lake: Catalog, _: list[Week]) -> object:
    """Compact on Spark, beside whoever writes: buckets without changes keep their files."""
    table = ChangeTable(lake, "air$flights")
    spark = open_session(SparkSettings("local[2]"), quiet=True)
    before = pieces(table)
    report = compact(table, runner=SparkRunner(spark))
    return (
        f"{len(report.rounds)} partitions, through position {table.position}",
        f"{before:,} pieces of files made up the table, {pieces(table):,} do now",
    )


@demo.step
def make_public(lake: Catalog, _: list[Week]) -> object:
    """Publish it as a Lance table with a vector of each flight and two indexes."""
    report = publish(
        ChangeTable(lake, "air$flights"),
        "air$published",
        vector=Vector("profile", function=f"{__file__}:profile"),
        indexes=["carrier:BITMAP", "profile:IVF_FLAT"],
    )
    return f"position {report.position} is version {report.version}: {report.rows_written:,} rows"


@demo.step
def search(lake: Catalog, _: list[Week]) -> object:
    """Find the flights that are most like one: long, late, and in the evening."""
    like = {"dep_delay": [240], "arr_delay": [250], "distance": [2500], "hour": [19]}
    vector = profile(pa.RecordBatch.from_pydict(like))[0].as_py()
    columns = ["time_hour", "carrier", "flight", "dest", "dep_delay", "distance"]
    return lake.table("air$published").query(columns, vector=vector, k=4).read_all()


@demo.step
def go_on(lake: Catalog, weeks: list[Week]) -> object:
    """Correct some flights, and publish again: one version, and only what changed is written."""
    table = ChangeTable(lake, "air$flights")
    table.upsert(weeks[-1].corrections, message="as told by the towers")
    report = publish(table)
    again = publish(table)
    return (
        f"position {report.position} is version {report.version}: {report.rows_written:,} rows",
        f"once more: {again.is_new = }",
    )


@demo.step
def keep(lake: Catalog, weeks: list[Week]) -> object:
    """Keep late flights as a Lance table that grows; name a version, and branch from it."""
    late = [week.flights.filter(pc.field("arr_delay") > 120) for week in weeks]
    lake.create_table("air$late", late[0])
    table = lake.table("air$late")
    for first in range(1, 53, 8):
        table.insert(pa.concat_tables(late[first : first + 8]))
    table.indexes.create("carrier", "BITMAP")
    table.tags.create("year-2013")
    table.branches.create("excused", tag="year-2013")
    excused = table.delete("arr_delay < 180", branch="excused")
    table.delete("origin = 'EWR' AND arr_delay < 150")
    return (
        f"{table.count():,} late flights at version {table.version}",
        f"{excused.deleted:,} are excused, on the branch alone",
    )


@demo.step
def drop(lake: Catalog, _: list[Week]) -> object:
    """Drop the published table, and bring it back; another one stays in the trash."""
    lake.drop_table("air$published")
    status = lake.table_status("air$published")
    lake.undrop_table("air$published")
    lake.create_table("air$scratch", lake.table("air$published").to_arrow(limit=100))
    lake.drop_table("air$scratch", ttl="30d")
    return type(status).__name__, f"{lake.table('air$published').count():,} rows are back"


# -- the data --------------------------------------------------------------------------------------


def profile(flights: pa.RecordBatch) -> pa.Array:
    """Make a vector of each flight: how late it left and came, how far it went, and when."""
    scales = {"dep_delay": 60, "arr_delay": 60, "distance": 1000, "hour": 8}
    columns = [
        pc.fill_null(flights[name].cast(pa.float32()), 0.0).to_numpy(zero_copy_only=False) / scale
        for name, scale in scales.items()
    ]
    numbers = np.stack(columns, axis=1).astype(np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), len(scales))


def make_weeks(flights: pa.Table) -> list[Week]:
    """Tell the year as its weeks: a share of the flights is corrected or cancelled later."""
    flights = flights.drop_columns(["year", "month", "day", "minute"])
    days = pc.day_of_year(flights["time_hour"]).to_numpy()
    numbers = np.minimum((days - 1) // 7, 52)
    found = []
    for number in range(53):
        own = flights.filter(pa.array(numbers == number))
        before = flights.filter(pa.array(numbers == number - 1))
        before_that = flights.filter(pa.array(numbers == number - 2))
        found.append(Week(own, _correct(before), _cancel(before_that)))
    return found


def _correct(flights: pa.Table) -> pa.Table:
    """Say of every 25th flight that it came five minutes later than was told."""
    chosen = flights.take(pa.array(np.arange(0, flights.num_rows, 25)))
    chosen = chosen.filter(chosen["arr_delay"].is_valid())
    return chosen.select(KEYS).append_column("arr_delay", pc.add(chosen["arr_delay"], 5))


def _cancel(flights: pa.Table) -> pa.Table:
    return flights.filter(flights["dep_time"].is_null()).select(KEYS)


def pieces(table: ChangeTable) -> int:
    """Count the pieces of files that a reader puts together."""
    return sum(len(bucket.pieces) for bucket in table.plan().buckets)


def shown(weeks: list[Week]) -> Iterable[tuple[int, Week]]:
    """Go through weeks, with a bar for people."""
    is_seen = sys.stdout.isatty()
    return enumerate(
        track(weeks, "  writing", console=console, transient=True, disable=not is_seen)
    )


def summarize(lake: Catalog) -> list[dict[str, object]]:
    """Tell what the year has become."""
    table = ChangeTable(lake, "air$flights")
    published = lake.table("air$published")
    return [
        {
            "what": "changes",
            "is": f"{table.position} positions, {len(table.at().partitions)} months",
        },
        {"what": "rounds of compaction", "is": len(table.rounds())},
        {"what": "flights, merged on read", "is": table.count()},
        {"what": "flights, published", "is": published.count()},
        {"what": "version of the Lance table", "is": published.version},
    ]


def main() -> None:
    """Run every step."""
    demo.run(make_weeks(load_data()["flights"]), NEXT, summarize)


if __name__ == "__main__":
    main()
