"""A store that counts and times what is asked of another one."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from mooring.store.wrapped import Call, WrappedStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.store.api import Store

__all__ = ["ObservedStore"]

T = TypeVar("T")


class ObservedStore(WrappedStore):
    """Keeps the count and the seconds of every verb."""

    def __init__(self, inner: Store) -> None:
        """Observe a store from now on."""
        super().__init__(inner)
        self.counts: Counter[str] = Counter()
        self.seconds: dict[str, float] = {}

    @property
    def total(self) -> int:
        """How many calls there were."""
        return self.counts.total()

    def _around(self, call: Call, run: Callable[[], T]) -> T:
        started = time.perf_counter()
        try:
            return run()
        finally:
            self.counts[call.verb] += 1
            elapsed = time.perf_counter() - started
            self.seconds[call.verb] = self.seconds.get(call.verb, 0.0) + elapsed
