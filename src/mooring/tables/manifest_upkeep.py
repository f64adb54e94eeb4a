"""Upkeep of `__manifest`: old versions go within a bound, its indexes stay current.

Versions go in order, the oldest first and one at a time: a committer that finds the version
before its own still there knows that its own number was never set free.

Spec: directory-namespace, "Manifest Table Indexes".
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Literal

from lance import LanceOperation

from mooring.errors import MooringError
from mooring.tables.manifest import BY, SHARED, TIDIED
from mooring.tables.versions import list_versions

if TYPE_CHECKING:
    from collections.abc import Callable

    from lance import LanceDataset

    from mooring.store import Store

__all__ = ["is_due", "is_ours", "keep_indexed", "keep_up"]

_KEPT_VERSIONS = 6
_MOST_VERSIONS = 12
# Of several processes that find too many versions at once one is enough.
_TURN = 4
# Where numbers are kept, what is tidied away at a time are the files of so many versions.
_SHARED_TURN = 16
# It is noted how far that went once so many have come since the last note.
_NOTED = 4 * _SHARED_TURN
_INDEXES: dict[str, tuple[Literal["BTREE", "BITMAP", "LABEL_LIST"], str]] = {
    "object_id": ("BTREE", "object_id_btree"),
    "object_type": ("BITMAP", "object_type_bitmap"),
    "base_objects": ("LABEL_LIST", "base_objects_label_list"),
}
# Rows outside an index are scanned; so many are nothing to wait for.
_UNINDEXED_ROWS = 1024
_log = logging.getLogger(__name__)


def is_due(version: int, count: int, *, shared: bool) -> bool:
    """Tell whether whoever committed a version should tidy, given how many versions there are."""
    if shared:
        return version % _SHARED_TURN == 0
    return count > 2 * _MOST_VERSIONS or (count > _MOST_VERSIONS and version % _TURN == 0)


def keep_up(
    store: Store,
    path: str,
    open_newest: Callable[[], LanceDataset],
    note: Callable[[str, str], bool],
) -> None:
    """Tidy a manifest.

    Args:
        store: The catalog's store.
        path: Where the manifest is in it.
        open_newest: Opens the manifest at its newest version.
        note: Notes something in its own map; False where that could not be done just now.
    """
    try:
        keep_indexed(open_newest())
        # In this order: what is not shared now was not when any of these versions was made.
        known = list_versions(store, path)
        dataset = open_newest()
        if SHARED in dataset.metadata:
            _tidy_shared(store, path, dataset, note)
        elif all(is_ours(dataset, version) for version in known):
            for version in _remove_dead_files(store, path, dataset, known):
                store.delete([known[version]])
        else:
            note(SHARED, "true")
    except (OSError, RuntimeError, ValueError, MooringError, Warning) as exc:
        # What was committed stays so. Others change and tidy the same table meanwhile; the rest
        # is left to the next time.
        _log.debug("the manifest was not tidied: %s", exc)


def is_ours(dataset: LanceDataset, version: int) -> bool:
    """Whether this library committed a version; index upkeep counts, whoever did it."""
    transaction = dataset.read_transaction(version)
    if transaction is None:
        return False
    if isinstance(transaction.operation, LanceOperation.CreateIndex):
        return True
    return BY in (transaction.transaction_properties or {})


def _tidy_shared(
    store: Store, path: str, dataset: LanceDataset, note: Callable[[str, str], bool]
) -> None:
    """Delete what only old versions use, but not their own files: others may miss those.

    A program that has no guard against it, as pylance has none, could take a number that was
    set free for a new one, or believe that an old version is the newest.
    """
    noted = dataset.metadata.get(TIDIED, "")
    tidied = int(noted) if noted.isdecimal() else 0
    known = list_versions(store, path)
    left = {version: file for version, file in known.items() if version > tidied}
    newest = max(_remove_dead_files(store, path, dataset, left), default=0)
    if newest - tidied >= _NOTED:
        note(TIDIED, str(newest))


def _remove_dead_files(
    store: Store, path: str, dataset: LanceDataset, known: dict[int, str]
) -> list[int]:
    """Delete what only old versions use; return those, the oldest first."""
    kept = set(sorted(known)[-_KEPT_VERSIONS:])
    if len(kept) == len(known):
        return []
    tracked = dataset.tracked_files(min_version=min(known.keys() - kept)).read_all()
    found = list(
        zip(
            tracked["version"].to_pylist(),
            tracked["path"].to_pylist(),
            tracked["type"].to_pylist(),
            strict=True,
        )
    )
    used = {file for version, file, _ in found if version in kept or version not in known}
    dead = {file for _, file, kind in found if file not in used and kind != "manifest"}
    store.delete(f"{path}/{file}" for file in sorted(dead))
    return sorted(known.keys() - kept)


def keep_indexed(dataset: LanceDataset) -> None:
    """Create the indexes that are missing, and take in rows that they do not cover."""
    found = {index.name: index.segments for index in dataset.describe_indices()}
    for column, (kind, name) in _INDEXES.items():
        if name not in found:
            dataset.create_scalar_index(column, kind, name=name)
    rows = {fragment.fragment_id: fragment.count_rows() for fragment in dataset.get_fragments()}
    covered = [
        {number for segment in segments for number in segment.fragment_ids}
        for segments in found.values()
    ]
    left = max(
        (sum(rows[number] for number in rows.keys() - known) for known in covered), default=0
    )
    if left > max(_UNINDEXED_ROWS, sum(rows.values()) // 8):
        dataset.optimize.optimize_indices()
