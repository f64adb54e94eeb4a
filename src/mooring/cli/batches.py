"""One verb on several tables: each is tried, and the failures are told one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from mooring.cli.advice import advise
from mooring.errors import MooringError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mooring.cli.output import Row
    from mooring.cli.session import Session

    Done = tuple[Row, str]

__all__ = ["apply_to_each", "finish_batch"]


def apply_to_each(session: Session, names: Sequence[str], act: Callable[[str], Done]) -> None:
    """Do something to each table and write what became of it.

    Args:
        session: Where to write.
        names: The tables; one named twice counts once.
        act: Does it, and returns the row and the sentence that tell it.
    """
    rows: list[Row] = []
    failures = []
    for name in dict.fromkeys(names):
        try:
            row, sentence = act(name)
        except MooringError as exc:
            failures.append(exc)
            rows.append({"table": name, "result": "failed", "error": str(exc)})
        else:
            rows.append(row)
            session.output.message(sentence)
    finish_batch(session, rows, failures)


def finish_batch(session: Session, rows: Sequence[Row], failures: Sequence[MooringError]) -> None:
    """Write the rows of a batch and end with the code of its first failure."""
    if failures and len(rows) == 1:
        raise failures[0]
    if not session.output.is_for_people:
        columns = dict.fromkeys(column for row in rows for column in row)
        session.output.rows(list(columns) or ["table", "result"], rows)
    for failure in failures:
        session.output.error(type(failure).__name__, failure.code, advise(failure, session))
    if failures:
        raise typer.Exit(failures[0].exit_code)
