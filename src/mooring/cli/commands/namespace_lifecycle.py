"""The verbs of ``mooring namespace`` that decide about its life: drop and undrop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mooring.amounts import how_many
from mooring.cli.confirm import Plan
from mooring.cli.listing import (
    as_time,
    count_below,
    is_below,
    is_iceberg,
    list_namespaces,
    whole,
)
from mooring.cli.options import DroppedNamespace, DryRun, NamespaceName, TimeToLive, Yes, command
from mooring.cli.session import Session
from mooring.errors import (
    InvalidInputError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    ProtectedError,
)
from mooring.identifiers import quote

if TYPE_CHECKING:
    from mooring.catalog import Catalog
    from mooring.identifiers import ObjectId

__all__ = ["add_to"]


@command
def drop_command(
    session: Session,
    name: NamespaceName,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Drop all that is in it along.")
    ] = False,
    ttl: TimeToLive = None,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="One that is not there is dropped already.")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Hide a namespace; undrop brings it back whole until somebody purges it.

    Where something goes with it, that needs a confirmation. An Iceberg catalog lets only empty
    ones go, and they do not come back.
    """
    from mooring.clock import parse_ttl

    if not name:
        msg = "the root namespace is the catalog itself and cannot be dropped"
        raise InvalidInputError(msg)
    if ttl is not None:
        parse_ttl(ttl)
    catalog = session.open_catalog()
    try:
        plan, below = _plan_drop(session, catalog, name, cascade=cascade)
        if dry_run:
            plan.show(session.output)
            return
        if any(below):
            plan.confirm(session.output, yes=yes)
        catalog.drop_namespace(name, cascade=cascade, ttl=ttl)
    except NamespaceNotFoundError:
        if not if_exists:
            raise
        row = {"namespace": name, "result": "absent"}
        session.output.change(row, f"there is no namespace '{name}'")
        return
    _tell_dropped(session, catalog, name, below)


@command
def undrop_command(session: Session, name: DroppedNamespace) -> None:
    """Bring a dropped namespace back with all that was dropped with it."""
    catalog = session.open_catalog()
    count = catalog.undrop_namespace(name)
    # It is one of them itself.
    with_it = f", with {how_many(count - 1, 'object')} in it" if count > 1 else ""
    session.output.change(
        {"namespace": name, "result": "undropped", "objects": count},
        f"namespace '{name}' is live again{with_it}",
    )


def add_to(app: typer.Typer) -> None:
    """Add the verbs to a noun."""
    app.command("drop")(drop_command)
    app.command("undrop")(undrop_command)


def _plan_drop(
    session: Session, catalog: Catalog, name: str, *, cascade: bool
) -> tuple[Plan, tuple[int, int]]:
    """Say what a drop would take along.

    Raises:
        NamespaceNotFoundError: there is no such namespace.
        NamespaceNotEmptyError: something is in it, and would not go along.
        ProtectedError: it, or something in or around it, is protected.
    """
    catalog.describe_namespace(name)
    top = catalog.identifier(name)
    if is_iceberg(catalog):
        _require_empty(session, catalog, name)
    namespaces, tables = below = (0, 0) if is_iceberg(catalog) else count_below(catalog, top)
    if any(below) and not cascade:
        with_it = session.suggest("namespace drop", name, options=["--cascade"])
        msg = (
            f"namespace {quote(name)} is not empty: {_count(namespaces, tables)} would go with it;"
            f" to drop it with them: {with_it}"
        )
        raise NamespaceNotEmptyError(msg)
    _require_unprotected(session, catalog, top)
    headline = f"drop namespace {quote(name)}"
    if any(below):
        headline += f" with {_count(namespaces, tables)}"
    row = {"namespace": name, "action": "drop", "namespaces": namespaces, "tables": tables}
    return Plan(headline, list(row), [row]), below


def _require_empty(session: Session, catalog: Catalog, name: str) -> None:
    """Refuse a namespace in which something is: no request of Iceberg's drops several objects.

    Raises:
        NamespaceNotEmptyError: something is in it.
    """
    namespaces, tables = len(catalog.list_namespaces(name)), len(catalog.list_tables(name))
    if not namespaces and not tables:
        return
    look = session.suggest("ls" if tables else "namespace list", name)
    msg = (
        f"namespace {quote(name)} is not empty, and an Iceberg catalog drops only empty ones: drop"
        f" the {_count(namespaces, tables)} in it first; to see them: {look}"
    )
    raise NamespaceNotEmptyError(msg)


def _require_unprotected(session: Session, catalog: Catalog, top: ObjectId) -> None:
    from mooring.namespace.properties import PROTECTED

    if is_iceberg(catalog):
        return  # it holds nothing, and the drop looks at it again
    backend = whole(catalog)
    described = [
        (name, properties, "namespace") for name, properties in backend.describe_namespaces()
    ]
    described += [(info.id, info.properties, "table") for info in backend.describe_tables(top)]
    for name, properties, kind in described:
        concerns = name == top or is_below(name, top) or is_below(top, name)
        if concerns and not name.is_root and properties.get(PROTECTED) == "true":
            lift = (
                session.suggest("namespace set", str(name), options=["--unprotect"])
                if kind == "namespace"
                else session.suggest("table unprotect", str(name))
            )
            msg = f"{kind} {quote(str(name))} is protected; lift that first: {lift}"
            raise ProtectedError(msg)


def _tell_dropped(session: Session, catalog: Catalog, name: str, below: tuple[int, int]) -> None:
    dropped = [
        found
        for found in list_namespaces(catalog)
        if found.name == name and found.deleted_at_ms is not None
    ]
    if not dropped:
        row = {"namespace": name, "result": "dropped", "namespaces": 0, "tables": 0}
        again = session.suggest("namespace create", name)
        sentence = f"dropped namespace '{name}', of which nothing is kept; to have it again:"
        session.output.change({**row, "expires_at": None}, f"{sentence} {again}")
        return
    newest = max(dropped, key=lambda found: found.deleted_at_ms or 0, default=None)
    expires_at = as_time(newest.expires_at_ms) if newest else None
    namespaces, tables = below
    row = {
        "namespace": name,
        "result": "dropped",
        "namespaces": namespaces,
        "tables": tables,
        "expires_at": expires_at,
    }
    with_it = f" with {_count(namespaces, tables)}" if any(below) else ""
    until = f"until {expires_at}" if expires_at else "for ever"
    undo = session.suggest("namespace undrop", name)
    session.output.change(
        row,
        f"dropped namespace '{name}'{with_it}, which stays in the trash {until}; undo: {undo}",
    )


def _count(namespaces: int, tables: int) -> str:
    parts = []
    if tables:
        parts.append(how_many(tables, "table"))
    if namespaces:
        parts.append(how_many(namespaces, "namespace"))
    return " and ".join(parts)
