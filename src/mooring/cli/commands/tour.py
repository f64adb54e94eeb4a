"""``mooring tour``: a newcomer's walk through a throw-away catalog."""

from __future__ import annotations

from typing import Annotated

import typer

from mooring.cli.options import command
from mooring.cli.session import Session

__all__ = ["tour_command"]


@command
def tour_command(
    session: Session,
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep", metavar="DIR", help="Take it in this new directory, and leave all there."
        ),
    ] = None,
    pause: Annotated[
        bool,
        typer.Option(
            "--pause/--no-pause", help="Wait for Enter after each step, where there is a terminal."
        ),
    ] = True,
) -> None:
    """Walk through a throw-away catalog: every command is shown, explained and run.

    It takes a few minutes, touches no other catalog, and leaves nothing behind unless --keep says
    so. q or Ctrl-C ends it.
    """
    del session  # the tour sets everything itself
    from mooring.cli.tour.screen import Screen
    from mooring.cli.tour.walk import walk

    code = walk(Screen(pauses=pause), keep=keep)
    if code:
        raise typer.Exit(code)
