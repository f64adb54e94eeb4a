"""Watching catalogs that somebody's server keeps, over real connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import mooring
from mooring.feed import Watcher
from mooring.identifiers import ROOT
from tests.lakes import COMPAT_DISK, Lake
from tests.own_irc import run_own
from tests.own_server import run_server

if TYPE_CHECKING:
    from mooring.catalog import Catalog

SPACE = ROOT.child("n")


@pytest.fixture
def lake(tmp_path, clock) -> Lake:
    return Lake(COMPAT_DISK, str(tmp_path / "lake"), {}, clock)


def follow(lake: Lake, remote: Catalog) -> list[list[tuple[str, str]]]:
    """Watch through a server while somebody changes the catalog behind it."""
    watcher = Watcher(remote.backend)
    assert watcher.poll() == []
    backend, table = lake.backend, SPACE.child("t")
    told = []
    for change in (
        lambda: lake.make("n"),
        lambda: lake.create(table),
        lambda: backend.update_table(table, {"a": "1"}),
        lambda: backend.rename_table(table, SPACE.child("u")),
        lambda: backend.drop_table(SPACE.child("u")),
        lambda: backend.undrop_table(SPACE.child("u")),
        lambda: backend.drop_namespace(SPACE, cascade=True),
    ):
        change()
        told.append([(event.kind.value, str(event.id)) for event in watcher.poll()])
    return told


def test_a_server_of_moorings_tells_almost_everything(lake):
    with run_server(lake.connect()) as address:
        told = follow(lake, mooring.connect(f"lance+{address}/lance"))
    assert told == [
        [("namespace.created", "n")],
        [("table.created", "n$t")],
        [("table.properties_changed", "n$t")],
        [("table.renamed", "n$u")],
        [("table.dropped", "n$u")],
        [("table.undropped", "n$u")],
        [("table.dropped", "n$u"), ("namespace.dropped", "n")],
    ]


def test_an_iceberg_catalog_tells_names(lake):
    lake.create("already_there")  # which Iceberg clients see in a namespace of its own
    with run_own(lake.connect()) as address:
        told = follow(lake, mooring.connect(f"iceberg+{address}", read_only=True))
    assert told == [
        [("namespace.created", "n")],
        [("table.created", "n$t")],
        [],
        [("table.removed", "n$t"), ("table.created", "n$u")],
        [("table.removed", "n$u")],
        [("table.created", "n$u")],
        [("table.removed", "n$u"), ("namespace.dropped", "n")],
    ]
