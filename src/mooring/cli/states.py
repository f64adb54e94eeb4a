"""Which state of a table a command is about: a version, a tag, a branch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.closeness import known_or_close, names_in
from mooring.cli.completion import complete_branches, complete_tags
from mooring.errors import TableTagNotFoundError

if TYPE_CHECKING:
    from mooring.cli.session import Session
    from mooring.table import Table
    from mooring.tables.handle import At

__all__ = ["AtTag", "AtVersion", "Branch", "complete_states", "parse_state", "restore_line"]

AtVersion = Annotated[
    int | None,
    typer.Option("--version", metavar="NUMBER", help="As of this version; the newest by default."),
]
AtTag = Annotated[
    str | None,
    typer.Option(
        "--tag", metavar="TAG", help="As of this tag's version.", autocompletion=complete_tags
    ),
]
Branch = Annotated[
    str | None,
    typer.Option(
        "--branch",
        metavar="BRANCH",
        help="On this branch; main by default.",
        autocompletion=complete_branches,
    ),
]


def restore_line(session: Session, name: str, version: int, branch: str | None) -> str:
    """Write the command that brings the content of a version back."""
    options = [] if branch is None else ["--branch", branch]
    return session.suggest("table restore", name, str(version), options=options)


def complete_states(ctx: typer.Context, incomplete: str) -> list[str]:
    """Name the tags and branches of the table that the command is about."""
    return [*complete_tags(ctx, incomplete), *complete_branches(ctx, incomplete)]


def parse_state(table: Table, text: str) -> At:
    """Read a state: ``3``, a tag, a branch, or ``branch:3``.

    Raises:
        InvalidInputError: it is none of these.
        TableTagNotFoundError: neither a tag nor a branch has this name.
    """
    from mooring.tables.states import parse_state as parse

    try:
        return parse(table.handle, text)
    except TableTagNotFoundError as exc:
        known = known_or_close(text, [*names_in(table, "tags"), *names_in(table, "branches")])
        msg = f"table '{table.info.id}' has no tag or branch '{text}'{known}"
        raise TableTagNotFoundError(msg) from exc
