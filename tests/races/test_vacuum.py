"""A vacuum against whoever writes data and names it, through all interleavings and with faults.

"Vacuum of data files that no committed delta references".
"""

from __future__ import annotations

import pytest

from mooring.metastore.committer import Request
from mooring.metastore.entry import Entry
from mooring.metastore.transaction import Transaction

from .explorer import Limits
from .vacuum_harness import explore_vacuum

WRITES = (
    "write 2",
    "write 2 before",
    "write 2 and 3",
    "make table",
    "deregister",
    "copy 1",
    "drop 1",
)
FAULTY = Limits(faults=1, preemptions=1)
DEEPER = Limits(faults=2, preemptions=2)
TRIPLES = [
    (("copy 1",), ("drop 1",), ("vacuum",)),
    (("write 2 before",), ("vacuum",), ("vacuum",)),
    (("write 2",), ("make table",), ("vacuum",)),
    (("write 2 before",), ("vacuum",), ("checkpoint",)),
]


def _title(actors) -> str:
    return " | ".join("+".join(verbs) for verbs in actors)


@pytest.mark.parametrize("write", WRITES)
def test_vacuum_takes_no_data_that_is_named(write, record_race):
    actors = ((write,), ("vacuum",))
    report = explore_vacuum(actors, Limits())
    record_race("metastore vacuum", _title(actors), report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize(
    "limits",
    [FAULTY, pytest.param(DEEPER, marks=pytest.mark.torture)],
    ids=["a fault", "two faults"],
)
@pytest.mark.parametrize("write", WRITES)
def test_vacuum_takes_no_data_that_is_named_with_faults(write, limits, record_race):
    actors = ((write,), ("vacuum", "checkpoint"))
    report = explore_vacuum(actors, limits)
    record_race("metastore vacuum with faults", _title(actors), report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize("actors", TRIPLES, ids=_title)
def test_vacuum_among_three_takes_no_data_that_is_named(actors, record_race):
    report = explore_vacuum(actors, Limits(preemptions=2))
    record_race("metastore vacuum, triples", _title(actors), report)
    assert not report.violations, report.violations[0]


# -- protocols that are wrong on purpose -----------------------------------------------------------


def _deleting_first(monkeypatch) -> None:
    """Delete without giving the data up."""
    monkeypatch.setattr("mooring.metastore.vacuum.Entry", lambda nonce, aborted: Entry(nonce=nonce))


def _depending_on_nothing(monkeypatch) -> None:
    """Name data without a word that somebody relies on it."""
    monkeypatch.setattr(Transaction, "depends_on", lambda *_: None)


def _looking_at_no_token(monkeypatch) -> None:
    """Commit whatever was given up."""
    monkeypatch.setattr(Request, "refusal_by", lambda *_: None)


def _looking_once(monkeypatch) -> None:
    """Give up what was not named when the files were listed."""
    monkeypatch.setattr("mooring.metastore.vacuum._Names.__contains__", lambda *_: False)


def _trusting_the_listing(monkeypatch) -> None:
    """Look for marks of tables that were forgotten on purpose in the listing alone."""
    monkeypatch.setattr("mooring.metastore.vacuum._without_kept", lambda _, strays: strays)


def _case(value) -> str:
    return value if isinstance(value, str) else value.__name__.strip("_")


BROKEN = [
    (_deleting_first, "write 2"),
    (_deleting_first, "write 2 before"),
    (_deleting_first, "write 2 and 3"),
    (_deleting_first, "make table"),
    (_depending_on_nothing, "write 2 before"),
    (_looking_at_no_token, "write 2"),
    (_looking_once, "write 2"),
    (_trusting_the_listing, "deregister"),
]


@pytest.mark.parametrize(("breaking", "write"), BROKEN, ids=_case)
def test_wrong_vacuum_is_caught(breaking, write, monkeypatch):
    breaking(monkeypatch)
    found = explore_vacuum(((write,), ("vacuum",)), Limits()).violations
    assert any("data is lost" in violation for violation in found)
