"""``mooring table tag`` and ``mooring table branch``: names for versions, and lines of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.closeness import open_table, suggesting
from mooring.cli.completion import complete_branches, complete_tags
from mooring.cli.confirm import Plan
from mooring.cli.listing import as_time
from mooring.cli.options import DryRun, LiveName, Yes, command, group
from mooring.cli.session import Session
from mooring.cli.states import AtTag, AtVersion, Branch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from mooring.tables import branches, tags

__all__ = ["branch_app", "tag_app"]

tag_app = typer.Typer()
branch_app = typer.Typer()

TagName = Annotated[str, typer.Argument(metavar="TAG", help="A tag.", autocompletion=complete_tags)]
NewTag = Annotated[str, typer.Argument(metavar="TAG", help="The tag's name.")]
BranchName = Annotated[
    str, typer.Argument(metavar="BRANCH", help="A branch.", autocompletion=complete_branches)
]
NewBranch = Annotated[str, typer.Argument(metavar="BRANCH", help="The branch's name.")]
OptionalVersion = Annotated[
    int | None,
    typer.Argument(metavar="VERSION", help="A version; the newest by default.", min=1),
]
MAIN = "main"
_TAG_COLUMNS = ("tag", "version", "branch", "created_at", "updated_at", "by")
_BRANCH_COLUMNS = ("branch", "from_branch", "from_version", "created_at", "by")


# -- tags ----------------------------------------------------------------------------------------


@tag_app.callback(invoke_without_command=True)
@group
def tag() -> None:
    """Names for versions of a table."""


@tag_app.command("list")
@command
def list_tags_command(session: Session, name: LiveName) -> None:
    """List the tags and the versions they name."""
    table = open_table(session.open_catalog(), name)
    found = table.tags.list()
    session.output.rows(_TAG_COLUMNS, [_tag_row(one) for one in found])
    if not found:
        session.output.message(f"'{name}' has no tags")


@tag_app.command("create")
@command
def create_tag_command(
    session: Session,
    name: LiveName,
    tag_name: NewTag,
    version: OptionalVersion = None,
    branch: Branch = None,
) -> None:
    """Give a version a name; it is kept as long as the tag is."""
    table = open_table(session.open_catalog(), name)
    with suggesting(table, branch):
        made = table.tags.create(tag_name, version, branch=branch)
    _tell_tag(session, name, "created", made)


@tag_app.command("move")
@command
def move_tag_command(
    session: Session,
    name: LiveName,
    tag_name: TagName,
    version: OptionalVersion = None,
    branch: Branch = None,
) -> None:
    """Let a tag name another version."""
    table = open_table(session.open_catalog(), name)
    with suggesting(table, tag_name, branch):
        moved = table.tags.update(tag_name, version, branch=branch)
    _tell_tag(session, name, "moved", moved)


@tag_app.command("delete")
@command
def delete_tag_command(session: Session, name: LiveName, tag_name: TagName) -> None:
    """Forget a tag; the version stays until it is cleaned up."""
    table = open_table(session.open_catalog(), name)
    with suggesting(table, tag_name):
        known = table.tags.get(tag_name)
        table.tags.delete(tag_name)
    options = [] if known.branch is None else ["--branch", known.branch]
    words = (name, tag_name, str(known.version))
    undo = session.suggest("table tag create", *words, options=options)
    session.output.change(
        {"table": name, "result": "deleted", "tag": tag_name, "version": known.version},
        f"deleted tag '{tag_name}' of '{name}'; undo: {undo}",
    )


def _tag_row(found: tags.Tag) -> dict[str, object]:
    return {
        "tag": found.name,
        "version": found.version,
        "branch": found.branch or MAIN,
        "created_at": _time(found.created_at),
        "updated_at": _time(found.updated_at),
        "by": _by(found.metadata),
    }


def _tell_tag(session: Session, name: str, result: str, found: tags.Tag) -> None:
    at = f"version {found.version}" + (f" of branch '{found.branch}'" if found.branch else "")
    session.output.change(
        {
            "table": name,
            "result": result,
            "tag": found.name,
            "version": found.version,
            "branch": found.branch or MAIN,
        },
        f"{result} tag '{found.name}' of '{name}': {at}",
    )


# -- branches ------------------------------------------------------------------------------------


@branch_app.callback(invoke_without_command=True)
@group
def branch() -> None:
    """Lines of versions of a table beside main."""


@branch_app.command("list")
@command
def list_branches_command(session: Session, name: LiveName) -> None:
    """List the branches and where they come from; main is always there."""
    table = open_table(session.open_catalog(), name)
    found = table.branches.list()
    session.output.rows(_BRANCH_COLUMNS, [_branch_row(one) for one in found])
    if not found:
        session.output.message(f"'{name}' has no branches beside main")


@branch_app.command("create")
@command
def create_branch_command(
    session: Session,
    name: LiveName,
    branch_name: NewBranch,
    version: AtVersion = None,
    tag: AtTag = None,
    branch: Branch = None,
) -> None:
    """Begin a line of versions at the newest version, or at another one."""
    table = open_table(session.open_catalog(), name)
    with suggesting(table, tag, branch):
        made = table.branches.create(branch_name, version=version, tag=tag, branch=branch)
    parent = made.parent_branch or MAIN
    session.output.change(
        {
            "table": name,
            "result": "created",
            "branch": made.name,
            "from_branch": parent,
            "from_version": made.parent_version,
        },
        f"created branch '{made.name}' of '{name}' from version {made.parent_version} of {parent}",
    )


@branch_app.command("delete")
@command
def delete_branch_command(
    session: Session,
    name: LiveName,
    branch_name: BranchName,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete a branch with its versions, for good."""
    table = open_table(session.open_catalog(), name)
    with suggesting(table, branch_name):
        # With consent given, what another program left half made goes as well.
        if dry_run or not yes:
            plan = _plan_deletion(name, table.branches.get(branch_name))
            if dry_run:
                plan.show(session.output)
                return
            plan.confirm(session.output, yes=yes)
        table.branches.delete(branch_name)
    session.output.change(
        {"table": name, "result": "deleted", "branch": branch_name},
        f"deleted branch '{branch_name}' of '{name}'",
    )


def _plan_deletion(name: str, found: branches.Branch) -> Plan:
    row = {"table": name, "action": "delete", **_branch_row(found)}
    columns = ["table", "action", *_BRANCH_COLUMNS]
    return Plan(f"delete branch '{found.name}' of '{name}' for good", columns, [row])


def _branch_row(found: branches.Branch) -> dict[str, object]:
    return {
        "branch": found.name,
        "from_branch": found.parent_branch or MAIN,
        "from_version": found.parent_version,
        "created_at": _time(found.created_at),
        "by": _by(found.metadata),
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else as_time(int(at.timestamp() * 1000))


def _by(metadata: Mapping[str, str]) -> str | None:
    from mooring.tables.api import BY

    return metadata.get(BY)
