"""lance-namespace-impls on the server's Iceberg REST: it finds Lance tables there.

Spec: iceberg-namespace, "Table Identification".
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.interop.lance_peer import NotBuiltError, PeerError, start_impls
from tests.interop.served import read_files, run_served

pytestmark = pytest.mark.interop

# What it puts before every name, and our server answers to whatever it is.
WAREHOUSE = "lake"


@pytest.fixture(params=["nested", "metastore"])
def served(request, tmp_path):
    with run_served(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def impls(served, tmp_path):
    try:
        client = start_impls(tmp_path, uri=served.uri, warehouse=WAREHOUSE)
    except NotBuiltError as exc:
        pytest.skip(f"not run: {exc}")
    yield client
    client.close()


def ids(*values):
    return pa.table({"id": pa.array(values, pa.int64())})


@pytest.mark.peer("impls", they="list describe read", on="Iceberg REST")
def test_tables_of_ours_are_listed_and_read(served, impls):
    served.catalog.create_table("sales$ours", ids(1, 2))
    assert "ours" in impls("tables", namespace=["sales"])
    assert impls("ids", namespace=["sales"], table="ours") == [1, 2]
    served.catalog.drop_table("sales$ours")
    assert "ours" not in impls("tables", namespace=["sales"])


@pytest.mark.peer("impls", they="drop", on="Iceberg REST")
def test_what_it_deregisters_is_ours_no_more(served, impls):
    served.catalog.create_table("sales$ours", ids(1))
    impls("deregister", namespace=["sales"], table="ours")
    assert not served.catalog.table_exists("sales$ours")


@pytest.mark.peer("impls", they="harmless", on="Iceberg REST")
def test_a_table_that_it_declares_is_refused(served, impls):
    """It always says where a table lies, and the catalog decides about that."""
    location = str(served.root / "theirs.lance")
    before = read_files(served.root)
    with pytest.raises(PeerError, match="location"):
        impls("declare", namespace=["sales"], table="theirs", location=location)
    assert read_files(served.root) == before


@pytest.mark.peer("impls", they="namespaces", on="Iceberg REST")
def test_namespaces_are_made_and_dropped(served, impls):
    impls("create_namespace", namespace=["made"])
    assert "made" in served.catalog.list_namespaces()
    assert f"{WAREHOUSE}.made" in impls("namespaces")
    served.catalog.create_table("made$t", ids(1))
    with pytest.raises(PeerError, match=r"(?i)not empty"):
        impls("drop_namespace", namespace=["made"])
    served.catalog.drop_table("made$t")
    served.catalog.purge_table("made$t")
    impls("drop_namespace", namespace=["made"])
    assert "made" not in served.catalog.list_namespaces()
