"""A process that dies at any call to the store leaves a catalog on which everything works.

The race harness walks through interleavings on paper tables; here one process at a time dies in
the middle of an operation on real Lance tables.

"`kill -9` in the middle of drop, undrop, purge and create"; PROTOCOLS, "Lifecycle".
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from mooring.errors import TableAlreadyExistsError, TableNotFoundError
from mooring.identifiers import ROOT
from mooring.namespace.states import Exists, SoftDeleted
from mooring.store.scripted import Crash, ScriptedStore
from tests.lakes import COMPAT_DISK, DISK, FakeClock, Lake, rows, table_id

T = table_id("t")
LAST_CALL = 80


class DieAt:
    """Die before or after the n-th call; the dead make no further calls."""

    def __init__(self, call: int, *, done: bool) -> None:
        self._left = call
        self._done = done
        self.dead = False

    def before(self, call):
        self._left -= 1
        if self.dead or (self._left == 0 and not self._done):
            self._die()

    def after(self, call, result):
        if self._left == 0 and self._done:
            self._die()

    def _die(self):
        self.dead = True
        raise Crash


def _live(lake: Lake) -> None:
    lake.create("t", [1])


def _dropped(lake: Lake) -> None:
    lake.create("t", [1])
    lake.drop("t")


def _purged(lake: Lake) -> None:
    _dropped(lake)
    lake.backend.purge_table(T)


OPERATIONS = {
    "first create": (lambda lake: lake.create("other"), lambda b: b.create_table(T, rows([2]))),
    "create over a dropped table": (_dropped, lambda b: b.create_table(T, rows([2]))),
    "create over a purged table": (_purged, lambda b: b.create_table(T, rows([2]))),
    "drop": (_live, lambda b: b.drop_table(T)),
    "undrop": (_dropped, lambda b: b.undrop_table(T)),
    "purge": (_dropped, lambda b: b.purge_table(T)),
    "deregister": (_live, lambda b: b.deregister_table(T)),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("kind", "done"),
    # To die before a call leaves what dying after the one before it leaves: once is enough.
    [(DISK, False), (DISK, True), (COMPAT_DISK, True)],
    ids=["before a call", "after a call", "compat, after a call"],
)
def test_whatever_dies_can_be_finished_or_undone(tmp_path, kind, operation, done):
    prepare, act = OPERATIONS[operation]
    for call in range(1, LAST_CALL):
        lake = Lake(kind, str(tmp_path / str(call)), {}, FakeClock())
        prepare(lake)
        if _survives(lake, act, DieAt(call, done=done)):
            assert call > 3
            return
        _must_be_whole(lake)
        _must_go_on(lake)
    pytest.fail(f"{operation} makes more than {LAST_CALL} calls")


def _survives(lake: Lake, act, script: DieAt) -> bool:
    """Run an operation that dies; True where it ends before its time."""
    try:
        act(lake.open(store=ScriptedStore(lake.store, script)))
    except (Crash, Exception):
        # Lance words a crash inside its commit as an error of its own.
        if not script.dead:
            raise
    return not script.dead


def _must_be_whole(lake: Lake) -> None:
    """Listing and look agree, and a live table with data has all of its rows."""
    backend = lake.open()
    status = backend.table_status(T)
    assert ("t" in backend.list_tables(ROOT)) == (status == Exists())
    assert ("t" in lake.trash()) == isinstance(status, SoftDeleted)
    if status == Exists() and not backend.describe_table(T, check_declared=True).is_only_declared:
        assert lake.values("t") in ([1], [2])


def _must_go_on(lake: Lake) -> None:
    """Whoever comes next can bring the table back, or get rid of it and create it again."""
    backend = lake.open(author="next")
    if isinstance(backend.table_status(T), SoftDeleted):
        backend.undrop_table(T)
        assert lake.values("t") == [1]
    for act in (
        lambda: backend.register_table(T, "t.lance"),
        lambda: backend.drop_table(T),
        lambda: backend.purge_table(T),
    ):
        _if_it_can(act)
    assert backend.create_table(T, rows([9])).version >= 1
    assert lake.values("t") == [9]
    assert "t" in lake.names()
    backend.drop_table(T)
    backend.undrop_table(T)
    assert lake.values("t") == [9]


def _if_it_can(act) -> None:
    """Run an operation that the state of the table may not allow."""
    with suppress(TableNotFoundError, TableAlreadyExistsError):
        act()
