"""Conditions as people write them: a part of SQL.

``price > 10 AND region IN ('eu', 'us') AND NOT (name LIKE 'test%' OR at IS NULL)``
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.changes.conditions import Among, And, Comparison, Constant, IsNull, Like, Not, Or
from mooring.changes.literals import Instant, neighbours, parse_instant, plain_type
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from mooring.changes.conditions import Condition
    from mooring.changes.literals import Literal, Value

__all__ = ["parse_condition"]

_TOKENS = re.compile(
    r"""
      (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")+"|`(?:[^`]|``)+`)
    | (?P<word>[^\W\d]\w*)
    | (?P<sign><>|!=|<=|>=|==|[=<>(),+-])
    """,
    re.VERBOSE,
)
_SPACE = re.compile(r"\s*")
_WORDS = {"and", "or", "not", "in", "between", "is", "null", "like", "true", "false"}
_COMPARISONS = {"=", "==", "!=", "<>", "<", "<=", ">", ">="}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DEEPEST = 100
_MOST_DIGITS = 400
_SHOWN = 20


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    place: int

    @property
    def word(self) -> str:
        """The keyword or sign that it is, if it is one."""
        if self.kind == "sign":
            return self.text
        lowered = self.text.lower()
        return lowered if self.kind == "word" and lowered in _WORDS else ""


def parse_condition(text: str, schema: pa.Schema) -> Condition:
    """Read a condition about columns of a schema.

    Raises:
        InvalidInputError: it cannot be read, or does not fit the columns.
    """
    return _Parser(text, schema).parse()


class _Parser:
    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._text = text
        self._schema = schema
        self._tokens = self._cut()
        self._next = 0
        self._depth = 0

    def _cut(self) -> list[_Token]:
        tokens: list[_Token] = []
        place = _space(self._text, 0)
        while place < len(self._text):
            found = _TOKENS.match(self._text, place)
            if found is None:
                why = "a quote is not closed" if self._text[place] in "'\"`" else "it means nothing"
                raise self._failure(place, why)
            tokens.append(_Token(found.lastgroup or "", found.group(), place))
            place = _space(self._text, found.end())
        return [*tokens, _Token("end", "", len(self._text))]

    def parse(self) -> Condition:
        if self._token.kind == "end":
            raise InvalidInputError("the condition is empty: write one, such as id = 7")
        found = self._any()
        if self._token.kind != "end":
            raise self._failure(self._token.place, "expected AND, OR or the end")
        return found

    # -- grammar ---------------------------------------------------------------------------------

    def _any(self) -> Condition:
        terms = [self._all()]
        while self._take("or"):
            terms.append(self._all())
        return terms[0] if len(terms) == 1 else Or(tuple(terms))

    def _all(self) -> Condition:
        terms = [self._one()]
        while self._take("and"):
            terms.append(self._one())
        return terms[0] if len(terms) == 1 else And(tuple(terms))

    def _one(self) -> Condition:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._failure(
                self._token.place, f"conditions are nested more than {_DEEPEST} deep"
            )
        found = self._term()
        self._depth -= 1
        return found

    def _term(self) -> Condition:
        if self._take("not"):
            return Not(self._one())
        if self._take("("):
            found = self._any()
            self._expect(")")
            return found
        if self._is_column():
            return self._about(self._column())
        return self._turned()

    def _turned(self) -> Condition:
        """Read a condition that begins with a literal."""
        start = self._token
        literal = self._literal()
        operator = self._token.text
        if operator not in _COMPARISONS or self._token.kind != "sign":
            if isinstance(literal, bool) or (literal is None):
                return Constant(literal)
            raise self._failure(start.place, "expected a condition, such as id = 7")
        self._next += 1
        if not self._is_column():
            raise self._failure(self._token.place, "expected a column")
        return self._compared(self._column(), _TURNED.get(operator, operator), literal, start.place)

    def _about(self, column: str) -> Condition:
        token = self._token
        if token.kind == "sign" and token.text in _COMPARISONS:
            self._next += 1
            if self._is_column():
                why = "a column is compared with a literal, not with a column; text is in 'quotes'"
                raise self._failure(self._token.place, why)
            place = self._token.place
            return self._compared(column, token.text, self._literal(), place)
        if self._take("is"):
            is_not = self._take("not")
            self._expect("null")
            return Not(IsNull(column)) if is_not else IsNull(column)
        is_not = self._take("not")
        found = self._special(column)
        if found is not None:
            return Not(found) if is_not else found
        if not is_not and pa.types.is_boolean(self._kind(column, token.place)):
            return Comparison(column, "=", value=True)
        raise self._failure(
            self._token.place, "expected =, !=, <, <=, >, >=, IN, BETWEEN, LIKE or IS NULL"
        )

    def _special(self, column: str) -> Condition | None:
        if self._take("in"):
            return self._among(column)
        if self._take("between"):
            place = self._token.place
            low = self._compared(column, ">=", self._literal(), place)
            self._expect("and")
            place = self._token.place
            return And((low, self._compared(column, "<=", self._literal(), place)))
        if self._take("like"):
            place = self._token.place
            pattern = self._literal()
            kind = self._kind(column, place)
            if not isinstance(pattern, str) or not _is_text(kind):
                raise self._failure(
                    place, f"LIKE compares text with a pattern; '{column}' is {kind}"
                )
            return Like(column, pattern)
        return None

    def _among(self, column: str) -> Condition:
        self._expect("(")
        equal: list[Condition] = []
        while True:
            place = self._token.place
            equal.append(self._compared(column, "=", self._literal(), place))
            if self._take(")"):
                break
            self._expect(",")
        values = {one.value for one in equal if isinstance(one, Comparison)}
        found = Among(column, tuple(sorted(values)))
        if any(isinstance(one, Constant) for one in equal):
            return Or((found, Constant(None)))
        return found

    # -- columns and literals --------------------------------------------------------------------

    def _is_column(self) -> bool:
        token = self._token
        if token.kind == "quoted":
            return True
        if token.kind != "word" or token.word:
            return False
        is_time = token.text.lower() in {"date", "timestamp"}
        return not (is_time and self._tokens[self._next + 1].kind == "text")

    def _column(self) -> str:
        token = self._token
        self._next += 1
        name = token.text
        if token.kind == "quoted":
            mark = name[0]
            name = name[1:-1].replace(mark * 2, mark)
        if name not in self._schema.names:
            known = ", ".join(self._schema.names)
            raise self._failure(token.place, f"there is no column '{name}': columns are {known}")
        return name

    def _literal(self) -> Literal:
        token = self._token
        self._next += 1
        if token.word in {"true", "false"}:
            return token.word == "true"
        if token.word == "null":
            return None
        if token.word in {"-", "+"} and self._token.kind == "number":
            number = self._number()
            return -number if token.word == "-" else number
        if token.kind == "number":
            self._next -= 1
            return self._number()
        if token.kind == "text":
            return token.text[1:-1].replace("''", "'")
        if token.kind == "word" and self._token.kind == "text":
            return self._instant(token)
        raise self._failure(
            token.place, "expected a number, 'text', true, false, null, DATE or TIMESTAMP"
        )

    def _number(self) -> Decimal:
        token = self._token
        self._next += 1
        found = Decimal(token.text)
        if abs(found.adjusted()) > _MOST_DIGITS or len(token.text) > _MOST_DIGITS:
            raise self._failure(token.place, "the number has too many digits")
        return found

    def _instant(self, word: _Token) -> Instant:
        token = self._token
        if word.text.lower() not in {"date", "timestamp"}:
            raise self._failure(word.place, "expected DATE or TIMESTAMP before the text")
        self._next += 1
        try:
            return parse_instant(token.text[1:-1])
        except InvalidInputError as exc:
            raise self._failure(token.place, str(exc)) from exc

    def _compared(self, column: str, operator: str, literal: Literal, place: int) -> Condition:
        """Compare a column with the nearest values that it can have."""
        kind = self._kind(column, place)
        if literal is None:
            return Constant(None)
        try:
            below, above = neighbours(literal, kind)
        except InvalidInputError as exc:
            why = str(exc)
            raise self._failure(
                place, f"column '{column}' {why}" if why.startswith("is ") else why
            ) from exc
        if pa.types.is_boolean(kind) and operator in _TURNED:
            raise self._failure(
                place, f"column '{column}' is true or false: compare by =, != or IN"
            )
        match operator:
            case "=" | "==" | "!=" | "<>":
                found: Condition = Among(column, ())
                if below is not None and below == above:
                    found = Comparison(column, "=", below)
                return Not(found) if operator in {"!=", "<>"} else found
            case "<" | ">=":
                return self._beside(column, operator, above)
            case _:
                return self._beside(column, operator, below)

    @staticmethod
    def _beside(column: str, operator: str, value: Value | None) -> Condition:
        if value is not None:
            return Comparison(column, operator, value)
        # There is nothing beyond: all values are on one side of it.
        none = Among(column, ())
        return Not(none) if operator in {"<", ">"} else none

    def _kind(self, column: str, place: int) -> pa.DataType:
        kind = self._schema.field(column).type
        plain = plain_type(kind)
        if plain is None:
            raise self._failure(
                place, f"column '{column}' is {kind}: it can only be IS NULL or IS NOT NULL"
            )
        return plain

    # -- tokens ----------------------------------------------------------------------------------

    @property
    def _token(self) -> _Token:
        return self._tokens[min(self._next, len(self._tokens) - 1)]

    def _take(self, word: str) -> bool:
        if self._token.word != word:
            return False
        self._next += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise self._failure(self._token.place, f"expected {word.upper()}")

    def _failure(self, place: int, why: str) -> InvalidInputError:
        rest = self._text[place : place + _SHOWN]
        near = f"at {rest!r}, character {place + 1}" if rest else "at its end"
        return InvalidInputError(f"the condition cannot be used {near}: {why}")


def _space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
