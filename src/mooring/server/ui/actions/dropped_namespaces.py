"""What can be done with dropped namespaces: undrop and purge them, as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.amounts import how_many
from mooring.errors import NamespaceNotFoundError
from mooring.server.ui.actions.purging import tell_purge
from mooring.server.ui.actions.wording import named, some, tables_and_namespaces
from mooring.server.ui.trash.drops import drops_of
from mooring.server.ui.view import Done, Question

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.feed.look import SeenDrop
    from mooring.identifiers import ObjectId
    from mooring.server.ui.visit import Visit

__all__ = ["ask_purge", "ask_undrop", "purge", "purge_goes_on", "undrop"]

# So many names fit on a command line that somebody reads.
_FEW = 4


def ask_undrop(visit: Visit) -> Question:
    """Say what comes back with a namespace.

    Raises:
        NamespaceNotFoundError: nothing dropped has the name.
    """
    drop, tables, namespaces = _find_drop(visit)
    inside = tables_and_namespaces(len(tables), len(namespaces))
    comes = f"with {inside}, as they were" if inside else "empty, as it was"
    return Question(
        cli=visit.cli("namespace", "undrop", names=[str(drop.id)]),
        title=f"Undrop namespace {named(drop.id)}?",
        explanation=[f"It comes back {comes}. Undo: drop it again."],
        listed=some([str(one.id) for one in tables]),
        listed_as=f"{how_many(len(tables), 'table')} that come back",
        obstacle=_undrop_obstacle(visit, drop.id),
        submit="Undrop",
        back=visit.links.to("trash"),
    )


def undrop(visit: Visit, _: Mapping[str, str]) -> Done:
    """Bring a namespace back."""
    count = visit.backend.undrop_namespace(visit.namespace)
    inside = f" with {how_many(count - 1, 'object')} in it" if count > 1 else ""
    message = f"Namespace {named(visit.namespace)} is live again{inside}."
    return Done(visit.links.namespace(visit.namespace), message)


def _undrop_obstacle(visit: Visit, namespace: ObjectId) -> str:
    picture = visit.atlas.picture()
    if picture.has_namespace(namespace):
        return f"There is another namespace {named(namespace)} now: drop that first."
    if not picture.has_namespace(namespace.parent):
        return f"Namespace {named(namespace.parent)} is not there: undrop or create that first."
    return ""


def _find_drop(visit: Visit) -> tuple[SeenDrop, Sequence[SeenDrop], Sequence[SeenDrop]]:
    """Return the newest drop of a namespace, and the tables and namespaces that went with it."""
    drops = drops_of(visit)
    found = drops.of_namespace(visit.namespace)
    if not found:
        msg = f"no dropped namespace is named {named(visit.namespace)}: look into the trash"
        raise NamespaceNotFoundError(msg)
    moment = found[0].id, found[0].deleted_at_ms
    return found[0], drops.tables_with.get(moment, ()), drops.namespaces_with.get(moment, ())


# -- purge -----------------------------------------------------------------------------------------


def ask_purge(visit: Visit) -> Question:
    """Say what is deleted with a namespace.

    Raises:
        NamespaceNotFoundError: nothing dropped has the name.
    """
    drop, tables, _ = _find_drop(visit)
    names = _names(tables)
    empty = "No table went with it, so there are no bytes to delete. Its name leaves the trash"
    return Question(
        cli=visit.cli("trash", "purge", names=names) if len(names) <= _FEW else "",
        title=f"Purge namespace {named(drop.id)}?",
        explanation=[
            f"All data of the {how_many(len(names), 'table')} that went with it is deleted.",
            "Any other drop of the same names goes, too.",
            "The name of the namespace stays in the trash until its time is over.",
        ],
        warning="There is no way back.",
        listed=some(names),
        listed_as=f"{how_many(len(names), 'table')} to delete",
        obstacle="" if tables else f"{empty} when its time is over.",
        submit="Purge",
        is_destructive=True,
        typed=str(drop.id),
        back=visit.links.to("trash"),
    )


def purge(visit: Visit, _: Mapping[str, str]) -> Done:
    """Delete the bytes of the tables that went with a namespace."""
    tables = _find_drop(visit)[1]
    report = visit.backend.purge_tables(list(dict.fromkeys(one.id for one in tables)))
    return Done(visit.links.to("trash"), tell_purge(report))


def purge_goes_on(visit: Visit) -> Done:
    """Say that the purge of a namespace goes on."""
    message = f"The purge of {named(visit.namespace)} takes a while and goes on: look here again."
    return Done(visit.links.to("trash"), message)


def _names(tables: Sequence[SeenDrop]) -> list[str]:
    return list(dict.fromkeys(str(one.id) for one in tables))
