"""Others who act between two calls of an operation."""

from __future__ import annotations

import threading

from mooring.errors import MooringError

__all__ = ["MANIFEST_COMMIT", "Meanwhile"]

# The put that decides about a change of the manifest.
MANIFEST_COMMIT = ("put_new", "__manifest/_versions")


class Meanwhile:
    """Has somebody else do something once, at a call to the store.

    In a thread of its own: the call may come out of Lance, which cannot be entered again there.
    """

    def __init__(self, act, verb: str, part: str, *, after: bool = False) -> None:
        self._act = act
        self._verb, self._part = verb, part
        self._after = after
        self.outcome: object = None
        self.done = False

    def before(self, call):
        if not self._after:
            self._run(call)

    def after(self, call, result):
        if self._after:
            self._run(call)

    def _run(self, call):
        if self.done or call.verb != self._verb or self._part not in call.path:
            return
        self.done = True
        thread = threading.Thread(target=self._try)
        thread.start()
        thread.join()

    def _try(self) -> None:
        try:
            self.outcome = self._act()
        except MooringError as exc:
            self.outcome = exc
