"""Completion by the shell: the names of tables and namespaces as they are now, and of profiles.

A shell that asks gets names or nothing, and soon; whatever goes wrong is for the command itself to
tell. The catalog is opened for reading only.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING

import typer

from mooring.cli.listing import (
    DEREGISTERED,
    DROPPED,
    LIVE,
    change_tables,
    list_everything,
    list_namespaces,
)
from mooring.cli.session import Flags, Session
from mooring.config import config_path, load_profiles
from mooring.errors import MooringError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mooring.catalog import Catalog

__all__ = [
    "complete_any",
    "complete_branches",
    "complete_changes",
    "complete_columns",
    "complete_deregistered",
    "complete_dropped",
    "complete_dropped_namespaces",
    "complete_indexes",
    "complete_live",
    "complete_namespaces",
    "complete_profiles",
    "complete_tags",
]

# Bash takes a completion as it is, the other shells quote it themselves.
_BASH = "COMP_WORDS"
_SPECIAL = re.compile(r"([^\w@%+=:,./-])")
# Whoever presses a key does not wait for long, unless it is said otherwise.
_PATIENCE_S = 5.0
_PATIENCE = "MOORING_COMPLETION_SECONDS"


def complete_live(ctx: typer.Context, incomplete: str) -> list[str]:
    """Name the live tables that begin like this."""
    return _complete(ctx, incomplete, lambda catalog: map(str, catalog.list_all_tables()))


def complete_any(ctx: typer.Context, incomplete: str) -> list[str]:
    """Name the live tables that begin like this, of Lance and of changes."""
    return _complete(
        ctx,
        incomplete,
        lambda catalog: [*map(str, catalog.list_all_tables()), *change_tables(catalog)],
    )


def complete_changes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Name the change tables that begin like this."""
    return _complete(ctx, incomplete, change_tables)


def complete_dropped(ctx: typer.Context, incomplete: str) -> list[str]:
    """Name the dropped tables that begin like this."""
    return _complete(
        ctx, incomplete, lambda catalog: (str(table.id) for table in catalog.list_purgable_tables())
    )


def complete_deregistered(ctx: typer.Context, incomplete: str) -> list[str]:
    """Name the deregistered tables that begin like this."""
    return _complete(
        ctx,
        incomplete,
        lambda catalog: (
            table.name for table in list_everything(catalog) if table.state == DEREGISTERED
        ),
    )


def complete_namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    """Name the namespaces that begin like this."""
    return _complete(ctx, incomplete, lambda catalog: _namespaces(catalog, LIVE))


def complete_dropped_namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    """Name the dropped namespaces that begin like this."""
    return _complete(ctx, incomplete, lambda catalog: _namespaces(catalog, DROPPED))


def complete_tags(ctx: typer.Context, incomplete: str) -> list[str]:
    """Name the tags of the table that the command is about."""
    return _complete_of_table(ctx, incomplete, "tags")


def complete_branches(ctx: typer.Context, incomplete: str) -> list[str]:
    """Name the branches of the table that the command is about."""
    return _complete_of_table(ctx, incomplete, "branches")


def complete_indexes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Name the indexes of the table that the command is about."""
    return _complete_of_table(ctx, incomplete, "indexes")


def complete_columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Name the columns of the table that the command is about."""
    return _complete_of_table(ctx, incomplete, "columns")


def complete_profiles(incomplete: str) -> list[str]:
    """Name the profiles that begin like this."""
    try:
        return _begin_with(incomplete, load_profiles(config_path(os.environ)))
    except MooringError:
        return []


def _namespaces(catalog: Catalog, state: str) -> Iterable[str]:
    return (listed.name for listed in list_namespaces(catalog) if listed.state == state)


def _complete_of_table(ctx: typer.Context, incomplete: str, what: str) -> list[str]:
    from mooring.cli.closeness import names_in

    # While an option waits for its value, the words before it are not read as arguments yet.
    name = ctx.params.get("name") or next(iter(ctx.args), None)
    if not name:
        return []
    return _complete(ctx, incomplete, lambda catalog: names_in(catalog.table(name), what))


def _complete(
    ctx: typer.Context, incomplete: str, names: Callable[[Catalog], Iterable[str]]
) -> list[str]:
    found: list[str] = []

    def ask() -> None:
        try:
            flags = replace(Flags.collect(ctx), read_only=True)
            found.extend(_begin_with(incomplete, names(Session(flags).open_catalog())))
        except Exception:  # noqa: BLE001  # a line that is being typed has no place for a message
            return

    # A store that does not answer cannot be interrupted, but it can be left waiting.
    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_patience_s())
    return found


def _patience_s() -> float:
    try:
        return float(os.environ.get(_PATIENCE, _PATIENCE_S))
    except ValueError:  # a key that was pressed is no moment to tell that
        return _PATIENCE_S


def _begin_with(incomplete: str, names: Iterable[str]) -> list[str]:
    # A name that was dropped twice is offered once.
    found = [
        name for name in dict.fromkeys(names) if name.startswith(incomplete) and name.isprintable()
    ]
    if _BASH not in os.environ or _is_quoted(os.environ[_BASH]):
        return found
    return [_SPECIAL.sub(r"\\\1", name) for name in found]


def _is_quoted(line: str) -> bool:
    """Whether the last word of a line is within quotes, where nothing needs a backslash."""
    try:
        shlex.split(line)
    except ValueError:
        return True
    return False
