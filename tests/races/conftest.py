"""What all races need: no pauses, seals without Lance, and a place for their figures."""

from __future__ import annotations

import pytest

import mooring.directory.shared_manifest
import mooring.metastore.chain
import mooring.metastore.metastore
import mooring.metastore.transaction
import mooring.store.numbered
import mooring.tables.seal

from .world import OneByOne, seal_of, sealed_copy


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    """A retry after a lost acknowledgement or a lost race waits for nothing here."""
    monkeypatch.setattr(mooring.store.numbered, "pause", lambda _: None)
    monkeypatch.setattr(mooring.directory.shared_manifest, "sleep", lambda _: None)
    monkeypatch.setattr(mooring.metastore.metastore, "pause", lambda _: None)


@pytest.fixture(autouse=True)
def _one_by_one(monkeypatch):
    """An actor has one lane: what it asks for at once, in no particular order, comes in a row."""
    monkeypatch.setattr(mooring.metastore.transaction, "ThreadPoolExecutor", OneByOne)
    monkeypatch.setattr(mooring.metastore.chain, "ThreadPoolExecutor", OneByOne)


@pytest.fixture(autouse=True)
def _seals(monkeypatch):
    """Manifests of tables are no files of Lance here; the steps of sealing are the real ones."""
    monkeypatch.setattr(mooring.tables.seal, "_copy", sealed_copy)
    monkeypatch.setattr(mooring.tables.seal, "_nonce_of", seal_of)


@pytest.fixture
def record_race(record_property):
    """Note the figures of a race for the summary."""

    def record(kind: str, race: object, report) -> None:
        record_property("race", (kind, str(race), report.runs, report.states, report.schedules))

    return record
