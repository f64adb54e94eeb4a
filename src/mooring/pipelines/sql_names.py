"""The tables that a query names, found without Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["TableName", "table_names"]

_TOKEN = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<word>[^\W\d]\w*)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
# Functions that have a FROM of their own within their parentheses.
_WITH_FROM = {"extract", "trim", "ltrim", "rtrim", "btrim", "substring", "substr", "overlay"}
# What may stand where a table does, and is none.
_NO_TABLES = {"select", "values", "table", "lateral", "unnest", "with", "from", "stream"}
# After these a list of tables is over.
_ENDS = {
    "where", "group", "having", "order", "sort", "cluster", "distribute", "limit", "offset",
    "union", "intersect", "except", "minus", "select", "window", "qualify",
}  # fmt: skip


@dataclass(frozen=True)
class TableName:
    """A table that a query names.

    Attributes:
        name: The name; parts are joined by dots.
        offset: Where it stands in the query.
    """

    name: str
    offset: int


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    offset: int

    @property
    def word(self) -> str:
        return self.text.lower() if self.kind == "word" else self.text

    @property
    def is_name(self) -> bool:
        return self.kind in {"word", "quoted"}

    @property
    def name(self) -> str:
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text


def table_names(sql: str) -> list[TableName]:
    """Return the tables that a query names after FROM and JOIN, without those it defines itself."""
    tokens = [
        _Token(match.lastgroup or "", match[0], match.start())
        for match in _TOKEN.finditer(sql)
        if match.lastgroup != "skip"
    ]
    own = {name.lower() for name in _defined(tokens)}
    return [one for one in _named(tokens) if one.name.lower() not in own]


def _defined(tokens: list[_Token]) -> Iterator[str]:
    """Go through the names of common table expressions: ``name AS (`` or ``name (a, b) AS (``."""
    if not any(token.word == "with" for token in tokens):
        return
    for at, token in enumerate(tokens[:-2]):
        if token.is_name and tokens[at + 1].word == "as" and tokens[at + 2].text == "(":
            yield token.name
        elif token.is_name and tokens[at + 1].text == "(":
            after = _closing(tokens, at + 1) + 1
            if [one.word for one in tokens[after : after + 2]] == ["as", "("]:
                yield token.name


def _closing(tokens: list[_Token], opening: int) -> int:
    depth = 0
    for at in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[at].text, 0)
        if depth == 0:
            return at
    return len(tokens)


def _named(tokens: list[_Token]) -> Iterator[TableName]:
    lists: list[bool] = [False]  # whether each open parenthesis is within a list of tables
    functions: list[str] = [""]
    for at, token in enumerate(tokens):
        before = tokens[at - 1].word if at else ""
        if token.text == "(":
            lists.append(lists[-1] and before in {"from", "join", ",", "("})
            functions.append(before if at and tokens[at - 1].is_name else "")
            if lists[-1]:
                yield from _at(tokens, at + 1)
        elif token.text == ")":
            if len(lists) > 1:
                lists.pop()
                functions.pop()
        elif token.word in {"from", "join"} and before not in {".", "as"}:
            if token.word == "from" and (functions[-1] in _WITH_FROM or before == "distinct"):
                continue
            lists[-1] = True
            yield from _at(tokens, at + 1)
        elif token.text == "," and lists[-1]:
            yield from _at(tokens, at + 1)
        elif token.word in _ENDS and before != ".":
            lists[-1] = False


def _at(tokens: list[_Token], at: int) -> Iterator[TableName]:
    """Read a table's name, if one is there: no query, and no function."""
    if at >= len(tokens) or not tokens[at].is_name or tokens[at].word in _NO_TABLES:
        return
    parts, end = [tokens[at].name], at + 1
    while end + 1 < len(tokens) and tokens[end].text == "." and tokens[end + 1].is_name:
        parts.append(tokens[end + 1].name)
        end += 2
    if end < len(tokens) and tokens[end].text == "(":
        return
    yield TableName(".".join(parts), tokens[at].offset)
