"""Writers and compactors of a change table, with a tidy, a vacuum and readers between them.

What is acknowledged is there exactly once; readers of older positions go on until a tidy.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from mooring.changes import ChangeTable, compaction, rounds
from mooring.changes.objects import THROUGH
from mooring.metastore.transaction import Transaction

from .caught import require_caught
from .changes_harness import NAME, explore_changes, make_repeatable
from .explorer import Limits

PAIRS = [
    (("write 3",), ("merge",)),
    (("write 3",), ("gather",)),
    (("merge",), ("merge",)),
    (("gather",), ("merge",)),
    (("merge",), ("tidy",)),
    (("read",), ("merge", "write 3")),
]
BESIDE_VACUUM = [
    (("merge",), ("vacuum",)),
    (("gather",), ("tidy", "vacuum")),
]
DEEP = [
    (("gather", "merge"), ("tidy",)),
    (("write 3",), ("merge", "tidy", "vacuum")),
    (("gather",), ("merge", "tidy", "vacuum")),
    (("write 3",), ("merge",), ("gather",)),
    (("write 3",), ("write 4",), ("merge",)),
    (("write 3",), ("merge",), ("tidy",)),
    (("merge",), ("merge",), ("tidy", "vacuum")),
    (("read",), ("write 3", "merge"), ("tidy",)),
    (("read",), ("gather", "tidy"), ("merge", "write 4")),
]
ONE = Limits(preemptions=1)
FAULTY = Limits(faults=1, preemptions=1)


@pytest.fixture(autouse=True)
def _repeatable(monkeypatch):
    make_repeatable(monkeypatch)


def _title(actors) -> str:
    return " | ".join("+".join(verbs) for verbs in actors)


def _explore(kind: str, actors, limits: Limits, record_race) -> None:
    report = explore_changes(actors, limits)
    record_race(kind, _title(actors), report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize("actors", [*PAIRS, *BESIDE_VACUUM], ids=_title)
def test_compaction_loses_and_doubles_no_row(actors, record_race):
    _explore("compaction", actors, ONE, record_race)


@pytest.mark.torture
@pytest.mark.parametrize("actors", [*PAIRS, *BESIDE_VACUUM], ids=_title)
def test_compaction_loses_and_doubles_no_row_with_faults(actors, record_race):
    _explore("compaction with a fault", actors, FAULTY, record_race)


@pytest.mark.torture
@pytest.mark.parametrize("actors", DEEP, ids=_title)
def test_many_at_once_lose_and_double_no_row(actors, record_race):
    _explore("compaction, many at once", actors, ONE, record_race)


# -- protocols that are wrong on purpose -----------------------------------------------------------


def _taking_all_there_is(monkeypatch) -> None:
    """Say that a round holds what came meanwhile, too."""
    commit = compaction.commit_round

    def commit_all(catalog, table, plan, *, properties, **written):
        position = ChangeTable(catalog, NAME).position
        return commit(
            catalog, table, plan, properties={**properties, THROUGH: str(position)}, **written
        )

    monkeypatch.setattr(compaction, "commit_round", commit_all)


def _blind_to_tidies(monkeypatch) -> None:
    """Keep files of a base without a look whether it is still there."""
    monkeypatch.setattr(rounds, "_is_beaten", lambda *_: False)


def _depending_on_nothing(monkeypatch) -> None:
    """Name files that a vacuum may have given up."""
    monkeypatch.setattr(Transaction, "depends_on", lambda *_: None)


BROKEN = [
    (_taking_all_there_is, (("write 3",), ("merge",)), ONE),
    (_blind_to_tidies, (("gather",), ("merge", "tidy", "vacuum")), ONE),
    (_depending_on_nothing, (("merge",), ("vacuum",)), ONE),
]


@pytest.mark.parametrize(
    ("breaking", "actors", "limits"), BROKEN, ids=[case[0].__name__.strip("_") for case in BROKEN]
)
def test_wrong_protocol_is_caught(breaking, actors, limits, monkeypatch):
    breaking(monkeypatch)
    require_caught(explore_changes(actors, replace(limits, stop_at_first=True)).violations)
