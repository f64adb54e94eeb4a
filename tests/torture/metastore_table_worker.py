"""One process that writes Lance tables of a metastore through pylance: appends, moves, or looks.

A mover takes a row out of one table and puts it into another: Lance stages both manifests, and the
catalog makes both versions in one transaction.
"""

from __future__ import annotations

import json
import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import lance_namespace as spec
import pyarrow as pa

import mooring
from mooring.namespace.lance.requests import field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TABLE, LEFT, RIGHT = ["n", "t"], ["n", "left"], ["n", "right"]
_RETRIES = 200
# What Lance says of a commit that lost: nothing of it is in the table, and the caller may retry.
_LOST = ("conflict", "Too many concurrent writers")
_BETWEEN_LOOKS_S = 0.01


class StagingNamespace(mooring.MetastoreNamespace):
    """Keeps what Lance asks to make a version, for a batch."""

    def __init__(self, **properties: str) -> None:
        super().__init__(**properties)
        self.staged: list[spec.CreateTableVersionRequest] = []

    def create_table_version(self, request) -> None:
        """Note it, and fail: Lance leaves the manifest where nobody told it what was decided."""
        self.staged.append(
            spec.CreateTableVersionRequest(
                id=list(field(request, "id")),
                version=int(field(request, "version")),
                manifest_path=field(request, "manifest_path"),
            )
        )
        raise RuntimeError(self)

    def stage(self, write: Callable[[], object]) -> None:
        """Write, up to the commit."""
        known = len(self.staged)
        try:
            write()
        except (OSError, RuntimeError):
            if len(self.staged) == known:
                raise
            # Where somebody else was first, Lance has tried again on top of that.
            del self.staged[known:-1]

    def take(self) -> spec.BatchCommitTablesRequest:
        """Return all that was staged, as one batch."""
        staged, self.staged = self.staged, []
        operations = [spec.CommitTableOperation(create_table_version=one) for one in staged]
        return spec.BatchCommitTablesRequest(operations=operations)


def put(namespace, table: list[str], row: int) -> None:
    """Append one row."""
    rows = pa.table({"row": [row]})
    lance.write_dataset(rows, namespace_client=namespace, table_id=table, mode="append")


def append(namespace, row: int) -> str:
    """Append one row, again after a conflict; tell how it ended."""
    for _ in range(_RETRIES):
        try:
            put(namespace, TABLE, row)
        except (OSError, RuntimeError) as exc:
            text = str(exc)
            if "is unknown" in text or not any(word in text for word in _LOST):
                return f"failed: {text[:300]}"
        else:
            return "ok"
    return "lost every time"


def stage_move(namespace: StagingNamespace, row: int, source: list[str], to: list[str]) -> None:
    """Stage the move of a row: what is left of one table, and the other with it."""
    opened = lance.dataset(namespace_client=namespace, table_id=source)
    namespace.stage(lambda: opened.delete(f"row = {row}"))
    namespace.stage(lambda: put(namespace, to, row))


def move(namespace: StagingNamespace, row: int, source: list[str], to: list[str]) -> str:
    """Move a row between two tables, again after a conflict; tell how it ended."""
    for _ in range(_RETRIES):
        stage_move(namespace, row, source, to)
        batch = namespace.take()
        assert len(batch.operations) == 2
        try:
            namespace.batch_commit_tables(batch)
        except spec.ConcurrentModificationError:
            continue
        return "ok"
    return "lost every time"


def rows_of(namespace, table: list[str], version: int | None = None) -> list[int]:
    """Read a table, at a version."""
    opened = lance.dataset(namespace_client=namespace, table_id=table, version=version)
    return sorted(opened.to_table()["row"].to_pylist())


def newest(namespace, table: list[str]) -> int:
    """Ask for the newest version of a table."""
    asked = spec.ListTableVersionsRequest(id=table, limit=1, descending=True)
    return namespace.list_table_versions(asked).versions[0].version


def look_at_both(namespace) -> tuple[list[int], list[int]]:
    """Read both tables as they were at one moment: one did not change while the other was asked."""
    while True:
        left, right = newest(namespace, LEFT), newest(namespace, RIGHT)
        if newest(namespace, LEFT) == left:
            return rows_of(namespace, LEFT, left), rows_of(namespace, RIGHT, right)


def watch(properties: Mapping[str, str], rows: list[int], log: str) -> None:
    """Look at both tables until the input ends: every row is in one of them, at every moment."""
    namespace = mooring.MetastoreNamespace(**properties)
    looks, states = 0, set()
    ended = False
    while not ended:
        ended = bool(select.select([sys.stdin], [], [], _BETWEEN_LOOKS_S)[0])
        left, right = look_at_both(namespace)
        assert sorted(left + right) == rows, f"{left} and {right}"
        states.add(tuple(left))
        looks += 1
    Path(log).write_text(json.dumps({"looks": looks, "states": len(states)}), encoding="utf-8")


def append_all(properties: Mapping[str, str], seed: int, count: int, log: str) -> None:
    """Append rows and write down what was acknowledged."""
    namespace = mooring.MetastoreNamespace(**properties)
    with Path(log).open("w", encoding="utf-8") as file:
        for number in range(count):
            row = seed * 1000 + number
            file.write(json.dumps([row, append(namespace, row)]) + "\n")
            file.flush()


def move_all(properties: Mapping[str, str], row: int, count: int, log: str) -> None:
    """Move a row to and fro, and write down what was acknowledged."""
    namespace = StagingNamespace(**properties)
    with Path(log).open("w", encoding="utf-8") as file:
        for number in range(count):
            source, to = (RIGHT, LEFT) if number % 2 else (LEFT, RIGHT)
            file.write(json.dumps([number, move(namespace, row, source, to)]) + "\n")
            file.flush()


if __name__ == "__main__":
    {"append": append_all, "move": move_all, "watch": watch}[sys.argv[1]](**json.loads(sys.argv[2]))
