"""The command on catalogs behind a Lance REST server: Mooring's own, and pylance's."""

import json

import lance.namespace
import pytest

import mooring
from mooring.config import Layer, mask_uris, resolve
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.own_server import run_server

SECRET = "do-not-show-me"
CLIENTS = (Client.of("ada", SECRET, Grant(Role.ADMIN)),)
ROWS = [{"id": 1, "city": "Oslo"}, {"id": 2, "city": "Lima"}]


@pytest.fixture
def server(tmp_path):
    """Serve a directory of tables to somebody with a secret."""
    catalog = mooring.connect(tmp_path / "lake", author="maker")
    catalog.create_namespace("geo")
    catalog.create_table("geo$cities", ROWS)
    with run_server(catalog, ServerSettings(clients=CLIENTS)) as address:
        yield f"lance+{address}/lance"


@pytest.fixture
def on(run, server, monkeypatch):
    """Run the program on what is served, as somebody who may change it."""
    monkeypatch.setenv("MOORING_LANCE_CREDENTIAL", f"ada:{SECRET}")

    def invoke(*args):
        return run("-c", server, *args)

    return invoke


@pytest.fixture
def foreign(run, tmp_path):
    """Run the program on a server of pylance's, on which nothing comes back."""
    with lance.namespace.RestAdapter("dir", {"root": str(tmp_path / "other")}, port=0) as found:
        uri = f"lance+http://127.0.0.1:{found.port}"
        catalog = mooring.connect(uri)
        catalog.create_namespace("geo")
        catalog.create_table("geo$cities", ROWS)
        yield lambda *args: run("-c", uri, *args)


def told(done):
    """Return what a command that worked told people."""
    assert done.exit_code == 0, done.output
    return done.output


def data(done):
    """Return what a command that worked gave programs."""
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refused(done, code):
    """Return the line of a command that failed."""
    assert done.exit_code == code, done.output
    (line,) = done.stderr.splitlines()
    return line


def test_tables_are_listed_shown_and_queried(on):
    assert told(on("ls", "geo")) == "cities\n"
    assert data(on("ls", "-a", "-o", "json"))[0]["name"] == "geo$cities"
    assert "Lima" in told(on("table", "query", "geo$cities"))
    assert data(on("table", "describe", "geo$cities", "-o", "json"))["rows"] == 2
    assert "cities" in told(on("namespace", "tree"))
    assert data(on("inventory", "-o", "json"))[0]["rows"] == 2


def test_a_table_is_made_dropped_and_brought_back(on, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("n\n1\n2\n")
    assert "2 rows" in told(on("table", "create", "geo$t", "--from", rows))
    assert "undo: mooring" in told(on("table", "drop", "geo$t"))
    assert data(on("trash", "list", "-o", "json"))[0]["name"] == "geo$t"
    assert "live again" in told(on("table", "undrop", "geo$t"))
    told(on("table", "protect", "geo$t"))
    assert "unprotect" in refused(on("table", "drop", "geo$t"), 5)
    told(on("table", "unprotect", "geo$t"))
    told(on("table", "drop", "geo$t", "--ttl", "0s"))
    assert "geo$t" in told(on("trash", "purge", "--expired", "--yes"))
    assert data(on("trash", "list", "-o", "json")) == []


def test_rows_are_ingested_into_a_table_that_is_there(on, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("id,city\n3,Quito\n")
    told(on("ingest", "--into", "geo$cities", rows))
    assert "Quito" in told(on("table", "query", "geo$cities"))
    assert "create it first" in refused(on("ingest", "--into", "geo$new", rows), 5)


def test_what_a_server_keeps_is_not_set_up_here(on):
    assert "a Lance REST server keeps" in refused(on("init"), 5)
    assert "only a directory" in refused(on("trash", "sweep"), 5)
    assert "kept by a server" in refused(on("audit"), 5)


def test_doctor_looks_at_the_server_and_at_its_storage(on):
    found = {(one["section"], one["name"]): one for one in data(on("doctor", "-o", "json"))}
    assert found["server", "reachable"]["value"] == "yes"
    assert found["server", "signs in"]["value"] == "with a credential"
    assert found["server", "beside Lance REST"]["value"].startswith("Mooring ")
    assert found["storage", "reachable"]["value"] == "yes"
    assert SECRET not in json.dumps(list(found.values()))


def test_nobody_is_let_in_without_a_credential(run, server):
    assert "credential" in refused(run("-c", server, "ls"), 5)


def test_a_drop_that_cannot_be_undone_is_confirmed(foreign):
    assert foreign("table", "drop", "geo$cities").exit_code == 5
    assert "not known" in told(foreign("table", "drop", "geo$cities", "--yes"))
    assert "mooring serve" in refused(foreign("table", "undrop", "geo$cities"), 5)
    found = {one["name"]: one for one in data(foreign("doctor", "-o", "json"))}
    assert found["beside Lance REST"]["status"] == "warning"


def test_variables_of_one_kind_of_server_are_not_for_another():
    environ = {"MOORING_LANCE_TOKEN": "a", "MOORING_ICEBERG_TOKEN": "b", "MOORING_CONFIG": "/no"}

    def options(catalog):
        return resolve(Layer("flag", {"catalog": catalog}), environ).storage_options

    assert options("lance+http://host/lance") == {"lance.token": "a"}
    assert options("iceberg+http://host") == {"iceberg.token": "b"}
    assert options("/lake") == {}


def test_keys_in_addresses_are_masked():
    assert mask_uris("lance+http://h/lance?api_key=abc&delimiter=.").endswith("****&delimiter=.")
