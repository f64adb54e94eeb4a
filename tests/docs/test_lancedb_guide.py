"""What the guide for users of lancedb shows is what happens: here, and with lancedb itself."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tests.docs.documents import DOCS, blocks_of, run
from tests.docs.sessions import follow_session
from tests.interop.lance_peer import NotBuiltError, start_lancedb

GUIDE = DOCS / "how-to" / "move-from-lancedb.md"


def follow(shell, lancedb):
    """Go through the guide; blocks of lancedb's are handed over."""
    names = {"__name__": "document"}
    for block in blocks_of(GUIDE, "py", "python", "console"):
        if block.language == "console":
            follow_session(block, shell)
        elif block.language == "python":
            run(block, GUIDE, names)
        else:
            lancedb(block.text)


def test_the_guide_comes_true_on_a_database_as_lancedb_leaves_it(shell):
    vectors = pa.schema([("id", pa.int64()), ("vector", pa.list_(pa.float32(), 2))])
    cats = [{"id": 1, "vector": [0.1, 0.2]}, {"id": 2, "vector": [0.9, 0.8]}]
    for name, rows in {"cats": cats, "dogs": cats[:1]}.items():
        lance.write_dataset(pa.Table.from_pylist(rows, vectors), f"photos/{name}.lance")
    follow(shell, lambda code: None)


@pytest.mark.interop
def test_the_guide_comes_true_beside_lancedb(shell):
    try:
        lancedb = start_lancedb(Path.cwd())
    except NotBuiltError as error:
        pytest.skip(f"lancedb did not run: {error}")
    follow(shell, lambda code: lancedb("run", code=code))
    lancedb.close()
