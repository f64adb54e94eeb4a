"""Upserts, appends and deletions by key at once: no key is ever there twice."""

from __future__ import annotations

import threading
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mooring
from mooring.errors import ConflictError
from mooring.ingest import ingest, landing
from mooring.tables import upserts
from mooring.tables.transactions import read_transaction

KINDS = ("v1", "v2", "metastore")
# One kind in the fast suite; they differ in who takes the number.
LATE_KINDS = (
    "v2",
    pytest.param("v1", marks=pytest.mark.interop),
    pytest.param("metastore", marks=pytest.mark.interop),
)


def connect(kind, root):
    """Open a catalog as another process would; return it with the name of a table."""
    if kind == "v1":
        return mooring.connect(root, manifest_enabled=False), "t"
    catalog = mooring.connect(root if kind == "v2" else f"metastore+{root}")
    catalog.create_namespace("a", mode="exist_ok")
    return catalog, "a$t"


def write(path, keys, value):
    pq.write_table(pa.table({"id": pa.array(keys, pa.int64()), "v": [value] * len(keys)}), path)
    return str(path)


def at_once(*works):
    """Do several things at once; return what each raised, or None."""
    barrier = threading.Barrier(len(works))
    raised = [None] * len(works)

    def do(number, work):
        barrier.wait()
        try:
            work()
        except Exception as exc:  # noqa: BLE001  # it is looked at below
            raised[number] = exc

    threads = [threading.Thread(target=do, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def files_of(table):
    place = table.handle.place
    return {
        meta.path.removeprefix(f"{place.directory}/")
        for meta in place.store.list_prefix(place.directory)
    }


def check_whole(table, keys=None):
    """Check that no key is there twice and that no file belongs to nobody."""
    rows = table.to_arrow()
    found = rows["id"].to_pylist()
    assert len(found) == len(set(found)), sorted(k for k in found if found.count(k) > 1)
    if keys is not None:
        assert set(found) == set(keys)
    known_data, known_deletions = set(), set()
    for record in table.versions():
        for fragment in table.to_lance(record.version).get_fragments():
            known_data |= {file.path for file in fragment.metadata.files}
            known_deletions.add(fragment.deletion_file())
    left = files_of(table)
    assert {name.removeprefix("data/") for name in left if name.startswith("data/")} <= known_data
    assert {name for name in left if name.startswith("_deletions/")} <= known_deletions
    kept = [name for name in left if name.startswith("_transactions/")]
    assert len(kept) <= len(table.versions())
    assert not [name for name in left if ".manifest-" in name or name.startswith("_pending")]
    return rows


def race(kind, tmp_path, rounds):
    root = str(tmp_path / kind)
    catalog, name = connect(kind, root)
    ours, theirs = connect(kind, root)[0], connect(kind, root)[0]
    ingest(catalog, write(tmp_path / "first.parquet", range(5), "first"), name)
    for number in range(rounds):
        fresh = range(10 * number, 10 * number + 12)
        one = write(tmp_path / "one.parquet", fresh, f"one {number}")
        two = write(tmp_path / "two.parquet", fresh, f"two {number}")
        yield catalog, name, ours, theirs, one, two, fresh


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.torture
def test_two_upserts_at_once_leave_each_key_once(kind, tmp_path):
    for catalog, name, ours, theirs, one, two, fresh in race(kind, tmp_path, 12):
        raised = at_once(
            partial(ingest, ours, one, name, mode="upsert", key="id"),
            partial(ingest, theirs, two, name, mode="upsert", key="id"),
        )
        assert raised == [None, None]
        rows = check_whole(catalog.table(name)).to_pylist()
        # Both changed the same rows, so one of them has all.
        assert len({row["v"] for row in rows if row["id"] in fresh}) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.torture
def test_an_upsert_and_an_append_at_once_leave_each_key_once(kind, tmp_path):
    for catalog, name, ours, theirs, one, two, fresh in race(kind, tmp_path, 12):
        # A table of its own, which has no key yet.
        name = f"{name}{fresh[0]}"  # noqa: PLW2901  # see above
        ingest(catalog, write(tmp_path / "first.parquet", fresh[:2], "first"), name)
        raised = at_once(
            partial(ingest, ours, one, name, mode="upsert", key="id"),
            partial(ingest, theirs, two, name),
        )
        assert raised[0] is None
        assert raised[1] is None or isinstance(raised[1], ConflictError)
        rows = check_whole(catalog.table(name)).to_pylist()
        # The upsert is whole: the append was before it, or was refused.
        assert {row["v"] for row in rows if row["id"] in fresh} == {rows_value(one)}


def rows_value(path):
    return pq.read_table(path)["v"][0].as_py()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.torture
def test_two_appends_at_once_into_a_table_with_a_key_leave_each_key_once(kind, tmp_path):
    for catalog, name, ours, theirs, one, two, _ in race(kind, tmp_path, 8):
        seed = write(tmp_path / "seed.parquet", [-1], "seed")
        ingest(catalog, seed, name, mode="upsert", key="id")
        raised = at_once(
            partial(ingest, ours, one, name, on_conflict="reject", max_rejects=100),
            partial(ingest, theirs, two, name, on_conflict="reject", max_rejects=100),
        )
        assert raised == [None, None]
        check_whole(catalog.table(name))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.torture
def test_a_deletion_and_an_upsert_at_once_do_both_or_one_after_the_other(kind, tmp_path):
    for catalog, name, ours, theirs, one, two, fresh in race(kind, tmp_path, 8):
        raised = at_once(
            partial(ingest, ours, one, name, mode="upsert", key="id"),
            partial(ingest, theirs, two, name, mode="delete", key="id"),
        )
        assert raised == [None, None]
        found = [row for row in check_whole(catalog.table(name)).to_pylist() if row["id"] in fresh]
        assert len(found) in {0, len(fresh)}


@pytest.mark.parametrize("kind", LATE_KINDS)
def test_the_key_of_an_upsert_is_seen_by_an_append_that_began_before(kind, tmp_path, monkeypatch):
    """The last moment: the append has written all, and takes its number after the upsert."""
    root = str(tmp_path / "lake")
    catalog, name = connect(kind, root)
    other = connect(kind, root)[0]
    ingest(catalog, write(tmp_path / "first.parquet", range(5), "first"), name)
    one = write(tmp_path / "one.parquet", range(3, 9), "one")
    two = write(tmp_path / "two.parquet", range(3, 9), "two")
    commit, entered = landing.commit, []

    def late(*args, **options):
        if not entered:
            entered.append(True)
            ingest(other, one, name, mode="upsert", key="id")
        return commit(*args, **options)

    monkeypatch.setattr(landing, "commit", late)
    with pytest.raises(ConflictError, match=r"id=3; id=4.*--mode upsert"):
        ingest(catalog, two, name)
    rows = check_whole(catalog.table(name), range(9)).to_pylist()
    assert {row["v"] for row in rows if row["id"] > 2} == {"one"}


@pytest.mark.parametrize("kind", LATE_KINDS)
@pytest.mark.parametrize(
    ("mode", "keys", "updated"),
    [
        ("upsert", [3, 70], 3),
        ("upsert", [70], 3),  # Lance sees rows added in other fragments, and no conflict
        ("append", [80, 90], 2),
        ("delete", [3, 70], 1),
        ("delete", [4], 2),
    ],
)
def test_what_comes_between_makes_an_upsert_look_again(
    kind, mode, keys, updated, tmp_path, monkeypatch
):
    root = str(tmp_path / "lake")
    catalog, name = connect(kind, root)
    other = connect(kind, root)[0]
    ingest(catalog, write(tmp_path / "first.parquet", range(5), "first"), name)
    one = write(tmp_path / "one.parquet", [2, 3, 70], "one")
    between = write(tmp_path / "two.parquet", keys, "two")
    commit, entered = upserts.commit, []

    def late(*args, **options):
        if not entered:
            entered.append(True)
            key = {} if mode == "append" else {"key": "id"}
            ingest(other, between, name, mode=mode, **key)
        return commit(*args, **options)

    monkeypatch.setattr(upserts, "commit", late)
    report = ingest(catalog, one, name, mode="upsert", key="id")
    expected = {0, 1, 2, 3, 4, 70}
    expected = expected - set(keys) | {3, 70} if mode == "delete" else expected | set(keys)
    rows = check_whole(catalog.table(name), expected).to_pylist()
    assert {row["id"] for row in rows if row["v"] == "one"} == {2, 3, 70}
    assert (report.rows_updated, report.rows_inserted) == (updated, 3 - updated)


@pytest.mark.parametrize("kind", LATE_KINDS)
def test_two_upserts_that_only_insert_do_not_both_insert(kind, tmp_path, monkeypatch):
    """Lance takes both for appends, which never conflict."""
    root = str(tmp_path / "lake")
    catalog, name = connect(kind, root)
    other = connect(kind, root)[0]
    ingest(catalog, write(tmp_path / "first.parquet", range(5), "first"), name)
    one = write(tmp_path / "one.parquet", [70, 71], "one")
    two = write(tmp_path / "two.parquet", [71, 72], "two")
    commit, entered = upserts.commit, []

    def late(*args, **options):
        if not entered:
            entered.append(True)
            ingest(other, two, name, mode="upsert", key="id")
        return commit(*args, **options)

    monkeypatch.setattr(upserts, "commit", late)
    assert ingest(catalog, one, name, mode="upsert", key="id").rows_updated == 1
    check_whole(catalog.table(name), [*range(5), 70, 71, 72])


def test_compaction_and_indexes_meanwhile_do_not_hinder_an_upsert(tmp_path, monkeypatch):
    catalog, name = connect("v2", str(tmp_path / "lake"))
    for number in range(3):
        ingest(catalog, write(tmp_path / "s.parquet", range(5 * number, 5 * number + 5), "s"), name)
    one = write(tmp_path / "one.parquet", [2, 70], "one")
    commit, tries = upserts.commit, []

    def late(*args, **options):
        tries.append(True)
        if len(tries) == 1:
            catalog.table(name).indexes.create("id", "btree")
        if len(tries) == 2:
            catalog.table(name).compact()
        return commit(*args, **options)

    monkeypatch.setattr(upserts, "commit", late)
    ingest(catalog, one, name, mode="upsert", key="id")
    assert len(tries) == 1
    ingest(catalog, one, name, mode="upsert", key="id")
    check_whole(catalog.table(name), [*range(15), 70])
    assert len(tries) >= 2
    made = read_transaction(
        catalog.table(name).handle,
        catalog.table(name).to_lance(),
        catalog.table(name).version,
        None,
    )
    assert made.operation == "Update"
