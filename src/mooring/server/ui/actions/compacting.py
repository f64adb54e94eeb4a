"""Compacting a table: what would be merged, and what is to go with it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from mooring.amounts import how_many
from mooring.clock import parse_ttl
from mooring.errors import InvalidInputError, MooringError, TableNotFoundError
from mooring.identifiers import quote
from mooring.server.ui.actions.wording import named
from mooring.server.ui.formats import size
from mooring.server.ui.view import Done, Field, Question

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.server.ui.visit import Visit
    from mooring.tables.compaction import Compacted

__all__ = ["ask_compact", "compact", "compact_goes_on"]

_ROWS, _OLDER = "target_rows", "older_than"
_MOST_DIGITS = 12
_WHAT = (
    "Small fragments become large ones and deleted rows leave the files, so that reads are faster."
    " That makes a new version, and loses nothing."
)
_AGES = (("1d", "a day"), ("7d", "a week"), ("30d", "a month"))


def ask_compact(visit: Visit) -> Question:
    """Say what a compaction would do now.

    Raises:
        TableNotFoundError: there is none.
    """
    table = visit.table
    planned, obstacle = _plan(visit)
    return Question(
        cli=visit.cli("table", "compact", names=[str(table)]),
        title=f"Compact {named(table)}?",
        explanation=[
            planned,
            _WHAT,
            "Undo: restore the version before. Readers and writers go on meanwhile.",
        ],
        obstacle=obstacle,
        fields=[
            Field(
                name=_ROWS,
                label="Rows in a fragment",
                kind="number",
                hint="Empty: about a million.",
                required=False,
            ),
            Field(
                name=_OLDER,
                label="Also delete versions older than",
                hint="As 7d. Empty: none. They cannot come back; the newest, those with a tag and"
                " those that branches come from stay.",
                choices=[*_AGES],
                required=False,
            ),
        ],
        submit="Compact",
        back=visit.links.table(table, "health"),
    )


def compact(visit: Visit, form: Mapping[str, str]) -> Done:
    """Compact a table."""
    done = visit.open_table().compact(older_than=_age(form), target_rows=_rows(form))
    return Done(visit.links.table(visit.table, "health"), _told(visit, done))


def compact_goes_on(visit: Visit) -> Done:
    """Say that a compaction goes on."""
    message = f"Compacting {named(visit.table)} takes a while and goes on: look here again later."
    return Done(visit.links.table(visit.table, "health"), message)


def _plan(visit: Visit) -> tuple[str, str]:
    """Say what would be merged; second, why nothing can be."""
    table = visit.open_table()
    try:
        plan = table.compact(dry_run=True)
    except TableNotFoundError:
        return "", f"{named(visit.table)} has no rows yet: there is nothing to compact."
    except MooringError as exc:
        return "", f"It cannot be compacted now: {exc}"
    if not plan.fragments_removed:
        return "Now there is nothing to merge.", ""
    merged = how_many(plan.fragments_removed, "fragment")
    return f"Now {merged} would become about {plan.fragments_added:,}.", ""


def _told(visit: Visit, done: Compacted) -> str:
    merged = "There was nothing to merge"
    if done.fragments_removed:
        merged = f"{how_many(done.fragments_removed, 'fragment')} became {done.fragments_added:,}"
    told = f"Compacted {named(visit.table)}. {merged}: version {done.version:,}."
    if done.cleaned is None:
        return told
    versions = how_many(done.cleaned.versions, "version")
    return f"{told} Deleted {versions}, {size(done.cleaned.bytes)}."


def _rows(form: Mapping[str, str]) -> int | None:
    text = form.get(_ROWS, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS and int(text)):
        raise InvalidInputError(f"rows in a fragment are a whole number, not {quote(text)}")
    return int(text)


def _age(form: Mapping[str, str]) -> timedelta | None:
    text = form.get(_OLDER, "").strip()
    if not text:
        return None
    age_ms = parse_ttl(text)
    if age_ms is None:
        raise InvalidInputError("no version is older than never: leave it empty to keep them all")
    return timedelta(milliseconds=age_ms)
