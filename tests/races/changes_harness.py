"""Writers, compactors, tidies, vacuums and readers of a change table, through interleavings.

A history is right if every row that was acknowledged is there exactly once, if no other is, and if
readers never lose a row that they saw. Rows are appended: one that came twice would be two.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import greenlet
import pyarrow as pa

from mooring.changes import ChangeTable, compaction, create_change_table, files, rewriting, writing
from mooring.changes.compaction_policy import GATHER, MERGE, CompactionPolicy
from mooring.changes.tidying import tidy
from mooring.errors import InvalidInputError, MooringError
from mooring.identifiers import ObjectId
from mooring.jobs.address import CatalogAddress
from mooring.metastore.layout import DATA_DIR
from mooring.metastore.locator import Locator
from mooring.metastore.model import Namespace

from .explorer import Explorer, Limits, Report
from .metastore_harness import HexIds, open_metastore
from .world import MemoryWorld

if TYPE_CHECKING:
    from mooring.metastore.metastore import Metastore

NAME = "n$t"
SCHEMA = pa.schema([("id", pa.int64()), ("who", pa.string())])
# Of two buckets; the row that comes second is in one with a row of the first.
FIRST, SECOND = (0, 1), (2,)
START = (*FIRST, *SECOND)
WRITTEN = {"write 3": 3, "write 4": 4}
MERGING, GATHERING = CompactionPolicy(level=MERGE), CompactionPolicy(level=GATHER)


class InMemory:
    """A catalog over a metastore in memory: as much of one as change tables use."""

    options: dict[str, object] = {}  # noqa: RUF012  # never changed

    def __init__(self, metastore: Metastore) -> None:
        self.metastore = metastore
        self.uri = f"memory://{metastore.author}"
        _catalogs[self.uri] = self

    def identifier(self, name: str | ObjectId) -> ObjectId:
        return name if isinstance(name, ObjectId) else ObjectId.parse(name)


class InTurn:
    """Does the parts of a job one after the other: an actor has one lane."""

    workers = 1

    def run(self, work, items, *, label="", on_done=None):
        found = []
        for item in items:
            found.append(work(item))
            if on_done is not None:
                on_done(found[-1])
        return found


_catalogs: dict[str, InMemory] = {}
_ids: WeakKeyDictionary[greenlet.greenlet, HexIds] = WeakKeyDictionary()


class LaneIds:
    """Gives each actor its own row of ids, the same in every run."""

    def new_id(self) -> str:
        return _ids[greenlet.getcurrent()].new_id()


def open_catalog(store, owner: str) -> InMemory:
    """Open a catalog for one actor, in its lane."""
    _ids[greenlet.getcurrent()] = HexIds(owner.lower())
    return InMemory(open_metastore(store, owner))


def make_repeatable(monkeypatch) -> None:
    """Let nothing differ from run to run: no random ids, no clock, no file kept in memory."""
    monkeypatch.setattr(CatalogAddress, "open", lambda self: _catalogs[self.uri])
    for module in (compaction, rewriting, writing):
        monkeypatch.setattr(module, "RandomIds", LaneIds)
    monkeypatch.setattr(compaction, "monotonic", lambda: 0.0)
    monkeypatch.setattr(rewriting, "_SHARED_BYTES", 1)  # a bucket that is rewritten leaves no file
    for kept in (files._bodies, files._footers, files._decoded):
        kept.clear()
        monkeypatch.setattr(kept, "_most_each", -1)


# -- what each actor does --------------------------------------------------------------------------


def _write(number: int, catalog: InMemory) -> None:
    ChangeTable(catalog, NAME).append([{"id": number, "who": catalog.metastore.author}])


def _write_named(number: int, catalog: InMemory) -> None:
    """Write a row, and again: the run's name says that it happened."""
    table = ChangeTable(catalog, NAME)
    for _ in range(2):
        table.append([{"id": number, "who": catalog.metastore.author}], run=f"run {number}")


def _compact(policy: CompactionPolicy, catalog: InMemory) -> None:
    compaction.compact(ChangeTable(catalog, NAME), policy, runner=InTurn())


def _tidy(catalog: InMemory) -> None:
    table = ChangeTable(catalog, NAME)
    tidy(table, keep=table.position, runs_older_than_ms=None)


def _read(catalog: InMemory) -> None:
    """Read the table twice, and as it was: rows only come."""
    table = ChangeTable(catalog, NAME)
    seen = read_rows(table)
    again = read_rows(table)
    assert set(START) <= set(seen) <= set(again), f"{seen}, then {again}"
    assert _read_at(table, 2) in {None, START}


def _read_at(table: ChangeTable, position: int) -> tuple[int, ...] | None:
    """Read an older position; None where it is tidied away."""
    try:
        return tuple(read_rows(table, position=position))
    except InvalidInputError:
        return None


def read_rows(table: ChangeTable, **at) -> list[int]:
    """Return the ids of a table's rows, sorted."""
    found = table.to_arrow(runner=InTurn(), columns=["id"], **at)
    return sorted(found["id"].to_pylist())


REAL = {
    "write 3": partial(_write, 3),
    "write 4": partial(_write_named, 4),
    "merge": partial(_compact, MERGING),
    "gather": partial(_compact, GATHERING),
    "tidy": _tidy,
    "read": _read,
    "vacuum": lambda catalog: catalog.metastore.vacuum(older_than_ms=-1),
}
# What may go wrong without harm: somebody else was first, or a file went while it was read.
FINE = {"ok", "crashed", "ConcurrentModificationError", "UnknownOutcomeError"}
FINE_BESIDE_VACUUM = {*FINE, "UnreadableError"}


# -- exploring -------------------------------------------------------------------------------------


class _Checker:
    """Judges the state that a schedule leaves."""

    def __init__(self, verbs) -> None:
        self._verbs = verbs
        every = {verb for own in verbs for verb in own}
        self._fine = FINE_BESIDE_VACUUM if "vacuum" in every else FINE

    def __call__(self, store, actors) -> str | None:
        must, may = set(START), set(START)
        for verbs, actor in zip(self._verbs, actors, strict=True):
            for verb, outcome in zip(verbs, actor.outcomes, strict=False):
                if outcome not in self._fine:
                    return f"{actor.name} broke: {outcome}"
                if verb in WRITTEN:
                    may.add(WRITTEN[verb])
                    must |= {WRITTEN[verb]} if outcome == "ok" else set()
        try:
            return self._judge(store, must, may)
        except MooringError as exc:
            return f"unusable afterwards: {exc!r}"

    def _judge(self, store, must: set[int], may: set[int]) -> str | None:
        table = ChangeTable(open_catalog(store, "Z"), NAME)
        rows = read_rows(table)
        if len(rows) != len(set(rows)):
            return f"rows came twice: {rows}"
        if not must <= set(rows) <= may:
            return f"rows {rows}, of which {sorted(must)} must be and {sorted(may)} may be"
        for position in range(table.at().table.horizon, table.position):
            older = set(read_rows(table, position=position))
            if len(older) != position + (position > 0) or not older <= set(rows):
                return f"position {position} has {sorted(older)}"
        return self._must_go_on(table, rows)

    def _must_go_on(self, table: ChangeTable, rows: list[int]) -> str | None:
        """Whatever was left, compaction, tidying and a vacuum leave the rows and nothing else."""
        catalog = table.catalog
        _compact(CompactionPolicy(force=True), catalog)
        _tidy(catalog)
        catalog.metastore.vacuum(older_than_ms=-1)
        if read_rows(table) != rows:
            return f"{rows} became {read_rows(table)}"
        named = {file.path for log in table.at().partitions.values() for file in _files(log)}
        left = {one.path for one in catalog.metastore.store.list_prefix(DATA_DIR)}
        return None if left == named else f"lie there unnamed, or are gone: {left ^ named}"


def _files(log):
    for one in (*log.deltas, *log.bases):
        yield from one.files


def _commuting(*, has_vacuum: bool):
    def commutes(call, content, *, faults_left: bool) -> bool:
        """Tell calls that make no choice: only a vacuum looks at data that nobody names yet."""
        if call.verb == "get":
            return call.path in content
        if call.path.startswith("txn/_commits/"):
            return False
        if has_vacuum and f"{call.path}/".startswith(f"{DATA_DIR}/"):
            return False
        return not faults_left and call.verb in {"put", "delete", "delete_prefix"}

    return commutes


def explore_changes(actors: tuple[tuple[str, ...], ...], limits: Limits) -> Report:
    """Explore what some actors do, each a few things, on a table with rows, one of them new."""
    world = MemoryWorld()
    store = world.open({})
    catalog = open_catalog(store, "I")
    with catalog.metastore.transaction() as txn:
        txn.create(Locator.of("n"), Namespace())
    table = create_change_table(catalog, NAME, SCHEMA, keys=["id"], buckets=2)
    table.append([{"id": number, "who": "first"} for number in FIRST])
    _compact(CompactionPolicy(force=True), catalog)
    table.append([{"id": number, "who": "second"} for number in SECOND])
    programs = {
        name: [REAL[verb] for verb in verbs] for name, verbs in zip("ABCD", actors, strict=False)
    }
    has_vacuum = any("vacuum" in verbs for verbs in actors)
    return Explorer(
        world,
        dict(store.content),
        programs,
        _Checker(actors),
        open_catalog,
        limits,
        commutes=_commuting(has_vacuum=has_vacuum),
    ).explore()
