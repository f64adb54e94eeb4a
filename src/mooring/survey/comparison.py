"""Every kind of catalog beside the reference implementation, on throw-away catalogs."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import lance_namespace as spec

from mooring.survey.answers import YES, survey
from mooring.survey.questions import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mooring.survey.answers import Answer

__all__ = ["COLUMNS", "compare"]

_DIRECTORY, _METASTORE, _REFERENCE = (
    "mooring.DirectoryNamespace",
    "mooring.MetastoreNamespace",
    "dir",
)
# The namespace of a metastore's tables, which need one.
_WITHIN = ("main",)
_PLAIN: Mapping[str, str] = {"manifest_enabled": "false"}
_MANIFEST: Mapping[str, str] = {"dir_listing_enabled": "false"}
COLUMNS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "plain": (_DIRECTORY, _PLAIN),
    "compatibility": (_DIRECTORY, {}),
    "manifest": (_DIRECTORY, _MANIFEST),
    "metastore": (_METASTORE, {}),
    "pylance plain": (_REFERENCE, _PLAIN),
    "pylance compatibility": (_REFERENCE, {}),
    "pylance manifest": (_REFERENCE, _MANIFEST),
}


def compare(tell: Callable[[str, str], None] | None = None) -> list[dict[str, object]]:
    """Ask all of them everything.

    Args:
        tell: Hears whom is asked, and how many were.

    Returns:
        A row for each question, with the answer of each column, and a note why ours is not yes.
    """
    answers: dict[str, dict[str, Answer]] = {}
    for number, (column, (implementation, properties)) in enumerate(COLUMNS.items()):
        if tell:
            tell(column, f"{number} of {len(COLUMNS)}")
        with tempfile.TemporaryDirectory(prefix="mooring-survey-") as root:
            namespace = spec.connect(implementation, {"root": root, **properties})
            within = _WITHIN if implementation == _METASTORE else ()
            found = survey(namespace, root, within)
            answers[column] = {one.question: one for one in found}
    return [_row(question, answers) for question in QUESTIONS]


def _row(question: str, answers: Mapping[str, Mapping[str, Answer]]) -> dict[str, object]:
    found = {column: answers[column][question] for column in COLUMNS}
    ours = [answer for column, answer in found.items() if COLUMNS[column][0] != _REFERENCE]
    note = next((answer.reason for answer in ours if answer.answer != YES), None)
    return {
        "operation": question,
        **{column: answer.answer for column, answer in found.items()},
        "note": note,
    }
