"""What the doctor finds."""

import json
import shutil

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
    chains = mooring.connect(lake, manifest_enabled=False).backend.chains
    chains.advance(chains.read("old"), state, action="test", deleted_at_ms=1)
    code, rows = findings()
    assert code == 0
    found = _of(rows, "table")["old"]
    assert (found["value"], found["status"]) == (state.value, "warning")
    assert found["note"].endswith(f"mooring {verb} old")


def test_a_drop_in_the_future(findings, lake):
    chains = mooring.connect(lake, manifest_enabled=False).backend.chains
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
    assert "1 problem, " in result.stderr


def test_an_unsafe_store_is_a_problem(findings, monkeypatch):
    monkeypatch.setattr("mooring.store.local.LocalStore.put_new", lambda *_: True)
    code, rows = findings("--write-probe")
    assert code == 1
    assert _of(rows, "store")["safe"]["status"] == "problem"


# -- modes and the manifest ----------------------------------------------------------------------


@pytest.fixture
def diagnose(run):
    def invoke(*args):
        result = run("doctor", "-o", "json", *args)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return invoke


@pytest.mark.parametrize(
    ("flags", "mode"),
    [
        ([], "compatibility"),
        (["--no-listing"], "manifest"),
        (["--no-manifest"], "plain directory"),
    ],
)
def test_the_mode_is_told(diagnose, tree, flags, mode):
    rows = diagnose(tree, *flags)
    assert _of(rows, "catalog")["mode"]["value"] == mode
    assert bool(_of(rows, "manifest")) is (mode != "plain directory")


def test_the_size_of_the_manifest_is_told(diagnose, tree):
    catalog = mooring.connect(tree)
    rows = _of(diagnose(tree), "manifest")
    version = int(rows["version"]["value"])
    assert rows["rows"]["value"] == "8"
    catalog.drop_table("sales$orders")
    rows = _of(diagnose(tree), "manifest")
    assert int(rows["version"]["value"]) == version + 1
    assert rows["rows"]["value"] == "8"


def test_a_directory_without_a_manifest(diagnose, plain):
    rows = diagnose(plain)
    assert _of(rows, "catalog")["mode"]["value"] == "compatibility"
    assert _of(rows, "manifest")["version"]["value"] is None
    assert _of(rows, "tables")["live"]["value"] == "7"


def test_a_manifest_that_the_mode_leaves_out(diagnose, lake):
    mode = _of(diagnose(lake, "--no-manifest"), "catalog")["mode"]
    assert mode["note"] == "its manifest is left out"


def test_tables_that_only_a_listing_finds(diagnose, tree, plain):
    (plain / "flights.lance").rename(tree / "flights.lance")
    found = _of(diagnose(tree), "manifest")["not in it"]
    assert (found["value"], found["status"]) == ("1", "ok")
    assert "mooring migrate" in found["note"]
    assert "not in it" not in _of(diagnose(tree, "--no-listing"), "manifest")


def test_a_row_without_a_directory_is_a_declared_table(diagnose, tree, lake):
    """Spec: directory-namespace, "V2: Manifest": the row names the table."""
    gone = next(tree.glob("*sales$eu$orders"))
    shutil.rmtree(gone)
    found = _of(diagnose(tree), "table")["sales$eu$orders"]
    assert (found["value"], found["status"]) == ("declared", "ok")
    assert gone.name in found["note"]
    shutil.rmtree(lake / "soon.lance")
    assert _of(diagnose(lake), "table")["soon"]["value"] == "declared"


def test_counts_are_of_all_namespaces(diagnose, tree):
    mooring.connect(tree).drop_table("sales$orders")
    counts = {name: row["value"] for name, row in _of(diagnose(tree), "tables").items()}
    assert counts == {"live": "3", "dropped": "1", "deregistered": "0"}


def test_a_purge_in_a_namespace_that_was_cut_off(diagnose, tree, monkeypatch):
    catalog = mooring.connect(tree)
    catalog.drop_table("sales$orders")

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("mooring.directory.trash.Trash._delete_files", stop)
        with pytest.raises(KeyboardInterrupt):
            catalog.purge_table("sales$orders")
    found = _of(diagnose(tree), "table")["sales$orders"]
    assert (found["value"], found["status"]) == ("purging", "warning")
    assert found["note"].endswith("mooring trash purge 'sales$orders'")


def test_a_name_that_reads_as_a_path_is_told(diagnose, plain):
    found = _of(diagnose(plain), "name")["a$b.lance"]
    assert found["status"] == "warning"
    assert "--no-manifest" in found["note"]
    assert "a$b.lance" not in _of(diagnose(plain, "--no-manifest"), "name")


def test_a_shared_manifest_is_told(diagnose, run, tree):
    assert _of(diagnose(tree), "manifest")["shared"]["value"] == "no"
    told = run("init", tree, "--shared")
    assert "kept for other programs" in told.stderr
    assert _of(diagnose(tree), "manifest")["shared"]["value"] == "yes"
    run("init", tree)
    assert _of(diagnose(tree), "manifest")["shared"]["value"] == "yes"


def test_a_plain_directory_cannot_be_shared(run, tree):
    refused = run("--no-manifest", "init", tree, "--shared")
    assert refused.exit_code != 0
    assert "no manifest" in refused.stderr


def test_allowed_locations_are_told(diagnose, run, tree):
    assert "allowed locations" not in _of(diagnose(tree), "catalog")
    run("init", tree, "--allow-location", "s3://bucket/x")
    assert _of(diagnose(tree), "catalog")["allowed locations"]["value"] == "s3://bucket/x"


def test_a_manifest_that_cannot_be_read_is_a_problem(run, tree):
    for file in (tree / "__manifest" / "_versions").iterdir():
        file.write_bytes(b"broken")
    result = run("doctor", tree, "-o", "json")
    rows = json.loads(result.stdout)
    assert result.exit_code == 1
    assert _of(rows, "catalog")["readable"]["status"] == "problem"
