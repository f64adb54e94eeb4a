"""A store around another one: every verb passes through one method.

Subclasses override ``_around``; inheritance keeps the ten verbs written once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from mooring.store.api import Capabilities, Listing, ObjectMeta, ObjectTag, Store, StoredObject

__all__ = ["Call", "WrappedStore"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a store; a deletion of several objects names the first."""

    verb: str
    path: str


class WrappedStore:
    """Passes every call on to another store, through ``_around``."""

    def __init__(self, inner: Store) -> None:
        """Wrap a store."""
        self.inner = inner

    def _around(self, call: Call, run: Callable[[], T]) -> T:
        del call
        return run()

    @property
    def capabilities(self) -> Capabilities:
        """What the inner store can do."""
        return self.inner.capabilities

    @property
    def options(self) -> Mapping[str, str]:
        """The inner store's options."""
        return self.inner.options

    def location(self, path: str) -> str:
        """Return the inner store's location; not a request."""
        return self.inner.location(path)

    def get(self, path: str) -> bytes | None:
        """Get an object."""
        return self._around(Call("get", path), lambda: self.inner.get(path))

    def read(self, path: str) -> StoredObject | None:
        """Get an object and its description."""
        return self._around(Call("read", path), lambda: self.inner.read(path))

    def head(self, path: str) -> ObjectMeta | None:
        """Head an object."""
        return self._around(Call("head", path), lambda: self.inner.head(path))

    def existing(self, paths: Sequence[str]) -> set[str]:
        """Tell which objects exist."""
        first = paths[0] if paths else ""
        return self._around(Call("existing", first), lambda: self.inner.existing(paths))

    def list_dir(self, path: str) -> Listing:
        """List one level."""
        return self._around(Call("list_dir", path), lambda: self.inner.list_dir(path))

    def list_prefix(self, path: str) -> list[ObjectMeta]:
        """List everything below."""
        return self._around(Call("list_prefix", path), lambda: self.inner.list_prefix(path))

    def iter_dir(self, path: str, *, after: str = "") -> Iterator[ObjectMeta]:
        """List one level; as one call, so that all of it is seen at once."""
        call = Call("iter_dir", path)
        return iter(self._around(call, lambda: list(self.inner.iter_dir(path, after=after))))

    def prune(self, path: str) -> None:
        """Remove empty directories; not a request."""
        self.inner.prune(path)

    def sync(self, paths: Iterable[str]) -> None:
        """Make files durable; not a request."""
        self.inner.sync(paths)

    def put_new(self, path: str, body: bytes) -> bool:
        """Create an object."""
        return self._around(Call("put_new", path), lambda: self.inner.put_new(path, body))

    def put_if(self, path: str, body: bytes, tag: ObjectTag) -> bool:
        """Compare and swap an object."""
        return self._around(Call("put_if", path), lambda: self.inner.put_if(path, body, tag))

    def put(self, path: str, body: bytes, *, derived: bool = False) -> None:
        """Put an object."""
        self._around(Call("put", path), lambda: self.inner.put(path, body, derived=derived))

    def copy(self, source: str, target: str) -> bool:
        """Copy an object."""
        return self._around(Call("copy", target), lambda: self.inner.copy(source, target))

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects."""
        wanted = list(paths)
        if wanted:
            self._around(Call("delete", wanted[0]), lambda: self.inner.delete(wanted))

    def delete_prefix(self, path: str) -> int:
        """Delete everything below."""
        return self._around(Call("delete_prefix", path), lambda: self.inner.delete_prefix(path))
