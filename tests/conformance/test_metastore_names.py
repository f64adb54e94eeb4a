"""Namespaces of a metastore, and names of all sorts in it.

Spec: objects-and-relationships, "Object Name"; deltacat-storage-model, "Naming, Mutability, and
Canonical Strings".
"""

from __future__ import annotations

from pathlib import Path

import lance_namespace as spec
import pytest

from mooring.errors import (
    InvalidInputError,
    InvalidNameError,
    InvalidTableStateError,
    MooringError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    TableNotFoundError,
    UnsupportedError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode
from mooring.namespace.states import NotFound, SoftDeleted
from tests.conformance.content import fails_with, speak
from tests.conformance.test_names import BAD, GOOD, ONLY_IN_DIRECTORIES
from tests.lakes import rows, table_id

NS = table_id("ns")
T = table_id("ns", "t")
U = table_id("ns", "u")
DEEP = table_id("ns", "deep")
SIGNS = ["50", "50%", "50%25", "it", "it's", "it''s", "中", "中文", "a.b", "-x", ".hidden"]
GOOD_NAMES = sorted(
    {name for name in GOOD.values() if "$" not in name and "|" not in name} | set(SIGNS)
)
NEVER = [
    label
    for label in BAD
    if label not in ONLY_IN_DIRECTORIES and label not in {"decomposed", "kelvin sign"}
]


@pytest.fixture
def lake(metastore):
    """A metastore on disk with a namespace."""
    metastore.make("ns")
    return metastore


# -- namespaces -----------------------------------------------------------------------------------


def test_namespaces_are_made_described_changed_and_listed(lake):
    lake.make("b", "a", "Z", "ä")
    assert lake.open().list_namespaces(ROOT) == ["Z", "a", "b", "ns", "ä"]
    assert lake.open().list_namespaces(ROOT, after="a", limit=2) == ["b", "ns"]
    assert lake.open().list_namespaces(NS) == []
    made = lake.backend.create_namespace(table_id("c"), {"owner": "ann"})
    assert made == lake.open().describe_namespace(table_id("c")) == {"owner": "ann"}
    changed = lake.backend.update_namespace(table_id("c"), {"owner": None, "label": "x"})
    assert changed == lake.open().describe_namespace(table_id("c")) == {"label": "x"}
    assert lake.open().describe_namespace(ROOT) == {}


def test_a_taken_name_is_refused_kept_or_overwritten(lake):
    lake.backend.update_namespace(NS, {"owner": "ann"})
    lake.create(T, [1])
    with pytest.raises(NamespaceAlreadyExistsError, match="'ns'"):
        lake.backend.create_namespace(NS, {})
    exist_ok, overwrite = CreateMode.EXIST_OK, CreateMode.OVERWRITE
    assert lake.backend.create_namespace(NS, {"owner": "bob"}, exist_ok) == {"owner": "ann"}
    assert lake.backend.create_namespace(NS, {"owner": "bob"}, overwrite) == {"owner": "bob"}
    assert lake.open().describe_namespace(NS) == {"owner": "bob"}
    assert lake.values(T) == [1]


def test_there_is_one_level_of_namespaces(lake):
    with pytest.raises(UnsupportedError, match="one level") as caught:
        lake.backend.create_namespace(DEEP, {})
    assert caught.value.code == 0
    lake.create(DEEP, [1])
    for act in (
        lake.backend.describe_namespace,
        lake.backend.list_namespaces,
        lake.backend.list_tables,
        lake.backend.drop_namespace,
        lake.backend.undrop_namespace,
        lambda found: lake.backend.update_namespace(found, {"a": "b"}),
    ):
        with pytest.raises(NamespaceNotFoundError):
            act(DEEP)
    assert lake.values(DEEP) == [1]


def test_the_root_cannot_be_made_or_dropped_and_has_no_properties(lake):
    with pytest.raises(InvalidInputError):
        lake.backend.create_namespace(ROOT, {})
    with pytest.raises(InvalidInputError):
        lake.backend.drop_namespace(ROOT, cascade=True)
    with pytest.raises(UnsupportedError, match="root"):
        lake.backend.update_namespace(ROOT, {"a": "b"})


@pytest.mark.parametrize(
    "properties",
    [{"": "x"}, {"n": 7}, {"mooring.protected": "perhaps"}, {"mooring.retention": "a while"}],
    ids=str,
)
def test_properties_that_could_not_be_kept_are_refused(lake, properties):
    for act in (
        lambda: lake.backend.create_namespace(table_id("new"), properties),
        lambda: lake.backend.create_namespace(NS, properties, CreateMode.OVERWRITE),
        lambda: lake.backend.update_namespace(NS, properties),
        lambda: lake.backend.declare_table(T, None, properties),
        lambda: lake.backend.create_table(T, rows([1]), properties=properties),
        lambda: lake.backend.register_table(T, "x", properties=properties),
    ):
        with pytest.raises(InvalidInputError):
            act()
    assert lake.open().describe_namespace(NS) == {}
    assert lake.tables() == []


def test_restrict_refuses_what_is_in_it_and_cascade_takes_it_along(lake):
    lake.make("nsx")
    lake.create(table_id("nsx", "t"), [1])
    lake.backend.declare_table(T)
    with pytest.raises(NamespaceNotEmptyError, match=r"ns\$t") as caught:
        lake.backend.drop_namespace(NS)
    assert caught.value.code == 3
    lake.drop(T)
    lake.backend.update_namespace(NS, {"owner": "ann"})
    assert lake.backend.drop_namespace(NS) == {"owner": "ann"}  # the trash is not in it
    assert lake.backend.undrop_namespace(NS) == 1
    lake.create(U, [2])
    lake.backend.drop_namespace(NS, cascade=True)
    assert (lake.open().list_namespaces(ROOT), lake.tables()) == (["nsx"], ["nsx$t"])
    assert lake.trash() == ["ns$t", "ns$u"]
    with pytest.raises(NamespaceNotFoundError):
        lake.create(T)
    with pytest.raises(NamespaceNotFoundError):
        lake.backend.drop_namespace(NS)


def test_a_namespace_comes_back_with_what_was_dropped_with_it(lake):
    lake.backend.update_namespace(NS, {"owner": "ann"})
    lake.create(T, [1])
    lake.create(U, [2])
    lake.drop(U)
    lake.backend.drop_namespace(NS, cascade=True)
    assert lake.backend.undrop_namespace(NS) == 2
    assert (lake.tables(), lake.trash()) == (["ns$t"], ["ns$u"])
    assert lake.open().describe_namespace(NS) == {"owner": "ann"}
    lake.backend.undrop_table(U)
    assert (lake.values(T), lake.values(U)) == ([1], [2])


def test_a_single_table_comes_back_from_a_dropped_namespace(lake):
    lake.make("other")
    lake.create(T, [1])
    lake.create(U, [2])
    lake.backend.drop_namespace(NS, cascade=True)
    with pytest.raises(NamespaceNotFoundError):
        lake.backend.undrop_table(T)
    lake.backend.undrop_table(T, table_id("other", "t"))
    assert lake.values(table_id("other", "t")) == [1]
    assert lake.backend.undrop_namespace(NS) == 2
    assert lake.tables() == ["ns$u", "other$t"]


def test_a_namespace_does_not_come_back_over_another(lake):
    lake.create(T, [1])
    lake.backend.drop_namespace(NS, cascade=True)
    lake.make("ns")
    lake.create(U, [2])
    with pytest.raises(NamespaceAlreadyExistsError, match="'ns'"):
        lake.backend.undrop_namespace(NS)
    assert (lake.tables(), lake.trash()) == (["ns$u"], ["ns$t"])
    lake.backend.drop_namespace(NS, cascade=True)
    assert lake.backend.undrop_namespace(NS) == 2
    assert lake.values(U) == [2]
    with pytest.raises(TableNotFoundError, match="dropped"):
        lake.open().describe_table(T)


def test_the_last_drop_of_a_namespace_comes_back_whatever_the_clock_says(lake):
    for life, skew_ms in enumerate((0, -5000, 0)):
        lake.create(T, [life])
        lake.backend.drop_namespace(NS, cascade=True)
        lake.clock.advance(skew_ms)
        lake.make("ns")
    lake.backend.drop_namespace(NS)
    assert lake.backend.undrop_namespace(NS) == 1
    lake.create(T, [9])
    lake.backend.drop_namespace(NS, cascade=True)
    assert lake.backend.undrop_namespace(NS) == 2
    assert lake.values(T) == [9]
    with pytest.raises(NamespaceNotFoundError):
        lake.backend.undrop_namespace(table_id("never"))


def test_tables_of_a_dropped_namespace_are_purged_by_their_names(lake):
    lake.create(T, [1])
    lake.create(U, [2])
    lake.backend.drop_namespace(NS, cascade=True)
    assert isinstance(lake.open().table_status(T), SoftDeleted)
    lake.backend.purge_table(T)
    assert lake.open().table_status(T) == NotFound()
    assert lake.backend.undrop_namespace(NS) == 2
    assert (lake.tables(), lake.values(U)) == (["ns$u"], [2])


def test_the_words_of_the_specification_do_the_same(lake):
    client = speak(lake)

    def create(name: str, mode: str | None = None, **properties: str) -> dict[str, str]:
        request = spec.CreateNamespaceRequest(id=[name], mode=mode, properties=properties)
        return client.create_namespace(request).properties

    def drop(name: str, **how: str) -> dict[str, str]:
        return client.drop_namespace(spec.DropNamespaceRequest(id=[name], **how)).properties

    assert create("m", owner="ann") == {"owner": "ann"}
    with fails_with(2):
        create("m", mode="Create")
    assert create("m", mode="ExistOk") == create("m", mode="exist_ok") == {"owner": "ann"}
    assert create("m", mode="OVERWRITE", owner="bob") == {"owner": "bob"}
    client.declare_table(spec.DeclareTableRequest(id=["m", "t"]))
    with fails_with(3):
        drop("m", behavior="Restrict")
    with fails_with(3):
        drop("m", mode="Skip")
    assert drop("m", mode="Fail", behavior="Cascade") == {"owner": "bob"}
    with fails_with(1):
        drop("m", mode="FAIL")
    assert drop("m", mode="Skip") == {}
    assert client.undrop_namespace(["m"]) == 2
    first = client.list_namespaces(spec.ListNamespacesRequest(id=[], limit=1))
    rest = client.list_namespaces(
        spec.ListNamespacesRequest(id=[], limit=1, page_token=first.page_token)
    )
    assert (first.namespaces, rest.namespaces) == (["m"], ["ns"])


def test_skip_does_not_skip_what_is_protected(lake):
    lake.backend.update_namespace(NS, {"mooring.protected": "true"})
    with pytest.raises(spec.errors.InvalidTableStateError):
        speak(lake).drop_namespace(spec.DropNamespaceRequest(id=["ns"], mode="Skip"))
    with pytest.raises(InvalidTableStateError):
        lake.backend.drop_namespace(NS)


# -- names ----------------------------------------------------------------------------------------


def test_names_of_all_sorts_live_beside_each_other(lake):
    for number, name in enumerate(GOOD_NAMES):
        lake.backend.create_namespace(table_id(name), {"n": str(number)})
        lake.backend.declare_table(table_id(name, name))
    backend = lake.open()
    assert backend.list_namespaces(ROOT) == sorted([*GOOD_NAMES, "ns"])
    for number, name in enumerate(GOOD_NAMES):
        assert backend.describe_namespace(table_id(name)) == {"n": str(number)}
        assert backend.list_tables(table_id(name)) == [name]
    for name in GOOD_NAMES[::5]:
        table = table_id(name, name)
        lake.create(table, [1])
        lake.drop(table)
        lake.backend.undrop_table(table)
        lake.backend.rename_table(table, table_id("ns", name))
        assert lake.values(table_id("ns", name)) == [1]
        lake.drop(table_id("ns", name))
        lake.backend.purge_table(table_id("ns", name))
    assert len(lake.tables()) == len(GOOD_NAMES) - len(GOOD_NAMES[::5])


@pytest.mark.parametrize("name", ["a$b", "$", "a$", "a|b", "|"])
def test_what_joins_names_is_in_no_new_name(lake, name):
    """Rule: "Identifier levels are never ambiguous"; nor are canonical strings."""
    lake.create(T, [1])
    for act in (
        lambda: lake.create(ObjectId(("ns", name))),
        lambda: lake.backend.declare_table(ObjectId(("ns", name))),
        lambda: lake.backend.create_namespace(ObjectId((name,)), {}),
        lambda: lake.backend.rename_table(T, ObjectId(("ns", name))),
        lambda: lake.backend.register_table(ObjectId(("ns", name)), "x"),
    ):
        with pytest.raises(InvalidNameError, match="cannot be a"):
            act()
    lake.drop(T)
    with pytest.raises(InvalidNameError):
        lake.backend.undrop_table(T, ObjectId(("ns", name)))
    assert (lake.tables(), lake.open().list_namespaces(ROOT)) == ([], ["ns"])


def test_the_trash_is_nobodys_name(lake):
    lake.create(T, [1])
    lake.drop(T)
    for name in ("__mooring_trash", "__mooring_trash.x"):
        for act in (
            lambda: lake.backend.create_namespace(ObjectId((name,)), {}),  # noqa: B023  # at once
            lambda: lake.backend.list_tables(ObjectId((name,))),  # noqa: B023  # at once
            lambda: lake.create(ObjectId(("ns", name))),  # noqa: B023  # at once
            lambda: lake.backend.describe_table(ObjectId(("ns", name))),  # noqa: B023  # at once
        ):
            with pytest.raises(InvalidNameError, match="dropped"):
                act()
    assert lake.open().list_tables(NS) == []
    lake.backend.undrop_table(T)
    assert lake.values(T) == [1]


OPERATIONS = {
    "create": lambda backend, table: backend.create_table(table, rows([1])),
    "declare": lambda backend, table: backend.declare_table(table),
    "describe": lambda backend, table: backend.describe_table(table),
    "status": lambda backend, table: backend.table_status(table),
    "drop": lambda backend, table: backend.drop_table(table),
    "undrop": lambda backend, table: backend.undrop_table(table),
    "purge": lambda backend, table: backend.purge_table(table),
    "register": lambda backend, table: backend.register_table(table, "x.lance"),
    "deregister": lambda backend, table: backend.deregister_table(table),
    "protect": lambda backend, table: backend.protect_table(table),
    "history": lambda backend, table: backend.table_history(table),
    "rename": lambda backend, table: backend.rename_table(table, U),
    "rename to": lambda backend, table: backend.rename_table(T, table),
    "undrop to": lambda backend, table: backend.undrop_table(table_id("ns", "d"), table),
    "versions": lambda backend, table: backend.list_table_versions(table),
    "create namespace": lambda backend, table: backend.create_namespace(table, {}),
    "describe namespace": lambda backend, table: backend.describe_namespace(table),
    "drop namespace": lambda backend, table: backend.drop_namespace(table),
    "undrop namespace": lambda backend, table: backend.undrop_namespace(table),
    "list": lambda backend, table: backend.list_tables(table),
    "list namespaces": lambda backend, table: backend.list_namespaces(table),
}


@pytest.mark.parametrize("place", ["last", "first", "middle"])
def test_a_bad_name_is_refused_by_every_operation(lake, place):
    lake.backend.declare_table(T)
    lake.backend.declare_table(table_id("ns", "d"))
    lake.drop(table_id("ns", "d"))
    before = {meta.path for meta in lake.store.list_prefix("")}
    around = {path.name for path in Path(lake.uri).parent.iterdir()}
    for label in NEVER:
        bad = BAD[label]
        names = {"last": ("ns", bad), "first": (bad, "t"), "middle": ("ns", bad, "t")}[place]
        for operation, act in OPERATIONS.items():
            # An identifier built by hand passes no check on its way in.
            with pytest.raises(InvalidNameError) as caught:
                act(lake.backend, ObjectId(names))
            assert caught.value.code == 13, (label, operation)
            assert str(caught.value).isprintable(), (label, operation)
    assert {meta.path for meta in lake.store.list_prefix("")} == before
    assert {path.name for path in Path(lake.uri).parent.iterdir()} == around


@pytest.mark.parametrize("name", ["cafe\u0301", "\u212a"], ids=ascii)
def test_a_name_in_another_unicode_form_is_no_new_name(lake, name):
    lake.create(T, [1])
    for act in (
        lambda: lake.create(table_id("ns", name)),
        lambda: lake.backend.declare_table(table_id("ns", name)),
        lambda: lake.backend.create_namespace(table_id(name), {}),
        lambda: lake.backend.rename_table(T, table_id("ns", name)),
    ):
        with pytest.raises(InvalidNameError, match="composed"):
            act()
    for act in (lake.backend.describe_table, lake.backend.drop_table):
        with pytest.raises(MooringError):
            act(table_id("ns", name))
    assert lake.tables() == ["ns$t"]
