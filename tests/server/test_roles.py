"""Who may do what, by every operation: against a model of a few lines, and from the outside.

Issue: the server, "roles (reader, writer, admin) per catalog and namespace prefix".
"""

from __future__ import annotations

import base64
import binascii
import json
import random
import re
import shutil
import typing
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import lance
import pyarrow as pa
import pytest
from pydantic import BaseModel
from starlette.testclient import TestClient

import mooring
from mooring.identifiers import ObjectId
from mooring.server.app import create_app
from mooring.server.iceberg.routes import ROUTES
from mooring.server.lance.operation import Takes
from mooring.server.lance.operations import OPERATIONS
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.server.lance_served import ARROW, files_of, stream_of, table_of

RANKS = {"reader": 1, "writer": 2, "admin": 3}
PLACES = [[], ["a"], ["a", "x"], ["a", "x", "deep"], ["hidden"], ["aside"]]
TABLES = [[*place, "t"] for place in PLACES]
# What their types alone do not tell.
PARTICULAR = {
    "CreateMaterializedViewRequest": {"kind": "query", "source_query": "1", "output_schema": "1"},
    "AlterTransactionRequest": {
        "actions": [{"set_property_action": {"key": "k", "value": "v"}}],
    },
}
LISTINGS = {"ListNamespaces", "ListTables", "ListAllTables"}


def _lake(root: Path, **options: Any) -> Any:
    catalog = mooring.connect(root, **options)
    for place in PLACES[1:]:
        catalog.create_namespace("$".join(place))
    for table in TABLES:
        catalog.create_table("$".join(table), pa.table({"n": [1]}))
    catalog.create_table(
        "hidden$treasure", pa.table({"n": [987654321]}), properties={"gem": "ruby"}
    )
    catalog.create_table("hidden$sunk", pa.table({"n": [1]}))
    catalog.drop_table("hidden$sunk")
    return catalog


def _sample(annotation: Any) -> Any:
    """Return something that fits a type."""
    plain = {str: "1", int: 1, bool: True, float: 1.0}
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in plain:
        return plain[annotation]
    if origin is typing.Annotated:
        return _sample(args[0])
    if origin in {list, dict}:
        return origin()
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _body(annotation)
    return _sample(args[0])


def _body(model: type[BaseModel]) -> dict[str, Any]:
    """Return a body that has what a model demands."""
    if model.__name__ in PARTICULAR:
        return dict(PARTICULAR[model.__name__])
    fields = model.model_fields.items()
    return {
        field.alias or name: _sample(field.annotation)
        for name, field in fields
        if field.is_required()
    }


@dataclass(frozen=True)
class Request:
    """A request, and what it needs as somebody else reads the document."""

    operation: Any
    about: list[str]
    body: dict[str, Any]
    needs: list[list[str]]

    @property
    def path(self) -> str:
        text = quote("$".join(self.about) or "$", safe="")
        return "/lance" + self.operation.path.replace("{id}", text).replace("{index_name}", "i")

    def send(self, client: TestClient, headers: dict[str, str]) -> Any:
        if self.operation.method == "GET":
            return client.get(self.path, headers=headers)
        if self.operation.takes is Takes.ROWS:
            rows = {"content": stream_of(pa.table({"n": [2]})), "params": {"on": "n"}}
            return client.post(self.path, headers={**headers, "content-type": ARROW}, **rows)
        return client.post(self.path, json=self.body, headers=headers)


def _request(dice: random.Random) -> Request:
    operation = dice.choice(OPERATIONS)
    about, other = dice.choice(TABLES + PLACES), dice.choice(TABLES)
    body = _body(operation.model)
    asked, needs = about, [about]
    match operation.name:
        case "RenameTable":
            body = {"new_table_name": other[-1], "new_namespace_id": other[:-1]}
            needs = [about, other]
        case "RegisterTable" | "DeclareTable":
            body["location"] = dice.choice(["hidden/treasure.lance", "x.lance"])
            needs = [about, []]
        case "BatchCreateTableVersions":
            entry = {"version": 2, "manifest_path": "_versions/x"}
            body = {"entries": [{"id": one, **entry} for one in (about, other)]}
            asked, needs = [], [about, other]
        case "BatchCommitTables":
            drop, declare = {"deregister_table": {"id": about}}, {"declare_table": {"id": other}}
            body = {"operations": [drop, declare]}
            asked, needs = [], [about, other]
        case "DescribeTransaction" | "AlterTransaction":
            asked = [*about, "1"]
        case "ListAllTables":
            asked, needs = [], [[]]
    return Request(operation, asked, body, needs)


def _holds(grant: tuple[str, list[str]], needs: str, names: list[str]) -> bool:
    role, within = grant
    return RANKS[role] >= RANKS[needs] and names[: len(within)] == within


def _leads(grant: tuple[str, list[str]], names: list[str]) -> bool:
    return grant[1][: len(names)] == names


def _is_allowed(grants: list[tuple[str, list[str]]], request: Request) -> bool:
    """Say whether a request is allowed, in as few words as there are."""
    needs = str(request.operation.role)
    if request.operation.name in LISTINGS and any(_leads(one, request.about) for one in grants):
        return True
    return all(any(_holds(one, needs, names) for one in grants) for names in request.needs)


@pytest.mark.parametrize("seed", range(4))
def test_requests_are_refused_exactly_where_the_model_says_so(tmp_path, seed):
    dice = random.Random(seed)
    given = [
        [
            (dice.choice([*RANKS]), dice.choice(PLACES[: 1 + 5 * dice.randint(0, 1)]))
            for _ in range(dice.randint(1, 2))
        ]
        for _ in range(6)
    ]
    clients = [
        Client.of(
            f"c{at}",
            "s",
            *(Grant(Role(role), None, ObjectId(tuple(within))) for role, within in one),
        )
        for at, one in enumerate(given)
    ]
    catalog = _lake(tmp_path / "lake")
    app = create_app(catalog, ServerSettings(clients=tuple(clients)))
    outcomes = set()
    with TestClient(app, base_url="http://x") as client:
        for _ in range(150):
            who, request = dice.randrange(len(given)), _request(dice)
            allowed = _is_allowed(given[who], request)
            before = None if allowed else files_of(str(tmp_path))
            answer = request.send(client, {"x-api-key": f"c{who}:s"})
            shown = (given[who], request.operation.name, request.about, request.body, answer.text)
            assert (answer.status_code != 403) is allowed, shown
            assert answer.status_code != 401, shown
            if not allowed:
                assert files_of(str(tmp_path)) == before, shown
            outcomes.add((allowed, request.operation.changes))
    assert len(outcomes) == 4  # the dice were fair enough to have tried all


# -- from the outside ------------------------------------------------------------------------------

HIDDEN = ("hidden", "treasure", "sunk", "987654321", "ruby", "aside")


@pytest.fixture
def outside(tmp_path):
    """A server as a reader of one namespace sees it."""
    catalog = _lake(tmp_path / "lake")
    grant = Grant(Role.READER, None, ObjectId(("a",)))
    settings = ServerSettings(clients=(Client.of("rita", "s", grant),))
    with TestClient(create_app(catalog, settings), base_url="http://x") as client:
        client.headers["x-api-key"] = "rita:s"
        yield client, tmp_path


def _said(answer: Any) -> str:
    """Return all that an answer tells, also by what is encoded in it."""
    texts = [answer.content.decode("latin-1"), str(dict(answer.headers))]
    for word in re.findall(r"[A-Za-z0-9_-]{4,}", texts[0]):
        padded = word + "=" * (-len(word) % 4)
        with suppress(binascii.Error):
            texts.append(base64.urlsafe_b64decode(padded.encode()).decode("latin-1"))
    return "\n".join(texts)


def _iceberg_paths(names: list[str], table: str) -> list[tuple[str, str]]:
    levels = "%1F".join(names)
    return [
        (
            route.method,
            "/iceberg"
            + route.path.replace("{prefix}/", "")
            .replace("{namespace}", levels)
            .replace("{table}", table)
            .replace("{view}", table)
            .replace("{plan-id}", "1"),
        )
        for route in ROUTES
        if "oauth" not in route.path
    ]


MOORING = ("catalogs", "catalog", "namespaces", "tables", "trash", "transactions", "runs")


def test_no_request_of_a_reader_of_a_namespace_tells_of_another_or_changes_anything(outside):
    client, place = outside
    before = files_of(str(place))
    for about in (["a"], ["a", "t"], [], ["t"]):
        for operation in OPERATIONS:
            answer = Request(operation, about, _body(operation.model), []).send(client, {})
            assert not [one for one in HIDDEN if one in _said(answer)], (
                operation.name,
                answer.text,
            )
        for method, path in _iceberg_paths(about or ["root"], "t"):
            answer = client.request(method, path, json={})
            assert not [one for one in HIDDEN if one in _said(answer)], (method, path, answer.text)
    for path in MOORING:
        answer = client.get(f"/mooring/v1/{path}")
        assert not [one for one in HIDDEN if one in _said(answer)], (path, answer.text)
    assert files_of(str(place)) == before


@pytest.mark.parametrize("path", ["/lance/v1/namespace/$/list", "/lance/v1/table"])
def test_pages_hold_what_may_be_seen_and_so_do_their_tokens(outside, path):
    client, _ = outside
    seen, token = [], None
    while True:
        params = {"limit": 1} | ({"page_token": token} if token else {})
        answer = client.get(path, params=params)
        assert not [one for one in HIDDEN if one in _said(answer)], answer.text
        body = answer.json()
        page = body.get("namespaces", body.get("tables"))
        assert len(page) == 1  # a page that is short would tell how many are not seen
        seen += page
        token = body.get("page_token")
        if token is None:
            break
    assert seen == (["a"] if "list" in path else ["a$t", "a$x$deep$t", "a$x$t"])


def test_iceberg_pages_hold_what_may_be_seen_and_so_do_their_tokens(tmp_path):
    catalog = _lake(tmp_path / "lake")
    grants = [Grant(Role.READER, None, ObjectId(names)) for names in (("a", "x"), ("t",))]
    settings = ServerSettings(clients=(Client.of("rita", "s", *grants),))
    with TestClient(create_app(catalog, settings), base_url="http://x") as client:
        client.headers["x-api-key"] = "rita:s"
        for path, parent, key, expected in (
            ("namespaces", {}, "namespaces", [["a"]]),
            ("namespaces", {"parent": "a"}, "namespaces", [["a", "x"]]),
            ("namespaces/root/tables", {}, "identifiers", [{"namespace": ["root"], "name": "t"}]),
        ):
            params = {"pageToken": "", "pageSize": "1", **parent}
            answer = client.get(f"/iceberg/v1/{path}", params=params)
            assert answer.json()[key] == expected, answer.text
            assert answer.json()["next-page-token"] is None
            assert not [one for one in HIDDEN if one in _said(answer)]


def test_what_may_not_be_seen_is_refused_whether_it_is_there_or_not(outside):
    client, _ = outside
    for operation in OPERATIONS:
        if operation.name == "ListAllTables":
            continue
        body = _body(operation.model)
        there = Request(operation, ["hidden", "treasure"], body, []).send(client, {})
        absent = Request(operation, ["hidden", "nothing_"], body, []).send(client, {})
        assert there.status_code == absent.status_code, operation.name
        assert there.status_code in {400, 403}, operation.name
        told = [{**one.json(), "instance": ""} for one in (there, absent)]
        assert json.dumps(told[0]).replace("treasure", "nothing_") == json.dumps(told[1])
    for method, path in _iceberg_paths(["hidden"], "treasure"):
        there = client.request(method, path, json={})
        absent = client.request(method, path.replace("treasure", "nothing_"), json={})
        assert there.status_code == absent.status_code, (method, path)
        assert there.text.replace("treasure", "nothing_") == absent.text, (method, path)
    there, absent = (
        client.get("/iceberg/v1/namespaces", params={"parent": parent})
        for parent in ("hidden", "nothing_")
    )
    assert (there.status_code, absent.status_code) == (403, 403)
    assert there.text.replace("hidden", "nothing_") == absent.text
    assert client.get("/iceberg/v1/namespaces", params={"parent": "a"}).status_code == 200


# -- ways around -----------------------------------------------------------------------------------


@pytest.fixture
def writer(tmp_path):
    """A server as a writer of one namespace sees it."""
    catalog = _lake(tmp_path / "lake")
    grant = Grant(Role.WRITER, None, ObjectId(("a",)))
    settings = ServerSettings(clients=(Client.of("will", "s", grant),))
    with TestClient(create_app(catalog, settings), base_url="http://x") as client:
        client.headers["x-api-key"] = "will:s"
        yield client, catalog, tmp_path / "lake"


def test_table_is_renamed_neither_in_nor_out(writer):
    client, _, _ = writer
    out = {"new_table_name": "t2", "new_namespace_id": ["hidden"]}
    assert client.post("/lance/v1/table/a$t/rename", json=out).status_code == 403
    out = {"new_table_name": "t2", "new_namespace_id": []}
    assert client.post("/lance/v1/table/a$t/rename", json=out).status_code == 403
    within = {"new_table_name": "t", "new_namespace_id": ["a", "new"]}
    path = "/lance/v1/table/hidden$treasure/rename"
    assert client.post(path, json=within).status_code == 403
    inside = {"new_table_name": "t2"}
    assert client.post("/lance/v1/table/a$t/rename", json=inside).status_code == 200
    for source, target in ((["a"], ["hidden"]), (["hidden"], ["a"])):
        body = {
            "source": {"namespace": source, "name": "treasure"},
            "destination": {"namespace": target, "name": "mine"},
        }
        assert client.post("/iceberg/v1/tables/rename", json=body).status_code == 403


def test_no_location_and_no_manifest_leads_to_another_table(writer):
    client, catalog, root = writer
    treasure = Path(catalog.describe_table("hidden$treasure").location)
    for location in (str(treasure), treasure.name, f"../{root.name}/{treasure.name}"):
        for action in ("register", "declare"):
            body = {"location": location}
            assert client.post(f"/lance/v1/table/a$n/{action}", json=body).status_code == 403
        body = {"name": "n", "metadata-location": location}
        assert client.post("/iceberg/v1/namespaces/a/register", json=body).status_code == 403
        properties = {"table_type": "lance"}
        body = {"name": "n", "location": location, "schema": {}, "properties": properties}
        assert client.post("/iceberg/v1/namespaces/a/tables", json=body).status_code == 403
    manifest = next((treasure / "_versions").glob("*.manifest"))
    before = files_of(str(root))
    for path in (
        str(manifest),
        f"{treasure.name}/_versions/{manifest.name}",
        f"../../{treasure.name}/_versions/{manifest.name}",
        f"_versions/../../{treasure.name}/_versions/{manifest.name}",
        "_versions/..",
        "_versions/",
        "/etc/passwd",
    ):
        body = {"version": 2, "manifest_path": path}
        answer = client.post("/lance/v1/table/a$t/version/create", json=body)
        assert 400 <= answer.status_code < 500, (path, answer.text)
        batch = {"entries": [{"id": ["a", "t"], **body}]}
        answer = client.post("/lance/v1/table/version/batch-create", json=batch)
        assert 400 <= answer.status_code < 500, (path, answer.text)
    assert files_of(str(root)) == before


@pytest.mark.parametrize("managed", [False, True])
def test_table_that_names_files_of_another_leads_nobody_there(tmp_path, managed):
    """A shallow clone, put where somebody may write by hand; whoever sees all may read it."""
    catalog = _lake(tmp_path / "lake", managed_versioning=managed)
    treasure, own = (catalog.describe_table(one).location for one in ("hidden$treasure", "a$t"))
    lance.dataset(treasure).shallow_clone(str(tmp_path / "clone"), 1)
    (clone,) = (tmp_path / "clone" / "_versions").glob("*.manifest")
    for old in (Path(own) / "_versions").glob("*.manifest"):
        shutil.copyfile(clone, old)
    clients = (
        Client.of("will", "s", Grant(Role.WRITER, None, ObjectId(("a",)))),
        Client.of("rita", "s"),
    )
    asked = {"vector": {"single_vector": []}, "k": 10}
    with TestClient(
        create_app(catalog, ServerSettings(clients=clients)), base_url="http://x"
    ) as client:
        client.headers["x-api-key"] = "will:s"
        for action, body in (
            ("query", asked),
            ("query", {**asked, "version": 1}),
            ("count_rows", {}),
            ("explain_plan", {"query": asked}),
            ("update", {"updates": [["n", "n + 1"]]}),
            ("stats", {}),
        ):
            answer = client.post(f"/lance/v1/table/a$t/{action}", json=body)
            assert answer.status_code == 403, (action, answer.text)
        assert client.get("/iceberg/v1/namespaces/a/tables/t").status_code == 403
        client.headers["x-api-key"] = "rita:s"
        answer = client.post("/lance/v1/table/a$t/query", json=asked)
        assert table_of(answer.content)["n"].to_pylist() == [987654321]


@pytest.mark.parametrize(
    "body",
    [
        {"entries": [{"id": ["a", "t"]}, {"id": ["hidden", "treasure"]}]},
        {"entries": [{}]},
        {"entries": [{"id": []}]},
        {"entries": {"id": ["hidden", "treasure"]}},
        {"entries": [[{"id": ["hidden", "treasure"]}]]},
    ],
)
def test_batch_reaches_no_other_table(writer, body):
    client, _, root = writer
    if isinstance(body["entries"], list):
        more = {"version": 2, "manifest_path": "_versions/x"}
        body = {
            "entries": [
                {**one, **more} if isinstance(one, dict) else one for one in body["entries"]
            ]
        }
    before = files_of(str(root))
    assert client.post("/lance/v1/table/version/batch-create", json=body).status_code in {400, 403}
    assert files_of(str(root)) == before


def test_commit_of_several_tables_reaches_no_other_table(writer):
    client, _, root = writer
    before = files_of(str(root))
    for step in (
        {"deregister_table": {"id": ["hidden", "treasure"]}},
        {"delete_table_versions": {"id": ["hidden", "treasure"], "ranges": []}},
        {"declare_table": {"id": ["a", "n"], "location": "hidden/treasure.lance"}},
        {"declare_table": {"id": ["a", "n"]}, "deregister_table": {"id": ["hidden", "treasure"]}},
    ):
        body = {"operations": [{"declare_table": {"id": ["a", "m"]}}, step]}
        answer = client.post("/lance/v1/table/batch-commit", json=body)
        assert answer.status_code == 403, (step, answer.text)
    changes = [
        {"identifier": {"namespace": [one], "name": "t"}, "requirements": [], "updates": []}
        for one in ("a", "hidden")
    ]
    body = {"table-changes": changes}
    assert client.post("/iceberg/v1/transactions/commit", json=body).status_code == 403
    assert files_of(str(root)) == before


def test_list_of_everything_is_of_everything_whatever_a_body_says(outside):
    client, _ = outside
    body = json.dumps({"id": ["a"]})
    for params in ({}, {"id": "a"}):
        answer = client.request(
            "GET",
            "/lance/v1/table",
            content=body,
            params=params,
            headers={"content-type": "application/json"},
        )
        assert not [one for one in HIDDEN if one in _said(answer)], answer.text


def test_catalog_without_a_role_is_refused_whether_it_is_there_or_not(tmp_path):
    catalogs = {name: mooring.connect(tmp_path / name) for name in ("open", "closed")}
    client = Client.of("rita", "s", Grant(Role.READER, "open"))
    app = create_app(catalogs, ServerSettings(clients=(client,)))
    with TestClient(app, base_url="http://x") as asking:
        asking.headers["x-api-key"] = "rita:s"
        for path in (
            "/lance/{}/v1/table",
            "/iceberg/v1/{}/namespaces",
            "/iceberg/v1/config?warehouse={}",
            "/mooring/{}/v1/catalog",
            "/mooring/{}/v1/changes",
        ):
            ask = asking.head if path.endswith("changes") else asking.get  # which goes on for ever
            assert ask(path.format("open")).status_code == 200
            there, absent = (asking.get(path.format(name)) for name in ("closed", "absent"))
            assert (there.status_code, absent.status_code) == (403, 403), path
            told = [re.sub(r'"instance":"[^"]*"', "", one.text) for one in (there, absent)]
            assert told[0].replace("closed", "absent") == told[1]
        form = {"grant_type": "client_credentials", "client_id": "x", "client_secret": "x"}
        strangers = [
            asking.post(f"/iceberg/v1/oauth/tokens?warehouse={name}", data=form)
            for name in ("closed", "absent")
        ]
        assert strangers[0].text == strangers[1].text
