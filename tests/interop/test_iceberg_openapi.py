"""The server against the published OpenAPI document, where its text is at hand (`SPEC_DIR`).

Schemathesis makes requests of the document, sensible ones and others, and holds every answer
against it; a walk through everything that succeeds makes sure that success was held, too.

Spec: iceberg-rest-openapi 1.9.0, "paths".
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from mooring.iceberg.snapshots import Snapshot
from mooring.namespace.located import locate
from mooring.server.credentials_file import add_client, make_secret
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client
from tests.interop.iceberg_peer import NotBuiltError, find_interpreter
from tests.interop.peer import Peer
from tests.interop.served import KINDS, PEOPLE, run_served
from tests.server.served import _Stager, add, change, on_main

pytestmark = pytest.mark.interop

DRIVER = Path(__file__).parent / "iceberg_openapi_driver.py"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
SEED, EXAMPLES = 8, 5
# The phases of a search for failures; in that of coverage are most requests.
# Tables on this machine's disk need no credentials, so that it is never taken on.
ROLE = ("--vend-role", "arn:aws:iam::123456789012:role/lake")
FEW = "examples,fuzzing"
ALL = f"{FEW},coverage"
NAMESPACES = "/v1/{prefix}/namespaces"
NAMESPACE = f"{NAMESPACES}/{{namespace}}"
TABLES, TABLE = f"{NAMESPACE}/tables", f"{NAMESPACE}/tables/{{table}}"
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "n", "type": "long", "required": False}],
}
REPORT = {
    "report-type": "commit-report",
    "table-name": "people",
    "snapshot-id": 1,
    "sequence-number": 1,
    "operation": "append",
    "metrics": {},
}
UNSUPPORTED = (400, 406)
# What the server does not do, and says so.
REFUSED = {
    f"POST {TABLE}/plan",
    f"GET {TABLE}/plan/{{plan-id}}",
    f"DELETE {TABLE}/plan/{{plan-id}}",
    f"POST {TABLE}/tasks",
    f"GET {NAMESPACE}/views",
    f"POST {NAMESPACE}/views",
    f"GET {NAMESPACE}/views/{{view}}",
    f"POST {NAMESPACE}/views/{{view}}",
    f"DELETE {NAMESPACE}/views/{{view}}",
    f"HEAD {NAMESPACE}/views/{{view}}",
    "POST /v1/{prefix}/views/rename",
}


def _specification() -> Path:
    """Return where the text of the document is, or say that it is not at hand."""
    directory = os.environ.get("SPEC_DIR")
    path = Path(directory or "", "iceberg-rest-openapi-1.9.0.yaml")
    if not directory or not path.is_file():
        pytest.skip("not run: SPEC_DIR is absent")
    return path


def _interpreter() -> Path:
    try:
        return find_interpreter()
    except NotBuiltError as exc:
        pytest.skip(f"not run: {exc}")


@pytest.mark.parametrize(
    ("kind", "namespace", "phases"),
    [("nested", None, ALL), ("directory", "root", ALL), ("metastore", "sales", FEW)],
    ids=["anything", "a table of a directory", "a table of a metastore"],
)
@pytest.mark.peer("iceberg-document", they="fits", on="Iceberg REST")
def test_no_answer_is_one_that_the_document_does_not_list(tmp_path, kind, namespace, phases):
    """Half of the requests make no sense; most others are about a table that is there."""
    specification = _specification()
    with run_served(kind, tmp_path) as served:
        _try(specification, served, namespace, phases)
        assert served.rows("people")


@pytest.mark.peer("iceberg-document", they="fits", on="Iceberg REST")
def test_no_answer_to_strangers_is_one_that_the_document_does_not_list(tmp_path):
    specification = _specification()
    clients = tmp_path / "clients.toml"
    add_client(clients, Client.of("ada", make_secret(), Grant(Role.WRITER)))
    with run_served("directory", tmp_path, "--credentials", str(clients)) as served:
        _try(specification, served, None, FEW)


def _try(specification, served, namespace, phases):
    """Send what the document allows and what it does not, and hold the answers against it.

    Args:
        specification: The document.
        served: What to send it to.
        namespace: That of a table that most requests are about; anything's unless given.
        phases: Of the search for failures.
    """
    home = served.root.parent
    command = [_interpreter().with_name("schemathesis")]
    if namespace is not None:
        known = f'[parameters]\n"path.namespace" = "{namespace}"\n"path.table" = "people"\n'
        (home / "known.toml").write_text(known)
        command += ["--config-file", home / "known.toml"]
    command += ["run", specification, "--url", served.uri, "--checks", ",".join(CHECKS)]
    command += ["--phases", phases, "--max-examples", str(EXAMPLES), "--seed", str(SEED)]
    command += ["--suppress-health-check", "all", "--continue-on-failure", "--no-color"]
    command += ["--warnings", "off"]
    if namespace is not None:  # later requests are to find the table
        for operation in ("dropTable", "dropNamespace", "renameTable"):
            command += ["--exclude-operation-id", operation]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True)  # noqa: PLW1510  # told below
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]
    assert "No issues found" in done.stdout


@pytest.fixture
def send(request, tmp_path):
    """Sends requests, each of which must be answered as the document says."""
    specification = _specification()
    peer = Peer(_interpreter(), DRIVER)
    peer("start", spec=str(specification), uri="")
    yield peer
    peer.close()


def _stage(served, table, at):
    """Have Lance write a row and the manifest of the next version, and ask for nothing."""
    backend = served.catalog.backend
    found = served.catalog.describe_table(served.name(table))
    handle = locate(backend, found.id, found)
    client = _Stager(handle.ledger)
    with pytest.raises(OSError, match="is unknown"):
        handle.open_through(client).insert(pa.table({"id": [at], "name": ["x"]}, schema=PEOPLE))
    version, path = client.staged
    return Snapshot(version, 0, path, 0, commit_id=f"commit {at}")


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.peer("iceberg-document", they="fits", on="Iceberg REST")
def test_every_operation_succeeds_as_the_document_says(send, tmp_path, kind):
    done = set()
    with run_served(kind, tmp_path, "--vend-credentials", "--allow-anonymous", *ROLE) as served:
        send("start", spec=str(_specification()), uri=served.uri)

        def ask(operation, expected, **given):
            done.add(operation)
            status, body = send("call", operation=operation, **given)
            assert status in expected, (operation, body)
            return body

        _walk(ask, served, kind)
        assert done >= set(send("operations")) - REFUSED


def _walk(ask, served, kind):
    """Do everything that can be done; a directory without a manifest has no namespaces."""
    ok, no_content = (200,), (204,)
    if kind == "directory":
        made, dropped, renamed = UNSUPPORTED, UNSUPPORTED, UNSUPPORTED
    else:
        made, dropped, renamed = ok, no_content, no_content
    place = {"namespace": "\x1f".join(served.namespace)}
    people = {**place, "table": "people"}
    ask("GET /v1/config", ok)
    form = {"grant_type": "client_credentials", "client_id": "a", "client_secret": "b"}
    media = "application/x-www-form-urlencoded"
    ask("POST /v1/oauth/tokens", (400, 401), body=form, media_type=media)  # nobody needs one

    ask(f"GET {NAMESPACES}", ok, query={"pageSize": 1})
    ask(f"GET {NAMESPACE}", ok, path=place)
    ask(f"HEAD {NAMESPACE}", no_content, path=place)
    body = {"namespace": ["made"], "properties": {"owner": "ada"}}
    ask(f"POST {NAMESPACES}", made, body=body)
    inner = {"namespace": "root" if kind == "directory" else "made"}
    words = {"removals": ["owner", "none"], "updates": {"team": "x"}}
    ask(f"POST {NAMESPACE}/properties", made, path=inner, body=words)
    ask(f"DELETE {NAMESPACE}", dropped, path=inner)

    ask(f"GET {TABLES}", ok, path=place, query={"pageSize": 1, "pageToken": ""})
    ask(f"HEAD {TABLE}", no_content, path=people)
    for snapshots in ("all", "refs"):
        ask(f"GET {TABLE}", ok, path=people, query={"snapshots": snapshots})
    ask(f"GET {TABLE}", ok, path={**place, "table": "every type"})
    ask(f"GET {TABLE}/credentials", ok, path=people)
    ask(f"POST {TABLE}/metrics", no_content, path=people, body=REPORT)
    new = {"name": "new", "schema": SCHEMA, "properties": {"table_type": "lance"}}
    ask(f"POST {TABLES}", ok, path=place, body=new)
    assert "new" in served.tables
    _commit(ask, served, people)

    beside = served.directory("people").parent / "beside.lance"
    lance.write_dataset(pa.table({"id": [1]}), str(beside))
    given = {"name": "beside", "metadata-location": str(beside)}
    known = (409,) if kind == "directory" else ok  # there, lying in the directory is all it takes
    ask(f"POST {NAMESPACE}/register", known, path=place, body=given)
    rename = {
        "source": {"namespace": list(served.namespace), "name": "new"},
        "destination": {"namespace": list(served.namespace), "name": "newer"},
    }
    ask("POST /v1/{prefix}/tables/rename", renamed, body=rename)
    gone = {**place, "table": "new" if kind == "directory" else "newer"}
    ask(f"DELETE {TABLE}", no_content, path=gone, query={"purgeRequested": True})
    assert gone["table"] not in served.tables


def _commit(ask, served, people):
    """Make versions by both ways of commits; a second one of the same number loses."""
    first, second = _stage(served, "people", 7), _stage(served, "people", 8)
    on_top = [on_main(first.version - 1)]
    body = {"requirements": on_top, "updates": add(first)}
    found = ask(f"POST {TABLE}", (200,), path=people, body=body)
    assert found["metadata"]["current-snapshot-id"] == first.version
    body = {"requirements": on_top, "updates": add(second)}
    ask(f"POST {TABLE}", (409,), path=people, body=body)
    transact = "POST /v1/{prefix}/transactions/commit"
    third = _stage(served, "people", 9)
    changes = {"table-changes": [change(served.namespace, "people", third)]}
    ask(transact, (204,), body=changes)
    ask(transact, (409,), body=changes)
    assert sorted(row["id"] for row in served.rows("people"))[-2:] == [7, 9]
