"""Version records on every kind of store, memory too, without Lance.

A catalog in memory holds names and records; Lance cannot write tables into it.

Spec: objects-and-relationships, "Table Version".
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from mooring.directory.listing_backend import ListingBackend
from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableVersionNotFoundError,
    UnsupportedError,
)
from mooring.identifiers import ROOT
from mooring.namespace.home import Home
from mooring.store import open_store
from mooring.tables.api import VersionRange
from mooring.tables.versions import manifest_name
from tests.lakes import table_id

T = table_id("t")
DIRECTORY = "t.lance/_versions"


@pytest.fixture(params=["disk", "memory", pytest.param("moto", marks=pytest.mark.s3)])
def backend(request, prefix, tmp_path):
    """A plain directory with one declared table."""
    if request.param == "moto":
        server = request.getfixturevalue("moto")
        store = open_store(server.uri(prefix), server.options)
    else:
        store = open_store(tmp_path / "lake" if request.param == "disk" else "memory://")
    found = ListingBackend(Home(store, author="ada"))
    found.declare_table(T)
    return found


def _create(backend, version: int, body: bytes, **more) -> None:
    staged = f"{DIRECTORY}/{manifest_name(version)}-staged"
    backend.store.put(staged, body)
    backend.create_table_version(T, version, staged, **more)


def test_records_are_made_listed_described_and_deleted(backend):
    assert backend.list_table_versions(T) == []
    for version in (1, 2, 3):
        _create(backend, version, b"x" * version, metadata={"number": str(version)})
    found = backend.list_table_versions(T)
    assert [(one.version, one.size_bytes) for one in found] == [(3, 3), (2, 2), (1, 1)]
    assert backend.describe_table_version(T, 2).metadata == {"number": "2"}
    with pytest.raises(TableVersionNotFoundError):
        backend.describe_table_version(T, 4)
    assert backend.delete_table_versions(T, [VersionRange(1, 3)]) == 2
    assert [one.version for one in backend.list_table_versions(T)] == [3]
    assert backend.delete_table_versions(T, [VersionRange(0, -1)]) == 1
    assert backend.list_table_versions(T) == []


def test_version_is_made_once_and_leaves_no_gap(backend):
    _create(backend, 1, b"first")
    with pytest.raises(ConcurrentModificationError):
        _create(backend, 1, b"second")
    with pytest.raises(InvalidInputError, match="no gaps"):
        _create(backend, 3, b"third")
    assert backend.store.get(f"{DIRECTORY}/{manifest_name(1)}") == b"first"


def test_catalog_in_memory_holds_names_and_says_that_it_holds_no_rows():
    backend = ListingBackend(Home(open_store("memory://"), author="ada"))
    backend.declare_table(T)
    assert backend.list_tables(ROOT) == ["t"]
    with pytest.raises(UnsupportedError, match="holds names only"):
        backend.create_table(table_id("u"), pa.table({"n": [1]}).to_reader())
    assert backend.list_tables(ROOT) == ["t"]
