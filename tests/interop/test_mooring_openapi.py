"""The addresses below ``/mooring/v1`` against the document that the server publishes of them.

Schemathesis makes requests of the document, sensible ones and others, and holds every answer
against it.
"""

from __future__ import annotations

import json
import subprocess

import httpx2
import pytest

import mooring
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.interop.iceberg_peer import NotBuiltError, find_interpreter
from tests.lakes import rows
from tests.own_server import run_server

pytestmark = pytest.mark.interop

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
SEED, EXAMPLES = 9, 15
# A stream that does not end is none of its requests.
ENDLESS = "WatchChanges"


@pytest.fixture
def schemathesis():
    try:
        return find_interpreter().with_name("schemathesis")
    except NotBuiltError as exc:
        pytest.skip(f"not run: {exc}")


@pytest.fixture
def catalogs(tmp_path):
    """Return a catalog of each kind, with tables whose names are likely to be asked for."""
    nested = mooring.connect(tmp_path / "nested")
    store = mooring.connect(f"metastore+{tmp_path / 'store'}")
    plain = mooring.connect(tmp_path / "plain", manifest_enabled=False)
    for catalog in (nested, store):
        catalog.create_namespace("0")
        catalog.create_table(["0", "0"], rows([1]))
    plain.create_table("0", rows([1]))
    return {"nested": nested, "store": store, "plain": plain}


def _try(schemathesis, place, address, catalog):
    published = httpx2.get(f"{address}/mooring/v1/openapi.json").json()
    document = place / "document.json"
    document.write_text(json.dumps({**published, "servers": [{"url": "/"}]}))
    command = [schemathesis, "run", document, "--url", f"{address}/mooring/{catalog}"]
    command += ["--checks", ",".join(CHECKS), "--exclude-operation-id", ENDLESS]
    command += ["--phases", "examples,fuzzing,coverage", "--seed", str(SEED)]
    command += ["--max-examples", str(EXAMPLES), "--suppress-health-check", "all"]
    command += ["--continue-on-failure", "--no-color", "--warnings", "off"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]
    assert "No issues found" in done.stdout


@pytest.mark.peer("mooring-document", they="fits", on="Mooring REST")
def test_no_answer_is_one_that_the_document_does_not_list(schemathesis, catalogs, tmp_path):
    with run_server(catalogs) as address:
        for name in catalogs:
            _try(schemathesis, tmp_path, address, name)
    assert catalogs["plain"].list_tables() == ["0"]


@pytest.mark.peer("mooring-document", they="fits", on="Mooring REST")
def test_strangers_get_only_answers_that_the_document_lists(schemathesis, catalogs, tmp_path):
    settings = ServerSettings(clients=(Client.of("ada", "a secret", Grant(Role.ADMIN)),))
    with run_server(catalogs, settings) as address:
        _try(schemathesis, tmp_path, address, "nested")
