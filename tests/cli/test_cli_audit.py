"""``mooring audit`` and ``mooring inventory``: what they print, ask and end with."""

from __future__ import annotations

import csv
import io
import json
import os
import time

import pytest

import mooring
from tests.upkeep.faults import fill, missing_data, orphan, rows, site, stranger

DAYS_S = 8 * 86_400


@pytest.fixture
def catalog(tmp_path):
    catalog = mooring.connect(tmp_path / "lake", author="ada")
    fill(catalog, "ports")
    return catalog


@pytest.fixture
def told(run, catalog):
    """Run the program on the catalog, by a path that is relative, and check its end."""

    def invoke(*words, code=0):
        done = run(words[0], "-c", "lake", *words[1:])
        assert done.exit_code == code, (done.exit_code, done.output)
        return done

    return invoke


def make_old(root):
    then = time.time() - DAYS_S
    for directory, _, files in os.walk(root):
        for file in files:
            os.utime(os.path.join(directory, file), (then, then))  # noqa: PTH118


def test_a_clean_catalog_ends_with_0(told, catalog):
    done = told("audit")
    assert done.stdout == ""
    assert "looked at 1 table: all is well" in done.stderr
    assert json.loads(told("audit", "-o", "json").stdout) == []


def test_findings_end_with_1_and_information_with_0(told, catalog, tmp_path):
    stranger(catalog, "ports")
    found = json.loads(told("audit", "-o", "json").stdout)
    assert [(one["severity"], one["path"]) for one in found] == [("info", "backup")]

    orphan(catalog, "ports")
    make_old(tmp_path / "lake")
    found = json.loads(told("audit", "-o", "json", code=1).stdout)
    assert [one["kind"] for one in found] == ["unnamed-directory", "orphan-file"]
    assert found[1] == {
        "kind": "orphan-file",
        "severity": "warning",
        "table": "ports",
        "path": "ports.lance/data/0101orphan.lance",
        "message": "a file that no version names is left by a writer that never committed",
        "files": 1,
        "bytes": 27,
        "repair": "delete-files",
        "advice": None,
    }
    only = told("audit", "--kind", "unnamed-directory", "-o", "csv")
    assert [row["kind"] for row in csv.DictReader(io.StringIO(only.stdout))] == [
        "unnamed-directory"
    ]


def test_repairs_are_shown_asked_for_and_done(told, catalog, tmp_path):
    orphan(catalog, "ports")
    make_old(tmp_path / "lake")

    plan = told("audit", "--repair", "--dry-run", code=1)
    assert "delete-files" in plan.stdout
    assert "would do 1 repair" in plan.stderr
    assert "say --yes" in told("audit", "--repair", code=5).stderr
    assert site(catalog, "ports").place.store.head("ports.lance/data/0101orphan.lance")

    done = told("audit", "--repair", "--yes", "-o", "json")

    assert [(one["kind"], one["result"]) for one in json.loads(done.stdout)] == [
        ("orphan-file", "repaired")
    ]
    told("audit")
    assert catalog.table("ports").count() == 38


def test_a_restore_is_done_only_where_its_kind_is_named(told, catalog):
    missing_data(catalog, "ports")

    left = told("audit", "--repair", "--yes", code=1)
    assert "restore is done with --kind missing-file" in left.stderr
    done = told("audit", "--repair", "--yes", "--kind", "missing-file")
    assert "version 1 was restored, as version 4" in done.stderr
    assert catalog.table("ports").count() == 20


def test_what_makes_no_sense_is_a_usage_error(told, catalog):
    assert "no kind of finding" in told("audit", "--kind", "odd", code=2).stderr
    assert "is no age" in told("audit", "--older-than", "never", code=2).stderr
    assert "no namespace" in told("audit", "nowhere", code=3).stderr
    assert "no column" in told("inventory", "--sort", "odd", code=2).stderr


def test_no_secret_is_printed(told, catalog):
    missing_data(catalog, "ports")
    said = told("audit", "--storage", "aws_secret_access_key=hush", code=1)
    assert "hush" not in said.output


def test_an_inventory_in_every_format(told, catalog):
    catalog.create_table("small", rows(1))
    catalog.update_table("small", {"owner": "grace"})
    found = json.loads(told("inventory", "-o", "json").stdout)
    assert [(one["name"], one["rows"], one["properties"]) for one in found] == [
        ("ports", 38, {}),
        ("small", 1, {"owner": "grace"}),
    ]
    by_rows = told("inventory", "-o", "csv", "--sort", "rows").stdout
    assert [row["name"] for row in csv.DictReader(io.StringIO(by_rows))] == ["ports", "small"]
    by_name = told("inventory", "-o", "ndjson").stdout.splitlines()
    # Lance keeps nobody's name with a deletion, which is what was done to the first.
    assert [json.loads(line)["written_by"] for line in by_name] == [None, "ada"]
    shown = told("inventory")
    assert "owner=grace" in shown.stdout
    assert "2 tables: 39 rows in 3 fragments" in shown.stderr
    sums = json.loads(told("inventory", "--totals", "-o", "json").stdout)
    assert (sums["tables"], sums["rows"]) == (2, 39)


def test_an_inventory_is_kept_as_a_table(told, catalog):
    said = told("inventory", "--into", "kept")
    assert "kept 1 rows in 'kept': version 1" in said.stderr
    assert catalog.table("kept").count() == 1
