"""Compatibility mode under torture: a root table lives by its directory, all others by rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from mooring.directory.compat_backend import CompatBackend
from mooring.errors import MooringError
from tests.races import catalog_model, compat_harness, compat_model
from tests.races import model as plain
from tests.races.catalog_model import BAD_STATE, LOST, TABLE, TABLE_EXISTS, UNSURE, Catalog
from tests.races.compat_model import DIRECTORY, ROOT_NAME, Lake
from tests.races.manifest_harness import Race, Start
from tests.races.world import MemoryStore, MemoryWorld

from .history import History, Search, Way
from .rows_subject import (
    RowsModel,
    home_of,
    is_helped,
    manifest_of,
    met_declared,
    perform,
    seen,
    untimed,
)
from .subject import Ending, Verb

NESTED = ("n.u", "n.a")
TABLES = (ROOT_NAME, *NESTED)
_ONE, _TWO, _NESTED, _SPACE = (TABLES,), (TABLES, TABLES), (NESTED,), (("n",),)
_LOOKING = {"list", "status", "note"}
# What gives the root's name to something.
_GIVING = {"create", "overwrite", "declare", "rename", "undrop", "alias"}


@dataclass(frozen=True)
class CompatModel:
    """What operations mean where a root table has a directory of its own."""

    rows: RowsModel
    was_row: bool
    moves: bool
    # Names that a creator took with a directory, or a row, and never answered about.
    left: frozenset[str]

    def ways(self, op, said: str, state: Lake) -> list[Way]:
        if op.verb in _LOOKING:
            return [Way(state)] if _is_seen(op, said, state) else []
        # Another name for the directory reads what is in it, and writes into it.
        shared = state.rows.write(DIRECTORY, state.directory[1])
        timed = replace(state, rows=self.rows.timed(op, shared))
        found = compat_model._ways(op, said, timed)
        if self.moves and (op.verb, op.name, said) == ("undrop", ROOT_NAME, "ok") and state.is_live:
            found.append(compat_model.Outcome(said, timed))  # it called a rename back
        if compat_model._is_move(op) and said == TABLE_EXISTS and op.new in self.left:
            found.append(compat_model.Outcome(said, timed))
        if said in {TABLE_EXISTS, BAD_STATE} and self._meets_remains(op, state):
            found.append(compat_model.Outcome(said, timed))
        if op.verb == "purge" and said == TABLE_EXISTS and op.name == ROOT_NAME:
            # It had nothing to purge, and met a directory and a row of one name in the making.
            found.append(compat_model.Outcome(said, timed))
        if said == LOST:  # data may have been written into a table that somebody hid meanwhile
            found += [
                compat_model.Outcome(said, replace(timed, rows=after.catalog))
                for after in catalog_model._half_written(op, timed.rows)
            ]
        found += _by_rows(op, said, timed)
        if self.was_row:
            found += compat_model._made_as_row(op, said, timed)
        return [Way(_parted(after.catalog, state), after.pending) for after in found]

    def _meets_remains(self, op, state: Lake) -> bool:
        """Whether a refusal may be by what a creation left, or by a row that is yet to follow.

        A directory counts from its first file on, also where its creation fails later; a row goes
        by a step of its own after the directory's decision; and one that was dropped last cannot
        come back while the directory has its name.
        """
        if op.new != ROOT_NAME or op.verb not in _GIVING:
            return False
        gone = {one.entry.name for one in state.rows.trash}
        return ROOT_NAME in self.left | gone or state.directory[0] == "dropped"

    def finish(self, rest, state: Lake) -> Lake:
        return compat_model.finish(rest, state)

    def drift(self, state: Lake, going_on: list) -> list[Lake]:
        return []


def _by_rows(op, said: str, lake: Lake) -> list[compat_model.Outcome]:
    """Do what rows alone decide, also about a table of the root's name that had one."""
    found = met_declared(op, said, lake.rows)
    gone = {one.entry.name for one in lake.rows.trash if one.entry.kind == TABLE}
    if op.name == ROOT_NAME in gone and op.verb in {"purge", "undrop"} and said in {"ok", *UNSURE}:
        found += [after for after in catalog_model.apply(op, lake.rows) if after.said == "ok"]
    is_both = ROOT_NAME in gone and lake.directory[0] == "dropped"
    if is_both and said == BAD_STATE and op.verb == "undrop" and op.name == op.new == ROOT_NAME:
        # The row was dropped last, and the directory keeps it from its name: another one is free.
        return [compat_model.Outcome(said, lake)]
    is_given = op.verb in {"rename", "undrop"} and op.new == ROOT_NAME != op.name
    if is_given and said in {"ok", *UNSURE} and lake.directory[0] == "dropped":
        # It looked before a directory of the name was made, and that is in the trash by now.
        found += [after for after in catalog_model.apply(op, lake.rows) if after.said == "ok"]
    # One purge is for both: the directory goes first.
    is_purged = op.verb == "purge" and lake.directory[0] == "dropped"
    directory = plain.ABSENT if is_purged else lake.directory
    return [
        compat_model.Outcome(
            said, replace(lake, rows=after.catalog, directory=directory), after.pending
        )
        for after in found
    ]


def _parted(lake: Lake, before: Lake) -> Lake:
    """Take what was written by another name of the directory as what the directory holds."""
    held = lake.rows.content(DIRECTORY)
    files = frozenset(one for one in lake.rows.files if one[0] != DIRECTORY)
    rows = replace(untimed(lake.rows), files=files)
    if lake.directory != before.directory or held == before.directory[1]:
        return replace(lake, rows=rows)
    return replace(lake, rows=rows, directory=(lake.directory[0], held, lake.directory[2]))


def _is_seen(op, said: str, lake: Lake) -> bool:
    """Whether a look saw what is there; the root's directory is looked at beside the rows."""
    if op.verb == "list":
        found = {entry.name for entry in lake.rows.live if entry.kind == TABLE}
        return set(said.split()[1:]) - {ROOT_NAME} == found - {ROOT_NAME}
    return op.name == ROOT_NAME or bool(seen(op, said, lake.rows))


def model_of(ending: Ending) -> CompatModel:
    history = ending.history
    ops = history.ops.values()
    named = any(
        op.new == ROOT_NAME != op.name and op.verb in {"rename", "undrop", "alias"} for op in ops
    )
    moves = any(compat_model._is_move(op) for op in ops)
    return CompatModel(RowsModel(ending, is_helped(history)), named, moves, _left(history))


def _left(history: History) -> frozenset[str]:
    return frozenset(op.name for key, op in history.ops.items() if history.is_unsure(key))


class CompatSubject:
    """A catalog in compatibility mode."""

    name = "compat"
    start = ("ns n", "create n.u")
    verbs: ClassVar[tuple[Verb, ...]] = (
        Verb("create", 8, _ONE),
        Verb("overwrite", 1, _ONE),
        Verb("declare", 1, _ONE),
        Verb("drop", 6, _ONE),
        Verb("drop!", 1, _NESTED),
        Verb("undrop", 4, _ONE),
        Verb("undrop", 1, (NESTED, NESTED)),
        Verb("rename", 4, _TWO),
        Verb("purge", 3, _ONE),
        Verb("expire", 2),
        Verb("deregister", 1, _NESTED),
        Verb("alias", 1, (NESTED, (DIRECTORY,))),
        Verb("ns", 2, _SPACE),
        Verb("cascade", 1, _SPACE),
        Verb("undropns", 2, _SPACE),
        Verb("note", 1, _SPACE),
        Verb("list", 2),
        Verb("status", 1, _ONE),
    )

    def open(self, store, owner: str, hours: int = 0) -> CompatBackend:
        home = home_of(store, owner, hours, seals=True)
        return CompatBackend(home, manifest=manifest_of(home))

    def perform(self, op, backend) -> object:
        return perform(op, backend, {DIRECTORY: DIRECTORY})

    def watch(self, store) -> None:
        """A row follows its directory by a second step: nothing can be told in between."""

    def problem(self, ending: Ending) -> str | None:
        content = ending.content
        start = Start({}, Catalog(), {})
        checker = compat_harness.Checker(Race("empty", ()), start, Lake(), MemoryWorld())
        final, problem = checker._look(content)
        if problem:
            return problem

        def ends_well(lake: Lake) -> bool:
            drawn = compat_model.view(lake)
            if (drawn.rows.live, drawn.rows.trash) != (final.rows.live, final.rows.trash):
                return False
            return drawn.directory == final.directory or (
                drawn.directory[0] == "dropped" and drawn.directory[:2] == final.directory[:2]
            )

        problem = Search(model_of(ending), ending.history).problem(Lake(), ends_well)
        return (
            (f"{problem}; left is {final}" if problem else None)
            or checker._visibility_problem(content, final, is_sure=False)
            or self._must_be_usable(content)
        )

    def _must_be_usable(self, content: dict[str, bytes]) -> str | None:
        try:
            compat_harness.exercise(self.open(MemoryStore(content), "Z"))
        except MooringError as exc:
            return f"stuck afterwards: {exc!r}"
        return None


__all__ = ["CompatModel", "CompatSubject"]
