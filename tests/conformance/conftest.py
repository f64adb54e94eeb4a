"""One fixture for every kind of catalog: a test that takes `lake` runs on all of them."""

from __future__ import annotations

import os

import pytest

from tests.lakes import DISK, KINDS, MOTO, SEAWEEDFS, Kind, Lake


@pytest.fixture(autouse=True)
def _no_syncs(monkeypatch):
    """Processes may die in these suites, the machine does not; a sync costs most of a test."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def _make(kind: Kind, request: pytest.FixtureRequest) -> Lake:
    clock = request.getfixturevalue("clock")
    if kind.server is None:
        root = request.getfixturevalue("tmp_path") / "lake"
        return Lake(kind, str(root), {}, clock)
    server = request.getfixturevalue(kind.server)
    return Lake(kind, server.uri(request.getfixturevalue("prefix")), server.options, clock)


def _marks(kind: Kind) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.s3] if kind.server else []
    return [*marks, pytest.mark.interop] if kind is SEAWEEDFS else marks


@pytest.fixture(params=[pytest.param(kind, id=kind.name, marks=_marks(kind)) for kind in KINDS])
def lake(request: pytest.FixtureRequest) -> Lake:
    """An empty place for a catalog, of every kind; SeaweedFS in `make interop`."""
    return _make(request.param, request)


@pytest.fixture
def disk_lake(request: pytest.FixtureRequest) -> Lake:
    """An empty place on disk, for what only a disk can show."""
    return _make(DISK, request)


@pytest.fixture
def moto_lake(request: pytest.FixtureRequest) -> Lake:
    """An empty place on moto, for what only S3 can show."""
    return _make(MOTO, request)
