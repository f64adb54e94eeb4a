"""The questions: every operation of the specification, and the arguments that tend to be ignored.

Each has tables of its own, and looks whether what was asked for was done.

Spec: lance-rest-openapi, every operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.survey.questions import (
    columns,
    indexes,
    namespaces,
    queries,
    references,
    rows,
    tables,
    transactions,
    versions,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.survey.question import Question

__all__ = ["QUESTIONS"]

# By their titles, in the order in which they are asked.
QUESTIONS: Mapping[str, Question] = {
    **namespaces.QUESTIONS,
    **tables.QUESTIONS,
    **rows.QUESTIONS,
    **queries.QUESTIONS,
    **columns.QUESTIONS,
    **indexes.QUESTIONS,
    **versions.QUESTIONS,
    **references.QUESTIONS,
    **transactions.QUESTIONS,
}
