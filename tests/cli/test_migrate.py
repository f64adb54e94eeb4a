"""`mooring migrate`: what it does, what it says, and how it ends.

Spec: directory-namespace, "Migration from V1 to V2".
"""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import mooring

MOORING = str(Path(sys.executable).with_name("mooring"))
DONE, FAILED, USAGE, NOT_FOUND, CONFLICT, REFUSED = range(6)
ROWS = [{"id": 1}]


@pytest.fixture
def old(tmp_path):
    """A directory of tables that has no manifest, and one of a name that no manifest can hold."""
    root = tmp_path / "old"
    catalog = mooring.connect(root, author="maker", manifest_enabled=False)
    for name in ("flights", "gone", "ports"):
        catalog.create_table(name, ROWS)
    catalog.drop_table("gone", ttl="never")
    return root


@pytest.fixture
def odd(old):
    (old / "a$b.lance").mkdir()
    (old / "a$b.lance" / "data").write_bytes(b"x")
    return old


def everything(root):
    return {
        str(path): path.stat().st_mtime_ns
        for path in root.rglob("*")
        if not path.name.startswith("_mooring-")
    }


def names(root, **flags):
    return mooring.connect(root, **flags).list_tables()


def test_a_migration_tells_what_it_added_and_what_comes_next(run, old):
    result = run("migrate", old)
    assert result.exit_code == DONE, result.output
    assert "added 2 tables to the manifest, 0 were there already, left out 1" in result.stderr
    assert "dir_listing_enabled=false" in result.stderr
    assert "--no-listing" in result.stderr
    assert names(old, dir_listing_enabled=False) == ["flights", "ports"]
    assert names(old, manifest_enabled=False) == ["flights", "ports"]


def test_what_is_left_out_is_listed_and_no_failure(run, odd):
    result = run("migrate", odd)
    assert result.exit_code == DONE
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["TABLE", "RESULT", "REASON", "DETAIL"]
    assert [line.split()[0] for line in lines[1:]] == ["a$b", "gone"]
    assert "mooring table register NEW_NAME --location 'a$b.lance'" in lines[1]
    assert 'mooring table undrop gone"' in lines[2]
    assert "1 live table cannot be found by the manifest alone" in result.stderr
    assert "dir_listing_enabled=false" not in result.stderr


def test_the_way_that_is_told_for_a_name_that_cannot_be_leads_on(run, odd):
    run("migrate", odd)
    done = run("-c", odd, "table", "register", "both", "--location", "a$b.lance")
    assert done.exit_code == DONE, done.output
    result = run("migrate", odd)
    assert "registered under another name" in result.stdout
    assert "dir_listing_enabled=false" in result.stderr
    assert names(odd, dir_listing_enabled=False) == ["both", "flights", "ports"]


def test_a_second_migration_has_nothing_to_do(run, old):
    run("migrate", old)
    before = everything(old)
    result = run("migrate", old)
    assert result.exit_code == DONE
    assert "added 0 tables to the manifest, 2 were there already" in result.stderr
    assert everything(old) == before


def test_a_dry_run_shows_all_and_changes_nothing(run, odd):
    before = everything(odd)
    result = run("migrate", odd, "--dry-run")
    assert result.exit_code == DONE
    shown = [line.split()[0] for line in result.stdout.splitlines()[1:]]
    assert shown == ["flights", "ports", "a$b", "gone"]
    assert "dry run: would add 2 tables" in result.stderr
    assert everything(odd) == before


def test_programs_get_one_record(run, odd):
    planned = json.loads(run("migrate", odd, "--dry-run", "-o", "json").stdout)
    assert planned["dry_run"] is True
    assert planned["to_add"] == ["flights", "ports"]
    assert (planned["added"], planned["complete"]) == ([], False)
    done = json.loads(run("migrate", odd, "-o", "ndjson").stdout)
    assert (done["added"], done["to_add"]) == (["flights", "ports"], [])
    assert {found["table"]: found["reason"] for found in done["skipped"]} == {
        "a$b": "name holds the delimiter",
        "gone": "dropped",
    }
    assert done["complete"] is False
    assert "cannot be found by the manifest alone" in done["advice"]


def test_csv_has_the_same_fields(run, old):
    head, row = run("migrate", old, "-o", "csv").stdout.splitlines()
    record = json.loads(run("migrate", old, "-o", "json").stdout)
    assert head == ",".join(record)
    assert row.startswith(f"{old},false,true,")


def test_quiet_shows_only_what_is_left_out(run, old):
    result = run("migrate", old, "-q")
    assert result.stderr == ""
    assert "gone" in result.stdout


def test_rows_of_tables_dropped_since_are_removed(run, old):
    run("migrate", old)
    mooring.connect(old, manifest_enabled=False).drop_table("ports")
    result = run("migrate", old)
    assert "added 0 tables to the manifest, removed 1" in result.stderr
    assert names(old, dir_listing_enabled=False) == ["flights"]


def test_tables_that_a_catalog_without_listings_does_not_show_are_migrated(run, old):
    shown = run("ls", old, "--no-listing")
    assert "flights" not in shown.stdout
    assert run("migrate", old, "--no-listing").exit_code == DONE
    assert run("ls", old, "--no-listing").stdout == "flights\nports\n"


@pytest.mark.parametrize(
    ("code", "args"),
    [
        (NOT_FOUND, ["nowhere"]),
        (REFUSED, ["old", "--read-only"]),
        (REFUSED, ["old", "--no-manifest"]),
        (DONE, ["old", "--read-only", "--dry-run"]),
        (USAGE, ["old", "-c", "new"]),
    ],
)
def test_exit_code(run, old, code, args):
    result = run("migrate", *args)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert not (old / "__manifest").exists()


def test_a_terminal_sees_a_bar(old):
    """STYLE, section 9: progress bars only on a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [MOORING, "migrate", str(old)], stdout=subprocess.DEVNULL, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
    os.close(ours)
    assert process.returncode == DONE
    assert b"migrating" in shown
    assert b"added 2 tables" in shown


def _read(terminal):
    """Read from a terminal; on Linux its other end closes with an error."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


def test_elsewhere_there_is_no_bar(run, old):
    assert "migrating" not in run("migrate", old).output
