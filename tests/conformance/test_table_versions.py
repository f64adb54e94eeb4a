"""Versions as records of the catalog, and Lance committing through it.

Spec: objects-and-relationships, "Table Version" and "External Manifest Store".
"""

from __future__ import annotations

import json
import pickle

import lance
import lance_namespace as spec
import pyarrow as pa
import pytest

import mooring
from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
    ReadOnlyError,
    TableBranchNotFoundError,
    TableNotFoundError,
    TableVersionNotFoundError,
    UnknownOutcomeError,
)
from mooring.store import open_store
from mooring.store.scripted import ScriptedStore
from mooring.tables.api import VersionRange
from mooring.tables.versions import manifest_name
from tests.lakes import rows, table_id

T = table_id("t")


@pytest.fixture
def filled(any_lake):
    """A table of five versions."""
    return _fill(any_lake)


@pytest.fixture
def filled_directory(any_directory):
    """A table of five versions, in a catalog whose versions are files."""
    return _fill(any_directory)


def _fill(lake):
    lake.create("t", [1])
    table = lake.connect().table(lake.id("t"))
    for value in range(2, 6):
        table.insert(pa.table({"n": [value]}))
    return lake


def _namespace(lake, **more: str):
    return spec.connect(lake.kind.namespace, {**lake.properties, **more})


def _managed(lake):
    return _namespace(lake, **lake.managed)


def _versions(lake, **asked) -> list[int]:
    asked = spec.ListTableVersionsRequest(id=lake.path("t"), **asked)
    return [one.version for one in _namespace(lake).list_table_versions(asked).versions]


def _directory(lake, name: str = "t") -> str:
    """Return where a table's versions lie, as the lake's store names it."""
    location = lake.open().describe_table(lake.id(name)).location
    return f"{location.removeprefix(lake.store.location('').rstrip('/') + '/')}/_versions"


def _stage(lake, version: int, name: str = "other", like: int = 1) -> str:
    """Write a manifest as Lance stages it: under a version's name and a suffix."""
    directory = _directory(lake)
    body = lake.store.get(f"{directory}/{manifest_name(like)}")
    path = f"{directory}/{manifest_name(version)}-{name}"
    lake.store.put(path, body + name.encode())
    return path


def _staged(lake) -> list[str]:
    names = lake.store.list_dir(_directory(lake)).files
    return [name for name in names if ".manifest-" in name]


# -- list and describe ----------------------------------------------------------------------------


def test_versions_are_listed_from_the_latest_to_the_oldest(filled):
    assert _versions(filled) == [5, 4, 3, 2, 1]
    assert _versions(filled, descending=False) == [1, 2, 3, 4, 5]
    assert _versions(filled, limit=1) == [5]
    assert [one.version for one in filled.connect().table(filled.id("t")).versions(2)] == [5, 4]


def test_pages_of_versions_go_both_ways(filled):
    namespace = _namespace(filled)
    for descending in (True, False):
        found, token = [], None
        while True:
            asked = spec.ListTableVersionsRequest(
                id=filled.path("t"), limit=2, page_token=token, descending=descending
            )
            page = namespace.list_table_versions(asked)
            found += [one.version for one in page.versions]
            token = page.page_token
            if token is None:
                break
        assert found == ([5, 4, 3, 2, 1] if descending else [1, 2, 3, 4, 5])


def test_version_tells_its_properties(filled):
    """Spec: "Version Properties"."""
    namespace = _namespace(filled)
    asked = spec.DescribeTableVersionRequest(id=filled.path("t"), version=3)
    version = namespace.describe_table_version(asked).version
    directory = _directory(filled)
    meta = filled.store.head(f"{directory}/{manifest_name(3)}")
    assert version.version == 3
    assert version.manifest_path.endswith(f"{directory}/{manifest_name(3)}")
    assert "://" not in version.manifest_path
    assert version.manifest_size == meta.size_bytes
    if filled.kind.metastore:  # the record was written before the file that it tells of
        assert version.e_tag is None
        times = [one.at_ms for one in filled.open().list_table_versions(filled.id("t"))]
        assert version.timestamp_millis == times[2]
        assert times[:-1] == sorted(times[:-1], reverse=True)
    else:
        assert version.e_tag == meta.tag.etag
        assert version.timestamp_millis == meta.modified_ms
    newest = namespace.describe_table_version(spec.DescribeTableVersionRequest(id=filled.path("t")))
    assert newest.version.version == 5


def test_absent_version_table_and_branch_are_told_apart(filled):
    backend = filled.open()
    with pytest.raises(TableVersionNotFoundError, match="no version 9"):
        backend.describe_table_version(filled.id("t"), 9)
    with pytest.raises(TableVersionNotFoundError):
        backend.describe_table_version(filled.id("t"), 0)
    with pytest.raises(TableNotFoundError):
        backend.list_table_versions(filled.id("absent"))
    with pytest.raises(TableBranchNotFoundError, match="no branch 'dev'"):
        backend.list_table_versions(filled.id("t"), branch="dev")
    with pytest.raises(spec.errors.TableVersionNotFoundError):
        _namespace(filled).table_exists(spec.TableExistsRequest(id=filled.path("t"), version=9))


def test_declared_table_has_no_versions(any_lake):
    backend = any_lake.open()
    backend.declare_table(any_lake.id("t"))
    assert backend.list_table_versions(any_lake.id("t")) == []
    with pytest.raises(spec.errors.TableVersionNotFoundError, match="only declared"):
        _namespace(any_lake).describe_table_version(
            spec.DescribeTableVersionRequest(id=any_lake.path("t"))
        )


def test_names_that_count_up_are_read_and_written(filled):
    """Tables of older releases name versions by their plain numbers."""
    directory, backend = _directory(filled), filled.open()
    if filled.kind.metastore:  # takes in a table as it lies when it is registered
        backend.deregister_table(filled.id("t"))
    for version in range(1, 6):
        body = filled.store.get(f"{directory}/{manifest_name(version)}")
        name = manifest_name(version, counting_down=False)
        filled.store.put(f"{directory}/{name}", body)
        filled.store.delete([f"{directory}/{manifest_name(version)}"])
    if filled.kind.metastore:
        backend.register_table(filled.id("t"), directory.rpartition("/")[0])
    assert [one.version for one in backend.list_table_versions(filled.id("t"))] == [5, 4, 3, 2, 1]
    assert [one.version for one in backend.list_table_versions(filled.id("t"), limit=1)] == [5]
    assert backend.describe_table_version(filled.id("t"), 2).manifest_path.endswith("/2.manifest")
    done = filled.connect().table(filled.id("t")).insert(pa.table({"n": [6]}))
    assert done.version == 6
    assert backend.describe_table_version(filled.id("t"), 6).manifest_path.endswith("/6.manifest")


# -- create ---------------------------------------------------------------------------------------


def test_version_is_created_from_a_manifest_once(filled):
    """Spec: "CreateTableVersion fails with 409 Conflict if the version already exists"."""
    namespace = _namespace(filled)
    first, second = _stage(filled, 6, "one"), _stage(filled, 6, "two")
    ask = spec.CreateTableVersionRequest
    made = namespace.create_table_version(
        ask(id=filled.path("t"), version=6, manifest_path=first)
    ).version
    assert made.version == 6
    assert filled.store.get(f"{_directory(filled)}/{manifest_name(6)}").endswith(b"one")
    with pytest.raises(spec.errors.ConcurrentModificationError) as refused:
        namespace.create_table_version(ask(id=filled.path("t"), version=6, manifest_path=second))
    assert refused.value.code == 14
    with pytest.raises(spec.errors.ConcurrentModificationError):
        namespace.create_table_version(ask(id=filled.path("t"), version=6, manifest_path=first))
    assert _staged(filled) == []


def test_metadata_stays_with_the_version_of_its_writer(filled):
    backend = filled.open()
    won, lost = _stage(filled, 6, "won"), _stage(filled, 6, "lost")
    made = backend.create_table_version(filled.id("t"), 6, won, metadata={"who": "won"})
    assert made.metadata == {"who": "won"}
    with pytest.raises(ConcurrentModificationError):
        backend.create_table_version(filled.id("t"), 6, lost, metadata={"who": "lost"})
    assert backend.describe_table_version(filled.id("t"), 6).metadata == {"who": "won"}
    assert backend.list_table_versions(filled.id("t"), limit=1)[0].metadata == {"who": "won"}
    assert backend.describe_table_version(filled.id("t"), 5).metadata == {}
    assert sorted(filled.values("t", 5)) == [1, 2, 3, 4, 5]  # Lance minds no file beside


def test_numbers_have_no_gap_and_never_come_back(filled):
    backend = filled.open()
    with pytest.raises(InvalidInputError, match="after 5 comes 6, not 8"):
        backend.create_table_version(filled.id("t"), 8, _stage(filled, 8))
    with pytest.raises(InvalidInputError, match="begin with 1"):
        backend.create_table_version(filled.id("t"), 0, _stage(filled, 8))
    backend.delete_table_versions(filled.id("t"), [VersionRange(1, 4)])
    with pytest.raises(ConcurrentModificationError):
        backend.create_table_version(filled.id("t"), 2, _stage(filled, 2, like=5))


@pytest.mark.parametrize(
    "path",
    ["", "x", "/etc/passwd", "other.lance/_versions/a", "../t.lance/_versions/a", "_versions/../a"],
)
def test_manifest_of_anything_else_is_refused(plain_lake, path):
    plain_lake.create("t", [1])
    with pytest.raises(InvalidInputError):
        plain_lake.backend.create_table_version(T, 2, path)


def test_version_is_no_manifest_to_make_another_of(filled):
    path = f"{_directory(filled)}/{manifest_name(5)}"
    with pytest.raises(InvalidInputError, match="is a version already"):
        filled.open().create_table_version(filled.id("t"), 6, path)
    assert _versions(filled) == [5, 4, 3, 2, 1]


def test_what_a_crashed_writer_staged_goes_with_the_next_commit(filled):
    """A version whose manifest was written but not registered is not a version."""
    _stage(filled, 6, "crashed")
    _stage(filled, 4, "crashed-long-ago")
    assert _versions(filled) == [5, 4, 3, 2, 1]
    # A metastore need not list files to commit, and does it now and then.
    last = 16 if filled.kind.metastore else 6
    table = filled.connect().table(filled.id("t"))
    for value in range(6, last + 1):
        table.insert(pa.table({"n": [value]}))
    assert _versions(filled, limit=1) == [last]
    assert _staged(filled) == []


def test_what_a_writer_is_still_writing_stays_until_it_is_late(plain_lake):
    """Lance on disk takes it for a failure, and not for a lost race, if that file goes."""
    plain_lake.create("t", [1])
    table = plain_lake.connect().table("t")
    _stage(plain_lake, 2, "slow#1")
    for value in range(2, 18):
        assert len(_staged(plain_lake)) == 1
        table.insert(pa.table({"n": [value]}))
    table.insert(pa.table({"n": [18]}))
    assert _staged(plain_lake) == []


def test_read_only_catalog_makes_no_version(filled):
    staged = _stage(filled, 6)
    with pytest.raises(ReadOnlyError):
        filled.open(read_only=True).create_table_version(filled.id("t"), 6, staged)
    with pytest.raises(ReadOnlyError):
        filled.connect(read_only=True).table(filled.id("t")).insert(pa.table({"n": [6]}))


def test_dropped_table_takes_no_version(filled):
    staged = _stage(filled, 6)
    filled.drop("t")
    with pytest.raises(TableNotFoundError):
        filled.open().create_table_version(filled.id("t"), 6, staged)


class _DropMeanwhile:
    """Drops the table right after its next version was put."""

    def __init__(self, lake) -> None:
        self._lake = lake
        self.done = False

    def before(self, call) -> None:
        """Look at nothing."""

    def after(self, call, result) -> None:
        if call.verb == "put_new" and call.path.endswith(manifest_name(6)) and not self.done:
            self.done = True
            self._lake.open(author="other").drop_table(self._lake.id("t"))


def test_write_that_ends_after_a_drop_is_not_acknowledged(filled):
    """Where the put that decides comes before a drop that the writer cannot see.

    A metastore decides both by one chain, and the file comes after: this write was before the drop.
    """
    staged = _stage(filled, 6)
    if filled.kind.metastore:
        script = _DropMeanwhile(filled)
        store = ScriptedStore(open_store(filled.uri, filled.options), script)
        filled.open(store=store).create_table_version(filled.id("t"), 6, staged)
        assert script.done
        assert filled.trash() == ["main$t"]
        filled.open().undrop_table(filled.id("t"))
        assert _versions(filled) == [6, 5, 4, 3, 2, 1]
        return
    store = ScriptedStore(open_store(filled.uri, filled.options), _DropMeanwhile(filled))
    with pytest.raises(TableNotFoundError, match="look before writing again"):
        filled.open(store=store).create_table_version(filled.id("t"), 6, staged)


class _NeverAnswers:
    """Loses the answers of all puts of the object that decides."""

    def __init__(self, *, metastore: bool) -> None:
        self._decides = "/_commits/" if metastore else manifest_name(6)
        self._lost: set[str] = set()

    def before(self, call) -> None:
        """Look at nothing."""

    def after(self, call, result) -> None:
        if self._decides in call.path and call.verb == "put_new":
            self._lost.add(call.path)
        if call.path in self._lost and call.verb in {"put_new", "get"}:
            raise UnknownOutcomeError(call.path)


def test_commit_of_unknown_outcome_is_not_repeated(filled, monkeypatch):
    """Lance asks for the version then, and would write the rows again if it were told of it."""
    monkeypatch.setattr("mooring.store.numbered.pause", lambda _: None)
    script = _NeverAnswers(metastore=filled.kind.metastore)
    store = ScriptedStore(open_store(filled.uri, filled.options), script)
    backend = filled.open(store=store)
    table = mooring.Table(backend, backend.describe_table(filled.id("t")))
    with pytest.raises(UnknownOutcomeError):
        table.insert(pa.table({"n": [6]}))
    assert sorted(filled.values("t")) == [1, 2, 3, 4, 5, 6]


# -- delete ---------------------------------------------------------------------------------------


def _delete(lake, *ranges: tuple[int, int]) -> int:
    wanted = [{"start_version": start, "end_version": end} for start, end in ranges]
    asked = spec.BatchDeleteTableVersionsRequest(id=lake.path("t"), ranges=wanted)
    return _namespace(lake).batch_delete_table_versions(asked).deleted_count


def test_records_are_deleted_by_ranges_and_data_stays(filled):
    """Spec: "Version Cleanup": the start is inclusive, the end exclusive."""
    directory = _directory(filled).rpartition("/")[0]
    before = {meta.path for meta in filled.store.list_prefix(directory)}
    assert _delete(filled, (1, 3), (4, 5)) == 3
    assert _versions(filled) == [5, 3]
    assert _delete(filled, (1, 3)) == 0
    after = {meta.path for meta in filled.store.list_prefix(directory)}
    # A metastore keeps a copy of each manifest until some more versions are made.
    manifests = {f"{directory}/_versions", *([f"{directory}/_manifests"] * filled.kind.metastore)}
    gone = {path.removeprefix(f"{directory}/").partition("/")[0] for path in before - after}
    assert {f"{directory}/{name}" for name in gone} == manifests
    assert sorted(filled.values("t")) == [1, 2, 3, 4, 5]


def test_all_records_are_deleted_by_the_special_range(filled):
    """Spec: "`start_version: 0` with `end_version: -1` means delete ALL version records"."""
    assert _delete(filled, (0, -1)) == 5
    assert _versions(filled) == []
    files = filled.store.list_prefix(_directory(filled).rpartition("/")[0])
    assert any("/data/" in meta.path for meta in files)


def test_newest_record_does_not_go_alone(filled):
    with pytest.raises(spec.errors.InvalidTableStateError, match="version 5 is the newest"):
        _delete(filled, (4, -1))
    assert _versions(filled) == [5, 4, 3, 2, 1]


def test_tagged_record_does_not_go(filled):
    filled.dataset("t").tags.create("release", 2)
    with pytest.raises(InvalidTableStateError, match="tag 'release' names version 2"):
        filled.open().delete_table_versions(filled.id("t"), [VersionRange(1, 4)])
    assert _versions(filled) == [5, 4, 3, 2, 1]


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (1, -2), (3, 1)])
def test_range_that_makes_no_sense_is_refused(plain_lake, start, end):
    plain_lake.create("t", [1])
    with pytest.raises(InvalidInputError, match="makes no sense"):
        plain_lake.backend.delete_table_versions(T, [VersionRange(start, end)])


# -- several together -----------------------------------------------------------------------------


def test_batch_of_one_is_created_and_of_several_refused_with_the_reason(filled_directory):
    namespace = _namespace(filled_directory)
    entry = {
        "id": filled_directory.path("t"),
        "version": 6,
        "manifest_path": _stage(filled_directory, 6),
    }
    ask = spec.BatchCreateTableVersionsRequest
    (made,) = namespace.batch_create_table_versions(ask(entries=[entry])).versions
    assert made.version == 6
    with pytest.raises(spec.errors.UnsupportedOperationError, match="one by one") as refused:
        namespace.batch_create_table_versions(ask(entries=[entry, entry]))
    assert refused.value.code == 0
    with pytest.raises(spec.errors.InvalidInputError):
        namespace.batch_create_table_versions(ask(entries=[]))


def test_batch_commit_of_one_is_done_and_of_several_refused(filled_directory):
    namespace = _namespace(filled_directory)
    declare = {"declare_table": {"id": filled_directory.path("new")}}
    ask = spec.BatchCommitTablesRequest
    with pytest.raises(spec.errors.UnsupportedOperationError, match="one table at a time"):
        namespace.batch_commit_tables(ask(operations=[declare, declare]))
    assert "new" not in filled_directory.names()
    result = namespace.batch_commit_tables(ask(operations=[declare])).results[0]
    assert result.declare_table.location
    assert "new" in filled_directory.names()
    gone = namespace.batch_commit_tables(
        ask(
            operations=[
                {
                    "delete_table_versions": {
                        "id": filled_directory.path("t"),
                        "ranges": [{"start_version": 1, "end_version": 2}],
                    }
                }
            ]
        )
    ).results[0]
    assert gone.delete_table_versions.deleted_count == 1


# -- Lance commits through the catalog ------------------------------------------------------------


def test_lance_is_told_to_commit_through_the_catalog_where_it_is_asked_for(any_lake):
    any_lake.create("t")
    ask = spec.DescribeTableRequest(id=any_lake.path("t"))
    always = True if any_lake.kind.metastore else None
    assert _namespace(any_lake).describe_table(ask).managed_versioning is always
    assert _managed(any_lake).describe_table(ask).managed_versioning is True
    declared = _managed(any_lake).declare_table(spec.DeclareTableRequest(id=any_lake.path("d")))
    assert declared.managed_versioning is True


def test_setting_of_the_catalog_counts_for_whoever_opens_it(any_directory):
    any_directory.create("t")
    any_directory.open().initialize(managed_versioning=True)
    ask = spec.DescribeTableRequest(id=any_directory.path("t"))
    assert _namespace(any_directory).describe_table(ask).managed_versioning is True
    any_directory.open().initialize(managed_versioning=False)
    assert _namespace(any_directory).describe_table(ask).managed_versioning is None


class _Watched:
    """A namespace that writes down which versions were made through it."""

    def __init__(self, namespace) -> None:
        self._namespace = namespace
        self.made: list[tuple[str | None, int]] = []

    def __getattr__(self, name: str):
        return getattr(self._namespace, name)

    def create_table_version(self, request):
        response = self._namespace.create_table_version(request)
        self.made.append((request.get("branch"), request["version"]))
        return response


def test_every_kind_of_commit_of_lance_goes_through_the_catalog(any_lake):
    namespace = _Watched(_managed(any_lake))
    named = {"namespace_client": namespace, "table_id": any_lake.path("t")}
    lance.write_dataset(rows([1, 2]), **named, mode="create")
    lance.write_dataset(rows([3]), **named, mode="append")
    dataset = lance.dataset(**named)
    dataset.delete("n = 1")
    dataset.update({"n": "n + 10"}, where="n = 2")
    dataset.merge_insert("n").when_not_matched_insert_all().execute(rows([3, 4]))
    dataset.add_columns({"m": "n * 2"})
    dataset.create_scalar_index("n", "BTREE")
    dataset.optimize.compact_files()
    branch = dataset.create_branch("dev")
    branch.insert(pa.table({"n": [5], "m": [10]}))
    newest = _versions(any_lake, limit=1)[0]
    main = [version for name, version in namespace.made if name is None]
    assert main == list(range(1, newest + 1))
    assert [name for name, _ in namespace.made if name] == ["dev", "dev"]
    assert sorted(any_lake.values("t")) == [3, 4, 12]
    assert _staged(any_lake) == []
    backend = any_lake.open()
    assert len(backend.list_table_versions(any_lake.id("t"), branch="dev")) == 2
    assert sorted(
        lance.dataset(**named).checkout_version(("dev", None)).to_table()["n"].to_pylist()
    ) == [3, 4, 5, 12]


def test_table_that_is_opened_through_the_catalog_commits_through_it(any_lake, monkeypatch):
    any_lake.create("t", [1])
    made = []
    catalog = any_lake.connect(managed_versioning=True)
    create = catalog.backend.create_table_version

    def watched(table, version, path, **more):
        made.append(version)
        return create(table, version, path, **more)

    monkeypatch.setattr(catalog.backend, "create_table_version", watched)
    catalog.table(any_lake.id("t")).to_lance().insert(pa.table({"n": [2]}))
    assert made == [2]


def test_writers_that_know_of_the_catalog_and_those_that_do_not_meet(any_lake):
    """All of them decide by the same file."""
    any_lake.create("t", [1])
    managed = lance.dataset(namespace_client=_managed(any_lake), table_id=any_lake.path("t"))
    other = any_lake.dataset("t")
    for value in range(2, 6):
        (managed if value % 2 else other).insert(pa.table({"n": [value]}))
    assert sorted(any_lake.values("t")) == [1, 2, 3, 4, 5]
    assert _versions(any_lake) == [5, 4, 3, 2, 1]


def test_namespace_with_managed_versions_pickles(any_lake):
    any_lake.create("t", [1])
    copy = pickle.loads(pickle.dumps(_managed(any_lake)))  # noqa: S301
    lance.dataset(namespace_client=copy, table_id=any_lake.path("t")).insert(pa.table({"n": [2]}))
    assert sorted(any_lake.values("t")) == [1, 2]


def test_answers_can_be_read_as_json(filled):
    response = _namespace(filled).list_table_versions(
        spec.ListTableVersionsRequest(id=filled.path("t"))
    )
    assert [one["version"] for one in json.loads(response.to_json())["versions"]] == [5, 4, 3, 2, 1]


def test_metadata_of_versions_that_lance_cleaned_up_goes_with_the_next_commit(any_directory):
    any_directory.create("t", [1])
    table = any_directory.connect().table(any_directory.id("t"))
    table.insert(pa.table({"n": [2]}))
    manifest = f"{_directory(any_directory)}/{manifest_name(2)}"
    any_directory.store.put(f"{manifest}.{'a' * 64}.json", b'{"who":"me"}')
    table.insert(pa.table({"n": [3]}))
    assert len(any_directory.store.list_dir(_directory(any_directory)).files) > 3
    any_directory.store.delete([manifest])
    table.insert(pa.table({"n": [4]}))
    names = any_directory.store.list_dir(_directory(any_directory)).files
    assert [name for name in names if ".manifest." in name] == []
