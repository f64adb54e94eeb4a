"""Mooring's Iceberg catalog on Mooring's own server, over HTTP: every operation, and writers.

Spec: iceberg-namespace, whole.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import lance
import lance_namespace
import pyarrow as pa
import pytest

import mooring
from mooring.errors import (
    ProtectedError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedError,
)
from mooring.survey import survey
from tests.own_irc import run_own

_ELSEWHERE = "is no location here"
_ALWAYS = {
    "batch_commit_tables, several together": "an Iceberg catalog commits new versions",
    "create_materialized_view": "no materialized views",
    "drop_namespace, behavior cascade": "decides about one table at a time",
    "refresh_materialized_view": "no materialized views",
    "register_table": _ELSEWHERE,
    "register_table, mode overwrite": _ELSEWHERE,
    "register_table, properties": _ELSEWHERE,
}
# What the catalog behind the server lacks, in its own words.
LACKS = {
    "metastore": {"batch_delete_table_versions": "clean up versions with Lance"},
    "compat": {"batch_create_table_versions, several together": "are decided by its storage"},
}
SCHEMES = {"metastore": "metastore+", "compat": ""}


@pytest.fixture(params=list(SCHEMES))
def kind(request):
    return request.param


@pytest.fixture
def served(kind, tmp_path):
    with run_own(mooring.connect(f"{SCHEMES[kind]}{tmp_path / 'lake'}")) as uri:
        yield uri


def rows(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def test_every_operation(kind, served, tmp_path):
    catalog = lance_namespace.connect("mooring.IcebergNamespace", {"uri": served})
    found = {one.question: one for one in survey(catalog, str(tmp_path), ["main"])}
    lacking = {name: one.reason for name, one in found.items() if one.answer != "yes"}
    expected = {**_ALWAYS, **LACKS[kind]}
    assert set(lacking) == set(expected), lacking
    for question, words in expected.items():
        assert words in lacking[question]


def test_versions_are_decided_where_the_catalog_says(kind, served):
    catalog = mooring.connect(f"iceberg+{served}")
    catalog.create_namespace("a")
    table = catalog.create_table("a$t", rows(1))
    assert table.info.keeps_versions == (kind == "metastore")
    client = lance_namespace.connect("mooring.IcebergNamespace", {"uri": served})

    def append(number: int) -> None:
        lance.write_dataset(
            rows(number), namespace_client=client, table_id=["a", "t"], mode="append"
        )

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(append, range(2, 14)))
    found = catalog.table("a$t")
    assert sorted(found.to_arrow()["n"].to_pylist()) == list(range(1, 14))
    assert found.version == 13
    assert [one.version for one in found.versions()] == list(range(13, 0, -1))


def test_drop_and_undrop_through_both(kind, served, tmp_path):
    behind = mooring.connect(f"{SCHEMES[kind]}{tmp_path / 'lake'}")
    catalog = mooring.connect(f"iceberg+{served}")
    catalog.create_namespace("a")
    catalog.create_table("a$t", rows(1, 2))
    catalog.drop_table("a$t")
    with pytest.raises(TableNotFoundError, match="dropped"):
        catalog.table("a$t")
    with pytest.raises(TableNotFoundError):
        behind.table("a$t")
    catalog.create_table("a$t", rows(3))
    with pytest.raises(TableAlreadyExistsError):
        catalog.undrop_table("a$t")
    catalog.undrop_table("a$t", "a$old")
    assert behind.table("a$old").to_arrow()["n"].to_pylist() == [1, 2]
    catalog.drop_table("a$old", ttl="0s")
    assert [str(one) for one in catalog.purge_tables().purged] == ["a$old"]
    assert behind.list_tables("a") == ["t"]


def test_a_protected_namespace_protects_its_tables(served):
    catalog = mooring.connect(f"iceberg+{served}")
    catalog.create_namespace("a")
    catalog.create_table("a$t", rows(1))
    catalog.update_namespace("a", {"mooring.protected": "true"})
    with pytest.raises(ProtectedError, match="namespace 'a'"):
        catalog.drop_table("a$t")
    catalog.update_namespace("a", {"mooring.protected": None, "mooring.retention": "2h"})
    catalog.drop_table("a$t")
    (found,) = catalog.list_purgable_tables()
    assert found.expires_at_ms - found.deleted_at_ms == 2 * 3_600_000


def test_what_is_deregistered_leaves_no_entry(served, tmp_path, kind):
    behind = mooring.connect(f"{SCHEMES[kind]}{tmp_path / 'lake'}")
    catalog = mooring.connect(f"iceberg+{served}")
    catalog.create_namespace("a")
    table = catalog.create_table("a$t", rows(1))
    catalog.deregister_table("a$t")
    assert lance.dataset(table.location).count_rows() == 1
    assert behind.list_all_tables() == []


def test_a_choice_that_the_server_does_not_take_is_refused(kind, served):
    catalog = mooring.connect(f"iceberg+{served}?managed_by=impl")
    catalog.create_namespace("a")
    if kind == "metastore":
        assert catalog.create_table("a$t", rows(1)).info.keeps_versions
        return
    with pytest.raises(UnsupportedError, match="to its storage"):
        catalog.create_table("a$t", rows(1))
    assert catalog.list_tables("a") == []


def test_what_could_not_be_registered_keeps_its_bytes(tmp_path):
    behind = mooring.connect(tmp_path / "lake")
    behind.create_table("t", rows(1))
    location = behind.table("t").location
    behind.deregister_table("t")
    with run_own(behind) as uri:
        catalog = mooring.connect(f"iceberg+{uri}?managed_by=impl")
        catalog.create_namespace("a")
        with pytest.raises(UnsupportedError, match="to its storage"):
            catalog.register_table("a$t", location)
        assert catalog.list_tables("a") == []
    # Nothing is in the trash either, where its files would go with it.
    assert behind.list_purgable_tables() == []
    assert lance.dataset(location).count_rows() == 1
