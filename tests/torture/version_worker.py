"""One process that appends rows through pylance, with versions managed by the catalog."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import pyarrow as pa

import mooring

from .killing import die

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLE = "t"
_RETRIES = 50
# What Lance says of a commit that lost: nothing of it is in the table, and the caller may retry.
_LOST = ("conflict", "Too many concurrent writers")


class DyingNamespace(mooring.DirectoryNamespace):
    """Ends its process when Lance has staged a manifest and asks for it to become a version."""

    def create_table_version(self, request):
        """Die instead."""
        die()


def append(namespace, token: int) -> str:
    """Append one row, again after a conflict; tell how it ended."""
    for _ in range(_RETRIES):
        try:
            lance.write_dataset(
                pa.table({"token": [token]}),
                namespace_client=namespace,
                table_id=[TABLE],
                mode="append",
            )
        except (OSError, RuntimeError) as exc:
            text = str(exc)
            if "is unknown" in text or not any(word in text for word in _LOST):
                return f"failed: {text[:300]}"
        else:
            return "ok"
    return "lost every time"


def write(properties: Mapping[str, str], seed: int, count: int, log: str) -> None:
    """Append rows and write down what was acknowledged."""
    namespace = mooring.DirectoryNamespace(**properties)
    with Path(log).open("w", encoding="utf-8") as file:
        for number in range(count):
            token = seed * 1000 + number
            file.write(json.dumps([token, append(namespace, token)]) + "\n")
            file.flush()


def die_between(properties: Mapping[str, str], token: int) -> None:
    """Die between the write of a manifest and its registration."""
    append(DyingNamespace(**properties), token)


if __name__ == "__main__":
    write(**json.loads(sys.argv[1]))
