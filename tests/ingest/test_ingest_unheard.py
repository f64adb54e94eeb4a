"""A commit that landed although its writer heard of a failure keeps all of its files."""

from __future__ import annotations

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mooring
from mooring.errors import UnknownOutcomeError
from mooring.ingest import ingest


@pytest.mark.parametrize(("mode", "left"), [("upsert", 4), ("delete", 1)])
@pytest.mark.parametrize("uri", ["lake", "metastore+lake"])
def test_rows_stay_readable(uri, mode, left, tmp_path, monkeypatch):
    scheme = uri.removesuffix("lake")
    catalog = mooring.connect(f"{scheme}{tmp_path / 'lake'}")
    catalog.create_namespace("ns")
    catalog.create_table("ns$t", pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]}))
    pq.write_table(pa.table({"id": [2, 3, 4], "v": ["x", "y", "z"]}), tmp_path / "new.parquet")
    real = lance.LanceDataset.commit

    def unheard(*args, **how):
        real(*args, **how)
        msg = "the connection broke"
        raise OSError(msg)

    monkeypatch.setattr(lance.LanceDataset, "commit", unheard)
    with pytest.raises(UnknownOutcomeError, match="the connection broke"):
        ingest(catalog, str(tmp_path / "new.parquet"), "ns$t", mode=mode, key="id")
    monkeypatch.undo()
    table = catalog.table("ns$t")
    assert table.to_arrow().num_rows == left
    table.to_lance().validate()
