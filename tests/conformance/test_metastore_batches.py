"""Several tables of a metastore that change together, or not at all.

Spec: lance-rest-openapi, BatchCreateTableVersions, BatchCommitTables.
"""

from __future__ import annotations

import lance_namespace as spec
import pyarrow as pa
import pytest

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
    MooringError,
    ProtectedError,
    ReadOnlyError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from mooring.namespace.table_operations import (
    CreateVersion,
    Declare,
    DeleteVersionRecords,
    Deregister,
)
from mooring.store.scripted import Crash, ScriptedStore
from mooring.tables.api import VersionRange
from mooring.tables.versions import manifest_name
from tests.conformance.content import fails_with, speak
from tests.conformance.meanwhile import Meanwhile
from tests.lakes import table_id

A, B, C = (table_id("ns", name) for name in "abc")
COMMIT = ("put_new", "txn/_commits")


@pytest.fixture
def pair(metastore):
    """Two tables of two versions each, on disk."""
    return _fill(metastore)


@pytest.fixture
def any_pair(any_metastore):
    """Two tables of two versions each, on any store."""
    return _fill(any_metastore)


def _fill(lake):
    lake.make("ns")
    for table in (A, B):
        lake.create(table, [1])
        lake.connect().table(table).insert(pa.table({"n": [2]}))
    return lake


def _directory(lake, table) -> str:
    location = lake.open().describe_table(table).location
    return location.removeprefix(lake.store.location("").rstrip("/") + "/")


def _stage(lake, table, version: int, name: str = "staged") -> str:
    """Write the first manifest again as Lance stages one: under a version's name and a suffix."""
    directory = f"{_directory(lake, table)}/_versions"
    path = f"{directory}/{manifest_name(version)}-{name}"
    lake.store.put(path, lake.store.get(f"{directory}/{manifest_name(1)}"))
    return path


def _version(lake, table, version: int, **more: object) -> CreateVersion:
    name = f"{version}-{len(more)}"
    return CreateVersion(table, version, _stage(lake, table, version, name), **more)


def _versions(lake, table) -> list[int]:
    return [one.version for one in lake.open().list_table_versions(table)]


def _files(lake) -> set[str]:
    """List all files of tables, and all that transactions wrote."""
    return {meta.path for meta in lake.store.list_prefix("")}


def _commits(lake) -> int:
    return len(lake.store.list_dir("txn/_commits").files)


# -- all of them ----------------------------------------------------------------------------------


def test_versions_of_two_tables_are_made_by_one_commit(any_pair):
    entries = [
        {"id": ["ns", name], "version": 3, "manifest_path": _stage(any_pair, table, 3)}
        for name, table in (("a", A), ("b", B))
    ]
    before = _commits(any_pair)
    made = speak(any_pair).batch_create_table_versions(
        spec.BatchCreateTableVersionsRequest(entries=entries)
    )
    assert [one.version for one in made.versions] == [3, 3]
    assert _commits(any_pair) == before + 1
    for table in (A, B):
        assert _versions(any_pair, table) == [3, 2, 1]
        names = any_pair.store.list_dir(f"{_directory(any_pair, table)}/_versions").files
        assert manifest_name(3) in names
        assert [name for name in names if ".manifest-" in name] == []
        assert any_pair.values(table) == [1]


def test_operations_of_all_kinds_are_done_by_one_commit(any_pair):
    operations = [
        {"declare_table": {"id": ["ns", "c"], "properties": {"owner": "ann"}}},
        {
            "create_table_version": {
                "id": ["ns", "a"],
                "version": 3,
                "manifest_path": _stage(any_pair, A, 3),
                "metadata": {"who": "me"},
            }
        },
        {
            "delete_table_versions": {
                "id": ["ns", "a"],
                "ranges": [{"start_version": 1, "end_version": 2}],
            }
        },
        {"deregister_table": {"id": ["ns", "b"]}},
    ]
    location, before = any_pair.open().describe_table(B).location, _commits(any_pair)
    done = (
        speak(any_pair)
        .batch_commit_tables(spec.BatchCommitTablesRequest(operations=operations))
        .results
    )
    assert _commits(any_pair) == before + 1
    assert done[0].declare_table.location == any_pair.open().describe_table(C).location
    assert done[1].create_table_version.version.version == 3
    assert done[2].delete_table_versions.deleted_count == 1
    assert done[3].deregister_table.location == location
    assert any_pair.tables() == ["ns$a", "ns$c"]
    assert _versions(any_pair, A) == [3, 2]
    assert any_pair.open().describe_table_version(A, 3).metadata == {"who": "me"}
    assert any_pair.open().describe_table(C).properties == {"owner": "ann"}


def test_two_versions_in_a_row_of_one_table_are_made_together(pair):
    operations = [_version(pair, A, 3), _version(pair, A, 4), _version(pair, B, 3)]
    made = pair.open().commit_tables(operations)
    assert [one.version for one in made] == [3, 4, 3]
    assert _versions(pair, A) == [4, 3, 2, 1]
    assert [pair.open().describe_table_version(A, one).version for one in (3, 4)] == [3, 4]
    pair.open().commit_tables([_version(pair, A, 5)])
    assert _versions(pair, A) == [5, 4, 3, 2, 1]


def test_versions_of_a_branch_and_of_main_are_made_together(pair):
    table = pair.connect().table(A)
    table.branches.create("dev")
    table.insert(pa.table({"n": [3]}), branch="dev")
    directory = f"{_directory(pair, A)}/tree/dev/_versions"
    body = pair.store.get(f"{directory}/{manifest_name(3)}")
    staged = f"{directory}/{manifest_name(4)}-staged"
    pair.store.put(staged, body)
    pair.open().commit_tables([_version(pair, A, 3), CreateVersion(A, 4, staged, "dev")])
    assert _versions(pair, A) == [3, 2, 1]
    newest = pair.open().list_table_versions(A, branch="dev", limit=1)
    assert [one.version for one in newest] == [4]


def test_a_table_is_written_and_then_forgotten(pair):
    location = pair.open().describe_table(A).location
    pair.open().commit_tables([_version(pair, A, 3), Deregister(A)])
    assert pair.tables() == ["ns$b"]
    pair.open().register_table(C, location)
    assert _versions(pair, C) == [3, 2, 1]


# -- none of them ---------------------------------------------------------------------------------


def _taken(lake):
    return _version(lake, B, 2)


def _protected(lake):
    lake.open().protect_table(B)
    return Deregister(B)


def _tagged(lake):
    lake.connect().table(B).tags.create("release", 1)
    return DeleteVersionRecords(B, [VersionRange(1, 2)])


REFUSED = {
    "a version that exists": (_taken, ConcurrentModificationError),
    "a gap": (lambda lake: _version(lake, B, 9), InvalidInputError),
    "no version": (lambda lake: _version(lake, B, 0), InvalidInputError),
    "an absent manifest": (
        lambda lake: CreateVersion(B, 3, f"_versions/{manifest_name(3)}-x"),
        InvalidInputError,
    ),
    "a manifest of another": (
        lambda lake: CreateVersion(B, 3, _stage(lake, A, 3, "other")),
        InvalidInputError,
    ),
    "an absent table": (lambda _: CreateVersion(C, 3, "_versions/x"), TableNotFoundError),
    "an absent table forgotten": (lambda _: Deregister(C), TableNotFoundError),
    "no records of an absent table": (
        lambda _: DeleteVersionRecords(C, [VersionRange(1, 2)]),
        TableNotFoundError,
    ),
    "the newest record alone": (
        lambda _: DeleteVersionRecords(B, [VersionRange(2, -1)]),
        InvalidTableStateError,
    ),
    "a tagged record": (_tagged, InvalidTableStateError),
    "a range that makes no sense": (
        lambda _: DeleteVersionRecords(B, [VersionRange(3, 1)]),
        InvalidInputError,
    ),
    "a table that exists": (lambda _: Declare(B), TableAlreadyExistsError),
    "a location": (lambda _: Declare(C, "x"), InvalidInputError),
    "a root table": (lambda _: Declare(table_id("c")), InvalidInputError),
    "a protected table": (_protected, ProtectedError),
}


@pytest.mark.parametrize("case", REFUSED)
def test_where_one_is_refused_nothing_changes_and_nothing_is_left(pair, case):
    """Wherever in the batch it is."""
    prepare, error = REFUSED[case]
    refused = prepare(pair)
    before = _files(pair)
    backend = pair.open()
    for place in (0, 2):
        operations = [_version(pair, A, 3), Declare(table_id("ns", "new"))]
        operations.insert(place, refused)
        with pytest.raises(error):
            backend.commit_tables(operations)
        # A manifest that was not even looked at is its writer's to stage again or delete.
        left = {path for path in _files(pair) - before if ".manifest-" not in path}
        assert left == set()
    assert pair.tables() == ["ns$a", "ns$b"]
    assert _versions(pair, A) == [2, 1]
    assert pair.connect().table(A).insert(pa.table({"n": [3]})).version == 3


def test_one_table_twice_is_refused_where_both_cannot_be(pair):
    commit = pair.open().commit_tables
    with pytest.raises(ConcurrentModificationError):
        commit([_version(pair, A, 3), _version(pair, A, 3, branch="main")])
    with pytest.raises(TableAlreadyExistsError):
        commit([Declare(C), Declare(C)])
    with pytest.raises(TableNotFoundError):
        commit([Deregister(A), _version(pair, A, 3)])
    with pytest.raises(TableNotFoundError):
        commit([Deregister(A), Deregister(A)])
    with pytest.raises(TableNotFoundError):  # where it will lie is not known before
        commit([Declare(C), CreateVersion(C, 1, "_versions/x")])
    assert pair.tables() == ["ns$a", "ns$b"]
    assert _versions(pair, A) == [2, 1]


def test_an_empty_batch_and_one_of_a_reader_are_refused(pair):
    for ask in (
        lambda: speak(pair).batch_commit_tables(spec.BatchCommitTablesRequest(operations=[])),
        lambda: speak(pair).batch_create_table_versions(
            spec.BatchCreateTableVersionsRequest(entries=[])
        ),
    ):
        with fails_with(13):
            ask()
    with pytest.raises(ReadOnlyError):
        pair.open(read_only=True).commit_tables([Declare(C), Deregister(A)])


# -- meanwhile ------------------------------------------------------------------------------------

RIVALS = {
    "drops one": lambda lake: lake.open(author="rival").drop_table(B),
    "renames one": lambda lake: lake.open(author="rival").rename_table(B, C),
    "writes one": lambda lake: lake.connect().table(B).insert(pa.table({"n": [7]})),
    "drops all": lambda lake: lake.open().drop_namespace(table_id("ns"), cascade=True),
}


@pytest.mark.parametrize("rival", RIVALS)
def test_where_somebody_else_comes_first_nothing_of_a_batch_is_done(pair, rival):
    operations = [_version(pair, A, 3), _version(pair, B, 3)]
    directory = _directory(pair, A)
    before = {path for path in _files(pair) if path.startswith(directory)}
    script = Meanwhile(lambda: RIVALS[rival](pair), *COMMIT)
    backend = pair.open(store=ScriptedStore(pair.store, script))
    with pytest.raises((ConcurrentModificationError, TableNotFoundError)):
        backend.commit_tables(operations)
    assert script.done
    assert not isinstance(script.outcome, MooringError)
    after = {path for path in _files(pair) if path.startswith(directory)}
    assert {path for path in after - before if ".manifest-" not in path} == set()
    if rival == "drops all":
        pair.open().undrop_namespace(table_id("ns"))
    assert _versions(pair, A) == [2, 1]


def test_somebody_elses_write_to_another_table_is_in_nobodys_way(pair):
    pair.create(C, [1])
    script = Meanwhile(lambda: pair.connect().table(C).insert(pa.table({"n": [7]})), *COMMIT)
    backend = pair.open(store=ScriptedStore(pair.store, script))
    backend.commit_tables([_version(pair, A, 3), _version(pair, B, 3)])
    assert script.done
    assert [_versions(pair, one)[0] for one in (A, B, C)] == [3, 3, 2]


class _FailToName:
    """Fail as long as a version gets its final name."""

    def __init__(self, version: int) -> None:
        self._name = f"/_versions/{manifest_name(version)}"

    def before(self, call):
        if call.verb == "put_new" and call.path.endswith(self._name):
            msg = "the store is busy"
            raise ServiceUnavailableError(msg)

    def after(self, call, result):
        pass


def test_no_version_of_a_batch_gets_its_name_before_those_that_precede_it(pair):
    """Whoever completes them goes back to the newest that has its name, and no further."""
    operations = [_version(pair, A, 3), _version(pair, A, 4)]
    names = [f"{_directory(pair, A)}/_versions/{manifest_name(number)}" for number in (3, 4)]
    backend = pair.open(store=ScriptedStore(pair.store, _FailToName(3)))
    assert [one.version for one in backend.commit_tables(operations)] == [3, 4]
    assert _files(pair).isdisjoint(names)
    pair.open().commit_tables([_version(pair, A, 5)])
    assert set(names) <= _files(pair)


class _DieAfterTheCommit:
    """Die when the batch is decided, before any manifest gets its final name."""

    def __init__(self) -> None:
        self.dead = False

    def before(self, call):
        if self.dead:
            raise Crash

    def after(self, call, result):
        self.dead = self.dead or (call.verb == "put_new" and "/_commits/" in call.path)


def test_what_a_dead_writer_committed_is_there_and_finished_by_the_next(pair):
    operations = [_version(pair, A, 3), _version(pair, A, 4), _version(pair, B, 3)]
    script = _DieAfterTheCommit()
    with pytest.raises(Crash):
        pair.open(store=ScriptedStore(pair.store, script)).commit_tables(operations)
    assert (_versions(pair, A), _versions(pair, B)) == ([4, 3, 2, 1], [3, 2, 1])
    for table, version in ((A, 4), (A, 3), (B, 3)):
        found = pair.open().describe_table_version(table, version)
        assert pair.store.get(found.manifest_path.partition("/lake/")[2]) is not None
    pair.open().commit_tables([_version(pair, A, 5), _version(pair, B, 4)])
    for table in (A, B):
        names = set(pair.store.list_dir(f"{_directory(pair, table)}/_versions").files)
        assert {manifest_name(one) for one in _versions(pair, table)} <= names
