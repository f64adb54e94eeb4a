"""From a directory of tables to a manifest that names them, and what is true afterwards.

Spec: directory-namespace, "Migration from V1 to V2".
"""

from __future__ import annotations

import threading
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import lance
import lance.namespace
import lance_namespace as spec
import pytest

from mooring.directory.decisions import State
from mooring.directory.entries import RenameIntent, with_intent
from mooring.directory.layout import decision_path
from mooring.directory.manifest import MANIFEST_DIR
from mooring.directory.migration import Migration, Reason
from mooring.errors import ProtectedError, ReadOnlyError, TableNotFoundError
from mooring.identifiers import ROOT, ObjectId
from mooring.store import open_store
from mooring.store.scripted import ScriptedStore
from mooring.tables.manifest import NAMESPACE, TABLE, ManifestRow
from tests.lakes import COMPAT_DISK, COMPAT_MOTO, Lake, rows, table_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.directory.migration import MigrationReport
    from mooring.directory.migration_report import Skipped

# It makes the manifest, without rows.
FIRST_VERSION = f"{MANIFEST_DIR}/_versions/{2**64 - 2}.manifest"
DECOMPOSED = unicodedata.normalize("NFD", "fjörd")


@dataclass(frozen=True)
class Place:
    """One place, opened by programs of the three modes."""

    v1: Lake
    compat: Lake
    v2: Lake

    @classmethod
    def of(cls, lake: Lake) -> Place:
        def opened(**flags: bool) -> Lake:
            return Lake(replace(lake.kind, **flags), lake.uri, lake.options, lake.clock)

        return cls(opened(manifest=False), lake, opened(listing=False))

    def create(self, *names: str) -> None:
        """Make tables as a program does that knows no manifest; their content is their length."""
        for name in names:
            self.v1.create(name, [len(name)])

    def migration(self, **options: int) -> Migration:
        """Prepare a migration in a process of its own."""
        return Migration(self.compat.open(), **options)

    def migrate(self) -> MigrationReport:
        """Run a migration."""
        return self.migration().run()

    def rows(self) -> list[tuple[str, str | None]]:
        """Read the live tables of the root from the manifest, past the catalog."""
        found = lance.dataset(
            self.v2.store.location(MANIFEST_DIR), storage_options=self.v2.options or None
        ).to_table(["object_id", "location"])
        pairs = zip(found["object_id"].to_pylist(), found["location"].to_pylist(), strict=True)
        return sorted(pair for pair in pairs if "$" not in pair[0])

    def put_row(self, object_id: str, kind: str, location: str | None) -> None:
        """Put a row without a look at directories, as other programs do."""
        row = ManifestRow(object_id, kind, location)
        self.compat.open().manifest.change(lambda draft: draft.put(row))

    def files(self) -> set[str]:
        """List all files, the manifest's and the settings' left out."""
        metas = self.v1.store.list_prefix("")
        return {meta.path for meta in metas if not meta.path.startswith(("__manifest", "_mooring"))}


@pytest.fixture(
    params=[
        pytest.param(COMPAT_DISK, id="disk"),
        pytest.param(COMPAT_MOTO, id="moto", marks=pytest.mark.s3),
    ]
)
def place(request, clock) -> Place:
    kind = request.param
    if kind.server is None:
        uri, options = str(request.getfixturevalue("tmp_path") / "lake"), {}
    else:
        server = request.getfixturevalue(kind.server)
        uri, options = server.uri(request.getfixturevalue("prefix")), server.options
    return Place.of(Lake(kind, uri, options, clock))


@pytest.fixture
def disk(tmp_path, clock) -> Place:
    return Place.of(Lake(COMPAT_DISK, str(tmp_path / "lake"), {}, clock))


def own(*names: str) -> list[tuple[str, str]]:
    """Return the rows of tables that lie where their names say."""
    return sorted((name, f"{name}.lance") for name in names)


def reasons(report: MigrationReport) -> dict[str, Reason]:
    return {found.name: found.reason for found in report.skipped}


def skipped(report: MigrationReport) -> Skipped:
    (found,) = report.skipped
    return found


def pylance(place: Place, **flags: str):
    storage = {f"storage.{key}": value for key, value in place.v1.options.items()}
    return lance.namespace.DirectoryNamespace(root=place.v1.uri, **storage, **flags)


def names_of(namespace) -> list[str]:
    return sorted(namespace.list_tables(spec.ListTablesRequest(id=[])).tables)


# -- what is added --------------------------------------------------------------------------------


def test_every_live_table_gets_a_row_and_no_file_moves(place):
    place.create("a", "bb", "it's", "表")
    before = place.files()
    report = place.migrate()
    assert report.added == ("a", "bb", "it's", "表")
    assert report.is_complete
    assert place.rows() == own("a", "bb", "it's", "表")
    assert place.files() == before


def test_tables_of_other_programs_are_migrated_too(place):
    place.v1.write_elsewhere("theirs", [7])
    assert place.migrate().added == ("theirs",)
    assert place.v2.values("theirs") == [7]


def test_declared_tables_stay_declared(place):
    place.v1.backend.declare_table(table_id("soon"))
    assert place.migrate().added == ("soon",)
    assert place.v2.backend.describe_table(table_id("soon"), check_declared=True).is_only_declared


def test_a_run_that_has_nothing_to_do_writes_nothing(place):
    place.create("a", "b")
    place.migrate()
    before = {meta.path: meta.mark for meta in place.v1.store.list_prefix("")}
    report = place.migrate()
    assert (report.added, report.already) == ((), ("a", "b"))
    assert {meta.path: meta.mark for meta in place.v1.store.list_prefix("")} == before


def test_tables_made_in_compatibility_mode_are_there_already(place):
    place.create("old")
    place.compat.create("new")
    report = place.migrate()
    assert (report.added, report.already) == (("old",), ("new",))
    assert place.rows() == own("old", "new")


def test_an_empty_directory_needs_no_manifest(place):
    report = place.migrate()
    assert report.is_complete
    assert place.v1.store.list_prefix("") == []


def test_a_dry_run_changes_nothing(place):
    place.v1.write_elsewhere("theirs")
    before = {meta.path: meta.mark for meta in place.v1.store.list_prefix("")}
    report = place.migration().plan()
    assert (report.missing, report.added) == (("theirs",), ())
    assert not report.is_complete
    assert "run the migration" in report.advice
    assert {meta.path: meta.mark for meta in place.v1.store.list_prefix("")} == before


def test_a_dry_run_needs_no_permission_to_write(disk):
    disk.create("a")
    migration = Migration(disk.compat.open(read_only=True))
    assert migration.plan().missing == ("a",)
    with pytest.raises(ReadOnlyError):
        migration.run()
    assert MANIFEST_DIR not in disk.v1.store.list_dir("").directories


def test_progress_is_told_after_each_commit(disk):
    disk.create("a", "b", "c", "d", "e")
    told: list[tuple[int, int]] = []
    disk.migration(batch_rows=2).run(lambda done, total: told.append((done, total)))
    assert told == [(2, 5), (4, 5), (5, 5)]


def test_the_root_is_listed_once_a_look(disk):
    """CONTRIBUTING: "One listing answers one question"."""
    disk.create(*(f"t{number:02}" for number in range(10)))
    # The first change of all is planned twice: one that is refused makes no manifest.
    disk.compat.open().create_namespace(ObjectId.of(["ns"]), {})
    calls: list[tuple[str, str]] = []
    store = ScriptedStore(open_store(disk.compat.uri), _Watch(calls))
    backend = disk.compat.open(store=store)
    backend.home.prepare()
    calls.clear()
    Migration(backend, batch_rows=4).run()
    batches = 3
    assert calls.count(("list_dir", "")) == 1 + batches + 1
    assert not [path for _, path in calls if path.startswith("t0")]


class _Watch:
    """Notes every call."""

    def __init__(self, calls: list[tuple[str, str]]) -> None:
        self._calls = calls

    def before(self, call) -> None:
        self._calls.append((call.verb, call.path))

    def after(self, call, result) -> None:
        """Nothing to do."""


# -- what is left out -----------------------------------------------------------------------------


def _end(lake: Lake, name: str, state: State, **more: object) -> None:
    """Put a decision, as a process does that is cut off right after."""
    chains = lake.listed.chains
    chains.advance(chains.read(name), state, action="test", **more)


def _dropped(place: Place) -> None:
    place.v1.drop("t")


def _deregistered(place: Place) -> None:
    place.v1.backend.deregister_table(table_id("t"))


def _purging(place: Place) -> None:
    place.v1.drop("t")
    _end(place.v1, "t", State.PURGING)


def _creating(place: Place) -> None:
    place.v1.drop("t")
    place.v1.backend.purge_table(table_id("t"))
    _end(place.v1, "t", State.CREATING)


def _unreadable(place: Place) -> None:
    place.v1.store.put(decision_path("t", 1), b"{")


def _taken_by_namespace(place: Place) -> None:
    place.put_row("t", NAMESPACE, None)


def _taken_by_table(place: Place) -> None:
    place.put_row("t", TABLE, "0badcafe_t")


@pytest.mark.parametrize(
    ("happens", "reason", "complete"),
    [
        (_dropped, Reason.DROPPED, True),
        (_deregistered, Reason.DEREGISTERED, True),
        (_purging, Reason.PURGING, True),
        (_creating, Reason.CREATING, True),
        (_taken_by_table, Reason.OTHER_TABLE, True),
        (_taken_by_namespace, Reason.NAMESPACE, False),
        (_unreadable, Reason.UNREADABLE, False),
    ],
)
def test_what_is_left_out_is_told_with_the_reason(
    place, happens: Callable[[Place], None], reason: Reason, complete: bool
):
    place.create("t", "other")
    happens(place)
    report = place.migrate()
    assert report.added == ("other",)
    assert skipped(report).name == "t"
    assert skipped(report).reason is reason
    assert skipped(report).detail
    assert report.is_complete is complete
    assert place.migration().is_complete() is complete


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a$b", Reason.DELIMITER),
        (DECOMPOSED, Reason.DECOMPOSED),
        ("__mooring_trash", Reason.RESERVED),
    ],
)
def test_a_name_that_no_row_can_have_is_told(place, name, reason):
    place.v1.write_elsewhere(name)
    report = place.migrate()
    assert (report.added, reasons(report)) == ((), {name: reason})
    assert not report.is_complete
    assert "1 live table" in report.advice


@pytest.mark.parametrize("name", ["a$b", DECOMPOSED])
def test_a_table_gets_into_the_manifest_under_another_name(place, name):
    place.v1.write_elsewhere(name, [5])
    assert not place.migrate().is_complete
    place.compat.backend.register_table(table_id("new"), f"{name}.lance")
    report = place.migrate()
    assert reasons(report) == {name: Reason.REGISTERED}
    assert report.is_complete
    assert place.v2.values("new") == [5]


def test_a_table_whose_name_a_namespace_has_gets_into_it(place):
    place.create("t")
    _taken_by_namespace(place)
    place.compat.backend.register_table(table_id("t", "t"), "t.lance")
    assert place.migrate().is_complete
    assert place.v2.values(table_id("t", "t")) == [1]


def test_a_directory_that_no_listing_shows_is_told(disk):
    disk.create("t")
    disk.v1.store.put("x.deleted.lance/data", b"")
    report = disk.migrate()
    assert reasons(report) == {"x.deleted": Reason.INVALID_NAME}
    assert report.is_complete


def test_a_marker_of_another_program_counts(place):
    place.v1.write_elsewhere("a")
    place.v1.write_elsewhere("b")
    place.v1.mark_deregistered("a")
    report = place.migrate()
    assert (report.added, reasons(report)) == (("b",), {"a": Reason.DROPPED})


def test_what_was_purged_is_no_table(place):
    place.create("t")
    place.v1.drop("t")
    place.v1.backend.purge_table(table_id("t"))
    report = place.migrate()
    assert (report.added, report.skipped) == ((), ())


def test_another_name_of_a_table_does_not_keep_it_out(place):
    place.create("t")
    place.compat.backend.register_table(table_id("u"), "t.lance")
    assert place.migrate().added == ("t",)
    assert place.v2.names() == ["t", "u"]


def test_a_table_comes_along_though_another_name_of_it_was_dropped(place):
    place.create("t")
    place.compat.backend.register_table(table_id("u"), "t.lance")
    place.compat.drop("u")
    assert place.migrate().added == ("t",)
    place.v2.backend.purge_table(table_id("u"))
    assert place.v2.values("t") == [1]


# -- what rows say --------------------------------------------------------------------------------


def test_a_protected_table_stays_protected(place):
    place.create("kept", "free")
    place.v1.backend.protect_table(table_id("kept"))
    place.migrate()
    with pytest.raises(ProtectedError):
        place.v2.drop("kept")
    place.v2.drop("free")


def test_rows_of_tables_that_others_dropped_go(place):
    place.compat.create("a")
    place.compat.create("b")
    place.v1.drop("a")
    report = place.migrate()
    assert (report.removed, report.already) == (("a",), ("b",))
    assert place.rows() == own("b")


def test_properties_of_rows_stay(place):
    place.compat.backend.create_table(table_id("t"), rows([1]), properties={"owner": "ada"})
    place.create("other")
    place.migrate()
    assert place.v2.backend.describe_table(table_id("t")).properties == {"owner": "ada"}


def test_a_table_gets_its_properties_back_after_others_dropped_and_undropped_it(place):
    place.compat.backend.create_table(table_id("t"), rows([1]), properties={"owner": "ada"})
    place.v1.drop("t")
    assert place.migrate().removed == ("t",)
    place.v1.backend.undrop_table(table_id("t"))
    assert place.migrate().added == ("t",)
    assert place.v2.backend.describe_table(table_id("t")).properties == {"owner": "ada"}
    place.v2.drop("t")
    assert place.migrate().is_complete
    assert place.compat.names() == []


def test_a_row_that_another_program_put_for_a_hidden_table_stays(disk):
    """Spec: "manifest entries taking precedence"."""
    disk.compat.create("t")
    disk.compat.drop("t")
    disk.put_row("t", TABLE, "t.lance")
    report = disk.migrate()
    assert (report.already, report.removed, report.skipped) == (("t",), (), ())
    assert disk.v2.names() == ["t"]


def test_a_live_table_has_one_row_only(disk):
    """What was kept of it in the trash goes, or the next drop of it would look undone."""
    disk.compat.create("t")
    disk.compat.drop("t")
    disk.put_row("t", TABLE, "t.lance")
    disk.v1.backend.undrop_table(table_id("t"))
    assert disk.migration().plan().stale == ("t",)
    assert disk.migrate().is_complete
    disk.v2.drop("t")
    assert disk.compat.names() == []
    assert disk.v2.names() == []


def test_a_row_whose_table_is_being_renamed_is_left_to_the_rename(disk):
    """Spec: directory-namespace, "Compatibility Mode", rule 4: the row is switched last."""
    disk.compat.create("t")
    intent = RenameIntent("nonce", "new", "0badcafe_new", "bob")
    disk.compat.open().manifest.change(
        lambda draft: draft.put(with_intent(draft.require_table("t"), intent)),
    )
    _end(disk.compat, "t", State.RENAMING, intent="nonce")
    report = disk.migrate()
    assert reasons(report) == {"t": Reason.RENAMING}
    assert not report.is_complete
    assert disk.rows() == own("t")


# -- while others work ----------------------------------------------------------------------------


def test_tables_that_appear_meanwhile_are_added(place):
    place.create("a", "b", "c")
    waiting = ["d"]

    def appear(done: int, total: int) -> None:
        if waiting:
            place.create(waiting.pop())

    report = place.migration(batch_rows=2).run(appear)
    assert report.added == ("a", "b", "c", "d")
    assert place.rows() == own("a", "b", "c", "d")


def test_tables_that_are_dropped_meanwhile_have_no_row(place):
    place.create("a", "b", "c")
    waiting = ["a", "c"]

    def vanish(done: int, total: int) -> None:
        while waiting:
            place.v1.drop(waiting.pop())

    report = place.migration(batch_rows=1).run(vanish)
    assert report.added == ("b",)
    assert place.rows() == own("b")
    assert report.is_complete


class _AtCommit:
    """Lets somebody act right before the first version with rows is put."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act: Callable[[], None] | None = act

    def before(self, call) -> None:
        is_commit = call.verb == "put_new" and call.path.startswith(f"{MANIFEST_DIR}/_versions/")
        if is_commit and call.path != FIRST_VERSION and self._act:
            # Lance calls from inside a commit, where its own thread can begin no other.
            other, self._act = threading.Thread(target=self._act), None
            other.start()
            other.join()

    def after(self, call, result) -> None:
        """Nothing to do."""


@pytest.mark.parametrize("mode", ["v1", "compat"])
def test_a_drop_between_look_and_commit_wins(disk, mode):
    """Whoever writes looks again: the dropper found no row to remove."""
    disk.create("a", "b")
    script = _AtCommit(lambda: getattr(disk, mode).drop("a"))
    store = ScriptedStore(open_store(disk.compat.uri), script)
    report = Migration(disk.compat.open(store=store)).run()
    assert script._act is None
    assert disk.rows() == own("b")
    assert report.added == ("b",)
    assert reasons(report) == {"a": Reason.DROPPED}


def test_an_undrop_between_look_and_commit_wins(disk):
    """The row that goes is that of a table that lives again."""
    disk.compat.create("a")
    disk.v1.drop("a")
    script = _AtCommit(lambda: disk.compat.backend.undrop_table(table_id("a")))
    store = ScriptedStore(open_store(disk.compat.uri), script)
    Migration(disk.compat.open(store=store)).run()
    assert script._act is None
    assert disk.rows() == own("a")


def test_a_namespace_that_takes_a_name_between_look_and_commit_keeps_it(disk):
    disk.create("a", "b")
    disk.v2.make("other")
    script = _AtCommit(lambda: disk.put_row("a", NAMESPACE, None))
    store = ScriptedStore(open_store(disk.compat.uri), script)
    report = Migration(disk.compat.open(store=store)).run()
    assert script._act is None
    assert report.added == ("b",)
    assert reasons(report) == {"a": Reason.NAMESPACE}


def test_several_migrations_at_once_add_every_table_once(disk):
    names = [f"t{number:03}" for number in range(200)]
    for name in names:
        disk.v1.store.put(f"{name}.lance/data", b"")
    reports: list[MigrationReport] = []

    def run() -> None:
        reports.append(disk.migration(batch_rows=16).run())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert disk.rows() == own(*names)
    assert sorted(name for report in reports for name in report.added) == names


# -- afterwards: the manifest alone ---------------------------------------------------------------


def test_migrated_tables_are_read_and_written_by_the_manifest_alone(place):
    """Spec: "compatibility mode can be disabled to use only V2 behavior"."""
    place.create("a", "bb")
    place.migrate()
    assert place.v2.names() == ["a", "bb"]
    assert place.v2.values("bb") == [2]
    info = place.v2.backend.describe_table(table_id("bb"))
    assert info.location == place.v1.store.location("bb.lance")
    lance.write_dataset(
        rows([3]), info.location, mode="append", storage_options=place.v1.options or None
    )
    assert place.v2.values("bb") == [2, 3]
    assert place.v1.values("bb") == [2, 3]


def test_a_migrated_table_is_renamed_by_the_manifest_alone(place):
    place.create("a")
    place.migrate()
    place.v2.make("ns")
    place.v2.backend.rename_table(table_id("a"), table_id("ns", "b"))
    assert place.v2.tables() == ["ns$b"]
    assert place.v2.values(table_id("ns", "b")) == [1]


def test_a_migrated_table_is_dropped_and_undropped_by_the_manifest_alone(place):
    place.create("a", "b")
    place.migrate()
    place.v2.drop("a")
    assert (place.v2.names(), place.v2.trash()) == (["b"], ["a"])
    with pytest.raises(TableNotFoundError):
        place.v2.values("a")
    place.v2.backend.undrop_table(table_id("a"))
    assert place.v2.values("a") == [1]


def test_a_migrated_table_is_purged_by_the_manifest_alone(place):
    place.create("a", "b")
    place.migrate()
    place.v2.drop("a")
    place.v2.backend.purge_table(table_id("a"))
    assert place.v2.trash() == []
    assert not [file for file in place.v1.files("a") if file.startswith("data/")]
    assert place.v2.values("b") == [1]
    place.v2.create("a", [9])
    assert place.v2.values("a") == [9]


def test_what_was_dropped_before_comes_back_by_the_manifest_alone(place):
    place.create("a", "b")
    place.v1.drop("a")
    place.migrate()
    assert (place.v2.names(), place.v2.trash()) == (["b"], ["a"])
    place.v2.backend.undrop_table(table_id("a"))
    assert place.v2.names() == ["a", "b"]
    assert place.v2.values("a") == [1]


# -- afterwards: beside clients that list ---------------------------------------------------------


@pytest.mark.parametrize("mode", ["v1", "compat"])
def test_a_table_that_the_manifest_dropped_is_not_listed_again(place, mode):
    """Deliver 5: a drop is a drop, whichever of our clients looks."""
    place.create("a", "b")
    place.migrate()
    place.v2.drop("a")
    lake = getattr(place, mode)
    assert lake.names() == ["b"]
    with pytest.raises(TableNotFoundError):
        lake.open().describe_table(table_id("a"))
    assert names_of(pylance(place, manifest_enabled="false")) == ["b"]
    assert place.migrate().added == ()
    lake.open().undrop_table(table_id("a"))
    assert lake.values("a") == [1]
    place.migrate()
    assert place.v2.names() == ["a", "b"]


@pytest.mark.parametrize("mode", ["v1", "compat"])
def test_a_table_that_the_manifest_purged_is_gone_for_all(place, mode):
    place.create("a", "b")
    place.migrate()
    place.v2.drop("a")
    place.v2.backend.purge_table(table_id("a"))
    lake = getattr(place, mode)
    assert (lake.names(), lake.trash()) == (["b"], [])
    assert place.migrate().added == ()


def test_a_table_that_the_manifest_renamed_has_no_second_name(place):
    place.create("a")
    place.migrate()
    place.v2.backend.rename_table(table_id("a"), table_id("b"))
    assert place.migrate().added == ()
    assert place.v2.names() == ["b"]
    assert place.compat.names() == ["b"]
    assert place.compat.values("b") == [1]
    assert place.v1.names() == []


def test_a_table_that_the_manifest_deregistered_is_not_listed_again(place):
    place.create("a", "b")
    place.migrate()
    place.v2.backend.deregister_table(table_id("a"))
    assert place.compat.names() == ["b"]
    assert place.v1.names() == ["b"]
    assert place.migrate().added == ()
    place.v2.backend.register_table(table_id("a"), "a.lance")
    assert place.v2.values("a") == [1]
    assert place.compat.names() == ["a", "b"]


# -- and back again -------------------------------------------------------------------------------


def test_listings_find_the_same_tables_as_before(place):
    """Deliver 6: "Back again by listing is possible because nothing moved"."""
    place.create("a", "bb", "ccc")
    place.v1.drop("bb")
    place.migrate()
    assert place.v2.names() == ["a", "ccc"]
    assert place.v1.names() == ["a", "ccc"]
    assert place.compat.names() == ["a", "ccc"]
    assert names_of(pylance(place, manifest_enabled="false")) == ["a", "ccc"]
    assert place.v1.values("ccc") == [3]
    place.v1.backend.undrop_table(table_id("bb"))
    assert place.v1.names() == ["a", "bb", "ccc"]


def test_pylance_reads_migrated_tables_by_the_manifest_alone(place):
    place.create("a", "bb")
    place.migrate()
    namespace = pylance(place, dir_listing_enabled="false")
    assert names_of(namespace) == ["a", "bb"]
    found = namespace.describe_table(spec.DescribeTableRequest(id=["bb"]))
    dataset = lance.dataset(found.location, storage_options=place.v1.options or None)
    assert dataset.to_table()["n"].to_pylist() == [2]


def test_a_catalog_that_pylance_has_changed_is_migrated(place):
    place.create("a")
    namespace = pylance(place)
    namespace.create_namespace(spec.CreateNamespaceRequest(id=["ns"]))
    place.create("b")
    assert place.migrate().added == ("a", "b")
    namespace.create_namespace(spec.CreateNamespaceRequest(id=["other"]))
    assert place.v2.names() == ["a", "b"]
    assert place.v2.backend.list_namespaces(ROOT) == ["ns", "other"]
    assert place.v2.backend.list_all_tables() == [ObjectId(("a",)), ObjectId(("b",))]
