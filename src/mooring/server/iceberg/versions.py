"""The versions of a table as snapshots, and what of a snapshot its record keeps.

Spec: iceberg-namespace, "Using Lance Table in IRC with Iceberg Tooling".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mooring.iceberg.snapshots import MAIN, Snapshot
from mooring.tables.records import key_for_lance

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mooring.namespace.api import TableInfo
    from mooring.tables.api import VersionRecord
    from mooring.tables.tags import Tag

__all__ = ["DECLARED", "kept_metadata", "refs_of", "snapshot_of", "snapshots_json"]

# What stands for the version of a table that has none yet: an Iceberg engine takes a table without
# a snapshot for an empty one, and writes into its directory.
DECLARED = 0
# What a writer tells about its commit, and asks for when it never heard what became of it.
_COMMIT, _SCHEMA = "lance.commit-id", "lance.schema-digest"


def kept_metadata(snapshot: Snapshot) -> dict[str, str]:
    """Return what a version's record keeps of the snapshot that asked for it."""
    told = {_COMMIT: snapshot.commit_id, _SCHEMA: snapshot.schema_digest}
    return {**snapshot.given, **{key: value for key, value in told.items() if value is not None}}


def snapshot_of(info: TableInfo, record: VersionRecord) -> Snapshot:
    """Return a version as a snapshot."""
    given = dict(record.metadata)
    commit_id, digest = given.pop(_COMMIT, None), given.pop(_SCHEMA, None)
    return Snapshot(
        record.version,
        record.at_ms or 0,
        _below(info, record.manifest_path),
        record.size_bytes,
        record.e_tag,
        commit_id,
        given,
        schema_digest=digest,
    )


def snapshots_json(snapshots: Iterable[Snapshot]) -> list[dict[str, Any]]:
    """Write snapshots, the oldest first, with times that never go back.

    Iceberg's Java client refuses a table whose times do; a file that was copied has another time
    than its version.
    """
    written, latest_ms = [], 0
    for one in sorted(snapshots, key=lambda snapshot: snapshot.version):
        latest_ms = max(latest_ms, one.at_ms)
        # As in Iceberg itself, the version before may be gone.
        parent = one.version - 1 if one.version > 1 else None
        written.append({**one.to_json(parent=parent), "timestamp-ms": latest_ms})
    return written


def refs_of(current: int, tags: Sequence[Tag], known: Iterable[int]) -> Mapping[str, Any]:
    """Return what names versions: main, and the tags of versions that are there.

    A branch of Lance's numbers versions on its own, so that its tags cannot be told.
    """
    versions = set(known)
    named = {
        tag.name: {"type": "tag", "snapshot-id": tag.version}
        for tag in tags
        if tag.branch is None and tag.version in versions
    }
    return {**named, MAIN: {"type": "branch", "snapshot-id": current}}


def _below(info: TableInfo, key: str) -> str:
    """Return where a manifest lies below its table's directory, as far as it does."""
    directory = key_for_lance(info.location.rstrip("/"))
    return key.removeprefix(f"{directory}/")
