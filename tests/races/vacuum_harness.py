"""Writers of data against a vacuum, through their interleavings.

A history is right if some order of its transactions explains the objects that are left, if all
data that they name is there, and if one more vacuum leaves nothing else.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mooring.metastore.layout import (
    DATA_DIR,
    KEPT_MARKER,
    TABLES_DIR,
    data_dir,
    table_dir,
)
from mooring.metastore.locator import Locator
from mooring.metastore.model import (
    DataFile,
    Delta,
    Manifest,
    Namespace,
    Partition,
    Stream,
    Table,
    TableVersion,
)

from .explorer import Explorer, Limits, Report
from .metastore_harness import explains, open_metastore
from .world import MemoryWorld

if TYPE_CHECKING:
    from mooring.metastore.metastore import Metastore

VERSION = Locator.of("n", "t", "1")
PARTITION = VERSION.child("s", "deltacat").child("p")
FIRST = PARTITION.child("1")
OLD_TABLE = VERSION.child("k", "lance")
OLD_DIR = table_dir("stage-I")
OLD_DATA = f"{OLD_DIR}/data/part"


def _named(position: int, path: str) -> Delta:
    return Delta(stream_position=position, manifest=Manifest(files=(DataFile(path=path),)))


# -- what each actor does --------------------------------------------------------------------------


def _write(position: int, meta: Metastore) -> None:
    """Write data under the transaction's own id."""
    with meta.transaction() as txn:
        txn.get(PARTITION)
        path = f"{data_dir(txn.id)}/part"
        meta.store.put(path, b"rows")
        txn.create(PARTITION.child(str(position)), _named(position, path))


def _write_before(position: int, meta: Metastore) -> None:
    """Write data before there is a transaction, and name it later."""
    stage_id = f"stage-{meta.author}"
    path = f"{data_dir(stage_id)}/part"
    meta.store.put(path, b"rows")
    with meta.transaction() as txn:
        txn.depends_on(stage_id)
        txn.create(PARTITION.child(str(position)), _named(position, path))


def _write_twice(meta: Metastore) -> None:
    """Write two files under one id, and name them in two transactions."""
    stage_id = f"stage-{meta.author}"
    for position in (2, 3):
        meta.store.put(f"{data_dir(stage_id)}/{position}", b"rows")
    for position in (2, 3):
        with meta.transaction() as txn:
            txn.depends_on(stage_id)
            path = f"{data_dir(stage_id)}/{position}"
            txn.create(PARTITION.child(str(position)), _named(position, path))


def _make_table(stream_id: str, meta: Metastore) -> None:
    """Write a Lance table, and name it later."""
    stage_id = f"stage-{meta.author}"
    meta.store.put(f"{table_dir(stage_id)}/data/part", b"rows")
    with meta.transaction() as txn:
        txn.depends_on(stage_id)
        properties = {"location": table_dir(stage_id)}
        stream = Stream(stream_id=stream_id, format="lance", properties=properties)
        txn.create(VERSION.child(stream_id, "lance"), stream)


def _deregister(meta: Metastore) -> None:
    """Forget a table whose bytes stay."""
    meta.store.put(f"{OLD_DIR}/{KEPT_MARKER}", b"")
    with meta.transaction() as txn:
        txn.delete(OLD_TABLE)


def _copy(meta: Metastore) -> None:
    """Name the data of another delta once more."""
    with meta.transaction() as txn:
        found = txn.get(FIRST).value
        txn.create(PARTITION.child("4"), _named(4, found.manifest.files[0].path))


def _drop(meta: Metastore) -> None:
    with meta.transaction() as txn:
        txn.delete(FIRST)


REAL = {
    "write 1": partial(_write, 1),
    "write 2": partial(_write, 2),
    "write 2 before": partial(_write_before, 2),
    "write 2 and 3": _write_twice,
    "make table": partial(_make_table, "l"),
    "deregister": _deregister,
    "copy 1": _copy,
    "drop 1": _drop,
    "vacuum": lambda meta: meta.vacuum(older_than_ms=-1),
    "checkpoint": lambda meta: (meta.chain.refresh(), meta.chain.checkpoint()),
}


def _model(verb: str, state: frozenset):
    """Return the outcome and the deltas and tables after a transaction that runs alone."""
    match verb:
        case "vacuum" | "checkpoint":
            return "ok", state
        case "deregister":
            return "ok", state - {"k"}
        case "drop 1":
            return ("ok", state - {"1"}) if "1" in state else ("NotFoundError", state)
        case "copy 1" if "1" not in state:
            return "NotFoundError", state
        case "copy 1":
            made = {"4"}
        case "write 2 and 3":
            made = {"2", "3"}
        case "make table":
            made = {"l"}
        case _:
            made = {verb.split()[1]}
    return ("ConflictError", state) if made & state else ("ok", state | made)


def _partly(verb: str, state: frozenset) -> list[frozenset]:
    """Return the states that a call of several transactions may stop at."""
    return [state | {"2"}] if verb == "write 2 and 3" else []


# -- exploring -------------------------------------------------------------------------------------


def _paths_named(meta: Metastore) -> dict[str, str]:
    """Return what lies in the lake, by the ids of objects, with the data that they name."""
    txn = meta.begin()
    found = {one.id: one.value.manifest.files[0].path for one in txn.children(PARTITION)}
    for one in txn.children(VERSION):
        if "location" in one.value.properties:
            found[one.id] = f"{one.value.properties['location']}/data/part"
    return found


def _data(store) -> set[str]:
    return {path for path in store.content if path.startswith((f"{DATA_DIR}/", f"{TABLES_DIR}/"))}


class _Checker:
    """Judges the state that a schedule leaves."""

    def __init__(self, verbs, initial: frozenset) -> None:
        self._verbs = verbs
        self._initial = initial

    def __call__(self, store, actors) -> str | None:
        for actor in actors:
            for outcome in actor.outcomes:
                if outcome.startswith("BUG"):
                    return f"{actor.name} broke: {outcome}"
        named = _paths_named(open_metastore(store, "Z"))
        histories = tuple(
            tuple(zip(verbs, actor.outcomes, strict=False))
            for verbs, actor in zip(self._verbs, actors, strict=True)
        )
        if not explains(self._initial, histories, frozenset(named), _model, _partly):
            return f"no order of the transactions explains the end: {sorted(named)}"
        lost = {*named.values(), OLD_DATA} - _data(store)
        return f"data is lost: {sorted(lost)}" if lost else self._must_tidy(store, named)

    def _must_tidy(self, store, named: dict[str, str]) -> str | None:
        REAL["vacuum"](open_metastore(store, "Y"))
        left = _data(store) - {*named.values(), OLD_DATA, f"{OLD_DIR}/{KEPT_MARKER}"}
        if left:
            return f"one more vacuum leaves {sorted(left)}"
        after = _paths_named(open_metastore(store, "X"))
        return None if after == named else "a vacuum changed objects"


def _commutes(call, content, *, faults_left: bool) -> bool:
    """Tell calls that make no choice: a vacuum lists data, and nobody lists anything else."""
    if call.verb == "get":
        return call.path in content
    if call.path.startswith((f"{DATA_DIR}/", f"{TABLES_DIR}/", "txn/_commits/")):
        return False
    return not faults_left and call.verb in {"put", "delete"}


def explore_vacuum(actors: tuple[tuple[str, ...], ...], limits: Limits) -> Report:
    """Explore what some actors do, each a few things, on a lake with a delta and a Lance table."""
    world = MemoryWorld()
    store = world.open({})
    meta = open_metastore(store, "I")
    stream = PARTITION.parent
    with meta.transaction() as txn:
        txn.create(Locator.of("n"), Namespace())
        txn.create(Locator.of("n", "t"), Table())
        txn.create(VERSION, TableVersion(version="1"))
        txn.create(stream, Stream(stream_id="s"))
        txn.create(PARTITION, Partition(partition_id="p"))
    _write(1, meta)
    _make_table("k", meta)
    programs = {
        name: [REAL[verb] for verb in verbs] for name, verbs in zip("ABCD", actors, strict=False)
    }
    return Explorer(
        world,
        dict(store.content),
        programs,
        _Checker(actors, frozenset({"1", "k"})),
        open_metastore,
        limits,
        commutes=_commutes,
    ).explore()
