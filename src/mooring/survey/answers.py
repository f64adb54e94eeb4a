"""What a catalog answers to every question.

The same calls go to any implementation of LanceNamespace, so that one can be put beside another.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lance_namespace.errors import LanceNamespaceError, UnsupportedOperationError

from mooring.survey.questions import QUESTIONS
from mooring.survey.subject import IgnoredError, Subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mooring.survey.question import Question

__all__ = ["FAILED", "IGNORED", "NO", "REFUSED", "YES", "Answer", "survey"]

YES, NO, REFUSED, IGNORED, FAILED = "yes", "no", "refused", "ignored", "failed"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a catalog said to one question.

    Attributes:
        question: The operation, and the argument where it is about one.
        answer: It is done; not offered; refused for another reason; answered and not done; or
            broken.
        reason: Why not, in the catalog's words.
    """

    question: str
    answer: str
    reason: str | None = None


def survey(
    namespace: Any,  # noqa: ANN401  # any implementation
    root: str,
    within: Sequence[str] = (),
    *,
    first: int = 1,
) -> Iterator[Answer]:
    """Ask a catalog everything; it should be an empty one to throw away.

    Args:
        namespace: The catalog.
        root: Where it lies.
        within: The namespace of its tables, where they need one.
        first: The first number in names, where earlier ones are taken.
    """
    subject = Subject(namespace, root, within, first=first)
    for title, asked in QUESTIONS.items():
        yield _answer(title, asked, subject)


def _answer(title: str, asked: Question, subject: Subject) -> Answer:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asked(subject)
    except IgnoredError as exc:
        return Answer(title, IGNORED, str(exc))
    except (UnsupportedOperationError, NotImplementedError) as exc:
        return Answer(title, NO, _first_line(exc))
    except LanceNamespaceError as exc:
        return Answer(title, REFUSED, f"{_first_line(exc)} (code {int(exc.code)})")
    except Exception as exc:  # noqa: BLE001  # whatever another implementation raises
        return Answer(title, FAILED, f"{type(exc).__name__}: {_first_line(exc)}")
    return Answer(title, YES)


def _first_line(exc: Exception) -> str:
    return (str(exc).splitlines() or [type(exc).__name__])[0].partition(", /")[0]
