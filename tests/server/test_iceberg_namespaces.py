"""Namespaces, names and pages, as Iceberg clients ask for them.

Spec: iceberg-namespace, "Namespace Mapping"; iceberg-rest-openapi, "listNamespaces" to
"updateProperties", "PageToken".
"""

from __future__ import annotations

from mooring.identifiers import ObjectId
from tests.server.served import at, kind_of

JAVA = {"X-Client-Version": "Apache Iceberg 1.9.0 (commit 0)"}
PYICEBERG = {"User-Agent": "PyIceberg/0.12.0"}
NAMES = ["with space", "日本語", "Ελληνικά", "a.b", "a+b", "a%20b", "50%", "quote'd", "#?&="]


def _namespaces(served, **more) -> list[list[str]]:
    response = served.get("/namespaces", **more)
    assert response.status_code == 200, response.text
    return response.json()["namespaces"]


def test_namespace_is_made_described_changed_and_dropped(spaced):
    made = spaced.post("/namespaces", {"namespace": ["a"], "properties": {"owner": "ada"}})
    assert made.json() == {"namespace": ["a"], "properties": {"owner": "ada"}}
    assert spaced.get("/namespaces/a").json() == made.json()
    again = spaced.post("/namespaces", {"namespace": ["a"]})
    assert kind_of(again) == (409, "AlreadyExistsException")
    changed = spaced.post(
        "/namespaces/a/properties",
        {"removals": ["owner", "absent", "absent"], "updates": {"team": "x"}},
    )
    assert changed.json() == {"updated": ["team"], "removed": ["owner"], "missing": ["absent"]}
    assert spaced.get("/namespaces/a").json()["properties"] == {"team": "x"}
    assert spaced.delete("/namespaces/a").status_code == 204
    assert kind_of(spaced.get("/namespaces/a")) == (404, "NoSuchNamespaceException")
    assert spaced.delete("/namespaces/a").status_code == 404


def test_property_cannot_be_set_and_removed_at_once(spaced):
    spaced.lake.make("a")
    body = {"removals": ["x"], "updates": {"x": "y"}}
    assert spaced.post("/namespaces/a/properties", body).status_code == 422
    assert spaced.get("/namespaces/a").json()["properties"] == {}


def test_namespace_with_something_in_it_is_not_dropped(spaced):
    spaced.lake.make("a")
    spaced.lake.create(ObjectId(("a", "t")), [1])
    assert kind_of(spaced.delete("/namespaces/a")) == (409, "NamespaceNotEmptyException")
    assert spaced.head("/namespaces/a").status_code == 204


def test_plain_directory_says_that_it_has_no_namespaces(plain):
    assert kind_of(plain.post("/namespaces", {"namespace": ["a"]})) == (
        406,
        "UnsupportedOperationException",
    )
    assert _namespaces(plain) == [["root"]]
    assert kind_of(plain.post("/namespaces/root/properties", {"updates": {"a": "b"}}))[0] == 406


def test_nested_namespaces_are_listed_level_by_level(compat):
    compat.lake.make("a", "a$b", "a$b$c c", "d")
    compat.lake.create(ObjectId(("a", "b", "c c", "t")), [1])
    assert _namespaces(compat) == [["a"], ["d"], ["root"]]
    assert _namespaces(compat, params={"parent": "a"}) == [["a", "b"]]
    assert _namespaces(compat, params={"parent": "a\x1fb"}) == [["a", "b", "c c"]]
    assert compat.get(f"{at(['a', 'b', 'c c'])}/tables").json()["identifiers"] == [
        {"namespace": ["a", "b", "c c"], "name": "t"}
    ]
    assert kind_of(compat.get("/namespaces", params={"parent": "nope"}))[0] == 404


def test_parent_that_was_encoded_twice_is_understood(compat):
    compat.lake.make("a b", "a b$c", "a%20b", "a%20b$d")
    doubled = {"params": {"parent": "a%20b"}}
    assert _namespaces(compat, **doubled, headers=PYICEBERG) == [["a b", "c"]]
    assert _namespaces(compat, **doubled) == [["a%20b", "d"]]
    compat.lake.make("x y", "x y$z")
    assert _namespaces(compat, params={"parent": "x%20y"}) == [["x y", "z"]]
    assert _namespaces(compat, params={"parent": "x y%1Fz"}) == []


def test_names_may_hold_what_addresses_are_made_of(spaced):
    for name in NAMES:
        assert spaced.post("/namespaces", {"namespace": [name]}).status_code == 200, name
        spaced.namespace = [name]
        assert spaced.get(at([name])).json()["namespace"] == [name]
        assert spaced.create(name).status_code == 200, name
        assert spaced.names() == [name]
        assert spaced.load(name)["current-snapshot-id"] == 1
        assert spaced.delete(spaced.table(name)).status_code == 204


def test_names_of_plain_tables_may_hold_that_too(plain):
    for name in NAMES:
        assert plain.create(name).status_code == 200, name
        assert plain.head(plain.table(name)).status_code == 204
    assert plain.names() == sorted(NAMES)


def test_name_that_cannot_be_one_is_refused(served):
    for address in ("a%2Fb", "..%2Fx", "a%00b", "%FF", "a%0Ab", "%C0%AF"):
        for path in (f"/namespaces/{address}", f"{served.tables}/{address}"):
            assert served.get(path).status_code == 400, path
            assert served.delete(path).status_code == 400, path
    assert served.get("/namespaces", params={"parent": "a/b"}).status_code == 400


def test_dollar_in_a_name_never_reaches_into_a_namespace(served):
    served.fill("t", 1)
    around = "" if served.namespace == ["root"] else f"{served.namespace[0]}$"
    top = "root" if around == "" else served.namespace[0]
    assert served.get(f"/namespaces/{top}/tables/{around}t%24t").status_code in {400, 404}
    assert served.create("a$b").status_code in {200, 400}
    assert served.get("/namespaces/main%24t").status_code in {400, 404}


def test_plus_is_a_space_only_for_java(plain):
    plain.create("a b")
    plain.create("a+b")
    uuids = {name: plain.load(name)["table-uuid"] for name in ("a b", "a+b")}

    def load(path: str, **more: object) -> str:
        found: str = plain.get(f"{plain.tables}/{path}", **more).json()["metadata"]["table-uuid"]
        return found

    assert load("a+b") == uuids["a+b"]
    assert load("a+b", headers=JAVA) == uuids["a b"]
    assert load("a%2Bb", headers=JAVA) == uuids["a+b"]
    assert load("a%20b", headers=JAVA) == uuids["a b"]


def test_prefix_before_namespaces_means_nothing(served):
    served.fill("t", 1)
    assert served.get(f"/any%20thing{served.table('t')}").json()["metadata"]
    assert served.get("/x/namespaces").json() == served.get("/namespaces").json()


def test_tables_and_namespaces_come_in_pages(compat):
    for name in ("b", "a", "d", "c", "e"):
        compat.lake.create(name, [1])
        compat.lake.make(f"n{name}")
    for path, key in ((compat.tables, "identifiers"), ("/namespaces", "namespaces")):
        found, token, pages = [], "", 0
        while token is not None:
            page = compat.get(path, params={"pageToken": token, "pageSize": 2}).json()
            assert len(page[key]) <= 2
            found, token, pages = found + page[key], page["next-page-token"], pages + 1
        whole = compat.get(path).json()
        assert found == whole[key]
        assert whole["next-page-token"] is None
        assert pages == 3
    assert _namespaces(compat)[-1] == ["root"]


def test_namespace_for_the_root_is_in_its_place_among_pages(compat):
    compat.lake.make("a", "z")
    found, token = [], ""
    while token is not None:
        page = compat.get("/namespaces", params={"pageToken": token, "pageSize": 1}).json()
        found, token = found + page["namespaces"], page["next-page-token"]
    assert found == [["a"], ["root"], ["z"]]


def test_everything_comes_at_once_where_no_token_was_sent(served):
    for name in ("a", "b", "c"):
        served.lake.create(name, [1])
    page = served.get(served.tables, params={"pageSize": 1}).json()
    assert len(page["identifiers"]) == 3


def test_page_size_is_a_number_from_one(served):
    for size in ("0", "-1", "x", "1.5", "٣", "9" * 30):
        assert served.get(served.tables, params={"pageSize": size}).status_code == 400, size


def test_token_of_another_server_is_refused(served):
    for token in ("x", "?", "a=b", "é"):
        assert served.get(served.tables, params={"pageToken": token}).status_code == 400, token
