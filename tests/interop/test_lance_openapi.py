"""Lance REST against the published OpenAPI document, where its text is at hand (`SPEC_DIR`).

Schemathesis makes requests of the document, sensible ones and others, and holds every answer
against it; a walk through everything that succeeds makes sure that success was held, too.

Spec: lance-rest-openapi, "paths".
"""

from __future__ import annotations

import base64
import os
import subprocess
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest

from mooring.identifiers import ObjectId
from mooring.namespace.located import locate
from mooring.server.settings import Client, ServerSettings
from tests.interop.iceberg_peer import NotBuiltError, find_interpreter
from tests.interop.peer import Peer
from tests.lakes import COMPAT_DISK, DISK, METASTORE_DISK, FakeClock, Lake
from tests.own_server import run_server
from tests.server.lance_served import stream_of, table_of
from tests.server.served import _Stager

if TYPE_CHECKING:
    from mooring.catalog import Catalog

pytestmark = pytest.mark.interop

HERE = Path(__file__).parent
DRIVER, HOOKS = HERE / "lance_openapi_driver.py", "lance_openapi_hooks"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "has_code",
)
SEED, EXAMPLES = 9, 5
# The phases of a search for failures; in that of coverage are most requests.
FEW = "examples,fuzzing"
ALL = f"{FEW},coverage"
KINDS = {"nested": COMPAT_DISK, "directory": DISK, "metastore": METASTORE_DISK}
PEOPLE = pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["ada", "bob"]})
UNSUPPORTED = (400, 406)
# Later requests are to find the table.
ENDING = ("DropTable", "DropNamespace", "RenameTable", "DeregisterTable", "BatchCommitTables")


@dataclass(frozen=True)
class Served:
    """A catalog that Lance clients reach."""

    lake: Lake
    catalog: Catalog
    uri: str

    def id(self, name: str) -> str:
        return "$".join(self.lake.path(name))

    def rows(self, name: str) -> int:
        return self.catalog.table(self.lake.path(name)).to_lance().count_rows()


@contextmanager
def run_kind(kind, directory, settings=None):
    lake = Lake(KINDS[kind], str(directory / "lake"), {}, FakeClock())
    catalog = lake.connect()
    catalog.create_table(lake.path("people"), PEOPLE)
    with run_server(catalog, settings) as address:
        yield Served(lake, catalog, f"{address}/lance")


def _specification() -> Path:
    """Return where the text of the document is, or say that it is not at hand."""
    directory = os.environ.get("SPEC_DIR")
    path = Path(directory or "", "lance-rest-openapi.yaml")
    if not directory or not path.is_file():
        pytest.skip("not run: SPEC_DIR is absent")
    return path


def _interpreter() -> Path:
    try:
        return find_interpreter()
    except NotBuiltError as exc:
        pytest.skip(f"not run: {exc}")


@pytest.mark.parametrize(
    ("kind", "known", "phases"),
    [
        ("nested", False, FEW),
        ("nested", True, ALL),
        ("directory", True, FEW),
        ("metastore", True, FEW),
    ],
    ids=["anything", "a table", "a table of a directory", "a table of a metastore"],
)
@pytest.mark.peer("lance-document", they="fits", on="Lance REST")
def test_no_answer_is_one_that_the_document_does_not_list(tmp_path, kind, known, phases):
    """Half of the requests make no sense; most others are about a table that is there."""
    specification = _specification()
    with run_kind(kind, tmp_path) as served:
        _try(specification, served, phases, table=served.id("people") if known else None)
        assert served.catalog.table_exists(served.lake.path("people"))


@pytest.mark.peer("lance-document", they="fits", on="Lance REST")
def test_no_answer_to_strangers_is_one_that_the_document_does_not_list(tmp_path):
    specification = _specification()
    settings = ServerSettings(clients=(Client.of("ada", "s3cret"),))
    with run_kind("nested", tmp_path, settings) as served:
        _try(specification, served, FEW)
        assert served.rows("people") == 2


def _try(specification, served, phases, table=None):
    """Send what the document allows and what it does not, and hold the answers against it.

    Args:
        specification: The document.
        served: What to send it to.
        phases: Of the search for failures.
        table: What most requests are about; anything unless given.
    """
    home = Path(served.lake.uri).parent
    command = [_interpreter().with_name("schemathesis")]
    if table is not None:
        known = f'[parameters]\n"path.id" = "{table}"\n"query.delimiter" = "$"\n'
        (home / "known.toml").write_text(known)
        command += ["--config-file", home / "known.toml"]
    command += ["run", specification, "--url", served.uri, "--checks", ",".join(CHECKS)]
    command += ["--phases", phases, "--max-examples", str(EXAMPLES), "--seed", str(SEED)]
    command += ["--suppress-health-check", "all", "--continue-on-failure", "--no-color"]
    command += ["--warnings", "off"]
    if table is not None:
        for operation in ENDING:
            command += ["--exclude-operation-id", operation]
    env = {**os.environ, "PYTHONPATH": str(HERE), "SCHEMATHESIS_HOOKS": HOOKS}
    done = subprocess.run(command, cwd=home, env=env, capture_output=True, text=True)  # noqa: PLW1510  # told below
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]
    assert "No issues found" in done.stdout


# -- everything that succeeds ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.peer("lance-document", they="fits", on="Lance REST")
def test_every_operation_succeeds_as_the_document_says(tmp_path, kind):
    specification = _specification()
    done = set()
    with closing(Peer(_interpreter(), DRIVER)) as peer, run_kind(kind, tmp_path) as served:
        peer("start", spec=str(specification), uri=served.uri)

        def ask(operation, expected=(200,), **given):
            done.add(operation)
            rows = given.pop("rows", None)
            if rows is not None:
                given["rows"] = base64.b64encode(stream_of(rows)).decode()
            status, body = peer("call", operation=operation, **given)
            assert status in expected, (operation, status, body)
            return body

        _walk(ask, served, kind)
        assert done == set(peer("operations"))


def _walk(ask, served, kind):
    """Do everything that can be done; a directory without a manifest has no namespaces."""
    spaced = (200,) if kind != "directory" else UNSUPPORTED
    people = {"path": {"id": served.id("people")}}
    _walk_namespaces(ask, served, spaced)
    _walk_rows(ask, people)
    _walk_columns(ask, people)
    _walk_references(ask, people)
    _walk_versions(ask, served)
    _walk_lives(ask, served, kind)


def _walk_namespaces(ask, served, spaced):
    root = {"path": {"id": "$"}}
    ask("ListNamespaces", **root, query={"limit": 1})
    ask("DescribeNamespace", **root, body={})
    ask("NamespaceExists", **root, body={})
    within = {"path": {"id": "$".join(served.lake.path("t")[:-1]) or "$"}}
    ask("ListTables", **within, query={"limit": 1, "include_declared": True})
    ask("ListAllTables", query={"limit": 1})
    made = {"path": {"id": "made"}}
    ask("CreateNamespace", spaced, **made, body={"properties": {"owner": "ada"}})
    ask("DropNamespace", (*spaced, 404), **made, body={"behavior": "Cascade"})


def _walk_rows(ask, people):
    row = PEOPLE.slice(0, 1)
    merge = {"on": "id", "when_matched_update_all": True, "when_not_matched_insert_all": True}
    ask("InsertIntoTable", **people, query={"mode": "append"}, rows=PEOPLE)
    ask("InsertIntoTable", **people, query={"mode": "Overwrite"}, rows=PEOPLE)
    ask("MergeInsertIntoTable", **people, query=merge, rows=row)
    ask("UpdateTable", **people, body={"updates": [["name", "'eve'"]], "predicate": "id = 1"})
    ask("DeleteFromTable", **people, body={"predicate": "id = 2"})
    assert ask("CountTableRows", **people, body={}) == 1
    query = {"vector": {}, "k": 10, "filter": "id > 0"}
    found = table_of(base64.b64decode(ask("QueryTable", **people, body=query)))
    assert found.to_pylist() == [{"id": 1, "name": "eve"}]
    ask("ExplainTableQueryPlan", **people, body={"query": query, "verbose": True})
    ask("AnalyzeTableQueryPlan", **people, body=query)
    ask("GetTableStats", **people, body={})
    detailed = {"load_detailed_metadata": True, "with_table_uri": True, "check_declared": True}
    assert ask("DescribeTable", **people, body={}, query=detailed)["schema"]
    ask("TableExists", **people, body={})
    done = ask("RestoreTable", **people, body={"version": 1})["transaction_id"]
    transaction = {"path": {"id": f"{people['path']['id']}${done}"}}
    ask("DescribeTransaction", **transaction, body={})
    action = {"setPropertyAction": {"key": "note", "value": "checked"}}
    ask("AlterTransaction", **transaction, body={"actions": [action]})


def _walk_columns(ask, people):
    ask("UpdateTableSchemaMetadata", **people, body={"team": "x"})
    new = [{"name": "twice", "expression": "id * 2"}]
    ask("AlterTableAddColumns", **people, body={"new_columns": new})
    told = [{"path": "twice", "metadata": {"unit": "s"}}]
    ask("UpdateFieldMetadata", **people, body={"updates": told})
    renamed = [{"path": "twice", "rename": "double"}]
    ask("AlterTableAlterColumns", **people, body={"alterations": renamed})
    ask("AlterTableDropColumns", **people, body={"columns": ["double"]})
    ask("AlterTableBackfillColumns", (202, 400, 404), **people, body={"column": "name"})
    index = {"column": "id", "index_type": "BTREE", "name": "by_id"}
    ask("CreateTableScalarIndex", **people, body=index)
    ask("CreateTableIndex", **people, body={**index, "column": "name", "name": "by_name"})
    ask("ListTableIndices", **people, body={})
    named = {"path": {**people["path"], "index_name": "by_id"}}
    ask("DescribeTableIndexStats", **named, body={})
    ask("DropTableIndex", **named)


def _walk_references(ask, people):
    ask("CreateTableTag", **people, body={"tag": "first", "version": 1})
    ask("CreateTableTag", (409,), **people, body={"tag": "first", "version": 1})
    ask("ListTableTags", **people, query={"limit": 1})
    ask("GetTableTagVersion", **people, body={"tag": "first"})
    ask("UpdateTableTag", **people, body={"tag": "first", "version": 2})
    ask("DeleteTableTag", **people, body={"tag": "first"})
    ask("CreateTableBranch", **people, body={"name": "try"})
    ask("ListTableBranches", **people, query={"limit": 1})
    ask("DeleteTableBranch", **people, body={"name": "try"})


def _stage(served, name):
    """Have Lance write a row and the manifest of the next version, and ask for nothing."""
    handle = locate(served.catalog.backend, ObjectId.of(served.lake.path(name)))
    client = _Stager(handle.ledger)
    with pytest.raises(OSError, match="is unknown"):
        handle.open_through(client).insert(PEOPLE)
    version, path = client.staged
    return {"version": version, "manifest_path": path}


def _walk_versions(ask, served):
    ask("CreateTable", path={"id": served.id("new")}, rows=PEOPLE)
    new = {"path": {"id": served.id("new")}}
    ask("ListTableVersions", **new, query={"limit": 1, "descending": True})
    ask("DescribeTableVersion", **new, body={"version": 1})
    staged = _stage(served, "new")
    ask("CreateTableVersion", **new, body=staged)
    ask("CreateTableVersion", (409,), **new, body=staged)
    entry = {"id": served.lake.path("new"), **_stage(served, "new")}
    ask("BatchCreateTableVersions", body={"entries": [entry]})
    entry = {"id": served.lake.path("new"), **_stage(served, "new")}
    ask("BatchCommitTables", body={"operations": [{"create_table_version": entry}]})
    assert served.rows("new") == 8
    ranges = {"ranges": [{"start_version": 1, "end_version": 2}]}
    ask("BatchDeleteTableVersions", **new, body=ranges)


def _walk_lives(ask, served, kind):
    declared = {"path": {"id": served.id("declared")}}
    ask("DeclareTable", **declared, body={})
    ask("DeclareTable", (409,), **declared, body={})
    spaced = (200,) if kind != "directory" else UNSUPPORTED
    new = {"path": {"id": served.id("new")}}
    ask("RenameTable", spaced, **new, body={"new_table_name": "newer"})
    name = "newer" if kind != "directory" else "new"
    lance.write_dataset(PEOPLE, f"{served.lake.uri}/beside.lance")
    beside = {"path": {"id": served.id("registered")}}
    ask("RegisterTable", (*spaced, 406), **beside, body={"location": "beside.lance"})
    ask("DeregisterTable", (*spaced, 404), **beside, body={})
    ask("DropTable", path={"id": served.id(name)})
    view = {"kind": "query", "source_query": "SELECT 1", "output_schema": "{}"}
    ask("CreateMaterializedView", UNSUPPORTED, path={"id": served.id("v")}, body=view)
    ask("RefreshMaterializedView", UNSUPPORTED, path={"id": served.id("v")}, body={})
