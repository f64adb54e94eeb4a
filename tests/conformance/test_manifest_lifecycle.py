"""Drop, undrop and purge by rows of the manifest: tables, and whole trees of namespaces.

Spec: directory-namespace, "V2: Manifest"; soft-delete, all of it; PROTOCOLS, "Manifest catalogs".
"""

from __future__ import annotations

from urllib.parse import unquote

import lance
import pytest

from mooring.clock import DAY_MS
from mooring.errors import (
    ConflictError,
    InvalidTableStateError,
    MooringError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode, Ttl
from mooring.namespace.states import Exists, NotFound, SoftDeleted
from mooring.store.scripted import Crash, ScriptedStore
from tests.conformance.meanwhile import MANIFEST_COMMIT, Meanwhile
from tests.lakes import NOON_MS, rows, table_id

NS = ObjectId.of(["ns"])
T = table_id("ns", "t")
U = table_id("ns", "u")
WEEK_MS = 7 * DAY_MS


@pytest.fixture
def lake(nested):
    """A catalog with a namespace."""
    nested.make("ns")
    return nested


def _location(lake, table: ObjectId = T) -> str:
    """Return where a table lies, relative to the root."""
    location = lake.open().describe_table(table).location
    path = location.removeprefix(lake.store.location("") + "/")
    return unquote(path) if lake.kind.server else path


def _version(lake) -> int:
    return lance.dataset(lake.store.location("__manifest")).version


# -- drop and undrop ------------------------------------------------------------------------------


def test_one_commit_drops_and_one_undrops(lake):
    """Protocol: "Drop moves the row out of the live ids in one commit"."""
    lake.create(T, [1])
    files = {meta.path for meta in lake.store.list_prefix(_location(lake))}
    location, before = _location(lake), _version(lake)
    lake.drop(T)
    assert _version(lake) == before + 1
    assert {meta.path for meta in lake.store.list_prefix(location)} == files
    lake.backend.undrop_table(T)
    assert _version(lake) == before + 2
    assert _location(lake) == location
    assert lake.values(T) == [1]


def test_a_table_that_comes_back_while_its_status_is_read_is_never_told_as_not_there(
    lake, monkeypatch
):
    lake.create(T)
    lake.drop(T)
    backend = lake.open()
    find = backend.manifest.find

    def find_and_dawdle(key):
        row = find(key)
        lake.open().undrop_table(T)
        return row

    monkeypatch.setattr(backend.manifest, "find", find_and_dawdle)
    assert backend.table_status(T) == Exists()


def test_a_dropped_table_is_found_by_no_read(lake):
    lake.create(T)
    lake.drop(T)
    backend = lake.open()
    assert backend.list_tables(NS) == []
    assert backend.list_tables(NS, include_declared=False) == []
    assert backend.list_all_tables() == []
    with pytest.raises(TableNotFoundError, match=r"dropped .* undrop"):
        backend.describe_table(T)
    assert backend.table_status(T) == SoftDeleted(NOON_MS, NOON_MS + WEEK_MS)
    (found,) = backend.list_purgable_tables()
    assert (found.id, found.deleted_at_ms, found.expires_at_ms) == (T, NOON_MS, NOON_MS + WEEK_MS)


def test_the_hint_of_a_dropped_table_tells_how_to_get_it_back(lake):
    lake.create(T)
    lake.drop(T)
    lake.clock.advance(2 * 3_600_000)
    with pytest.raises(TableNotFoundError, match=r"2 h ago; .*undrop"):
        lake.open().describe_table(T)
    lake.backend.undrop_table(T)
    lake.backend.drop_namespace(NS, cascade=True)
    with pytest.raises(TableNotFoundError, match=r"with namespace 'ns'; .*namespace undrop ns"):
        lake.open().describe_table(T)


def test_a_table_comes_back_under_another_name(lake):
    """Deliver 5: "undrop by name or to a new name"."""
    lake.make("other")
    lake.backend.create_table(T, rows([1]), properties={"owner": "ann"})
    lake.drop(T)
    lake.backend.undrop_table(T, table_id("other", "back"))
    assert lake.tables() == ["other$back"]
    assert lake.trash() == []
    info = lake.open().describe_table(table_id("other", "back"))
    assert info.properties == {"owner": "ann"}
    assert lake.values(table_id("other", "back")) == [1]


def test_an_undrop_needs_a_free_name_and_its_namespace(lake):
    lake.make("gone")
    table = table_id("gone", "t")
    lake.create(table, [1])
    lake.drop(table)
    lake.create(T, [2])
    with pytest.raises(TableAlreadyExistsError):
        lake.backend.undrop_table(table, T)
    with pytest.raises(NamespaceAlreadyExistsError):
        lake.backend.undrop_table(table, NS)
    lake.backend.drop_namespace(table_id("gone"))
    with pytest.raises(NamespaceNotFoundError, match="gone"):
        lake.backend.undrop_table(table)
    lake.backend.undrop_table(table, U)
    assert (lake.values(T), lake.values(U)) == ([2], [1])


def test_a_name_created_again_is_a_fresh_table_and_the_older_one_stays(lake):
    """Protocol: "A re-created name gets a fresh directory and the older one stays in the trash"."""
    lake.create(T, [1])
    first = _location(lake)
    lake.drop(T)
    assert lake.create(T, [2]).version == 1
    assert _location(lake) != first
    assert lake.trash() == ["ns$t"]
    assert lake.values(T) == [2]
    with pytest.raises(ConflictError):
        lake.backend.undrop_table(T)
    lake.backend.undrop_table(T, U)
    assert (lake.values(T), lake.values(U)) == ([2], [1])
    assert _location(lake, U) == first


def test_a_root_table_of_v2_created_again_is_a_fresh_table(v2):
    v2.create("t", [1])
    v2.drop("t")
    for mode in CreateMode:
        info = v2.create("t", [2], mode)
        assert info.version == 1
        assert v2.values("t") == [2]
        v2.drop("t")
    assert v2.trash() == ["t"] * 4


def test_a_dropped_name_can_be_declared_again(lake):
    lake.create(T, [1])
    lake.drop(T)
    lake.backend.declare_table(T)
    assert lake.open().describe_table(T, check_declared=True).is_only_declared is True
    lake.drop(T)
    assert lake.trash() == ["ns$t", "ns$t"]


def test_every_drop_of_a_name_comes_back_newest_first(lake):
    for life in (1, 2, 3):
        lake.create(T, [life])
        lake.clock.advance(1000)
        lake.drop(T)
    assert lake.trash() == ["ns$t"] * 3
    status = lake.open().table_status(T)
    assert status == SoftDeleted(NOON_MS + 3000, NOON_MS + 3000 + WEEK_MS)
    for life, name in ((3, "a"), (2, "b"), (1, "c")):
        lake.backend.undrop_table(T, table_id("ns", name))
        assert lake.values(table_id("ns", name)) == [life]
    assert lake.open().table_status(T) == NotFound()


@pytest.mark.parametrize("skew_ms", [0, -5000], ids=["stands", "goes back"])
def test_the_drop_that_comes_back_is_the_last_one_whatever_the_clock_says(lake, skew_ms):
    """Rule: "no clock in any safety argument: clocks only stamp and expire"."""
    for number in range(6):
        table = table_id("ns", f"t{number}")
        lake.create(table, [1])
        lake.drop(table)
        lake.clock.advance(skew_ms)
        lake.create(table, [2])
        lake.drop(table)
        lake.backend.undrop_table(table)
        assert lake.values(table) == [2]


def test_a_dropped_table_of_ours_is_dropped_for_pylance(lake):
    """Deliver 5; both read the same rows."""
    import lance.namespace
    import lance_namespace as spec

    lake.create(T, [1])
    lake.drop(T)
    pylance = lance.namespace.DirectoryNamespace(root=lake.uri)
    assert pylance.list_tables(spec.ListTablesRequest(id=["ns"])).tables == []
    with pytest.raises(spec.errors.TableNotFoundError):
        pylance.table_exists(spec.TableExistsRequest(id=["ns", "t"]))
    lake.backend.undrop_table(T)
    assert pylance.list_tables(spec.ListTablesRequest(id=["ns"])).tables == ["t"]
    assert pylance.list_namespaces(spec.ListNamespacesRequest(id=[])).namespaces == ["ns"]


# -- trees ----------------------------------------------------------------------------------------


def _plant(lake) -> list[str]:
    """Make a tree of namespaces and tables below `ns`; return its tables."""
    lake.make("ns$a", "ns$a$b", "ns$c")
    lake.backend.update_namespace(table_id("ns", "a"), {"owner": "ann"})
    tables = [T, table_id("ns", "a", "t"), table_id("ns", "a", "b", "t")]
    for number, table in enumerate(tables):
        lake.create(table, [number])
    return sorted(map(str, tables))


def test_a_namespace_tree_is_dropped_and_undropped_whole(lake):
    """Deliver 5: "a dropped namespace tree can be undropped as a whole"."""
    tables = _plant(lake)
    before = _version(lake)
    lake.backend.drop_namespace(NS, cascade=True)
    assert _version(lake) == before + 1
    assert lake.tables() == []
    assert lake.trash() == tables
    assert lake.open().list_namespaces(ROOT) == []
    assert lake.backend.undrop_namespace(NS) == 7
    assert _version(lake) == before + 2
    assert lake.tables() == tables
    assert lake.trash() == []
    assert lake.open().list_namespaces(NS) == ["a", "c"]
    assert lake.open().describe_namespace(table_id("ns", "a")) == {"owner": "ann"}
    assert lake.values(table_id("ns", "a", "b", "t")) == [2]


def test_what_was_dropped_before_the_tree_stays_dropped(lake):
    lake.create(T, [1])
    lake.create(U, [2])
    lake.drop(U)
    lake.backend.drop_namespace(NS, cascade=True)
    assert lake.backend.undrop_namespace(NS) == 2
    assert lake.tables() == ["ns$t"]
    assert lake.trash() == ["ns$u"]
    lake.backend.undrop_table(U)
    assert lake.values(U) == [2]


def test_a_part_of_a_tree_does_not_come_back_as_a_namespace(lake):
    _plant(lake)
    lake.backend.drop_namespace(NS, cascade=True)
    with pytest.raises(NamespaceNotFoundError):
        lake.backend.undrop_namespace(table_id("ns", "a"))
    assert lake.backend.undrop_namespace(NS) == 7


def test_a_single_table_of_a_tree_comes_back_where_there_is_a_namespace(lake):
    _plant(lake)
    lake.make("other")
    lake.backend.drop_namespace(NS, cascade=True)
    with pytest.raises(NamespaceNotFoundError):
        lake.backend.undrop_table(T)
    lake.backend.undrop_table(T, table_id("other", "t"))
    assert lake.values(table_id("other", "t")) == [0]
    assert lake.backend.undrop_namespace(NS) == 6
    assert lake.tables() == ["ns$a$b$t", "ns$a$t", "other$t"]


def test_a_tree_does_not_come_back_over_what_took_its_place(lake):
    tables = _plant(lake)
    lake.backend.drop_namespace(NS, cascade=True)
    lake.make("ns")
    lake.create(table_id("ns", "new"), [9])
    with pytest.raises(NamespaceAlreadyExistsError, match="'ns'"):
        lake.backend.undrop_namespace(NS)
    assert lake.tables() == ["ns$new"]
    assert lake.trash() == tables
    lake.backend.drop_namespace(NS, cascade=True)
    assert lake.backend.undrop_namespace(NS) == 2
    assert lake.values(table_id("ns", "new")) == [9]


def test_the_last_drop_of_a_namespace_comes_back_whatever_the_clock_says(lake):
    for life in range(6):
        lake.create(T, [life])
        lake.backend.drop_namespace(NS, cascade=True)
        lake.make("ns")
    lake.backend.drop_namespace(NS)
    assert lake.backend.undrop_namespace(NS) == 1
    assert lake.open().list_tables(NS) == []
    lake.backend.drop_namespace(NS)
    lake.make("ns")
    lake.create(T, [9])
    lake.backend.drop_namespace(NS, cascade=True)
    assert lake.backend.undrop_namespace(NS) == 2
    assert lake.values(T) == [9]


def test_a_tree_whose_parent_is_gone_comes_back_after_it(lake):
    lake.make("ns$a", "ns$a$b")
    inner = table_id("ns", "a")
    lake.backend.drop_namespace(inner, cascade=True)
    lake.backend.drop_namespace(NS)
    with pytest.raises(NamespaceNotFoundError):
        lake.backend.undrop_namespace(inner)
    lake.backend.undrop_namespace(NS)
    assert lake.backend.undrop_namespace(inner) == 2
    assert lake.open().list_namespaces(inner) == ["b"]


def test_an_expired_tree_goes_with_its_namespaces(lake):
    """A namespace without bytes must not stay in the trash for ever."""
    _plant(lake)
    lake.backend.drop_namespace(NS, cascade=True, ttl=Ttl(1000))
    lake.clock.advance(1000)
    report = lake.backend.purge_tables()
    assert sorted(map(str, report.purged)) == ["ns$a$b$t", "ns$a$t", "ns$t"]
    assert lake.trash() == []
    assert lake.directories() == set()
    with pytest.raises(NamespaceNotFoundError):
        lake.backend.undrop_namespace(NS)
    assert lance.dataset(lake.store.location("__manifest")).count_rows() == 0


# -- purge ----------------------------------------------------------------------------------------


def test_a_purge_deletes_every_byte_and_the_row(lake):
    lake.create(T, [1])
    lake.create(T, [2], CreateMode.OVERWRITE)
    lake.drop(T)
    heard = []
    lake.backend.purge_table(T, lambda *told: heard.append(told))
    assert lake.directories() == set()
    assert lake.open().table_status(T) == NotFound()
    assert lance.dataset(lake.store.location("__manifest")).count_rows() == 1
    (table, files, size_bytes) = heard[-1]
    assert table == T
    assert files >= 4
    assert size_bytes > 0


def test_a_purge_of_a_name_takes_all_its_drops_and_no_live_table(lake):
    for life in (1, 2):
        lake.create(T, [life])
        lake.drop(T)
    lake.create(T, [3])
    lake.backend.purge_table(T)
    assert lake.trash() == []
    assert lake.directories() == {_location(lake)}
    assert lake.values(T) == [3]
    with pytest.raises(TableNotFoundError, match="live"):
        lake.backend.purge_table(T)


def test_only_what_is_over_goes_with_the_expired(lake):
    """Spec: soft-delete, "None = purge all currently-purgable tables"."""
    for name, ttl in (("brief", Ttl(10)), ("week", None), ("ever", Ttl(None)), ("live", ...)):
        lake.create(table_id("ns", name), [1])
        if ttl is not ...:
            lake.backend.drop_table(table_id("ns", name), ttl)
    lake.clock.advance(9)
    assert lake.backend.purge_tables().purged == []
    lake.clock.advance(1)
    assert lake.backend.purge_tables().purged == [table_id("ns", "brief")]
    lake.clock.advance(1000 * WEEK_MS)
    assert lake.backend.purge_tables().purged == [table_id("ns", "week")]
    assert lake.trash() == ["ns$ever"]
    assert lake.values(table_id("ns", "live")) == [1]


def test_an_undrop_that_comes_first_keeps_the_files(lake):
    """Deliver 5: "purge arbitrated against undrop"."""
    lake.create(T, [1])
    lake.drop(T)
    rival = Meanwhile(lambda: lake.open().undrop_table(T), *MANIFEST_COMMIT)
    try:
        lake.open(store=ScriptedStore(lake.store, rival)).purge_table(T)
    except MooringError as exc:
        assert isinstance(exc, ConflictError | TableNotFoundError)  # noqa: PT017  # may succeed
    assert rival.done
    assert not isinstance(rival.outcome, MooringError)
    assert lake.open().table_status(T) == Exists()
    assert lake.values(T) == [1]


@pytest.mark.parametrize(
    "at", [("list_prefix", "_ns$t"), ("delete", "_ns$t")], ids=["list", "delete"]
)
def test_an_undrop_that_comes_second_is_refused(lake, at):
    """Protocol: "Purge marks ..., then deletes. Undrop reads ... the mark, then commits"."""
    lake.create(T, [1])
    lake.drop(T)
    rival = Meanwhile(lambda: lake.open().undrop_table(T), *at)
    lake.open(store=ScriptedStore(lake.store, rival)).purge_table(T)
    assert rival.done
    assert isinstance(rival.outcome, MooringError)
    assert lake.open().table_status(T) == NotFound()
    assert lake.directories() == set()


class DieAt:
    """Die at a verb on a path; the dead make no further calls."""

    def __init__(self, verb: str, part: str) -> None:
        self._verb, self._part = verb, part
        self.dead = False

    def before(self, call):
        self.dead = self.dead or (call.verb == self._verb and self._part in call.path)
        if self.dead:
            raise Crash

    def after(self, call, result):
        pass


def _die(lake, act, *at: str) -> None:
    script = DieAt(*at)
    with pytest.raises(Crash):
        act(lake.open(store=ScriptedStore(lake.store, script)))
    assert script.dead


def test_a_purge_that_died_is_finished_by_anybody(lake):
    """Rule: "after it every further step is idempotent and anybody may finish it"."""
    lake.create(T, [1])
    lake.backend.drop_table(T, Ttl(None))
    _die(lake, lambda backend: backend.purge_table(T), "list_prefix", "_ns$t")
    backend = lake.open(author="next")
    assert backend.table_status(T) == NotFound()
    assert backend.list_purgable_tables() == []
    with pytest.raises(TableNotFoundError):
        backend.undrop_table(T)
    assert backend.purge_tables().purged == [T]
    assert lake.directories() == set()
    assert lance.dataset(lake.store.location("__manifest")).count_rows() == 1


def test_a_purge_that_died_keeps_nobody_from_the_name(lake):
    lake.create(T, [1])
    lake.drop(T)
    _die(lake, lambda backend: backend.purge_table(T), "list_prefix", "_ns$t")
    lake.create(T, [2])
    assert lake.values(T) == [2]
    lake.open().purge_tables()
    assert lake.values(T) == [2]
    assert lake.directories() == {_location(lake)}


def test_a_tree_with_a_part_that_is_purged_does_not_come_back(lake):
    lake.create(T, [1])
    lake.create(U, [2])
    lake.backend.drop_namespace(NS, cascade=True)
    _die(lake, lambda backend: backend.purge_table(T), "list_prefix", "_ns$t")
    with pytest.raises(InvalidTableStateError, match=r"ns\$t"):
        lake.backend.undrop_namespace(NS)
    lake.open().purge_table(T)
    assert lake.backend.undrop_namespace(NS) == 2
    assert lake.values(U) == [2]


@pytest.mark.parametrize("done", [False, True], ids=["before the call", "after the call"])
@pytest.mark.parametrize("operation", ["create", "declare", "drop", "undrop", "purge", "rename"])
def test_whatever_dies_leaves_the_catalog_whole(compat, operation, done):
    """Rule: "Nothing is lost": an unacknowledged write is invisible, or is there whole."""
    lake = compat
    lake.make("ns")
    acts = {
        "create": lambda backend: backend.create_table(table_id("ns", "new"), rows([9])),
        "declare": lambda backend: backend.declare_table(table_id("ns", "new")),
        "drop": lambda backend: backend.drop_table(T),
        "undrop": lambda backend: backend.undrop_table(U),
        "purge": lambda backend: backend.purge_table(U),
        "rename": lambda backend: backend.rename_table(T, table_id("ns", "new")),
    }
    lake.create(T, [1])
    lake.create(U, [2])
    lake.drop(U)
    for call in range(1, 60):
        script = DieAfter(call, done=done)
        try:
            acts[operation](lake.open(store=ScriptedStore(lake.store, script)))
        except (Crash, Exception):
            if not script.dead:
                raise
        _must_be_whole(lake)
        _back_to_the_start(lake)
        if not script.dead:
            return
    pytest.fail(f"{operation} makes more than 60 calls")


class DieAfter:
    """Die before or after the n-th call; the dead make no further calls."""

    def __init__(self, call: int, *, done: bool) -> None:
        self._left = call
        self._done = done
        self.dead = False

    def before(self, call):
        self._left -= 1
        if self.dead or (self._left == 0 and not self._done):
            self._die()

    def after(self, call, result):
        if self._left == 0 and self._done:
            self._die()

    def _die(self):
        self.dead = True
        raise Crash


def _must_be_whole(lake) -> None:
    """Every live table with data can be read, and each name is live or dropped."""
    backend = lake.open()
    for table in backend.list_all_tables():
        if not backend.describe_table(table, check_declared=True).is_only_declared:
            assert lake.values(table) in ([1], [2], [9])
    for table in (T, U):
        listed = table.name in backend.list_tables(NS)
        assert listed == (backend.table_status(table) == Exists())


def _back_to_the_start(lake) -> None:
    """Bring every table back to where the test began, with whatever the dead left."""
    backend = lake.open(author="next")
    new = table_id("ns", "new")
    if backend.table_status(new) == Exists():
        if backend.table_status(T) == NotFound() and lake.values(new) == [1]:
            backend.rename_table(new, T)
        else:
            backend.drop_table(new)
    if isinstance(backend.table_status(T), SoftDeleted):
        backend.undrop_table(T)
    if backend.table_status(U) == NotFound():
        lake.create(U, [2], backend=backend)
    if backend.table_status(U) == Exists():
        backend.drop_table(U)
    assert lake.values(T) == [1]
    backend.undrop_table(U)
    assert lake.values(U) == [2]
    backend.drop_table(U)
    # Purges that were cut off are to be finished.
    backend.purge_tables()


# -- who and when ---------------------------------------------------------------------------------


def test_history_names_who_did_what_and_when(lake):
    """Contract: "Every change records who ... and when"."""
    lake.create(T, [1], backend=lake.open(author="ann"))
    lake.clock.advance(10)
    lake.create(T, [2], CreateMode.OVERWRITE, backend=lake.open(author="bob"))
    lake.clock.advance(10)
    lake.open(author="cid").drop_table(T)
    told = [(entry.action, entry.by, entry.at_ms) for entry in lake.open().table_history(T)]
    assert told == [
        ("write", "ann", NOON_MS),
        ("write", "bob", NOON_MS + 10),
        ("drop", "cid", NOON_MS + 20),
    ]


def test_every_commit_names_its_author(lake):
    """Contract: "Every change records who ... and when"."""
    acts = {
        "ann": lambda backend: backend.create_namespace(table_id("ann"), {}),
        "bob": lambda backend: backend.declare_table(T),
        "cid": lambda backend: backend.update_namespace(ROOT, {"a": "b"}),
        "dan": lambda backend: backend.drop_table(T),
    }
    for author, act in acts.items():
        act(lake.open(author=author))
        newest = lance.dataset(lake.store.location("__manifest"))
        properties = newest.read_transaction(newest.version).transaction_properties
        assert properties["mooring.by"] == author


# -- on S3 ----------------------------------------------------------------------------------------


def test_a_whole_life_in_a_bucket(nested_s3):
    """The same on an object store: no rename, no hard link, quoted keys."""
    lake = nested_s3
    lake.make("ns", "ns$a b%")
    table = table_id("ns", "a b%", "it's #1?")
    lake.create(table, [1])
    lake.create(table, [2], CreateMode.OVERWRITE)
    assert lake.values(table) == [2]
    assert lake.tables() == [str(table)]
    lake.backend.rename_table(table, T)
    lake.backend.register_table(U, _location(lake))
    lake.drop(T)
    lake.backend.purge_table(T)
    assert lake.values(U) == [2]
    lake.backend.drop_namespace(NS, cascade=True)
    assert lake.tables() == []
    assert lake.backend.undrop_namespace(NS) == 3
    assert lake.values(U) == [2]
    location = _location(lake, U)
    lake.drop(U)
    lake.backend.purge_table(U)
    assert lake.store.list_prefix(location) == []
    assert lake.directories() == set() or lake.kind.lists_emptied


def test_the_location_that_a_deregistration_answers_is_one_to_register(nested_s3):
    """It is a URI there, in which `$` is written otherwise."""
    lake = nested_s3
    lake.make("ns")
    lake.create(T, [1])
    answered = lake.backend.deregister_table(T).location
    lake.backend.register_table(T, answered)
    assert lake.values(T) == [1]
    assert lake.open().describe_table(T).location == answered
