"""What is found by a few words, and where in each object they are."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import msgspec

from mooring.identifiers import DELIMITER
from mooring.server.ui.atlas.finder import split_words
from mooring.server.ui.atlas.index import fold
from mooring.server.ui.atlas.sight import Sight
from mooring.server.ui.marking import Piece, cut_out, mark
from mooring.server.ui.view import View

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.server.ui.atlas.finder import FoundObject
    from mooring.server.ui.visit import Visit

__all__ = ["Hit", "SearchView", "show_search"]

_MOST = 200
_MOST_PLACES = 4
_LONGEST = 400


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where in an object words were found, beside its name.

    Attributes:
        kind: ``column`` or ``property``.
        text: The column, or the property and the part of its value, with the words marked.
    """

    kind: str
    text: list[Piece]


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """An object that was found.

    Attributes:
        id: Which.
        kind: ``table`` or ``namespace``.
        href: Its page.
        name: Its own name, with the words marked.
        around: The names of the namespaces around it, with the words marked.
        places: Where else words are.
        more_places: In how many more places.
    """

    id: list[str]
    kind: str
    href: str
    name: list[Piece]
    around: list[Piece]
    places: list[Place]
    more_places: int


class SearchView(View, frozen=True, kw_only=True):
    """What was found.

    Attributes:
        q: What was typed.
        hits: The best, in order.
        total: How many there are in all.
        href: This search as a page.
        tables: How many tables were looked through.
        known_columns: Of how many of them the columns are known.
        unknown_properties: Of how many of them properties are not known.
        is_surveyed: Whether columns get known without anybody opening tables.
        as_of_ms: When the catalog was seen like this.
    """

    q: str
    hits: list[Hit]
    total: int
    href: str
    tables: int
    known_columns: int
    unknown_properties: int
    is_surveyed: bool
    as_of_ms: int


def show_search(visit: Visit) -> SearchView:
    """Find namespaces and tables.

    Raises:
        InvalidInputError: the limit makes no sense.
    """
    text = visit.query.get("q", "").strip()[:_LONGEST]
    limit = visit.number("limit", least=1, most=_MOST) or _MOST
    sight = Sight.of(visit.atlas.picture(), visit.identity, visit.served.name)
    words = split_words(text)
    found = visit.atlas.finder.find(sight, words, limit)
    return SearchView(
        cli=_command(visit, text) if words else "",
        q=text,
        hits=[_hit(visit, sight, one, words) for one in found.objects],
        total=found.total,
        href=visit.links.to("search", q=text),
        tables=found.tables,
        known_columns=found.known_columns,
        unknown_properties=found.unknown_properties,
        is_surveyed=visit.service.settings.background.survey,
        as_of_ms=sight.picture.taken_at_ms,
    )


def _command(visit: Visit, text: str) -> str:
    """Return what finds names in a terminal."""
    found = [f"grep -iF -e {shlex.quote(word)}" for word in text.split()]
    return " | ".join([visit.cli("ls", "--all"), *found])


def _hit(visit: Visit, sight: Sight, found: FoundObject, words: Sequence[str]) -> Hit:
    places = _places(visit, sight, found)
    around = DELIMITER.join(found.id.names[:-1])
    links = visit.links
    return Hit(
        id=list(found.id.names),
        kind="table" if found.is_table else "namespace",
        href=links.table(found.id) if found.is_table else links.namespace(found.id),
        name=mark(found.id.name, _parts(words)),
        around=mark(around, _parts(words)) if around else [],
        places=places[:_MOST_PLACES],
        more_places=max(0, len(places) - _MOST_PLACES),
    )


def _parts(words: Sequence[str]) -> list[str]:
    """Return words, and what stands in single names of those that go over several."""
    parts = [part for word in words if DELIMITER in word for part in word.split(DELIMITER) if part]
    return [*words, *parts]


def _places(visit: Visit, sight: Sight, found: FoundObject) -> list[Place]:
    """Tell where those words are that are not in the identifier."""
    words = found.elsewhere
    if not words:
        return []
    known = visit.atlas.findings.get(found.id) if found.is_table else None
    columns = known.columns.split("\n") if known and known.columns else []
    places = [
        Place(kind="column", text=mark(column, words)) for column in columns if _has(column, words)
    ]
    look = sight.picture.look
    kept = look.tables[found.id].properties if found.is_table else look.namespaces.get(found.id)
    if kept is None and known is not None:
        kept = known.properties
    return places + _in_properties(kept or {}, words)


def _in_properties(properties: Mapping[str, str], words: Sequence[str]) -> list[Place]:
    found = []
    for key, value in properties.items():
        if _has(f"{key} {value}", words):
            pieces = [*mark(key, words), Piece(" = "), *cut_out(value, words)]
            found.append(Place(kind="property", text=pieces))
    return found


def _has(text: str, words: Sequence[str]) -> bool:
    folded = fold(text)
    return any(word in folded for word in words)
