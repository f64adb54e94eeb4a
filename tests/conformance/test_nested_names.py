"""Names of namespaces and of the tables in them: each is data, and reaches no other.

Spec: objects-and-relationships, "Object Name"; rule "Names are data"; "A name
with `'`, `$`, `%`, or Chinese characters can neither see nor harm another namespace".
"""

from __future__ import annotations

from pathlib import Path

import lance
import lance.namespace
import lance_namespace as spec
import pytest

import mooring
from mooring.errors import (
    InvalidNameError,
    MooringError,
    NamespaceNotFoundError,
    TableNotFoundError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode
from mooring.namespace.states import Exists, NotFound, SoftDeleted
from tests.conformance.test_names import BAD, GOOD, ONLY_IN_DIRECTORIES
from tests.lakes import rows, table_id

MAX_BYTES = 246
# Names that a pattern, a filter, a path or a prefix could take for one another.
ALIKE = [
    "a",
    "A",
    "a b",
    "a.b",
    "a%",
    "a_",
    "ab",
    "a'",
    "a''",
    "a' OR '1'='1",
    "' OR 1=1 --",
    "'; DELETE FROM x; --",
    'a"',
    "a\u200b",
    "a#b",
    "%",
    "_",
    "*",
    "%2e%2e",
    "中文",
    "中",
    "中文%",
    "😀",
    "ß",
    "ss",
    "日本 it's 100%",
    "namespace",
    "table",
    "object_id",
    "null",
    "__manifest",
    ".hidden",
    "...",
]
# Names that differ by a sign which a filter, a path or a URI could read as something else.
SIGNS = ["50", "50%", "50%25", "it", "it's", "it''s", "中", "中文"]
# A table's directory has the names of both in its own.
NAMES = sorted(
    {*ALIKE, *(name for name in GOOD.values() if "$" not in name and len(name.encode()) < 100)}
)
# What no layout can keep; the rest of BAD only a directory cannot.
NEVER = [
    label
    for label in BAD
    if label not in ONLY_IN_DIRECTORIES and label not in {"decomposed", "kelvin sign"}
]


def _must_hold(lake, names: list[str], gone: frozenset[str] = frozenset()) -> None:
    """Every namespace that is there shows its own table and no other."""
    backend = lake.open()
    assert backend.list_namespaces(ROOT) == names
    for name in names:
        assert backend.list_tables(table_id(name)) == ([] if name in gone else [name])


def test_namespaces_and_tables_of_any_name_live_beside_each_other(nested):
    """Must show: such a name "can neither see nor harm another namespace"."""
    for number, name in enumerate(NAMES):
        nested.backend.create_namespace(table_id(name), {"n": str(number)})
        nested.create(table_id(name, name), [number])
    _must_hold(nested, NAMES)
    for number, name in enumerate(NAMES):
        # A cold look at each: through a filter, not from memory.
        cold = nested.open()
        assert cold.describe_namespace(table_id(name)) == {"n": str(number)}
        assert nested.values(table_id(name, name)) == [number]
    assert nested.tables() == sorted(
        (f"{name}${name}" for name in NAMES), key=lambda key: key.split("$")
    )


def test_what_happens_to_one_name_happens_to_no_other(nested):
    """Each is dropped, undropped, renamed and purged while all others stay."""
    for name in ALIKE:
        nested.make(name)
        nested.backend.declare_table(table_id(name, name))
    everything = sorted(ALIKE)
    for name in ALIKE:
        table = table_id(name, name)
        nested.drop(table)
        assert isinstance(nested.open().table_status(table), SoftDeleted)
        _must_hold(nested, everything, frozenset([name]))
        nested.backend.undrop_table(table)
        nested.backend.drop_namespace(table_id(name), cascade=True)
        _must_hold(nested, [other for other in everything if other != name])
        assert nested.backend.undrop_namespace(table_id(name)) == 2
        nested.backend.rename_table(table, table_id(name, "moved"))
        nested.backend.rename_table(table_id(name, "moved"), table)
        nested.backend.update_namespace(table_id(name), {"seen": "yes"})
    _must_hold(nested, everything)
    nested.backend.drop_namespace(table_id("%"), cascade=True)
    nested.backend.purge_table(table_id("%", "%"))
    _must_hold(nested, [name for name in everything if name != "%"])


def test_in_a_bucket_such_a_name_reaches_no_other_namespace(nested_s3):
    """Keys and URIs are written otherwise than they are listed. Spec: "Object Name"."""
    for number, name in enumerate(SIGNS):
        nested_s3.make(name)
        nested_s3.create(table_id(name, name), [number])
    _must_hold(nested_s3, sorted(SIGNS))
    for number, name in enumerate(SIGNS):
        assert nested_s3.values(table_id(name, name)) == [number]
    for name in SIGNS[1::2]:
        nested_s3.backend.drop_namespace(table_id(name), cascade=True)
        nested_s3.backend.purge_table(table_id(name, name))
    _must_hold(nested_s3, sorted(SIGNS[::2]))
    for number, name in enumerate(SIGNS):
        if name in SIGNS[::2]:
            assert nested_s3.values(table_id(name, name)) == [number]


@pytest.mark.parametrize(
    "names", [("a$b",), ("a$b", "t"), ("a", "b$t"), ("$",), ("a", "$"), ("a$",)]
)
def test_the_delimiter_in_a_name_reaches_no_other_level(nested, names):
    """`["a$b"]` is not `["a", "b"]`: nothing of one is seen or harmed by the other."""
    nested.make("a", "a$b")
    nested.create(table_id("a", "b", "t"), [1])
    nested.create(table_id("a", "u"), [2])
    nested.drop(table_id("a", "u"))
    before = {meta.path for meta in nested.store.list_prefix("")}
    # An identifier built by hand passes no check on its way in.
    target = ObjectId(names)
    for operation, act in {**OPERATIONS, "cascade": _cascade, "undrop to": _undrop_to}.items():
        try:
            found = act(nested.backend, target)
        except (InvalidNameError, TableNotFoundError):
            continue
        # It might be a directory's name, of which there is nothing to tell.
        assert (operation, found) in [("status", NotFound()), ("history", [])]
    assert {meta.path for meta in nested.store.list_prefix("")} == before
    assert nested.tables() == ["a$b$t"]
    assert nested.trash() == ["a$u"]
    assert nested.values(table_id("a", "b", "t")) == [1]


def _cascade(backend, table: ObjectId) -> None:
    backend.drop_namespace(table, cascade=True)


def _undrop_to(backend, table: ObjectId) -> None:
    backend.undrop_table(table_id("a", "u"), table)


@pytest.mark.parametrize("name", ALIKE, ids=ascii)
def test_a_name_that_is_not_there_finds_nothing_of_others(nested, name):
    nested.make("victim", "victim$inner")
    nested.create(table_id("victim", "t"), [1])
    for parent in ([], ["victim"], ["victim", "inner"]):
        absent = ObjectId.of([*parent, name])
        backend = nested.open()
        assert backend.table_status(absent) == NotFound()
        for act in (
            backend.describe_namespace,
            backend.list_namespaces,
            backend.list_tables,
            backend.undrop_namespace,
            lambda found: backend.drop_namespace(found, cascade=True),  # noqa: B023  # at once
        ):
            with pytest.raises(NamespaceNotFoundError):
                act(absent)
        for act in (backend.describe_table, backend.drop_table, backend.purge_table):
            with pytest.raises(TableNotFoundError):
                act(absent)
    assert nested.tables() == ["victim$t"]
    assert nested.values(table_id("victim", "t")) == [1]


@pytest.mark.parametrize("name", ["it's", "a%b", "中文", "😀", "' OR 1=1 --"])
def test_such_a_name_works_through_the_lance_namespace(nested, name):
    client = mooring.DirectoryNamespace(**nested.properties)
    client.create_namespace(spec.CreateNamespaceRequest(id=[name]))
    where = {"namespace_client": client, "table_id": [name, name]}
    lance.write_dataset(rows([1]), mode="create", **where)
    lance.write_dataset(rows([2]), mode="append", **where)
    assert lance.dataset(**where).to_table()["n"].to_pylist() == [1, 2]
    assert client.list_tables(spec.ListTablesRequest(id=[name])).tables == [name]
    assert client.list_namespaces(spec.ListNamespacesRequest(id=[])).namespaces == [name]
    client.drop_table(spec.DropTableRequest(id=[name, name]))
    with pytest.raises(spec.errors.TableNotFoundError):
        lance.dataset(**where)


# -- lengths --------------------------------------------------------------------------------------


@pytest.mark.parametrize("letter", ["x", "語"], ids=["ascii", "three bytes each"])
def test_the_longest_identifier_fits_a_directory_and_one_byte_more_is_refused(nested, letter):
    """`<hash>_<object_id>` is one file name: 255 bytes less nine."""
    nested.make("ns")
    size = len(letter.encode())
    room = MAX_BYTES - len("ns$")
    longest = letter * (room // size) + "y" * (room % size)
    table = table_id("ns", longest)
    nested.create(table, [1])
    assert nested.values(table) == [1]
    nested.drop(table)
    nested.backend.undrop_table(table)
    nested.create(table, [2], CreateMode.OVERWRITE)
    assert nested.values(table) == [2]
    too_long = table_id("ns", f"{longest}y")
    before = nested.directories()
    for act in (
        lambda: nested.create(too_long),
        lambda: nested.backend.declare_table(too_long),
    ):
        with pytest.raises(InvalidNameError, match=f"{MAX_BYTES}"):
            act()
    assert nested.directories() == before
    assert nested.open().list_tables(table_id("ns")) == [longest]


def test_a_table_too_deep_for_a_directory_is_refused_and_its_namespaces_are_not(nested):
    path: list[str] = []
    for level in range(10):
        path.append(f"{level}" * 40)
        nested.backend.create_namespace(ObjectId.of(path), {})
    with pytest.raises(InvalidNameError):
        nested.create(ObjectId.of([*path, "t"]))
    assert nested.open().list_namespaces(ObjectId.of(path[:-1])) == [path[-1]]
    nested.create(ObjectId.of([*path[:3], "t"]), [1])
    assert nested.values(ObjectId.of([*path[:3], "t"])) == [1]


def test_a_rename_to_a_long_name_keeps_the_directory(nested):
    """No directory gets the new name, so none can be too long for it."""
    nested.make("ns")
    nested.create(table_id("ns", "t"), [1])
    long = table_id("ns", "x" * 300)
    nested.backend.rename_table(table_id("ns", "t"), long)
    assert nested.values(long) == [1]
    nested.drop(long)
    nested.backend.undrop_table(long)
    assert nested.values(long) == [1]


# -- names that cannot be -------------------------------------------------------------------------

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
    "rename": lambda backend, table: backend.rename_table(table, table_id("ns", "new")),
    "rename to": lambda backend, table: backend.rename_table(table_id("ns", "t"), table),
    "undrop to": lambda backend, table: backend.undrop_table(table_id("ns", "d"), table),
    "create namespace": lambda backend, table: backend.create_namespace(table, {}),
    "describe namespace": lambda backend, table: backend.describe_namespace(table),
    "drop namespace": lambda backend, table: backend.drop_namespace(table),
    "undrop namespace": lambda backend, table: backend.undrop_namespace(table),
    "list": lambda backend, table: backend.list_tables(table),
    "list namespaces": lambda backend, table: backend.list_namespaces(table),
}


@pytest.mark.parametrize("place", ["last", "first", "middle"])
def test_a_bad_name_is_refused_by_every_operation(nested, place):
    nested.make("ns")
    nested.create(table_id("ns", "t"), [1])
    nested.create(table_id("ns", "d"), [1])
    nested.drop(table_id("ns", "d"))
    before = {meta.path for meta in nested.store.list_prefix("")}
    around = {path.name for path in Path(nested.uri).parent.iterdir()}
    for label in NEVER:
        bad = BAD[label]
        names = {"last": ("ns", bad), "first": (bad, "t"), "middle": ("ns", bad, "t")}[place]
        # An identifier built by hand passes no check on its way in.
        for operation, act in OPERATIONS.items():
            with pytest.raises(InvalidNameError) as caught:
                act(nested.backend, ObjectId(names))
            assert caught.value.code == 13, (label, operation)
            assert str(caught.value).isprintable(), (label, operation)
    assert {meta.path for meta in nested.store.list_prefix("")} == before
    assert {path.name for path in Path(nested.uri).parent.iterdir()} == around


@pytest.mark.parametrize("name", ["cafe\u0301", "\u212a"], ids=ascii)
def test_a_name_in_another_unicode_form_is_no_new_name(nested, name):
    """Two spellings of one visible name would be two objects."""
    nested.make("ns")
    nested.create(table_id("ns", "t"), [1])
    for act in (
        lambda: nested.create(table_id("ns", name)),
        lambda: nested.backend.declare_table(table_id("ns", name)),
        lambda: nested.backend.create_namespace(table_id(name), {}),
        lambda: nested.backend.create_namespace(table_id("ns", name), {}),
        lambda: nested.backend.rename_table(table_id("ns", "t"), table_id("ns", name)),
    ):
        with pytest.raises(InvalidNameError, match="composed"):
            act()
    for act in (nested.backend.describe_table, nested.backend.drop_table):
        with pytest.raises(MooringError):
            act(table_id("ns", name))
    assert nested.tables() == ["ns$t"]


def test_what_another_program_named_can_be_used(nested):
    """A decomposed name that is in the manifest is a name like any other."""
    name = "cafe\u0301"
    pylance = lance.namespace.DirectoryNamespace(root=nested.uri)
    pylance.create_namespace(spec.CreateNamespaceRequest(id=[name]))
    pylance.declare_table(spec.DeclareTableRequest(id=[name, name]))
    table = table_id(name, name)
    assert nested.open().list_namespaces(ROOT) == [name]
    assert nested.open().table_status(table) == Exists()
    lance.write_dataset(rows([1]), nested.open().describe_table(table).location)
    assert nested.values(table) == [1]
    nested.drop(table)
    nested.backend.undrop_table(table)
    nested.backend.drop_namespace(table_id(name), cascade=True)
    nested.backend.undrop_namespace(table_id(name))
    assert nested.values(table) == [1]
