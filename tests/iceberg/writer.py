"""A process that appends rows to an implementation-managed table, as any program with pylance."""

from __future__ import annotations

import json
import os
import sys

os.environ.setdefault("LANCE_LOG", "error")

import lance
import lance_namespace
import pyarrow as pa
from lance.commit import CommitConflictError

_TRIES = 200
# How Lance words that it lost, and that it lost for thirty seconds.
_LOST = ("conflict", "too many concurrent writers")


def main() -> None:
    """Append so many rows, one a version; print how many were acknowledged."""
    properties, table, writer, count = json.loads(sys.argv[1])
    catalog = lance_namespace.connect("mooring.IcebergNamespace", properties)
    acknowledged = sum(append(catalog, table, writer, number) for number in range(count))
    sys.stdout.write(f"{acknowledged}\n")


def append(catalog: lance_namespace.LanceNamespace, table: list[str], writer: int, n: int) -> bool:
    """Append a row; Lance gives up where others were first too often, which is no failure."""
    row = pa.table({"writer": [writer], "n": [n]})
    for _ in range(_TRIES):
        try:
            lance.write_dataset(row, namespace_client=catalog, table_id=table, mode="append")
        except CommitConflictError:
            continue
        except OSError as exc:
            if not any(words in str(exc).lower() for words in _LOST):
                raise
            continue
        return True
    return False


if __name__ == "__main__":
    main()
