"""What the operations of a manifest catalog mean one after another.

A history is right if some order of its operations explains every outcome and what is left. The
order keeps each actor's own, and never puts an operation before one that had ended when it began.
A purge has two steps, the mark from which nothing comes back and the end, and others may act in
between. An operation that crashed has happened, in part, or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

NAMESPACE, TABLE = "namespace", "table"

LOST = "ConcurrentModificationError"
UNKNOWN = "UnknownOutcomeError"
NO_TABLE, NO_NAMESPACE = "TableNotFoundError", "NamespaceNotFoundError"
TABLE_EXISTS, NAMESPACE_EXISTS = "TableAlreadyExistsError", "NamespaceAlreadyExistsError"
NOT_EMPTY, BAD_STATE = "NamespaceNotEmptyError", "InvalidTableStateError"
PROTECTED = "ProtectedError"
UNSURE = {"crashed", UNKNOWN}


class Op(NamedTuple):
    """An operation: a verb, the names it is about, and a token for what it makes."""

    verb: str
    names: tuple[str, ...]
    token: str

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def new(self) -> str:
        """The name that something gets."""
        return self.names[-1]


class Entry(NamedTuple):
    """A live object: a table has a place, where its files are."""

    name: str
    kind: str
    place: str | None = None


class Gone(NamedTuple):
    """An object in the trash; all of one drop have the same label and top."""

    entry: Entry
    drop: str
    top: str
    over: bool = False
    purging: bool = False


class Pending(NamedTuple):
    """A purge between its two steps."""

    drops: frozenset[tuple[str, str]]
    places: frozenset[str]


@dataclass(frozen=True)
class Catalog:
    """A whole catalog: what is live, the trash, and the content of every place."""

    live: frozenset[Entry] = frozenset()
    trash: frozenset[Gone] = frozenset()
    files: frozenset[tuple[str, str | None]] = frozenset()

    def get(self, name: str) -> Entry | None:
        return next((entry for entry in self.live if entry.name == name), None)

    def table(self, name: str) -> Entry | None:
        found = self.get(name)
        return found if found and found.kind == TABLE else None

    def has_namespace(self, name: str) -> bool:
        found = self.get(name)
        return not name or (found is not None and found.kind == NAMESPACE)

    def below(self, name: str) -> list[Entry]:
        return [entry for entry in self.live if entry.name.startswith(f"{name}.")]

    def content(self, place: str | None) -> str | None:
        return dict(self.files).get(place or "")

    def add(self, *entries: Entry) -> Catalog:
        return replace(self, live=self.live | set(entries))

    def remove(self, *entries: Entry) -> Catalog:
        return replace(self, live=self.live - set(entries))

    def write(self, place: str, content: str | None) -> Catalog:
        kept = {(at, found) for at, found in self.files if at != place}
        return replace(self, files=frozenset(kept | {(place, content)}))

    def used(self) -> set[str | None]:
        """Return the places of names that may still be read."""
        trash = {gone.entry.place for gone in self.trash if not gone.purging}
        return {entry.place for entry in self.live} | trash

    def mentioned(self) -> set[str | None]:
        """Return the places that rows mention."""
        return {entry.place for entry in self.live} | {gone.entry.place for gone in self.trash}


def parent_of(name: str) -> str:
    return name.rpartition(".")[0]


class Outcome(NamedTuple):
    """One way in which an operation may end."""

    said: str
    catalog: Catalog
    pending: Pending | None = None


def why_refused(catalog: Catalog, name: str) -> str | None:
    """Tell why a name cannot be given."""
    if not catalog.has_namespace(parent_of(name)):
        return NO_NAMESPACE
    found = catalog.get(name)
    if found is None:
        return None
    return NAMESPACE_EXISTS if found.kind == NAMESPACE else TABLE_EXISTS


def apply(op: Op, catalog: Catalog) -> list[Outcome]:
    """Return the ways in which an operation that runs alone may end."""
    return _VERBS[op.verb](op, catalog)


def _refuse(said: str, catalog: Catalog) -> list[Outcome]:
    return [Outcome(said, catalog)]


def _make(op: Op, catalog: Catalog) -> list[Outcome]:
    known = catalog.table(op.name)
    if op.verb == "overwrite" and known is not None:
        return [Outcome("ok", catalog.write(known.place, op.token))]
    if op.verb != "declare" and known is not None and catalog.content(known.place) is None:
        return [Outcome("ok", catalog.write(known.place, op.token))]
    refusal = why_refused(catalog, op.name)
    if refusal:
        return _refuse(refusal, catalog)
    content = None if op.verb == "declare" else op.token
    made = catalog.add(Entry(op.name, TABLE, op.token)).write(op.token, content)
    return [Outcome("ok", made)]


def _make_namespace(op: Op, catalog: Catalog) -> list[Outcome]:
    refusal = why_refused(catalog, op.name)
    if refusal:
        return _refuse(refusal, catalog)
    return [Outcome("ok", catalog.add(Entry(op.name, NAMESPACE)))]


def _trash(op: Op, catalog: Catalog, entries: list[Entry]) -> list[Outcome]:
    over = op.verb.endswith("!")
    gone = {Gone(entry, op.token, op.name, over) for entry in entries}
    moved = catalog.remove(*entries)
    return [Outcome("ok", replace(moved, trash=catalog.trash | gone))]


def _drop(op: Op, catalog: Catalog) -> list[Outcome]:
    found = catalog.table(op.name)
    return _refuse(NO_TABLE, catalog) if found is None else _trash(op, catalog, [found])


def _drop_namespace(op: Op, catalog: Catalog) -> list[Outcome]:
    found = catalog.get(op.name)
    if found is None or found.kind != NAMESPACE:
        return _refuse(NO_NAMESPACE, catalog)
    below = catalog.below(op.name)
    if below and op.verb == "dropns":
        return _refuse(NOT_EMPTY, catalog)
    return _trash(op, catalog, [found, *below])


def _undrop(op: Op, catalog: Catalog) -> list[Outcome]:
    # Drops of the same moment: any of them may be the newest.
    found = [
        gone
        for gone in catalog.trash
        if gone.entry.name == op.name and gone.entry.kind == TABLE and not gone.purging
    ]
    refusal = why_refused(catalog, op.new) if found or op.new != op.name else None
    if not found:
        # Where it cannot come back as, either, that may be told instead.
        also = _refuse(NO_NAMESPACE, catalog) if refusal == NO_NAMESPACE else []
        return [*_refuse(NO_TABLE, catalog), *also]
    if refusal:
        return _refuse(refusal, catalog)
    return [
        Outcome(
            "ok", replace(catalog.add(_named(gone.entry, op.new)), trash=catalog.trash - {gone})
        )
        for gone in found
    ]


def _named(entry: Entry, name: str) -> Entry:
    return entry._replace(name=name)


def _undrop_namespace(op: Op, catalog: Catalog) -> list[Outcome]:
    tops = [
        gone
        for gone in catalog.trash
        if gone.entry.name == op.name and gone.entry.kind == NAMESPACE and not gone.purging
    ]
    if not tops:
        return _refuse(NO_NAMESPACE, catalog)
    return [_undrop_tree(op, catalog, top) for top in tops]


def _undrop_tree(op: Op, catalog: Catalog, top: Gone) -> Outcome:
    if top.top != op.name or not catalog.has_namespace(parent_of(op.name)):
        return Outcome(NO_NAMESPACE, catalog)
    tree = {gone for gone in catalog.trash if gone.drop == top.drop}
    for gone in sorted(tree, key=lambda gone: gone.entry.name):
        if gone.purging:
            return Outcome(BAD_STATE, catalog)
        taken = catalog.get(gone.entry.name)
        if taken:
            exists = NAMESPACE_EXISTS if taken.kind == NAMESPACE else TABLE_EXISTS
            return Outcome(exists, catalog)
    back = catalog.add(*(gone.entry for gone in tree))
    return Outcome("ok", replace(back, trash=catalog.trash - tree))


def _rename(op: Op, catalog: Catalog) -> list[Outcome]:
    found = catalog.table(op.name)
    if found is None:
        return _refuse(NO_TABLE, catalog)
    refusal = why_refused(catalog, op.new)
    if refusal:
        return _refuse(refusal, catalog)
    return [Outcome("ok", catalog.remove(found).add(_named(found, op.new)))]


def _deregister(op: Op, catalog: Catalog) -> list[Outcome]:
    found = catalog.table(op.name)
    return _refuse(NO_TABLE, catalog) if found is None else [Outcome("ok", catalog.remove(found))]


def _alias(op: Op, catalog: Catalog) -> list[Outcome]:
    """Register a name for the place that the initial state calls by its table's token."""
    place = op.new
    if place not in dict(catalog.files):
        return _refuse(NO_TABLE, catalog)
    if any(gone.purging and gone.entry.place == place for gone in catalog.trash):
        # Part of its files may be gone, or all.
        return [Outcome(BAD_STATE, catalog), Outcome(NO_TABLE, catalog)]
    refusal = why_refused(catalog, op.name)
    if refusal:
        return _refuse(refusal, catalog)
    return [Outcome("ok", catalog.add(Entry(op.name, TABLE, place)))]


def _purge(op: Op, catalog: Catalog) -> list[Outcome]:
    if op.verb == "expire":
        doomed = {gone for gone in catalog.trash if gone.over or gone.purging}
    else:
        doomed = {
            gone
            for gone in catalog.trash
            if gone.entry.name == op.name and gone.entry.kind == TABLE
        }
        if not doomed:
            return _refuse(NO_TABLE, catalog)
    marked = {gone._replace(purging=True) for gone in doomed}
    catalog = replace(catalog, trash=catalog.trash - doomed | marked)
    used = catalog.used()
    places = {gone.entry.place for gone in marked if gone.entry.place not in used}
    drops = {(gone.drop, gone.entry.name) for gone in marked}
    return [Outcome("ok", catalog, Pending(frozenset(drops), frozenset(places - {None})))]


def _sweep(op: Op, catalog: Catalog) -> list[Outcome]:
    """Delete directories that no row mentions, but for whole tables: they were deregistered."""
    kept = catalog.mentioned()
    files = {(place, found) for place, found in catalog.files if place in kept or found is not None}
    return [Outcome("ok", replace(catalog, files=frozenset(files)))]


def _abandon(op: Op, catalog: Catalog) -> list[Outcome]:
    """Leave the files of a table that never came to be."""
    return [Outcome("ok", catalog.write(op.token, None))]


def finish(pending: Pending, catalog: Catalog) -> Catalog:
    """Return the catalog after the second step of a purge."""
    trash = {gone for gone in catalog.trash if (gone.drop, gone.entry.name) not in pending.drops}
    files = {(place, content) for place, content in catalog.files if place not in pending.places}
    return replace(catalog, trash=frozenset(trash), files=frozenset(files))


_VERBS = {
    "create": _make,
    "declare": _make,
    "overwrite": _make,
    "ns": _make_namespace,
    "drop": _drop,
    "drop!": _drop,
    "undrop": _undrop,
    "rename": _rename,
    "deregister": _deregister,
    "alias": _alias,
    "purge": _purge,
    "expire": _purge,
    "dropns": _drop_namespace,
    "cascade": _drop_namespace,
    "cascade!": _drop_namespace,
    "undropns": _undrop_namespace,
    "sweep": _sweep,
    "abandon": _abandon,
}


@dataclass(frozen=True)
class Picture:
    """What can be seen of a catalog from outside, comparable between the model and the code.

    Attributes:
        live: Name, kind and content of every live object.
        trash: The same for each drop, with its top and which of them are being purged.
        loose: The content of directories that no row mentions.
    """

    live: frozenset[tuple[str, str, str | None]]
    trash: tuple[tuple[str, tuple[tuple[str, str, str | None, bool], ...]], ...]
    loose: tuple[str, ...] = field(default=())


def picture(catalog: Catalog) -> Picture:
    """Draw the model's catalog."""
    live = {(entry.name, entry.kind, catalog.content(entry.place)) for entry in catalog.live}
    groups: dict[str, list] = {}
    for gone in catalog.trash:
        entry = gone.entry
        content = None if gone.purging else catalog.content(entry.place)
        group = groups.setdefault(gone.drop, [gone.top, []])
        group[1].append((entry.name, entry.kind, content, gone.purging))
    mentioned = catalog.mentioned()
    loose = [str(content) for place, content in catalog.files if place not in mentioned]
    return Picture(frozenset(live), drops(groups.values()), tuple(sorted(loose)))


def drops(groups) -> tuple:
    """Sort drops, so that equal ones compare."""
    return tuple(sorted(((top, tuple(sorted(rows, key=str))) for top, rows in groups), key=str))


class History(NamedTuple):
    """What one actor did: operations and outcomes, and what had ended when each began."""

    ops: tuple[tuple[Op, str], ...]
    since: tuple[tuple[int, ...], ...]


def explains(initial: Catalog, actors: tuple[History, ...], final: Picture) -> bool:
    """Whether some order of the operations leads to these outcomes and this end."""
    is_exact = not any(said in UNSURE for history in actors for _, said in history.ops)
    purges = sum(op.verb in {"purge", "expire"} for history in actors for op, _ in history.ops)

    def ends_well(catalog: Catalog) -> bool:
        found = picture(catalog)
        if is_exact:
            return found == final
        return (found.live, found.trash) == (final.live, final.trash)

    def ways(op: Op, said: str, catalog: Catalog) -> list[Outcome]:
        return _ways(op, said, catalog, helped=purges > 1)

    return Search(actors, ways, finish, ends_well).succeeds(initial)


class Search:
    """Looks for an order of operations that explains their outcomes and the end."""

    def __init__(self, actors: tuple[History, ...], ways, finish, ends_well) -> None:
        """Search.

        Args:
            actors: What everybody did.
            ways: Tells how a catalog may look after an operation that ended like this.
            finish: Does the second step of an operation that has two.
            ends_well: Whether this is the end that was found.
        """
        self._actors = actors
        self._ways = ways
        self._finish = finish
        self._ends_well = ends_well
        self._reach = lru_cache(None)(self._try)

    def succeeds(self, initial) -> bool:
        count = len(self._actors)
        return self._reach((0,) * count, (None,) * count, initial)

    def _try(self, at: tuple[int, ...], pending: tuple, catalog) -> bool:
        if all(done == len(history.ops) for done, history in zip(at, self._actors, strict=True)):
            return self._ends_well(catalog)
        return any(
            self._reach(*step)
            for index in range(len(self._actors))
            for step in self._steps(index, at, pending, catalog)
        )

    def _steps(self, index: int, at: tuple[int, ...], pending: tuple, catalog):
        history = self._actors[index]
        if at[index] == len(history.ops):
            return
        op, said = history.ops[at[index]]
        moved = (*at[:index], at[index] + 1, *at[index + 1 :])
        idle = (*pending[:index], None, *pending[index + 1 :])
        if (begun := pending[index]) is not None:
            yield moved, idle, self._finish(begun, catalog)
            if said in UNSURE:
                yield moved, idle, catalog
        elif _may_begin(history, at, index):
            for after in self._ways(op, said, catalog):
                if after.pending is None:
                    yield moved, idle, after.catalog
                else:
                    waiting = (*pending[:index], after.pending, *pending[index + 1 :])
                    yield at, waiting, after.catalog


def _may_begin(history: History, at: tuple[int, ...], index: int) -> bool:
    number = at[index]
    if number >= len(history.since):
        return True
    return all(
        at[other] >= ended for other, ended in enumerate(history.since[number]) if other != index
    )


def _ways(op: Op, said: str, catalog: Catalog, *, helped: bool) -> list[Outcome]:
    """Return how a catalog may look after an operation that ended like this."""
    alone = apply(op, catalog)
    fitting = [after for after in alone if after.said == said]
    if said in UNSURE:
        return [Outcome(said, catalog), *(after for after in alone if after.said == "ok")]
    if said == LOST:
        return [Outcome(said, catalog), *_half_written(op, catalog)]
    if said == "ok" and not fitting and op.verb == "purge" and helped:
        return [Outcome(said, catalog)]  # another purge was faster
    return fitting


def _half_written(op: Op, catalog: Catalog) -> list[Outcome]:
    """Data may have been written into a table that somebody hid at the same time."""
    if op.verb not in {"create", "overwrite"}:
        return []
    places = {gone.entry.place for gone in catalog.trash if gone.entry.name == op.name}
    places |= dict(catalog.files).keys() - {entry.place for entry in catalog.live}
    written = [Outcome(LOST, catalog.write(place, op.token)) for place in places if place]
    if catalog.table(op.name) is not None:  # it was hidden afterwards
        written += [Outcome(LOST, after.catalog) for after in apply(op, catalog)]
    return written
