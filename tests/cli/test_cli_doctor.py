"""What the doctor finds."""

import json

import pytest

import mooring
from mooring.directory.decisions import State


@pytest.fixture
def findings(on):
    def diagnose(*args):
        result = on("doctor", "-o", "json", *args)
        return result.exit_code, json.loads(result.stdout)

    return diagnose


def _of(rows, section):
    return {row["name"]: row for row in rows if row["section"] == section}


def test_a_healthy_catalog(findings):
    code, rows = findings()
    assert code == 0
    assert {row["status"] for row in rows} == {"ok", "skipped"}
    counts = {name: row["value"] for name, row in _of(rows, "tables").items()}
    assert counts == {"live": "7", "dropped": "2", "deregistered": "1"}
    assert _of(rows, "catalog")["adopted"]["value"] == "yes"


def test_the_probe_writes_only_when_asked(findings, lake):
    before = sorted(path.name for path in lake.iterdir())
    _, rows = findings()
    assert _of(rows, "store")["safe"]["status"] == "skipped"
    _, rows = findings("--write-probe")
    assert _of(rows, "store")["safe"]["value"] == "yes"
    assert _of(rows, "store")["clock skew"]["status"] == "ok"
    _, rows = findings("--write-probe", "--read-only")
    assert _of(rows, "store")["safe"]["status"] == "skipped"
    assert sorted(path.name for path in lake.iterdir()) == before


@pytest.mark.parametrize(
    ("state", "verb"),
    [
        (State.REVIVING, "table undrop"),
        (State.UNDROPPING, "table undrop"),
        (State.CREATING, "trash purge"),
        (State.PURGING, "trash purge"),
    ],
)
def test_a_verb_that_was_cut_off(findings, lake, state, verb):
    chains = mooring.connect(lake).backend._chains
    chains.advance(chains.read("old"), state, action="test", deleted_at_ms=1)
    code, rows = findings()
    assert code == 0
    found = _of(rows, "table")["old"]
    assert (found["value"], found["status"]) == (state.value, "warning")
    assert found["note"].endswith(f"mooring {verb} old")


def test_a_drop_in_the_future(findings, lake):
    chains = mooring.connect(lake).backend._chains
    chains.advance(chains.read("old"), State.DELETED, action="drop", deleted_at_ms=2**42)
    _, rows = findings()
    assert "clock" in _of(rows, "table")["old"]["note"]


def test_leftovers_and_names_that_no_command_can_say(findings, lake):
    (lake / ".mooring-tmp-0123").touch()
    (lake / "x.deleted.lance").mkdir()
    (lake / ".lance").mkdir()
    _, rows = findings()
    assert list(_of(rows, "leftover")) == [".mooring-tmp-0123"]
    assert list(_of(rows, "name")) == [".lance", "x.deleted.lance"]


def test_a_catalog_that_is_not_there_is_a_problem(run):
    result = run("doctor", "./x", "-o", "json")
    rows = json.loads(result.stdout)
    assert result.exit_code == 1
    assert _of(rows, "store")["reachable"]["status"] == "problem"
    assert _of(rows, "setting")["catalog"]["value"] == "./x"


def test_without_a_catalog_the_settings_are_shown(run):
    result = run("doctor")
    assert result.exit_code == 1
    assert "no catalog is named" in result.stdout
    assert "1 problems" in result.stderr


def test_an_unsafe_store_is_a_problem(findings, monkeypatch):
    monkeypatch.setattr("mooring.store.local.LocalStore.put_new", lambda *_: True)
    code, rows = findings("--write-probe")
    assert code == 1
    assert _of(rows, "store")["safe"]["status"] == "problem"
