"""What the guide to the data source shows is what happens."""

from __future__ import annotations

import pytest

from tests.docs.documents import DOCS, blocks_of, run

GUIDE = DOCS / "how-to" / "spark.md"


@pytest.mark.interop
def test_the_guide_comes_true(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "guide"}
    blocks = blocks_of(GUIDE, "py")
    assert len(blocks) == 5
    for block in blocks:
        run(block, GUIDE, names)
