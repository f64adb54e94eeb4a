"""What the guide to change tables on Spark shows is what happens."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.docs.documents import DOCS, blocks_of, run

GUIDE = DOCS / "how-to" / "changes-on-spark.md"


@pytest.mark.interop
def test_the_guide_comes_true(spark, tmp_path):
    names = {"__name__": "document", "spark": spark}
    blocks = blocks_of(GUIDE, "py")
    assert len(blocks) == 7
    for block in blocks:
        run(replace(block, text=block.text.replace("/srv", str(tmp_path))), GUIDE, names)
    assert names["query"].exception() is None
