"""What can be done with live tables: rename, protect and drop them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError
from mooring.namespace.properties import PROTECTED
from mooring.namespace.states import SoftDeleted
from mooring.server.ui.actions.lifetimes import read_ttl, stay_explained, ttl_field, until
from mooring.server.ui.actions.wording import guard_of, named
from mooring.server.ui.view import Done, Field, Question

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.identifiers import ObjectId
    from mooring.server.ui.visit import Visit

__all__ = [
    "ask_drop",
    "ask_protect",
    "ask_rename",
    "drop",
    "new_name",
    "protect",
    "rename",
    "rename_goes_on",
    "renamed",
]

_NEW, _TO = "new", "to"
_PROTECTED, _LOOSE = "protected", "loose"
_FIXED = (
    "In a plain directory the name of a table is where it lies, and no store moves a directory in"
    " one step. A directory that is opened with its manifest can rename tables."
)
_MOVE = (
    "Its files move to a directory of their own, which takes a while for a large table. Until that"
    " is done it is read under the name of today."
)
_SILENT_SERVER = "The server that keeps this catalog does not say whether a drop can be undone."


def new_name(visit: Visit, *, value: str, hint: str) -> Field:
    """Ask for the name of a table."""
    levels = "" if visit.served.levels == 1 else " Namespaces before it, with $ between: a$b."
    return Field(name=_NEW, label="New name", value=value, hint=f"{hint}{levels}")


def renamed(visit: Visit, form: Mapping[str, str]) -> Sequence[ObjectId]:
    """Return what a table is to be called.

    Raises:
        InvalidInputError: there is no name.
        InvalidNameError: it cannot be one.
    """
    new = visit.parse(form.get(_NEW, ""))
    if new.is_root:
        raise InvalidInputError("a table needs a name: write one")
    return [new]


def ask_rename(visit: Visit) -> Question:
    """Ask what a table is to be called.

    Raises:
        TableNotFoundError: there is none.
    """
    table = visit.table
    visit.backend.describe_table(table)
    return Question(
        cli=visit.cli("table", "rename", names=[str(table), "NEW_NAME"]),
        title=f"Rename {named(table)}",
        explanation=[
            "Programs that use the name of today will not find the table any more.",
            "Its rows, versions, tags and indexes stay as they are. Undo: rename it back.",
            *_move_explained(visit, table),
        ],
        obstacle=_FIXED if visit.served.levels == 1 else "",
        fields=[new_name(visit, value=str(table), hint="It may also go to another namespace.")],
        submit="Rename",
        back=visit.links.table(table),
    )


def rename(visit: Visit, form: Mapping[str, str]) -> Done:
    """Give a table another name."""
    table = visit.table
    (new,) = renamed(visit, form)
    if new == table:
        raise InvalidInputError(f"{named(table)} is its name already: write another")
    visit.backend.rename_table(table, new)
    return Done(visit.links.table(new), f"Renamed {named(table)} to {named(new)}.")


def rename_goes_on(visit: Visit) -> Done:
    """Say that a rename goes on."""
    message = f"The files of {named(visit.table)} are moved, which takes a while and goes on."
    return Done(visit.links.namespace(visit.table.parent), message)


def _move_explained(visit: Visit, table: ObjectId) -> list[str]:
    seen = visit.atlas.picture().look.tables.get(table)
    if visit.kind != "directory" or seen is None or seen.location != f"{table.name}.lance":
        return []
    return [_MOVE]


# -- protection ------------------------------------------------------------------------------------


def ask_protect(visit: Visit) -> Question:
    """Ask whether drops of a table are to be refused, or allowed again.

    Raises:
        TableNotFoundError: there is none.
    """
    table = visit.table
    is_protected = _is_protected(visit, table)
    verb = "unprotect" if is_protected else "protect"
    guard = guard_of(visit, table.parent)
    explanation = [
        f"{named(table)} can be dropped again by all who may write here."
        if is_protected
        else f"Nobody can drop {named(table)} until the protection is lifted.",
        "Rows can be written, changed and deleted as before. Undo: come back here.",
    ]
    if guard is not None:
        explanation.append(f"Namespace {named(guard)} is protected, and so is all in it.")
    return Question(
        cli=visit.cli("table", verb, names=[str(table)]),
        title=f"{'Allow drops of' if is_protected else 'Protect'} {named(table)}?",
        explanation=explanation,
        # What is to be, not that it is to turn: sent twice, it is the same.
        fields=[
            Field(name=_TO, label="", value=_LOOSE if is_protected else _PROTECTED, kind="hidden")
        ],
        submit="Allow drops" if is_protected else "Protect",
        back=visit.links.table(table),
    )


def protect(visit: Visit, form: Mapping[str, str]) -> Done:
    """Make drops of a table refuse, or allow them again."""
    table, to = visit.table, form.get(_TO)
    if to not in {_PROTECTED, _LOOSE}:
        raise InvalidInputError("the form says nothing: load the page again")
    visit.backend.protect_table(table, protected=to == _PROTECTED)
    said = "is protected: drops are refused" if to == _PROTECTED else "can be dropped again"
    return Done(visit.links.table(table), f"{named(table)} {said}.")


def _is_protected(visit: Visit, table: ObjectId) -> bool:
    return visit.backend.describe_table(table).properties.get(PROTECTED) == "true"


# -- drop ------------------------------------------------------------------------------------------


def ask_drop(visit: Visit) -> Question:
    """Say what a drop does, and for how long it can be undone.

    Raises:
        TableNotFoundError: there is none.
    """
    table = visit.table
    obstacle, instead = _guarded(visit, table)
    is_silent = visit.kind == "lance" and getattr(visit.backend, "facts", None) is None
    return Question(
        cli=visit.cli("table", "drop", names=[str(table)]),
        title=f"Drop {named(table)}?",
        explanation=[
            "It disappears from listings, and nobody can read or write it under its name.",
            "Its data stays where it is. Undo: undrop it from the trash.",
            stay_explained(visit, table),
        ],
        warning=_SILENT_SERVER if is_silent else "",
        obstacle=obstacle,
        instead=instead,
        fields=[ttl_field(visit, table)],
        submit="Drop",
        is_destructive=True,
        back=visit.links.table(table),
    )


def drop(visit: Visit, form: Mapping[str, str]) -> Done:
    """Hide a table."""
    table = visit.table
    visit.backend.drop_table(table, read_ttl(form))
    status = visit.backend.table_status(table)
    message = f"Dropped {named(table)}."
    if isinstance(status, SoftDeleted):
        kept = until(status.expires_at_ms, visit.now_ms)
        message = f"{message} Undrop it from the trash: it is there {kept}."
    return Done(visit.links.namespace(table.parent), message)


def _guarded(visit: Visit, table: ObjectId) -> tuple[str, list[tuple[str, str]]]:
    """Say what protects a table, and where that is lifted."""
    if _is_protected(visit, table):
        said = f"{named(table)} is protected, so that nobody drops it: lift that first."
        return said, [("Allow drops", visit.links.table(table, "protect"))]
    guard = guard_of(visit, table.parent)
    if guard is None:
        return "", []
    said = f"Namespace {named(guard)} is protected, and so is all in it: lift that first."
    return said, [("Its properties", visit.links.namespace(guard, "properties"))]
