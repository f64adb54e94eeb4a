"""Drop, undrop, re-create, purge, protect, deregister: the life of a table.

Spec: soft-delete, all of it; directory-namespace, "Marker Files".
"""

from __future__ import annotations

import lance
import pytest

from mooring.clock import DAY_MS
from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    InvalidTableStateError,
    ProtectedError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode, Ttl
from mooring.namespace.states import Exists, NotFound, SoftDeleted
from tests.conformance.kinds import every_kind, without_a_manifest
from tests.lakes import NOON_MS, rows, table_id

T = table_id("t")
WEEK_MS = 7 * DAY_MS


def _manifests(lake, name: str = "t") -> set[str]:
    return {path for path in lake.files(name) if path.startswith("_versions/")}


# -- drop and undrop ------------------------------------------------------------------------------


@every_kind
def test_a_dropped_table_is_not_found_by_any_read(lake):
    """Spec: soft-delete, "Reads respect the marker"."""
    lake.create("t")
    lake.create("other")
    lake.drop("t")
    backend = lake.open()
    assert backend.list_tables(ROOT) == ["other"]
    assert backend.list_tables(ROOT, include_declared=False) == ["other"]
    with pytest.raises(TableNotFoundError, match=r"dropped .* undrop t"):
        backend.describe_table(T)
    assert backend.table_status(T) == SoftDeleted(NOON_MS, NOON_MS + WEEK_MS)


def test_a_drop_leaves_the_data_intact(lake):
    """Spec: soft-delete, "drop_table becomes soft"."""
    lake.create("t", [1, 2])
    before = lake.files("t")
    info = lake.backend.drop_table(T)
    assert before <= lake.files("t")
    opened = lance.dataset(info.location, storage_options=lake.options or None)
    assert opened.to_table()["n"].to_pylist() == [1, 2]


@every_kind
def test_a_reader_that_opened_the_table_before_its_drop_reads_to_the_end(lake):
    """Spec: soft-delete, "Motivation": no files vanish in the middle of a read."""
    lake.create("t", list(range(5000)))
    batches = lake.dataset("t").to_batches(batch_size=100)
    read = next(iter(batches)).num_rows
    lake.drop("t")
    read += sum(batch.num_rows for batch in batches)
    assert read == 5000


@every_kind
def test_dropping_twice_finds_nothing_the_second_time(lake):
    lake.create("t")
    lake.drop("t")
    with pytest.raises(TableNotFoundError):
        lake.drop("t")


@every_kind
@pytest.mark.parametrize(
    ("ttl", "expires_at_ms"),
    [
        (None, NOON_MS + WEEK_MS),
        (Ttl(DAY_MS), NOON_MS + DAY_MS),
        (Ttl(0), NOON_MS),
        (Ttl(None), None),
    ],
    ids=["default", "a day", "none at all", "for ever"],
)
def test_the_time_to_live_is_stamped_at_the_drop(lake, ttl, expires_at_ms):
    """Spec: soft-delete, "TTL"."""
    lake.create("t")
    lake.backend.drop_table(T, ttl)
    assert lake.open().table_status(T) == SoftDeleted(NOON_MS, expires_at_ms)
    (dropped,) = lake.open().list_purgable_tables()
    assert (dropped.deleted_at_ms, dropped.expires_at_ms) == (NOON_MS, expires_at_ms)


@every_kind
def test_an_undropped_table_is_as_it_was(lake):
    lake.create("t", [1])
    lake.create("t", [2], CreateMode.OVERWRITE)
    lake.drop("t")
    lake.backend.undrop_table(T)
    assert lake.names() == ["t"]
    assert lake.trash() == []
    assert lake.dataset("t").version == 2
    assert lake.values("t") == [2]
    assert lake.values("t", version=1) == [1]


@every_kind
def test_a_table_can_be_dropped_and_undropped_again_and_again(lake):
    lake.create("t", [1])
    for _ in range(4):
        lake.drop("t")
        assert lake.names() == []
        lake.backend.undrop_table(T)
        assert lake.names() == ["t"]
    assert lake.values("t") == [1]


def test_an_undropped_table_can_be_written_to(lake):
    lake.create("t", [1])
    lake.drop("t")
    lake.backend.undrop_table(T)
    lake.write_elsewhere("t", [2], mode="append")
    assert lake.values("t") == [1, 2]


@every_kind
def test_only_a_dropped_table_can_be_undropped(lake):
    lake.create("t")
    with pytest.raises(TableNotFoundError, match="live"):
        lake.backend.undrop_table(T)
    lake.drop("t")
    lake.backend.purge_table(T)
    with pytest.raises(TableNotFoundError):
        lake.backend.undrop_table(T)


@without_a_manifest
def test_a_plain_directory_undrops_under_the_same_name_only(lake):
    lake.create("t", [1])
    lake.drop("t")
    with pytest.raises(UnsupportedError, match="new"):
        lake.backend.undrop_table(T, table_id("new"))
    assert lake.trash() == ["t"]
    lake.backend.undrop_table(T, T)
    assert lake.names() == ["t"]


# -- create over a dropped table ------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(CreateMode))
def test_a_table_created_over_a_dropped_one_is_its_next_version(lake, mode):
    """Spec: soft-delete, "Re-create over a soft-deleted table = overwrite"."""
    lake.create("t", [1])
    lake.drop("t")
    info = lake.create("t", [2], mode)
    assert info.version == 2
    assert lake.values("t") == [2]
    assert lake.values("t", version=1) == [1]
    assert lake.names() == ["t"]
    assert lake.trash() == []


def test_a_dropped_name_cannot_be_declared(lake):
    lake.create("t", [1])
    lake.drop("t")
    with pytest.raises(InvalidTableStateError, match="undrop"):
        lake.backend.declare_table(T)
    lake.backend.undrop_table(T)
    assert lake.values("t") == [1]


def test_a_dropped_declaration_can_be_created_with_data(lake):
    lake.backend.declare_table(T)
    lake.drop("t")
    assert lake.create("t", [1]).version == 1
    assert lake.values("t") == [1]


# -- purge ----------------------------------------------------------------------------------------


@every_kind
def test_a_purged_table_is_gone(lake):
    """Spec: soft-delete, "Purged == NotFound"."""
    lake.create("t")
    lake.drop("t")
    lake.backend.purge_table(T)
    backend = lake.open()
    assert backend.list_tables(ROOT) == []
    assert backend.list_purgable_tables() == []
    assert backend.table_status(T) == NotFound()
    with pytest.raises(TableNotFoundError):
        backend.describe_table(T)
    with pytest.raises(TableNotFoundError):
        backend.purge_table(T)
    with pytest.raises(TableNotFoundError):
        backend.drop_table(T)


def test_a_purge_deletes_every_byte_but_the_lineage(lake):
    """Spec: PROTOCOLS, "Purge": the kept manifest is the lineage."""
    lake.create("t", [1])
    lake.create("t", [2], CreateMode.OVERWRITE)
    lake.drop("t")
    lake.backend.purge_table(T)
    left = lake.files("t")
    assert len(_manifests(lake)) == 1
    assert left - _manifests(lake) <= {".lance-deregistered"}


@every_kind
def test_a_purge_tells_how_far_it_has_come(lake):
    lake.create("t")
    lake.drop("t")
    heard: list[tuple[ObjectId, int, int]] = []
    lake.backend.purge_table(T, lambda *progress: heard.append(progress))
    assert heard
    table, files, size_bytes = heard[-1]
    assert table == T
    assert files >= 2
    assert size_bytes > 0


def test_a_table_created_after_a_purge_goes_on_with_the_versions(lake):
    lake.create("t", [1])
    lake.create("t", [2], CreateMode.OVERWRITE)
    lake.drop("t")
    lake.backend.purge_table(T)
    assert lake.create("t", [3]).version == 3
    assert lake.values("t") == [3]
    assert lake.names() == ["t"]
    lake.write_elsewhere("t", [4], mode="append")
    assert lake.values("t") == [3, 4]


def test_several_lives_of_one_name_share_no_file(lake):
    data: set[str] = set()
    for life in range(3):
        lake.create("t", [life])
        files = {path for path in lake.files("t") if path.startswith("data/")}
        assert not files & data
        data |= files
        assert lake.values("t") == [life]
        lake.drop("t")
        lake.backend.purge_table(T)


@pytest.mark.parametrize("purge", ["one", "list"])
def test_a_live_table_is_never_purged(lake, purge):
    """Spec: soft-delete, "never a live one"."""
    lake.create("t", [1])
    before = lake.files("t")
    if purge == "one":
        with pytest.raises(TableNotFoundError, match="live"):
            lake.backend.purge_table(T)
    else:
        report = lake.backend.purge_tables([T])
        assert report.purged == []
        assert isinstance(report.failed[T], TableNotFoundError)
    lake.clock.advance(100 * DAY_MS)
    assert lake.backend.purge_tables(None).purged == []
    assert lake.files("t") == before
    assert lake.values("t") == [1]


@every_kind
def test_purging_a_list_purges_exactly_those_expired_or_not(lake):
    """Spec: soft-delete, "a list = exactly those"."""
    for name in ("a", "b", "c", "live"):
        lake.create(name)
    lake.backend.drop_table(table_id("a"), Ttl(0))
    lake.backend.drop_table(table_id("b"), Ttl(None))
    lake.backend.drop_table(table_id("c"), Ttl(0))
    wanted = [table_id(name) for name in ("b", "c", "live", "absent")]
    report = lake.backend.purge_tables(wanted)
    assert report.purged == [table_id("b"), table_id("c")]
    assert set(report.failed) == {table_id("live"), table_id("absent")}
    assert lake.trash() == ["a"]
    assert lake.names() == ["live"]


@pytest.mark.parametrize("wanted", [None, [T]], ids=["all", "some"])
@without_a_manifest
def test_a_table_that_is_dropped_anew_since_it_was_seen_to_be_expired_stays(
    lake, monkeypatch, wanted
):
    """Spec: soft-delete, the purge/revive race: the later drop has a time of its own."""
    lake.create("t", [1, 2])
    lake.backend.drop_table(T, Ttl(0))
    seen = lake.backend._expired

    def see_and_wait():
        found = seen()
        other = lake.open()
        other.undrop_table(T)
        other.drop_table(T)
        return found

    monkeypatch.setattr(lake.backend, "_expired", see_and_wait)
    purge = lake.backend.purge_tables if wanted is None else lake.backend.purge_expired
    report = purge(wanted)
    assert (report.purged, list(report.failed)) == ([], [T])
    assert isinstance(report.failed[T], ConcurrentModificationError)
    lake.backend.undrop_table(T)
    assert lake.values("t") == [1, 2]


@every_kind
def test_purging_without_a_list_purges_the_expired(lake):
    """Spec: soft-delete, "None = purge all currently-purgable tables"."""
    for name in ("brief", "week", "ever", "live"):
        lake.create(name)
    lake.backend.drop_table(table_id("brief"), Ttl(1000))
    lake.backend.drop_table(table_id("week"))
    lake.backend.drop_table(table_id("ever"), Ttl(None))
    assert lake.backend.purge_tables().purged == []
    lake.clock.advance(999)
    assert lake.backend.purge_tables().purged == []
    lake.clock.advance(1)
    assert lake.backend.purge_tables().purged == [table_id("brief")]
    lake.clock.advance(WEEK_MS)
    assert lake.backend.purge_tables().purged == [table_id("week")]
    lake.clock.advance(1000 * WEEK_MS)
    assert lake.backend.purge_tables().purged == []
    assert lake.trash() == ["ever"]
    assert lake.names() == ["live"]


@every_kind
def test_an_empty_list_purges_nothing(lake):
    lake.create("t")
    lake.backend.drop_table(T, Ttl(0))
    report = lake.backend.purge_tables([])
    assert (report.purged, report.failed) == ([], {})
    assert lake.trash() == ["t"]


@every_kind
def test_the_trash_lists_what_was_dropped_before_a_time(lake):
    """Spec: soft-delete, "list_purgable_tables(deleted_before)"."""
    for name in ("b", "a"):
        lake.create(name)
        lake.drop(name)
        lake.clock.advance(1000)
    backend = lake.open()

    def listed(deleted_before_ms):
        return [found.id.name for found in backend.list_purgable_tables(deleted_before_ms)]

    assert listed(None) == ["a", "b"]
    assert listed(NOON_MS) == []
    assert listed(NOON_MS + 1) == ["b"]
    assert listed(NOON_MS + 1000) == ["b"]
    assert listed(NOON_MS + 1001) == ["a", "b"]


def test_a_foreign_writer_in_a_purged_directory_is_a_conflict_until_it_is_purged_again(lake):
    """Spec: PROTOCOLS, "A file newer than the kept version in a purged directory"."""
    lake.create("t", [1])
    late = lake.dataset("t")
    lake.drop("t")
    lake.backend.purge_table(T)
    late.insert(rows([9]).read_all())
    with pytest.raises(ConcurrentModificationError, match="purge it again"):
        lake.create("t", [2])
    lake.backend.purge_table(T)
    assert lake.create("t", [3]).version == 3
    assert lake.values("t") == [3]


# -- protection -----------------------------------------------------------------------------------


@every_kind
def test_a_protected_table_cannot_be_dropped_or_deregistered(lake):
    lake.create("t", [1])
    lake.backend.protect_table(T)
    for act in (lake.backend.drop_table, lake.backend.deregister_table):
        with pytest.raises(ProtectedError, match="unprotect t"):
            act(T)
    assert lake.values("t") == [1]
    assert lake.open().describe_table(T).properties == {"mooring.protected": "true"}


@every_kind
def test_protection_can_be_lifted(lake):
    lake.create("t")
    lake.backend.protect_table(T)
    lake.backend.protect_table(T, protected=False)
    assert lake.open().describe_table(T).properties == {}
    lake.drop("t")
    assert lake.names() == []


def test_protecting_twice_is_one_change(lake):
    lake.create("t")
    lake.backend.protect_table(T)
    before = lake.backend.table_history(T)
    lake.backend.protect_table(T)
    assert lake.backend.table_history(T) == before


def test_a_protected_table_can_be_read_and_written(lake):
    lake.create("t", [1])
    lake.backend.protect_table(T)
    lake.create("t", [2], CreateMode.OVERWRITE)
    lake.write_elsewhere("t", [3], mode="append")
    assert lake.values("t") == [2, 3]
    with pytest.raises(ProtectedError):
        lake.drop("t")


@every_kind
def test_only_a_live_table_can_be_protected(lake):
    lake.create("t")
    lake.drop("t")
    with pytest.raises(TableNotFoundError):
        lake.backend.protect_table(T)
    lake.backend.undrop_table(T)
    lake.backend.protect_table(T)
    with pytest.raises(ProtectedError):
        lake.drop("t")


# -- deregister and register ----------------------------------------------------------------------


def test_a_deregistered_table_is_not_found_and_keeps_its_data(lake):
    """Spec: directory-namespace, "Marker Files", `.lance-deregistered`."""
    lake.create("t")
    before = lake.files("t")
    lake.backend.deregister_table(T)
    backend = lake.open()
    assert backend.list_tables(ROOT) == []
    assert backend.table_status(T) == NotFound()
    with pytest.raises(TableNotFoundError, match="register"):
        backend.describe_table(T)
    assert lake.files("t") == before | {".lance-deregistered"}


def test_a_deregistered_table_is_not_in_the_trash(lake):
    lake.create("t", [1])
    lake.backend.deregister_table(T)
    lake.clock.advance(1000 * WEEK_MS)
    assert lake.trash() == []
    assert lake.backend.purge_tables().purged == []
    for act in (lake.backend.purge_table, lake.backend.undrop_table, lake.backend.drop_table):
        with pytest.raises(TableNotFoundError):
            act(T)
    lake.backend.register_table(T, "t.lance")
    assert lake.values("t") == [1]


def test_registering_undoes_a_deregistration_with_its_versions(lake):
    """Spec: directory-namespace, "preserving the table data for potential re-registration"."""
    lake.create("t", [1])
    lake.create("t", [2], CreateMode.OVERWRITE)
    lake.backend.deregister_table(T)
    info = lake.backend.register_table(T, "t.lance")
    assert info.location == lake.store.location("t.lance")
    assert lake.names() == ["t"]
    assert [found["version"] for found in lake.dataset("t").versions()] == [1, 2]
    assert lake.values("t", version=1) == [1]
    assert ".lance-deregistered" not in lake.files("t")


def test_a_live_table_is_registered_already(lake):
    lake.create("t", [1])
    with pytest.raises(TableAlreadyExistsError):
        lake.backend.register_table(T, "t.lance")
    lake.backend.register_table(T, "t.lance", CreateMode.OVERWRITE)
    assert lake.values("t") == [1]


def test_a_dropped_table_is_undropped_not_registered(lake):
    lake.create("t")
    lake.drop("t")
    with pytest.raises(TableNotFoundError, match="undrop"):
        lake.backend.register_table(T, "t.lance")


def test_a_deregistered_table_keeps_its_name_taken(lake):
    lake.create("t", [1])
    lake.backend.deregister_table(T)
    for mode in CreateMode:
        with pytest.raises(TableAlreadyExistsError, match="deregistered"):
            lake.create("t", [2], mode)
    lake.backend.register_table(T, "t.lance")
    assert lake.values("t") == [1]


@pytest.mark.parametrize(
    "location",
    [
        "",
        ".",
        "..",
        "/",
        "/etc",
        "/tmp/t.lance",
        "../t.lance",
        "./t.lance",
        "t.lance/..",
        "__manifest",
        "__manifest/data",
        "s3://elsewhere/t.lance",
        "file:///tmp/t.lance",
        "t.lance\0",
    ],
    ids=ascii,
)
def test_a_table_is_not_registered_outside_of_the_root(lake, location):
    """Must show: an absolute path, `..`, an empty one and `__manifest` are refused."""
    lake.create("other")
    with pytest.raises(InvalidInputError) as caught:
        lake.backend.register_table(T, location)
    assert caught.value.code == 13
    assert lake.names() == ["other"]


@without_a_manifest
@pytest.mark.parametrize("location", ["t.lance/", "other.lance", "t"])
def test_a_plain_directory_registers_a_table_where_its_name_says(lake, location):
    lake.create("other")
    with pytest.raises(InvalidInputError) as caught:
        lake.backend.register_table(T, location)
    assert caught.value.code == 13
    assert lake.names() == ["other"]


# -- who and when ---------------------------------------------------------------------------------


def test_every_change_records_who_when_and_what(lake):
    """Spec: ARCHITECTURE, "Every change records who ... and when"."""
    lake.create("t")
    done = []

    def act(who: str, action: str, change) -> None:
        lake.clock.advance(10)
        change(lake.open(author=who))
        done.append((who, lake.clock.now_ms(), action))

    act("ann", "protect", lambda backend: backend.protect_table(T))
    act("bob", "unprotect", lambda backend: backend.protect_table(T, protected=False))
    act("cid", "deregister", lambda backend: backend.deregister_table(T))
    act("dan", "register", lambda backend: backend.register_table(T, "t.lance"))
    act("eve", "drop", lambda backend: backend.drop_table(T))
    act("fay", "undrop", lambda backend: backend.undrop_table(T))
    act("gus", "drop", lambda backend: backend.drop_table(T))
    act("hal", "create", lambda backend: lake.create("t", [2], backend=backend))
    act("ida", "drop", lambda backend: backend.drop_table(T))
    act("jim", "purge", lambda backend: backend.purge_table(T))
    history = lake.open().table_history(T)
    told = [(entry.by, entry.at_ms, entry.action) for entry in history]
    assert list(dict.fromkeys(entry for entry in told if entry in done)) == done
    assert [entry.at_ms for entry in history] == sorted(entry.at_ms for entry in history)
    assert history[-1].state == "purged"


def test_a_first_creation_records_who_and_when(lake):
    """Deliver 5: "who and when recorded with every change"."""
    lake.create("t", backend=lake.open(author="ann"))
    lake.backend.declare_table(table_id("d"))
    for name, who in (("t", "ann"), ("d", "alice")):
        told = lake.open().table_history(table_id(name))
        assert [(entry.by, entry.at_ms) for entry in told] == [(who, NOON_MS)]


def test_an_overwrite_records_who_and_when(lake):
    """Deliver 5: "who and when recorded with every change"."""
    lake.create("t", [1], backend=lake.open(author="ann"))
    lake.clock.advance(5)
    lake.create("t", [2], CreateMode.OVERWRITE, backend=lake.open(author="bob"))
    told = lake.open().table_history(T)
    assert [(entry.by, entry.at_ms) for entry in told] == [("ann", NOON_MS), ("bob", NOON_MS + 5)]


def test_what_happens_in_one_moment_is_told_in_its_order(disk_lake):
    """The clock stands still: only versions tell what came first."""
    lake = disk_lake
    lake.create("t", [1])
    lake.drop("t")
    lake.backend.purge_table(T)
    lake.create("t", [2])
    told = [(entry.action, entry.state) for entry in lake.open().table_history(T)]
    assert told == [
        ("write", "live"),
        ("drop", "deleted"),
        ("purge", "purging"),
        ("purge", "purged"),
        ("create", "creating"),
        ("write", "live"),
        ("create", "live"),
    ]


def test_a_table_nobody_changed_has_no_history(lake):
    lake.write_elsewhere("t")
    assert lake.backend.table_history(T) == []
    assert lake.backend.table_history(table_id("absent")) == []


# -- unfinished operations ------------------------------------------------------------------------


def test_listings_and_looks_agree_in_every_state(lake):
    """One listing tells the same as a close look at each table."""
    for name in ("live", "dropped", "undropped", "recreated", "purged", "again", "deregistered"):
        lake.create(name, [1])
    lake.drop("dropped", "undropped", "recreated", "purged", "again")
    lake.backend.undrop_table(table_id("undropped"))
    lake.create("recreated", [2])
    lake.backend.purge_table(table_id("purged"))
    lake.backend.purge_table(table_id("again"))
    lake.create("again", [3])
    lake.backend.deregister_table(table_id("deregistered"))
    lake.backend.declare_table(table_id("declared"))
    live = ["again", "declared", "live", "recreated", "undropped"]
    assert lake.names() == live
    assert lake.trash() == ["dropped"]
    backend = lake.open()
    for name in live:
        assert backend.table_status(table_id(name)) == Exists()
    for name in ("purged", "deregistered", "absent"):
        assert backend.table_status(table_id(name)) == NotFound()


def test_a_hint_without_its_decision_changes_nothing(lake):
    """A listing is no snapshot: it may hold a hint and miss the decision before it."""
    lake.create("t")
    lake.drop("t")
    lake.store.put("t.lance-state.00000000000000000002.purging", b"")
    assert lake.names() == []
    assert lake.trash() == ["t"]
    lake.backend.undrop_table(T)
    lake.store.put("t.lance-state.00000000000000000003.purging", b"")
    assert lake.names() == ["t"]
    assert lake.trash() == []


def test_a_decision_without_its_hint_is_read(lake):
    """A listing reads a body only where the newest decision lacks its hint."""
    lake.create("t")
    lake.drop("t")
    hints = [name for name in lake.store.list_dir("").files if ".deleted." in name]
    assert hints
    lake.store.delete(hints)
    assert lake.names() == []
    (dropped,) = lake.open().list_purgable_tables()
    assert (dropped.deleted_at_ms, dropped.expires_at_ms) == (NOON_MS, NOON_MS + WEEK_MS)


def test_a_hint_that_cannot_be_read_is_not_believed(lake):
    lake.create("t")
    lake.drop("t")
    hints = [name for name in lake.store.list_dir("").files if ".deleted." in name]
    lake.store.delete(hints)
    lake.store.put("t.lance-state.00000000000000000001.frozen.1", b"")
    assert lake.names() == []
    assert lake.trash() == ["t"]
