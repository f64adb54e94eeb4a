"""Committers that sleep while others commit and old versions are tidied away, numbers with them.

A number that was set free can be taken by a sleeper, whose change is then in no later version. It
must not be called a success.

Spec: directory-namespace, "Manifest Table Commits".
"""

from __future__ import annotations

from functools import partial

import pytest

from mooring.directory.manifest import MANIFEST_DIR
from mooring.identifiers import ROOT

from .depth import WIDE
from .manifest_harness import explore, race
from .manifests import StoreManifest, newest_rows, open_manifest_backend
from .scheduler import RUN, Actor, Run
from .world import MemoryStore


class TidiedManifest(StoreManifest):
    """Keeps two versions, and tidies after every commit."""

    kept = 2


open_tidied = partial(open_manifest_backend, kind=TidiedManifest)


def create(name: str, backend) -> None:
    backend.create_namespace(ROOT.child(name), {})


def set_property(backend) -> None:
    backend.update_namespace(ROOT, {"owner": "ada"})


def creating(*names: str) -> list:
    return [partial(create, name) for name in names]


class Play:
    """A schedule that is written down: who goes on, and until where."""

    def __init__(self, **programs) -> None:
        self.store = MemoryStore({})
        self.actors = {name: Actor(name, program) for name, program in programs.items()}
        open_tidied(self.store, "I").create_namespace(ROOT.child("first"), {})
        self._run = Run(list(self.actors.values()), self.store, open_tidied, threads=False)

    def to_commit(self, name: str) -> None:
        """Let an actor go on until it is about to commit a version of the manifest."""
        actor = self.actors[name]
        while not (actor.pending.verb == "put_new" and actor.pending.path.startswith(MANIFEST_DIR)):
            self._step(name)

    def one_operation(self, name: str) -> None:
        """Let an actor end the operation it is at."""
        done = len(self.actors[name].outcomes)
        while len(self.actors[name].outcomes) == done:
            self._step(name)

    def to_end(self, name: str) -> str:
        """Let an actor end, and return how its last operation went."""
        while not self.actors[name].done:
            self._step(name)
        return self.actors[name].outcomes[-1]

    def _step(self, name: str) -> None:
        self._run.step(RUN, list(self.actors).index(name))

    def rows(self) -> set[str]:
        return set(newest_rows(self.store.content))


def test_sleeper_whose_number_was_set_free_does_not_claim_success():
    play = Play(A=creating("a"), C=creating("c1", "c2", "c3", "c4"))
    play.to_commit("A")
    play.to_end("C")
    assert play.to_end("A") == "UnknownOutcomeError"
    assert play.rows() == {"first", "c1", "c2", "c3", "c4"}


def test_sleeper_that_only_lost_tries_again():
    play = Play(A=creating("a"), C=creating("c1"))
    play.to_commit("A")
    play.to_end("C")
    assert play.to_end("A") == "ok"
    assert play.rows() == {"first", "a", "c1"}


def test_second_sleeper_is_not_deceived_by_what_the_first_left():
    play = Play(A=creating("a"), B=creating("b"), C=creating("c1", "c2", "c3", "c4", "c5"))
    play.to_commit("A")
    play.one_operation("C")
    play.to_commit("B")
    play.to_end("C")
    assert play.to_end("A") == "UnknownOutcomeError"
    assert play.to_end("B") == "UnknownOutcomeError"
    assert play.rows() == {"first", "c1", "c2", "c3", "c4", "c5"}


def test_sleeper_that_changes_the_map_does_not_claim_success():
    play = Play(A=[set_property], C=creating("c1", "c2", "c3", "c4"))
    play.to_commit("A")
    play.to_end("C")
    assert play.to_end("A") == "UnknownOutcomeError"
    found = open_tidied(play.store, "Z").describe_namespace(ROOT)
    assert "owner" not in found


RACES = [
    race("namespace", "create n.t", "ns a + ns b + ns c"),
    race("namespace", "dropns n", "create n.t + ns b + ns c"),
    race("dropped", "purge n.t", "ns a + ns b + undrop n.t"),
    race("dropped", "undrop n.t", "ns a + ns b + purge n.t"),
    race("table", "rename n.t n.u", "ns a + drop n.t + ns c"),
]


@pytest.mark.parametrize("one", RACES, ids=str)
def test_race_with_tidying_leaves_a_catalog_that_some_order_explains(one, record_race):
    report = explore(one, limits=WIDE, open_one=open_tidied, commutes=None)
    record_race("manifest, tidied after every commit", one, report)
    assert not report.violations, report.violations[0]
