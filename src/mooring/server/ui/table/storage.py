"""What a table takes in storage, by kind of file, now and since it was made."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec

from mooring.tables.versions import BRANCHES_DIR, VERSIONS_DIR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mooring.store import ObjectMeta
    from mooring.upkeep.table_files import TableFiles

__all__ = ["KINDS", "Growth", "StoredKind", "growth_of", "kind_of_file", "stored_kinds"]

KINDS = ("data", "deletions", "indexes", "manifests", "transactions", "other")
_LABELS = {
    "data": "Data files",
    "deletions": "Deletion files",
    "indexes": "Indexes",
    "manifests": "Manifests",
    "transactions": "Transactions",
    "other": "Other",
}
_DIRECTORIES = {
    "data": "data",
    "_deletions": "deletions",
    "_indices": "indexes",
    VERSIONS_DIR: "manifests",
    "_manifests": "manifests",
    "_transactions": "transactions",
}
_MOST_STEPS = 120


class StoredKind(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a kind.

    Attributes:
        kind: Its name.
        label: The same for people.
        files: How many there are.
        size_bytes: What they take.
        part: Of all bytes, from 0 to 1.
    """

    kind: str
    label: str
    files: int
    size_bytes: int
    part: float


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """What the files that are there took, at times.

    Attributes:
        at_ms: The times.
        kinds: The kinds that there are, the lowest in a drawing first.
        size_bytes: For each kind, what its files took at each time.
    """

    at_ms: list[int]
    kinds: list[str]
    size_bytes: list[list[int]]


def kind_of_file(path: str) -> str:
    """Tell the kind of a file by its path below the table's directory."""
    parts = path.split("/")
    if parts[0] == BRANCHES_DIR:
        # The name of a branch may have slashes: what counts is the first directory of Lance's.
        found = (_DIRECTORIES[part] for part in parts[2:-1] if part in _DIRECTORIES)
        return next(found, "other")
    return _DIRECTORIES.get(parts[0], "other") if len(parts) > 1 else "other"


def stored_kinds(files: TableFiles) -> list[StoredKind]:
    """Return the kinds of files that there are, with what they take."""
    total = files.bytes or 1
    found = _by_kind(files)
    return [
        StoredKind(
            kind=kind,
            label=_LABELS[kind],
            files=len(metas),
            size_bytes=(size := sum(meta.size_bytes for meta in metas)),
            part=size / total,
        )
        for kind in KINDS
        if (metas := found.get(kind))
    ]


def growth_of(files: TableFiles, now_ms: int) -> Growth:
    """Tell what the files that are there took, by when each was written.

    Files that were deleted since are not known any more: it is a growth of what is there now.
    """
    found = _by_kind(files)
    kinds = [kind for kind in KINDS if kind in found]
    times = _times((meta.modified_ms for meta in files.metas.values()), now_ms)
    return Growth(
        at_ms=times, kinds=kinds, size_bytes=[_cumulated(found[kind], times) for kind in kinds]
    )


def _by_kind(files: TableFiles) -> dict[str, list[ObjectMeta]]:
    found: dict[str, list[ObjectMeta]] = defaultdict(list)
    for path, meta in files.metas.items():
        found[kind_of_file(path)].append(meta)
    return dict(found)


def _times(written: Iterable[int], now_ms: int) -> list[int]:
    """Choose times: each at which something was written, or as many as can be drawn."""
    known = sorted(set(written))
    if not known:
        return []
    if len(known) > _MOST_STEPS:
        first, span = known[0], max(known[-1] - known[0], 1)
        known = sorted({first + span * step // _MOST_STEPS for step in range(_MOST_STEPS + 1)})
    return [*known, now_ms] if now_ms > known[-1] else known


def _cumulated(metas: Sequence[ObjectMeta], times: Sequence[int]) -> list[int]:
    ordered = sorted((meta.modified_ms, meta.size_bytes) for meta in metas)
    sums = [0, *accumulate(size for _, size in ordered)]
    return [sums[bisect_right(ordered, at, key=lambda one: one[0])] for at in times]
