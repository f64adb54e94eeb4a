"""``mooring namespace``: make, describe, change and show namespaces.

`namespace_lifecycle` adds drop and undrop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.listing import LISTED_COLUMNS, is_below, list_namespaces, whole
from mooring.cli.options import NewNamespace, OptionalNamespace, command, group
from mooring.cli.properties import (
    Description,
    Labels,
    Owner,
    Properties,
    Retention,
    Unset,
    gather_properties,
    require_updates,
    show_properties,
    tell_set,
)
from mooring.cli.session import Session
from mooring.errors import InvalidInputError, NamespaceAlreadyExistsError
from mooring.identifiers import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.catalog import Catalog
    from mooring.identifiers import ObjectId

__all__ = ["app"]

app = typer.Typer()


@app.callback(invoke_without_command=True)
@group
def namespace() -> None:
    """Namespaces: tables in groups, and groups in groups."""


@app.command("list")
@command
def list_command(
    session: Session,
    parent: OptionalNamespace = "",
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            "-a",
            help="All below it by full identifier, also dropped ones, with the state.",
        ),
    ] = False,
) -> None:
    """List the namespaces in a namespace."""
    catalog = session.open_catalog()
    names = catalog.list_namespaces(parent)
    if everything:
        listed = list_namespaces(catalog, _identify(catalog, parent))
        session.output.rows(LISTED_COLUMNS, [found.row() for found in listed])
        return
    session.output.names(names)
    if not names:
        place = f"namespace '{parent}'" if parent else f"'{catalog.uri}'"
        session.output.message(f"no namespaces in {place}")


@app.command("create")
@command
def create_command(
    session: Session,
    name: NewNamespace,
    properties: Properties = None,
    description: Description = None,
    owner: Owner = None,
    labels: Labels = None,
    retention: Retention = None,
    protect: Annotated[
        bool, typer.Option("--protect", help="Make drops of it, and of all in it, refuse.")
    ] = False,
    exist_ok: Annotated[
        bool, typer.Option("--exist-ok", help="Where it exists, leave it as it is.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Where it exists, replace its properties.")
    ] = False,
) -> None:
    """Make a namespace, and the catalog with it where there is none."""
    if exist_ok and overwrite:
        msg = "say --exist-ok or --overwrite, not both"
        raise InvalidInputError(msg)
    gathered = gather_properties(
        properties,
        description=description,
        owner=owner,
        labels=labels,
        retention=retention,
        protect=protect or None,
    )
    wanted = {key: value for key, value in gathered.items() if value is not None}
    catalog = session.open_catalog(may_create=True)
    mode = "exist_ok" if exist_ok else "overwrite" if overwrite else None
    kept, result = _create(catalog, name, wanted, mode)
    sentence = {
        "created": f"created namespace '{name}'",
        "exists": f"namespace '{name}' exists already and stays as it is",
        "overwritten": f"replaced the properties of namespace '{name}'",
    }[result]
    session.output.change({"namespace": name, "result": result, "properties": kept}, sentence)


@app.command("describe")
@command
def describe_command(session: Session, name: OptionalNamespace = "") -> None:
    """Show what is in a namespace, and its properties."""
    from mooring.config import mask_uris
    from mooring.namespace.properties import PROTECTED, RETENTION

    catalog = session.open_catalog()
    properties = catalog.describe_namespace(name)
    record: dict[str, object] = {
        "name": name,
        "namespaces": len(catalog.list_namespaces(name)),
        "tables": len(catalog.list_tables(name)),
        "protected": properties.get(PROTECTED) == "true",
        "retention": properties.get(RETENTION),
    }
    if not session.output.is_for_people:
        session.output.record({**record, "properties": properties})
        return
    session.output.record({**record, "name": name or mask_uris(catalog.uri)})
    show_properties(session.output, properties)


@app.command("set")
@command
def set_command(
    session: Session,
    name: OptionalNamespace = "",
    properties: Properties = None,
    unset: Unset = None,
    description: Description = None,
    owner: Owner = None,
    labels: Labels = None,
    retention: Retention = None,
    protect: Annotated[
        bool | None,
        typer.Option(
            "--protect/--unprotect",
            show_default=False,
            help="Make drops of it, and of all in it, refuse, or allow them again.",
        ),
    ] = None,
) -> None:
    """Change properties of a namespace; those that are not named stay."""
    updates = gather_properties(
        properties,
        description=description,
        owner=owner,
        labels=labels,
        retention=retention,
        protect=protect,
        unset=unset,
    )
    require_updates(updates)
    kept = session.open_catalog().update_namespace(name, updates)
    place = f"namespace '{name}'" if name else "the root namespace"
    tell_set(session.output, {"namespace": name}, place, kept)


@app.command("tree")
@command
def tree_command(session: Session, name: OptionalNamespace = "") -> None:
    """Show the namespaces and tables below a namespace."""
    from mooring.config import mask_uris

    catalog = session.open_catalog()
    catalog.describe_namespace(name)  # an absent one is no empty one
    top = _identify(catalog, name)
    branches = _branches(catalog, top)
    if not session.output.is_for_people:
        rows = [
            {"path": str(branch), "kind": kind, "properties": len(properties)}
            for branch, kind, properties in branches
            if not branch.is_root
        ]
        session.output.rows(["path", "kind", "properties"], rows)
        return
    lines = []
    for branch, kind, _ in branches:
        shown = branch.name if branch.level > top.level else (name or mask_uris(catalog.uri))
        closing = "/" if kind == "namespace" and not shown.endswith("/") else ""
        lines.append("  " * (branch.level - top.level) + shown + closing)
    session.output.names(lines)


def _identify(catalog: Catalog, name: str) -> ObjectId:
    return catalog.identifier(name) if name else ROOT


def _create(
    catalog: Catalog, name: str, properties: Mapping[str, str], mode: str | None
) -> tuple[dict[str, str], str]:
    """Make a namespace and tell what came of it: only a strict creation shows who made it."""
    try:
        return catalog.create_namespace(name, properties), "created"
    except NamespaceAlreadyExistsError:
        if mode is None:
            raise
    kept = catalog.create_namespace(name, properties, mode=mode)
    return kept, "exists" if mode == "exist_ok" else "overwritten"


def _branches(catalog: Catalog, top: ObjectId) -> list[tuple[ObjectId, str, Mapping[str, str]]]:
    """List a namespace and all below it: in each, namespaces first, then tables."""
    backend = whole(catalog)
    found: list[tuple[ObjectId, str, Mapping[str, str]]] = [
        (name, "namespace", properties) for name, properties in backend.describe_namespaces()
    ]
    found += [(info.id, "table", info.properties) for info in backend.describe_tables(top)]
    kept = [branch for branch in found if branch[0] == top or is_below(branch[0], top)]
    return sorted(kept, key=lambda branch: _place(branch[0], branch[1]))


def _place(name: ObjectId, kind: str) -> list[tuple[bool, str]]:
    """Sort a table after every namespace beside it, and each right after what it lies in."""
    around = [(False, part) for part in name.parent.names]
    return [*around, (kind == "table", name.name)]
