"""The matrix says what came out, and nothing better than that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.interop.gathering import CLAIMS, RAN, VERSIONS, Gatherer
from tests.interop.matrix import (
    FAILED,
    NOT_RUN,
    PAGE,
    PASSED,
    Claim,
    Count,
    Result,
    read_kept,
    render_lines,
    render_page,
    take_over,
    write_kept,
)
from tests.interop.roster import ROSTER

CLAIM = Claim("lancedb", "they", "Lance REST", ("list", "read"))
HERE = "tests/interop/test_matrix.py::test_a_tick_stands_only_where_all_ran_and_passed"
RESULT = Result(HERE, CLAIM, PASSED, "2026-11-01", "0.40.0")

MAVEN = (
    "Skipped: not run: mvn failed: \x1b[0m[ERROR] Failed to execute goal a:b:copy (default-cli) on"
    " project standalone-pom: Unable to find/resolve artifact. a:b:jar:1 was not found in"
    " https://a.host/maven2 during a previous attempt -> [Help 1]"
)


def not_run(reason="not run: there is no mvn"):
    return replace(RESULT, outcome=NOT_RUN, reason=reason, version=None)


@pytest.mark.parametrize(
    ("outcomes", "shown"),
    [
        ([PASSED, PASSED], "✓ 2"),
        ([PASSED, FAILED, NOT_RUN], "✗ 1 of 3"),
        ([PASSED, NOT_RUN], "1 of 2"),
        ([NOT_RUN], "not run"),
        ([], ""),
    ],
)
def test_a_tick_stands_only_where_all_ran_and_passed(outcomes, shown):
    assert str(Count.of(replace(RESULT, outcome=one) for one in outcomes)) == shown


def test_what_did_not_run_is_told_with_its_reason_once():
    page = render_page([not_run(), replace(not_run(), test=f"{HERE}[2]")])
    assert "| lancedb | not known | Lance REST | not run (1) | not run (1) |" in page
    assert page.count("not run: there is no mvn") == 1
    assert "✓" not in page.split("## ", 1)[1]


def test_what_a_peer_cannot_do_has_its_reason():
    claim = Claim("polars", "they", "Iceberg REST", ("list",))
    other = Claim("pyiceberg", "they", "Iceberg REST", ("list", "drop"))
    page = render_page([replace(RESULT, claim=one) for one in (claim, other)])
    row = next(line for line in page.splitlines() if line.startswith("| polars "))
    assert "| ✓ 1 | \N{EN DASH} (" in row
    assert "polars drops no tables" in page


def test_what_nobody_tried_is_told_as_such():
    claims = [Claim("lancedb", "they", on, (does,)) for on, does in (("a", "list"), ("b", "read"))]
    page = render_page([replace(RESULT, claim=one) for one in claims])
    assert "| lancedb | 0.40.0 | a | ✓ 1 | no test | 2026-11-01 |" in page


def test_every_peer_has_a_place_even_if_nothing_runs_it():
    page = render_page([RESULT])
    assert all(known.title in page for known in ROSTER.values())
    assert "| Lakekeeper | not run: its server is in no package registry" in page
    assert f"| {ROSTER['nessie'].title} | not run: not in this report |" in page


def test_the_page_that_is_kept_knows_every_peer():
    page = PAGE.read_text(encoding="utf-8")
    assert [known.title for known in ROSTER.values() if known.title not in page] == []


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Skipped: not run: no Python that deltacat runs on", "no Python that deltacat runs on"),
        ("Skipped: not run, the time is over: tests/a.py::test_b", "the time was over"),
        (MAVEN, "Maven: Unable to find/resolve artifact. a:b:jar:1 was not found"),
        ("not run: cannot open /home/ada/.peers/x, or so", "cannot open …, or so"),
    ],
)
def test_reasons_are_those_of_no_machine(said, told):
    assert replace(RESULT, reason=said).plain_reason == told


def test_what_was_not_selected_stays_as_it_was(tmp_path):
    other = replace(RESULT, claim=replace(CLAIM, peer="daft"), outcome=NOT_RUN, version=None)
    write_kept([RESULT, other], tmp_path / "kept.json")
    new = replace(RESULT, test=f"{HERE}[2]", day="2026-11-02")
    merged = take_over(read_kept(tmp_path / "kept.json"), [new])
    assert merged == [other, RESULT, new]


def test_a_newer_result_takes_the_place_of_an_older_one_even_if_it_is_worse():
    assert take_over([RESULT], [not_run()]) == [not_run()]


def test_results_of_another_version_go():
    new = replace(RESULT, test=f"{HERE}[2]", version="0.41.0")
    assert take_over([RESULT], [new]) == [new]


def test_results_of_tests_that_are_gone_go():
    gone = [replace(RESULT, test=name) for name in ("tests/x.py::test_a", f"{HERE}_no_more")]
    assert take_over(gone, []) == []


# -- what tests say --------------------------------------------------------------------------------


def test_names_are_those_of_parameters():
    said = {"they": "list read", "we": "drop", "on": "{kind}"}
    assert Claim.read({"name": "daft", "kind": "V1"}, "{name}", **said) == [
        Claim("daft", "they", "V1", ("list", "read")),
        Claim("daft", "we", "V1", ("drop",)),
    ]


def test_a_claim_may_hold_for_some_parameters_alone():
    said = {"they": "list", "on": "V1", "where": {"irc": "nessie"}}
    assert Claim.read({"irc": "fixture"}, "daft", **said) == []
    assert len(Claim.read({"irc": "nessie"}, "daft", **said)) == 1


@pytest.mark.parametrize(
    ("peer", "said"),
    [("nobody", {"they": "list"}), ("daft", {"they": "lost"}), ("daft", {"i": ""})],
)
def test_words_that_there_are_not_are_refused(peer, said):
    with pytest.raises(ValueError, match="no"):
        Claim.read({}, peer, on="V1", **said)


# -- what is gathered ------------------------------------------------------------------------------


def report(when, outcome, reason="", **more):
    longrepr = ("file", 1, f"Skipped: {reason}") if outcome == "skipped" else None
    sent = [(CLAIMS, [["lancedb", "they", "V1", ["list"]], ["daft", "they", "V1", ["list"]]])]
    sent += more.items()
    return pytest.TestReport(HERE, ("", 0, ""), {}, outcome, longrepr, when, user_properties=sent)


def gathered(*reports):
    gatherer = Gatherer()
    for one in reports:
        gatherer.pytest_runtest_logreport(one)
    return {one.claim.peer: one for one in gatherer.results}


def test_a_test_that_passed_is_told_with_the_versions_that_ran():
    versions = {VERSIONS: {"lancedb": "0.40.0", "daft": None}}
    found = gathered(report("setup", "passed"), report("call", "passed", **versions))
    assert {one.outcome for one in found.values()} == {PASSED}
    assert found["lancedb"].version == "0.40.0"


@pytest.mark.parametrize(
    "reports",
    [
        [("setup", "failed")],
        [("setup", "passed"), ("call", "failed"), ("teardown", "passed")],
        [("setup", "passed"), ("call", "passed"), ("teardown", "failed")],
        [("setup", "passed"), ("???", "failed")],
    ],
)
def test_a_failure_in_any_phase_is_one(reports):
    found = gathered(*(report(*one) for one in reports))
    assert {one.outcome for one in found.values()} == {FAILED}


def test_a_test_that_was_skipped_did_not_run():
    found = gathered(report("setup", "skipped", "not run: no jar"), report("teardown", "passed"))
    assert {(one.outcome, one.plain_reason) for one in found.values()} == {(NOT_RUN, "no jar")}


@pytest.mark.parametrize("outcome", ["passed", "skipped"])
def test_of_several_peers_only_those_ran_that_did(outcome):
    found = gathered(report("call", outcome, "daft is missing", **{RAN: ["lancedb"]}))
    assert (found["lancedb"].outcome, found["daft"].outcome) == (PASSED, NOT_RUN)
    assert found["daft"].reason


def test_the_terminal_shows_who_did_what():
    assert render_lines([RESULT]) == [
        "What peers do with ours:",
        "  lancedb 0.40.0, Lance REST: list ✓ 1, read ✓ 1",
    ]
