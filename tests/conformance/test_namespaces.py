"""Namespaces: made, described, listed, changed, dropped; what they protect and pass on.

Spec: directory-namespace, "V2: Manifest"; objects-and-relationships, "Namespace";
lance-rest-openapi, the operations on namespaces.
"""

from __future__ import annotations

from pathlib import Path

import lance
import lance.namespace
import lance_namespace as spec
import pytest

import mooring
from mooring.clock import DAY_MS
from mooring.errors import (
    InvalidInputError,
    InvalidNameError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    ProtectedError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode, Ttl
from mooring.namespace.states import NotFound, SoftDeleted
from mooring.store.observed import ObservedStore
from tests.conformance.kinds import without_a_manifest
from tests.lakes import NOON_MS, rows, table_id

READS = {"get", "read", "head", "existing", "list_dir", "list_prefix"}
NS = ObjectId.of(["ns"])
INNER = ObjectId.of(["ns", "inner"])


def _describe(lake, namespace: ObjectId) -> dict[str, str]:
    """Describe a namespace as another process sees it."""
    return dict(lake.open().describe_namespace(namespace))


# -- making them ----------------------------------------------------------------------------------


def test_a_namespace_is_made_with_its_properties(nested):
    """Spec: "namespaces can have associated properties/metadata"."""
    properties = {"owner": "ann", "description": 'it\'s "all" 日本 $%'}
    assert nested.backend.create_namespace(NS, properties) == properties
    assert _describe(nested, NS) == properties
    assert nested.open().list_namespaces(ROOT) == ["ns"]


def test_namespaces_nest_to_any_depth(nested):
    """Spec: "Nested namespaces: Support for hierarchical namespace organization"."""
    path = []
    for level in range(1, 13):
        path.append(f"l{level}")
        nested.backend.create_namespace(ObjectId.of(path), {"level": str(level)})
    nested.create(ObjectId.of([*path, "t"]), [7])
    for level in range(12):
        assert nested.open().list_namespaces(ObjectId.of(path[:level])) == [path[level]]
    assert nested.open().list_namespaces(ObjectId.of(path)) == []
    assert _describe(nested, ObjectId.of(path)) == {"level": "12"}
    assert nested.open().list_tables(ObjectId.of(path)) == ["t"]
    assert nested.values(ObjectId.of([*path, "t"])) == [7]


def test_a_namespace_without_a_parent_is_refused(nested):
    """Deliver 2: "existence of the parent checked in the same commit"."""
    with pytest.raises(NamespaceNotFoundError, match="'ns'"):
        nested.backend.create_namespace(INNER, {})
    assert nested.open().list_namespaces(ROOT) == []
    nested.make("ns")
    nested.backend.create_namespace(INNER, {})
    assert nested.open().list_namespaces(NS) == ["inner"]


def test_a_table_is_no_parent(nested):
    nested.create("ns")
    with pytest.raises(NamespaceNotFoundError):
        nested.backend.create_namespace(INNER, {})
    with pytest.raises(NamespaceNotFoundError):
        nested.create(table_id("ns", "t"))


def test_create_refuses_a_taken_name(nested):
    """Spec: lance-rest-openapi, CreateNamespaceRequest, mode Create."""
    nested.backend.create_namespace(NS, {"owner": "ann"})
    with pytest.raises(NamespaceAlreadyExistsError, match="'ns'") as caught:
        nested.backend.create_namespace(NS, {"owner": "bob"})
    assert caught.value.code == 2
    assert _describe(nested, NS) == {"owner": "ann"}


def test_exist_ok_keeps_the_existing_namespace(nested):
    """Spec: lance-rest-openapi, CreateNamespaceRequest, mode ExistOk."""
    nested.backend.create_namespace(NS, {"owner": "ann"})
    found = nested.backend.create_namespace(NS, {"owner": "bob"}, CreateMode.EXIST_OK)
    assert found == {"owner": "ann"}
    made = nested.backend.create_namespace(INNER, {"a": "b"}, CreateMode.EXIST_OK)
    assert made == _describe(nested, INNER) == {"a": "b"}


def test_overwrite_replaces_properties_and_keeps_the_content(nested):
    """Spec: lance-rest-openapi, CreateNamespaceRequest, mode Overwrite."""
    nested.backend.create_namespace(NS, {"owner": "ann", "label": "x"})
    nested.create(table_id("ns", "t"), [1])
    found = nested.backend.create_namespace(NS, {"owner": "bob"}, CreateMode.OVERWRITE)
    assert found == _describe(nested, NS) == {"owner": "bob"}
    assert nested.values(table_id("ns", "t")) == [1]


@pytest.mark.parametrize("mode", list(CreateMode))
def test_a_table_and_a_namespace_cannot_share_an_identifier(nested, mode):
    """Spec: "`object_id`: Unique identifier for the object"."""
    nested.make("ns")
    for name in (["x"], ["ns", "x"]):
        object_id = ObjectId.of(name)
        nested.create(object_id, [1])
        with pytest.raises(TableAlreadyExistsError):
            nested.backend.create_namespace(object_id, {}, mode)
        assert nested.values(object_id) == [1]
    for name in (["y"], ["ns", "y"]):
        object_id = ObjectId.of(name)
        nested.backend.create_namespace(object_id, {})
        for act in (
            lambda: nested.create(object_id, [1], mode),  # noqa: B023  # called at once
            lambda: nested.backend.declare_table(object_id),  # noqa: B023  # called at once
            lambda: nested.backend.rename_table(table_id("x"), object_id),  # noqa: B023  # at once
        ):
            with pytest.raises(NamespaceAlreadyExistsError):
                act()
    assert nested.tables() == ["ns$x", "x"]


def test_the_root_cannot_be_made_or_dropped(nested):
    with pytest.raises(InvalidInputError):
        nested.backend.create_namespace(ROOT, {})
    for cascade in (False, True):
        with pytest.raises(InvalidInputError, match="root"):
            nested.backend.drop_namespace(ROOT, cascade=cascade)


# -- describing and changing them -----------------------------------------------------------------


def test_an_absent_namespace_is_not_found(nested):
    nested.make("ns")
    absent = ObjectId.of(["ns", "absent"])
    for act in (
        nested.backend.describe_namespace,
        nested.backend.list_namespaces,
        nested.backend.list_tables,
        nested.backend.drop_namespace,
        nested.backend.undrop_namespace,
        lambda namespace: nested.backend.update_namespace(namespace, {"a": "b"}),
    ):
        with pytest.raises(NamespaceNotFoundError, match="absent") as caught:
            act(absent)
        assert caught.value.code == 1


def test_a_table_is_no_namespace_and_a_namespace_no_table(nested):
    nested.create("t")
    nested.make("ns")
    for act in (
        nested.backend.describe_namespace,
        nested.backend.drop_namespace,
        nested.backend.list_tables,
    ):
        with pytest.raises(NamespaceNotFoundError):
            act(table_id("t"))
    for act in (
        nested.backend.describe_table,
        nested.backend.drop_table,
        nested.backend.purge_table,
        nested.backend.deregister_table,
    ):
        with pytest.raises(TableNotFoundError):
            act(NS)
    assert nested.backend.table_status(NS) == NotFound()


def test_properties_of_a_namespace_are_changed_one_by_one(nested):
    """Deliver 1: "descriptions, owners and labels as properties"."""
    nested.backend.create_namespace(NS, {"owner": "ann", "label": "x"})
    changed = nested.backend.update_namespace(NS, {"label": None, "description": "d", "gone": None})
    assert changed == _describe(nested, NS) == {"owner": "ann", "description": "d"}
    assert nested.backend.update_namespace(NS, {}) == changed


def test_the_root_has_properties(nested):
    """Deliver 1: "root properties in the table's metadata map"."""
    assert _describe(nested, ROOT) == {}
    changed = nested.backend.update_namespace(ROOT, {"owner": "ann", "label": "x"})
    assert changed == _describe(nested, ROOT) == {"owner": "ann", "label": "x"}
    nested.make("ns")
    nested.create(table_id("ns", "t"))
    nested.backend.update_namespace(ROOT, {"label": None})
    assert _describe(nested, ROOT) == {"owner": "ann"}
    table = lance.dataset(nested.store.location("__manifest"))
    assert table.metadata == {"owner": "ann"}
    assert nested.tables() == ["ns$t"]


@pytest.mark.parametrize(
    "properties",
    [
        {"": "x"},
        {"n": 7},
        {"mooring.protected": "perhaps"},
        {"mooring.retention": "a while"},
        {"mooring.retention": ""},
        {"mooring.renaming": "{}"},
        {"mooring.anything": "else"},
    ],
    ids=str,
)
def test_properties_that_could_not_be_kept_are_refused(nested, properties):
    nested.make("ns")
    for act in (
        lambda: nested.backend.create_namespace(INNER, properties),
        lambda: nested.backend.create_namespace(NS, properties, CreateMode.OVERWRITE),
        lambda: nested.backend.update_namespace(NS, properties),
        lambda: nested.backend.update_namespace(ROOT, properties),
        lambda: nested.backend.declare_table(table_id("ns", "t"), None, properties),
        lambda: nested.backend.create_table(table_id("t"), rows([1]), properties=properties),
    ):
        with pytest.raises(InvalidInputError):
            act()
    assert _describe(nested, NS) == {}
    assert nested.tables() == []


@pytest.mark.parametrize("key", ["mooring.protected", "mooring.retention"])
def test_the_root_needs_no_protection_and_its_retention_is_a_setting(nested, key):
    value = "true" if key.endswith("protected") else "1d"
    with pytest.raises(InvalidInputError, match="init"):
        nested.backend.update_namespace(ROOT, {key: value})


# -- listing them ---------------------------------------------------------------------------------


def test_only_direct_children_are_listed_in_order(nested):
    """Contract: "`list_tables` and `list_namespaces` give the names of direct children, sorted"."""
    nested.make("b", "a", "Z", "ä", "a$c", "a$b", "a$b$deep", "b$x")
    backend = nested.open()
    assert backend.list_namespaces(ROOT) == ["Z", "a", "b", "ä"]
    assert backend.list_namespaces(table_id("a")) == ["b", "c"]
    assert backend.list_namespaces(table_id("a", "b")) == ["deep"]
    assert backend.list_namespaces(table_id("a", "c")) == []


def test_a_listing_gives_names_after_one_and_of_them_the_first(nested):
    nested.make("a", "b", "c", "d")
    backend = nested.open()
    assert backend.list_namespaces(ROOT, after="a", limit=2) == ["b", "c"]
    assert backend.list_namespaces(ROOT, after="bb") == ["c", "d"]
    assert backend.list_namespaces(ROOT, limit=1) == ["a"]
    assert backend.list_namespaces(ROOT, after="d", limit=1) == []


# -- dropping them --------------------------------------------------------------------------------


def test_restrict_refuses_a_namespace_with_content(nested):
    """Spec: lance-rest-openapi, DropNamespaceRequest, behavior Restrict."""
    nested.make("ns", "ns$inner", "other")
    with pytest.raises(NamespaceNotEmptyError, match=r"inner") as caught:
        nested.backend.drop_namespace(NS)
    assert caught.value.code == 3
    nested.backend.drop_namespace(INNER)
    nested.backend.declare_table(table_id("ns", "t"))
    with pytest.raises(NamespaceNotEmptyError, match="t"):
        nested.backend.drop_namespace(NS)
    nested.backend.drop_table(table_id("ns", "t"))
    nested.backend.drop_namespace(NS)
    assert nested.open().list_namespaces(ROOT) == ["other"]


def test_a_drop_answers_the_properties(nested):
    """Spec: lance-rest-openapi, DropNamespaceResponse."""
    nested.backend.create_namespace(NS, {"owner": "ann"})
    assert nested.backend.drop_namespace(NS) == {"owner": "ann"}
    with pytest.raises(NamespaceNotFoundError):
        nested.backend.describe_namespace(NS)


def test_cascade_takes_everything_below_along(nested):
    """Spec: lance-rest-openapi, DropNamespaceRequest, behavior Cascade."""
    nested.make("ns", "ns$inner", "ns$inner$deep", "nsx")
    kept = table_id("nsx", "t")
    for table in (table_id("ns", "t"), table_id("ns", "inner", "deep", "t"), kept):
        nested.create(table, [1])
    nested.backend.drop_namespace(NS, cascade=True)
    assert nested.open().list_namespaces(ROOT) == ["nsx"]
    assert nested.tables() == ["nsx$t"]
    assert nested.trash() == ["ns$inner$deep$t", "ns$t"]
    assert nested.values(kept) == [1]
    with pytest.raises(NamespaceNotFoundError):
        nested.create(table_id("ns", "t"))


def test_a_name_is_free_again_after_the_drop(nested):
    nested.backend.create_namespace(NS, {"life": "1"})
    nested.create(table_id("ns", "t"), [1])
    nested.backend.drop_namespace(NS, cascade=True)
    nested.backend.create_namespace(NS, {"life": "2"})
    assert nested.open().list_tables(NS) == []
    nested.create(table_id("ns", "t"), [2])
    assert nested.values(table_id("ns", "t")) == [2]
    assert _describe(nested, NS) == {"life": "2"}


# -- protection -----------------------------------------------------------------------------------


def test_a_protected_namespace_and_all_in_it_cannot_be_dropped(nested):
    """Deliver 1: "protection ... per namespace"."""
    nested.make("ns", "ns$inner")
    table = table_id("ns", "inner", "t")
    nested.create(table, [1])
    nested.backend.update_namespace(NS, {"mooring.protected": "true"})
    for act in (
        lambda: nested.backend.drop_namespace(NS, cascade=True),
        lambda: nested.backend.drop_namespace(INNER, cascade=True),
        lambda: nested.backend.drop_table(table),
        lambda: nested.backend.deregister_table(table),
    ):
        with pytest.raises(ProtectedError, match=r"namespace 'ns' is protected") as caught:
            act()
        assert caught.value.code == 19
    assert nested.values(table) == [1]
    nested.backend.update_namespace(NS, {"mooring.protected": None})
    nested.backend.drop_namespace(NS, cascade=True)
    assert nested.tables() == []


def test_a_namespace_with_something_protected_in_it_cannot_be_dropped(nested):
    nested.make("ns", "ns$inner")
    table = table_id("ns", "inner", "t")
    nested.create(table)
    nested.backend.protect_table(table)
    with pytest.raises(ProtectedError, match="t"):
        nested.backend.drop_namespace(NS, cascade=True)
    assert nested.tables() == ["ns$inner$t"]
    nested.backend.protect_table(table, protected=False)
    nested.backend.update_namespace(INNER, {"mooring.protected": "true"})
    with pytest.raises(ProtectedError, match="inner"):
        nested.backend.drop_namespace(NS, cascade=True)
    nested.backend.update_namespace(INNER, {"mooring.protected": "false"})
    nested.backend.drop_namespace(NS, cascade=True)


def test_a_protected_namespace_can_be_filled_and_changed(nested):
    nested.backend.create_namespace(NS, {"mooring.protected": "true"})
    nested.create(table_id("ns", "t"), [1])
    nested.create(table_id("ns", "t"), [2], CreateMode.OVERWRITE)
    nested.backend.rename_table(table_id("ns", "t"), table_id("ns", "u"))
    nested.backend.update_namespace(NS, {"owner": "ann"})
    assert nested.values(table_id("ns", "u")) == [2]
    assert _describe(nested, NS) == {"mooring.protected": "true", "owner": "ann"}


# -- retention ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["table", "namespace"])
def test_the_time_in_the_trash_is_that_of_the_nearest_namespace(nested, kind):
    """Deliver 1: "a retention default (the TTL of drops) per namespace"."""
    nested.backend.create_namespace(NS, {"mooring.retention": "30d"})
    nested.make("ns$inner", "ns$near", "plain")
    nested.backend.update_namespace(table_id("ns", "near"), {"mooring.retention": "never"})
    expected = {("ns", "inner"): 30 * DAY_MS, ("ns", "near"): None, ("plain",): 7 * DAY_MS}
    for parent, ttl_ms in expected.items():
        table = ObjectId.of([*parent, "t"])
        nested.create(table)
        if kind == "table":
            nested.backend.drop_table(table)
        else:
            nested.backend.drop_namespace(ObjectId.of(parent), cascade=True)
        expires_at_ms = None if ttl_ms is None else NOON_MS + ttl_ms
        assert nested.open().table_status(table) == SoftDeleted(NOON_MS, expires_at_ms)


def test_a_retention_that_is_said_wins(nested):
    nested.backend.create_namespace(NS, {"mooring.retention": "30d"})
    for name in ("a", "b"):
        nested.create(table_id("ns", name))
    nested.backend.drop_table(table_id("ns", "a"), Ttl(1))
    assert nested.open().table_status(table_id("ns", "a")) == SoftDeleted(NOON_MS, NOON_MS + 1)
    nested.backend.drop_namespace(NS, cascade=True, ttl=Ttl(2))
    assert nested.open().table_status(table_id("ns", "b")) == SoftDeleted(NOON_MS, NOON_MS + 2)


def test_a_retention_that_another_program_garbled_is_passed_over(nested):
    pylance = lance.namespace.DirectoryNamespace(root=nested.uri)
    request = spec.CreateNamespaceRequest(id=["ns"], properties={"mooring.retention": "soon"})
    pylance.create_namespace(request)
    nested.create(table_id("ns", "t"))
    nested.drop(table_id("ns", "t"))
    status = nested.open().table_status(table_id("ns", "t"))
    assert status == SoftDeleted(NOON_MS, NOON_MS + 7 * DAY_MS)


# -- through the Lance namespace ------------------------------------------------------------------


def test_the_words_of_the_specification_do_the_same(nested):
    """Deliver 1: "with the modes the API names"."""
    client = mooring.DirectoryNamespace(**nested.properties)

    def create(*names: str, mode: str | None = None, **properties: str) -> dict[str, str]:
        request = spec.CreateNamespaceRequest(id=list(names), mode=mode, properties=properties)
        return client.create_namespace(request).properties

    def drop(*names: str, **how: str) -> dict[str, str]:
        return client.drop_namespace(spec.DropNamespaceRequest(id=list(names), **how)).properties

    assert create("ns", owner="ann") == {"owner": "ann"}
    with pytest.raises(spec.errors.NamespaceAlreadyExistsError):
        create("ns", mode="Create")
    assert create("ns", mode="ExistOk") == create("ns", mode="exist_ok") == {"owner": "ann"}
    assert create("ns", mode="OVERWRITE", owner="bob") == {"owner": "bob"}
    with pytest.raises(spec.errors.InvalidInputError):
        create("ns", mode="perhaps")
    create("ns", "inner")
    client.namespace_exists(spec.NamespaceExistsRequest(id=["ns", "inner"]))
    described = client.describe_namespace(spec.DescribeNamespaceRequest(id=["ns"]))
    assert described.properties == {"owner": "bob"}
    with pytest.raises(spec.errors.NamespaceNotEmptyError):
        drop("ns", behavior="Restrict")
    for wrong in ({"mode": "perhaps"}, {"behavior": "perhaps"}):
        with pytest.raises(spec.errors.InvalidInputError):
            drop("ns", **wrong)
    assert drop("ns", mode="Fail", behavior="Cascade") == {"owner": "bob"}
    with pytest.raises(spec.errors.NamespaceNotFoundError):
        drop("ns", mode="FAIL")
    assert drop("ns", mode="Skip") == {}
    with pytest.raises(spec.errors.NamespaceNotFoundError):
        client.namespace_exists(spec.NamespaceExistsRequest(id=["ns"]))
    assert client.undrop_namespace(["ns"]) == 2
    assert client.update_namespace(["ns"], {"owner": None}) == {}


def test_skip_does_not_skip_what_is_there_and_in_the_way(nested):
    """Spec: lance-rest-openapi, DropNamespaceRequest: Skip is for a namespace that is absent."""
    client = mooring.DirectoryNamespace(**nested.properties)
    nested.make("ns", "ns$inner")
    with pytest.raises(spec.errors.NamespaceNotEmptyError):
        client.drop_namespace(spec.DropNamespaceRequest(id=["ns"], mode="Skip"))
    nested.backend.update_namespace(NS, {"mooring.protected": "true"})
    with pytest.raises(spec.errors.InvalidTableStateError):
        client.drop_namespace(spec.DropNamespaceRequest(id=["ns"], mode="Skip", behavior="Cascade"))


def test_namespaces_come_in_pages(nested):
    """Spec: lance-rest-openapi, PageToken, PageLimit."""
    nested.make(*"bdfh")
    client = mooring.DirectoryNamespace(**nested.properties)

    def page(token: str | None):
        return client.list_namespaces(spec.ListNamespacesRequest(id=[], limit=2, page_token=token))

    first = page(None)
    assert first.namespaces == ["b", "d"]
    nested.make("a", "e")
    nested.backend.drop_namespace(table_id("d"))
    second = page(first.page_token)
    assert second.namespaces == ["e", "f"]
    third = page(second.page_token)
    assert (third.namespaces, third.page_token) == (["h"], None)


# -- where there are none -------------------------------------------------------------------------


@without_a_manifest
def test_a_plain_directory_has_the_root_only(lake):
    """Spec: "V1 is a simple 1-level namespace"."""
    for act in (
        lambda: lake.backend.create_namespace(NS, {}),
        lambda: lake.backend.drop_namespace(NS),
        lambda: lake.backend.undrop_namespace(NS),
        lambda: lake.backend.update_namespace(ROOT, {"a": "b"}),
        lambda: lake.backend.declare_table(table_id("t"), None, {"a": "b"}),
    ):
        with pytest.raises(UnsupportedError) as caught:
            act()
        assert caught.value.code == 0
    assert lake.store.list_prefix("") == []


# -- reads have no side effects -------------------------------------------------------------------


def test_reading_namespaces_writes_nothing(nested):
    """Rule: "Reads have no side effects"; Deliver: no `__manifest` appears by a look."""
    store = ObservedStore(nested.store)
    backend = nested.open(store=store)
    assert backend.list_namespaces(ROOT) == []
    assert backend.describe_namespace(ROOT) == {}
    assert backend.list_all_tables() == []
    for act in (
        backend.describe_namespace,
        backend.list_namespaces,
        backend.list_tables,
    ):
        with pytest.raises(NamespaceNotFoundError):
            act(NS)
    with pytest.raises(TableNotFoundError):
        backend.describe_table(table_id("ns", "t"))
    assert set(store.counts) <= READS
    assert nested.store.list_prefix("") == []


def test_a_change_that_is_refused_makes_no_manifest(nested):
    """A mistyped path stays a mistyped path."""
    table = table_id("ns", "t")
    for act in (
        lambda: nested.backend.drop_namespace(NS),
        lambda: nested.backend.undrop_namespace(NS),
        lambda: nested.backend.update_namespace(NS, {"a": "b"}),
        lambda: nested.backend.drop_table(table),
        lambda: nested.backend.undrop_table(table),
        lambda: nested.backend.purge_table(table),
        lambda: nested.backend.deregister_table(table),
        lambda: nested.backend.register_table(table, "t.lance"),
        lambda: nested.backend.protect_table(table),
        lambda: nested.backend.rename_table(table_id("t"), table_id("u")),
    ):
        with pytest.raises(mooring.errors.NotFoundError):
            act()
    with pytest.raises(InvalidNameError):
        nested.backend.create_namespace(ObjectId(("a/b",)), {})
    assert not Path(nested.uri).exists()


def test_a_creation_that_is_refused_makes_no_manifest(nested):
    for act in (
        lambda: nested.backend.create_namespace(INNER, {}),
        lambda: nested.backend.declare_table(table_id("ns", "t")),
        lambda: nested.create(table_id("ns", "t")),
    ):
        with pytest.raises(NamespaceNotFoundError):
            act()
    assert nested.store.list_dir("").directories == []
