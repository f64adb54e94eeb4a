"""The program on object stores."""

import json

import pytest

pytestmark = pytest.mark.s3


@pytest.fixture
def at(run, monkeypatch, prefix):
    """Point the program at a server, by the environment alone."""

    def point(server):
        monkeypatch.setenv("MOORING_CATALOG", server.uri(prefix))
        for key, value in server.options.items():
            monkeypatch.setenv(f"MOORING_STORAGE__{key.upper()}", value)
        return run

    return point


def test_a_whole_life_on_s3(at, moto, rows_file):
    run = at(moto)
    assert run("ls").stdout == ""
    assert run("namespace", "create", "a").exit_code == 0
    created = run("table", "create", "a$b", "--from", rows_file, "-o", "json")
    assert json.loads(created.stdout)["rows"] == 3, created.stderr
    assert json.loads(run("table", "describe", "a$b", "-o", "json").stdout)["rows"] == 3
    assert run("table", "drop", "a$b").exit_code == 0
    assert run("table", "undrop", "a$b").exit_code == 0
    assert run("ls", "a").stdout == "b\n"
    run("table", "drop", "a$b")
    purged = json.loads(run("trash", "purge", "a$b", "--yes", "-o", "json").stdout)
    assert purged[0]["result"] == "purged"
    assert purged[0]["files"] > 0


def test_a_plain_directory_on_s3(at, moto, rows_file, monkeypatch):
    run = at(moto)
    monkeypatch.setenv("MOORING_MANIFEST_ENABLED", "false")
    assert run("table", "create", "a$b", "--from", rows_file).exit_code == 0
    assert run("ls").stdout == "a$b\n"
    assert run("table", "drop", "a$b").exit_code == 0
    assert run("table", "undrop", "a$b").exit_code == 0


def test_an_export_from_disk_is_imported_on_s3(at, moto, on_tree, tmp_path):
    """The tables' bytes are not there, and their names are left out for that reason."""
    on_tree("export", "names.jsonl")
    run = at(moto)
    result = run("import", tmp_path / "names.jsonl", "-o", "json")
    assert result.exit_code == 0, result.output
    told = [row["result"] for row in json.loads(result.stdout)]
    assert told == ["unchanged", *["created"] * 4, *["skipped"] * 4]
    assert run("namespace", "list", "sales").stdout == "eu\nus\n"
    assert run("export", "-").stdout.startswith('{"type":"mooring export"')


def test_doctor_on_s3(at, moto):
    result = at(moto)("doctor", "--write-probe", "-o", "json")
    rows = {(row["section"], row["name"]): row for row in json.loads(result.stdout)}
    assert result.exit_code == 0, result.output
    assert rows["store", "safe"]["value"] == "yes"
    assert rows["setting", "storage.aws_secret_access_key"]["value"] == "****"
    assert rows["setting", "storage.aws_region"]["note"] == "environment"


def test_a_server_that_ignores_conditions_is_refused(at, rclone, rows_file):
    run = at(rclone)
    probed = run("doctor", "--write-probe")
    assert probed.exit_code == 1
    assert "accepts a second creation" in probed.stdout
    assert run("table", "create", "t", "--from", rows_file).exit_code == 5


def test_a_server_that_is_not_there_fails_and_says_so(run, monkeypatch):
    nowhere = ["--storage", "aws_endpoint=http://127.0.0.1:9", "--storage", "allow_http=true"]
    keys = ["--storage", "aws_access_key_id=x", "--storage", "aws_secret_access_key=y"]
    quick = ["--storage", "aws_region=us-east-1", "--storage", "connect_timeout=1s"]
    result = run("ls", "s3://lake/x", *nowhere, *keys, *quick)
    assert result.exit_code == 1
    assert "Traceback" not in result.stderr


def test_the_content_of_a_table_on_s3(at, moto, rows_file, tmp_path):
    run = at(moto)
    steps = {
        f"table create t --from {rows_file}": "",
        f"table insert t {rows_file}": "",
        "table tag create t first 1": "",
        "table branch create t dev --tag first": "",
        "table delete t --where id=1 --branch dev": "",
        "table count t": "6\n",
        "table count t --branch dev": "2\n",
        "table query t --tag first --columns city --where id=1": "city\nOslo\n",
        "table query t --to out.parquet": "",
        "table index create t id": "",
        "table compact t": "",
        "table restore t first": "",
        "table count t --where true": "3\n",
    }
    for line, shown in steps.items():
        result = run(*line.split())
        assert (result.exit_code, result.stdout) == (0, shown), (line, result.output)
    result = run("table", "history", "t", "-o", "json", "-v")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    operations = [row["operation"] for row in rows if row["action"] == "write"]
    assert operations[:3] == ["Overwrite", "Append", "CreateIndex"]
    assert operations[-1] == "Restore"
    difference = json.loads(run("table", "diff", "t", "first", "dev", "-o", "json").stdout)
    assert (difference["rows_before"], difference["rows_after"]) == (3, 2)
