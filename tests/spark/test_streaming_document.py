"""What the guide to streams shows is what happens."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.docs.documents import DOCS, blocks_of, run

GUIDE = DOCS / "how-to" / "stream.md"


@pytest.mark.interop
def test_the_guide_comes_true(spark, tmp_path):
    names = {"__name__": "document", "spark": spark}
    for block in blocks_of(GUIDE, "py"):
        run(replace(block, text=block.text.replace("/srv", str(tmp_path))), GUIDE, names)
    assert names["query"].exception() is None
