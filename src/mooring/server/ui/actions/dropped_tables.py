"""What can be done with dropped tables: undrop and purge them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.amounts import how_many
from mooring.directory.layout import table_dir
from mooring.errors import TableNotFoundError
from mooring.identifiers import DELIMITER
from mooring.namespace.locations import is_outside
from mooring.server.roles import Role
from mooring.server.ui.actions.tables import new_name, renamed
from mooring.server.ui.actions.wording import named
from mooring.server.ui.formats import size
from mooring.server.ui.trash.drops import drops_of
from mooring.server.ui.view import Done, Question

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.feed.look import SeenDrop
    from mooring.identifiers import ObjectId
    from mooring.server.ui.trash.drops import Drops
    from mooring.server.ui.visit import Visit

__all__ = [
    "ask_purge",
    "ask_undrop",
    "came_back_as",
    "purge",
    "purge_goes_on",
    "undrop",
    "undrop_goes_on",
]

_AGAIN = "_restored"


def came_back_as(visit: Visit, form: Mapping[str, str]) -> Sequence[ObjectId]:
    """Return what a dropped table is to be called, where that is another name.

    Raises:
        InvalidNameError: it cannot be one.
    """
    text = form.get("new", "").strip()
    if text in {"", DELIMITER.join(visit.table.names).strip()}:
        return []
    return renamed(visit, form)


def ask_undrop(visit: Visit) -> Question:
    """Say what comes back, and ask under which name.

    Raises:
        TableNotFoundError: nothing dropped has the name.
    """
    drops, found = _find(visit)
    table = visit.table
    trouble, instead = _in_the_way(visit, drops, found[0])
    is_fixed = visit.served.levels == 1
    value = str(table) + (_AGAIN if trouble and _is_live(visit, table) else "")
    explanation = [
        "It comes back with its rows, versions, tags and properties. Undo: drop it again."
    ]
    if len(found) > 1:
        dropped = f"The name was dropped {len(found):,} times: what was dropped last comes back."
        explanation.append(dropped)
    if trouble and not is_fixed:
        explanation.append(trouble)
    return Question(
        cli=visit.cli("table", "undrop", names=[str(table)]),
        title=f"Undrop {named(table)}?",
        explanation=explanation,
        obstacle=trouble if is_fixed else "",
        instead=instead,
        fields=[]
        if is_fixed
        else [new_name(visit, value=value, hint="As it was, or any other that is free.")],
        submit="Undrop",
        back=visit.links.to("trash"),
    )


def undrop(visit: Visit, form: Mapping[str, str]) -> Done:
    """Bring a table back, under its own name or another."""
    table = visit.table
    new = next(iter(came_back_as(visit, form)), None)
    info = visit.backend.undrop_table(table, new)
    as_new = "" if new is None else f" as {named(info.id)}"
    return Done(visit.links.table(info.id), f"{named(table)} is live again{as_new}.")


def undrop_goes_on(visit: Visit) -> Done:
    """Say that an undrop goes on: under a new name, the files of some tables move."""
    message = f"The undrop of {named(visit.table)} takes a while and goes on: look here again."
    return Done(visit.links.namespace(visit.table.parent), message)


def _in_the_way(visit: Visit, drops: Drops, drop: SeenDrop) -> tuple[str, list[tuple[str, str]]]:
    """Say why a table cannot come back under its own name, and what can be done instead."""
    table = drop.id
    if _is_live(visit, table):
        return f"There is another table {named(table)} now: choose another name.", []
    if visit.atlas.picture().has_namespace(table.parent):
        return "", []
    above = drops.namespace_of(drop)
    said = f"Namespace {named(table.parent)} is not there: choose a name in another one"
    if above is None:
        return f"{said}, or create it first.", []
    label = f"Undrop namespace {named(above)}"
    can = visit.may(Role.WRITER, above)
    return (
        f"{said}. The table went with namespace {named(above)}, which can come back as a whole.",
        [(label, visit.links.namespace(above, "undrop"))] if can else [],
    )


def _is_live(visit: Visit, table: ObjectId) -> bool:
    return table in visit.atlas.picture().look.tables


def _find(visit: Visit) -> tuple[Drops, list[SeenDrop]]:
    """Return the drops of a table's name, the newest first.

    Raises:
        TableNotFoundError: there is none.
    """
    drops = drops_of(visit)
    found = drops.of_table(visit.table)
    if not found:
        live = "is live: it was not dropped, or came back" if _is_live(visit, visit.table) else ""
        why = live or "is not in the trash: it came back, was purged, or never was"
        raise TableNotFoundError(f"table {named(visit.table)} {why}")
    return drops, found


# -- purge -----------------------------------------------------------------------------------------


def ask_purge(visit: Visit) -> Question:
    """Say what is deleted.

    Raises:
        TableNotFoundError: nothing dropped has the name.
    """
    table = visit.table
    _, found = _find(visit)
    explanation = [f"All data of {named(table)} is deleted: rows, versions, tags and indexes."]
    if len(found) > 1:
        explanation.append(f"The name was dropped {len(found):,} times, and all of them go.")
    if _is_live(visit, table):
        explanation.append("The live table of the same name stays as it is.")
    explanation += _measured(visit, found)
    return Question(
        cli=visit.cli("trash", "purge", names=[str(table)]),
        title=f"Purge {named(table)}?",
        explanation=explanation,
        warning="There is no way back.",
        submit="Purge",
        is_destructive=True,
        typed=str(table),
        back=visit.links.to("trash"),
    )


def purge(visit: Visit, _: Mapping[str, str]) -> Done:
    """Delete the bytes of a dropped table."""
    freed: list[int] = []

    def hear(table: ObjectId, files: int, size_bytes: int) -> None:
        del table, files
        freed.append(size_bytes)

    visit.backend.purge_table(visit.table, hear)
    told = f" {size(sum(freed))} are free." if freed else ""
    return Done(visit.links.to("trash"), f"Purged {named(visit.table)}.{told}")


def purge_goes_on(visit: Visit) -> Done:
    """Say that a purge goes on."""
    message = f"The purge of {named(visit.table)} takes a while and goes on: look here again."
    return Done(visit.links.to("trash"), message)


def _measured(visit: Visit, drops: Sequence[SeenDrop]) -> list[str]:
    """Count the files that would go, by a listing for each drop."""
    home = getattr(visit.backend, "home", None)
    if home is None:
        return []  # only its server knows
    own = table_dir(visit.table.name) if visit.table.level == 1 else None
    places = {one.location or own for one in drops}
    inside = [place for place in places if place and not is_outside(place)]
    metas = [meta for place in inside for meta in home.store.list_prefix(place)]
    if not metas:
        return []
    return [f"{how_many(len(metas), 'file')}, {size(sum(meta.size_bytes for meta in metas))}."]
