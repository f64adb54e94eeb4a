"""How many requests a catalog sends, counted at the server.

Spec: soft-delete, "O(1) requests"; issue 2, "Listing an adopted catalog".
"""

from __future__ import annotations

import math

import pytest
from moto.backends import get_backend

import mooring
from mooring.directory.layout import decision_path, hint_path
from mooring.store import open_store
from tests.servers import BUCKET

TABLES = 2500
PAGES = math.ceil(TABLES / 1000)
pytestmark = pytest.mark.s3


def _fill(prefix: str, keys: list[str]) -> None:
    """Put empty objects straight into the server, which is in this process."""
    (account,) = get_backend("s3").values()
    s3 = account["aws"]
    for key in keys:
        s3.put_object(BUCKET, f"{prefix}/{key}", b"")


def _manifest(name: str) -> str:
    return f"{name}.lance/_versions/1.manifest"


@pytest.fixture
def names():
    return [f"table-{number:05}" for number in range(TABLES)]


@pytest.fixture
def catalog(moto, prefix):
    """Open the bucket's place and count what is asked for."""

    def connect() -> mooring.Catalog:
        found = mooring.connect(moto.uri(prefix), storage_options=moto.options)
        moto.requests.clear()
        return found

    return connect


def test_an_adopted_catalog_of_2500_tables_is_listed_with_three_requests(
    moto, prefix, catalog, names
):
    """Must show: "requests counted on S3 for 2,500 tables: 3 or 4"."""
    catalog().backend.initialize()
    _fill(prefix, [_manifest(name) for name in names])
    opened = catalog()
    assert opened.list_tables() == names
    assert moto.requests.total() in {PAGES, PAGES + 1}
    assert set(moto.requests) == {"LIST"}


def test_the_trash_costs_no_request_for_each_table(moto, prefix, catalog, names):
    """Decisions and hints lie in the same listing as the tables."""
    catalog().backend.initialize()
    dropped = names[:500]
    _fill(prefix, [_manifest(name) for name in dropped])
    _fill(prefix, [decision_path(name, 1) for name in dropped])
    _fill(prefix, [hint_path(name, 1, "deleted.myxsap6o") for name in dropped])
    opened = catalog()
    assert len(opened.list_purgable_tables()) == len(dropped)
    assert opened.list_tables() == []
    assert moto.requests == {"LIST": 2 * math.ceil(3 * len(dropped) / 1000)}


def test_a_directory_never_adopted_costs_one_look_more_a_table(moto, prefix, catalog, names):
    """Deliver 4: "at most one existence check a table"."""
    few = names[:300]
    _fill(prefix, [_manifest(name) for name in few])
    _fill(prefix, [f"{few[0]}.lance/.lance-deregistered"])
    opened = catalog()
    assert not opened.backend.settings.adopted
    listed = opened.list_tables()
    # The one table that has a marker is then looked at closely: its files, its markers, its chain.
    assert moto.requests["HEAD"] == len(few)
    assert moto.requests["LIST"] <= 1 + 1
    assert moto.requests["GET"] <= 6
    assert listed == few[1:]


def test_adopting_needs_the_looks_once(moto, prefix, catalog, names):
    few = names[:300]
    _fill(prefix, [_manifest(name) for name in few])
    _fill(prefix, [f"{few[0]}.lance/.lance-deregistered"])
    catalog().backend.initialize(adopt=True)
    opened = catalog()
    assert opened.list_tables() == few[1:]
    assert moto.requests == {"LIST": 1}


def test_opening_and_listing_a_small_catalog_is_a_handful_of_requests(moto, prefix, catalog):
    catalog().backend.initialize()
    _fill(prefix, [_manifest("t")])
    moto.requests.clear()
    opened = mooring.connect(moto.uri(prefix), storage_options=moto.options)
    assert opened.list_tables() == ["t"]
    assert moto.requests.total() <= 3


def test_describing_a_table_does_not_depend_on_how_many_there_are(moto, prefix, catalog, names):
    catalog().backend.initialize()
    _fill(prefix, [_manifest(name) for name in names])
    opened = catalog()
    opened.describe_table(names[0])
    assert moto.requests.total() <= 5


def test_many_objects_are_deleted_a_thousand_at_a_time(moto, prefix, names):
    _fill(prefix, [f"d/{name}" for name in names] + ["e/kept"])
    store = open_store(moto.uri(prefix), moto.options)
    moto.requests.clear()
    assert store.delete_prefix("d") == TABLES
    assert moto.requests == {"LIST": PAGES, "POST": PAGES}
    assert [meta.path for meta in store.list_prefix("")] == ["e/kept"]
