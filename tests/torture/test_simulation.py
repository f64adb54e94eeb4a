"""The simulation itself: a seed is a run to the byte, and what is wrong on purpose is found."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from mooring.directory.chain import Chains
from mooring.directory.compat_claims import Claims
from mooring.directory.compat_names import RootNames
from mooring.directory.root_rows import RootRows
from mooring.directory.trash import Trash
from mooring.errors import ConflictError
from mooring.metastore.chain import CommitChain
from tests.races import model as plain
from tests.races.catalog_model import Op

from .history import History, Search, Way
from .simulation import simulate
from .subjects import SUBJECTS

REPOSITORY = Path(__file__).parents[2]
SEEDS = range(40)
# A race for one name is rare among all that is done at random.
MANY_SEEDS = range(600)


def _run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.torture", *map(str, words)],
        cwd=REPOSITORY,
        env={name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("backend", SUBJECTS)
def test_a_seed_gives_the_same_trace_twice(backend):
    for seed in (1, 2, 3):
        first, second = (simulate(SUBJECTS[backend](), seed) for _ in range(2))
        assert "\n".join(first.trace) == "\n".join(second.trace)
        assert len(first.trace) > 20


def test_another_process_replays_a_seed_to_the_byte():
    kept = REPOSITORY / "build/torture/simulation-manifest-memory-11.txt"
    words = ("--kind", "simulation", "--seed", 11, "--backend", "manifest", "--store", "memory")
    traces = []
    for _ in range(2):
        kept.unlink(missing_ok=True)
        done = _run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "simulation manifest memory seed 11: " in done.stdout
        traces.append(kept.read_bytes())
    assert traces[0] == traces[1]
    assert traces[0].startswith(b"python -m tests.torture --kind simulation --seed 11")


@pytest.mark.parametrize("backend", SUBJECTS)
def test_every_backend_stands_some_seeds(backend):
    found = [simulate(SUBJECTS[backend](), seed) for seed in range(15)]
    assert [one.verdict for one in found if one.verdict] == []
    assert sum(one.faults.total() for one in found) > 0


# -- wrong on purpose ------------------------------------------------------------------------------


def _caught(backend: str, seeds: range = SEEDS) -> tuple[int, str]:
    for seed in seeds:
        found = simulate(SUBJECTS[backend](), seed)
        if found.verdict:
            assert "BUG" not in found.verdict  # caught by what it did, not by a mistake here
            again = simulate(SUBJECTS[backend](), seed)
            assert again.verdict == found.verdict
            assert again.trace == found.trace
            return seed, found.verdict
    pytest.fail(f"not caught by {len(seeds)} seeds")


def test_a_decision_that_overwrites_another_is_caught(monkeypatch):
    written = Chains.__init__

    def careless(self, store, *args, **more):
        written(self, _Careless(store), *args, **more)

    monkeypatch.setattr(Chains, "__init__", careless)
    _, problem = _caught("listing")
    assert "explains" in problem or "gone" in problem or "stuck" in problem


class _Careless:
    """A store that creates over what is there."""

    def __init__(self, inner) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def put_new(self, path: str, body: bytes) -> bool:
        self._inner.put(path, body)
        return True


def test_a_purge_that_deletes_before_it_marks_is_caught(monkeypatch):
    def purge(self, keys, progress=None):
        with self._manifest.reading() as draft:
            found = [row for row in (draft.get(key) for key in keys) if row is not None]
        for row in found:
            self._store.delete_prefix(row.location)
        return []

    monkeypatch.setattr(Trash, "purge", purge)
    _caught("manifest")


def test_a_metastore_whose_commits_overwrite_each_other_is_caught(monkeypatch):
    made = CommitChain.__init__

    def careless(self, store, *args, **more):
        made(self, _Careless(store), *args, **more)

    monkeypatch.setattr(CommitChain, "__init__", careless)
    _caught("transactions")


def test_a_root_table_whose_row_is_left_out_is_caught(monkeypatch):
    monkeypatch.setattr(RootNames, "take", lambda self, table, properties, **_: None)
    _caught("compat")


@pytest.mark.torture
@pytest.mark.parametrize("rule", ["check_name", "fence", "require_stays"])
def test_a_rule_of_who_owns_a_root_name_or_its_files_that_is_left_out_is_caught(rule, monkeypatch):
    monkeypatch.setattr(Claims, rule, lambda self, *_: None)
    _caught("compat", MANY_SEEDS)


@pytest.mark.torture
def test_a_root_table_that_does_not_give_way_is_caught(monkeypatch):
    settle = RootRows.settle

    def insist(self, *args, **more):
        with suppress(ConflictError):
            settle(self, *args, **more)

    monkeypatch.setattr(RootRows, "settle", insist)
    _caught("compat", MANY_SEEDS)


# -- the search ------------------------------------------------------------------------------------


class _OneName:
    """A name that is live or not."""

    def ways(self, op, said, state) -> list[Way]:
        expected, new = plain.apply(plain.Op(op.verb, op.token), state)
        return [Way(new)] if said in {expected, "crashed"} else []

    def drift(self, state, going_on) -> list:
        return []


def _history(*events: str) -> History:
    history = History()
    for event in events:
        key, *words = event.split()
        if key in history.ops:
            history.end(key, words[0])
        else:
            history.begin(key, Op(words[0], ("t",), key))
    return history


def _explained(*events: str, end: tuple, late: bool = True) -> bool:
    search = Search(_OneName(), _history(*events), late=late)
    return search.problem(plain.ABSENT, end.__eq__) is None


def test_operations_at_the_same_time_happen_in_any_order():
    assert _explained("a create", "b drop", "a ok", "b ok", end=plain.dropped("a"))
    assert not _explained("a create", "a ok", "b create", "b ok", end=plain.live("b"))


def test_an_answer_holds_for_what_begins_later():
    assert not _explained("a create", "a ok", "b undrop", "b ok", end=plain.live("a"))
    assert _explained("a create", "a ok", "b drop", "b ok", end=plain.dropped("a"))


def test_what_was_never_answered_happens_later_or_never():
    crashed = ("a create", "a crashed", "b drop", "b TableNotFoundError")
    assert _explained(*crashed, end=plain.ABSENT)
    assert _explained(*crashed, end=plain.live("a"))
    assert not _explained(*crashed, end=plain.live("a"), late=False)
    assert not _explained(*crashed, end=plain.live("b"))


def test_what_went_on_beside_an_operation_is_known_and_a_crash_never_ends():
    history = _history("a create", "b drop", "a ok", "b crashed", "c drop", "c ok", "d drop")
    beside = {"a": ["b"], "b": ["a", "c", "d"], "c": ["b"], "d": ["b"]}
    assert history.beside() == beside
