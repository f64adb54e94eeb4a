"""The store: a handful of verbs that POSIX files and every object store can keep.

Paths are relative to the store's root, with ``/`` between segments and no leading slash. Reading
or deleting what is absent is an answer, not an error. Nothing outside this package knows which
kind of store it talks to.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = ["Capabilities", "Listing", "ObjectMeta", "ObjectTag", "Store", "StoredObject"]


@dataclass(frozen=True, slots=True)
class ObjectTag:
    """A store's proof of an object's state: an etag, a generation, or both."""

    etag: str | None = None
    generation: str | None = None


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """What a store tells about an object without reading it."""

    path: str
    size_bytes: int
    modified_ms: int
    tag: ObjectTag

    @property
    def mark(self) -> str:
        """Identify this very writing of the object.

        An S3 etag is a hash of the content, so equal content written twice differs by time alone.
        """
        return f"{self.tag.etag or self.tag.generation}@{self.modified_ms}"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as one read gave it: content and description belong together."""

    body: bytes
    meta: ObjectMeta


class Listing:
    """The direct children of a directory, by name, in no particular order.

    An object store has no empty directories; on disk one exists without children.
    """

    def __init__(
        self, directories: list[str], files: list[str], *, exists: bool | Callable[[], bool]
    ) -> None:
        """Tell the children, and whether the directory is there.

        Args:
            directories: Those in it.
            files: Those in it.
            exists: Whether it is there. Where the children do not tell, a service is asked once
                more, but only if anybody wants to know.
        """
        self.directories = directories
        self.files = files
        self._exists = exists

    @cached_property
    def exists(self) -> bool:
        """Whether the directory is there, as of the time when this is first asked."""
        return self._exists() if callable(self._exists) else self._exists


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a store can do beyond the verbs they all have."""

    compare_and_swap: bool
    case_sensitive: bool = True


class Store(Protocol):
    """Objects under one root.

    Every method may raise ServiceUnavailableError, PermissionDeniedError or UnauthenticatedError;
    the three puts may raise UnknownOutcomeError, after which the object may or may not be there.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What this store can do."""
        ...

    @property
    def options(self) -> Mapping[str, str]:
        """The storage options with which Lance reaches the same place."""
        ...

    def location(self, path: str) -> str:
        """Return the path or URI by which Lance opens ``path``."""
        ...

    def get(self, path: str) -> bytes | None:
        """Return the object's content, or None where there is none."""
        ...

    def read(self, path: str) -> StoredObject | None:
        """Return content and description of an object by one request, or None."""
        ...

    def head(self, path: str) -> ObjectMeta | None:
        """Return what is known about an object, or None where there is none."""
        ...

    def existing(self, paths: Sequence[str]) -> set[str]:
        """Tell which of these objects exist, with as much at once as the store allows."""
        ...

    def list_dir(self, path: str) -> Listing:
        """List the direct children of a directory; an absent one is empty.

        Raises:
            UnsupportedError: the directory is a link to somewhere else.
        """
        ...

    def list_prefix(self, path: str) -> list[ObjectMeta]:
        """List every object below a directory."""
        ...

    def iter_dir(self, path: str, *, after: str = "") -> Iterator[ObjectMeta]:
        """Go through the objects directly in a directory, in the order of their names.

        A service is asked only as far as somebody goes on, some thousand objects at a time.

        Args:
            path: The directory; an absent one is empty.
            after: Begin with the first name after this one.
        """
        ...

    def prune(self, path: str) -> None:
        """Remove a directory, and those below it, as far as they are empty."""
        ...

    def sync(self, paths: Iterable[str]) -> None:
        """Make sure that files which somebody else wrote survive a power cut."""
        ...

    def put_new(self, path: str, body: bytes) -> bool:
        """Create an object; False, and nothing changed, where one exists."""
        ...

    def put_if(self, path: str, body: bytes, tag: ObjectTag) -> bool:
        """Replace an object that is still in the state of ``tag``; False where it is not.

        Raises:
            UnsupportedError: the store cannot compare and swap.
        """
        ...

    def put(self, path: str, body: bytes, *, derived: bool = False) -> None:
        """Create or replace an object; one that is derived from others may be lost in a crash."""
        ...

    def copy(self, source: str, target: str) -> bool:
        """Make an immutable object available under another path, without reading it here.

        Returns:
            False where there is no such object.
        """
        ...

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects; absent ones are fine."""
        ...

    def delete_prefix(self, path: str) -> int:
        """Delete every object below a directory and return how many there were."""
        ...
