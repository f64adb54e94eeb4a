"""Stores whose requests are told to somebody, such as a server that counts them.

Only stores that are opened while somebody listens are: a library has nothing to pay for it.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from mooring.store.wrapped import Call, WrappedStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mooring.store.api import ObjectMeta, Store

    Hear = Callable[[str, float], None]

__all__ = ["ReportedStore", "report_stores", "reported"]

T = TypeVar("T")
_listeners: list[Hear] = []


class ReportedStore(WrappedStore):
    """Tells which verb each request was, and how many seconds it took."""

    def __init__(self, inner: Store, hear: Hear) -> None:
        """Tell of a store's requests.

        Args:
            inner: The store.
            hear: Hears the verb and the seconds.
        """
        super().__init__(inner)
        self._hear = hear

    def iter_dir(self, path: str, *, after: str = "") -> Iterator[ObjectMeta]:
        """List one level, as it comes: who needs a page of a long listing does not read all."""
        self._hear("iter_dir", 0.0)
        return self.inner.iter_dir(path, after=after)

    def _around(self, call: Call, run: Callable[[], T]) -> T:
        started_s = time.perf_counter()
        try:
            return run()
        finally:
            self._hear(call.verb, time.perf_counter() - started_s)


@contextmanager
def report_stores(hear: Hear) -> Iterator[None]:
    """Tell of the requests to all stores that this process opens meanwhile."""
    _listeners.append(hear)
    try:
        yield
    finally:
        _listeners.remove(hear)


def reported(store: Store) -> Store:
    """Return a store whose requests are told to whoever listens, if somebody does."""
    return ReportedStore(store, _listeners[-1]) if _listeners else store
