"""What the guide to the data source shows is what happens."""

from __future__ import annotations

from dataclasses import replace

import pytest

import mooring
from tests.docs.documents import DOCS, ROOT, blocks_of, run

GUIDE = DOCS / "how-to" / "spark.md"
README = ROOT / "README.md"


@pytest.mark.interop
def test_the_guide_comes_true(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "guide"}
    blocks = blocks_of(GUIDE, "py")
    assert len(blocks) == 5
    for block in blocks:
        run(block, GUIDE, names)


@pytest.mark.interop
def test_the_readme_comes_true(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lake = mooring.connect("lake")
    orders = lake.create_table("orders", [{"customer": "ada", "total": 20}])
    for total in range(100, 111):
        orders.insert([{"customer": "bo", "total": total}])
    (block,) = (one for one in blocks_of(README, "py") if "mooring.spark" in one.text)
    # Java has a working directory of its own.
    here = block.text.replace('"checkpoints/copy"', repr(str(tmp_path / "checkpoint")))
    run(replace(block, text=here), README, {"__name__": "readme", "spark": spark})
    for query in spark.streams.active:
        query.processAllAvailable()
        query.stop()
    assert lake.table("large_orders").count() == 10
    assert lake.table("copy").count() == 12
