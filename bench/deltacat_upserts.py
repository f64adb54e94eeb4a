"""The other side of `bench.changes`: deltacat merges small batches, in an environment of its own.

It prints one line of JSON: the seconds that each merge took, after Ray was started and the table
made, and the version of the library. Nothing here imports Mooring.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from importlib.metadata import version

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
logging.disable(logging.CRITICAL)

import deltacat as dc  # noqa: E402  # after its logging is off
import pyarrow as pa  # noqa: E402
from deltacat.storage.model.schema import Field, Schema  # noqa: E402
from deltacat.types.tables import TableWriteMode  # noqa: E402


def main(root: str, count: int, rows: int) -> None:
    """Merge batches one after the other, and look at what came of it."""
    dc.init_local(
        root,
        ray_init_args={
            "num_cpus": 2,
            "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
            "log_to_driver": False,
        },
    )
    schema = Schema.of(
        [
            Field.of(pa.field("id", pa.int64()), is_merge_key=True),
            Field.of(pa.field("value", pa.int64())),
            Field.of(pa.field("text", pa.string())),
        ]
    )
    dc.write(_batch(0, rows), "small", schema=schema, mode=TableWriteMode.CREATE)
    seconds = []
    for number in range(count):
        batch = _batch(number, rows)
        started = time.perf_counter()
        dc.write(batch, "small", mode=TableWriteMode.MERGE)
        seconds.append(time.perf_counter() - started)
    expected = {id_: number for number in range(count) for id_ in _ids(number, rows)}
    found = dc.read("small")
    told = found.to_pandas() if hasattr(found, "to_pandas") else found
    same = dict(zip(told["id"], told["value"], strict=False)) == expected
    answer = {"seconds": seconds, "version": version("deltacat"), "same": same}
    print(json.dumps(answer), file=answers, flush=True)


def _ids(number: int, rows: int) -> list[int]:
    return [(number * 7 + step * 3) % 500 for step in range(rows)]


def _batch(number: int, rows: int) -> pa.Table:
    ids = _ids(number, rows)
    text = [f"row {one} of batch {number}" for one in ids]
    return pa.table({"id": ids, "value": [number] * len(ids), "text": text})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
