"""Processes that end themselves, by `kill -9`, in the middle of what they do to a store."""

from __future__ import annotations

import multiprocessing
import os
import signal
from typing import TYPE_CHECKING, TypeVar

from mooring.store.wrapped import WrappedStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.context import ForkServerContext

T = TypeVar("T")

CHANGING = {"put_new", "put_if", "put", "copy", "delete", "delete_prefix"}


def die() -> None:
    """End this very process, at once."""
    os.kill(os.getpid(), signal.SIGKILL)


class KillingStore(WrappedStore):
    """Ends its process at one of the steps that change something, counted from 0.

    A step is the moment before such a call. A deletion of several objects has one more, at which
    the first half is gone.
    """

    def __init__(self, inner, step: int) -> None:
        super().__init__(inner)
        self._left = step

    def _around(self, call, run: Callable[[], T]) -> T:
        if call.verb in CHANGING:
            self._step(lambda: None)
        return run()

    def delete(self, paths) -> None:
        doomed = list(paths)
        if len(doomed) > 1:
            self._step(lambda: self.inner.delete(doomed[: len(doomed) // 2]))
        super().delete(doomed)

    def delete_prefix(self, path: str) -> int:
        doomed = [meta.path for meta in self.inner.list_prefix(path)]
        if len(doomed) > 1:
            self._step(lambda: self.inner.delete(doomed[: len(doomed) // 2]))
        return super().delete_prefix(path)

    def _step(self, first: Callable[[], None]) -> None:
        if self._left == 0:
            first()
            die()
        self._left -= 1


def fast_processes(*modules: str) -> ForkServerContext:
    """Return a maker of processes that start fast: the modules are loaded once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lance", "mooring.tables.lance_manifest", *modules])
    return context


def run_to_its_end(processes: ForkServerContext, target: Callable[..., None], *args) -> bool:
    """Run a process; tell whether it was killed rather than done.

    Nothing is synced: processes die here, the machine does not.
    """
    victim = processes.Process(target=_without_syncs, args=(target, *args))
    victim.start()
    victim.join()
    assert victim.exitcode in {0, -signal.SIGKILL}
    return victim.exitcode != 0


def _without_syncs(target: Callable[..., None], *args) -> None:
    os.fsync = lambda _: None
    target(*args)
