"""A change of a manifest that waits for its commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from mooring.store.line import Waiter

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.directory.draft import Draft
    from mooring.errors import MooringError

__all__ = ["Pending"]

Result = TypeVar("Result")


class Pending(Waiter, Generic[Result]):
    """A plan, in whose name it is, and what came of it."""

    def __init__(self, plan: Callable[[Draft], Result], by: str) -> None:
        """Wait with a plan, in somebody's name."""
        super().__init__()
        self.plan = plan
        self.by = by
        self.is_edit = False
        # Whether what it looked at holds edits of others that are to be committed with it.
        self._leans_on_others = False
        self._result: list[Result] = []
        self._error: Exception | None = None

    def attempt(self, draft: Draft) -> None:
        """Check and edit a draft; one that is refused leaves it as it was."""
        self.retract()
        self._leans_on_others = draft.is_edited
        try:
            self._result.append(self.plan(draft))
        except Exception as exc:  # noqa: BLE001  # told to whoever asked, and to none of the others
            self._error = exc
            draft.undo()
        else:
            self.is_edit = draft.keep()

    def retract(self) -> None:
        """Forget the attempt before: on a draft that lacked rows it asked for, it is no answer."""
        self._result.clear()
        self._error, self.is_edit = None, False

    def fail(self, error: MooringError) -> None:
        """Note that the commit failed, unless the change was refused whatever came of it.

        One that was refused after edits of others in the same commit may have been so by them,
        and they are not there.
        """
        if self._error is None or self._leans_on_others:
            self._error = error

    def outcome(self) -> Result:
        """Return what the plan returned.

        Raises:
            Exception: what it raised, or why it was not committed.
        """
        if self._error is not None:
            raise self._error
        return self._result[0]
