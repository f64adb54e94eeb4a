"""Short work beside the requests: questions to a catalog that must never keep a server from ending.

The threads of an executor are waited for when a program ends; a store that does not answer would
keep it from doing so. These are not.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Errand"]

T = TypeVar("T")


class Errand(Generic[T]):
    """A question that is asked now and then, by one thread at a time, whoever wants to know."""

    def __init__(
        self,
        ask: Callable[[], T],
        *,
        fresh_s: float,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Be ready to ask.

        Args:
            ask: The question.
            fresh_s: How long an answer is good for.
            now_s: Tells the time.
        """
        self._ask = ask
        self._fresh_s = fresh_s
        self._now_s = now_s
        self._future: Future[T] | None = None
        self._answered_s = 0.0
        self._lock = threading.Lock()

    async def answer(self, timeout_s: float) -> T | None:
        """Return the answer, the last one where it is fresh; None where it takes too long.

        Raises:
            Exception: whatever the question fails by.
        """
        future = asyncio.wrap_future(self._asked())
        # Not wait_for, which would take the question back that others wait for, too.
        done, _ = await asyncio.wait({future}, timeout=timeout_s)
        return future.result() if done else None

    def _asked(self) -> Future[T]:
        with self._lock:
            current = self._future
            if current is None or self._is_stale(current):
                self._future = current = Future()
                threading.Thread(target=self._run, args=(current,), daemon=True).start()
            return current

    def _is_stale(self, future: Future[T]) -> bool:
        return future.done() and self._now_s() - self._answered_s >= self._fresh_s

    def _run(self, future: Future[T]) -> None:
        try:
            found = self._ask()
        except BaseException as exc:  # noqa: BLE001  # told to whoever asked
            self._answered_s = self._now_s()
            future.set_exception(exc)
        else:
            self._answered_s = self._now_s()
            future.set_result(found)
