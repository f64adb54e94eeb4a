"""Lance tables of an Iceberg catalog: every pair of calls through its interleavings, with faults.

Commits by `assert-ref-snapshot-id`, unknown outcomes looked up before retrying, drops
decided by the server's rename. Crashes, lost answers, requests that arrive late, refusals.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest

from mooring.errors import (
    ConcurrentModificationError,
    NotFoundError,
    UnknownOutcomeError,
)
from mooring.iceberg import trash, version_commit
from mooring.iceberg.new_entries import NewEntries
from mooring.iceberg.trash import Trash
from mooring.iceberg.version_commit import VersionCommit
from mooring.iceberg.versions import Versions
from mooring.identifiers import ObjectId

from .caught import require_caught
from .depth import IS_DEEP
from .explorer import Limits
from .iceberg_harness import IcebergRace, explore, patch
from .iceberg_model import IMPL, STORAGE

STARTS = {
    "live": ("create a", "create b", "append a"),
    "dropped": ("create a", "create b", "drop a"),
    "created again": ("create a", "create b", "drop a", "create a"),
    "declared": ("declare a", "create b"),
    "elsewhere": ("place a", "append a", "create b"),
    "elsewhere, dropped": ("place a", "append a", "create b", "drop a"),
    "written": ("write a", "create b"),
}
VERBS = (
    "append a",
    "append a b",
    "create a",
    "declare a",
    "drop a",
    "undrop a",
    "undrop a c",
    "rename a c",
    "rename a b",
    "purge a",
    "deregister a",
    "trim a",
    "tidy a",
    "read a",
    "readall a",
)
# One that deletes versions on purpose is in the way of one that reads them all.
PAIRS = [
    pair for pair in combinations_with_replacement(VERBS, 2) if set(pair) != {"trim a", "readall a"}
]
CASES = [
    (by, start, pair)
    for by in (IMPL, STORAGE)
    for start in ("live", "dropped", "created again", "declared")
    for pair in PAIRS
    # Only the server decides about several tables together.
    if by is IMPL or "append a b" not in pair
]
CORE = {"append a", "append a b", "create a", "drop a", "undrop a", "purge a"}
FAST_WITH_A_FAULT = [
    (IMPL, "live", ("append a", "append a")),
    (IMPL, "live", ("append a", "drop a")),
    (IMPL, "live", ("drop a", "undrop a")),
    (IMPL, "dropped", ("undrop a", "purge a")),
    (STORAGE, "live", ("append a", "drop a")),
]
# Requests that are done long after their sender gave up on them: those that name what they expect.
# What drops or renames a live name cannot, and whoever comes late hits what has the name by then.
LATE = frozenset({"commit", "create"})
LATE_IN_THE_TRASH = frozenset({"rename", "drop"})


def _marked(case, *, is_fast: bool):
    by, start, pair = case
    marks = () if is_fast else (pytest.mark.torture,)
    return pytest.param(*case, id=f"{by}, {start}: {' - '.join(pair)}", marks=marks)


def _is_core(case) -> bool:
    by, start, pair = case
    return by is IMPL and CORE.issuperset(pair) and start in {"live", "dropped"}


PLAIN = [_marked(case, is_fast=_is_core(case)) for case in CASES]
FAULTY = [_marked(case, is_fast=case in FAST_WITH_A_FAULT) for case in CASES]
DELAYED = [
    _marked(case, is_fast=case == (IMPL, "live", ("append a", "drop a")))
    for case in CASES
    if {"append a", "append a b", "create a", "trim a", "tidy a"} & set(case[2])
]
REFUSALS = [
    _marked(case, is_fast=case in FAST_WITH_A_FAULT)
    for case in CASES
    if IS_DEEP or {"append a", "append a b", "create a"} & set(case[2]) or CORE.issuperset(case[2])
]
IN_THE_TRASH = [
    ("dropped", ("purge a",), ("undrop a",)),
    ("dropped", ("purge a",), ("purge a",)),
    ("created again", ("purge a",), ("undrop a c",)),
    ("elsewhere, dropped", ("purge a",), ("purge a",)),
    ("elsewhere, dropped", ("purge a",), ("undrop a",)),
]
OUTSIDE = [
    ("elsewhere", ("append a",), ("drop a", "purge a")),
    ("elsewhere", ("append a",), ("forget a",)),
    ("elsewhere, dropped", ("purge a",), ("purge a",)),
    ("elsewhere, dropped", ("purge a",), ("undrop a",)),
    ("written", ("register a",), ("append a",)),
    ("written", ("register a",), ("create a",)),
    ("written", ("register a",), ("drop a", "undrop a")),
    ("written", ("register a",), ("register a",)),
]
# Those in which something broke once come first.
LONGER = [
    ("declared", ("append a",), ("drop a", "create a")),
    ("live", ("append a",), ("append a", "trim a")),
    ("dropped", ("create a",), ("drop a",)),
    ("live", ("append a",), ("drop a", "create a", "append a")),
    ("live", ("append a",), ("drop a", "undrop a c", "read c")),
    ("live", ("append a",), ("forget a",)),
    ("live", ("append a", "tidy a"), ("append a", "readall b")),
    ("live", ("drop a", "create a"), ("append a b", "append a")),
    ("live", ("drop a", "purge a"), ("undrop a", "append a")),
    ("live", ("rename a c", "rename b a"), ("append a b",)),
    ("live", ("rename a c", "append c"), ("append a", "append b")),
]
TRIPLES = [
    ("live", ("append a",), ("append a b",), ("append b",)),
    ("live", ("append a",), ("append a",), ("append a",)),
    ("live", ("append a b",), ("drop a",), ("undrop a",)),
    ("live", ("append a b",), ("rename a c",), ("rename b a",)),
    ("dropped", ("undrop a",), ("purge a",), ("create a",)),
    ("created again", ("append a",), ("purge a",), ("undrop a c",)),
    ("declared", ("append a",), ("create a",), ("drop a",)),
]
IN_ALL_WAYS = [
    ("live", ("append a",), ("append a",)),
    ("live", ("append a b",), ("append a",)),
    ("live", ("append a b",), ("read a",)),
    ("live", ("append a",), ("drop a",)),
    ("dropped", ("undrop a",), ("purge a",)),
    ("dropped", ("create a",), ("undrop a",)),
]
A_FAULT = Limits(faults=1, preemptions=1)


@pytest.fixture(autouse=True)
def _model(monkeypatch):
    patch(monkeypatch)


def _race(start: str, *actors: tuple[str, ...], by=IMPL) -> IcebergRace:
    return IcebergRace(STARTS[start], actors, by)


def _pair(by, start, pair) -> IcebergRace:
    return _race(start, *((verb,) for verb in pair), by=by)


def _told(case) -> str:
    start, *actors = case
    return f"{start}: " + " | ".join(" + ".join(verbs) for verbs in actors)


def _must_hold(kind: str, race: IcebergRace, limits: Limits, record_race, **ways: object) -> None:
    report = explore(race, limits, **ways)
    record_race(f"iceberg, {kind}", race, report)
    assert not report.violations, report.violations[0]


@pytest.mark.parametrize(("by", "start", "pair"), PLAIN)
def test_pair_is_explained_by_an_order(by, start, pair, record_race):
    limits = Limits(preemptions=2 if IS_DEEP else 1)
    _must_hold("pairs", _pair(by, start, pair), limits, record_race)


@pytest.mark.parametrize(("by", "start", "pair"), FAULTY)
def test_pair_with_a_fault_is_explained_by_an_order(by, start, pair, record_race):
    _must_hold("pairs with a fault", _pair(by, start, pair), A_FAULT, record_race)


@pytest.mark.parametrize(("by", "start", "pair"), DELAYED)
def test_request_that_arrives_late_makes_nothing_twice(by, start, pair, record_race):
    race = _pair(by, start, pair)
    _must_hold("late requests", race, A_FAULT, record_race, delays=LATE)


@pytest.mark.parametrize("case", IN_THE_TRASH, ids=_told)
def test_request_that_arrives_late_in_the_trash_hurts_nobody(case, record_race):
    _must_hold("late in the trash", _race(*case), A_FAULT, record_race, delays=LATE_IN_THE_TRASH)


@pytest.mark.parametrize(("by", "start", "pair"), REFUSALS)
def test_refused_call_leaves_it_done_or_not(by, start, pair, record_race):
    """What was done is not told as a failure: whoever writes again would write twice."""
    _must_hold("refusals", _pair(by, start, pair), A_FAULT, record_race, fails=True)


@pytest.mark.parametrize("case", OUTSIDE, ids=_told)
def test_directory_that_was_not_made_for_a_table_stays(case, record_race):
    _must_hold("places", _race(*case), Limits(preemptions=1), record_race)


@pytest.mark.torture
@pytest.mark.parametrize("by", [IMPL, STORAGE])
@pytest.mark.parametrize("case", OUTSIDE, ids=_told)
def test_directory_that_was_not_made_for_a_table_stays_whatever_fails(case, by, record_race):
    race = _race(*case, by=by)
    _must_hold("places with a fault", race, A_FAULT, record_race)
    _must_hold("places with a refusal", race, A_FAULT, record_race, fails=True)


@pytest.mark.torture
@pytest.mark.parametrize("case", IN_ALL_WAYS, ids=_told)
def test_pair_in_every_interleaving(case, record_race):
    _must_hold("all interleavings", _race(*case), Limits(), record_race)
    _must_hold("all interleavings with a fault", _race(*case), Limits(faults=1), record_race)


@pytest.mark.torture
@pytest.mark.parametrize("case", LONGER, ids=_told)
def test_longer_programs_are_explained_by_an_order(case, record_race):
    race = _race(*case)
    _must_hold("longer", race, A_FAULT, record_race)
    _must_hold("longer, late", race, A_FAULT, record_race, delays=LATE)
    _must_hold("longer, refused", race, A_FAULT, record_race, fails=True)


@pytest.mark.torture
@pytest.mark.parametrize("case", TRIPLES, ids=_told)
def test_triple_is_explained_by_an_order(case, record_race):
    _must_hold("triples", _race(*case), Limits(preemptions=2), record_race)
    _must_hold("triples with a fault", _race(*case), A_FAULT, record_race)


# -- protocols that are wrong on purpose -----------------------------------------------------------


def _requiring_nothing(monkeypatch) -> None:
    """Commit behind whatever came first."""
    monkeypatch.setattr(version_commit, "on_current", lambda _: [])


def _believing_a_refusal(monkeypatch) -> None:
    """Take one's own version for another's."""
    landed = VersionCommit.is_landed
    monkeypatch.setattr(
        VersionCommit, "is_landed", lambda self, found: landed(self, found) and False
    )


def _trying_the_next_number(monkeypatch) -> None:
    """Take an answer that never came for a lost race."""
    create = Versions.create

    def hasty(self, wanted, known):
        try:
            return create(self, wanted, known)
        except UnknownOutcomeError as exc:
            raise ConcurrentModificationError(str(exc)) from exc

    def landing(commits, send, look) -> None:
        del commits, look
        send()

    monkeypatch.setattr(Versions, "create", hasty)
    monkeypatch.setattr("mooring.iceberg.versions.land", landing)


def _purging_without_a_claim(monkeypatch) -> None:
    """Delete the files of what was in the trash a moment ago."""

    def hasty(self, dropped, progress) -> bool:
        connection = self._connection
        try:
            loaded = connection.client.load_table(("mooring_trash",), dropped.name)
        except NotFoundError:
            return False
        trash._delete_files(connection.read(dropped.id, loaded), progress)
        try:
            connection.client.drop_table(("mooring_trash",), dropped.name)
        except NotFoundError:
            return False
        return True

    monkeypatch.setattr(Trash, "purge", hasty)


def _leaving_the_dead_alone(monkeypatch) -> None:
    """Build on a version whose writer did not give it its name."""
    monkeypatch.setattr(version_commit, "finalize", lambda _: None)


def _finalizing_before_the_decision(monkeypatch) -> None:
    """Let readers of the directory find a version that is not decided."""
    prepare = VersionCommit.prepare

    def hasty(self) -> None:
        prepare(self)
        final = version_commit._final(self._staged, self.wanted.version)
        version_commit.put_final(self.table.place.store, final, self._body)

    monkeypatch.setattr(VersionCommit, "prepare", hasty)


def _committing_one_after_the_other(monkeypatch) -> None:
    """Commit a batch as several requests."""

    def singly(self, wanted) -> list:
        return [self.create(one, None) for one in wanted]

    monkeypatch.setattr(Versions, "commit", singly)


def _asking_whoever_has_the_name(monkeypatch) -> None:
    """Look up a version in another table of the same name."""
    monkeypatch.setattr(
        Versions, "_look", lambda self, commit: self._connection.find(commit.table.id).metadata
    )


def _believing_the_last_answer(monkeypatch) -> None:
    """Take a table that is gone for a version that was not made."""

    def settled(self, failure) -> bool:
        try:
            found = [one.is_landed(self._look(one)) for one in self._commits]
        except NotFoundError:
            raise failure from None
        if False in found:
            raise self._commits[0].taken()
        return any(found)

    monkeypatch.setattr(version_commit._Landing, "_is_settled", settled)


def _renaming_again(monkeypatch) -> None:
    """Send a rename again whose answer was lost."""
    plain = trash.rename

    def again(connection, source, target, **ways):
        try:
            return plain(connection, source, target, **ways)
        except UnknownOutcomeError:
            return plain(connection, source, target, **ways)

    monkeypatch.setattr(trash, "rename", again)
    monkeypatch.setattr(trash, "_is_at", lambda *_: False)


def _reviving_whatever_was_dropped_before(monkeypatch) -> None:
    """Look into the trash alone, and bring back what was the newest in it."""

    def hasty(self, table, new):
        found = self.revivable(table)
        if found is None:
            raise self._nothing(table)
        place = ObjectId((trash.TRASH, found.name))
        loaded = trash.rename(self._connection, place, new)
        return self._connection.read(new, loaded)

    monkeypatch.setattr(Trash, "undrop", hasty)


def _retracting_blindly(monkeypatch) -> None:
    """Drop what was declared, though somebody may have written to it since."""

    def hasty(self, table) -> None:
        self._connection.client.drop_table(table.id.parent.names, table.id.name)

    monkeypatch.setattr(Trash, "retract", hasty)


def _writing_where_others_wrote(monkeypatch) -> None:
    """Make a first version of a table that is being registered."""
    monkeypatch.setattr(VersionCommit, "_require_known", lambda _: None)


def _declaring_again(monkeypatch) -> None:
    """Ask again for an entry, after an answer that never came."""
    plain = NewEntries._send

    def again(self, *request):
        try:
            return plain(self, *request)
        except UnknownOutcomeError:
            return plain(self, *request)

    monkeypatch.setattr(NewEntries, "_send", again)


PLAINLY, TWICE = Limits(preemptions=1), Limits(preemptions=2)
BROKEN = [
    (_requiring_nothing, ("live", ("append a",), ("append a",)), PLAINLY, {}),
    (_believing_a_refusal, ("live", ("append a",), ("read a",)), A_FAULT, {}),
    (_trying_the_next_number, ("live", ("append a",), ("read a",)), A_FAULT, {}),
    (_purging_without_a_claim, ("dropped", ("purge a",), ("undrop a",)), PLAINLY, {}),
    (_leaving_the_dead_alone, ("live", ("append a",), ("append a",)), A_FAULT, {}),
    (_finalizing_before_the_decision, ("live", ("append a",), ("append a",)), PLAINLY, {}),
    (_committing_one_after_the_other, ("live", ("append a b",), ("read a",)), PLAINLY, {}),
    (_asking_whoever_has_the_name, LONGER[0], A_FAULT, {}),
    (_believing_the_last_answer, ("live", ("append a",), ("drop a",)), A_FAULT, {"delays": LATE}),
    (_renaming_again, ("live", ("drop a",), ("undrop a",)), A_FAULT, {}),
    (
        _reviving_whatever_was_dropped_before,
        ("created again", ("drop a",), ("undrop a",)),
        TWICE,
        {},
    ),
    (_retracting_blindly, ("dropped", ("create a",), ("append a",)), A_FAULT, {"fails": True}),
    (_writing_where_others_wrote, ("written", ("register a",), ("append a",)), PLAINLY, {}),
    (_declaring_again, ("dropped", ("create a",), ("drop a",)), A_FAULT, {}),
]


@pytest.mark.parametrize(
    ("breaking", "case", "limits", "ways"),
    BROKEN,
    ids=[case[0].__name__.strip("_") for case in BROKEN],
)
def test_wrong_protocol_is_caught(breaking, case, limits, ways, monkeypatch):
    breaking(monkeypatch)
    limits = Limits(limits.faults, limits.preemptions, stop_at_first=True)
    require_caught(explore(_race(*case), limits, **ways).violations)
