"""Lance REST servers that nobody here wrote: pylance's own adapter, and SeaweedFS."""

from __future__ import annotations

import lance.namespace
import pyarrow as pa
import pytest

import mooring
from mooring.errors import (
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedError,
)
from mooring.identifiers import ObjectId
from tests.servers import ACCESS_KEY, SECRET_KEY, _answers, _free_ports, _wait_for, run_seaweedfs

ROWS = pa.table({"n": [1, 2, 3]})


@pytest.fixture(params=["storage", "managed"])
def adapter(request, tmp_path):
    """A catalog behind pylance's adapter, which decides about versions or leaves them to files."""
    managed = {"table_version_tracking_enabled": "true"} if request.param == "managed" else {}
    settings = {"root": str(tmp_path), **managed}
    with lance.namespace.RestAdapter("dir", settings, port=0) as found:
        yield mooring.connect(f"lance+http://127.0.0.1:{found.port}")


@pytest.mark.peer("pylance-adapter", we="list describe read write namespaces drop", on="Lance REST")
def test_pylances_adapter_is_a_catalog(adapter):
    adapter.create_namespace("ns", {"owner": "ada"})
    with pytest.raises(NamespaceAlreadyExistsError):
        adapter.create_namespace("ns")
    assert adapter.create_namespace("ns", mode="exist_ok") == {"owner": "ada"}
    assert adapter.list_namespaces() == ["ns"]
    with pytest.raises(NamespaceNotFoundError):
        adapter.describe_namespace("nothing")
    table = adapter.create_table("ns$t", ROWS)
    with pytest.raises(TableAlreadyExistsError):
        adapter.create_table("ns$t", ROWS)
    assert table.insert(pa.table({"n": [4]})).version == 2
    assert sorted(table.to_arrow()["n"].to_pylist()) == [1, 2, 3, 4]
    assert [one.version for one in table.versions()] == [2, 1]
    assert adapter.list_tables("ns") == ["t"]
    assert adapter.list_all_tables() == [ObjectId(("ns", "t"))]
    adapter.declare_table("ns$soon")
    adapter.table("ns$soon").insert(ROWS)
    assert adapter.table("ns$soon").count() == 3
    assert [info.id.name for info in adapter.backend.describe_tables()] == ["soon", "t"]
    adapter.drop_table("ns$t")
    assert adapter.table_status("ns$t") == mooring.NotFound()
    with pytest.raises(TableNotFoundError):
        adapter.table("ns$t")


@pytest.mark.peer("pylance-adapter", we="harmless", on="Lance REST")
def test_what_pylances_adapter_does_not_have_is_told(adapter):
    adapter.create_namespace("ns")
    adapter.create_table("ns$t", ROWS)
    with pytest.raises(UnsupportedError, match="rename_table"):
        adapter.rename_table("ns$t", "ns$u")
    with pytest.raises(UnsupportedError, match="mooring serve"):
        adapter.drop_table("ns$t", ttl="7d")
    with pytest.raises(UnsupportedError, match="mooring serve"):
        adapter.list_purgable_tables()
    assert [(str(one), told.state) for one, told in adapter.backend.states()] == [("ns$t", "live")]


@pytest.mark.peer("pylance-adapter", we="commit", on="Lance REST")
def test_two_writers_of_pylances_adapter_lose_no_row(adapter):
    adapter.create_namespace("ns")
    adapter.create_table("ns$t", ROWS)
    first, second = adapter.table("ns$t"), mooring.connect(adapter.uri).table("ns$t")
    assert (first.count(), second.count()) == (3, 3)
    first.insert(pa.table({"n": [4]}))
    second.insert(pa.table({"n": [5]}))
    assert first.count() == 5


@pytest.mark.interop
@pytest.mark.s3
@pytest.mark.peer("seaweedfs-lance", we="list describe namespaces drop", on="Lance REST")
def test_seaweedfs_is_a_catalog(tmp_path):
    """Its identifiers are bucket, namespace, table; it has no rows and no versions of its own."""
    (port,) = _free_ports(1)
    address = f"http://127.0.0.1:{port}"
    with run_seaweedfs(tmp_path, lance_port=port) as s3:
        _wait_for(lambda: _answers(f"{address}/"), "SeaweedFS", tmp_path / "weed.log")
        options = {
            **s3.options,
            "lance.credential": f"{ACCESS_KEY}:{SECRET_KEY}",
            "lance.oauth2_server_uri": "oauth/token",
        }
        catalog = mooring.connect(f"lance+{address}", storage_options=options)
        catalog.create_namespace("vec")
        catalog.create_namespace("vec$ns")
        with pytest.raises(NamespaceAlreadyExistsError):
            catalog.create_namespace("vec$ns")
        assert catalog.list_namespaces() == ["vec"]
        assert catalog.list_namespaces("vec") == ["ns"]
        info = catalog.declare_table("vec$ns$t")
        assert info.location.startswith("s3://")
        assert catalog.list_tables("vec$ns") == ["t"]
        assert catalog.list_all_tables() == [ObjectId(("vec", "ns", "t"))]
        assert catalog.table_exists("vec$ns$t")
        with pytest.raises(TableNotFoundError):
            catalog.table("vec$ns$nothing")
        with pytest.raises(UnsupportedError, match="mooring serve"):
            catalog.undrop_table("vec$ns$t")
        catalog.deregister_table("vec$ns$t")
        assert not catalog.table_exists("vec$ns$t")
