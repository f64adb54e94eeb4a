"""The command on Iceberg catalogs: Mooring's own server, and Apache's."""

import json

import pytest

import mooring
from mooring.config import Layer, resolve
from mooring.iceberg.client import ClientSettings, RestClient
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.irc_servers import NotHereError, run_fixture
from tests.own_irc import run_own

SECRET = "do-not-show-me"
CLIENTS = (
    Client.of("ada", SECRET, Grant(Role.WRITER)),
    Client.of("bob", "look-only", Grant(Role.READER)),
)
ROWS = [{"id": 1, "city": "Oslo"}, {"id": 2, "city": "Lima"}]


@pytest.fixture
def server(tmp_path):
    """Serve a directory of tables to clients with a secret."""
    catalog = mooring.connect(tmp_path / "lake", author="maker")
    for name in ("geo", "geo$water", "empty"):
        catalog.create_namespace(name)
    catalog.create_table("geo$cities", ROWS)
    with run_own(catalog, ServerSettings(clients=CLIENTS)) as address:
        yield f"iceberg+{address}"


@pytest.fixture
def on(run, server, monkeypatch):
    """Run the program on what is served, as somebody who may change it."""
    monkeypatch.setenv("MOORING_ICEBERG_CREDENTIAL", f"ada:{SECRET}")

    def invoke(*args):
        return run("-c", server, *args)

    return invoke


def told(done):
    """Return what a command that worked told people."""
    assert done.exit_code == 0, done.output
    return done.output


def refused(done, code):
    """Return the line of a command that failed."""
    assert done.exit_code == code, done.output
    assert not done.stdout
    (line,) = done.stderr.splitlines()
    return line


def data(done):
    """Return what a command that worked gave programs."""
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


class TestListing:
    def test_names_of_tables_and_namespaces(self, on):
        assert told(on("ls", "geo")) == "cities\n"
        assert told(on("namespace", "list")) == "empty\ngeo\nroot\n"
        assert told(on("namespace", "list", "geo")) == "water\n"
        assert "3 namespaces are in it: mooring" in told(on("ls"))

    def test_everything_with_its_state(self, on):
        told(on("table", "drop", "geo$cities", "--ttl", "never"))
        (row,) = data(on("ls", "--all", "-o", "json"))
        assert (row["name"], row["state"], row["expires_at"]) == ("geo$cities", "dropped", None)
        names = [row["name"] for row in data(on("namespace", "list", "--all", "-o", "json"))]
        assert names == ["empty", "geo", "geo$water", "root"]

    def test_tree(self, on, server):
        lines = told(on("namespace", "tree")).splitlines()
        assert lines[0] == f"{server}/"
        assert lines[1:] == ["  empty/", "  geo/", "    water/", "    cities", "  root/"]

    def test_absent_namespace(self, on):
        assert "nope" in refused(on("ls", "nope"), 3)
        told = refused(on("ls", "--all", "nope"), 3)
        assert told.startswith("error: there is no namespace 'nope'; make it with \"mooring -c ")
        assert told.endswith(' namespace create nope"')


class TestTables:
    def test_life_of_a_table(self, on, rows_file):
        assert "3 rows, version 1" in told(on("table", "create", "geo$t", "--from", rows_file))
        assert "version 2" in told(on("table", "insert", "geo$t", rows_file))
        told(on("table", "set", "geo$t", "-p", "owner=ada"))
        told(on("table", "rename", "geo$t", "geo$water$u"))
        record = data(on("table", "describe", "geo$water$u", "-o", "json"))
        assert (record["version"], record["rows"], record["managed_by"]) == (2, 6, "storage")
        assert record["properties"] == {"owner": "ada"}
        assert "undo: mooring" in told(on("table", "drop", "geo$water$u"))
        assert [row["name"] for row in data(on("trash", "list", "-o", "json"))] == ["geo$water$u"]
        told(on("table", "undrop", "geo$water$u"))
        assert told(on("table", "count", "geo$water$u")) == "6\n"
        told(on("table", "drop", "geo$water$u", "--ttl", "0s"))
        assert "purged 'geo$water$u'" in told(on("trash", "purge", "--yes"))
        assert refused(on("table", "count", "geo$water$u"), 3)

    def test_upkeep(self, on, rows_file):
        told(on("ingest", rows_file, "--into", "geo$t"))
        told(on("ingest", rows_file, "--into", "geo$t"))
        assert "2 fragments became 1" in told(on("table", "compact", "geo$t"))
        told(on("table", "cleanup", "geo$t", "--older-than", "0s", "--yes"))
        rows = data(on("inventory", "-o", "json"))
        found = {row["name"]: (row["state"], row["rows"], row["fragments"]) for row in rows}
        assert found == {"geo$cities": ("live", 2, 1), "geo$t": ("live", 6, 1)}
        assert data(on("inventory", "geo", "--totals", "-o", "json"))["rows"] == 8

    def test_a_table_lies_in_a_namespace(self, on, rows_file):
        line = refused(on("table", "create", "t", "--from", rows_file), 2)
        assert "lie in a namespace" in line

    def test_typo_is_answered_with_names_beside_it(self, on):
        assert "did you mean 'geo$cities'?" in refused(on("table", "count", "geo$citys"), 3)

    def test_deregistered_table_comes_back_by_its_location(self, on):
        line = told(on("table", "deregister", "geo$cities"))
        where = line.partition("its bytes stay in '")[2].partition("'")[0]
        assert f"--location '{where}'" in line or f"--location {where}" in line


class TestNamespaces:
    def test_make_change_and_drop(self, on):
        told(on("namespace", "create", "new", "-p", "owner=ada"))
        told(on("namespace", "set", "new", "-p", "purpose=tests"))
        record = data(on("namespace", "describe", "new", "-o", "json"))
        assert record["properties"] == {"owner": "ada", "purpose": "tests"}
        assert "nothing is kept" in told(on("namespace", "drop", "new"))
        assert "create it again" in refused(on("namespace", "undrop", "new"), 5)

    @pytest.mark.parametrize("options", [(), ("--cascade", "--yes")])
    def test_only_empty_ones_go(self, on, options):
        line = refused(on("namespace", "drop", "geo", *options), 4)
        assert "drops only empty ones: drop the 1 table and 1 namespace in it first" in line


class TestDoctor:
    def test_what_the_server_says(self, on):
        done = on("doctor", "-o", "json")
        found = {(row["section"], row["name"]): row for row in data(done)}
        assert found["server", "reachable"]["note"].startswith("http://127.0.0.1:")
        assert found["server", "signs in"]["value"] == "with a credential"
        assert found["server", "rename"]["value"] == "yes"
        assert found["server", "transactions"]["value"] == "yes"
        assert found["storage", "reachable"]["value"] == "yes"
        assert SECRET not in done.output
        assert {row["status"] for row in found.values()} <= {"ok", "skipped"}

    def test_probe_of_the_storage_of_new_tables(self, on, tmp_path):
        root = tmp_path / "new"
        root.mkdir()
        done = on("--storage", f"iceberg.root={root}", "doctor", "--write-probe", "-o", "json")
        found = {(row["section"], row["name"]): row["value"] for row in data(done)}
        assert found["storage", "new tables"] == str(root)
        assert found["storage", "safe"] == "yes"

    @pytest.mark.parametrize("credential", ["ada:mistaken-1", "nobody:mistaken-2"])
    def test_wrong_credential(self, on, monkeypatch, credential):
        monkeypatch.setenv("MOORING_ICEBERG_CREDENTIAL", credential)
        done = on("doctor")
        assert done.exit_code == 1
        assert "answers 401" in done.stdout
        assert credential.partition(":")[2] not in done.stdout.partition("server ")[2]

    def test_server_is_down(self, run):
        done = run("-c", "iceberg+http://127.0.0.1:1", "doctor")
        assert done.exit_code == 1
        assert "Connection refused" in done.stdout


class TestSecrets:
    def test_from_a_profile(self, run, server, tmp_path):
        option = f"iceberg.credential=ada:{SECRET}"
        told(run("profile", "set", "lake", server, "--storage", option))
        shown = told(run("profile", "show", "lake"))
        assert told(run("--profile", "lake", "ls", "geo")) == "cities\n"
        assert SECRET not in shown
        assert SECRET in (tmp_path / "config" / "config.toml").read_text()

    def test_in_the_uri_are_masked_wherever_it_is_shown(self, run, server):
        uri = f"{server}?credential=ada:{SECRET}"
        for args in (
            ("ls", "empty"),
            ("ls",),
            ("namespace", "describe"),
            ("namespace", "tree"),
            ("namespace", "drop", "geo"),
            ("table", "drop", "geo$cities"),
            ("doctor",),
            ("init",),
            ("audit",),
            ("ls", "nope"),
        ):
            assert SECRET not in run("-c", uri, *args).output, args

    def test_none_is_needed_by_those_who_may_not(self, run, server):
        assert "a token is needed" in refused(run("-c", server, "ls"), 5)

    def test_reader_may_read(self, on, monkeypatch):
        monkeypatch.setenv("MOORING_ICEBERG_CREDENTIAL", "bob:look-only")
        assert told(on("ls", "geo")) == "cities\n"
        assert "role there is reader" in refused(on("namespace", "create", "mine"), 5)

    def test_environment_of_an_iceberg_catalog_is_nothing_to_a_directory(
        self, run, tmp_path, monkeypatch
    ):
        monkeypatch.setenv("MOORING_ICEBERG_TOKEN", SECRET)
        mooring.connect(tmp_path / "other").create_table("t", ROWS)
        assert told(run("-c", tmp_path / "other", "ls")) == "t\n"

    def test_variables_are_options_of_the_catalog(self, tmp_path):
        environ = {
            "MOORING_CONFIG": str(tmp_path / "none.toml"),
            "MOORING_ICEBERG_TOKEN": SECRET,
            "MOORING_ICEBERG_WAREHOUSE": "lake",
        }
        config = resolve(Layer("flag", {"catalog": "iceberg+https://host"}), environ)
        assert config.storage_options == {"iceberg.token": SECRET, "iceberg.warehouse": "lake"}
        shown = dict(config.shown())
        assert shown["storage.iceberg.token"].value == "****"
        assert shown["storage.iceberg.warehouse"].value == "lake"
        assert resolve(Layer("flag", {"catalog": "s3://bucket"}), environ).storage_options == {}


class TestRefusals:
    @pytest.mark.parametrize(
        "args",
        [
            ("init",),
            ("migrate",),
            ("audit",),
            ("vacuum",),
            ("txn", "list"),
            ("adopt", "elsewhere"),
            ("export", "out.jsonl"),
            ("spark-conf",),
            ("trash", "sweep"),
            ("changes", "list"),
            ("runs", "list"),
            ("table", "streams", "geo$cities"),
        ],
        ids=" ".join,
    )
    def test_what_needs_a_store_is_refused_in_one_line(self, on, args):
        line = refused(on(*args), 5)
        assert line.startswith("error: ")

    def test_read_only(self, on):
        assert "read-only" in refused(on("--read-only", "namespace", "create", "x"), 5)
        assert "read-only" in refused(on("--read-only", "table", "drop", "geo$cities"), 5)

    @pytest.mark.parametrize(
        ("option", "words"),
        [
            ("tokn=x", "unknown property 'tokn'"),
            ("managed_by=both", "'storage' or 'impl', not 'both'"),
            ("timeout_s=soon", "is a number, not 'soon'"),
            ("verify=maybe", "is true or false, not 'maybe'"),
        ],
    )
    def test_wrong_option(self, on, option, words):
        assert words in refused(on("--storage", f"iceberg.{option}", "ls"), 2)

    def test_no_address(self, run):
        assert "is no address" in refused(run("-c", "iceberg+ftp://host", "ls"), 2)
        assert "no dialect" not in refused(run("-c", "iceberg+http://h", "--no-manifest", "ls"), 2)


@pytest.mark.interop
def test_on_the_server_of_apache_iceberg(run, tmp_path, rows_file):
    """Tables of both kinds, managed by both, beside one of Iceberg's that is left alone."""
    try:
        with run_fixture(tmp_path) as irc:
            client = RestClient(ClientSettings(irc.uri))
            try:
                _work_on(run, client, f"iceberg+{irc.uri}", rows_file)
            finally:
                client.close()
    except NotHereError as exc:
        pytest.skip(f"not run: {exc}")


def _work_on(run, client, uri, rows_file):
    def on(*args):
        return run("-c", uri, *args)

    told(on("namespace", "create", "a b"))
    told(on("namespace", "create", "a b$ü"))
    schema = {"type": "struct", "fields": []}
    client.create_table(("a b",), "plain", schema=schema, location=None, properties={})
    for by in ("storage", "impl"):
        name = f"a b${by}"
        told(on("table", "create", name, "--from", rows_file, "-p", f"managed_by={by}"))
        told(on("table", "insert", name, rows_file))
        record = data(on("table", "describe", name, "-o", "json"))
        assert (record["version"], record["rows"], record["managed_by"]) == (2, 6, by)
        told(on("table", "rename", name, f"a b$ü${by}"))
        told(on("table", "drop", f"a b$ü${by}"))
        told(on("table", "undrop", f"a b$ü${by}", "--to", name))
        assert told(on("table", "count", name)) == "6\n"
    assert told(on("ls", "a b")) == "impl\nplain\nstorage\n"
    checked = on("--storage", "iceberg.checked_listing=true", "ls", "a b")
    assert told(checked) == "impl\nstorage\n"
    assert "a table of Iceberg's" in refused(on("table", "query", "a b$plain"), 3)
    assert "a table of Iceberg's" in refused(on("table", "drop", "a b$plain"), 3)
    assert client.table_exists(("a b",), "plain")
    told(on("table", "drop", "a b$impl", "a b$storage", "--ttl", "0s", "--yes"))
    told(on("trash", "purge", "--yes"))
    assert data(on("trash", "list", "-o", "json")) == []
