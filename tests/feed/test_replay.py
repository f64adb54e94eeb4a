"""Whoever follows the events knows the catalog: nothing is lost, whatever happens between polls."""

from __future__ import annotations

import random
from contextlib import suppress
from threading import Event as Signal
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from mooring.errors import MooringError
from mooring.feed import Kind
from mooring.identifiers import ROOT, ObjectId
from tests.feed.conftest import EVERY, SPACED, Watched
from tests.lakes import rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mooring.feed import Event
    from mooring.namespace.api import Backend

SPACES = [ROOT.child("n"), ROOT.child("m")]
TABLES = [
    *(space.child(name) for space in SPACES for name in ("s", "t")),
    ROOT.child("q"),
    ROOT.child("r"),
]
_CAME = {Kind.TABLE_CREATED, Kind.TABLE_DECLARED, Kind.TABLE_REGISTERED, Kind.TABLE_UNDROPPED}
_GONE = {Kind.TABLE_DROPPED, Kind.TABLE_REMOVED}


class Follower:
    """Knows only what it was told."""

    def __init__(self) -> None:
        self.tables: set[ObjectId] = set()
        self.namespaces: set[ObjectId] = {ROOT}

    def hear(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.kind in _CAME:
                assert event.id not in self.tables, event
                self.tables.add(event.id)
            elif event.kind in _GONE:
                self.tables.discard(event.id)  # it may have come and gone unseen
            elif event.kind is Kind.TABLE_RENAMED:
                assert event.old_id in self.tables, event
                self.tables.remove(event.old_id)
                self.tables.add(event.id)
            elif event.kind in {Kind.NAMESPACE_CREATED, Kind.NAMESPACE_UNDROPPED}:
                self.namespaces.add(event.id)
            elif event.kind is Kind.NAMESPACE_DROPPED:
                self.namespaces.remove(event.id)

    def check(self, backend: Backend) -> None:
        assert sorted(self.tables) == backend.list_all_tables()
        spaces = {ROOT, *map(ROOT.child, backend.list_namespaces(ROOT))}
        assert self.namespaces == spaces


def change(backend: Backend, chance: random.Random) -> None:
    """Try one change, whether it is possible or not."""
    table, other = chance.choice(TABLES), chance.choice(TABLES)
    tries = [
        lambda: backend.declare_table(table),
        lambda: backend.create_table(table, rows([1])),
        lambda: backend.drop_table(table),
        lambda: backend.undrop_table(table),
        lambda: backend.undrop_table(table, other),
        lambda: backend.rename_table(table, other),
        lambda: backend.deregister_table(table),
        lambda: backend.purge_table(table),
        lambda: backend.drop_namespace(table.parent, cascade=True),
        lambda: backend.undrop_namespace(table.parent),
        lambda: backend.create_namespace(table.parent, {}),
    ]
    weights = [4, 2, 4, 4, 2, 4, 1, 2, 1, 2, 3]
    with suppress(MooringError):  # it was not possible
        chance.choices(tries, weights)[0]()


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.name)
@pytest.mark.parametrize("seed", range(2))
def test_a_follower_knows_the_catalog_after_every_poll(make_watched, kind, seed):
    watched: Watched = make_watched(kind)
    chance, follower = random.Random(seed), Follower()
    follower.namespaces |= {ROOT.child("main")} if kind.metastore else set()
    for space in SPACES if kind in SPACED else ():
        watched.lake.backend.create_namespace(space, {})
    for _ in range(12):
        for _ in range(chance.randrange(1, 5)):
            change(watched.lake.backend, chance)
        follower.hear(watched.watcher.poll())
        follower.check(watched.lake.backend)


@pytest.mark.torture
@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.name)
def test_a_follower_who_looks_while_others_change_knows_the_catalog_in_the_end(make_watched, kind):
    watched: Watched = make_watched(kind)
    follower, ended = Follower(), Signal()
    follower.namespaces |= {ROOT.child("main")} if kind.metastore else set()

    def change_all_the_time(seed: int) -> None:
        backend, chance = watched.lake.open(author=str(seed)), random.Random(seed)
        for _ in range(60):
            change(backend, chance)

    def run() -> None:
        writers = [Thread(target=change_all_the_time, args=(seed,)) for seed in range(3)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        ended.set()

    changing = Thread(target=run)
    changing.start()
    while not ended.is_set():
        follower.hear(watched.watcher.poll())
    changing.join()
    follower.hear(watched.watcher.poll())
    follower.check(watched.lake.backend)
