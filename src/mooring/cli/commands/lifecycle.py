"""The verbs of ``mooring table`` that decide about a table's life: drop, undrop, protect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.batches import apply_to_each
from mooring.cli.confirm import Plan
from mooring.cli.listing import as_time
from mooring.cli.options import DroppedName, DryRun, LiveNames, Yes, command
from mooring.cli.session import Session

if TYPE_CHECKING:
    from mooring.catalog import Catalog
    from mooring.cli.batches import Done

__all__ = ["add_to"]


@command
def drop_command(
    session: Session,
    names: LiveNames,
    ttl: Annotated[
        str | None,
        typer.Option(
            "--ttl", metavar="DURATION", help="How long to stay in the trash: 7d, 12h, never."
        ),
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Hide tables; they come back with undrop until somebody purges them.

    Several tables at once need a confirmation.
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
        undo = session.suggest("table register", name)
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
    if not dry_run and len(set(names)) == 1:
        return True
    plan = _plan(session, catalog, verb, names)
    if dry_run:
        plan.show(session.output)
        return False
    plan.confirm(session.output, yes=yes)
    return True


def _plan(session: Session, catalog: Catalog, verb: str, names: list[str]) -> Plan:
    from mooring.errors import ProtectedError
    from mooring.identifiers import quote

    rows = []
    for name in dict.fromkeys(names):
        info = catalog.backend.describe_table(catalog.identifier(name))
        if info.properties.get("protected") == "true":
            lift = session.suggest("table unprotect", name)
            msg = f"table {quote(name)} is protected; lift that first: {lift}"
            raise ProtectedError(msg)
        rows.append({"table": name, "action": verb, "location": info.location})
    count = "1 table" if len(rows) == 1 else f"{len(rows)} tables"
    return Plan(f"{verb} {count}", ["table", "action", "location"], rows)


def _expiry(catalog: Catalog, name: str) -> str | None:
    from mooring.namespace.states import SoftDeleted

    status = catalog.table_status(name)
    return as_time(status.expires_at_ms) if isinstance(status, SoftDeleted) else None
