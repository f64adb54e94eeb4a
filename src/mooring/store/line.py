"""Standing in line for a commit: one of those who wait commits for all of them.

Whoever comes first leads. Others sleep until what they asked for is done, and are woken all at
once; they meet on no lock, so that the next ones are in line while the next commit is under way.
A leader that follows a commit for many waits for as many a little, for they are on their way back:
else every other commit would be one of a single change. Nothing depends on who shares a commit.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Generic, TypeVar

from mooring.errors import MooringError, UnknownOutcomeError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Line", "Waiter"]

# Of the time that the last commit took, for others to come.
_PATIENCE = 0.5
_LONGEST_S = 0.02


class Waiter:
    """Somebody in line."""

    def __init__(self) -> None:
        """Come."""
        self.leads = False
        self.is_done = False
        self._woken = threading.Event()

    def fail(self, error: MooringError) -> None:
        """Hear that the commit failed.

        Raises:
            NotImplementedError: always; each kind has its own way.
        """
        raise NotImplementedError

    def sleep(self) -> None:
        """Wait until it is done, or to be led."""
        self._woken.wait()

    def wake(self) -> None:
        """Go on."""
        self._woken.set()


W = TypeVar("W", bound=Waiter)


class Line(Generic[W]):
    """Those who wait."""

    def __init__(self) -> None:
        """Begin without any."""
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._waiting: list[W] = []
        self._is_led = False
        self._expected = 1
        self._took_s = 0.0

    def __len__(self) -> int:
        """Count them."""
        return len(self._waiting)

    @contextmanager
    def joined(self, one: W) -> Iterator[bool]:
        """Stand in line; tell whether to commit now for all, or else it is done."""
        try:
            yield self._stand(one)
        finally:
            self._leave(one)

    def _stand(self, one: W) -> bool:
        with self._lock:
            self._waiting.append(one)
            self._arrived.notify()
            if not self._is_led:
                self._is_led = one.leads = True
        if not one.leads:
            one.sleep()
        return not one.is_done

    def _leave(self, one: W) -> None:
        """Go, in whatever way, and pass the lead on."""
        if one.is_done and not one.leads:
            return
        with self._lock:
            if one in self._waiting:  # it was interrupted, or leading failed before a commit
                self._waiting.remove(one)
            if not one.leads:
                return
            one.leads = False
            self._is_led = bool(self._waiting)
            if self._waiting:
                heir = self._waiting[0]
                heir.leads = True
                heir.wake()

    @contextmanager
    def served(self) -> Iterator[list[W]]:
        """Take all that wait; they are done afterwards, and each knows what came of it.

        Only for who was told to commit. What fails by an error of ours fails for all.
        """
        batch = self._take()
        began_s = monotonic()
        try:
            yield batch
        except MooringError as exc:
            _fail(batch, exc)
        except BaseException:
            _fail(batch, UnknownOutcomeError("the commit was cut off: look what came of it"))
            raise
        finally:
            self._took_s = monotonic() - began_s
            for one in batch:
                one.is_done = True
                one.wake()

    def _take(self) -> list[W]:
        with self._lock:
            if len(self._waiting) < self._expected:
                patience_s = min(_PATIENCE * self._took_s, _LONGEST_S)
                self._arrived.wait_for(lambda: len(self._waiting) >= self._expected, patience_s)
            batch, self._waiting = self._waiting, []
        self._expected = len(batch)
        return batch


def _fail(batch: list[W], error: MooringError) -> None:
    for one in batch:
        one.fail(error)
