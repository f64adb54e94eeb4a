"""Listings that begin with the newest: a screenful for people, all for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mooring.cli.output import Output, Row

__all__ = ["Newest", "limit_option", "show_newest"]

_SHOWN = 20


def limit_option(shown: int) -> Any:  # noqa: ANN401  # as Typer's options are
    """Return the option of how many are wanted, where so many are shown to people."""
    return typer.Option(
        "--limit",
        "-n",
        metavar="NUMBER",
        min=1,
        help=f"Only the newest so many; {shown} to read, and all for programs.",
    )


Newest = Annotated[int | None, limit_option(_SHOWN)]


def show_newest(
    output: Output,
    columns: Sequence[str],
    read: Callable[[int | None], Sequence[Row]],
    *,
    limit: int | None,
    what: str,
) -> None:
    """Write the newest rows, and whether older ones are left out.

    Args:
        output: Where to.
        columns: The columns of the rows.
        read: Returns so many of the newest rows, or more; all for None.
        limit: How many were asked for.
        what: What the rows are, for a message.
    """
    if limit is None and output.is_for_people:
        limit = _SHOWN
    rows = read(None if limit is None else limit + 1)
    output.rows(columns, rows[:limit])
    if limit is not None and len(rows) > limit:
        output.message(f"older {what} are left out: --limit shows more")
