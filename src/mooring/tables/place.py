"""Where the files of a located table lie: a store, and the table's directory in it.

What several writers of tags, branches and notes must agree on is decided by the store.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from mooring.errors import ConcurrentModificationError
from mooring.store import open_store
from mooring.tables.seal import read_seal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.store import Store

__all__ = ["Place", "open_place"]

_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Place:
    """A table's directory in a store."""

    store: Store
    directory: str

    def path(self, below: str) -> str:
        """Return the store's path of something in the directory."""
        return f"{self.directory}/{below}"

    def require_unsealed(self, what: str) -> None:
        """After a change beside the versions: refuse it where a rename may have missed it.

        Raises:
            ConcurrentModificationError: the table is being renamed.
        """
        if read_seal(self.store, self.directory).nonce is not None:
            msg = f"{what} is being renamed: try again"
            raise ConcurrentModificationError(msg)

    def read_all(self, paths: Sequence[str]) -> list[bytes | None]:
        """Read several small objects, some at once."""
        if len(paths) < 2:  # noqa: PLR2004  # one needs no threads
            return [self.store.get(path) for path in paths]
        with ThreadPoolExecutor(min(_AT_ONCE, len(paths))) as readers:
            return list(readers.map(self.store.get, paths))


def open_place(location: str, options: Mapping[str, str]) -> Place:
    """Find a table's directory by its location.

    Args:
        location: Where Lance finds the table.
        options: Storage options of Lance.
    """
    if "://" not in location:
        parent, _, name = location.rstrip("/").rpartition("/")
        return Place(open_store(parent or "/", options), name)
    parts = urlsplit(location)
    path = unquote(parts.path).strip("/")
    if parts.scheme == "file":
        parent, _, name = path.rpartition("/")
        return Place(open_store(f"/{parent}", options), name)
    return Place(open_store(f"{parts.scheme}://{parts.netloc}", options), path)
