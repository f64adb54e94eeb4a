"""Full-text queries: words, phrases and their combinations.

Spec: lance-rest-openapi, FtsQuery and what it is made of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mooring.errors import InvalidInputError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lance.query import FullTextQuery

__all__ = [
    "Boolean",
    "Boost",
    "Indexed",
    "Match",
    "MultiMatch",
    "Phrase",
    "Text",
    "over_columns",
    "parse_text",
    "to_lance",
]

_OPERATORS = ("or", "and")
_SMALLEST, _LARGEST = 0, 2**31 - 1


@dataclass(frozen=True, slots=True)
class Match:
    """Words, of which some or all occur.

    Attributes:
        terms: The words.
        column: Where; in all columns with a full-text index unless given.
        boost: By which the score is multiplied.
        fuzziness: How many letters of a word may differ, in rows that an index covers; in others
            Lance compares exactly.
        max_expansions: To how many words a fuzzy one may expand.
        operator: ``or``: one of the words occurs; ``and``: all of them do.
        prefix_length: How many letters at the beginning may not differ.
    """

    terms: str
    column: str | None = None
    boost: float = 1.0
    fuzziness: int = 0
    max_expansions: int = 50
    operator: str = "or"
    prefix_length: int = 0

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        _require_small("fuzziness", self.fuzziness)
        _require_small("max_expansions", self.max_expansions)
        _require_small("prefix_length", self.prefix_length)
        if self.operator.lower() not in _OPERATORS:
            msg = f"'{self.operator}' combines no terms: the operator is 'or' or 'and'"
            raise InvalidInputError(msg)

    @property
    def is_exact(self) -> bool:
        """Whether no letter may differ."""
        return self.fuzziness == 0

    @property
    def needs_all(self) -> bool:
        """Whether all words must occur."""
        return self.operator.lower() == "and"


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words in their order, with at most ``slop`` others between them."""

    terms: str
    column: str | None = None
    slop: int = 0

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        _require_small("slop", self.slop)


@dataclass(frozen=True, slots=True)
class Boost:
    """What matches ``positive``; what matches ``negative``, too, ranks lower."""

    positive: Text
    negative: Text
    negative_boost: float = 0.5


@dataclass(frozen=True, slots=True)
class MultiMatch:
    """What matches any of several; of a row that several match, the best one ranks it.

    Lance takes the best where they look for the same words exactly; otherwise it adds the scores.
    """

    match_queries: tuple[Match, ...]

    def __post_init__(self) -> None:
        """Refuse an empty one."""
        if not self.match_queries:
            msg = "a multi_match query needs at least one match query"
            raise InvalidInputError(msg)


@dataclass(frozen=True, slots=True)
class Boolean:
    """What matches all of ``must`` and none of ``must_not``; ``should`` ranks higher.

    Without ``must``, at least one of ``should`` has to match.
    """

    must: tuple[Text, ...] = ()
    must_not: tuple[Text, ...] = ()
    should: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what would only exclude."""
        if not (self.must or self.should):
            msg = "a boolean query needs at least one query that must or should match"
            raise InvalidInputError(msg)


Text = Match | Phrase | Boost | MultiMatch | Boolean


def over_columns(terms: str, columns: Sequence[str] | None = None) -> Text:
    """Search words in some columns, or in all that have a full-text index."""
    if not columns:
        return Match(terms)
    if len(columns) == 1:
        return Match(terms, columns[0])
    return MultiMatch(tuple(Match(terms, column) for column in columns))


def parse_text(query: Mapping[str, Any]) -> Text:
    """Read a query as the specification writes it, as in ``{"match": {"terms": "sea"}}``.

    Raises:
        InvalidInputError: it is not exactly one kind of query, or has fields that are unknown.
    """
    kinds = [kind for kind, body in query.items() if body is not None]
    if len(kinds) != 1 or kinds[0] not in _READERS:
        found = ", ".join(kinds) or "nothing"
        msg = f"a full-text query is exactly one of {', '.join(_READERS)}, not {found}"
        raise InvalidInputError(msg)
    body = query[kinds[0]]
    try:
        return _READERS[kinds[0]](body)
    except (KeyError, TypeError, AttributeError) as exc:
        msg = f"this is no {kinds[0]} query: {body!r}"
        raise InvalidInputError(msg) from exc


class Indexed:
    """The columns with a full-text index, found once they are needed."""

    def __init__(self, what: str, find: Callable[[], Sequence[str]]) -> None:
        """Know the table, for messages, and how to find its indexes."""
        self._what = what
        self._find = find

    def columns(self) -> Sequence[str]:
        """Name the columns.

        Raises:
            InvalidInputError: there is none.
        """
        found = self._find()
        if not found:
            msg = (
                f"{self._what} has no full-text index: create one, or say in which columns to"
                " look for the words"
            )
            raise InvalidInputError(msg)
        return found

    def require(self, column: str) -> None:
        """Refuse a fuzzy search in a column without an index, where Lance would find nothing."""
        if column not in self._find():
            msg = f"{self._what}: a fuzzy search in {quote(column)} needs a full-text index on it"
            raise InvalidInputError(msg)


def to_lance(text: Text, indexed: Indexed) -> FullTextQuery:
    """Write a query for Lance.

    Raises:
        InvalidInputError: an index is needed that is not there.
    """
    from lance import query as lance

    match text:
        case Match():
            return _any_match(_spread(text, indexed))
        case MultiMatch():
            spread = [_spread(one, indexed) for one in text.match_queries]
            return _any_match([one for ones in spread for one in ones])
        case Phrase():
            columns = (text.column,) if text.column else indexed.columns()
            return _any([lance.PhraseQuery(text.terms, name, slop=text.slop) for name in columns])
        case Boost():
            return lance.BoostQuery(
                to_lance(text.positive, indexed),
                to_lance(text.negative, indexed),
                negative_boost=text.negative_boost,
            )
        case Boolean():
            clauses = (
                (lance.Occur.MUST, text.must),
                (lance.Occur.MUST_NOT, text.must_not),
                (lance.Occur.SHOULD, text.should),
            )
            return lance.BooleanQuery(
                [(how, to_lance(one, indexed)) for how, ones in clauses for one in ones]
            )


def _spread(text: Match, indexed: Indexed) -> list[Match]:
    """Look for words in each column that they are meant for."""
    if text.column is None:
        return [replace(text, column=column) for column in indexed.columns()]
    if text.fuzziness:
        indexed.require(text.column)
    return [text]


def _any_match(matches: list[Match]) -> FullTextQuery:
    """Combine matches; Lance's own form exists for the same words, looked for exactly."""
    from lance import query as lance

    first = matches[0]
    columns = [str(one.column) for one in matches]
    alike = all(
        one.is_exact and (one.terms, one.needs_all) == (first.terms, first.needs_all)
        for one in matches
    )
    if len(matches) > 1 and alike and len(set(columns)) == len(columns):
        boosts = [one.boost for one in matches]
        return lance.MultiMatchQuery(first.terms, columns, boosts=boosts, operator=_operator(first))
    return _any([_single(one) for one in matches])


def _single(match: Match) -> FullTextQuery:
    from lance.query import MatchQuery

    return MatchQuery(
        match.terms,
        str(match.column),
        boost=match.boost,
        fuzziness=match.fuzziness,
        max_expansions=match.max_expansions,
        operator=_operator(match),
        prefix_length=match.prefix_length,
    )


def _any(queries: Sequence[FullTextQuery]) -> FullTextQuery:
    from lance.query import BooleanQuery, Occur

    if len(queries) == 1:
        return queries[0]
    return BooleanQuery([(Occur.SHOULD, query) for query in queries])


def _operator(match: Match) -> Any:  # noqa: ANN401  # an enumeration of Lance's
    from lance.query import FullTextOperator

    return FullTextOperator.AND if match.needs_all else FullTextOperator.OR


def _require_small(name: str, value: int) -> None:
    if not _SMALLEST <= value <= _LARGEST:
        msg = f"{name} is {value}: it must be between {_SMALLEST} and {_LARGEST}"
        raise InvalidInputError(msg)


def _read_match(body: Mapping[str, Any]) -> Match:
    return Match(**{name: value for name, value in body.items() if value is not None})


def _read_phrase(body: Mapping[str, Any]) -> Phrase:
    return Phrase(**{name: value for name, value in body.items() if value is not None})


def _read_boost(body: Mapping[str, Any]) -> Boost:
    positive, negative = parse_text(body["positive"]), parse_text(body["negative"])
    weight = body.get("negative_boost")
    return Boost(positive, negative, 0.5 if weight is None else weight)


def _read_multi_match(body: Mapping[str, Any]) -> MultiMatch:
    return MultiMatch(tuple(_read_match(one) for one in body["match_queries"]))


def _read_boolean(body: Mapping[str, Any]) -> Boolean:
    clauses = {name: tuple(map(parse_text, ones or ())) for name, ones in body.items()}
    return Boolean(**clauses)


_READERS: dict[str, Callable[[Mapping[str, Any]], Text]] = {
    "match": _read_match,
    "phrase": _read_phrase,
    "boost": _read_boost,
    "multi_match": _read_multi_match,
    "boolean": _read_boolean,
}
