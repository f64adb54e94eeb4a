"""The manifest of a catalog in somebody's name.

The rows and the commits are shared with all others of the process; the name travels with each
change.

Spec: directory-namespace, "Manifest Table Commits".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from mooring.directory.shared_manifest import MANIFEST_DIR
from mooring.tables.manifest import SHARED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from mooring.directory.draft import Draft
    from mooring.directory.shared_manifest import SharedManifest
    from mooring.tables.manifest import ManifestRow

__all__ = ["MANIFEST_DIR", "Manifest"]

Result = TypeVar("Result")


class Manifest:
    """The rows of a catalog's manifest, and changes to them."""

    def __init__(self, shared: SharedManifest, author: str) -> None:
        """Read and change a manifest; it need not be there yet.

        Args:
            shared: The manifest as all share it.
            author: In whose name commits are made.
        """
        self.shared = shared
        self.author = author

    # -- reading -----------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether there is a manifest."""
        return self.shared.exists

    @property
    def metadata(self) -> Mapping[str, str]:
        """The manifest's own map at the newest version."""
        return self.shared.metadata

    def find(self, object_id: str) -> ManifestRow | None:
        """Return a row of the newest version."""
        return self.shared.find(object_id)

    def names(self, parent: str, kind: str, after: str | None, limit: int | None) -> list[str]:
        """Name the children of a namespace, sorted, from after a name on.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
        """
        return self.shared.names(parent, kind, after, limit)

    def reading(self) -> AbstractContextManager[Draft]:
        """Look at the newest version for a while, in which nothing else may be asked for here."""
        return self.shared.reading()

    # -- changing ----------------------------------------------------------------------------

    def change(self, plan: Callable[[Draft], Result]) -> Result:
        """Make a change: one strict commit, shared with others that wait.

        Args:
            plan: Checks and edits a draft. It may run several times, each time on a newer
                version, and what it raises is raised here.

        Raises:
            ConcurrentModificationError: others kept winning.
            UnknownOutcomeError: the store never said whether the commit landed.
        """
        return self.shared.change(plan, by=self.author)

    def change_metadata(
        self, plan: Callable[[Mapping[str, str]], Mapping[str, str | None]]
    ) -> None:
        """Make a change of the manifest's own map, by a strict commit."""
        self.shared.change_metadata(plan, by=self.author)

    @property
    def is_shared(self) -> bool:
        """Whether it is known that other programs use this manifest."""
        return SHARED in self.metadata

    def share(self) -> None:
        """Note, for good, that other programs use this manifest: then numbers are never freed."""
        self.change_metadata(lambda known: {} if SHARED in known else {SHARED: "true"})

    def fence(self) -> None:
        """Commit a version that changes nothing: whoever read an older one has to read again."""
        self.shared.fence(by=self.author)
