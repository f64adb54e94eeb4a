"""Lines of versions of their own: beginning one, and deleting it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.server.ui.versions.chosen import chosen_branch, chosen_version, where
from mooring.server.ui.view import Done, Field, Question
from mooring.tables.reference_names import MAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.server.ui.visit import Visit

__all__ = ["ask_branch", "ask_delete_branch", "create_branch", "delete_branch"]


def ask_branch(visit: Visit) -> Question:
    """Ask for the name of a new branch, and the version that it begins at.

    Raises:
        InvalidInputError: the version or branch in the address cannot be one.
    """
    branch, version = chosen_branch(visit), visit.number("version", least=1)
    words = ["table", "branch", "create", *([f"--version={version}"] if version else [])]
    words += [f"--branch={branch}"] if branch else []
    return Question(
        cli=visit.cli(*words, names=[str(visit.table), "BRANCH"]),
        title=f"Make a branch of {visit.table.name}",
        explanation=[
            f"It begins with the content of a version{where(branch)}; no data is copied.",
            "What is written to it changes nothing elsewhere.",
        ],
        fields=[
            Field(name="name", label="Branch", hint="Letters, digits, '.', '-', '_' and '/'."),
            Field(
                name="version",
                label="Version",
                kind="number",
                value="" if version is None else str(version),
                hint="Where it begins; the newest version if this is left empty.",
                required=False,
            ),
        ],
        submit="Make the branch",
        back=visit.links.table(visit.table, "versions", branch=branch),
    )


def create_branch(visit: Visit, form: Mapping[str, str]) -> Done:
    """Make a branch.

    Raises:
        InvalidInputError: no branch can have this name.
        TableBranchAlreadyExistsError: there is such a branch.
        TableVersionNotFoundError: there is no such version to begin at.
    """
    name = form.get("name", "").strip()
    if not name:
        raise InvalidInputError("a branch needs a name")
    made = visit.open_table().branches.create(
        name, branch=chosen_branch(visit), version=chosen_version(form)
    )
    return Done(
        visit.links.table(visit.table, "versions", branch=made.name),
        f"Made branch {quote(made.name)} from version {made.parent_version} of"
        f" {made.parent_branch or MAIN}.",
    )


def ask_delete_branch(visit: Visit) -> Question:
    """Say what goes with a branch.

    Raises:
        TableBranchNotFoundError: there is no such branch.
        InvalidInputError: none is named.
    """
    name = _chosen(visit)
    known = visit.open_table().branches.get(name)
    parent = known.parent_branch or MAIN
    return Question(
        cli=visit.cli("table", "branch", "delete", names=[str(visit.table), name]),
        title=f"Delete branch {name}?",
        explanation=[f"It comes from version {known.parent_version} of {parent}, which stays."],
        warning="All versions of the branch and what was written to it go for good.",
        submit="Delete the branch",
        is_destructive=True,
        typed=name,
        back=visit.links.table(visit.table, "versions", branch=name),
    )


def delete_branch(visit: Visit, form: Mapping[str, str]) -> Done:
    """Delete a branch with its versions.

    Raises:
        TableBranchNotFoundError: somebody else was faster.
        InvalidTableStateError: tags or other branches hang on it.
    """
    name = _chosen(visit)
    if form.get("typed", "").strip() != name:
        raise InvalidInputError(f"type {quote(name)} to confirm")
    visit.open_table().branches.delete(name)
    return Done(
        visit.links.table(visit.table, "versions"), f"Deleted branch {quote(name)} for good."
    )


def _chosen(visit: Visit) -> str:
    name = chosen_branch(visit)
    if name is None:
        raise InvalidInputError("name the branch to delete; main is the table itself")
    return name
