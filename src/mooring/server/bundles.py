"""Short looks that are asked for at the same time, done by one thread one after another.

To hand something to a thread and its result back costs several times as much as a look into a
snapshot in memory. So what comes while a thread is at it waits for that, and goes together. One
that takes longer than it should holds up nobody: what is behind it gets threads of its own, and so
does all that comes as long as looks are not short, as where a store is far away.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["Bundles"]

T = TypeVar("T")
_MOST = 8
_SHORT_S = 0.001
_PATIENCE_S = 0.005
# How much the newest bundle counts for what is to be expected.
_WEIGHT = 0.2


@dataclass(slots=True)
class _Item(Generic[T]):
    """Something to do, and who waits for it."""

    work: Callable[[], T]
    future: asyncio.Future[T]
    result: T | None = None
    error: BaseException | None = None

    def run(self) -> None:
        """Do it, in a thread."""
        try:
            self.result = self.work()
        except BaseException as exc:  # noqa: BLE001  # told to who waits for it
            self.error = exc

    def tell(self) -> None:
        """Hand over what came of it, in the loop."""
        if self.future.done():  # told before, or nobody waits any more
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]  # it is there


@dataclass(slots=True)
class _Bundle:
    """What one thread does."""

    items: deque[_Item[Any]]
    finished: list[_Item[Any]] = field(default_factory=list)
    took_s: float = 0.0
    timer: asyncio.TimerHandle | None = None
    is_late: bool = False

    def run(self) -> None:
        """Do one after another, in a thread, until none is left."""
        began_s = time.perf_counter()
        while True:
            try:
                item = self.items.popleft()
            except IndexError:
                break
            item.run()
            self.finished.append(item)
        self.took_s = (time.perf_counter() - began_s) / max(1, len(self.finished))

    def tell(self) -> None:
        """Hand over what came of those that are finished, in the loop."""
        for item in self.finished:
            item.tell()


class Bundles:
    """Hands work to threads; to be used from one loop."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        """Use some threads."""
        self._threads = threads
        self._waiting: list[_Item[Any]] = []
        self._usual_s = 0.0
        # Bundles that are expected back at any moment.
        self._expected = 0

    def add(self, loop: asyncio.AbstractEventLoop, work: Callable[[], T]) -> asyncio.Future[T]:
        """Have something done, together with what else comes meanwhile."""
        item: _Item[T] = _Item(work, loop.create_future())
        self._waiting.append(item)
        if not self._expected and len(self._waiting) == 1:
            loop.call_soon(self._hand_over, loop)
        return item.future

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        items, self._waiting = self._waiting, []
        size = _MOST if self._usual_s < _SHORT_S else 1
        for start in range(0, len(items), size):
            self._begin(loop, items[start : start + size])

    def _begin(self, loop: asyncio.AbstractEventLoop, items: list[_Item[Any]]) -> None:
        bundle = _Bundle(deque(items))
        try:
            self._threads.submit(self._run, loop, bundle)
        except RuntimeError as exc:  # the threads are closed
            for item in items:
                item.error = exc
                item.tell()
            return
        self._expected += 1
        bundle.timer = loop.call_later(_PATIENCE_S, self._go_without, loop, bundle)

    def _run(self, loop: asyncio.AbstractEventLoop, bundle: _Bundle) -> None:
        bundle.run()
        loop.call_soon_threadsafe(self._deliver, loop, bundle)

    def _deliver(self, loop: asyncio.AbstractEventLoop, bundle: _Bundle) -> None:
        self._usual_s += _WEIGHT * (bundle.took_s - self._usual_s)
        if not bundle.is_late:
            self._leave(loop, bundle)
        bundle.tell()

    def _go_without(self, loop: asyncio.AbstractEventLoop, bundle: _Bundle) -> None:
        """No longer wait for a bundle: what it has not begun goes to others."""
        bundle.is_late = True
        left = []
        while bundle.items:
            try:
                left.append(bundle.items.pop())
            except IndexError:  # its thread was quicker
                break
        self._leave(loop, bundle)
        bundle.tell()
        for item in reversed(left):
            self._begin(loop, [item])

    def _leave(self, loop: asyncio.AbstractEventLoop, bundle: _Bundle) -> None:
        self._expected -= 1
        if bundle.timer is not None:
            bundle.timer.cancel()
        if self._waiting:
            self._hand_over(loop)
