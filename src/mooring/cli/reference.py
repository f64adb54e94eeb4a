"""The command reference in docs/reference/cli.md, written from the program itself.

``python -m mooring.cli.reference docs/reference/cli.md`` brings the file up to date: what stands
above the marker is written by hand, everything below comes from here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.core import TyperGroup
from typer.main import get_command

from mooring.cli.app import app
from mooring.cli.options import SHARED_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MARKER", "render", "update"]

MARKER = "<!-- Below: written by python -m mooring.cli.reference -->"
# Typer's commands have no public type.
Command = Any


def render() -> str:
    """Write the reference of every command."""
    program = get_command(app)
    shared = "\n".join(_parameters(program, "mooring", shared=True))
    parts = [f"## Options of every command\n\n{shared}\n", "## Commands\n"]
    parts.extend(_command(path, found) for path, found in _walk(program, "mooring"))
    return "\n".join(parts)


def update(text: str) -> str:
    """Return a document with everything below the marker written anew."""
    by_hand = text.partition(MARKER)[0].rstrip()
    return f"{by_hand}\n\n{MARKER}\n\n{render()}"


def _walk(command: Command, path: str) -> Iterator[tuple[str, Command]]:
    if not isinstance(command, TyperGroup):
        yield path, command
        return
    for name, child in command.commands.items():
        yield from _walk(child, f"{path} {name}")


def _command(path: str, command: Command) -> str:
    context = command.make_context(path, [], resilient_parsing=True)
    usage = context.get_usage().removeprefix("Usage: ")
    lines = [f"### `{path}`", "", command.help or "", "", "```", usage, "```", ""]
    parameters = list(_parameters(command, path, shared=False))
    return "\n".join([*lines, *parameters, ""] if parameters else lines)


def _parameters(command: Command, path: str, *, shared: bool) -> Iterator[str]:
    context = command.make_context(path, [], resilient_parsing=True)
    for parameter in command.params:
        if (parameter.name in SHARED_NAMES) is not shared:
            continue
        names, meaning = parameter.get_help_record(context) or ("", "")
        yield f"- `{names}`: {meaning}"


def main() -> None:
    """Bring the file up to date that the first argument names, or write to standard output."""
    if len(sys.argv) == 1:
        sys.stdout.write(render())
        return
    path = Path(sys.argv[1])
    path.write_text(update(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
