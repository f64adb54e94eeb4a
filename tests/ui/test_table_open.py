"""The lines with which programs open a table are run: they do what they say, whatever its name.

Issue: pages for people, how to open it: copyable lines for this very table and version.
"""

from __future__ import annotations

import json
import shlex
from urllib.parse import quote

import pytest

import mooring
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.lakes import DISK
from tests.own_server import run_server
from tests.program import invoke
from tests.ui.site import Site, text_of

NASTY = 'it\'s "q" $HOME `id` \\n 🚀 %24 שלום'.replace("\\", "").replace("$", "")
ADA = Client.of("ada", "s3cret pass", Grant(Role.ADMIN))


@pytest.fixture
def lake(tmp_path):
    lake = mooring.connect(str(tmp_path / "it's a lake"))
    lake.create_namespace("a b")
    make(lake, ["a b", NASTY])
    return lake


def make(lake, names):
    table = lake.create_table(names, [{"n": 1}])
    table.insert([{"n": 2}])
    table.tags.create("first", 1)


def address(base, names):
    return f"{base}/catalogs/default/tables/{quote('$'.join(names), safe='')}/open"


def lines(view):
    return {
        (door["key"], one["key"]): one["text"] for door in view["doors"] for one in door["snippets"]
    }


def look(base, names, query=""):
    import httpx2

    headers = {"authorization": "Bearer ada:s3cret pass"}
    found = httpx2.get(f"{address(base, names)}.json{query}", headers=headers)
    assert found.status_code == 200, found.text
    return lines(found.json())


def run_python(text):
    scope = {}
    exec(compile(text, "<page>", "exec"), scope)  # noqa: S102  # what people would run
    return scope["rows"].to_pylist() if hasattr(scope["rows"], "to_pylist") else scope["rows"]


def run_shell(text, *verbs):
    """Run commands of some verbs as a shell reads them, in this process; return the answers."""
    said = []
    for line in text.splitlines():
        program, *words = shlex.split(line)
        chosen = program == "mooring" and any(verb in words for verb in verbs)
        if not chosen or any(word.startswith("--to=") for word in words):
            continue
        done = invoke("-o", "json", *words)
        assert done.exit_code == 0, done.output
        said.append(json.loads(done.stdout))
    return said


@pytest.mark.parametrize(
    ("query", "rows"), [("", [1, 2]), ("?version=1", [1]), ("?tag=first", [1])]
)
def test_lines_open_this_table_at_this_version(lake, query, rows):
    with run_server(lake) as base:
        found = look(base, ["a b", NASTY], query)
        for key in [(door, one) for door in ("server", "direct") for one in ("mooring", "lance")]:
            assert sorted(row["n"] for row in run_python(found[key])) == rows, key


def test_commands_open_this_table_at_this_version(lake):
    with run_server(lake) as base:
        tagged = look(base, ["a b", NASTY], "?tag=first")["direct", "cli"]
        schema, _, shown = run_shell(tagged, "schema", "count", "query")
        assert [column["name"] for column in schema] == ["n"]
        assert shown == [{"n": 1}]
        first = look(base, ["a b", NASTY], "?version=1")["server", "cli"]
        assert run_shell(first, "query") == [[{"n": 1}]]


def test_lines_of_a_branch(lake):
    table = lake.table(["a b", NASTY])
    table.branches.create("dev")
    table.insert([{"n": 3}], branch="dev")
    with run_server(lake) as base:
        found = look(base, ["a b", NASTY], "?branch=dev")
        for key in (("direct", "mooring"), ("direct", "lance")):
            assert len(run_python(found[key])) == 3
        assert ("server", "lancedb") not in found


def test_credentials_come_from_the_environment(lake, monkeypatch):
    monkeypatch.setenv("MOORING_LANCE_CREDENTIAL", "ada:s3cret pass")
    with run_server(lake, ServerSettings(clients=(ADA,))) as base:
        found = look(base, ["a b", NASTY])
        assert not any("s3cret" in text for text in found.values())
        for key in (("server", "mooring"), ("server", "lance")):
            assert len(run_python(found[key])) == 2
        assert "export MOORING_LANCE_CREDENTIAL='ID:SECRET'" in found["server", "cli"]
        assert run_shell(found["server", "cli"], "count")
        assert "$MOORING_LANCE_CREDENTIAL" in found["server", "curl"]


def test_a_plain_directory_is_opened_as_one(tmp_path):
    lake = mooring.connect(str(tmp_path / "lake"), **DISK.flags)
    make(lake, ["a$b c"])
    with run_server(lake) as base:
        found = look(base, ["a$b c"])
        for one in ("mooring", "lance"):
            assert len(run_python(found["direct", one])) == 2
        assert "--no-manifest" in found["direct", "cli"]
        assert run_shell(found["direct", "cli"], "count")
        assert len(run_python(found["server", "mooring"])) == 2


def test_a_metastore_is_opened_as_one(tmp_path):
    lake = mooring.connect(f"metastore+{tmp_path / 'meta'}")
    lake.create_namespace("s")
    make(lake, ["s", "-odd 'name'"])
    with run_server(lake) as base:
        found = look(base, ["s", "-odd 'name'"], "?version=1")
        for key in (("direct", "mooring"), ("direct", "lance"), ("server", "mooring")):
            assert len(run_python(found[key])) == 1
        assert run_shell(found["direct", "cli"], "count")
        assert ("direct", "lance-spark") not in found


def test_a_name_that_begins_with_a_dash_is_no_option(tmp_path):
    lake = mooring.connect(str(tmp_path / "lake"))
    make(lake, ["--help"])
    with run_server(lake) as base:
        assert run_shell(look(base, ["--help"])["direct", "cli"], "count")


def test_http_lines_ask_for_this_table(lake):
    import httpx2

    with run_server(lake) as base:
        describe, rows = look(base, ["a b", NASTY], "?version=1")["server", "curl"].splitlines()
        words = shlex.split(describe)
        answer = httpx2.post(
            words[3], content=words[-1], headers={"content-type": "application/json"}
        )
        assert answer.status_code == 200, answer.text
        assert answer.json()["version"] == 1
        assert shlex.split(rows)[1].endswith("/rows.json?version=1")
        assert httpx2.get(shlex.split(rows)[1]).status_code == 200


def test_sql_quotes_names(lake):
    with Site(lake) as site:
        name = quote("a b$" + NASTY, safe="")
        found = lines(site.json(f"tables/{name}/open?version=1"))
        assert NASTY.replace("`", "``") in found["server", "sql"]
        assert "VERSION AS OF 1" in found["server", "sql"]
        assert "header.Authorization" not in found["server", "lance-spark"]


def test_spark_lines_are_python(lake):
    with Site(lake) as site:
        found = lines(site.json(f"tables/{quote('a b$' + NASTY, safe='')}/open?tag=first"))
    for key in (("server", "spark"), ("direct", "spark"), ("server", "lancedb")):
        compile(found[key], "<page>", "exec")
    assert ".option('tag', 'first')" in found["direct", "spark"]
    assert repr(f"a b${NASTY}") in found["direct", "spark"]


def test_the_page_says_which_version_the_lines_open(lake):
    at = f"tables/{quote('a b$' + NASTY, safe='')}/open"
    with Site(lake) as site:
        assert "whatever is the newest" in text_of(site.page(at))
        assert "stay with it" in text_of(site.page(f"{at}?version=1"))
