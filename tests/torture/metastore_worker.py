"""One process that counts in a property, appends deltas, or watches, on a metastore.

A worker prints one JSON value a line: the time by its own clock first, then what each transaction
came to, or what it saw.
"""

from __future__ import annotations

import json
import select
import sys
import time

from mooring.metastore.locator import Locator
from mooring.metastore.metastore import Metastore
from mooring.metastore.model import Delta, Partition, Table
from mooring.store import open_store

COUNTER = Locator.of("n", "counter")
PARTITION = Locator.of("n", "t", "1", ("s", "deltacat"), "p")
_BETWEEN_LOOKS_S = 0.01


def increment(txn) -> int:
    """Count one."""
    count = counted(txn) + 1
    txn.update(COUNTER, Table(properties={"count": str(count)}))
    return count


def counted(txn) -> int:
    """Return how far the counter is."""
    return int(txn.get(COUNTER).value.properties["count"])


def append(txn) -> int:
    """Append a delta at the next position."""
    position = appended(txn) + 1
    previous = position - 1 or None
    txn.create(
        PARTITION.child(str(position)), Delta(stream_position=position, previous_position=previous)
    )
    txn.update(PARTITION, Partition(partition_id="p", stream_position=position))
    return position


def appended(txn) -> int:
    """Return the newest position."""
    return txn.get(PARTITION).value.stream_position or 0


def appended_without_a_gap(txn) -> int:
    """Return the newest position, after a look at all before it."""
    newest = appended(txn)
    found = sorted(int(one.id) for one in txn.children(PARTITION))
    assert found == list(range(1, newest + 1)), f"positions {found} up to {newest}"
    return newest


WORK = {"increment": increment, "append": append}
LOOK = {"increment": counted, "append": appended_without_a_gap}


def work(meta: Metastore, verb: str, count: int) -> None:
    """Do it so many times, and print what each came to."""
    newest = 0
    for _ in range(count):
        done = meta.run(WORK[verb])
        assert done > newest, f"{done} came after {newest}"
        newest = done
        tell(done)


def watch(open_metastore, verb: str) -> None:
    """Look until the input ends, and print what is seen: it never goes backwards.

    Every other look is one of a reader that opens the metastore for it.
    """
    meta = open_metastore()
    newest = looks = 0
    ended = False
    while not ended:
        ended = bool(select.select([sys.stdin], [], [], _BETWEEN_LOOKS_S)[0])
        for reader in (meta, open_metastore()):
            seen = LOOK[verb](reader.begin())
            assert seen >= newest, f"{seen} was seen after {newest}"
            newest = seen
            looks += 1
    tell({"newest": newest, "looks": looks})


def tell(value: object) -> None:
    """Print a line."""
    print(json.dumps(value), flush=True)  # noqa: T201


def main(uri: str, options: dict[str, str], author: str, verb: str, count: int | None) -> None:
    """Work, or watch where there is nothing to count."""

    def open_metastore() -> Metastore:
        return Metastore(open_store(uri, options), author=author)

    tell(time.time())
    if count is None:
        watch(open_metastore, verb)
    else:
        work(open_metastore(), verb, count)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
