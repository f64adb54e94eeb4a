"""Fixtures: a served catalog of each kind, and a client of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from mooring.server.settings import ServerSettings
from tests.lakes import COMPAT_DISK, DISK, METASTORE_DISK, Lake
from tests.server.served import Served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lakes import Kind


@pytest.fixture(autouse=True)
def _no_syncs(monkeypatch):
    """Processes may die in these suites, the machine does not; a sync costs most of a test."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(autouse=True)
def _no_turns(monkeypatch):
    """Nothing depends on a turn, and who waits for none loses more races; it leaves no file."""
    monkeypatch.setattr("mooring.store.turns._open", lambda _: None)


def _serve(kind: Kind, request: pytest.FixtureRequest) -> Iterator[Served]:
    root = request.getfixturevalue("tmp_path") / "lake"
    lake = Lake(kind, str(root), {}, request.getfixturevalue("clock"))
    with Served(lake, ServerSettings()) as served:
        yield served


@pytest.fixture(params=[DISK, COMPAT_DISK, METASTORE_DISK], ids=lambda kind: kind.name)
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    """A served catalog of any kind."""
    yield from _serve(request.param, request)


@pytest.fixture(params=[COMPAT_DISK, METASTORE_DISK], ids=lambda kind: kind.name)
def spaced(request: pytest.FixtureRequest) -> Iterator[Served]:
    """A served catalog that has namespaces and properties."""
    yield from _serve(request.param, request)


@pytest.fixture
def plain(request: pytest.FixtureRequest) -> Iterator[Served]:
    """A served directory without a manifest."""
    yield from _serve(DISK, request)


@pytest.fixture
def compat(request: pytest.FixtureRequest) -> Iterator[Served]:
    """A served directory with a manifest."""
    yield from _serve(COMPAT_DISK, request)


@pytest.fixture
def metastore(request: pytest.FixtureRequest) -> Iterator[Served]:
    """A served metastore."""
    yield from _serve(METASTORE_DISK, request)
