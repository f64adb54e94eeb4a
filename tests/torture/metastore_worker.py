"""One process that counts in a property, or appends deltas, through transactions of a metastore."""

from __future__ import annotations

import json
import sys

from mooring.metastore.locator import Locator
from mooring.metastore.metastore import Metastore
from mooring.metastore.model import Delta, Namespace, Partition
from mooring.store import open_store

COUNTER = Locator.of("counter")
PARTITION = Locator.of("n", "t", "1", ("s", "deltacat"), "p")


def increment(txn) -> int:
    """Count one."""
    count = int(txn.get(COUNTER).value.properties["count"]) + 1
    txn.update(COUNTER, Namespace(properties={"count": str(count)}))
    return count


def append(txn) -> int:
    """Append a delta at the next position."""
    partition = txn.get(PARTITION).value
    position = (partition.stream_position or 0) + 1
    txn.create(PARTITION.child(str(position)), Delta(stream_position=position))
    txn.update(PARTITION, Partition(partition_id="p", stream_position=position))
    return position


WORK = {"increment": increment, "append": append}


def main(uri: str, options: dict[str, str], author: str, verb: str, count: int) -> None:
    """Do the work so many times, and print what each came to."""
    meta = Metastore(open_store(uri, options), author=author)
    newest = 0
    for _ in range(count):
        done = meta.run(WORK[verb])
        assert done > newest, "the value went backwards"
        newest = done
        print(done, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
