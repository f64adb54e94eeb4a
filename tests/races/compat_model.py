"""What operations mean one after another in compatibility mode.

The root table `t` lives by its directory as in a plain directory, all other objects by their rows.
Whether `t` is its directory's, a row's or a namespace's name is what these races are about.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from . import catalog_model as rows
from . import model as plain
from .catalog_model import BAD_STATE, LOST, NAMESPACE, TABLE, UNSURE, Catalog, Entry, History, Op

EMPTY = Catalog()
ROOT_NAME = "t"
DIRECTORY = "t.lance"
_BY_DIRECTORY = {
    "create",
    "overwrite",
    "declare",
    "drop",
    "undrop",
    "purge",
    "register",
    "deregister",
    "protect",
}
_MAKING = {"create", "overwrite", "declare", "undrop", "register"}


@dataclass(frozen=True)
class Lake:
    """A catalog in compatibility mode: the root table's directory, and the rows.

    A directory that a rename has left is sealed: nobody can write into it.
    """

    directory: tuple = plain.ABSENT
    rows: Catalog = EMPTY
    sealed: bool = False

    @property
    def is_live(self) -> bool:
        return self.directory[0] == "live"

    @property
    def has_directory(self) -> bool:
        return self.directory[0] != "absent"


class Retreat(NamedTuple):
    """What is left to do of making a table whose name was given to another meanwhile.

    For a while it is there for all who look at its directory; then it goes into the trash.
    """

    token: str


class Outcome(NamedTuple):
    """One way in which an operation may end."""

    said: str
    catalog: Lake
    pending: rows.Pending | Retreat | None = None


def apply(op: Op, lake: Lake) -> list[Outcome]:
    """Return the ways in which an operation that runs alone may end."""
    if op.verb.startswith(("v1", "append")):
        return _append(op, lake) if op.verb == "append" else _plainly(op, lake)
    if _is_move(op) and not _is_named(lake):
        return _move(op, lake)
    if op.name == ROOT_NAME and op.verb in _BY_DIRECTORY:
        return _root(op, lake)
    if op.verb == "alias" and op.new == DIRECTORY:
        return _alias(op, lake)
    refusal = _refusal(op, lake)
    found = rows.apply(op, lake.rows)
    if refusal and any(after.said == "ok" for after in found):
        return [Outcome(refusal, lake)]
    return [
        Outcome(after.said, replace(lake, rows=after.catalog), after.pending) for after in found
    ]


def _plainly(op: Op, lake: Lake) -> list[Outcome]:
    """A program that only knows the directory does this."""
    said, directory = plain.apply(plain.Op(op.verb.removeprefix("v1"), op.token), lake.directory)
    return [Outcome(said, replace(lake, directory=directory))]


def _is_move(op: Op) -> bool:
    return op.verb == "rename" and op.name == ROOT_NAME


def _is_named(lake: Lake) -> bool:
    return lake.rows.table(ROOT_NAME) is not None


def _refusal(op: Op, lake: Lake) -> str | None:
    """Tell why the directory keeps a row from getting its name."""
    if op.new != ROOT_NAME:
        return None
    if op.verb == "ns":
        return rows.TABLE_EXISTS if lake.is_live else None
    if op.verb not in {"rename", "undrop", "alias"}:
        return None
    kind = lake.directory[0]
    return {"live": rows.TABLE_EXISTS, "dropped": BAD_STATE}.get(kind)


def _root(op: Op, lake: Lake) -> list[Outcome]:
    taken = lake.rows.get(ROOT_NAME)
    if taken is not None and op.verb in _MAKING:
        return _taken(op, lake, taken)
    if taken is not None and taken.kind == TABLE and op.verb in {"drop", "deregister"}:
        found = rows.apply(op, lake.rows)
        return [Outcome(after.said, replace(lake, rows=after.catalog)) for after in found]
    if (
        _shares(lake)
        and lake.directory[0] == "dropped"
        and op.verb in {"purge", "create", "overwrite"}
    ):
        return [Outcome(BAD_STATE, lake)]
    said, directory = plain.apply(plain.Op(op.verb, op.token), lake.directory)
    sealed = lake.sealed and directory[0] == "dropped"
    ways = [Outcome(said, replace(lake, directory=directory, sealed=sealed))]
    if op.verb == "register" and lake.is_live:
        ways.append(Outcome("ok", lake))  # it is taken into the manifest
    return ways


def _taken(op: Op, lake: Lake, taken: Entry) -> list[Outcome]:
    if taken.kind == NAMESPACE:
        return [Outcome(rows.NAMESPACE_EXISTS, lake), Outcome(rows.NO_TABLE, lake)]
    if op.verb == "overwrite":
        written = lake.rows.write(taken.place or "", op.token)
        return [Outcome("ok", replace(lake, rows=written))]
    return [Outcome(rows.TABLE_EXISTS, lake), Outcome(rows.NO_TABLE, lake)]


def _shares(lake: Lake) -> bool:
    """Whether another name uses the files of the root table."""
    return DIRECTORY in lake.rows.used()


def _alias(op: Op, lake: Lake) -> list[Outcome]:
    if not lake.has_directory:
        return [Outcome(rows.NO_TABLE, lake), Outcome(BAD_STATE, lake)]
    if not lake.is_live:
        return [Outcome(BAD_STATE, lake)]
    refusal = rows.why_refused(lake.rows, op.name)
    if refusal:
        return [Outcome(refusal, lake)]
    named = lake.rows.add(Entry(op.name, TABLE, DIRECTORY))
    return [Outcome("ok", replace(lake, rows=named))]


def _move(op: Op, lake: Lake) -> list[Outcome]:
    """A root table gets another name, and its files another place; the old ones are trash."""
    if not lake.is_live:
        return [Outcome(rows.NO_TABLE, lake)]
    refusal = rows.why_refused(lake.rows, op.new)
    if refusal:
        return [Outcome(refusal, lake)]
    content = lake.directory[1]
    named = lake.rows.add(Entry(op.new, TABLE, op.token)).write(op.token, content)
    return [Outcome("ok", Lake(plain.dropped(content), named, sealed=True))]


def _append(op: Op, lake: Lake) -> list[Outcome]:
    """A writer that knows nothing of catalogs adds to what the directory holds."""
    kind, content, protected = lake.directory
    refused = Outcome("UnsupportedError", lake)
    if content is None or lake.sealed:
        return [refused]
    grown = (kind, f"{content}+{op.token}", protected)
    return [Outcome("ok", replace(lake, directory=grown)), refused]


def finish(pending: rows.Pending | Retreat, lake: Lake) -> Lake:
    """Return the catalog after the second step of a purge of rows, or of a retreat."""
    if not isinstance(pending, Retreat):
        return replace(lake, rows=rows.finish(pending, lake.rows))
    return replace(lake, directory=plain.dropped(lake.directory[1])) if lake.is_live else lake


class View(NamedTuple):
    """What can be seen of a catalog from outside."""

    directory: tuple
    rows: rows.Picture


def view(lake: Lake) -> View:
    """Draw the model's catalog; another name for the directory shows what is in it."""
    content = lake.directory[1] if lake.has_directory else None
    drawn = rows.picture(lake.rows.write(DIRECTORY, content))
    loose = tuple(found for found in drawn.loose if found != str(content))
    return View(lake.directory, replace(drawn, loose=loose))


def explains(initial: Lake, actors: tuple[History, ...], final: View) -> bool:
    """Whether some order of the operations leads to these outcomes and this end."""
    is_exact = not any(said in UNSURE for history in actors for _, said in history.ops)

    def ends_well(lake: Lake) -> bool:
        found = view(lake)
        if is_exact:
            return found == final
        same_rows = (found.rows.live, found.rows.trash) == (final.rows.live, final.rows.trash)
        return found.directory == final.directory and same_rows

    was_row = _is_named(initial) or any(
        op.new == ROOT_NAME and op.verb in {"rename", "undrop", "alias"} and op.name != ROOT_NAME
        for history in actors
        for op, _ in history.ops
    )
    moves = any(_is_move(op) for history in actors for op, _ in history.ops)
    # A creator that crashed leaves a directory, which takes the name.
    left = {op.name for history in actors for op, said in history.ops if said in UNSURE}

    def ways(op: Op, said: str, lake: Lake) -> list[Outcome]:
        found = _ways(op, said, lake)
        if moves and (op.verb, op.name, said) == ("undrop", ROOT_NAME, "ok") and lake.is_live:
            found.append(Outcome(said, lake))  # it called a rename back that was under way
        if _is_move(op) and said == rows.TABLE_EXISTS and op.new in left:
            found.append(Outcome(said, lake))
        return [*found, *_made_as_row(op, said, lake)] if was_row else found

    return rows.Search(_unordered(actors), ways, finish, ends_well).succeeds(initial)


def _unordered(actors: tuple[History, ...]) -> tuple[History, ...]:
    """Let what never answered take effect later than it ended.

    A row follows its directory by a second step. Who finds the one without the other acts as if
    the operation that crashed in between was still to come.
    """
    answered = [_answered(history) for history in actors]
    return tuple(
        history._replace(since=tuple(tuple(map(min, ended, answered)) for ended in history.since))
        for history in actors
    )


def _answered(history: History) -> int:
    said = [said for _, said in history.ops]
    return next((at for at, found in enumerate(said) if found in UNSURE), len(said))


def _ways(op: Op, said: str, lake: Lake) -> list[Outcome]:
    alone = apply(op, lake)
    if said in UNSURE:
        happened = [after for after in alone if after.said == "ok"]
        return [Outcome(said, lake), *happened, *_left_half(op, said, lake)]
    if said == LOST:
        return [Outcome(said, lake), *_given_way(op, lake)]
    fitting = [after for after in alone if after.said == said]
    return fitting or _allowances(op, said, lake)


def _allowances(op: Op, said: str, lake: Lake) -> list[Outcome]:
    """Return what an operation may also say, having changed nothing, beside certain others."""
    if _is_move(op) and said == "ok" and not lake.is_live and lake.rows.table(op.new):
        return [Outcome(said, lake)]  # it helped another one that moves the table to that name
    if said == BAD_STATE and op.new == ROOT_NAME and op.verb == "rename":
        return [Outcome(said, lake)]  # a creation is under way in a directory with a past
    return []


def _made_as_row(op: Op, said: str, lake: Lake) -> list[Outcome]:
    """A creator that found a row goes on to make one, also if that table was hidden meanwhile."""
    making = {"create", "declare", "overwrite"}
    if op.verb not in making or op.name != ROOT_NAME or said not in {"ok", *UNSURE}:
        return []
    return [
        Outcome(said, replace(lake, rows=after.catalog))
        for after in rows.apply(op, lake.rows)
        if after.said == "ok" and not lake.is_live
    ]


def _left_half(op: Op, said: str, lake: Lake) -> list[Outcome]:
    """A maker that crashed may leave a directory without a version, which counts as a table.

    Or its table is done, but the name is another's or was taken away: it is hidden, or trash.
    """
    if op.name != ROOT_NAME or op.verb not in _MAKING:
        return []
    told, made = plain.apply(plain.Op(op.verb, op.token), lake.directory)
    if told != "ok":
        return []
    left = [plain.dropped(made[1]), *([made] if lake.rows.get(ROOT_NAME) else [])]
    if not lake.has_directory:
        left.append(plain.live(None))
    return [Outcome(said, replace(lake, directory=found)) for found in left]


def _given_way(op: Op, lake: Lake) -> list[Outcome]:
    """A table that lost its name to another, or was hidden as it came to be, is in the trash."""
    if op.name != ROOT_NAME or op.verb not in _MAKING:
        return []
    said, made = plain.apply(plain.Op(op.verb, op.token), lake.directory)
    if said != "ok":
        return []
    seen = replace(lake, directory=made)
    ways = [
        Outcome(LOST, replace(lake, directory=plain.dropped(made[1]))),
        Outcome(LOST, seen, Retreat(op.token)),
    ]
    if op.verb in {"create", "overwrite"}:
        ways.append(Outcome(LOST, seen))
    return ways
