"""Directories that no row mentions: left by creators that crashed between data and name.

Age only picks candidates: a creator may sleep for days. So a directory is condemned by a strict
commit while no row mentions it, a committer refuses a row for a condemned one, and only then are
its files deleted. The last sweep is noted: a creator that finds another than when it began looks
for its files before it commits its row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.directory.entries import intent_of
from mooring.directory.layout import TABLE_SUFFIX
from mooring.errors import ConcurrentModificationError
from mooring.identifiers import quote
from mooring.tables.versions import VERSIONS_DIR, parse_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.clock import Clock, IdSource
    from mooring.directory.manifest import Manifest
    from mooring.store import Store

__all__ = ["CONDEMNED", "Orphan", "Sweep", "last_sweep", "require_not_condemned"]

CONDEMNED = "mooring.condemned."
_SWEPT = "mooring.swept"
_BY_HASH = re.compile(r"[0-9a-f]{8}_.+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Orphan:
    """A directory that no row mentions.

    Attributes:
        location: The directory, relative to the root.
        files: How many files are in it.
        size_bytes: How large they are together.
        newest_at_ms: When the newest was written.
        is_table: Whether it holds a version: then it may be a deregistered table, whose bytes
            are kept on purpose.
    """

    location: str
    files: int
    size_bytes: int
    newest_at_ms: int
    is_table: bool = False


def require_not_condemned(metadata: Mapping[str, str], location: str | None) -> None:
    """Refuse a row for a directory that a sweep is about to delete.

    Raises:
        ConcurrentModificationError: it is.
    """
    if CONDEMNED + (location or "") in metadata:
        msg = f"{quote(location or '')} was taken for a leftover of a crash and is swept: try again"
        raise ConcurrentModificationError(msg)


def last_sweep(metadata: Mapping[str, str]) -> str:
    """Tell which sweep was the last to end, to be compared with what was told before."""
    return metadata.get(_SWEPT, "")


def _may_be_orphan(name: str) -> bool:
    # A root table whose name begins with a date looks like a hash, and may have no row.
    return _BY_HASH.fullmatch(name) is not None and not name.endswith(TABLE_SUFFIX)


class Sweep:
    """Finds and deletes what crashed creators left."""

    def __init__(self, store: Store, manifest: Manifest, *, clock: Clock, ids: IdSource) -> None:
        """Work on a catalog.

        Args:
            store: Its store.
            manifest: Its manifest.
            clock: Tells how old a directory is.
            ids: Makes identifiers of sweeps.
        """
        self._ids = ids
        self._store = store
        self._manifest = manifest
        self._clock = clock

    def find(self, older_than_ms: int) -> list[Orphan]:
        """List directories by hash that no row mentions and nobody wrote to for a while.

        Whole tables are listed, too, but not deleted: a deregistered one looks the same.
        """
        if not self._manifest.exists:
            return []
        # The directories first: one that appears later cannot be taken for an orphan.
        found = self._store.list_dir("").directories
        used = self._used()
        unknown = sorted(name for name in found if _may_be_orphan(name) and name not in used)
        orphans = [self._look(name) for name in unknown]
        limit_ms = self._clock.now_ms() - older_than_ms
        return [orphan for orphan in orphans if orphan.newest_at_ms <= limit_ms]

    def delete(self, orphans: list[Orphan]) -> list[Orphan]:
        """Delete orphans, except whole tables and those that got a row since they were found.

        Returns:
            Those that were deleted.
        """
        suspects = [orphan for orphan in orphans if self._may_go(orphan)]
        if not suspects:
            return []
        sweep_id = self._ids.new_id()
        self._manifest.change_metadata(lambda known: _condemn(known, suspects, sweep_id))
        # Rows that came before the condemnation count; after it none can come.
        used = self._used()
        doomed = [
            orphan
            for orphan in suspects
            if orphan.location not in used and not self._look(orphan.location).is_table
        ]
        for orphan in doomed:
            self._store.delete_prefix(orphan.location)
        self._manifest.change_metadata(lambda known: _release(known, suspects, doomed, sweep_id))
        return doomed

    def _may_go(self, orphan: Orphan) -> bool:
        return _may_be_orphan(orphan.location) and not orphan.is_table

    def _used(self) -> set[str]:
        with self._manifest.reading() as draft:
            rows = list(draft.rows())
        # A rename that is under way copies to a directory that only its intent mentions.
        mentioned = [row.location for row in rows] + [
            intent.location for row in rows if (intent := intent_of(row))
        ]
        return {location.split("/")[0] for location in mentioned if location}

    def _look(self, location: str) -> Orphan:
        metas = self._store.list_prefix(location)
        versions = f"{location}/{VERSIONS_DIR}/"
        is_table = any(
            meta.path.startswith(versions)
            and parse_manifest(meta.path.removeprefix(versions)) is not None
            for meta in metas
        )
        return Orphan(
            location,
            len(metas),
            sum(meta.size_bytes for meta in metas),
            max((meta.modified_ms for meta in metas), default=0),
            is_table,
        )


def _condemn(
    known: Mapping[str, str], orphans: list[Orphan], sweep_id: str
) -> dict[str, str | None]:
    """Add a sweep to those that condemn directories: each may still delete them."""
    keys = [CONDEMNED + orphan.location for orphan in orphans]
    return {key: " ".join([*known.get(key, "").split(), sweep_id]) for key in keys}


def _release(
    known: Mapping[str, str], orphans: list[Orphan], deleted: list[Orphan], sweep_id: str
) -> dict[str, str | None]:
    """End a sweep: what it spared may be condemned by another, what it deleted does not matter."""
    updates: dict[str, str | None] = {_SWEPT: sweep_id}
    for orphan in orphans:
        key = CONDEMNED + orphan.location
        others = [found for found in known.get(key, "").split() if found != sweep_id]
        updates[key] = None if orphan in deleted else " ".join(others) or None
    return updates
