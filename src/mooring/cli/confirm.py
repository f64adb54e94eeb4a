"""Consent to what cannot be taken back: show the plan, ask, or take --yes for an answer."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.cli.output import write_table
from mooring.errors import PermissionDeniedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.cli.output import Output, Row

__all__ = ["Plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a command is about to do.

    Attributes:
        headline: Said above the rows: ``drop 2 tables``.
        columns: The columns of the rows.
        rows: What is done to what.
    """

    headline: str
    columns: Sequence[str]
    rows: Sequence[Row]

    def show(self, output: Output) -> None:
        """Write the plan as the result of a dry run."""
        output.rows(self.columns, self.rows)
        output.message(f"dry run: would {self.headline}; nothing was changed")

    def is_agreed(self, output: Output, *, yes: bool, dry_run: bool) -> bool:
        """Whether to go on: never in a dry run, which shows the plan; else once somebody agreed.

        Raises:
            PermissionDeniedError: nobody did.
        """
        if dry_run:
            self.show(output)
            return False
        self.confirm(output, yes=yes)
        return True

    def confirm(self, output: Output, *, yes: bool) -> None:
        """Return once somebody agreed.

        Raises:
            PermissionDeniedError: nobody did.
        """
        asks = not yes and sys.stdin.isatty()
        if asks or (output.is_for_people and not output.is_quiet):
            output.notice(f"about to {self.headline}:")
            write_table(sys.stderr, self.columns, self.rows)
        if yes:
            return
        if not asks:
            msg = f"not confirmed: to {self.headline}, say --yes"
            raise PermissionDeniedError(msg)
        if not _ask("go on? [y/N] "):
            msg = "not confirmed: nothing was changed"
            raise PermissionDeniedError(msg)


def _ask(question: str) -> bool:
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
