"""The verbs of ``mooring table`` that decide about a table's life: drop, undrop, protect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mooring.amounts import how_many
from mooring.cli.batches import apply_to_each
from mooring.cli.confirm import Plan
from mooring.cli.listing import as_time, can_undrop, is_iceberg, is_remote, stored
from mooring.cli.options import DroppedName, DryRun, LiveNames, TimeToLive, Yes, command
from mooring.cli.session import Session

if TYPE_CHECKING:
    from mooring.catalog import Catalog
    from mooring.cli.batches import Done
    from mooring.namespace.api import TableInfo

__all__ = ["add_to"]


@command
def drop_command(
    session: Session,
    names: LiveNames,
    ttl: TimeToLive = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Hide tables; they come back with undrop until somebody purges them.

    Several tables at once need a confirmation, and one of a server that keeps nothing of it.
    """
    catalog = session.open_catalog()
    if not _agreed(session, catalog, "drop", names, yes=yes, dry_run=dry_run):
        return

    def drop(name: str) -> Done:
        info = catalog.drop_table(name, ttl=ttl)
        expires_at = _expiry(catalog, name)
        row = {
            "table": name,
            "result": "dropped",
            "location": info.location,
            "expires_at": expires_at,
        }
        if not can_undrop(catalog):
            return row, f"dropped '{name}'; whether its server keeps anything of it is not known"
        until = f"until {expires_at}" if expires_at else "for ever"
        undo = session.suggest("table undrop", name)
        return row, f"dropped '{name}', which stays in the trash {until}; undo: {undo}"

    apply_to_each(session, names, drop)


@command
def undrop_command(
    session: Session,
    name: DroppedName,
    new_name: Annotated[
        str | None,
        typer.Option("--to", metavar="NEW_NAME", help="Bring it back under another name."),
    ] = None,
) -> None:
    """Bring a dropped table back."""
    info = session.open_catalog().undrop_table(name, new_name)
    session.output.change(
        {"table": str(info.id), "result": "undropped", "location": info.location},
        f"'{info.id}' is live again",
    )


@command
def deregister_command(
    session: Session, names: LiveNames, yes: Yes = False, dry_run: DryRun = False
) -> None:
    """Forget tables' names and keep their bytes; register brings them back.

    Several tables at once need a confirmation.
    """
    catalog = session.open_catalog()
    if not _agreed(session, catalog, "deregister", names, yes=yes, dry_run=dry_run):
        return

    def deregister(name: str) -> Done:
        info = catalog.deregister_table(name)
        row = {"table": name, "result": "deregistered", "location": info.location}
        undo = _suggest_register(session, catalog, name, info.location)
        return row, f"deregistered '{name}'; its bytes stay in '{info.location}'; undo: {undo}"

    apply_to_each(session, names, deregister)


@command
def protect_command(session: Session, names: LiveNames) -> None:
    """Make drops of tables refuse."""
    _protect(session, names, protected=True)


@command
def unprotect_command(session: Session, names: LiveNames) -> None:
    """Allow drops of tables again."""
    _protect(session, names, protected=False)


def add_to(app: typer.Typer) -> None:
    """Add the verbs to a noun."""
    app.command("drop")(drop_command)
    app.command("undrop")(undrop_command)
    app.command("deregister")(deregister_command)
    app.command("protect")(protect_command)
    app.command("unprotect")(unprotect_command)


def _protect(session: Session, names: list[str], *, protected: bool) -> None:
    catalog = session.open_catalog()
    result = "protected" if protected else "unprotected"

    def protect(name: str) -> Done:
        catalog.protect_table(name, protected=protected)
        return {"table": name, "result": result}, f"'{name}' is {result}"

    apply_to_each(session, names, protect)


def _agreed(
    session: Session, catalog: Catalog, verb: str, names: list[str], *, yes: bool, dry_run: bool
) -> bool:
    """Show or confirm what one table alone does not need: a drop can be undone."""
    if not dry_run and len(set(names)) == 1 and (verb != "drop" or can_undrop(catalog)):
        return True
    plan = _plan(session, catalog, verb, names)
    return plan.is_agreed(session.output, yes=yes, dry_run=dry_run)


def _plan(session: Session, catalog: Catalog, verb: str, names: list[str]) -> Plan:
    rows = []
    for name in dict.fromkeys(names):
        info = _describe(catalog, verb, name)
        _require_unprotected(session, catalog, info)
        rows.append({"table": name, "action": verb, "location": info.location})
    return Plan(f"{verb} {how_many(len(rows), 'table')}", ["table", "action", "location"], rows)


def _describe(catalog: Catalog, verb: str, name: str) -> TableInfo:
    """Locate a table; change tables can be dropped, too."""
    from mooring.metastore.backend import MetastoreBackend

    table = catalog.identifier(name)
    if verb == "drop" and isinstance(catalog.backend, MetastoreBackend):
        return catalog.backend.describe_any(table)
    return catalog.backend.describe_table(table)


def _require_unprotected(session: Session, catalog: Catalog, info: TableInfo) -> None:
    """Refuse a table that is protected, by itself or by a namespace around it.

    Raises:
        ProtectedError: it is.
    """
    from mooring.errors import ProtectedError
    from mooring.identifiers import quote
    from mooring.namespace.properties import PROTECTED

    what, lift = "", ""
    if info.properties.get(PROTECTED) == "true":
        what = f"table {quote(str(info.id))}"
        lift = session.suggest("table unprotect", str(info.id))
    around = info.id.parent
    while not what and not around.is_root:
        if catalog.describe_namespace(around).get(PROTECTED) == "true":
            what = f"namespace {quote(str(around))}"
            lift = session.suggest("namespace set", str(around), options=["--unprotect"])
        around = around.parent
    if what:
        msg = f"{what} is protected; lift that first: {lift}"
        raise ProtectedError(msg)


def _suggest_register(session: Session, catalog: Catalog, name: str, location: str) -> str:
    """Write the command that undoes a deregistration; only `<name>.lance` need not be said."""
    from mooring.directory.layout import table_dir

    if is_iceberg(catalog) or is_remote(catalog):
        return session.suggest("table register", name, options=["--location", location])
    path = location.removeprefix(stored(catalog).store.location("").rstrip("/") + "/")
    options = [] if path == table_dir(name) else ["--location", path]
    return session.suggest("table register", name, options=options)


def _expiry(catalog: Catalog, name: str) -> str | None:
    from mooring.namespace.states import SoftDeleted

    status = catalog.table_status(name)
    return as_time(status.expires_at_ms) if isinstance(status, SoftDeleted) else None
