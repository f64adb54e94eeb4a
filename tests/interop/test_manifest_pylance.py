"""One catalog, worked on in turn by pylance's own DirectoryNamespace and by ours.

After every step each of the two must tell what a model of the catalog says: namespaces and
tables, properties, locations and rows. Where the two differ, the reason has a name here
(`Pair.skip_the_manifest`, `Pair.see_no_directories`), and the last tests show that each defect of
pylance is still there, so that none is allowed for longer than it lasts.

Spec: directory-namespace, "V2: Manifest" and "Compatibility Mode".
"""

from __future__ import annotations

import os
import random
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import lance
import lance.namespace
import lance_namespace as spec
import pyarrow as pa
import pytest

import mooring
from mooring.opening import open_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    Id = tuple[str, ...]

pytestmark = pytest.mark.interop

OURS, THEIRS = "ours", "theirs"
TIDIES_WITHIN = 16
MANIFEST_ONLY = {"dir_listing_enabled": "false"}
PYLANCE = {
    "default": {},
    "manifest-only": MANIFEST_ONLY,
    "inline-indexes": {"inline_optimization_enabled": "true"},
}
MOORING = {"compatible": {}, "manifest-only": MANIFEST_ONLY}


def pairs(*modes: tuple[str, str]) -> pytest.MarkDecorator:
    """Run a test with pylance in one mode and ours in another."""
    chosen = [
        pytest.param((PYLANCE[theirs], MOORING[ours]), id=f"pylance-{theirs}-ours-{ours}")
        for theirs, ours in modes
    ]
    return pytest.mark.parametrize("modes", chosen)


every_pair = pairs(*((theirs, ours) for theirs in PYLANCE for ours in MOORING))
unlike_pairs = pairs(("default", "manifest-only"), ("manifest-only", "compatible"))


# -- what the catalog should hold -----------------------------------------------------------------


class Row(NamedTuple):
    """A table as the manifest names it."""

    location: str
    properties: Mapping[str, str]


class Table(NamedTuple):
    """A table as a client describes it."""

    location: str
    properties: Mapping[str, str]
    is_declared: bool


class View(NamedTuple):
    """All that a client tells of a catalog."""

    namespaces: Mapping[Id, Mapping[str, str]]
    tables: Mapping[Id, Table]


@dataclass
class World:
    """What everything that was done should have led to.

    Attributes:
        namespaces: Their properties.
        rows: The tables that the manifest names.
        content: What lies at each location; None where it is only declared.
        hidden: Directories that a drop or deregistration by ours hides from the listings of each.
            Where pylance deletes such a directory and makes it again its marker is gone with it,
            but the decision of ours is not: only a row shows that table to ours.
        left: Directories that a rename moved the table out of.
        trash: Dropped tables of each identifier, the newest last.
        trees: Namespaces that were dropped with all that was in them.
    """

    namespaces: dict[Id, Mapping[str, str]] = field(default_factory=dict)
    rows: dict[Id, Row] = field(default_factory=dict)
    content: dict[str, list[int] | None] = field(default_factory=dict)
    hidden: dict[str, set[str]] = field(default_factory=lambda: {OURS: set(), THEIRS: set()})
    left: set[str] = field(default_factory=set)
    trash: dict[Id, list[Row]] = field(default_factory=lambda: defaultdict(list))
    trees: dict[Id, tuple[dict, dict]] = field(default_factory=dict)

    def directories(self, by: str) -> dict[Id, str]:
        """Return the root tables that a listing finds."""
        shown = [at for at in self.content if at.endswith(".lance") and at not in self.hidden[by]]
        return {(at.removesuffix(".lance"),): at for at in shown}

    def hide(self, location: str) -> None:
        for hidden in self.hidden.values():
            hidden.add(location)

    def show(self, location: str) -> None:
        for hidden in self.hidden.values():
            hidden.discard(location)

    def is_free(self, path: Id) -> bool:
        taken = path in self.rows or path in self.namespaces
        return not taken and own_directory(path) not in self.content

    def below(self, path: Id) -> list[Id]:
        return [key for key in (*self.namespaces, *self.rows) if is_in(key, path) and key != path]

    def loose(self) -> list[str]:
        """Return the locations that no name leads to, live or dropped."""
        used = {row.location for row in self._all_rows()}
        return sorted(self.content.keys() - used - self.left)

    def is_shared(self, location: str) -> bool:
        """Whether several names, dropped ones too, lead to a location."""
        listed = self.directories(THEIRS).items()
        bare = [Row(at, {}) for path, at in listed if path not in self.rows]
        return sum(row.location == location for row in [*self._all_rows(), *bare]) > 1

    def _all_rows(self) -> list[Row]:
        dropped = [row for rows in self.trash.values() for row in rows]
        trees = [row for _, tables in self.trees.values() for row in tables.values()]
        return [*self.rows.values(), *dropped, *trees]


def is_in(path: Id, namespace: Id) -> bool:
    return path[: len(namespace)] == namespace


def own_directory(path: Id) -> str | None:
    """Return where a root table lies by the rules of V1."""
    return f"{path[0]}.lance" if len(path) == 1 else None


def ipc(values: Iterable[int]) -> bytes:
    table = pa.table({"n": pa.array(values, pa.int64())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


# -- two clients on it ----------------------------------------------------------------------------


class Pair:
    """The two clients of a catalog; each method is a step, done by one and checked with both."""

    def __init__(self, root: Path, theirs: dict[str, str], ours: dict[str, str]) -> None:
        self.root = root
        # What pylance has open must last, also before it is seen to write.
        open_directory(str(root), {}).initialize(shared=True)
        self.world = World()
        self.steps = 0
        modes = {OURS: ours, THEIRS: theirs}
        self.lists = {by: mode.get("dir_listing_enabled") != "false" for by, mode in modes.items()}
        self._open: dict[str, Callable] = {
            OURS: lambda: mooring.DirectoryNamespace(root=str(root), **ours),
            THEIRS: lambda: lance.namespace.DirectoryNamespace(root=str(root), **theirs),
        }
        self.clients = {by: opened() for by, opened in self._open.items()}

    @property
    def ours(self) -> mooring.DirectoryNamespace:
        return self.clients[OURS]

    def reopen(self) -> None:
        """Go on as processes that were just started."""
        self.clients.clear()
        self.clients.update({by: opened() for by, opened in self._open.items()})
        self._done()

    # -- namespaces

    def create_namespace(self, by: str, path: Id, properties: Mapping[str, str]) -> None:
        self.clients[by].create_namespace(
            spec.CreateNamespaceRequest(id=list(path), properties=properties)
        )
        self.world.namespaces[path] = properties
        self._done()

    def update_namespace(self, path: Id, properties: Mapping[str, str]) -> None:
        gone = dict.fromkeys(self.world.namespaces[path].keys() - properties.keys())
        self.ours.update_namespace(list(path), {**gone, **properties})
        self.world.namespaces[path] = properties
        self._done()

    def drop_namespace(self, by: str, path: Id) -> None:
        self.clients[by].drop_namespace(spec.DropNamespaceRequest(id=list(path)))
        properties = self.world.namespaces.pop(path)
        if by == OURS:
            self.world.trees[path] = {path: properties}, {}
        self._done()

    def drop_tree(self, path: Id) -> None:
        self.ours.drop_namespace(spec.DropNamespaceRequest(id=list(path), behavior="cascade"))
        world = self.world
        namespaces = {
            key: world.namespaces.pop(key) for key in [*world.namespaces] if is_in(key, path)
        }
        rows = {key: world.rows.pop(key) for key in [*world.rows] if is_in(key, path)}
        world.trees[path] = namespaces, rows
        self._done(*rows)

    def undrop_tree(self, path: Id) -> None:
        namespaces, rows = self.world.trees.pop(path)
        assert self.ours.undrop_namespace(list(path)) == len(namespaces) + len(rows)
        self.world.namespaces |= namespaces
        self.world.rows |= rows
        self._done(*rows)

    # -- tables

    def declare(self, by: str, path: Id, properties: Mapping[str, str]) -> None:
        request = spec.DeclareTableRequest(id=list(path), properties=properties)
        location = self._placed(by, path, self.clients[by].declare_table(request).location)
        self.world.rows[path] = Row(location, properties)
        self.world.content[location] = None
        self._done(path)

    def create(
        self, by: str, path: Id, values: list[int], properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a table, or give a declared one its first rows."""
        request = spec.CreateTableRequest(id=list(path), properties=properties)
        response = self.clients[by].create_table(request, ipc(values))
        if path not in self.world.rows:
            location = self._placed(by, path, response.location)
            self.world.rows[path] = Row(location, properties or {})
        self.world.content[self.world.rows[path].location] = list(values)
        self._done(path)

    def insert(self, by: str, path: Id, values: list[int]) -> None:
        table = pa.table({"n": pa.array(values, pa.int64())})
        client = self.clients[by]
        lance.write_dataset(table, namespace_client=client, table_id=list(path), mode="append")
        self._content(path).extend(values)
        self._done(path)

    def deregister(self, by: str, path: Id) -> str:
        """Forget a table's name; return where it lies."""
        self.clients[by].deregister_table(spec.DeregisterTableRequest(id=list(path)))
        row = self._take_row(by, path)
        self._done(path)
        return row.location

    def register(self, by: str, path: Id, location: str, properties: Mapping[str, str]) -> None:
        self.clients[by].register_table(
            spec.RegisterTableRequest(id=list(path), location=location, properties=properties)
        )
        # Defect: pylance ignores the properties of a registration.
        self.world.rows[path] = Row(location, properties if by == OURS else {})
        if by == OURS and location == own_directory(path):
            self.world.show(location)
        self._done(path)

    def drop(self, by: str, path: Id) -> None:
        self.clients[by].drop_table(spec.DropTableRequest(id=list(path)))
        row = self._take_row(by, path)
        if by == OURS:
            self.world.trash[path].append(row)
        else:
            del self.world.content[row.location]
            self.world.hidden[THEIRS].discard(row.location)
        self._done(path)

    def undrop(self, path: Id, new: Id | None = None) -> None:
        self.ours.undrop_table(list(path), new and list(new))
        row = self.world.trash[path].pop()
        if new is None and row.location == own_directory(path):
            self.world.show(row.location)
        self.world.rows[new or path] = row
        self._done(path, new or path)

    def rename(self, path: Id, new: Id) -> None:
        """Give a table another name; one in `<name>.lance` moves, by rule 4."""
        self.ours.rename_table(
            spec.RenameTableRequest(
                id=list(path), new_table_name=new[-1], new_namespace_id=list(new[:-1])
            )
        )
        row = self._take_row(OURS, path)
        if row.location == own_directory(path):
            found = self._describe(self.ours, new).location
            assert re.fullmatch(r"[0-9a-f]{8}_" + re.escape("$".join(new)), found)
            values = self.world.content[row.location]
            self.world.content[found] = None if values is None else [*values]
            self.world.left.add(row.location)
            row = Row(found, row.properties)
        self.world.rows[new] = row
        self._done(path, new)

    def purge(self, path: Id) -> None:
        self.ours.purge_table(list(path))
        for row in self.world.trash.pop(path):
            del self.world.content[row.location]
        self._done(path)

    # -- the manifest itself

    def tidy(self, path: Id) -> None:
        """Have ours change a namespace so often that it tidies: files go, indexes are made."""
        for number in range(TIDIES_WITHIN):
            self.ours.update_namespace(list(path), {"number": str(number)})
        self.ours.update_namespace(list(path), {"number": None})
        self._done()

    def refuse(self, path: Id, table: Id) -> None:
        """See both refuse, with the same code, what makes no sense.

        Args:
            path: A namespace that is not empty.
            table: A table.
        """
        missing = [*path, "missing"]
        location = self.world.rows[table].location
        cases = {
            "create_namespace": [
                (2, spec.CreateNamespaceRequest(id=list(path))),
                (1, spec.CreateNamespaceRequest(id=[*missing, "x"])),
            ],
            "drop_namespace": [
                (3, spec.DropNamespaceRequest(id=list(path))),
                (1, spec.DropNamespaceRequest(id=missing)),
            ],
            "describe_namespace": [(1, spec.DescribeNamespaceRequest(id=missing))],
            "namespace_exists": [(1, spec.NamespaceExistsRequest(id=missing))],
            "declare_table": [(5, spec.DeclareTableRequest(id=list(table)))],
            "register_table": [(5, spec.RegisterTableRequest(id=list(table), location=location))],
            "describe_table": [(4, spec.DescribeTableRequest(id=missing))],
            "table_exists": [(4, spec.TableExistsRequest(id=missing))],
            "drop_table": [(4, spec.DropTableRequest(id=missing))],
            "deregister_table": [(4, spec.DeregisterTableRequest(id=missing))],
        }
        for verb, requests in cases.items():
            for code, request in requests:
                assert self._codes(verb, request) == {OURS: code, THEIRS: code}, verb
        duplicate = spec.CreateTableRequest(id=list(table)), ipc([1])
        assert self._codes("create_table", *duplicate) == {OURS: 5, THEIRS: 5}
        self._done(table)

    def _codes(self, verb: str, *request: object) -> dict[str, int]:
        codes = {}
        for by, client in self.clients.items():
            with pytest.raises(spec.errors.LanceNamespaceError) as caught:
                getattr(client, verb)(*request)
            codes[by] = int(caught.value.code)
        return codes

    # -- what each should tell

    def sees(self, by: str, path: Id) -> bool:
        """Whether a client's reads find a table."""
        by_row = path in self.world.rows
        by_listing = path in self.world.directories(by)
        if len(path) > 1 or not self.lists[by]:
            return by_row
        return by_listing or (by == OURS and by_row)

    def expected(self) -> View:
        """Return what ours must tell: the manifest, and in the root what listings find."""
        rows = dict(self.world.rows)
        if self.lists[OURS]:
            for path, location in self.world.directories(OURS).items():
                rows.setdefault(path, Row(location, {}))
        return View(
            self.world.namespaces,
            {path: Table(*row, self._is_declared(row.location)) for path, row in rows.items()},
        )

    def skip_the_manifest(self, view: View) -> View:
        """Allow for a defect (lance #6507): by default pylance reads the root by listing alone.

        So it sees no root table that lies elsewhere, knows no properties of those it sees, and
        goes on showing what it deregistered itself.
        """
        found = self.world.directories(THEIRS).items()
        root = {path: Table(at, {}, self._is_declared(at)) for path, at in found}
        nested = {path: table for path, table in view.tables.items() if len(path) > 1}
        return View(view.namespaces, {**nested, **root})

    def see_no_directories(self, view: View) -> View:
        """Allow for a difference of modes: without listing only what has a row is found."""
        named = {path: table for path, table in view.tables.items() if path in self.world.rows}
        return View(view.namespaces, named)

    def check(self, *touched: Id) -> None:
        """Compare what both tell with what they should, and read the rows of some tables."""
        ours, theirs = self._look(OURS), self._look(THEIRS)
        assert ours == self.expected()
        excused = self.skip_the_manifest if self.lists[THEIRS] else self.see_no_directories
        assert theirs == excused(ours)
        for location, values in self.world.content.items():
            if values is not None:
                found = lance.dataset(str(self.root / location)).to_table()["n"].to_pylist()
                assert found == values, location
        for path in touched:
            for by, view in ((OURS, ours), (THEIRS, theirs)):
                self._check_table(by, path, view.tables.get(path))

    def _check_table(self, by: str, path: Id, table: Table | None) -> None:
        client = self.clients[by]
        if table is None:
            with pytest.raises(spec.errors.TableNotFoundError):
                client.table_exists(spec.TableExistsRequest(id=list(path)))
            return
        client.table_exists(spec.TableExistsRequest(id=list(path)))
        if not table.is_declared:
            opened = lance.dataset(namespace_client=client, table_id=list(path))
            assert opened.to_table()["n"].to_pylist() == self.world.content[table.location]

    # -- small things

    def _done(self, *touched: Id) -> None:
        self.steps += 1
        self.check(*touched)

    def _look(self, by: str) -> View:
        client = self.clients[by]
        view = View({}, {})
        waiting: list[Id] = [()]
        while waiting:
            parent = waiting.pop()
            if parent:
                asked = spec.DescribeNamespaceRequest(id=list(parent))
                view.namespaces[parent] = client.describe_namespace(asked).properties or {}
            for name in client.list_tables(spec.ListTablesRequest(id=list(parent))).tables:
                assert (*parent, name) not in view.tables, "listed twice"
                view.tables[*parent, name] = self._describe(client, (*parent, name))
            found = client.list_namespaces(spec.ListNamespacesRequest(id=list(parent)))
            waiting += [(*parent, name) for name in found.namespaces]
        return view

    def _describe(self, client: spec.LanceNamespace, path: Id) -> Table:
        asked = spec.DescribeTableRequest(id=list(path), check_declared=True)
        found = client.describe_table(asked)
        declared = found.is_only_declared
        return Table(self._relative(found.location), found.properties or {}, declared)

    def _relative(self, location: str) -> str:
        return location.removeprefix("file://").removeprefix(f"{self.root}/")

    def _placed(self, by: str, path: Id, location: str) -> str:
        """Check where a new table was put.

        Spec: directory-namespace, "Manifest Table Directory"; "Compatibility Mode", rule 3.
        """
        found = self._relative(location)
        own = own_directory(path)
        if own and self.lists[by]:
            assert found == own
        else:
            assert re.fullmatch(r"[0-9a-f]{8}_" + re.escape("$".join(path)), found)
        if by == OURS:
            self.world.hidden[OURS].discard(found)
        # A declared table whose row is gone is found by its directory, and can be filled.
        assert self.world.content.get(found) is None
        return found

    def _take_row(self, by: str, path: Id) -> Row:
        """Note that a name is gone, and what becomes of a root table's directory."""
        own = own_directory(path)
        row = self.world.rows.pop(path, None) or Row(own or "", {})
        if by == OURS and row.location == own:
            self.world.hide(own)
        return row

    def _content(self, path: Id) -> list[int]:
        row = self.world.rows.get(path)
        values = self.world.content[row.location if row else own_directory(path) or ""]
        assert values is not None
        return values

    def _is_declared(self, location: str) -> bool:
        return self.world.content[location] is None


# -- a story in many steps ------------------------------------------------------------------------


def tell(pair: Pair, one: str, other: str) -> None:
    """Have two clients work on each other's objects, in namespaces and in the root."""
    top, deep, deeper = (one,), (one, "deep"), (one, "deep", "deeper")
    pair.create_namespace(one, top, {"owner": "ada", "note": 'ü "$" \\ \n'})
    pair.create_namespace(other, deep, {})
    pair.create_namespace(one, deeper, {"k": "v"})
    pair.create_namespace(other, (*top, "empty"), {})
    pair.drop_namespace(one, (*top, "empty"))
    pair.declare(one, (*top, "later"), {"a": "b"})
    pair.create(other, (*top, "later"), [1, 2])
    pair.insert(one, (*top, "later"), [3])
    pair.create(one, (*deep, "events"), [1], {"x": "1", "y": "2"})
    pair.insert(other, (*deep, "events"), [2])
    pair.create(other, (*deeper, "facts"), [7])
    pair.register(one, (*deeper, "moved"), pair.deregister(other, (*deep, "events")), {"p": "q"})
    pair.insert(other, (*deeper, "moved"), [3])
    pair.drop(other, (*top, "later"))
    pair.create(one, (*top, "later"), [9])
    pair.refuse(top, (*top, "later"))
    tell_of_the_root(pair, one, other)


def tell_of_the_root(pair: Pair, one: str, other: str) -> None:
    root, later, gone = (f"{one}_root",), (f"{one}_later",), (f"{one}_gone",)
    pair.create(one, root, [5], {"r": "s"})
    pair.insert(other if pair.sees(other, root) else one, root, [6])
    pair.declare(other, later, {"d": "e"})
    pair.create(one if pair.sees(one, later) else other, later, [8])
    pair.register(one, (one, "rooted"), pair.deregister(other, root), {})
    pair.create(other, gone, [1])
    pair.drop(one, gone)


def tell_of_the_trash(pair: Pair) -> None:
    """Drop, undrop and rename with ours, while pylance goes on writing."""
    top = (THEIRS,)
    facts, others = (*top, "deep", "deeper", "facts"), (*top, "facts")
    pair.rename(facts, others)
    pair.drop(OURS, others)
    pair.undrop(others)
    pair.insert(THEIRS, others, [8])
    pair.drop(OURS, others)
    pair.create(THEIRS, others, [70], {"second": "life"})
    pair.undrop(others, (*top, "first"))
    pair.drop(OURS, others)
    pair.purge(others)
    pair.update_namespace(top, {"owner": "bob", "team": "x"})
    pair.drop_tree(top)
    pair.create_namespace(THEIRS, ("meanwhile",), {"w": "x"})
    pair.declare(THEIRS, ("meanwhile", "t"), {})
    pair.undrop_tree(top)
    pair.tidy(top)
    pair.drop(THEIRS, (*top, "first"))
    pair.drop(OURS, (f"{THEIRS}_later",))
    pair.create_namespace(THEIRS, ("afterwards",), {})
    pair.undrop((f"{THEIRS}_later",))
    pair.reopen()


@every_pair
@pytest.mark.peer(
    "pylance-dir",
    they="list describe read write namespaces drop",
    we="list describe read write namespaces drop",
    on="V2",
)
def test_what_one_does_the_other_tells(tmp_path, modes):
    """Must show: interop, both directions, at least 40 operations in mixed order."""
    pair = Pair(tmp_path, *modes)
    tell(pair, OURS, THEIRS)
    tell(pair, THEIRS, OURS)
    tell_of_the_trash(pair)
    assert pair.steps >= 40
    pair.check(*pair.world.rows)


# -- any sequence of steps ------------------------------------------------------------------------

BOTH = (OURS, THEIRS)
NAMES = ("a", "b", "c", "d")
PROPERTIES = ({"k": "v"}, {}, {"owner": "ada", "note": "a 'quoted' $ word"})
MOST_TABLES = 16
DEEPEST = 2
STEPS = 40
SEQUENCES = int(os.environ.get("MOORING_INTEROP_SEQUENCES", "2"))


class Choices:
    """What can be done next, by either client, on a few names."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.world = pair.world

    def all(self) -> dict[str, tuple[Callable, list[tuple]]]:
        """Return for each kind of step what does it, and the arguments that make sense."""
        pair, new = self.pair, self.new_paths()
        room = new if len(self.world.content) < MOST_TABLES else []
        values = [pair.steps]
        made = [(by, path, values, some) for by in BOTH for path in room for some in PROPERTIES]
        named = [(by, path, some) for by in BOTH for path in new for some in PROPERTIES]
        placed = [
            (by, path, location, some)
            for by, path, some in named
            for location in self.world.loose()
        ]
        namespaces = sorted(self.world.namespaces)
        return {
            "create": (pair.create, made),
            "declare": (pair.declare, [(by, path, some) for by, path, _, some in made]),
            "fill": (pair.create, [(*found, values) for found in self.seen(declared=True)]),
            "insert": (pair.insert, [(*found, values) for found in self.seen(declared=False)]),
            "drop": (pair.drop, self.droppable()),
            "deregister": (pair.deregister, self.droppable()),
            "register": (pair.register, placed),
            "rename": (pair.rename, [(path, to) for path in self.renamable() for to in new]),
            "undrop": (pair.undrop, [(path,) for path in self.undroppable()]),
            "create namespace": (pair.create_namespace, named),
            "update namespace": (
                pair.update_namespace,
                [(path, some) for path in namespaces for some in PROPERTIES],
            ),
            "drop namespace": (
                pair.drop_namespace,
                [(by, path) for by in BOTH for path in namespaces if not self.world.below(path)],
            ),
            "drop tree": (pair.drop_tree, [(path,) for path in namespaces]),
            "undrop tree": (pair.undrop_tree, [(path,) for path in self.undroppable_trees()]),
            "tidy": (pair.tidy, [(path,) for path in namespaces]),
            "reopen": (pair.reopen, [()] if namespaces or not room else []),
        }

    def new_paths(self) -> list[Id]:
        parents = [(), *(path for path in self.world.namespaces if len(path) <= DEEPEST)]
        paths = [(*parent, name) for parent in parents for name in NAMES]
        return sorted(filter(self.world.is_free, paths))

    def seen(self, *, declared: bool) -> list[tuple[str, Id]]:
        """Return the tables that each client finds, and that hold rows or wait for them."""
        tables = self.pair.expected().tables.items()
        return [
            (by, path)
            for by in BOTH
            for path, table in sorted(tables)
            if table.is_declared == declared and self.pair.sees(by, path)
        ]

    def droppable(self) -> list[tuple[str, Id]]:
        """Return the tables that each client can take away."""
        found = [(OURS, path) for path in sorted(self.pair.expected().tables)]
        return found + [
            (THEIRS, path)
            for path, row in sorted(self.world.rows.items())
            # Defect: a drop by pylance deletes files that another name uses.
            if not self.world.is_shared(row.location)
        ]

    def renamable(self) -> list[Id]:
        """Return the tables that can be renamed without moving what another name uses."""
        rows = sorted(self.world.rows.items())
        return [path for path, row in rows if not self.world.is_shared(row.location)]

    def undroppable(self) -> list[Id]:
        """Return the dropped tables whose name, or whose own directory, is free again."""
        world = self.world
        trees = {path for _, rows in world.trees.values() for path in rows}
        return sorted(
            path
            for path, rows in world.trash.items()
            if rows
            and path not in trees
            and self.has_parent(path)
            and path not in world.rows
            and path not in world.namespaces
            and (rows[-1].location == own_directory(path) or world.is_free(path))
        )

    def undroppable_trees(self) -> list[Id]:
        """Return the dropped namespaces that were not dropped once more with another one."""
        trees = self.world.trees
        return sorted(
            path
            for path in trees
            if self.world.is_free(path)
            and self.has_parent(path)
            and not any(path in trees[other][0] for other in trees if other != path)
        )

    def has_parent(self, path: Id) -> bool:
        return len(path) == 1 or path[:-1] in self.world.namespaces


@every_pair
@pytest.mark.parametrize("seed", range(SEQUENCES))
@pytest.mark.peer(
    "pylance-dir",
    they="list describe read write namespaces drop",
    we="list describe read write namespaces drop",
    on="V2",
)
def test_any_sequence_of_steps_is_told_alike(tmp_path, modes, seed):
    """Must show: interop, both directions, in mixed order; always the same choices."""
    pair = Pair(tmp_path, *modes)
    choose = random.Random(seed)
    for _ in range(STEPS):
        possible = {kind: found for kind, found in Choices(pair).all().items() if found[1]}
        act, arguments = possible[choose.choice(sorted(possible))]
        act(*choose.choice(arguments))
    assert pair.steps == STEPS
    pair.check(*pair.world.rows)


# -- single facts ---------------------------------------------------------------------------------


@unlike_pairs
@pytest.mark.peer("pylance-dir", we="list", on="V2")
def test_a_root_table_that_pylance_registers_again_is_back(tmp_path, modes):
    """Spec: directory-namespace, "Compatibility Mode", rules 1 and 2: the manifest is right."""
    pair = Pair(tmp_path, *modes)
    pair.create(OURS, ("t",), [1], {"k": "v"})
    location = pair.deregister(OURS, ("t",))
    pair.register(THEIRS, ("t",), location, {})
    pair.insert(OURS, ("t",), [2])


@unlike_pairs
@pytest.mark.peer("pylance-dir", we="list", on="V2")
def test_a_deregistered_root_table_can_get_another_name(tmp_path, modes):
    """Spec: directory-namespace, "Marker Files": preserved for potential re-registration."""
    pair = Pair(tmp_path, *modes)
    pair.create_namespace(THEIRS, ("ns",), {})
    for by in BOTH:
        pair.create(OURS, (by,), [1])
        location = pair.deregister(OURS, (by,))
        pair.register(by, ("ns", by), location, {})
        pair.insert(THEIRS, ("ns", by), [2])


@unlike_pairs
def test_a_root_table_keeps_its_properties_in_the_trash(tmp_path, modes):
    """Spec: soft-delete; "Lifecycle": properties kept."""
    pair = Pair(tmp_path, *modes)
    for by in BOTH:
        pair.create(by, (by,), [1], {"made": by})
        pair.drop(OURS, (by,))
        pair.undrop((by,))
        pair.drop(OURS, (by,))
        pair.create_namespace(THEIRS, (f"after_{by}",), {})
        pair.undrop((by,))


@unlike_pairs
@pytest.mark.peer("pylance-dir", they="read", on="V2")
def test_a_renamed_root_table_is_the_same_to_pylance(tmp_path, modes):
    """Spec: directory-namespace, "Compatibility Mode", rule 4."""
    pair = Pair(tmp_path, *modes)
    pair.create_namespace(OURS, ("ns",), {})
    for by in BOTH:
        pair.create(by, (by,), [1], {"made": by})
        pair.rename((by,), ("ns", by))
        pair.insert(THEIRS, ("ns", by), [2])
        pair.rename(("ns", by), (f"back_{by}",))
        pair.insert(OURS, (f"back_{by}",), [3])


@unlike_pairs
@pytest.mark.peer("pylance-dir", they="describe", on="V2")
def test_a_declared_root_table_that_was_renamed_is_declared_to_pylance(tmp_path, modes):
    """Spec: directory-namespace, "Marker Files": the reservation is in the new directory, too."""
    pair = Pair(tmp_path, *modes)
    pair.create_namespace(OURS, ("ns",), {})
    for by in BOTH:
        pair.declare(by, (by,), {"made": by})
        pair.rename((by,), ("ns", by))
        assert (tmp_path / pair.world.rows["ns", by].location / ".lance-reserved").is_file()
        pair.drop(THEIRS, ("ns", by))


@unlike_pairs
@pytest.mark.peer("pylance-dir", we="write", on="V2")
def test_a_name_that_pylance_dropped_can_be_declared(tmp_path, modes):
    """Whatever ours had decided about the table before: its directory is gone."""
    pair = Pair(tmp_path, *modes)
    pair.create(OURS, ("t",), [1])
    pair.drop(OURS, ("t",))
    pair.undrop(("t",))
    pair.drop(THEIRS, ("t",))
    pair.declare(OURS, ("t",), {"k": "v"})
    pair.create(OURS, ("t",), [2])


@unlike_pairs
@pytest.mark.parametrize("step", ["create", "declare"])
def test_a_deregistered_name_whose_files_pylance_deleted_is_free(tmp_path, modes, step):
    """Nothing is left that could be registered again."""
    pair = Pair(tmp_path, *modes)
    pair.create(OURS, ("t",), [1])
    pair.register(THEIRS, ("other",), pair.deregister(OURS, ("t",)), {})
    pair.drop(THEIRS, ("other",))
    if step == "declare":
        pair.declare(OURS, ("t",), {})
    pair.create(OURS, ("t",), [2])


@unlike_pairs
@pytest.mark.peer("pylance-dir", we="namespaces", on="V2")
def test_a_namespace_that_pylance_dropped_can_hold_its_tables_again(tmp_path, modes):
    """A dropped table waits for its namespace, whoever makes that again."""
    pair = Pair(tmp_path, *modes)
    pair.create_namespace(OURS, ("ns",), {"k": "v"})
    pair.create(THEIRS, ("ns", "t"), [1], {"k": "v"})
    pair.drop(OURS, ("ns", "t"))
    pair.drop_namespace(THEIRS, ("ns",))
    with pytest.raises(spec.errors.NamespaceNotFoundError):
        pair.ours.undrop_table(["ns", "t"])
    pair.create_namespace(THEIRS, ("ns",), {})
    pair.undrop(("ns", "t"))


# -- defects of pylance that are allowed for above ------------------------------------------------


@pytest.fixture
def both(tmp_path):
    """The two clients in their default modes."""
    pair = Pair(tmp_path, {}, {})
    pair.create_namespace(OURS, ("ns",), {})
    return pair.ours, pair.clients[THEIRS]


def tables_in(client: spec.LanceNamespace, *path: str) -> list[str]:
    return client.list_tables(spec.ListTablesRequest(id=list(path))).tables


def test_pylance_lists_a_missing_namespace_as_an_empty_one(both):
    ours, theirs = both
    assert tables_in(theirs, "missing") == []
    with pytest.raises(spec.errors.NamespaceNotFoundError):
        tables_in(ours, "missing")


def test_pylance_reads_the_root_without_its_manifest(both):
    """Lance #6507."""
    ours, theirs = both
    theirs.create_table(spec.CreateTableRequest(id=["ns", "t"]), ipc([1]))
    ours.rename_table(
        spec.RenameTableRequest(id=["ns", "t"], new_table_name="t", new_namespace_id=[])
    )
    assert tables_in(ours) == ["t"]
    assert tables_in(theirs) == []
    ours.create_table(spec.CreateTableRequest(id=["u"], properties={"k": "v"}), ipc([1]))
    asked = spec.DescribeTableRequest(id=["u"])
    assert ours.describe_table(asked).properties == {"k": "v"}
    assert theirs.describe_table(asked).properties is None


def test_pylance_lists_a_root_table_that_it_deregistered(both):
    """So do readers of V1, ours among them: nothing marks the directory."""
    ours, theirs = both
    theirs.create_table(spec.CreateTableRequest(id=["t"]), ipc([1]))
    theirs.deregister_table(spec.DeregisterTableRequest(id=["t"]))
    assert tables_in(theirs) == tables_in(ours) == ["t"]
    ours.deregister_table(spec.DeregisterTableRequest(id=["t"]))
    assert tables_in(theirs) == tables_in(ours) == []


def test_pylance_ignores_the_properties_of_a_registration(both):
    ours, theirs = both
    ours.create_table(spec.CreateTableRequest(id=["ns", "t"]), ipc([1]))
    location = ours.deregister_table(spec.DeregisterTableRequest(id=["ns", "t"])).location
    request = spec.RegisterTableRequest(
        id=["ns", "t"], location=location.rpartition("/")[2], properties={"k": "v"}
    )
    theirs.register_table(request)
    asked = spec.DescribeTableRequest(id=["ns", "t"])
    assert not theirs.describe_table(asked).properties
    assert ours.describe_table(asked).properties == {}


def test_pylance_drops_files_that_another_name_uses(both):
    ours, theirs = both
    ours.create_table(spec.CreateTableRequest(id=["ns", "t"]), ipc([1]))
    location = ours.describe_table(spec.DescribeTableRequest(id=["ns", "t"])).location
    alias = spec.RegisterTableRequest(id=["ns", "u"], location=location.rpartition("/")[2])
    ours.register_table(alias)
    theirs.drop_table(spec.DropTableRequest(id=["ns", "u"]))
    described = ours.describe_table(spec.DescribeTableRequest(id=["ns", "t"], check_declared=True))
    assert described.is_only_declared


def test_pylance_creates_a_table_in_a_missing_namespace(both):
    """Ours finds it by its name and in the list of all, but has no namespace to list it in."""
    ours, theirs = both
    theirs.create_table(spec.CreateTableRequest(id=["missing", "t"]), ipc([1]))
    opened = lance.dataset(namespace_client=ours, table_id=["missing", "t"])
    assert opened.to_table()["n"].to_pylist() == [1]
    assert ours.list_all_tables(spec.ListTablesRequest()).tables == ["missing$t"]
    with pytest.raises(spec.errors.NamespaceNotFoundError):
        tables_in(ours, "missing")
    create = spec.CreateTableRequest(id=["missing", "u"])
    with pytest.raises(spec.errors.NamespaceNotFoundError):
        ours.create_table(create, ipc([1]))
