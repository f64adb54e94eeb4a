"""Filters and expressions as callers write them, which Lance embeds in a statement of its own.

Lance reads the first expression of a statement and skips what follows, so that ``n > 3 LIMIT 1``
would select all rows above three. In parentheses nothing is left to skip.

It also goes down an expression level by level, and where these are many the stack ends, and with
it the process. The parser bounds parentheses; here long chains of operators are.

A few functions make a value of any length, for every row of a batch, and where memory ends for
that, so does the process. Here their lengths are bounded.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["parsing", "whole"]

# The caller wrote neither the parentheses nor the closing one that the parser takes for the end.
_ADDED = "\n)"
_REASON = re.compile(r"\(sql parser error: (.*?)\)(?:, /|$)", re.DOTALL)
_END = re.compile(r"(Expected|found): \)")
_PANIC = "Task was aborted"
_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|[\w.]+|\S", re.DOTALL
)
# Of a process with a usual stack, 300 levels of the most costly operator were left standing.
_LONGEST_CHAIN = 250
# Functions that make as much as their second argument says.
_SIZED = frozenset(
    {"repeat", "lpad", "rpad", "array_repeat", "list_repeat", "array_resize", "list_resize"}
)
# Those that make a letter as long as their third argument, and one that doubles its length.
_REPLACING = frozenset({"replace", "regexp_replace"})
_DOUBLING = "encode"
_NEVER = frozenset({"range", "generate_series"})
_BOUNDED = (*_SIZED, *_REPLACING, *_NEVER, _DOUBLING)
# So many times as long a value may become, all functions within each other taken together.
_MOST_GROWN = 1_000
_UNKNOWN = 100
_FEW_DIGITS = re.compile(r"[0-9]{1,6}")


def whole(text: str, what: str = "filter") -> str:
    """Return an expression that is read to its end or not at all.

    Raises:
        InvalidInputError: it is empty, no text, or so long that it would end the process.
    """
    if not isinstance(text, str):
        msg = f"the {what} is SQL in a string, not {type(text).__name__}: write {str(text)!r}"
        raise InvalidInputError(msg)
    if not text.strip():
        msg = f"the {what} is empty: leave it out, or write an SQL expression"
        raise InvalidInputError(msg)
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise InvalidInputError(f"the {what} {text!a} is not valid Unicode") from exc
    if len(text) > _LONGEST_CHAIN and _longest_chain(text) > _LONGEST_CHAIN:
        msg = (
            f"the {what} has a chain of more than {_LONGEST_CHAIN} operators and operands, which"
            " Lance cannot plan: shorten it, or part it by AND, OR or IN"
        )
        raise InvalidInputError(msg)
    _require_bounded(text, what)
    return f"({text}\n)"  # the new line ends a comment


@contextmanager
def parsing(text: str | None, what: str) -> Iterator[None]:
    """Word what Lance says about a filter and expressions that were made whole.

    Args:
        text: The filter as the caller wrote it.
        what: The table.

    Raises:
        InvalidInputError: one of them does not parse, or ends Lance's planner.
    """
    try:
        yield
    except (ValueError, OSError, RuntimeError) as exc:
        told = _without_added(str(exc))
        subject = f"the filter {quote(text)}" if text else "an expression"
        if reason := _REASON.search(told):
            why = _END.sub(r"\1: its end", reason[1])
            raise InvalidInputError(f"{what}: {subject} does not parse: {why}") from exc
        if _PANIC in told:
            msg = f"{what}: {subject} has something that Lance cannot plan, as a placeholder"
            raise InvalidInputError(msg) from exc
        if told == str(exc):
            raise
        raise type(exc)(told) from exc


def _without_added(text: str) -> str:
    """Leave out the parentheses that were added; in one pass, however many others there are."""
    parts, at = [], 0
    while (end := text.find(_ADDED, at)) >= 0:
        begin = text.find("(", at, end)
        if begin >= 0:
            parts += [text[at:begin], text[begin + 1 : end]]
        else:
            parts.append(text[at : end + len(_ADDED)])
        at = end + len(_ADDED)
    return "".join([*parts, text[at:]])


def _longest_chain(text: str) -> int:
    """Count the tokens that may lie on one way down; AND, OR and commas begin another."""
    longest, total, chains, betweens = 0, 0, [0], [0]
    for piece in _TOKEN.findall(text):
        word = piece.upper()
        if piece == "(":
            chains.append(0)
            betweens.append(0)
        elif piece == ")" and len(chains) > 1:
            total -= chains.pop()
            betweens.pop()
        elif word in {"AND", "OR", ","} and not (word == "AND" and betweens[-1]):
            total -= chains[-1]
            chains[-1] = 0
        else:
            betweens[-1] += {"BETWEEN": 1, "AND": -1}.get(word, 0)
            chains[-1] += 1
            total += 1
        longest = max(longest, total)
    return longest


# -- lengths ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Call:
    """What stands in parentheses: a function's arguments, where one stands before them.

    Attributes:
        function: Its name.
        grows: How many times as long what it makes is.
        within: The same of what makes its arguments.
    """

    function: str
    grows: int = 1
    within: int = 1
    _place: int = 0
    _argument: list[str] = field(default_factory=list)

    def add(self, piece: str) -> None:
        """Read a part of an argument; a comma ends it."""
        if piece != ",":
            self._argument.append(piece)
            return
        self.end_argument()

    def end_argument(self) -> None:
        """Look at an argument that ends here."""
        only = self._argument[0] if len(self._argument) == 1 else ""
        if self.function in _SIZED and self._place == 1:
            self.grows = int(only) if _FEW_DIGITS.fullmatch(only) else _MOST_GROWN + 1
        elif self.function in _REPLACING and self._place == 2:  # noqa: PLR2004  # the third
            self.grows = len(only) if only.startswith("'") else _UNKNOWN
        self._place += 1
        self._argument = []

    @property
    def total(self) -> int:
        """How many times as long all that is made here is."""
        own = 2 if self.function == _DOUBLING else max(self.grows, 1)
        return _MOST_GROWN + 1 if self.function in _NEVER else own * self.within


def _require_bounded(text: str, what: str) -> None:
    """Refuse values of any length.

    Raises:
        InvalidInputError: a function may make one.
    """
    folded = text.lower()
    if not any(name in folded for name in _BOUNDED):
        return
    calls, before = [_Call("")], ""
    for piece in _TOKEN.findall(folded):
        if piece.startswith(("--", "/*")):
            continue
        if piece == "(":
            calls.append(_Call(before.strip('"`')))
        elif piece == ")" and len(calls) > 1:
            _end(calls, what)
        else:
            calls[-1].add(piece)
        before = piece


def _end(calls: list[_Call], what: str) -> None:
    call = calls.pop()
    call.end_argument()
    if call.total > _MOST_GROWN:
        msg = (
            f"the {what} makes values of any length by {call.function}: write the length as a"
            f" number, so that all within each other make up to {_MOST_GROWN:,}"
        )
        raise InvalidInputError(msg)
    calls[-1].within = max(calls[-1].within, call.total)
    calls[-1].add(")")
