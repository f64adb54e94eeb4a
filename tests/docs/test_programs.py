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
from tests.docs.documents import ROOT


@pytest.fixture
def demo():
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_demo_and_what_to_try_next(demo, shell):
    mooring.connect("lake", author=demo.AUTHOR).create_table("left over", [{"n": 1}])
    # In a process of its own: it starts a Java, which would stay in ours.
    done = subprocess.run(
        [sys.executable, demo.__file__], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    printed = done.stdout
    assert "removing ./lake, left by an earlier demo" in printed
    lake = mooring.connect("lake")
    assert lake.table("flights").count() == 336_776
    assert lake.list_tables() == ["airlines", "airports", "flights", "planes"]
    assert lake.list_tables("reference") == ["carriers", "weather"]
    assert lake.table("planes").version == 2
    suggested = re.findall(r"^    (mooring .+?)(?:\s+# (refused)?.*)?$", printed, re.MULTILINE)
    assert len(suggested) == len(demo.NEXT)
    for line, refused in suggested:
        told, code = shell(line)
        assert code == (5 if refused else 0), (line, told)


def test_demo_spares_what_it_did_not_make(demo):
    mooring.connect("lake", author="somebody").create_table("precious", [{"n": 1}])
    with pytest.raises(SystemExit, match="was not made by this demo"):
        demo.main()
    assert mooring.connect("lake").list_tables() == ["precious"]


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
