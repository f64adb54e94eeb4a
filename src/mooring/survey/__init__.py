"""What a catalog can do, found by asking it: every operation of the specification, called once."""

from mooring.survey.answers import FAILED, IGNORED, NO, REFUSED, YES, Answer, survey
from mooring.survey.comparison import COLUMNS, compare
from mooring.survey.questions import QUESTIONS

__all__ = [
    "COLUMNS",
    "FAILED",
    "IGNORED",
    "NO",
    "QUESTIONS",
    "REFUSED",
    "YES",
    "Answer",
    "compare",
    "survey",
]
