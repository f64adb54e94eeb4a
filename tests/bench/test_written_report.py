"""The report: from kept results, with what was not measured shown as that."""

import re
import sys

import pytest
from bench import __main__ as program
from bench.curves import Curve, Line
from bench.figures import Figure
from bench.groups import Groups
from bench.markdown import write_report
from bench.measuring import measure
from bench.results import Result, keep, load, load_all
from bench.sections import Section

MACHINE = {"cores": "2", "load": "0.1, 0.2, 0.3", "mooring": "1.0", "pylance": "14.0.2"}
CURVE = Curve(
    "List tables",
    "catalog size",
    "tables",
    (Line("mooring", ((10, 0.001), (100, 0.002))), Line("pylance", ((10, 0.1), (100, 1.0)))),
    group="growth",
)
LISTING = Result(
    "listing",
    Section(
        "Listing tables",
        [
            Figure("list", [1.0, 1.0], beside="pylance", theirs=[9.0, 11.0], is_telling=True),
            Figure("scan a|b", [2.0, 2.0], beside="scan", theirs=[1.0, 1.0], within=1.5),
            CURVE,
        ],
        ["a note"],
    ),
    "2026-01-02 03:04 UTC",
    12.0,
    machine=MACHINE,
)
METASTORE = Result(
    "metastore",
    Section("Metastore", [Figure("get", 1.0, beside="deltacat", missing="deltacat: no Python")]),
    "2026-01-01 00:00 UTC",
    machine=MACHINE | {"mooring": "0.9"},
)
BROKEN = Result("spark", None, "2026-01-03 00:00 UTC", failure="ended with 1: no Java")


@pytest.fixture
def report(tmp_path):
    """Give what a report says of results."""

    def write(*results):
        path, *_ = write_report(results, tmp_path)
        return path.read_text("utf-8")

    return write


def test_every_section_says_how_to_measure_it_again_and_on_what_it_was_measured(report):
    told = report(LISTING, METASTORE)
    assert "`make bench ONLY=listing`" in told
    assert '`.venv/bin/python -m bench listing --figure "list"`' in told
    assert '`.venv/bin/python -m bench listing --group "growth"`' in told
    first, second = re.findall(r"^- measured .*", told, re.MULTILINE)
    assert "2026-01-02 03:04 UTC in 12 s" in first
    assert "mooring 1.0" in first
    assert "2026-01-01 00:00 UTC" in second
    assert "mooring 0.9" in second


def test_ratios_stand_with_their_spread_and_targets_with_their_verdict(report):
    told = report(LISTING)
    assert (
        "| list | 1,000.0 ms | pylance | 10.0 s | 10.0x faster | 9.0x to 11.0x, 2 rounds |" in told
    )
    assert "| within 1.5x of it | **missed** |" in told
    assert "Targets: 0 met, 1 missed." in told
    # A cell does not end where its text has the sign that ends one.
    assert "| scan a/b |" in told


def test_what_was_not_measured_is_shown_with_the_reason(report):
    told = report(LISTING, METASTORE, BROKEN)
    assert "| metastore | get | deltacat: no Python |" in told
    assert "| spark | all of it | ended with 1: no Java |" in told
    assert "| get | 1,000.0 ms | deltacat | not measured | 1 run |" in told


def test_no_address_is_kept_of_a_reason(report, tmp_path):
    failure = 'no "a:b" in c (https://host/x) at http://host'
    keep(Result("spark", None, "2026-01-03 00:00 UTC", failure=failure), tmp_path / "kept")
    told = report(*load_all(tmp_path / "kept"))
    assert '| spark | all of it | no "a:b" in c at |' in told


def test_each_picture_is_in_the_report_and_no_other_is_left(report, tmp_path):
    report(LISTING)
    (tmp_path / "pictures" / "old.svg").write_text("<svg/>")
    told = report(LISTING)
    shown = set(re.findall(r"\(pictures/(.*?)\)", told))
    assert shown == {path.name for path in (tmp_path / "pictures").iterdir()}
    assert shown == {"listing-ratios.svg", "listing-list-tables.svg"}


def test_results_are_read_back_as_they_were_kept(tmp_path):
    for result in (LISTING, METASTORE, BROKEN):
        keep(result, tmp_path)
    assert load_all(tmp_path) == [LISTING, METASTORE, BROKEN]
    assert load("tables", tmp_path) is None


def test_a_group_that_fails_is_told_and_the_next_is_measured(capsys):
    def fail():
        raise OSError("the disk is full")

    groups = Groups()
    found = [
        *groups.measure("first", fail),
        *groups.measure("second", lambda: [Figure("a", 1.0)]),
    ]
    failed, measured = found
    assert failed.is_failure
    assert failed.missing == "OSError: the disk is full"
    assert measured.group == "second"
    assert "first ... failed" in capsys.readouterr().err


def test_only_the_groups_that_are_asked_for_are_measured():
    groups = Groups(frozenset({"second"}))
    assert groups.measure("first", lambda: [Figure("a", 1.0)]) == []
    assert [one.what for one in groups.measure("second", lambda: [Figure("b", 1.0)])] == ["b"]


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """Run the program on results of its own, with what measuring would find."""
    monkeypatch.setattr(program, "_RESULTS", tmp_path)
    asked = []

    def run(found, *words):
        def measure(name, *, quick, groups=()):
            asked.append((name, tuple(groups)))
            return found[name]

        monkeypatch.setattr(program, "measure", measure)
        monkeypatch.setattr(sys, "argv", ["bench", *words, "--out", str(tmp_path / "out")])
        return program.main()

    run.asked = asked
    return run


def test_a_benchmark_that_fails_ends_with_1_after_all_others(bench, tmp_path, capsys):
    assert bench({"spark": BROKEN, "listing": LISTING}, "spark", "listing") == 1
    assert [name for name, _ in bench.asked] == ["spark", "listing"]
    assert "FAILED spark: ended with 1: no Java" in capsys.readouterr().err
    assert "10.0x faster" in (tmp_path / "out" / "report.md").read_text("utf-8")


def test_a_benchmark_that_dies_is_told_by_its_last_line(capfd):
    found = measure("no_such_bench", quick=True)
    assert found.section is None
    assert found.failure == (
        "ended with 1: ModuleNotFoundError: No module named 'bench.no_such_bench'"
    )
    assert "Traceback" in capfd.readouterr().err


def test_what_was_found_before_stays_where_a_new_attempt_fails(bench, tmp_path):
    assert bench({"listing": LISTING}, "listing") == 0
    failed = Result("listing", None, "2026-02-02 02:02 UTC", failure="ended with 1")
    assert bench({"listing": failed}, "listing") == 1
    kept = load("listing", tmp_path)
    assert kept.section == LISTING.section
    assert kept.failure == "2026-02-02 02:02 UTC: ended with 1"


def test_one_figure_is_measured_by_its_group_alone_and_printed(bench, capsys, tmp_path):
    grouped = [Figure("list", 1.0, group="warm"), Figure("scan", 2.0, group="cold")]
    kept = Result("listing", Section("Listing", grouped), "2026-01-01 00:00 UTC")
    keep(kept, tmp_path)
    assert bench({"listing": kept}, "--figure", "SCA") == 0
    assert bench.asked == [("listing", ("cold",))]
    told = capsys.readouterr().out
    assert "scan" in told
    assert "list  " not in told
    assert not (tmp_path / "out").exists()


def test_words_of_no_figure_are_refused_with_what_to_do(bench, tmp_path, capsys):
    keep(LISTING, tmp_path)
    assert bench({}, "--figure", "no such thing") == 2
    assert "name its benchmark" in capsys.readouterr().err


def test_rendering_measures_nothing(bench, tmp_path):
    keep(LISTING, tmp_path)
    assert bench({}, "--render") == 0
    assert bench.asked == []
    assert "Listing tables" in (tmp_path / "out" / "report.md").read_text("utf-8")
