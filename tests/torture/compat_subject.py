"""Compatibility mode under torture: a root table lives by its directory, all others by rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from mooring.directory.compat_backend import CompatBackend
from mooring.errors import MooringError
from tests.races import catalog_model, compat_harness, compat_model
from tests.races import model as plain
from tests.races.catalog_model import (
    BAD_STATE,
    LOST,
    TABLE,
    TABLE_EXISTS,
    UNSURE,
    Catalog,
    Entry,
    Gone,
    Op,
)
from tests.races.compat_model import DIRECTORY, ROOT_NAME, Lake, Outcome, Retreat
from tests.races.manifest_harness import Race, Start
from tests.races.manifests import newest_rows
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
_MAKING = {"create", "overwrite", "declare", "undrop"}
_PURGING = {"purge", "expire"}


@dataclass(frozen=True)
class CompatModel:
    """What operations mean where a root table has a directory of its own.

    Attributes:
        rows: What they mean for rows.
        beside: By the token of an operation, which others went on at the same time.
        retreating: Those who made a table of the root that may have been there for a while only,
            before its row: it was lost, or never told, or dropped at the same time.
        left: Names that a creator took with a directory, or a row, and never answered about.
        later: What ended after somebody had begun to hide a table of the root's directory.
        was_row: Whether a row had the root's name at some time.
        failed: Creations of a table in the root's directory that were told as failed, or never.
    """

    rows: RowsModel
    beside: dict[str, list[Op]]
    retreating: frozenset[str]
    left: frozenset[str]
    later: frozenset[str]
    was_row: bool
    failed: frozenset[str]

    def ways(self, op: Op, said: str, state: Lake) -> list[Way]:
        if op.verb in _LOOKING:
            return [Way(state)] if self._is_seen(op, said, state) else []
        # Another name for the directory reads what is in it, and writes into it.
        shared = state.rows.write(DIRECTORY, state.directory[1])
        timed = replace(state, rows=self.rows.timed(op, shared))
        found = compat_model._ways(op, said, timed)
        if self._is_unchanged(op, said, state):
            found.append(Outcome(said, timed))
        if self._leaves_row(op, said, state):
            bare = timed.rows.add(Entry(ROOT_NAME, TABLE, op.token)).write(op.token, None)
            found.append(Outcome(said, replace(timed, rows=bare)))
        if said in UNSURE and _is_maker(op) and any(map(_is_giver, self.beside[op.token])):
            found += [
                after._replace(said=said, pending=Retreat(op.token))
                for after in compat_model.apply(op, timed)
                if after.said == "ok"
            ]
        if self._drops_unnamed(op, said, state) or self._drops_first_files(op, said, state):
            hidden = plain.dropped(state.directory[1])
            found.append(Outcome(said, replace(timed, directory=hidden)))
        if self._comes_back_with_nothing(op, said, state):
            found.append(Outcome(said, replace(timed, directory=plain.ABSENT)))
        if said == LOST:  # data may have been written into a table that somebody hid meanwhile
            found += [
                Outcome(said, replace(timed, rows=after.catalog))
                for after in catalog_model._half_written(op, timed.rows)
            ]
        found += _by_rows(op, said, timed, overtook=self._overtakes(op, state))
        if op.verb == "purge" and self._is_hidden_beside(op):
            # It looked at the directory before that was dropped: only rows are purged.
            found += [
                after._replace(catalog=replace(after.catalog, directory=state.directory))
                for after in _by_rows(op, said, timed, overtook=False)
            ]
        if self.was_row:
            found += compat_model._made_as_row(op, said, timed)
        return [Way(_parted(after.catalog, state), after.pending) for after in found]

    def _is_unchanged(self, op: Op, said: str, state: Lake) -> bool:
        """Whether an operation may also say this, having changed nothing, beside others."""
        match op.verb, said:
            case "undrop", "ok":  # it called a rename back
                return op.name == ROOT_NAME and state.is_live and self._moves_beside(op)
            case "undrop", "TableNotFoundError":  # a creation began over what has no data
                is_empty = op.name == ROOT_NAME and state.directory == plain.dropped(None)
                return is_empty and any(map(_is_creator, self.beside[op.token]))
            case "purge", "ok":
                return self._finds_nothing_left(op, state)
            case "declare", "InvalidTableStateError":  # version numbers of the name go on
                return op.token in self.later
            case "alias", _:
                return self._is_other_name_refused(op, said, state)
        is_move = compat_model._is_move(op) and said == TABLE_EXISTS and op.new in self.left
        return is_move or (said in {TABLE_EXISTS, BAD_STATE} and self._meets_remains(op, state))

    def _finds_nothing_left(self, op: Op, state: Lake) -> bool:
        """Whether another purge was faster, or what came back was deregistered at once."""
        if op.name == ROOT_NAME:
            return not state.has_directory and self._is_beside(op, _PURGING)
        is_forgotten = any(
            (other.verb, other.name) == ("deregister", op.name) for other in self.beside[op.token]
        )
        is_back = self._is_beside(op, {"undrop", "undropns"})
        return is_forgotten and is_back and state.rows.table(op.name) is None

    def _is_other_name_refused(self, op: Op, said: str, state: Lake) -> bool:
        """Whether its rows were looked at before a directory was made, or one of them is purged."""
        if said == BAD_STATE and _is_purging(state):
            return True
        is_refused = said == catalog_model.why_refused(state.rows, op.name)
        return is_refused and any(map(_is_maker, self.beside[op.token]))

    def _leaves_row(self, op: Op, said: str, state: Lake) -> bool:
        """Whether a rename met the first files of a creation that failed, and kept a row of it."""
        is_failed = _is_creator(op) and said in UNSURE and self._moves_beside(op)
        return is_failed and not state.has_directory and state.rows.get(ROOT_NAME) is None

    def _drops_unnamed(self, op: Op, said: str, state: Lake) -> bool:
        """Whether a drop may be of the directory: it looked before a row got the name."""
        is_dropped = _is_drop(op) and said in {"ok", *UNSURE}
        is_both = state.is_live and state.rows.table(ROOT_NAME) is not None
        return is_dropped and is_both and any(map(_is_giver, self.beside[op.token]))

    def _drops_first_files(self, op: Op, said: str, state: Lake) -> bool:
        """Whether a drop met the first files of a creation that failed, and took them away."""
        is_dropped = _is_drop(op) and said in {"ok", *UNSURE} and not state.has_directory
        return is_dropped and any(other.token in self.failed for other in self.beside[op.token])

    def _comes_back_with_nothing(self, op: Op, said: str, state: Lake) -> bool:
        """Whether the marker of a drop was all that was left where a creation has failed."""
        is_back = (op.verb, op.name, said) == ("undrop", ROOT_NAME, "ok")
        return is_back and state.directory == plain.dropped(None) and ROOT_NAME in self.left

    def _is_hidden_beside(self, op: Op) -> bool:
        """Whether a table in the root's directory may have come into the trash meanwhile."""
        others = self.beside[op.token]
        return any(_is_drop(other) or other.token in self.retreating for other in others)

    def _is_alone(self, op: Op) -> bool:
        """Whether nobody else was at the root's name."""
        return not any(ROOT_NAME in other.names for other in self.beside[op.token])

    def _moves_beside(self, op: Op) -> bool:
        return any(map(compat_model._is_move, self.beside[op.token]))

    def _is_beside(self, op: Op, verbs: set[str]) -> bool:
        return any(other.verb in verbs for other in self.beside[op.token])

    def _overtakes(self, op: Op, state: Lake) -> bool:
        """Whether a row may get the root's name although its directory is there.

        It looked before somebody made the directory, who then lost the name, or whose table
        somebody else has dropped before its row was there.
        """
        makers = [other for other in self.beside[op.token] if _is_maker(other)]
        if state.directory[0] == "dropped":
            return bool(makers)
        return state.is_live and any(maker.token in self.retreating for maker in makers)

    def _meets_remains(self, op: Op, state: Lake) -> bool:
        """Whether a refusal may be by what a creation left, or by a row that is yet to follow.

        A directory counts from its first file on, also where its creation fails later; a row goes
        by a step of its own after the directory's decision; and one that was dropped last cannot
        come back while the directory has its name.
        """
        if op.new != ROOT_NAME or op.verb not in _GIVING or self._is_alone(op):
            return False
        gone = {one.entry.name for one in state.rows.trash}
        return ROOT_NAME in self.left | gone or state.directory[0] == "dropped"

    def _is_seen(self, op: Op, said: str, state: Lake) -> bool:
        """Whether a look saw what is there.

        The root's directory is looked at after the rows: while others are at its name, it may be
        seen as nobody left it.
        """
        is_there = bool(seen(op, said, _as_one(state)))
        if is_there or self._is_alone(op):
            return is_there
        if op.verb == "list":
            found = {entry.name for entry in state.rows.live if entry.kind == TABLE}
            return set(said.split()[1:]) - {ROOT_NAME} == found - {ROOT_NAME}
        return op.name == ROOT_NAME

    def finish(self, rest, state: Lake) -> Lake:
        return compat_model.finish(rest, state)

    def drift(self, state: Lake, going_on: list) -> list[Lake]:
        return []


def _by_rows(op: Op, said: str, lake: Lake, *, overtook: bool) -> list[Outcome]:
    """Do what rows alone decide, also about a table of the root's name that had one."""
    found = met_declared(op, said, lake.rows)
    gone = {one.entry.name for one in lake.rows.trash if one.entry.kind == TABLE}
    if op.name == ROOT_NAME in gone and op.verb in {"purge", "undrop"} and said in {"ok", *UNSURE}:
        found += [after for after in catalog_model.apply(op, lake.rows) if after.said == "ok"]
    kept_out = {"dropped": BAD_STATE, "live": TABLE_EXISTS}.get(lake.directory[0])
    if ROOT_NAME in gone and said == kept_out and (op.verb, op.names) == ("undrop", (ROOT_NAME,)):
        # The row was dropped last, and the directory keeps it from its name: another one is free.
        return [Outcome(said, lake)]
    if _is_giver(op) and said in {"ok", *UNSURE} and overtook:
        found += [after for after in catalog_model.apply(op, lake.rows) if after.said == "ok"]
    # One purge is for both: the directory goes first.
    is_purged = op.verb == "purge" and lake.directory[0] == "dropped"
    directory = plain.ABSENT if is_purged else lake.directory
    return [
        Outcome(said, replace(lake, rows=after.catalog, directory=directory), after.pending)
        for after in found
    ]


def _parted(lake: Lake, before: Lake) -> Lake:
    """Take what was written by another name of the directory as what the directory holds."""
    held = lake.rows.content(DIRECTORY)
    files = frozenset(one for one in lake.rows.files if one[0] != DIRECTORY)
    rows = replace(untimed(lake.rows), files=files)
    is_decided = lake.directory != before.directory or not lake.has_directory
    if is_decided or held == before.directory[1]:
        return replace(lake, rows=rows)
    return replace(lake, rows=rows, directory=(lake.directory[0], held, lake.directory[2]))


def _as_one(lake: Lake) -> Catalog:
    """Draw the root's directory as a row, as a look from outside has it."""
    root = Entry(ROOT_NAME, TABLE, DIRECTORY)
    if lake.is_live and lake.rows.get(ROOT_NAME) is None:
        return lake.rows.add(root)
    if lake.directory[0] != "dropped":
        return lake.rows
    return replace(lake.rows, trash=lake.rows.trash | {Gone(root, DIRECTORY, ROOT_NAME)})


def model_of(ending: Ending) -> CompatModel:
    history = ending.history
    ops = history.ops
    beside = {key: [ops[other] for other in found] for key, found in history.beside().items()}
    retreating = frozenset(
        key
        for key, op in ops.items()
        if _is_maker(op) and (_is_lost(history, key) or any(map(_is_drop, beside[key])))
    )
    return CompatModel(
        RowsModel(ending, is_helped(history)),
        beside,
        retreating,
        frozenset(op.name for key, op in ops.items() if history.is_unsure(key)),
        _later(history, retreating),
        any(map(_is_giver, ops.values())),
        frozenset(key for key, op in ops.items() if _is_creator(op) and _is_lost(history, key)),
    )


def _is_maker(op: Op) -> bool:
    return op.name == ROOT_NAME and op.verb in _MAKING


def _is_purging(lake: Lake) -> bool:
    """Whether another name of the directory is being purged, and so perhaps its files."""
    return any(gone.purging and gone.entry.place == DIRECTORY for gone in lake.rows.trash)


def _is_creator(op: Op) -> bool:
    return op.name == ROOT_NAME and op.verb in {"create", "overwrite"}


def _is_giver(op: Op) -> bool:
    """Whether an operation would give the root's name to a row."""
    return op.new == ROOT_NAME != op.name and op.verb in {"rename", "undrop"}


def _is_drop(op: Op) -> bool:
    return (op.verb, op.name) == ("drop", ROOT_NAME)


def _is_lost(history: History, key: str) -> bool:
    return history.is_unsure(key) or history.said[key] == LOST


def _later(history: History, retreating: frozenset[str]) -> frozenset[str]:
    """Return what ended after somebody began to hide a table, be it by a rename that failed."""

    def hides(key: str) -> bool:
        op = history.ops[key]
        is_dropped = _is_drop(op) and (history.said.get(key) == "ok" or _is_lost(history, key))
        return key in retreating or is_dropped or compat_model._is_move(op)

    events = enumerate(history.events)
    begun = [at for at, (event, key) in events if event == "begin" and hides(key)]
    return frozenset(key for _, key in history.events[min(begun) :]) if begun else frozenset()


def _is_left_declared(ending: Ending, final: compat_model.View) -> bool:
    """Tell whether a creation failed to whose first files somebody else had given a row.

    A row without a directory, of which nothing was ever decided, is a declared table.
    """
    is_decided = any(path.startswith(f"{DIRECTORY}-state.") for path in ending.content)
    is_row_alone = ROOT_NAME in newest_rows(ending.content) and final.directory == plain.ABSENT
    is_declared = is_row_alone and not is_decided
    ops = ending.history.ops.items()
    return is_declared and any(_is_creator(op) and ending.history.is_unsure(key) for key, op in ops)


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
        if problem:
            return f"{problem}; left is {final}"
        problem = checker._visibility_problem(content, final, is_sure=False)
        if problem and not _is_left_declared(ending, final):
            return problem
        return self._must_be_usable(content)

    def _must_be_usable(self, content: dict[str, bytes]) -> str | None:
        try:
            compat_harness.exercise(self.open(MemoryStore(content), "Z"))
        except MooringError as exc:
            return f"stuck afterwards: {exc!r}"
        return None


__all__ = ["CompatModel", "CompatSubject"]
