"""``mooring inventory``: what each table of a catalog holds and takes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.amounts import how_many
from mooring.cli.listing import as_time
from mooring.cli.options import OptionalNamespace, command
from mooring.cli.session import Session
from mooring.cli.spark import Conf, Master, UseSpark, choose_runner
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from mooring.catalog import Catalog
    from mooring.cli.output import Row
    from mooring.jobs.runner import Runner
    from mooring.upkeep.inventory import Inventory, TableSummary

__all__ = ["inventory_command"]

_COLUMNS = (
    "name",
    "state",
    "version",
    "versions",
    "rows",
    "deleted_rows",
    "fragments",
    "small_fragments",
    "data_bytes",
    "total_bytes",
    "indexes",
    "written_at",
    "written_by",
    "properties",
)


@command
def inventory_command(
    session: Session,
    namespace: OptionalNamespace = "",
    sort: Annotated[
        str,
        typer.Option(
            "--sort", metavar="COLUMN", help="By which column: numbers from the largest down."
        ),
    ] = "name",
    totals: Annotated[
        bool, typer.Option("--totals", help="Only the sums over all tables.")
    ] = False,
    into: Annotated[
        str | None,
        typer.Option("--into", metavar="NAME", help="Append it to this table, too, with the time."),
    ] = None,
    spark: UseSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Show rows, bytes, fragments, versions and the last write of every table."""
    if sort not in _COLUMNS:
        msg = f"there is no column '{sort}' to sort by: there are {', '.join(_COLUMNS)}"
        raise InvalidInputError(msg)
    catalog = session.open_catalog()
    from mooring.upkeep.audit import FEW_TABLES

    fits = len(catalog.list_all_tables()) < FEW_TABLES
    with choose_runner(session, spark=spark, master=master, conf=conf, fits=fits) as runner:
        found = _take(session, catalog, runner, namespace)
    _keep(session, catalog, into, found)
    if totals:
        session.output.record(found.totals)
        return
    _tell(session, found, sort)


def _take(session: Session, catalog: Catalog, runner: Runner, namespace: str) -> Inventory:
    from mooring.cli.progress import show_progress
    from mooring.identifiers import ROOT
    from mooring.jobs.runner import Threads
    from mooring.upkeep.inventory import take_inventory

    within = catalog.identifier(namespace) if namespace else ROOT
    with show_progress(session.output, shows=isinstance(runner, Threads)) as meter:

        def progress(done: int, total: int) -> None:
            meter("taking the inventory", f"{done:,} of {total:,} tables")

        return take_inventory(catalog, within, runner=runner, progress=progress)


def _keep(session: Session, catalog: Catalog, name: str | None, found: Inventory) -> None:
    if name is None:
        return
    from mooring.upkeep.inventory import keep

    version = keep(catalog, name, found)
    session.output.message(f"kept {len(found.tables):,} rows in '{name}': version {version}")


def _tell(session: Session, found: Inventory, sort: str) -> None:
    rows = [_row(one) for one in found.tables]
    first = next((row[sort] for row in rows if row[sort] is not None), "")
    is_number = isinstance(first, int)
    known = [row for row in rows if row[sort] is not None]
    known.sort(key=lambda row: row[sort] if is_number else str(row[sort]), reverse=is_number)  # type: ignore[arg-type,return-value]  # all of one type
    rows = [*known, *(row for row in rows if row[sort] is None)]
    if not session.output.is_for_people:
        session.output.rows(_COLUMNS, rows)
        return
    session.output.rows(_COLUMNS, [_for_people(row) for row in rows])
    session.output.message(_sum_up(found))


def _row(table: TableSummary) -> dict[str, object]:
    told = asdict(table)
    told["written_at"] = as_time(told.pop("written_at_ms"))
    return told


def _for_people(row: Row) -> Row:
    from mooring.cli.progress import format_size

    properties = row["properties"]
    pairs = properties.items() if isinstance(properties, dict) else ()
    return {
        **row,
        "data_bytes": format_size(int(str(row["data_bytes"]))),
        "total_bytes": format_size(int(str(row["total_bytes"]))),
        "properties": ", ".join(f"{key}={value}" for key, value in pairs) or None,
    }


def _sum_up(found: Inventory) -> str:
    from mooring.cli.progress import format_size

    sums = found.totals
    tables = how_many(sums["tables"], "table")
    return (
        f"{tables}: {sums['rows']:,} rows in {sums['fragments']:,} fragments,"
        f" {format_size(sums['data_bytes'])} of data, {format_size(sums['total_bytes'])} on storage"
    )
