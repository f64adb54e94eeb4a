"""Names for versions: giving one, moving it, taking it away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import (
    InvalidInputError,
    TableTagAlreadyExistsError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
)
from mooring.identifiers import quote
from mooring.server.ui.versions.chosen import chosen_branch, chosen_version, version_field, where
from mooring.server.ui.view import Done, Field, Question

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.server.ui.visit import Visit
    from mooring.tables.tags import Tag

__all__ = ["ask_tag", "ask_untag", "tag", "untag"]

_KEPT = "As long as a version has a tag, no clean-up deletes it."


def ask_tag(visit: Visit) -> Question:
    """Ask for a tag's name; of one that is there, say what it names now.

    Raises:
        TableTagNotFoundError: a tag is to be moved that is not there.
        TableVersionNotFoundError: the table has no versions.
    """
    branch, version = chosen_branch(visit), visit.number("version", least=1)
    table = visit.open_table()
    if version is None:
        newest = table.handle.ledger.newest(branch)
        if newest is None:
            msg = f"table {quote(str(visit.table))} has no versions yet: it is only declared"
            raise TableVersionNotFoundError(msg)
        version = newest.version
    known = table.tags.get(visit.query["tag"]) if visit.query.get("tag") else None
    return _question(visit, version, branch, known)


def _question(visit: Visit, version: int, branch: str | None, known: Tag | None) -> Question:
    verb = "move" if known else "create"
    names = [str(visit.table), known.name if known else "TAG", str(version)]
    name = Field(
        name="name",
        label="Tag",
        value=known.name if known else "",
        hint="Letters, digits, '.', '-' and '_'.",
    )
    move = Field(
        name="move",
        label="Move the tag if there is one of this name",
        kind="checkbox",
        value="yes" if known else "",
        required=False,
    )
    explanation = (
        [f"Tag {quote(known.name)} names {_names(known)} now. It will name the one below."]
        if known
        else [f"A version{where(branch)} of {visit.table.name} gets a name that people can use."]
    )
    return Question(
        cli=visit.cli(
            "table", "tag", verb, *([f"--branch={branch}"] if branch else []), names=names
        ),
        title=f"Move tag {known.name}?" if known else f"Tag a version of {visit.table.name}",
        explanation=[*explanation, _KEPT],
        fields=[name, version_field(version, f"The version{where(branch)} that it names."), move],
        submit="Move the tag" if known else "Tag it",
        back=visit.links.table(visit.table, "versions", branch=branch),
    )


def tag(visit: Visit, form: Mapping[str, str]) -> Done:
    """Name a version, or let a tag name another.

    Raises:
        InvalidInputError: no tag can have this name.
        TableTagAlreadyExistsError: there is such a tag, and it is not to be moved.
        TableVersionNotFoundError: there is no such version.
        ConcurrentModificationError: others keep moving the tag.
    """
    name, version = form.get("name", "").strip(), chosen_version(form)
    if not name:
        raise InvalidInputError("a tag needs a name")
    branch, tags = chosen_branch(visit), visit.open_table().tags
    here = visit.links.table(visit.table, "versions", branch=branch)
    try:
        made = tags.create(name, version, branch=branch)
    except TableTagAlreadyExistsError as exc:
        before = tags.get(name)
        if form.get("move") != "yes":
            msg = (
                f"tag {quote(name)} names {_names(before)} already: tick the box to move it, or"
                " choose another name"
            )
            raise TableTagAlreadyExistsError(msg) from exc
        moved = tags.update(name, version, branch=branch)
        return Done(
            here, f"Tag {quote(name)} names {_names(moved)} now; before, it named {_names(before)}."
        )
    return Done(here, f"Tag {quote(name)} names {_names(made)}.")


def ask_untag(visit: Visit) -> Question:
    """Say what becomes of a version whose tag goes.

    Raises:
        TableTagNotFoundError: there is no such tag, or none is named.
    """
    known = _chosen(visit)
    return Question(
        cli=visit.cli("table", "tag", "delete", names=[str(visit.table), known.name]),
        title=f"Remove tag {known.name}?",
        explanation=[
            f"It names {_names(known)} of {visit.table.name} now. The version and its rows stay.",
            "Without any tag, a clean-up may delete an old version later.",
            f"To undo this, tag version {known.version} again.",
        ],
        submit="Remove the tag",
        back=visit.links.table(visit.table, "versions", branch=known.branch),
    )


def untag(visit: Visit, _: Mapping[str, str]) -> Done:
    """Forget a tag.

    Raises:
        TableTagNotFoundError: somebody else was faster.
    """
    known = _chosen(visit)
    visit.open_table().tags.delete(known.name)
    return Done(
        visit.links.table(visit.table, "versions", branch=known.branch),
        f"Removed tag {quote(known.name)}, which named {_names(known)}.",
    )


def _chosen(visit: Visit) -> Tag:
    name = visit.query.get("tag", "")
    if not name:
        raise TableTagNotFoundError("name the tag to remove: open it from the list of versions")
    return visit.open_table().tags.get(name)


def _names(one: Tag) -> str:
    return f"version {one.version}{where(one.branch)}"
