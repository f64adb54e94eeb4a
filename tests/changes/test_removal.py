"""Truncate, replace and delete by a condition: what goes, what stays, and whom they meet."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mooring
from mooring.changes import create_change_table, removal
from mooring.changes.compaction_policy import CompactionPolicy
from mooring.changes.tidying import tidy
from mooring.errors import (
    ConcurrentModificationError,
    ConflictError,
    InvalidInputError,
    TableSchemaValidationError,
)
from mooring.jobs.runner import Threads
from tests.changes.conditions import random_condition
from tests.changes.model import canonical

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("v", pa.int64())])


@pytest.fixture
def keyed(lake):
    table = create_change_table(
        lake, "shop$keyed", SCHEMA, keys=["id", "part"], partition_by=["part"], buckets=3
    )
    table.upsert([_row(n) for n in range(20)])
    return table


@pytest.fixture
def plain(lake):
    table = create_change_table(lake, "shop$plain", SCHEMA, partition_by=["part"])
    for start in (0, 100, 200):
        table.append([{**_row(n), "v": start + n} for n in range(10)])
    return table


def _row(n):
    return {"id": n, "part": "ab"[n % 2], "v": n}


def _values(table, **options):
    return sorted(table.to_arrow(**options)["v"].to_pylist())


def test_truncate_removes_all_rows_and_older_positions_keep_them(keyed):
    landed = keyed.truncate(message="enough")
    assert (landed.position, landed.is_new) == (2, True)
    assert keyed.count() == 0
    assert keyed.to_arrow(position=1).num_rows == 20
    keyed.upsert([_row(3)])
    assert _values(keyed) == [3]


def test_truncate_of_a_partition_leaves_the_others(keyed):
    keyed.truncate([("a",)])
    assert _values(keyed) == list(range(1, 20, 2))
    with pytest.raises(
        InvalidInputError, match=r"zz is not among the partitions .*: they are a, b"
    ):
        keyed.truncate([("zz",)])
    assert keyed.position == 2


def test_a_named_truncate_happens_once(keyed):
    first = keyed.truncate(run="monthly")
    keyed.upsert([_row(1)])
    again = keyed.truncate(run="monthly")
    assert (again.position, again.is_new) == (first.position, False)
    assert _values(keyed) == [1]


def test_replace_puts_rows_in_the_place_of_all(keyed):
    keyed.replace([_row(50), _row(51)])
    assert _values(keyed) == [50, 51]
    assert keyed.to_arrow(position=1).num_rows == 20


def test_replace_of_touched_partitions_leaves_the_others(keyed):
    landed = keyed.replace([{**_row(50), "v": 7}, _row(52)], only_touched=True, run="r")
    assert _values(keyed) == sorted([7, 52, *range(1, 20, 2)])
    assert keyed.replace([_row(99)], run="r").position == landed.position


def test_replace_of_chosen_partitions_refuses_rows_of_others(keyed):
    with pytest.raises(InvalidInputError, match="rows fall into partition b, which is not"):
        keyed.replace([_row(1)], partitions=[("a",)])
    keyed.replace([_row(2)], partitions=[("a",), ("b",)])
    assert _values(keyed) == [2]


@pytest.mark.parametrize(
    ("rows", "error", "why"),
    [
        ([_row(1), _row(1)], ConflictError, "have the same id, part"),
        (pa.table({"v": [1]}), InvalidInputError, "lack 'id', 'part' of its merge keys"),
        (
            pa.table({"id": [1], "part": ["a"], "w": [1]}),
            TableSchemaValidationError,
            "no column 'w'",
        ),
    ],
)
def test_replace_refuses_bad_rows_and_changes_nothing(keyed, rows, error, why):
    with pytest.raises(error, match=why):
        keyed.replace(rows)
    assert (keyed.count(), keyed.position) == (20, 1)


def test_delete_where_deletes_what_is_true_and_not_what_is_null(keyed):
    keyed.upsert([{"id": 90, "part": "a", "v": None}])
    landed = keyed.delete_where("v < 5 OR v = 11", message="low")
    assert (landed.rows, landed.position) == (6, 3)
    assert keyed.count() == 15
    assert keyed.count("v IS NULL") == 1
    again = keyed.delete_where("v < 5")
    assert (again.rows, again.is_new, keyed.position) == (0, False, 3)


def test_delete_where_leaves_other_rows_of_the_same_key(keyed):
    keyed.append([{**_row(3), "v": 300}, {**_row(3), "v": 301}])
    keyed.delete_where("v = 3 OR v = 301")
    assert _values(keyed, where="id = 3") == [300]
    assert keyed.count() == 20


def test_delete_where_of_a_table_without_keys_keeps_untouched_files(plain):
    before = _paths(plain)
    landed = plain.delete_where("v BETWEEN 100 AND 103 AND part = 'a'")
    assert landed.rows == 2
    assert plain.count() == 28
    after = _paths(plain)
    assert len(before & after) == 5
    assert len(after - before) == 1
    assert plain.to_arrow(position=3).num_rows == 30
    plain.append([_row(1)])
    plain.delete_where("v >= 0")
    assert plain.count() == 0


def _paths(table):
    pieces = [piece for read in table.plan().buckets for piece in read.pieces]
    return {piece.file.path for piece in pieces}


def test_a_named_deletion_happens_once(keyed, plain):
    for table in (keyed, plain):
        first = table.delete_where("id = 2", run="gone")
        table.append([_row(2)])
        again = table.delete_where("id = 2", run="gone")
        assert (again.position, again.is_new) == (first.position, False)
        assert table.count("id = 2") == 1


class _Meanwhile(Threads):
    """Does something between the search and the commit."""

    def __init__(self, *acts):
        super().__init__(1)
        self._acts = list(acts)
        self.searched = []

    def run(self, work, items, **options):
        found = super().run(work, items, **options)
        self.searched.append(len(items))
        if self._acts:
            self._acts.pop(0)()
        return found


@pytest.mark.parametrize("name", ["keyed", "plain"])
def test_rows_that_come_meanwhile_are_searched_too(request, name):
    table = request.getfixturevalue(name)
    runner = _Meanwhile(lambda: table.append([{"id": 77, "part": "a", "v": 4}]))
    landed = table.delete_where("v = 4", runner=runner)
    assert landed.rows == 2
    assert table.count("v = 4") == 0
    assert len(runner.searched) == 2


@pytest.mark.parametrize("name", ["keyed", "plain"])
def test_changes_elsewhere_are_not_in_the_way(request, name):
    table = request.getfixturevalue(name)
    runner = _Meanwhile(lambda: table.append([{"id": 77, "part": "b", "v": 4}]))
    table.delete_where("part = 'a'", runner=runner)
    assert len(runner.searched) == 1
    assert set(table.to_arrow()["part"].to_pylist()) == {"b"}


@pytest.mark.parametrize("name", ["keyed", "plain"])
def test_a_truncate_and_a_replacement_meanwhile_are_seen(request, name):
    table = request.getfixturevalue(name)
    replace = _Meanwhile(lambda: table.replace([_row(4), _row(5)]))
    assert table.delete_where("v <= 4", runner=replace).rows == 1
    assert _values(table) == [5]
    assert table.delete_where("v = 5", runner=_Meanwhile(table.truncate)).rows == 0


def test_a_compaction_and_a_tidy_meanwhile_lose_nothing(plain):
    def compact():
        plain.compact(CompactionPolicy(force=True))
        tidy(plain, keep=plain.position)

    assert plain.delete_where("v = 4", runner=_Meanwhile(compact)).rows == 1
    assert plain.count() == 29


def test_columns_that_change_meanwhile_are_seen(keyed):
    def rename():
        keyed.rename_column("v", "w")
        keyed.add_columns([pa.field("v", pa.int64())], {"v": 9})

    assert keyed.delete_where("v = 4", runner=_Meanwhile(rename)).is_new is False
    assert keyed.count() == 20


def test_rows_that_change_all_the_time_are_given_up(keyed, monkeypatch, tmp_path):
    monkeypatch.setattr(removal, "_ATTEMPTS", 3)
    files = sorted((tmp_path / "lake" / "_data").iterdir())
    acts = [lambda: keyed.upsert([_row(4)])] * 3
    with pytest.raises(ConcurrentModificationError, match="changes all the time"):
        keyed.delete_where("v = 4 or v = 3", runner=_Meanwhile(*acts))
    assert keyed.count() == 20
    # Of the search nothing is left: each upsert has a directory of its own.
    assert len(list((tmp_path / "lake" / "_data").iterdir())) == len(files) + 3


VALUES = {"id": [0, 1, 2, 3], "part": [None, "a", "b"], "v": [None, *range(5)]}


def _delete_at_random(directory, seed):
    random_ = random.Random(seed)
    lake = mooring.connect(f"metastore+{directory / str(seed)}")
    lake.create_namespace("shop")
    keys = random_.choice([["id", "part"], []])
    order = random_.choice([None, "v"]) if keys else None
    table = create_change_table(
        lake,
        "shop$t",
        SCHEMA,
        keys=keys,
        order=order,
        partition_by=["part"] * random_.randint(0, 1),
    )
    for _ in range(4):
        rows = [{name: random_.choice(values) for name, values in VALUES.items()} for _ in range(6)]
        if keys and random_.random() < 0.6:
            table.upsert(list({(row["id"], row["part"]): row for row in rows}.values()))
        else:
            table.append(rows)
        if random_.random() < 0.3:
            table.compact(CompactionPolicy(force=True))
        before = table.to_arrow().to_pylist()
        text, meaning = random_condition(random_, VALUES, depth=1)
        landed = table.delete_where(text)
        left = [row for row in before if meaning(row) is not True]
        assert canonical(table.to_arrow().to_pylist()) == canonical(left), text
        assert landed.rows == len(before) - len(left)


def test_what_is_left_is_what_a_model_leaves(tmp_path):
    for seed in range(4):
        _delete_at_random(tmp_path, seed)


@pytest.mark.interop
@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(1000, 2**31))
def test_what_is_left_is_what_a_model_leaves_in_many_tables(tmp_path_factory, seed):
    _delete_at_random(tmp_path_factory.mktemp("tables"), seed)


@pytest.mark.interop
@pytest.mark.parametrize("name", ["keyed", "plain"])
def test_deletions_beside_writers_and_a_compactor(request, name):
    """At the position of a deletion no row is left that it was about."""
    table = request.getfixturevalue(name)
    over = threading.Event()

    def write(seed):
        random_ = random.Random(seed)
        for _ in range(40):
            rows = {
                n: {**_row(n), "v": random_.randint(0, 9)} for n in random_.sample(range(20), 4)
            }
            (table.upsert if name == "keyed" else table.append)(list(rows.values()))

    def tidy_up():
        while not over.is_set():
            table.compact(CompactionPolicy(deltas=5))
            tidy(table, keep=max(0, table.position - 500))

    def delete():
        found = []
        for number in range(12):
            text = f"v = {number % 10}" + (" AND part = 'a'" if number % 3 else "")
            found.append((text, table.delete_where(text)))
        return found

    with ThreadPoolExecutor(4) as pool:
        others = [*(pool.submit(write, seed) for seed in (1, 2)), pool.submit(tidy_up)]
        try:
            deleted = delete()
            for one in others[:2]:
                one.result()
        finally:
            over.set()
        others[2].result()
    assert any(landed.is_new for _, landed in deleted)
    for text, landed in deleted:
        if landed.is_new:
            assert table.to_arrow(position=landed.position, where=text).num_rows == 0, text
