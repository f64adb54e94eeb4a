"""Fixtures: a catalog of each kind, and somebody who watches it."""

from __future__ import annotations

import os

import pytest

from mooring.feed import Watcher
from mooring.store.observed import ObservedStore
from tests.lakes import COMPAT_DISK, DISK, MANIFEST_DISK, METASTORE_DISK, Lake

EVERY = (DISK, COMPAT_DISK, MANIFEST_DISK, METASTORE_DISK)
SPACED = (COMPAT_DISK, MANIFEST_DISK, METASTORE_DISK)


@pytest.fixture(autouse=True)
def _no_syncs(monkeypatch):
    """Nothing crashes in these tests; a sync costs most of one."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


class Watched:
    """A lake, and a watcher that shares nothing with whoever changes it."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.store = ObservedStore(lake.store)
        lake.id("t")  # the namespace around it, where one is needed
        self.watcher = Watcher(lake.open(author="watcher", store=self.store), clock=lake.clock)
        assert self.watcher.poll() == []

    def seen(self) -> list[tuple[str, str]]:
        """Poll, and tell what happened to what."""
        return [(event.kind.value, str(event.id)) for event in self.watcher.poll()]

    def name(self, name: str) -> str:
        return str(self.lake.id(name))


@pytest.fixture
def make_watched(tmp_path, clock):
    return lambda kind: Watched(Lake(kind, str(tmp_path / "lake"), {}, clock))


@pytest.fixture(params=EVERY, ids=lambda kind: kind.name)
def watched(request, make_watched) -> Watched:
    """A catalog of any kind."""
    return make_watched(request.param)


@pytest.fixture(params=SPACED, ids=lambda kind: kind.name)
def spaced(request, make_watched) -> Watched:
    """A catalog that has namespaces and properties."""
    return make_watched(request.param)
