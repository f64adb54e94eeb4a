"""What happened to a table, in the order in which it happened.

Decisions and writes are told by different files, and several may be of one millisecond: then the
versions say which came first, for a decision names the newest version that was there.
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from mooring.namespace.api import Change

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mooring.directory.chain import Chains
    from mooring.tables.api import TableFiles

__all__ = ["decisions_about", "in_order", "writes_to"]

_WRITE = "write"


def decisions_about(name: str, chains: Chains) -> list[Change]:
    """Tell what was decided about a table of a directory."""
    return [
        Change(said.action, said.state.value, said.by, said.at_ms, said.version)
        for link in chains.history(name)
        if (said := link.decision)
    ]


def writes_to(location: str, tables: TableFiles) -> list[Change]:
    """Tell who wrote the versions of a table below the root, as far as they are known."""
    return [
        Change(_WRITE, "live", write.by, write.at_ms, write.version)
        for write in tables.writes(location)
    ]


def in_order(changes: Iterable[Change]) -> list[Change]:
    """Sort what happened, the oldest first; decisions of one moment keep their order."""
    by_time = sorted(changes, key=attrgetter("at_ms"))
    return [
        change
        for _, moment in groupby(by_time, attrgetter("at_ms"))
        for change in _interleave(list(moment))
    ]


def _interleave(moment: list[Change]) -> Iterator[Change]:
    decisions = [change for change in moment if change.action != _WRITE]
    writes = [change for change in moment if change.action == _WRITE]
    writes.sort(key=lambda write: write.version or 0)
    for place in range(len(decisions) + 1):
        yield from (write for write in writes if _place(write, decisions) == place)
        yield from decisions[place : place + 1]


def _place(write: Change, decisions: list[Change]) -> int:
    """Count the decisions that came before a write."""
    before = [
        place
        for place, decision in enumerate(decisions, 1)
        if decision.version is not None and decision.version < (write.version or 0)
    ]
    return max(before, default=0)
