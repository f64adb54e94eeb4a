"""Markers of other programs: honoured, lifted, and counted again when they come again.

Spec: soft-delete, "Move the delete marker to the namespace root", "Backward compatibility";
directory-namespace, "Marker Files".
"""

from __future__ import annotations

import json

import pytest

from mooring.clock import DAY_MS
from mooring.errors import ProtectedError, TableAlreadyExistsError, TableNotFoundError
from mooring.identifiers import ROOT
from mooring.namespace.states import Exists, NotFound, SoftDeleted
from mooring.store.observed import ObservedStore
from tests.lakes import table_id

T = table_id("t")
DROPPED_AT_MS = 1_700_000_000_000
JSON_BODY = json.dumps({"deleted_at_ms": DROPPED_AT_MS, "ttl_ms": DAY_MS}).encode()
ROOT_BODIES = {
    "json": JSON_BODY,
    "json with more": JSON_BODY[:-1] + b', "by": "somebody"}',
    "json without ttl": b'{"deleted_at_ms": 1700000000000}',
    "other json": b'["deleted"]',
    "wrong types": b'{"deleted_at_ms": "yesterday", "ttl_ms": []}',
    "empty": b"",
    "garbage": b"\x00\xff\xfe not json",
}


@pytest.fixture(params=["root", "nested"])
def mark(request, lake):
    """Drop `t` as another program would: beside its directory, or inside."""

    def leave(body: bytes | None = None) -> None:
        if request.param == "root":
            lake.mark_deleted("t", JSON_BODY if body is None else body)
        else:
            lake.mark_deregistered("t", b"" if body is None else body)

    return leave


@pytest.fixture(params=["adopted", "never adopted"])
def filled(request, lake):
    """A catalog with a live table `t` of ours, or a directory that others filled."""
    if request.param == "adopted":
        lake.create("t", [1, 2])
        lake.create("other", [3])
        assert lake.open().settings.adopted
    else:
        lake.write_elsewhere("t", [1, 2])
        lake.write_elsewhere("other", [3])
        assert not lake.open().settings.adopted
    return lake


# -- a marker beside the table --------------------------------------------------------------------


@pytest.mark.parametrize("body", ROOT_BODIES.values(), ids=ROOT_BODIES)
def test_a_root_marker_drops_the_table_whatever_it_holds(lake, body):
    lake.write_elsewhere("t")
    lake.write_elsewhere("other")
    lake.mark_deleted("t", body)
    assert lake.names() == ["other"]
    assert lake.trash() == ["t"]
    assert isinstance(lake.backend.table_status(T), SoftDeleted)
    with pytest.raises(TableNotFoundError, match="undrop"):
        lake.backend.describe_table(T)


def test_a_root_marker_tells_its_time_and_ttl(lake):
    """Spec: soft-delete, `{ "deleted_at_ms": ..., "ttl_ms": ... }`."""
    lake.write_elsewhere("t")
    lake.mark_deleted("t", JSON_BODY)
    expected = SoftDeleted(DROPPED_AT_MS, DROPPED_AT_MS + DAY_MS)
    assert lake.backend.table_status(T) == expected
    (dropped,) = lake.backend.list_purgable_tables()
    assert (dropped.deleted_at_ms, dropped.expires_at_ms) == (
        expected.deleted_at_ms,
        expected.expires_at_ms,
    )


def test_a_marker_without_a_time_has_the_time_it_was_written(lake):
    lake.write_elsewhere("t")
    lake.mark_deleted("t", b"")
    meta = lake.store.head("t.deleted")
    assert lake.backend.table_status(T) == SoftDeleted(meta.modified_ms, None)


@pytest.mark.parametrize(
    "numbers",
    [(-5, 10), (0, 0), (5, -10), (10**26, 1), (1, 10**26), (-(10**26), 1), (2**63, 2**63)],
    ids=str,
)
def test_absurd_numbers_in_a_marker_do_no_harm(disk_lake, numbers):
    deleted_at_ms, ttl_ms = numbers
    body = json.dumps({"deleted_at_ms": deleted_at_ms, "ttl_ms": ttl_ms}).encode()
    disk_lake.write_elsewhere("t", [1])
    disk_lake.mark_deleted("t", body)
    assert disk_lake.names() == []
    assert disk_lake.trash() == ["t"]
    disk_lake.backend.initialize(adopt=True)
    assert disk_lake.trash() == ["t"]
    disk_lake.create("t", [2])
    assert disk_lake.values("t") == [2]


def test_an_expired_root_marker_is_purged_with_the_expired(lake):
    lake.write_elsewhere("t")
    lake.write_elsewhere("u")
    lake.mark_deleted("t", JSON_BODY)
    lake.mark_deleted("u", b"no time to live: for ever")
    assert lake.backend.purge_tables().purged == [T]
    assert lake.trash() == ["u"]
    assert lake.store.get("t.deleted") is None


def test_a_root_marker_without_a_table_marks_nothing(lake):
    lake.create("other")
    lake.mark_deleted("t", JSON_BODY)
    lake.store.put(".deleted", b"")
    lake.store.put(".lance/file", b"")
    assert lake.names() == ["other"]
    assert lake.trash() == []
    assert lake.backend.table_status(T) == NotFound()
    lake.create("t", [1])
    assert lake.values("t") == [1]
    assert lake.names() == ["other", "t"]


# -- a marker inside the table's directory --------------------------------------------------------


def test_a_nested_marker_hides_the_table_in_a_directory_never_adopted(lake):
    lake.write_elsewhere("t")
    lake.write_elsewhere("other")
    lake.mark_deregistered("t", b"whatever")
    assert lake.names() == ["other"]
    assert lake.backend.table_status(T) != Exists()


def test_describe_and_exists_always_look_at_the_nested_marker(filled):
    """Deliver 4: "describe and exists always look at the nested marker too"."""
    filled.mark_deregistered("t")
    backend = filled.open()
    assert backend.table_status(T) != Exists()
    with pytest.raises(TableNotFoundError):
        backend.describe_table(T)
    with pytest.raises(TableNotFoundError):
        backend.drop_table(T)


def test_a_nested_marker_never_expires(filled):
    """It says "deregistered, data kept"."""
    filled.mark_deregistered("t")
    filled.backend.initialize(adopt=True)
    filled.clock.advance(10_000 * DAY_MS)
    assert filled.backend.purge_tables().purged == []
    filled.backend.register_table(T, "t.lance")
    assert filled.values("t") == [1, 2]


def test_a_nested_marker_on_a_table_we_dropped_before_hides_it_again(lake):
    """A chain that ends in `live` says nothing about a marker that came after it."""
    lake.write_elsewhere("t")
    lake.drop("t")
    lake.backend.undrop_table(T)
    assert not lake.open().settings.adopted
    lake.mark_deregistered("t")
    assert lake.names() == []
    lake.backend.initialize(adopt=True)
    assert lake.names() == []
    lake.backend.register_table(T, "t.lance")
    assert lake.names() == ["t"]


# -- lifting either -------------------------------------------------------------------------------


def test_undrop_lifts_a_foreign_marker(filled, mark):
    mark()
    filled.backend.undrop_table(T)
    assert filled.names() == ["other", "t"]
    assert filled.open().table_status(T) == Exists()
    assert filled.values("t") == [1, 2]
    assert filled.store.get("t.deleted") is None
    assert filled.store.get("t.lance/.lance-deregistered") is None


def test_register_lifts_a_foreign_deregistration(filled):
    filled.mark_deregistered("t")
    filled.backend.register_table(T, "t.lance")
    assert filled.names() == ["other", "t"]
    assert filled.values("t") == [1, 2]
    with pytest.raises(TableAlreadyExistsError):
        filled.backend.register_table(T, "t.lance")


def test_a_foreign_drop_after_an_undrop_counts_again(filled, mark):
    """The same content no longer counts; the same content written again does."""
    for _ in range(2):
        mark()
        assert filled.open().table_status(T) != Exists()
        with pytest.raises(TableNotFoundError):
            filled.open().describe_table(T)
        filled.backend.undrop_table(T)
        assert filled.open().table_status(T) == Exists()
    assert filled.values("t") == [1, 2]


def test_a_consumed_marker_that_stays_behind_no_longer_counts(filled):
    """The process that undrops may die before it deletes the marker; the decision stands."""
    filled.mark_deleted("t", JSON_BODY)
    view = filled.listed.view("t")
    filled.listed._chains.advance(view.chain, _live(), action="undrop", consumed=view.marks)
    assert filled.store.get("t.deleted") is not None
    assert filled.open().table_status(T) == Exists()
    assert filled.names() == ["other", "t"]
    filled.backend.protect_table(T)
    assert filled.open().table_status(T) == Exists()
    filled.backend.protect_table(T, protected=False)
    filled.drop("t")
    filled.backend.undrop_table(T)
    assert filled.names() == ["other", "t"]


def _live():
    from mooring.directory.decisions import State

    return State.LIVE


@pytest.mark.parametrize("how", ["undrop", "register", "create", "adopt and undrop"])
def test_protection_outlives_a_foreign_drop(lake, how):
    """Only whoever lifts it ends it; another program knows nothing of it."""
    lake.create("t", [1])
    lake.backend.protect_table(T)
    lake.mark_deregistered("t")
    if how == "adopt and undrop":
        lake.backend.initialize(adopt=True)
    if how == "create":
        lake.create("t", [2])
    elif how == "register":
        lake.backend.register_table(T, "t.lance")
    else:
        lake.backend.undrop_table(T)
    with pytest.raises(ProtectedError):
        lake.open().drop_table(T)
    assert lake.names() == ["t"]


def test_a_table_can_be_created_over_a_foreign_drop(filled, mark):
    """Spec: soft-delete, "create_table ... should clear the marker and write"."""
    mark()
    assert filled.create("t", [9]).version == 2
    assert filled.values("t") == [9]
    assert filled.values("t", version=1) == [1, 2]
    assert filled.names() == ["other", "t"]


def test_a_foreign_drop_can_be_purged(filled, mark):
    mark()
    filled.backend.purge_table(T)
    assert filled.open().table_status(T) == NotFound()
    assert filled.names() == ["other"]
    assert filled.trash() == []
    assert not any(path.startswith("data/") for path in filled.files("t"))
    assert filled.create("t", [9]).version == 2
    assert filled.names() == ["other", "t"]


def test_our_own_nested_marker_is_no_foreign_one(lake):
    """Drops write it for readers of the V1 rules; it counts no more once the chain is past it."""
    lake.create("t", [1])
    lake.drop("t")
    own = lake.store.get("t.lance/.lance-deregistered")
    assert own
    lake.backend.undrop_table(T)
    assert lake.store.get("t.lance/.lance-deregistered") is None
    # A settler that slept may write it again.
    lake.store.put("t.lance/.lance-deregistered", own)
    assert lake.open().table_status(T) == Exists()
    lake.drop("t")
    lake.backend.undrop_table(T)
    assert lake.values("t") == [1]


# -- adoption -------------------------------------------------------------------------------------


def test_adopting_lifts_what_others_left(lake):
    """Deliver 4: "`mooring init --adopt`, which lifts foreign nested markers"."""
    for name in ("live", "inside", "beside"):
        lake.write_elsewhere(name, [1])
    lake.mark_deregistered("inside")
    lake.mark_deleted("beside", JSON_BODY)
    settings = lake.backend.initialize(adopt=True)
    assert settings.adopted
    assert lake.open().settings.adopted
    assert lake.names() == ["live"]
    for name in ("inside", "beside"):
        lake.backend.undrop_table(table_id(name))
        assert lake.values(name) == [1]
    assert lake.names() == ["beside", "inside", "live"]


def test_an_adopted_catalog_is_listed_without_looking_at_its_tables(lake):
    for name in ("a", "b", "c"):
        lake.write_elsewhere(name)
    lake.mark_deregistered("b")
    store = ObservedStore(lake.store)
    assert lake.open(store=store).list_tables(ROOT) == ["a", "c"]
    assert store.counts["existing"] == 1
    lake.backend.initialize(adopt=True)
    store = ObservedStore(lake.store)
    backend = lake.open(store=store)
    store.counts.clear()
    assert backend.list_tables(ROOT) == ["a", "c"]
    # One listing of the root, and where there may be a manifest one look for it.
    assert store.counts == {"list_dir": 2 if lake.kind.manifest else 1}


def test_adopting_again_lifts_what_came_since(lake):
    lake.create("t", [1])
    lake.create("other")
    lake.mark_deregistered("t")
    lake.backend.initialize(adopt=True)
    assert lake.names() == ["other"]
    lake.backend.register_table(T, "t.lance")
    assert lake.names() == ["other", "t"]


def test_adopting_keeps_times_and_authors(lake):
    lake.write_elsewhere("t")
    lake.mark_deleted("t", JSON_BODY)
    lake.open(author="ann").initialize(adopt=True)
    assert lake.backend.table_status(T) == SoftDeleted(DROPPED_AT_MS, DROPPED_AT_MS + DAY_MS)
    (entry,) = lake.backend.table_history(T)
    assert (entry.by, entry.action) == ("ann", "adopt")


def test_adopting_twice_changes_nothing_more(lake):
    lake.write_elsewhere("t")
    lake.mark_deregistered("t")
    first = lake.backend.initialize(adopt=True)
    history = lake.backend.table_history(T)
    again = lake.open().initialize(adopt=True)
    assert again == first
    assert lake.backend.table_history(T) == history


def test_a_new_catalog_is_adopted_from_its_first_write(lake):
    lake.create("t")
    assert lake.open().settings.adopted
    assert lake.open().settings.revision == 1


def test_a_directory_that_others_filled_is_not_adopted_by_a_write(lake):
    lake.write_elsewhere("theirs")
    lake.create("ours")
    # Its format is noted all the same.
    settings = lake.open().settings
    assert (settings.revision, settings.format, settings.adopted) == (1, 1, False)
    assert lake.names() == ["ours", "theirs"]


@pytest.mark.parametrize("passing", ["_mooring-probe.0123456789abcdef", ".mooring-tmp-0123"])
def test_what_another_first_writer_leaves_does_not_keep_a_new_catalog_from_adoption(lake, passing):
    lake.store.put(passing, b"first")
    lake.create("t")
    assert lake.open().settings.adopted
