"""When a server is about to end: who is told, and in which order.

First it is ready no more, while requests are still taken; then those are told who would keep it
from ending, such as streams that go on for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Ending"]


class Ending:
    """The end of a server; its methods are called in the loop."""

    def __init__(self) -> None:
        """Be far from it."""
        self._listeners: list[Callable[[], None]] = []
        self.has_begun = False

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have something called when no more requests are taken; return what takes that back."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def begin(self) -> None:
        """Say that the server was told to end."""
        self.has_begun = True

    def close(self) -> None:
        """Say that it takes no more requests."""
        self.has_begun = True
        for listener in tuple(self._listeners):
            listener()
