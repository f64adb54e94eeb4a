"""How many requests a catalog sends, counted at the server.

Spec: soft-delete, "O(1) requests"; "Listing an adopted catalog".
"""

from __future__ import annotations

import math

import pytest
from moto.backends import get_backend

import mooring
from mooring.directory.layout import decision_path, hint_path
from mooring.store import open_store
from tests.lakes import COMPAT_MOTO, MOTO, Lake
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


@pytest.fixture(params=[True, False], ids=["compat", "v1"])
def manifest_enabled(request):
    return request.param


@pytest.fixture
def looks(manifest_enabled):
    """How many requests an operation sends to see whether there is a manifest."""
    return int(manifest_enabled)


@pytest.fixture
def lake(moto, prefix, manifest_enabled, clock):
    kind = COMPAT_MOTO if manifest_enabled else MOTO
    return Lake(kind, moto.uri(prefix), moto.options, clock)


@pytest.fixture
def catalog(moto, lake):
    """Open the bucket's place, as another process would, and count what is asked for."""

    def connect() -> mooring.Catalog:
        found = mooring.Catalog(lake.open(), lake.uri)
        moto.requests.clear()
        return found

    return connect


def test_an_adopted_catalog_of_2500_tables_is_listed_with_three_or_four_requests(
    moto, prefix, catalog, names, looks
):
    """Must show: "requests counted on S3 for 2,500 tables: 3 or 4"."""
    catalog().backend.initialize()
    _fill(prefix, [_manifest(name) for name in names])
    opened = catalog()
    assert opened.list_tables() == names
    assert moto.requests == {"LIST": PAGES + looks}


def test_the_trash_costs_no_request_for_each_table(moto, prefix, catalog, names, looks):
    """Decisions and hints lie in the same listing as the tables."""
    catalog().backend.initialize()
    dropped = names[:500]
    _fill(prefix, [_manifest(name) for name in dropped])
    _fill(prefix, [decision_path(name, 1) for name in dropped])
    _fill(prefix, [hint_path(name, 1, "deleted.myxsap6o") for name in dropped])
    opened = catalog()
    assert len(opened.list_purgable_tables()) == len(dropped)
    assert opened.list_tables() == []
    assert moto.requests == {"LIST": 2 * (math.ceil(3 * len(dropped) / 1000) + looks)}


def test_a_directory_never_adopted_costs_one_look_more_a_table(moto, prefix, catalog, names, looks):
    """Deliver 4: "at most one existence check a table"."""
    few = names[:300]
    _fill(prefix, [_manifest(name) for name in few])
    _fill(prefix, [f"{few[0]}.lance/.lance-deregistered"])
    opened = catalog()
    assert not opened.backend.settings.adopted
    listed = opened.list_tables()
    # The one table that has a marker is then looked at closely: its files, its markers, its chain.
    assert moto.requests["HEAD"] == len(few)
    assert moto.requests["LIST"] == 1 + 1 + looks
    assert moto.requests["GET"] <= 6
    assert listed == few[1:]


def test_adopting_needs_the_looks_once(moto, prefix, catalog, names, looks):
    few = names[:300]
    _fill(prefix, [_manifest(name) for name in few])
    _fill(prefix, [f"{few[0]}.lance/.lance-deregistered"])
    catalog().backend.initialize(adopt=True)
    opened = catalog()
    assert opened.list_tables() == few[1:]
    assert moto.requests == {"LIST": 1 + looks}


def test_opening_and_listing_a_small_catalog_is_a_handful_of_requests(
    moto, prefix, lake, catalog, looks
):
    catalog().backend.initialize()
    _fill(prefix, [_manifest("t")])
    moto.requests.clear()
    assert lake.names() == ["t"]
    # The settings, and the revision after them that is not there.
    assert moto.requests == {"GET": 2, "LIST": 1 + looks}


def test_describing_a_table_does_not_depend_on_how_many_there_are(
    moto, prefix, catalog, names, looks
):
    catalog().backend.initialize()
    _fill(prefix, [_manifest(name) for name in names])
    opened = catalog()
    opened.describe_table(names[0])
    # Its files, its chain and its versions.
    assert moto.requests == {"GET": 2, "LIST": 3 + looks}


def _requests_of_listing(moto, prefix, catalog, names) -> int:
    """Count what a listing asks for where the manifest knows none of the tables."""
    catalog().create_namespace("ns")
    _fill(prefix, [_manifest(name) for name in names])
    catalog().backend.initialize(adopt=True)
    opened = catalog()
    assert opened.list_tables() == names
    assert opened.list_namespaces() == ["ns"]
    moto.requests.clear()
    assert opened.list_tables() == names
    return moto.requests.total()


@pytest.mark.parametrize("manifest_enabled", [True], ids=["compat"], indirect=True)
def test_tables_that_the_manifest_does_not_know_cost_no_request_each(moto, prefix, catalog, names):
    """One listing answers one question, also half-way through a migration."""
    assert _requests_of_listing(moto, prefix, catalog, names) == PAGES + 1


@pytest.mark.parametrize("manifest_enabled", [True], ids=["compat"], indirect=True)
def test_a_warm_reader_asks_once_whether_anything_changed(moto, prefix, catalog):
    """Deliver 3: "checked against the latest version on every call (one cheap look ...)"."""
    opened = catalog()
    opened.create_namespace("ns")
    for name in ("a", "b"):
        opened.declare_table(["ns", name])
    opened.list_tables("ns")
    asks = {
        "list tables": lambda: opened.list_tables("ns"),
        "list namespaces": opened.list_namespaces,
        "describe a namespace": lambda: opened.describe_namespace("ns"),
        "describe": lambda: opened.backend.describe_table(opened.identifier("ns$a")),
        "exists": lambda: opened.table_exists("ns$b"),
    }
    for ask, act in asks.items():
        moto.requests.clear()
        act()
        assert moto.requests == {"LIST": 1}, ask


def test_many_objects_are_deleted_a_thousand_at_a_time(moto, prefix, names):
    _fill(prefix, [f"d/{name}" for name in names] + ["e/kept"])
    store = open_store(moto.uri(prefix), moto.options)
    moto.requests.clear()
    assert store.delete_prefix("d") == TABLES
    assert moto.requests == {"LIST": PAGES, "POST": PAGES}
    assert [meta.path for meta in store.list_prefix("")] == ["e/kept"]
