"""Whether rows are as expected: what was counted, and what follows from it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.pipelines.definition import Creation, Expectation, OnFailure, Output

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mooring.pipelines.definition import Step

__all__ = [
    "REASON",
    "RUN",
    "Checked",
    "judge",
    "quarantine_name",
    "quarantine_outputs",
    "quarantines",
]

# The columns that rejected rows get.
REASON, RUN = "_reason", "_run"


class Checked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was counted for an expectation.

    Attributes:
        step: The step.
        name: The expectation.
        on_failure: What becomes of rows that are not as expected.
        rows: How many rows were looked at.
        failed: How many are not as expected.
        example: One of them.
    """

    step: str
    name: str
    on_failure: str
    rows: int
    failed: int
    example: str | None = None

    @property
    def passed(self) -> int:
        """How many rows are as expected."""
        return self.rows - self.failed


def judge(step: Step, counted: Sequence[Checked]) -> None:
    """End the run where more rows are not as expected than may be.

    Raises:
        InvalidInputError: they are.
    """
    most = {one.name: one for one in step.expectations}
    for one in counted:
        expectation = most[one.name]
        if one.rows and one.failed / one.rows > expectation.max_fraction:
            raise _broken(expectation, one)


def _broken(expectation: Expectation, counted: Checked) -> InvalidInputError:
    share = counted.failed / counted.rows
    allowed = f", and at most {expectation.max_fraction:.2%} may be so"
    example = f"; such as {counted.example}" if counted.example else ""
    msg = (
        f"{expectation.place}: {counted.failed:,} of {counted.rows:,} rows ({share:.2%}) of step"
        f" {quote(counted.step)} are not as expectation {quote(counted.name)} wants them"
        f" ({expectation.check}){allowed if expectation.max_fraction else ''}{example}"
    )
    return InvalidInputError(msg)


def quarantines(step: Step) -> dict[str, list[int]]:
    """Return, by table, the numbers of the expectations whose rejected rows it gets."""
    found: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(step.expectations):
        if one.on_failure is OnFailure.QUARANTINE and one.table is not None:
            found[one.table].append(number)
    return dict(found)


def quarantine_name(step: str, table: str) -> str:
    """Return the name by which rejected rows of a step are known; no step can have it."""
    return f"{step}!{table}"


def quarantine_outputs(steps: Iterable[Step]) -> list[Output]:
    """Return the outputs that rejected rows go to; a table that is missing is made."""
    return [
        Output(
            quarantine_name(step.name, table),
            table,
            "append",
            Creation(),
            None,
            step.expectations[numbers[0]].place,
        )
        for step in steps
        for table, numbers in quarantines(step).items()
    ]
