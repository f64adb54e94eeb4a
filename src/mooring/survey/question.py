"""A question to a catalog, and how questions are collected under their titles."""

from __future__ import annotations

from collections.abc import Callable

from mooring.survey.subject import Subject

__all__ = ["Question", "collect_into"]

Question = Callable[[Subject], None]


def collect_into(questions: dict[str, Question]) -> Callable[[str], Callable[[Question], Question]]:
    """Return what puts a function among questions, given the title to put it under."""

    def titled(title: str) -> Callable[[Question], Question]:
        def add(asked: Question) -> Question:
            questions[title] = asked
            return asked

        return add

    return titled
