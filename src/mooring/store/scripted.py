"""A store that pauses, fails or crashes at any call, as a script says.

Nothing in the running system uses it: the race harness and the fault tests do. A script may
block in either hook, raise an error that the caller handles (a failure before the call, a lost
acknowledgement after it), or raise ``Crash``, which nobody handles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from mooring.store.wrapped import Call, WrappedStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.store.api import Store

__all__ = ["Crash", "Script", "ScriptedStore"]

T = TypeVar("T")


class Crash(BaseException):  # not an error: the end of a process
    """The process ends here; no handler may catch it."""


class Script(Protocol):
    """What happens around each call."""

    def before(self, call: Call) -> None:
        """Run before the call reaches the store."""
        ...

    def after(self, call: Call, result: object) -> None:
        """Run after the store has done the call."""
        ...


class ScriptedStore(WrappedStore):
    """Runs a script around every call."""

    def __init__(self, inner: Store, script: Script) -> None:
        """Follow a script from now on."""
        super().__init__(inner)
        self._script = script

    def _around(self, call: Call, run: Callable[[], T]) -> T:
        self._script.before(call)
        result = run()
        self._script.after(call, result)
        return result
