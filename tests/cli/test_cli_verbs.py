"""What the verbs do, and how they end."""

import json
import platform
import shlex
from importlib.metadata import version

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import mooring

DONE, FAILED, USAGE, NOT_FOUND, CONFLICT, REFUSED = range(6)


@pytest.mark.parametrize(
    ("code", "args"),
    [
        (DONE, ["ls"]),
        (USAGE, ["table", "create", "x"]),
        (USAGE, ["table", "create", "x", "--from", "nothing.csv"]),
        (USAGE, ["table", "drop"]),
        (USAGE, ["table", "drop", "flights", "--ttl", "soon"]),
        (USAGE, ["table", "declare", "a/b"]),
        (USAGE, ["--no-manifest", "table", "register", "hidden", "--location", "elsewhere"]),
        (USAGE, ["table", "register", "hidden", "--location", "/elsewhere"]),
        (USAGE, ["trash", "list", "--deleted-before", "yesterday"]),
        (USAGE, ["trash", "list", "--deleted-before", "7x"]),
        (USAGE, ["trash", "purge", "old", "--expired"]),
        (USAGE, ["ls", "-o", "xml"]),
        (USAGE, ["ls", "./elsewhere"]),
        (USAGE, ["ls", "--storage", "region"]),
        (USAGE, ["nonsense"]),
        (USAGE, []),
        (USAGE, ["table"]),
        (USAGE, ["init", "--default-ttl", "long"]),
        (NOT_FOUND, ["table", "describe", "nothing"]),
        (NOT_FOUND, ["table", "describe", "old"]),
        (NOT_FOUND, ["table", "register", "hidden", "--location", "elsewhere"]),
        (NOT_FOUND, ["ls", "elsewhere"]),
        (NOT_FOUND, ["table", "drop", "nothing"]),
        (NOT_FOUND, ["table", "drop", "nothing", "--dry-run"]),
        (NOT_FOUND, ["table", "undrop", "flights"]),
        (NOT_FOUND, ["table", "history", "nothing"]),
        (NOT_FOUND, ["trash", "purge", "flights", "--yes"]),
        (NOT_FOUND, ["trash", "purge", "hidden", "--yes"]),
        (NOT_FOUND, ["trash", "purge", "nothing", "--yes"]),
        (NOT_FOUND, ["ls", "--profile", "nobody"]),
        (NOT_FOUND, ["profile", "remove", "nobody"]),
        (CONFLICT, ["table", "create", "flights", "--from", "rows.csv"]),
        (CONFLICT, ["table", "declare", "flights"]),
        (CONFLICT, ["table", "register", "flights"]),
        (REFUSED, ["table", "drop", "guarded"]),
        (REFUSED, ["table", "drop", "guarded", "--dry-run"]),
        (REFUSED, ["table", "drop", "flights", "a$b"]),
        (REFUSED, ["table", "deregister", "flights", "a$b"]),
        (REFUSED, ["trash", "purge", "old"]),
        (REFUSED, ["trash", "purge"]),
        (REFUSED, ["--no-manifest", "table", "rename", "flights", "trips"]),
        (REFUSED, ["--no-manifest", "table", "undrop", "old", "--to", "new"]),
        (REFUSED, ["table", "drop", "flights", "--read-only"]),
        (REFUSED, ["init", "--read-only", "--default-ttl", "1d"]),
    ],
)
def test_exit_code(on, rows_file, code, args):
    result = on(*args)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert bool(result.stderr) is (code != DONE)


@pytest.mark.parametrize("form", ["json", "ndjson"])
@pytest.mark.parametrize(
    ("args", "code", "kind"),
    [
        (["table", "describe", "nothing"], 4, "TableNotFoundError"),
        (["table", "drop", "guarded"], 19, "ProtectedError"),
        (["trash", "purge", "old"], 15, "PermissionDeniedError"),
        (["table", "drop"], 13, "UsageError"),
        (["nonsense"], 13, "UsageError"),
    ],
)
def test_a_failure_is_json_where_the_data_is(on, form, args, code, kind):
    result = on("-o", form, *args)
    error = json.loads(result.stderr)["error"]
    assert (error["code"], error["type"]) == (code, kind)
    assert error["message"]
    assert result.stdout == ""


def test_a_surprise_is_one_line(on, monkeypatch):
    def explode(*_, **__):
        raise ZeroDivisionError("of all\nthings")

    monkeypatch.setattr(mooring.Catalog, "list_tables", explode)
    result = on("ls")
    assert result.exit_code == FAILED
    assert result.stderr == (
        "error: ZeroDivisionError: of all things (run with -v for the traceback)\n"
    )
    assert "Traceback" in on("ls", "-v").stderr


def test_an_interrupt_ends_with_130(on, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(mooring.Catalog, "list_tables", interrupt)
    result = on("ls")
    assert (result.exit_code, result.output) == (130, "")


def test_no_catalog_is_a_usage_error_that_says_what_to_do(run):
    result = run("ls")
    assert result.exit_code == USAGE
    assert "--catalog" in result.stderr
    assert "MOORING_CATALOG" in result.stderr


@pytest.mark.parametrize("args", [["ls"], ["table", "drop", "t"], ["trash", "list"]])
def test_a_missing_directory_is_not_found(run, tmp_path, args):
    result = run(*args, "-c", "./x")
    assert result.exit_code == NOT_FOUND
    assert "no catalog at './x': create it with \"mooring init ./x\"" in result.stderr
    assert not (tmp_path / "x").exists()


def test_a_file_is_no_catalog(run, rows_file):
    assert run("ls", rows_file).exit_code == NOT_FOUND


def test_init_makes_a_catalog(run, tmp_path):
    result = run("init", "new", "--default-ttl", "3d", "-o", "json")
    assert json.loads(result.stdout) == {
        "catalog": str(tmp_path / "new"),
        "format": 1,
        "adopted": True,
        "default_ttl_ms": 3 * 86_400_000,
        "allowed_locations": [],
        "managed_versioning": False,
        "revision": 2,
    }
    assert run("ls", "new").exit_code == DONE


def test_init_adopts_a_plain_directory(run, tmp_path):
    (tmp_path / "plain" / "t.lance").mkdir(parents=True)
    assert "--adopt" in run("init", "plain").stderr
    assert json.loads(run("init", "plain", "--adopt", "-o", "json").stdout)["adopted"]


def test_create_makes_the_catalog_too(run, rows_file):
    result = run("table", "create", "t", "--from", rows_file, "-c", "new")
    assert result.stderr == "created 't': 3 rows, version 1\n"
    assert mooring.connect("new").table("t").count() == 3


@pytest.mark.parametrize("form", ["parquet", "csv", "json", "arrow"])
@pytest.mark.parametrize("named", [True, False])
def test_create_reads_every_format(on, lake, tmp_path, form, named):
    table = pa.table({"id": [1, 2]})
    path = tmp_path / ("rows.data" if named else f"rows.{form}")
    match form:
        case "parquet":
            pa.parquet.write_table(table, path)
        case "csv":
            path.write_text("id\n1\n2\n")
        case "json":
            path.write_text('{"id": 1}\n{"id": 2}\n')
        case "arrow":
            pa.feather.write_feather(table, path, compression="uncompressed")
    options = ["--format", form] if named else []
    result = on("table", "create", "t", "--from", path, *options)
    assert result.exit_code == DONE, result.stderr
    assert mooring.connect(lake).table("t").to_arrow() == table


def test_create_modes(on, rows_file):
    create = ["table", "create", "flights", "--from", rows_file, "-o", "json", "--mode"]
    kept = json.loads(on(*create, "exist_ok").stdout)
    assert (kept["result"], kept["version"], kept["rows"]) == ("exists", None, None)
    over = json.loads(on(*create, "overwrite").stdout)
    assert (over["result"], over["version"], over["rows"]) == ("created", 2, 3)


def test_a_broken_file_is_blamed(on, tmp_path):
    path = tmp_path / "broken.csv"
    path.write_text("id\n" + "1\n" * 600_000 + "two\n")
    result = on("table", "create", "t", "--from", path)
    assert result.exit_code == USAGE
    assert "broken.csv' cannot be read" in result.stderr
    assert "'two'" in result.stderr
    assert result.stderr.count("\n") == 1


def live_through(on, name):
    for verb in ("describe", "protect", "unprotect", "drop", "undrop", "deregister", "register"):
        result = on("table", verb, "--", name)
        assert result.exit_code == DONE, (verb, result.output)
    on("table", "drop", "--", name)
    rows = json.loads(on("trash", "list", "-o", "json").stdout)
    assert name in [row["name"] for row in rows]
    assert on("trash", "purge", "--yes", "--", name).exit_code == DONE
    assert name not in on("ls", "-a").stdout


@pytest.mark.parametrize("name", ["quo'te", "漢字", "-dash"])
def test_odd_names_go_through_a_whole_life(on, name):
    live_through(on, name)


@pytest.mark.parametrize("name", ["quo'te", "a$b", "漢字", "-dash"])
def test_odd_names_go_through_a_whole_life_in_a_plain_directory(on_plain, name):
    """Spec: directory-namespace, "V1: Directory Listing": one level, so a dollar is a letter."""
    live_through(on_plain, name)


def test_a_hint_can_be_pasted(on, lake):
    told = on("table", "drop", "--", "-dash").stderr
    assert f"undo: mooring -c {shlex.quote(str(lake))} table undrop -- -dash" in told


def test_drop_takes_a_ttl(on):
    row = json.loads(on("table", "drop", "flights", "--ttl", "never", "-o", "json").stdout)[0]
    assert row["expires_at"] is None


def test_drop_of_several_tries_each(on, lake):
    mooring.connect(lake).drop_table("flights")
    mooring.connect(lake).undrop_table("flights")
    result = on("table", "drop", "a$b", "flights", "a$b", "--yes", "-o", "json")
    assert [row["result"] for row in json.loads(result.stdout)] == ["dropped", "dropped"]


def test_drop_of_several_goes_on_after_a_failure(on, monkeypatch):
    real = mooring.Catalog.drop_table

    def drop(self, name, **options):
        if name == "flights":
            raise mooring.errors.ConcurrentModificationError("somebody was faster")
        return real(self, name, **options)

    monkeypatch.setattr(mooring.Catalog, "drop_table", drop)
    result = on("table", "drop", "flights", "a$b", "--yes", "-o", "json")
    assert result.exit_code == CONFLICT
    failed, dropped = json.loads(result.stdout)
    assert (failed["result"], dropped["result"]) == ("failed", "dropped")
    assert json.loads(result.stderr)["error"]["message"] == "somebody was faster"


def test_a_plan_that_cannot_work_changes_nothing(on, lake):
    before = sorted(path.name for path in lake.iterdir())
    assert on("table", "drop", "flights", "nothing", "--yes").exit_code == NOT_FOUND
    assert on("table", "drop", "flights", "guarded", "--yes").exit_code == REFUSED
    assert sorted(path.name for path in lake.iterdir()) == before


@pytest.mark.parametrize(
    "args",
    [
        ["table", "drop", "flights", "a$b"],
        ["table", "deregister", "flights", "a$b"],
        ["trash", "purge", "old", "older"],
        ["trash", "purge"],
    ],
)
def test_dry_run_changes_nothing(on, lake, args):
    before = sorted(lake.rglob("*"))
    result = on(*args, "--dry-run", "--yes", "-o", "json")
    assert result.exit_code == DONE
    assert all(row["action"] == args[1] for row in json.loads(result.stdout))
    assert sorted(lake.rglob("*")) == before


@pytest.mark.parametrize("args", [["ls", "-a"], ["doctor"], ["trash", "list"], ["table", "list"]])
def test_reading_writes_nothing(on, lake, args):
    before = sorted((path, path.stat().st_mtime_ns) for path in lake.rglob("*"))
    assert on(*args).exit_code == DONE
    assert sorted((path, path.stat().st_mtime_ns) for path in lake.rglob("*")) == before


def test_purge_takes_the_expired_ones(on):
    rows = json.loads(on("trash", "purge", "--yes", "-o", "json").stdout)
    assert [(row["table"], row["result"]) for row in rows] == [("older", "purged")]
    assert rows[0]["files"] > 0
    assert rows[0]["bytes"] > 0
    again = on("trash", "purge")
    assert (again.exit_code, again.stdout) == (DONE, "")
    assert "nothing to purge" in again.stderr


def test_purge_shows_its_plan_before_it_asks(on):
    result = on("trash", "purge", "old")
    assert result.stderr.startswith("about to purge 1 table for good:\n")
    assert "say --yes" in result.stderr


def test_purge_reports_each_failure(on, monkeypatch):
    def purge_tables(self, names, progress):
        exc = mooring.errors.ConcurrentModificationError("came back")
        return type("Report", (), {"purged": [], "failed": dict.fromkeys(names, exc)})

    monkeypatch.setattr(mooring.Catalog, "purge_tables", purge_tables)
    result = on("trash", "purge", "old", "older", "--yes", "-o", "json")
    assert result.exit_code == CONFLICT
    assert {row["result"] for row in json.loads(result.stdout)} == {"failed"}


@pytest.mark.parametrize(
    ("when", "count"), [("1d", 0), ("0s", 2), ("2001-01-01", 0), ("2999-01-01T00:00Z", 2)]
)
def test_trash_before_a_time(on, when, count):
    rows = json.loads(on("trash", "list", "--deleted-before", when, "-o", "json").stdout)
    assert len(rows) == count


def test_history_names_who_did_what(on):
    on("table", "undrop", "old")
    rows = json.loads(on("table", "history", "old", "-o", "json").stdout)
    assert [(row["action"], row["state"], row["by"]) for row in rows] == [
        ("write", "live", "maker"),
        ("drop", "dropped", "maker"),
        ("undrop", "live", "tester"),
    ]


def test_without_a_verb_the_help_is_shown(run):
    result = run()
    assert result.exit_code == USAGE
    assert result.stdout == ""
    assert "Usage: mooring [OPTIONS] COMMAND" in result.stderr


def test_version(run):
    assert run("--version").stdout == f"mooring {mooring.__version__}\n"


@pytest.mark.parametrize("args", [["--version", "-v"], ["-v", "--version"]])
def test_the_version_comes_with_what_a_report_of_a_fault_needs(run, args):
    first, *others = run(*args).stdout.splitlines()
    assert first == f"mooring {mooring.__version__}"
    told = dict(line.split(maxsplit=1) for line in others)
    assert told["python"] == platform.python_version()
    assert told["pylance"] == version("pylance")
    assert told["platform"] == platform.platform()
