"""Puts operations on a catalog in compatibility mode through their interleavings.

The root table `t` has a directory of its own, other tables live by their rows, and some operations
bring the two kinds to the same name or the same files.
"""

from __future__ import annotations

import contextlib
from functools import partial

from mooring.directory.decisions import State
from mooring.directory.entries import intent_of, read_dropped
from mooring.errors import ConflictError, MooringError, NotFoundError
from mooring.identifiers import ROOT
from mooring.namespace.api import Ttl

from . import model as plain
from .catalog_model import TABLE, Op, Picture
from .compat_model import DIRECTORY, ROOT_NAME, Lake, View, apply, explains, finish
from .explorer import Explorer, Limits, Report
from .manifest_harness import Checker as ManifestChecker
from .manifest_harness import Race, Start, loose_places, object_id, parse
from .manifest_harness import perform as perform_on_rows
from .manifests import newest_rows, open_compat_backend, settled
from .world import MemoryWorld

STARTS: dict[str, tuple[str, ...]] = {
    "empty": (),
    "other": ("ns n", "create n.u"),
    "both": ("ns n", "create n.u", "create t"),
    "dropped": ("ns n", "create n.u", "create t", "drop t"),
    "purged": ("ns n", "create n.u", "create t", "drop t", "purge t"),
    "shared": ("ns n", "create t", "alias n.a t.lance"),
    "shared and dropped": ("ns n", "create t", "alias n.a t.lance", "drop t"),
    "named": ("ns n", "create n.u", "rename n.u t"),
    "declared": ("ns n", "declare t"),
    "without a row": ("ns n", "v1create t"),
}
_ROOT = ROOT.child(ROOT_NAME)


def perform(op: Op, places: dict[str, str], backend) -> object:
    """Call the real backend, or write as a program that knows nothing of it."""
    match op.verb:
        case "append":
            return backend.home.open_tables().append(DIRECTORY, op.token)
        case "register":
            return backend.register_table(object_id(op.name), DIRECTORY)
        case "protect":
            return backend.protect_table(object_id(op.name))
        case "v1create":  # by a program that only knows the directory
            return backend._listed.create_table(object_id(op.name), op.token)
        case "v1drop":
            return backend._listed.drop_table(object_id(op.name))
        case _:
            return perform_on_rows(op, places, backend)


def prepare(name: str, world) -> tuple[Start, Lake]:
    """Build an initial state with the real code, and by the model."""
    store = world.open({})
    backend = open_compat_backend(store, "I")
    lake = Lake()
    places = {DIRECTORY: DIRECTORY}
    for at, line in enumerate(STARTS[name]):
        op = parse(line, f"I{at}")
        perform(op, places, backend)
        after = next(found for found in apply(op, lake) if found.said == "ok")
        lake = finish(after.pending, after.catalog) if after.pending else after.catalog
    return Start(dict(store.content), lake.rows, places), lake


class Checker(ManifestChecker):
    """Judges what a schedule leaves."""

    def __init__(self, race: Race, start: Start, lake: Lake, world) -> None:
        super().__init__(race, start, world, open_compat_backend)
        self._lake = lake

    def _explain(self, content: dict[str, bytes], actors) -> str | None:
        final, problem = self._look(content)
        if problem:
            return problem
        histories = tuple(self._history(actor) for actor in actors)
        if not explains(self._lake, histories, final):
            return f"no order of the operations explains the end: {final}"
        ops = [op for history in histories for op, _ in history.ops]
        is_sure = not any(actor.crashed for actor in actors) and not any(
            op.verb.startswith("v1") for op in ops
        )
        return self._visibility_problem(content, final, is_sure=is_sure)

    def _look(self, content: dict[str, bytes]) -> tuple[View | None, str | None]:
        directory, problem = self._directory(content)
        if problem:
            return None, problem
        found = newest_rows(content)
        shown = {key: row for key, row in found.items() if not _follows_directory(row)}
        drawn = self._see(content, shown)
        mentioned = [*found.values(), *_moves(found)]
        read = self._fresh(content).home.open_tables().read
        places = [place for place in loose_places(content, {}) if not place.endswith(".lance")]
        used = {(getattr(row, "location", None) or "").partition("/")[0] for row in mentioned}
        loose = tuple(sorted(str(read(place)) for place in places if place not in used))
        return View(directory, Picture(drawn.live, drawn.trash, loose)), None

    def _fresh(self, content: dict[str, bytes]):
        return self._open(self._world.open(content), "Z")

    def _directory(self, content: dict[str, bytes]) -> tuple[tuple, str | None]:  # noqa: PLR0911  # a table of cases
        """Tell what the root table's directory holds, and what was decided about it."""
        backend = self._fresh(content)
        listed = backend._listed
        seen = listed.view(ROOT_NAME)
        read = backend.home.open_tables().read
        is_moving = seen.state is State.RENAMING and not _is_switched(content)
        if seen.state is State.LIVE or is_moving:  # moving, it is read under its old name
            return _readable(plain.live(read(DIRECTORY), seen.is_protected))
        if seen.state is State.DEREGISTERED:
            return _readable(plain.forgotten(read(DIRECTORY)))
        is_kept = seen.state is State.PURGING and _is_shared(content)
        if seen.state is State.RENAMING or is_kept:  # for other names keep a purge from going on
            return _readable(plain.dropped(read(DIRECTORY)))
        if seen.state is None or not seen.state.in_trash:
            return plain.ABSENT, None
        try:
            listed.undrop_table(_ROOT)
        except MooringError as exc:
            if "had no data" in str(exc):
                return plain.dropped(None), None
            return plain.ABSENT, f"a dropped table cannot be undropped: {exc!r}"
        return _readable(plain.dropped(read(DIRECTORY)))

    def _visibility_problem(
        self, content: dict[str, bytes], final: View, *, is_sure: bool
    ) -> str | None:
        """A live directory is a table for everybody, unless a row or namespace has its name."""
        backend = self._fresh(content)
        row = newest_rows(content).get(ROOT_NAME)
        is_live = final.directory[0] == "live"
        named = [kind for name, kind, _ in final.rows.live if name == ROOT_NAME]
        listed = ROOT_NAME in backend.list_tables(ROOT)
        if listed != (is_live or TABLE in named):
            return f"listed: {listed}, though the directory is {final.directory}, the row {row}"
        if listed:
            backend.describe_table(_ROOT)
        if not is_sure or named:
            return None
        if is_live != (row is not None):
            return f"the row {row} does not follow the directory {final.directory}"
        return None

    def _must_be_usable(self, content: dict[str, bytes]) -> str | None:
        backend = self._fresh(content)
        try:
            exercise(backend)
        except MooringError as exc:
            return f"stuck afterwards: {exc!r}"
        return None


def exercise(backend) -> None:
    """End whatever was begun, and use every name anew."""
    _clear(backend)
    backend.create_table(_ROOT, "after")
    backend.create_namespace(ROOT.child("n"), {})
    nested = ROOT.child("n").child("u")
    backend.rename_table(_ROOT, nested)
    backend.purge_table(_ROOT)
    backend.create_table(_ROOT, "again")
    for table, wanted in ((nested, "after"), (_ROOT, "again")):
        backend.drop_table(table)
        backend.undrop_table(table)
        row = backend._named.find(table)
        found = backend.home.open_tables().read(row.location) if row else "nothing: it has no row"
        if found != wanted:
            msg = f"a later table reads {found}"
            raise MooringError(msg)


def _clear(backend) -> None:
    _end_renames(backend)
    if backend._listed.view(ROOT_NAME).state is State.DEREGISTERED:
        backend.register_table(_ROOT, DIRECTORY)
    # Twice: a row may hide the directory that a creator left when it crashed.
    for table in [*backend.list_all_tables(), *([_ROOT] if _is_hidden(backend) else [])]:
        backend.protect_table(table, protected=False)
        backend.drop_table(table)
    for name in backend.list_namespaces(ROOT):
        backend.drop_namespace(ROOT.child(name), cascade=True, ttl=Ttl(0))
    # The ones with rows first: a purge of the directory waits for all other names of its files.
    nested = {found.id for found in backend.list_purgable_tables() if found.id != _ROOT}
    for table in nested:
        backend.purge_table(table)
    with contextlib.suppress(NotFoundError):
        backend.purge_table(_ROOT)
    backend.purge_tables()


def _end_renames(backend) -> None:
    """Finish a rename that was cut off, as its message says, or whatever came instead."""
    row = backend._named.find(_ROOT)
    intent = intent_of(row) if row else None
    if intent is None:
        return
    with contextlib.suppress(ConflictError, NotFoundError):
        backend.rename_table(_ROOT, object_id(intent.to.replace("$", ".")))


def _is_hidden(backend) -> bool:
    row = backend._named.find(_ROOT)
    is_named = row is not None and row.location != DIRECTORY
    return is_named and backend._listed.view(ROOT_NAME).state is State.LIVE


def _is_switched(content: dict[str, bytes]) -> bool:
    """Whether a rename has given the table its new row."""
    row = newest_rows(content).get(ROOT_NAME)
    return row is None or row.location != DIRECTORY


def _is_shared(content: dict[str, bytes]) -> bool:
    """Whether another name, also one in the trash, uses the files of the root table."""
    return any(
        row.location == DIRECTORY and not _follows_directory(row)
        for row in newest_rows(content).values()
    )


def _follows_directory(row) -> bool:
    """Whether a row only says what the directory says."""
    gone = read_dropped(row)
    if gone is not None:
        return gone.record.parked
    return row.object_id == ROOT_NAME and row.location == DIRECTORY


def _moves(found: dict) -> list:
    return [intent for row in found.values() if (intent := intent_of(row)) is not None]


def _readable(state: tuple) -> tuple[tuple, str | None]:
    problem = f"the data of {state} is gone" if "LOST" in str(state[1]) else None
    return state, problem


def explore(race: Race, *, limits: Limits | None = None) -> Report:
    """Explore a race in memory and return what was found."""
    world = MemoryWorld()
    start, lake = prepare(race.start, world)
    programs = {
        name: [partial(perform, op, start.places) for op in ops]
        for name, ops in race.programs().items()
    }
    return Explorer(
        world,
        start.content,
        programs,
        Checker(race, start, lake, world),
        open_compat_backend,
        limits or Limits(),
        timed=True,
        commutes=settled,
    ).explore()
