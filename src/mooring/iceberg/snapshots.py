"""A version of a Lance table as a snapshot of Iceberg's: its number is the snapshot's.

An Iceberg snapshot must name a list of manifests. Ours is an address that no engine opens, so that
a scan by Iceberg fails and says why, and nobody's upkeep finds a file of Lance's by it; where the
Lance manifest lies is told in the summary.

Spec: iceberg-namespace, "Requirement for Implementation Managed Table", "Using Lance Table in IRC
with Iceberg Tooling".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mooring.iceberg.properties import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "MAIN",
    "SCHEMA_ID",
    "Snapshot",
    "current_version",
    "find_snapshot",
    "newest_snapshot",
    "read_snapshots",
    "unreadable_address",
]

MAIN = "main"
SCHEMA_ID = 1
_GIVEN = "lance.metadata."
_VERSION, _MANIFEST = "lance.version", "lance.manifest-path"
_SIZE, _ETAG, _COMMIT = "lance.manifest-size", "lance.e-tag", "lance.commit-id"
_SCHEMA = "lance.schema-digest"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A version, as an Iceberg catalog records it.

    Attributes:
        version: Its number.
        at_ms: When it was made.
        manifest_path: Where its manifest was written, below the table's directory; None where the
            record does not tell.
        size_bytes: The manifest's size.
        e_tag: The store's tag of it.
        commit_id: Random; tells a writer whether the version is its own.
        given: What its writer gave along.
        operation: What Iceberg calls what was done.
        schema_digest: Tells whether the schema is another than that of the version before.
    """

    version: int
    at_ms: int
    manifest_path: str | None = None
    size_bytes: int | None = None
    e_tag: str | None = None
    commit_id: str | None = None
    given: Mapping[str, str] = field(default_factory=dict)
    operation: str = "append"
    schema_digest: str | None = None

    def to_json(self, *, parent: int | None = None, schema_id: int = SCHEMA_ID) -> dict[str, Any]:
        """Return the snapshot as it goes over the wire.

        Args:
            parent: The version before, where the catalog has one.
            schema_id: The schema that it was written with.
        """
        told = {
            "operation": self.operation,
            _VERSION: str(self.version),
            _MANIFEST: self.manifest_path,
            _SIZE: None if self.size_bytes is None else str(self.size_bytes),
            _ETAG: self.e_tag,
            _COMMIT: self.commit_id,
            _SCHEMA: self.schema_digest,
            **{f"{_GIVEN}{key}": value for key, value in self.given.items()},
        }
        return {
            "snapshot-id": self.version,
            **({} if parent is None else {"parent-snapshot-id": parent}),
            "sequence-number": self.version,
            "timestamp-ms": self.at_ms,
            "manifest-list": unreadable_address(self.version),
            "summary": {key: value for key, value in told.items() if value is not None},
            "schema-id": schema_id,
        }

    def become_newest(
        self, metadata: Mapping[str, Any], parent: int | None = None
    ) -> list[dict[str, Any]]:
        """Return the updates that make it a table's newest.

        Args:
            metadata: The table's.
            parent: The version before, where the catalog has one.
        """
        schema_id = int(metadata.get("current-schema-id") or 0)
        recorded = self.to_json(parent=parent, schema_id=schema_id)
        main = {"ref-name": MAIN, "type": "branch", "snapshot-id": self.version}
        return [
            {"action": "add-snapshot", "snapshot": recorded},
            {"action": "set-snapshot-ref", **main},
        ]

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Snapshot:
        """Read a snapshot, whoever recorded it."""
        summary: Mapping[str, str] = found.get("summary") or {}
        size = summary.get(_SIZE)
        return cls(
            int(found["snapshot-id"]),
            int(found.get("timestamp-ms", 0)),
            summary.get(_MANIFEST),
            int(size) if size and size.isdigit() else None,
            summary.get(_ETAG),
            summary.get(_COMMIT),
            {
                key.removeprefix(_GIVEN): value
                for key, value in summary.items()
                if key.startswith(_GIVEN)
            },
            summary.get("operation", "append"),
            summary.get(_SCHEMA),
        )


def unreadable_address(version: int) -> str:
    """Return what stands for a list of Iceberg manifests, which a Lance table has none of."""
    return f"{NOWHERE}/read_it_with_lance?version={version}"


def read_snapshots(metadata: Mapping[str, Any]) -> list[Snapshot]:
    """Return the versions that a table's metadata records, the newest first."""
    found: Sequence[Mapping[str, Any]] = metadata.get("snapshots") or ()
    read = [Snapshot.from_json(one) for one in found]
    return sorted(read, key=lambda one: one.version, reverse=True)


def find_snapshot(metadata: Mapping[str, Any], version: int) -> Snapshot | None:
    """Return one version that a table's metadata records."""
    return next((one for one in read_snapshots(metadata) if one.version == version), None)


def newest_snapshot(metadata: Mapping[str, Any]) -> Snapshot | None:
    """Return the newest version of a table; None for one without data.

    Its number alone is what a catalog must tell: there may be no snapshot to go with it.
    """
    version = current_version(metadata)
    if version is None:
        return None
    known = find_snapshot(metadata, version)
    return known or Snapshot(version, int(metadata.get("last-updated-ms") or 0))


def current_version(metadata: Mapping[str, Any]) -> int | None:
    """Return the newest version of a table; None for one without data.

    Iceberg writes -1 where a table has no snapshot, and Mooring's own server 0.
    """
    main = (metadata.get("refs") or {}).get(MAIN) or {}
    found = main.get("snapshot-id", metadata.get("current-snapshot-id"))
    return None if found is None or int(found) < 1 else int(found)
