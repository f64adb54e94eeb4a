"""Sources and catalogs in object storage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import mooring
from mooring.errors import ConflictError, InvalidInputError, NotFoundError
from mooring.ingest import ingest
from mooring.store import open_store
from tests.ingest.files import ROWS, rejects_in, write_source

if TYPE_CHECKING:
    from tests.servers import S3Server

pytestmark = [pytest.mark.interop, pytest.mark.s3]


def files(server: S3Server, uri: str) -> set[str]:
    return {meta.path for meta in open_store(uri, server.options).list_prefix("")}


@pytest.mark.parametrize("kind", ["v1", "v2", "metastore"])
def test_all_modes_work_in_object_storage(seaweedfs, prefix, tmp_path, kind):
    uri = seaweedfs.uri(prefix)
    scheme = "metastore+" if kind == "metastore" else ""
    flags = {"manifest_enabled": False} if kind == "v1" else {}
    catalog = mooring.connect(f"{scheme}{uri}/lake", storage_options=seaweedfs.options, **flags)
    name = "t" if kind == "v1" else "a$t"
    if kind != "v1":
        catalog.create_namespace("a")
    store = open_store(uri, seaweedfs.options)
    for number in range(3):
        rows = ROWS.set_column(0, "id", pa.array(range(3 * number, 3 * number + 3)))
        path = write_source(tmp_path / f"{number}.parquet", rows)
        store.put(f"in/part={number}/rows.parquet", Path(path).read_bytes())
    store.put("in/_SUCCESS", b"")
    store.put("bad.csv", b"id,city\n1,x\nno,y\n50,z\n")
    assert ingest(catalog, f"{uri}/in", name).rows_written == 9
    assert ingest(catalog, f"{uri}/in/*/rows.parquet", name, mode="overwrite").files == 3
    assert set(catalog.table(name).to_arrow()["part"].to_pylist()) == {0, 1, 2}
    no = tmp_path / "no"
    report = ingest(catalog, f"{uri}/bad.csv", name, mode="upsert", key="id", rejects=str(no))
    assert (report.rows_updated, report.rows_inserted, report.rows_rejected) == (1, 1, 1)
    assert rejects_in(no) == [(2, "'no' in column 'id' does not fit int64")]
    before = files(seaweedfs, f"{uri}/lake")
    with pytest.raises(ConflictError, match="id=1"):
        ingest(catalog, f"{uri}/bad.csv", name, rejects=str(no))
    with pytest.raises(InvalidInputError, match="'no' in column 'id'"):
        ingest(catalog, f"{uri}/bad.csv", name, mode="delete", key="id")
    with pytest.raises(NotFoundError):
        ingest(catalog, f"{uri}/absent.csv", name)
    assert files(seaweedfs, f"{uri}/lake") == before
    report = ingest(catalog, f"{uri}/bad.csv", name, mode="delete", key="id", rejects=str(no))
    assert report.rows_deleted == 2
    ids = sorted(catalog.table(name).to_arrow()["id"].to_pylist())
    assert ids == [0, 2, 3, 4, 5, 6, 7, 8]
