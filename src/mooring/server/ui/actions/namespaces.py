"""What can be done with namespaces: make, drop, undrop and purge them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.amounts import how_many
from mooring.errors import InvalidInputError, NamespaceNotFoundError
from mooring.identifiers import check_name
from mooring.namespace.properties import PROTECTED
from mooring.server.ui.actions.lifetimes import read_ttl, stay_explained, ttl_field, until
from mooring.server.ui.actions.properties import parse_lines, properties_field
from mooring.server.ui.actions.wording import (
    guard_of,
    named,
    some,
    tables_and_namespaces,
)
from mooring.server.ui.trash.drops import drops_of
from mooring.server.ui.view import Done, Field, Question

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.identifiers import ObjectId
    from mooring.server.ui.visit import Visit

__all__ = [
    "ask_create",
    "ask_drop",
    "create",
    "created",
    "drop",
    "seen_or_itself",
]

_METASTORE_LEVELS = 2
_NAME, _CASCADE = "name", "cascade"
_HINT = (
    "Optional. KEY=VALUE, one on a line, as owner=ada. mooring.retention=30d is how long what is"
    " dropped in it stays in the trash; mooring.protected=true makes drops refuse."
)
_GONE = "It is gone at once: an Iceberg catalog keeps nothing of it. Undo: create it again."
_PLAIN = "A plain directory has tables only. One that is opened with its manifest has namespaces."
_ONE_LEVEL = "A metastore has namespaces of one level, and tables in them."


def seen_or_itself(visit: Visit) -> Sequence[ObjectId]:
    """Ask for no role in a namespace that may be seen: what is made in it is asked for."""
    return [] if visit.sees(visit.namespace) else [visit.namespace]


def created(visit: Visit, form: Mapping[str, str]) -> Sequence[ObjectId]:
    """Return the namespace that is to be made.

    Raises:
        InvalidNameError: it cannot be one.
    """
    name = form.get(_NAME, "").strip()
    check_name(name)
    return [visit.namespace.child(name)]


def ask_create(visit: Visit) -> Question:
    """Ask for the name of a new namespace.

    Raises:
        NamespaceNotFoundError: there is none that it could be in.
    """
    around = visit.namespace
    if not visit.atlas.picture().has_namespace(around):
        raise NamespaceNotFoundError(f"there is no namespace {named(around)}")
    obstacle = ""
    if visit.served.levels == 1:
        obstacle = _PLAIN
    elif visit.served.levels == _METASTORE_LEVELS and not around.is_root:
        obstacle = _ONE_LEVEL
    where = "in the root of the catalog" if around.is_root else f"in {named(around)}"
    example = str(around.child("NAME"))
    return Question(
        cli=visit.cli("namespace", "create", names=[example]),
        title="New namespace" if around.is_root else f"New namespace in {named(around)}",
        explanation=[f"An empty namespace is made {where}. Undo: drop it."],
        obstacle=obstacle,
        fields=[
            Field(name=_NAME, label="Name", hint="Any text without / and \\."),
            properties_field(hint=_HINT),
        ],
        submit="Create",
        back=visit.links.namespace(around),
    )


def create(visit: Visit, form: Mapping[str, str]) -> Done:
    """Make a namespace."""
    (namespace,) = created(visit, form)
    visit.backend.create_namespace(namespace, parse_lines(form.get("properties", "")))
    return Done(visit.links.namespace(namespace), f"Created namespace {named(namespace)}.")


# -- drop ------------------------------------------------------------------------------------------


def ask_drop(visit: Visit) -> Question:
    """Say what goes with a namespace.

    Raises:
        NamespaceNotFoundError: there is none.
    """
    namespace = visit.namespace
    if namespace.is_root or not visit.atlas.picture().has_namespace(namespace):
        raise NamespaceNotFoundError(f"there is no namespace {named(namespace)} to drop")
    tables, namespaces = _below(visit, namespace)
    inside = tables_and_namespaces(len(tables), len(namespaces))
    keeps = visit.kind != "iceberg"
    fields = [ttl_field(visit, namespace)] if keeps else []
    if inside and keeps:
        label = f"Drop the {inside} in it along"
        fields.insert(0, Field(name=_CASCADE, label=label, kind="checkbox", required=False))
    obstacle, instead = _in_the_way(visit, [*namespaces, *tables], inside=inside)
    return Question(
        cli=visit.cli(
            "namespace", "drop", *(["--cascade"] if inside else []), names=[str(namespace)]
        ),
        title=f"Drop namespace {named(namespace)}?",
        explanation=_drop_explained(visit, namespace, inside) if keeps else [_GONE],
        listed=some([str(one) for one in tables]),
        listed_as=f"{how_many(len(tables), 'table')} in it",
        obstacle=obstacle,
        instead=instead,
        fields=fields,
        submit="Drop",
        is_destructive=True,
        back=visit.links.namespace(namespace),
    )


def drop(visit: Visit, form: Mapping[str, str]) -> Done:
    """Hide a namespace, with what is in it where that was asked for."""
    namespace = visit.namespace
    cascade = form.get(_CASCADE) == "yes"
    if not cascade and any(_below(visit, namespace)) and visit.kind != "iceberg":
        raise InvalidInputError(
            f"namespace {named(namespace)} is not empty: mark that what is in it is to go along,"
            " or move that away first"
        )
    visit.backend.drop_namespace(namespace, cascade=cascade, ttl=read_ttl(form))
    return Done(visit.links.namespace(namespace.parent), _dropped(visit, namespace))


def _dropped(visit: Visit, namespace: ObjectId) -> str:
    if visit.kind == "iceberg":
        return f"Dropped namespace {named(namespace)}."
    visit.atlas.refresh()
    found = drops_of(visit).of_namespace(namespace)
    if not found:
        return f"Dropped namespace {named(namespace)}."
    kept = until(found[0].expires_at_ms, visit.now_ms)
    return f"Dropped namespace {named(namespace)}. Undrop it from the trash: it is there {kept}."


def _below(visit: Visit, namespace: ObjectId) -> tuple[list[ObjectId], list[ObjectId]]:
    """Return the tables and namespaces in one, at any depth."""
    look, level = visit.atlas.picture().look, namespace.level
    tables = [one for one in look.tables if one.names[:level] == namespace.names]
    namespaces = [
        one for one in look.namespaces if one.level > level and one.names[:level] == namespace.names
    ]
    return sorted(tables), sorted(namespaces)


def _drop_explained(visit: Visit, namespace: ObjectId, inside: str) -> list[str]:
    what = f"the namespace and the {inside} in it disappear" if inside else "It disappears"
    return [
        f"{what[0].upper()}{what[1:]} from listings, and nobody can read or write there.",
        "All data stays where it is. Undo: undrop the namespace from the trash, as a whole.",
        stay_explained(visit, namespace),
    ]


def _in_the_way(
    visit: Visit, below: Sequence[ObjectId], *, inside: str
) -> tuple[str, list[tuple[str, str]]]:
    """Say why a namespace cannot be dropped, and what can be done about it."""
    if inside and visit.kind == "iceberg":
        return f"It holds {inside}, and an Iceberg catalog drops empty namespaces only.", []
    guard = guard_of(visit, visit.namespace) or _protected(visit, below)
    if guard is None:
        return "", []
    is_table = guard in visit.atlas.picture().look.tables
    to = visit.links.table if is_table else visit.links.namespace
    said = f"{'Table' if is_table else 'Namespace'} {named(guard)} is protected"
    lift = "its protection" if is_table else "mooring.protected=true of its properties"
    way = f"{'Protection' if is_table else 'Properties'} of {named(guard)}"
    page = "protect" if is_table else "properties"
    return f"{said}, so that this cannot be dropped: lift {lift} first.", [(way, to(guard, page))]


def _protected(visit: Visit, below: Sequence[ObjectId]) -> ObjectId | None:
    """Return one of what is in a namespace that is protected, if any is."""
    look = visit.atlas.picture().look
    for one in below:
        seen = look.tables.get(one)
        properties = look.namespaces.get(one) if seen is None else seen.properties
        if (properties or {}).get(PROTECTED) == "true":
            return one
    return None
