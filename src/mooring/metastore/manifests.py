"""The manifests of a branch of a Lance table: copies before a commit, final names after it.

Only the catalog gives final names out. A version's manifest gets its own after the commit that
makes it one, from its writer or from whoever comes next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from mooring.errors import ServiceUnavailableError, UnknownOutcomeError
from mooring.metastore.lance_table import branch_id
from mooring.tables.final_manifests import put_final
from mooring.tables.records import VersionRecords
from mooring.tables.versions import (
    BRANCHES_DIR,
    VERSIONS_DIR,
    list_versions,
    manifest_name,
    parse_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from mooring.metastore.locator import Locator
    from mooring.metastore.model import DataFile, Delta
    from mooring.metastore.transaction import Transaction
    from mooring.tables.place import Place

__all__ = [
    "MANIFEST_TYPE",
    "BranchFiles",
    "counts_down",
    "final_versions",
    "finalize",
    "is_final",
    "manifest_of",
    "version_of",
]

MANIFEST_TYPE = "application/x-lance-manifest"
_COPIES_DIR = "_manifests"


@dataclass(frozen=True, slots=True)
class BranchFiles:
    """Where the manifests of one branch lie."""

    place: Place
    location: str
    branch: str | None

    @property
    def directory(self) -> str:
        """The directory of the branch, in the store."""
        below = self.place.directory
        return f"{below}/{BRANCHES_DIR}/{self.branch}" if self.branch else below

    @property
    def records(self) -> VersionRecords:
        """Its versions as files."""
        return VersionRecords(self.place.store, self.place.directory, self.branch)

    @property
    def copies(self) -> str:
        """The directory of manifests that were copied before they became versions."""
        return self.place.path(f"{_COPIES_DIR}/{branch_id(self.branch)}")

    def final(self, copy: str) -> str:
        """Return the path of the same manifest where readers of the directory look."""
        return f"{self.directory}/{VERSIONS_DIR}/{copy.rpartition('/')[2]}"

    def in_store(self, path: str) -> str:
        """Return the store's path of a manifest that a delta names."""
        return self.place.path(path.removeprefix(f"{self.location}/"))

    def named(self, stored: str) -> str:
        """Return the path by which a delta names a manifest of the store."""
        return f"{self.location}/{stored.removeprefix(self.place.directory + '/')}"


def manifest_of(delta: Delta) -> DataFile:
    """Return the manifest that a delta makes a version."""
    return delta.manifest.files[0]


def final_versions(files: BranchFiles) -> Collection[int]:
    """Return the versions whose manifests have their final names."""
    return list_versions(files.place.store, files.directory).keys()


def is_final(files: BranchFiles, delta: Delta) -> bool:
    """Whether a version's manifest has its final name."""
    return files.place.store.head(files.final(manifest_of(delta).path)) is not None


def finalize(files: BranchFiles, txn: Transaction, branch: Locator, newest: Delta) -> None:
    """Give versions' manifests their final names where their writer did not come to it.

    Of several that one transaction made, the older ones come first.
    """
    delta: Delta | None = newest
    while delta is not None and not _is_named(files, delta):
        before = txn.find(branch.child(str((delta.stream_position or 0) - 1)))
        delta = cast("Delta", before.value) if before else None
    at = (delta.stream_position or 0) if delta else 0
    for version in range(at + 1, (newest.stream_position or 0) + 1):
        found = txn.find(branch.child(str(version)))
        if found is None:
            continue
        copy = files.in_store(manifest_of(cast("Delta", found.value)).path)
        body = files.place.store.get(copy)
        if body is not None:
            _put_final_surely(files, files.final(copy), body)


def _is_named(files: BranchFiles, delta: Delta) -> bool:
    copy = files.in_store(manifest_of(delta).path)
    return copy == files.final(copy) or is_final(files, delta)


def _put_final_surely(files: BranchFiles, final: str, body: bytes) -> None:
    """Put a manifest under its final name before something is built on it.

    Raises:
        ServiceUnavailableError: the store did not say that it is there, and nothing else was done.
    """
    try:
        put_final(files.place.store, final, body)
    except UnknownOutcomeError as exc:
        msg = f"the version before could not be completed: {exc}"
        raise ServiceUnavailableError(msg) from exc


def counts_down(path: str) -> bool:
    """Whether a manifest is named so that the newest comes first."""
    name = path.rpartition("/")[2]
    return name == manifest_name(version_of(path))


def version_of(path: str) -> int:
    """Return the version that a manifest is named for; 0 for any other file."""
    return parse_manifest(path.rpartition("/")[2]) or 0
