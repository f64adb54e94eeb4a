"""Fixtures for kinds of catalogs: a test runs on all kinds of which it states a fact."""

from __future__ import annotations

import os

import pytest

from tests.conformance.kinds import params
from tests.lakes import (
    COMPAT_DISK,
    COMPAT_MOTO,
    DISK,
    KINDS,
    MANIFEST_DISK,
    METASTORE_DISK,
    METASTORE_MOTO,
    METASTORES,
    MOTO,
    Kind,
    Lake,
)


@pytest.fixture(autouse=True)
def _no_syncs(monkeypatch):
    """Processes may die in these suites, the machine does not; a sync costs most of a test."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(autouse=True)
def _no_turns(monkeypatch):
    """Nothing depends on a turn, and who waits for none loses more races; it leaves no file."""
    monkeypatch.setattr("mooring.store.turns._open", lambda _: None)


def _make(kind: Kind, request: pytest.FixtureRequest) -> Lake:
    clock = request.getfixturevalue("clock")
    if kind.server is None:
        root = request.getfixturevalue("tmp_path") / "lake"
        return Lake(kind, str(root), {}, clock)
    server = request.getfixturevalue(kind.server)
    return Lake(kind, server.uri(request.getfixturevalue("prefix")), server.options, clock)


@pytest.fixture(params=params(*(kind for kind in KINDS if kind.listing)))
def lake(request: pytest.FixtureRequest) -> Lake:
    """An empty place for a catalog whose root tables lie in directories of their names.

    With a manifest and without one; in a bucket in `make interop`.
    """
    return _make(request.param, request)


@pytest.fixture(params=params(*KINDS, *METASTORES))
def any_lake(request: pytest.FixtureRequest) -> Lake:
    """An empty place for a catalog of any kind; in a bucket in `make interop`."""
    return _make(request.param, request)


@pytest.fixture(params=params(*KINDS))
def any_directory(request: pytest.FixtureRequest) -> Lake:
    """An empty place for a directory catalog of any kind; in a bucket in `make interop`."""
    return _make(request.param, request)


@pytest.fixture(params=params(COMPAT_DISK, MANIFEST_DISK))
def nested(request: pytest.FixtureRequest) -> Lake:
    """An empty place on disk for a catalog with namespaces."""
    return _make(request.param, request)


@pytest.fixture(params=params(*(kind for kind in KINDS if kind.manifest and kind.server)))
def nested_s3(request: pytest.FixtureRequest) -> Lake:
    """An empty place in a bucket for a catalog with namespaces."""
    return _make(request.param, request)


@pytest.fixture(params=params(DISK, COMPAT_DISK))
def disk_lake(request: pytest.FixtureRequest) -> Lake:
    """An empty place on disk, for what only a disk can show."""
    return _make(request.param, request)


@pytest.fixture(params=params(MOTO, COMPAT_MOTO, fast=True))
def moto_lake(request: pytest.FixtureRequest) -> Lake:
    """An empty place on moto, for what only S3 can show."""
    return _make(request.param, request)


@pytest.fixture
def plain_lake(request: pytest.FixtureRequest) -> Lake:
    """An empty place on disk for a catalog without a manifest."""
    return _make(DISK, request)


@pytest.fixture
def compat(request: pytest.FixtureRequest) -> Lake:
    """An empty place on disk for a catalog in compatibility mode."""
    return _make(COMPAT_DISK, request)


@pytest.fixture
def v2(request: pytest.FixtureRequest) -> Lake:
    """An empty place on disk for a catalog whose manifest names everything."""
    return _make(MANIFEST_DISK, request)


@pytest.fixture
def metastore(request: pytest.FixtureRequest) -> Lake:
    """An empty place on disk for a metastore."""
    return _make(METASTORE_DISK, request)


@pytest.fixture(params=params(*METASTORES))
def any_metastore(request: pytest.FixtureRequest) -> Lake:
    """An empty place for a metastore on any store; in a bucket in `make interop`."""
    return _make(request.param, request)


@pytest.fixture
def moto_metastore(request: pytest.FixtureRequest) -> Lake:
    """An empty place on moto for a metastore."""
    return _make(METASTORE_MOTO, request)
