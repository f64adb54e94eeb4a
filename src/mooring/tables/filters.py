"""Filters and expressions as callers write them, which Lance embeds in a statement of its own.

Lance reads the first expression of a statement and skips what follows, so that ``n > 3 LIMIT 1``
would select all rows above three. In parentheses nothing is left to skip.
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


def whole(text: str, what: str = "filter") -> str:
    """Return an expression that is read to its end or not at all.

    Raises:
        InvalidInputError: it is empty.
    """
    if not text.strip():
        msg = f"the {what} is empty: leave it out, or write an SQL expression"
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
        raise type(exc)(told) from exc
