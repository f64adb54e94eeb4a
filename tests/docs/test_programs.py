"""The demo and the benchmarks run, and what the demo suggests works."""

import importlib.util
import json
import re
import subprocess
import sys

import pytest
from bench import listing
from bench.report import describe_machine, print_json, print_tables

import mooring
from mooring.changes import ChangeTable
from tests.docs.documents import ROOT


@pytest.fixture
def load(monkeypatch):
    """Load one of the examples."""
    monkeypatch.syspath_prepend(ROOT / "examples")

    def load(name):
        spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def _run(module):
    """Run an example in a process of its own: it starts a Java, which would stay in ours."""
    done = subprocess.run(
        [sys.executable, module.__file__], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout


def _try_what_is_suggested(printed, module, shell):
    suggested = re.findall(r"^    (mooring .+?)(?:\s+# (refused)?.*)?$", printed, re.MULTILINE)
    assert len(suggested) == len(module.NEXT)
    for line, refused in suggested:
        told, code = shell(line)
        assert code == (5 if refused else 0), (line, told)


@pytest.mark.interop
def test_demo_and_what_to_try_next(load, shell):
    demo = load("demo")
    printed = _run(demo)
    lake = mooring.connect("metastore+lake")
    changes = ChangeTable(lake, "air$flights")
    weeks = demo.make_weeks(load("stage").load_data()["flights"])
    arrived = sum(week.flights.num_rows for week in weeks)
    cancelled = sum(week.cancelled.num_rows for week in weeks[: -demo.LAST_WEEKS])
    assert arrived == 336_776
    assert changes.count() == lake.table("air$published").count() == arrived - cancelled
    assert _rows(changes) == _rows(lake.table("air$published"))
    _try_what_is_suggested(printed, demo, shell)


def _rows(table):
    columns = ["time_hour", "carrier", "flight", "arr_delay"]
    return {tuple(row.values()) for row in table.to_arrow(columns=columns).to_pylist()}


def test_the_demo_spares_what_it_did_not_make(load):
    demo = load("demo")
    mooring.connect("metastore+lake", author="somebody").create_namespace("precious")
    with pytest.raises(SystemExit, match="was not made by this demo"):
        demo.main()
    assert mooring.connect("metastore+lake").list_namespaces() == ["precious"]


def test_bench_prints_ratios_and_targets(capsys, monkeypatch):
    monkeypatch.setattr(listing, "SIZES", {True: (100, 2)})
    section = listing.run(quick=True)
    print_tables(describe_machine(), [section])
    assert re.search(r"targets met: \d of 7", capsys.readouterr().out)
    print_json(describe_machine(), [section])
    (told,) = json.loads(capsys.readouterr().out)["sections"]
    targets = [figure for figure in told["figures"] if figure["target"]]
    # The migration's target stands alone, without another's time beside it.
    ratios = [figure["times_faster"] for figure in targets if figure["times_faster"] is not None]
    assert len(ratios) == 6
    assert min(ratios) > 0
