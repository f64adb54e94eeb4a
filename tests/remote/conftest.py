"""Fixtures: catalogs of each kind behind a server, seen from afar."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.lakes import COMPAT_DISK, DISK, MANIFEST_DISK, METASTORE_DISK
from tests.remote.lakes import RemoteLake

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


def _make(kind: Kind, request: pytest.FixtureRequest) -> Iterator[RemoteLake]:
    root = request.getfixturevalue("tmp_path") / "lake"
    with RemoteLake(kind, str(root), {}, request.getfixturevalue("clock")) as lake:
        yield lake


def _kinds(*kinds: Kind) -> list[object]:
    return [pytest.param(kind, id=kind.name) for kind in kinds]


@pytest.fixture(params=_kinds(DISK, COMPAT_DISK))
def lake(request: pytest.FixtureRequest) -> Iterator[RemoteLake]:
    """A served directory whose root tables lie in directories of their names."""
    yield from _make(request.param, request)


@pytest.fixture(params=_kinds(DISK, COMPAT_DISK, MANIFEST_DISK, METASTORE_DISK))
def any_lake(request: pytest.FixtureRequest) -> Iterator[RemoteLake]:
    """A served catalog of any kind."""
    yield from _make(request.param, request)


@pytest.fixture(params=_kinds(DISK, COMPAT_DISK, MANIFEST_DISK))
def any_directory(request: pytest.FixtureRequest) -> Iterator[RemoteLake]:
    """A served directory of any kind."""
    yield from _make(request.param, request)


@pytest.fixture(params=_kinds(COMPAT_DISK, MANIFEST_DISK))
def nested(request: pytest.FixtureRequest) -> Iterator[RemoteLake]:
    """A served catalog with namespaces."""
    yield from _make(request.param, request)


@pytest.fixture(params=_kinds(DISK, COMPAT_DISK))
def disk_lake(request: pytest.FixtureRequest) -> Iterator[RemoteLake]:
    """A served directory on disk."""
    yield from _make(request.param, request)


@pytest.fixture
def plain_lake(request: pytest.FixtureRequest) -> Iterator[RemoteLake]:
    """A served directory without a manifest."""
    yield from _make(DISK, request)


@pytest.fixture
def v2(request: pytest.FixtureRequest) -> Iterator[RemoteLake]:
    """A served directory whose manifest names everything."""
    yield from _make(MANIFEST_DISK, request)


@pytest.fixture
def compat(request: pytest.FixtureRequest) -> Iterator[RemoteLake]:
    """A served directory with a manifest."""
    yield from _make(COMPAT_DISK, request)


@pytest.fixture
def metastore(request: pytest.FixtureRequest) -> Iterator[RemoteLake]:
    """A served metastore."""
    yield from _make(METASTORE_DISK, request)
