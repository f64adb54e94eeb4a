"""Protocols that are wrong on purpose: the harness must catch each of them."""

from __future__ import annotations

from functools import partial

import pytest

import mooring.directory.chain
import mooring.directory.creation
import mooring.directory.lifecycle
import mooring.directory.purge
import mooring.store.numbered
from mooring.directory.chain import Chain, Chains
from mooring.directory.commits import VersionCommits
from mooring.directory.decisions import Decision, State, decode_decision, encode_decision
from mooring.directory.layout import table_dir
from mooring.directory.markers import read_markers
from mooring.directory.purge import Purge
from mooring.directory.view import TableView
from mooring.errors import ConcurrentModificationError, UnknownOutcomeError

from .caught import require_caught
from .explorer import Limits
from .harness import Race, explore
from .world import open_backend


def _decision(chains: Chains, chain: Chain, state: State, fields: dict) -> Decision:
    return Decision(
        state=state, nonce=chains._ids.new_id(), prev=chain.nonce, by="x", at_ms=0, **fields
    )


class OutcomeInKey(Chains):
    """Decides by a key that holds the outcome: contenders do not meet."""

    def _path(self, name: str, seq: int, state: State) -> str:
        return f"{name}.state.{seq}.{state}"

    def read(self, name: str, since: Chain | None = None) -> Chain:
        seq = 0
        newest = Chain(name)
        while True:
            seq += 1
            bodies = [self._store.get(self._path(name, seq, state)) for state in State]
            found = [body for body in bodies if body is not None]
            if not found:
                return newest
            newest = Chain(name, seq, decode_decision(name, found[-1]))

    def history(self, name: str, after: int = 0) -> list[Chain]:
        newest = self.read(name)
        return [newest] * (newest.seq - after)

    def advance(self, chain: Chain, state: State, **fields) -> Chain:
        decision = _decision(self, chain, state, fields)
        path = self._path(chain.name, chain.seq + 1, state)
        if not self._store.put_new(path, encode_decision(decision)):
            raise ConcurrentModificationError(path)
        return Chain(chain.name, chain.seq + 1, decision)


class OneMarker(Chains):
    """Keeps the state in one key, which undrop deletes and the next drop uses again."""

    def read(self, name: str, since: Chain | None = None) -> Chain:
        body = self._store.get(f"{name}.state")
        return Chain(name) if body is None else Chain(name, 1, decode_decision(name, body))

    def history(self, name: str, after: int = 0) -> list[Chain]:
        return [] if self.read(name).seq <= after else [self.read(name)]

    def advance(self, chain: Chain, state: State, **fields) -> Chain:
        decision = _decision(self, chain, state, fields)
        path = f"{chain.name}.state"
        if state is State.LIVE:
            self._store.delete([path])
        elif chain.seq == 0:
            if not self._store.put_new(path, encode_decision(decision)):
                raise ConcurrentModificationError(path)
        elif self.read(chain.name).nonce == chain.nonce:
            self._store.put(path, encode_decision(decision))
        else:
            raise ConcurrentModificationError(path)
        return Chain(chain.name, 1, decision)


def _open_with(kind: type[Chains], store, owner: str):
    backend = open_backend(store, owner)
    chains = kind(store, backend.home.clock, backend.home.ids, owner)
    for part in (backend, backend._life, backend._creation, backend._purge, backend._commits):
        part._chains = chains
    return backend


def _catch(race: Race, *, faults: int = 0, **options) -> None:
    limits = Limits(preemptions=2, faults=faults, stop_at_first=True)
    require_caught(explore(race, limits=limits, **options).violations)


@pytest.mark.parametrize(
    ("kind", "race"),
    [
        (OutcomeInKey, Race("dropped", (("undrop",), ("purge",)))),
        (OneMarker, Race("dropped", (("purge",), ("undrop",)))),
    ],
    ids=["outcome in the key", "one marker that is deleted"],
)
def test_decision_that_contenders_do_not_share_is_caught(kind, race):
    _catch(race, open_one=partial(_open_with, kind))


def test_purger_that_lists_files_after_checking_the_chain_is_caught(monkeypatch):
    def delete_files(self, chain, progress):
        while True:
            if self._chains.read(chain.name).nonce != chain.nonce:
                return None
            found = self._store.list_prefix(table_dir(chain.name))
            kept, doomed = mooring.directory.purge._split_for_purge(chain.name, found)
            if not doomed:
                return kept
            self._store.delete(meta.path for meta in doomed)

    monkeypatch.setattr(Purge, "_delete_files", delete_files)
    _catch(Race("dropped", (("purge",), ("purge", "create"))))


def test_recreation_that_reuses_version_numbers_is_caught(monkeypatch):
    monkeypatch.setattr(mooring.directory.purge, "_split_for_purge", lambda _, found: (0, found))
    _catch(Race("dropped", (("purge",), ("purge", "create"))))


def test_put_that_is_not_looked_at_again_is_caught(monkeypatch):
    def create_once(store, path, body):
        while True:
            try:
                return store.put_new(path, body)
            except UnknownOutcomeError:
                continue

    monkeypatch.setattr(mooring.directory.chain, "create_once", create_once)
    _catch(Race("live", (("drop",), ("drop",))), faults=1)


def test_undrop_that_skips_the_restore_is_caught(monkeypatch):
    def skip(self, version, end, action):
        self.require_end(end, action)
        return version

    monkeypatch.setattr(VersionCommits, "restore", skip)
    _catch(Race("dropped", (("create",), ("undrop",))))


@pytest.mark.parametrize("chain_first", [True, False], ids=["chain first", "chain last"])
def test_look_that_reads_the_chain_only_once_is_caught(monkeypatch, chain_first):
    """Whatever the order, markers and chain of different moments give a wrong picture."""

    def look(store, chains, name):
        chain = chains.read(name) if chain_first else None
        listing = store.list_dir(table_dir(name))
        markers = read_markers(store, name, listing)
        chain = chain or chains.read(name)
        foreign = tuple(marker for marker in markers if marker.is_foreign(chain.seq))
        return TableView(chain, listing.exists, foreign)

    for part in (mooring.directory.lifecycle, mooring.directory.purge, mooring.directory.creation):
        monkeypatch.setattr(part, "view_table", look)
    if chain_first:
        _catch(Race("marked beside", (("purge",), ("register",))))
    else:
        _catch(Race("marked inside", (("purge",), ("purge", "create"))))
