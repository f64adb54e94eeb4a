"""Filters and expressions as callers write them, which Lance embeds in a statement of its own.

Lance reads the first expression of a statement and skips what follows, so that ``n > 3 LIMIT 1``
would select all rows above three. In parentheses nothing is left to skip.

It also goes down an expression level by level, and where these are many the stack ends, and with
it the process. The parser bounds parentheses; here long chains of operators are.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["parsing", "whole"]

# The caller wrote neither the parentheses nor the closing one that the parser takes for the end.
_ADDED = re.compile(r"\((.*?)\n\)", re.DOTALL)
_REASON = re.compile(r"\(sql parser error: (.*?)\)(?:, /|$)", re.DOTALL)
_END = re.compile(r"(Expected|found): \)")
_PANIC = "Task was aborted"
_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|[\w.]+|\S", re.DOTALL
)
# Of a process with a usual stack, 300 levels of the most costly operator were left standing.
_LONGEST_CHAIN = 250


def whole(text: str, what: str = "filter") -> str:
    """Return an expression that is read to its end or not at all.

    Raises:
        InvalidInputError: it is empty, no text, or so long that it would end the process.
    """
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
        told = _ADDED.sub(r"\1", str(exc))
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


def _longest_chain(text: str) -> int:
    """Count the tokens that may lie on one way down; AND, OR and commas begin another."""
    longest, chains, betweens = 0, [0], [0]
    for piece in _TOKEN.findall(text):
        word = piece.upper()
        if piece == "(":
            chains.append(0)
            betweens.append(0)
        elif piece == ")" and len(chains) > 1:
            chains.pop()
            betweens.pop()
        elif word in {"AND", "OR", ","} and not (word == "AND" and betweens[-1]):
            chains[-1] = 0
        else:
            betweens[-1] += {"BETWEEN": 1, "AND": -1}.get(word, 0)
            chains[-1] += 1
        longest = max(longest, sum(chains))
    return longest
