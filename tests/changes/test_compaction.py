"""Compaction changes no row at any position, whoever else is at work."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest

import mooring
from mooring.changes import Batch, ChangeTable, compaction, create_change_table, merging, rewriting
from mooring.changes.compaction import plan_compaction, policy_of
from mooring.changes.compaction_policy import GATHER, MERGE, CompactionPolicy
from mooring.changes.log import ChangeLog
from mooring.changes.rounds import commit_round
from mooring.changes.tidying import tidy
from mooring.changes.writing import write_changes
from mooring.errors import InvalidInputError, TableNotFoundError, UnreadableError
from mooring.jobs.runner import Threads
from mooring.metastore.layout import DATA_DIR
from mooring.metastore.metastore import Metastore

from .model import KEYS, ORDER, SCHEMA, Model, Row, canonical, has_key, random_batch, to_table

ALWAYS = CompactionPolicy(deltas=1)
FULL = CompactionPolicy(force=True)
GATHERING = CompactionPolicy(level=GATHER)
MERGING = CompactionPolicy(level=MERGE)


@dataclass
class Evolving(Model):
    """A model whose columns may have defaults."""

    defaults: dict[str, Any] = field(default_factory=dict)

    def _append(self, key, row: Row) -> None:
        super()._append(key, {**self.defaults, **row})

    def _upsert(self, key, row: Row) -> None:
        if not key.rows and not self._is_late(key, row):
            key.rows = [{**dict.fromkeys(self.columns), **self.defaults}]
        super()._upsert(key, row)

    def add_column(self, name: str, default: Any) -> None:
        self.columns = (*self.columns, name)
        self.defaults[name] = default
        for key in self.known.values():
            key.rows = [{**row, name: default} for row in key.rows]

    def rename_column(self, name: str, new: str) -> None:
        self.columns = tuple(new if one == name else one for one in self.columns)
        for key in self.known.values():
            key.rows = [{new if one == name else one: row[one] for one in row} for row in key.rows]


def rows_of(table, **at) -> list[Row]:
    return canonical(table.to_arrow(**at).to_pylist())


def files_of(table) -> set[str]:
    """Return the data files that lie there."""
    store = table.catalog.metastore.store
    return {meta.path for meta in store.list_prefix(DATA_DIR)}


def write(table, model: Model, type_: str, rows: list[Row]) -> None:
    table._write(to_table(rows, table.schema), type_, None, None)
    model.apply(type_, rows)


# -- the same rows, whatever is compacted when -----------------------------------------------------

KINDS = {
    "plain": {"keys": KEYS, "partition_by": ["truncate(1, part)"], "buckets": 2},
    "ordered": {"keys": KEYS, "partition_by": ["year(at)"], "buckets": 2, "order": ORDER},
    "sorted": {"keys": KEYS, "buckets": 2, "sort_by": ["-amount", "note"]},
    "without keys": {"partition_by": ["year(at)"], "sort_by": ["weight"]},
}
POLICIES = [
    ALWAYS,
    GATHERING,
    MERGING,
    FULL,
    replace(ALWAYS, ratio=1e9),
    replace(GATHERING, target_bytes=4000),
    replace(MERGING, target_rows=2),
    replace(FULL, target_bytes=2000),
]


def _batch(random_: random.Random, kind: str) -> tuple[str, list[Row]]:
    type_, rows = random_batch(random_, order=kind == "ordered")
    rows = [row for row in rows if has_key(row)]
    if kind == "without keys":
        return "append", rows
    if kind == "sorted":  # which of several rows of a key is the last is up to the sorting
        rows = list({tuple(row[name] for name in KEYS): row for row in rows}.values())
    return type_, rows


@pytest.mark.parametrize(
    ("kind", "is_fine"),
    [
        *((kind, True) for kind in KINDS),
        ("ordered", False),
        *(
            pytest.param(kind, False, marks=pytest.mark.torture)
            for kind in KINDS
            if kind != "ordered"
        ),
    ],
)
def test_random_changes_equal_the_model_at_every_position(lake, kind, is_fine, monkeypatch):
    if is_fine:  # small tables take the ways of large ones
        monkeypatch.setattr(merging, "_WORTHWHILE", 1)
        monkeypatch.setattr(merging, "_MOST_TOUCHED", 1.0)
        monkeypatch.setattr(rewriting, "_SHARED_BYTES", 1)
        monkeypatch.setattr(rewriting, "_LEAST_PART_BYTES", 1)
    schema = SCHEMA.append(pa.field(ORDER, pa.int64())) if kind == "ordered" else SCHEMA
    table = create_change_table(lake, "shop$orders", schema, **KINDS[kind])
    keys = KINDS[kind].get("keys", ())
    model = Evolving(keys, tuple(schema.names), KINDS[kind].get("order"))
    random_, seen, levels = random.Random(11), {0: []}, set()
    while table.position < 24:
        type_, rows = _batch(random_, kind)
        if not rows:
            continue
        write(table, model, type_, rows)
        seen[table.position] = model.rows()
        if random_.random() < 0.3:
            report = table.compact(random_.choice(POLICIES))
            levels |= {one.level for one in report.rounds}
            assert rows_of(table) == seen[table.position]
    assert levels == ({MERGE} if kind == "without keys" else {GATHER, MERGE})
    for position, rows in seen.items():
        assert rows_of(table, position=position) == rows


def test_evolved_columns_are_compacted_by_their_numbers(lake):
    table = create_change_table(lake, "shop$orders", SCHEMA, keys=KEYS, buckets=2)
    model, random_ = Evolving(KEYS, tuple(SCHEMA.names)), random.Random(3)

    def change(count: int) -> None:
        for _ in range(count):
            type_, rows = _batch(random_, "plain")
            renamed = [
                {named.get(name, name): value for name, value in row.items()} for row in rows
            ]
            if rows:
                write(table, model, type_, renamed)

    named: dict[str, str] = {}
    for policy in (GATHERING, MERGING):
        change(6)
        table.compact(policy)
        change(3)
        new = f"extra{len(model.defaults)}"
        table.add_columns([pa.field(new, pa.int32())], {new: 7})
        model.add_column(new, 7)
        write(table, model, "upsert", [{"at": None, "id": 1, "part": "a", new: 8}])
        table.compact(policy)
        assert rows_of(table) == model.rows()
        table.rename_column(named.get("note", "note"), f"text{new}")
        model.rename_column(named.get("note", "note"), f"text{new}")
        named["note"] = f"text{new}"
        change(4)
        table.compact(policy)
        assert rows_of(table) == model.rows()
    table.widen_column("extra0", pa.int64())
    write(table, model, "upsert", [{"at": None, "id": 2, "part": "a", "extra0": 2**40}])
    table.compact(GATHERING)
    assert rows_of(table) == model.rows()
    table.compact(FULL)
    assert rows_of(table) == model.rows()


def test_dropped_column_is_still_read_as_of_a_time_when_it_was_there(orders):
    then = orders.upsert([{"id": 1, "item": "nut", "count": 5}]).txn_id
    orders.drop_columns(["count"])
    orders.upsert([{"id": 2, "item": "bolt"}])
    orders.compact(FULL)
    assert rows_of(orders, txn_id=then) == [{"id": 1, "item": "nut", "count": 5}]
    assert rows_of(orders, position=1) == [{"id": 1, "item": "nut"}]


def test_file_without_a_column_is_not_left_out_for_its_statistics(orders):
    """A gathered file knows nothing of a column that some of its changes do not bring."""
    orders.upsert([{"id": 1, "item": "nut", "count": 5}])
    orders.compact(MERGING)
    orders.add_columns([pa.field("price", pa.int64())], {"price": 7})
    orders.upsert([{"id": 2, "item": "bolt", "count": 1}])
    orders.upsert([{"id": 3, "item": "ring", "count": 1, "price": 100}])
    orders.compact(GATHERING)
    assert [row["id"] for row in rows_of(orders, where="price = 7")] == [1, 2]
    assert [row["id"] for row in rows_of(orders, where="price = 100")] == [3]


# -- what is rewritten -----------------------------------------------------------------------------


def _fill(table, count: int = 64) -> None:
    rows = [{"id": one, "item": f"item {one}", "count": one} for one in range(count)]
    table.upsert(rows)
    table.compact(FULL)


def _base_paths(table) -> dict[int, set[str]]:
    moment = table.at()
    (log,) = moment.partitions.values()
    layers = log.layers(moment.position)
    return {bucket: {one.file.path for one in base} for bucket, (base, _) in layers.items()}


@pytest.mark.parametrize("shared_bytes", [1, 2**20], ids=["a file a bucket", "shared files"])
def test_buckets_that_did_not_change_keep_their_files(orders, shared_bytes, monkeypatch):
    monkeypatch.setattr(rewriting, "_SHARED_BYTES", shared_bytes)
    _fill(orders)
    before, there = _base_paths(orders), files_of(orders)
    orders.upsert([{"id": 1, "item": "other", "count": 0}])
    (plan,) = plan_compaction(orders, MERGING).due
    (changed,) = (read.bucket for read in plan.rewritten)
    (done,) = orders.compact(MERGING).rounds
    assert (done.rewritten, done.kept) == (plan.rewritten_buckets, plan.kept_buckets) == (1, 7)
    after = _base_paths(orders)
    assert {bucket for bucket in before if after[bucket] != before[bucket]} == {changed}
    assert after[changed].isdisjoint(there)
    assert orders.count() == 64


def test_small_changes_on_a_large_base_are_gathered_until_they_are_many(orders):
    _fill(orders, 5000)
    for number in range(10):
        orders.upsert([{"id": number, "item": "other", "count": -1}])
    (first,) = orders.compact(CompactionPolicy(ratio=0.5)).rounds
    assert (first.level, first.deltas) == (GATHER, 10)
    orders.upsert([{"id": one, "item": "third", "count": -2} for one in range(2500)])
    (second,) = orders.compact(ALWAYS).rounds
    assert (second.level, second.after, second.through) == (MERGE, 12 - 1, 12)
    expected = [-2] * 2500 + list(range(2500, 5000))
    assert sorted(orders.to_arrow()["count"].to_pylist()) == sorted(expected)


def test_gathered_changes_are_few_files(orders):
    _fill(orders)
    for number in range(20):
        orders.upsert([{"id": number, "count": -1}])
    orders.compact(GATHERING)
    (log,) = orders.at().partitions.values()
    assert len(log.bases[-1].files) == len(log.bases[-2].files) + 1
    assert not log.deltas_between(log.bases[-1].through, orders.position)


def test_large_changes_are_not_copied_when_others_are_gathered(orders):
    _fill(orders)
    orders.upsert([{"id": one, "count": -one} for one in range(50)])
    orders.upsert([{"id": 3, "count": 3000}])
    (large, small) = (delta for log in orders.at().partitions.values() for delta in log.deltas[-2:])
    policy = replace(GATHERING, target_bytes=2 * large.files[0].size_bytes)
    assert small.files[0].size_bytes < large.files[0].size_bytes
    orders.upsert([{"id": 4, "count": 4000}])
    (plan,) = plan_compaction(orders, policy).due
    assert plan.referenced == (large.position,)
    orders.compact(policy)
    found = {row["id"]: row["count"] for row in rows_of(orders)}
    assert (found[3], found[4], found[5], found[60]) == (3000, 4000, -5, 60)


def test_large_results_are_divided(orders):
    _fill(orders, 200)
    orders.compact(replace(FULL, target_rows=10))
    (log,) = orders.at().partitions.values()
    assert all(file.rows <= 10 for file in log.bases[-1].files)
    assert orders.count() == 200


def test_table_without_keys_keeps_large_files_and_puts_small_ones_together(lake):
    table = create_change_table(lake, "shop$log", SCHEMA, buckets=1)
    big = [{"id": one, "note": f"{one * 7919 % 10007}"} for one in range(3000)]
    table.append(big)
    (log,) = table.at().partitions.values()
    (large,) = log.deltas[0].files
    for number in range(12):
        table.append([{"id": number}])
    (plan,) = plan_compaction(table, CompactionPolicy(target_bytes=large.size_bytes)).due
    assert [file.path for file in plan.kept] == [large.path]
    assert plan.referenced == (1,)
    table.compact(CompactionPolicy(target_bytes=large.size_bytes))
    (log,) = table.at().partitions.values()
    assert len(log.bases[-1].files) == 2
    assert table.count() == 3012
    table.compact(replace(FULL, target_bytes=large.size_bytes // 3))
    (log,) = table.at().partitions.values()
    assert large.path not in {file.path for file in log.bases[-1].files}
    assert len(log.bases[-1].files) >= 3
    assert table.count() == 3012


def test_file_that_groups_share_is_packed_with_all_of_its_rows(lake):
    table = create_change_table(lake, "shop$log", pa.schema([("id", pa.int64())]))
    for number in range(15):
        table.append(pa.table({"id": [number]}))
        if number in {4, 8}:
            table.compact(CompactionPolicy(level=MERGE, target_bytes=1500))
    for _ in range(3):
        table.compact(CompactionPolicy(level=MERGE, target_bytes=1500))
        assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(15))


def test_late_change_is_refused_after_its_deletion_was_compacted(lake):
    schema = pa.schema([("id", pa.int64()), ("v", pa.string()), ("seen", pa.int64())])
    table = create_change_table(lake, "shop$events", schema, keys=["id"], order="seen")
    table.upsert([{"id": 1, "v": "a", "seen": 1}, {"id": 2, "v": "b", "seen": 1}])
    table.delete([{"id": 1, "seen": 5}])
    for policy in (GATHERING, MERGING, FULL):
        table.compact(policy)
        table.upsert([{"id": 1, "v": "late", "seen": 4}])
        assert rows_of(table) == [{"id": 2, "v": "b", "seen": 1}]
    table.upsert([{"id": 1, "v": "new", "seen": 5}])
    table.compact(FULL)
    assert [row["v"] for row in rows_of(table)] == ["new", "b"]


# -- when ------------------------------------------------------------------------------------------


def test_limits_come_from_arguments_then_properties_then_usual_values(lake):
    table = create_change_table(
        lake,
        "shop$few",
        SCHEMA,
        keys=KEYS,
        properties={"compaction.deltas": "3", "compaction.bytes": "1000000"},
    )
    assert policy_of(table) == CompactionPolicy(deltas=3, bytes=1_000_000)
    assert policy_of(table, deltas=5, level=None).deltas == 5
    for number in range(3):
        assert not table.compact().rounds
        table.upsert([{"at": None, "id": number, "part": None}])
    assert len(table.compact().rounds) == 1


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("deltas", "many", "is a number"),
        ("delta", "3", "no property"),
        ("files", "0", "at least 1"),
    ],
)
def test_properties_that_make_no_sense_are_refused(lake, name, value, told):
    properties = {f"compaction.{name}": value}
    with pytest.raises(InvalidInputError, match=told):
        create_change_table(lake, "shop$odd", SCHEMA, keys=KEYS, properties=properties)
    table = create_change_table(lake, "shop$odd", SCHEMA, keys=KEYS)
    lake.update_table("shop$odd", properties)
    with pytest.raises(InvalidInputError, match=told):
        table.compact()


@pytest.mark.parametrize(
    "policy",
    [CompactionPolicy(files=2), CompactionPolicy(bytes=800), CompactionPolicy(deltas=2)],
    ids=["files", "bytes", "deltas"],
)
def test_each_limit_makes_a_round_due(orders, policy):
    orders.upsert([{"id": 1}])
    assert not plan_compaction(orders, policy).due
    orders.upsert([{"id": 2}])
    assert [one.deltas for one in plan_compaction(orders, policy).due] == [2]


def test_nothing_is_written_where_nothing_changed(orders):
    assert not orders.compact(FULL).rounds
    orders.upsert([{"id": 1}])
    assert orders.compact(ALWAYS).rounds
    before = files_of(orders)
    assert not orders.compact(ALWAYS).rounds
    assert not orders.compact(MERGING).rounds
    assert files_of(orders) == before


def test_rounds_are_recorded(orders):
    for number in range(3):
        orders.upsert([{"id": number}, {"id": 100 + number}])
    heard = []
    report = orders.compact(ALWAYS, on_done=heard.append)
    orders.delete([{"id": 0}])
    orders.compact(MERGING)
    assert list(report.rounds) == heard
    newest, first = orders.rounds()
    assert (first.after, first.through, first.round, first.deltas) == (0, 3, 1, 3)
    assert (first.rows_in, first.rows_out, first.level, first.kind) == (6, 6, MERGE, "compaction")
    assert (newest.after, newest.through, newest.round, newest.rewritten) == (3, 4, 2, 1)
    assert newest.rows_out == newest.rows_in - 2
    assert first.bytes_out > 0
    assert first.by == orders.catalog.metastore.author
    assert first.at_ms <= newest.at_ms
    assert replace(heard[0], seconds=0) == replace(first, seconds=0)


# -- beside others ---------------------------------------------------------------------------------


class Meanwhile(Threads):
    """Does something after the buckets are read and before anything is committed."""

    def __init__(self, act) -> None:
        super().__init__(1)
        self._act = act

    def run(self, work, items, *, label="", on_done=None):
        found = super().run(work, items, label=label)
        act, self._act = self._act, lambda: None
        act()
        for one in found:
            on_done(one)
        return found


@pytest.fixture
def attempts(monkeypatch):
    """Count how often transactions are begun that change something."""
    begun = []
    begin = Metastore.begin

    def counted(self, *, message=None, at=None):
        begun.append(message)
        return begin(self, message=message, at=at)

    monkeypatch.setattr(Metastore, "begin", counted)
    return begun


def test_change_that_comes_meanwhile_is_carried_over(orders):
    _fill(orders)
    orders.upsert([{"id": 1, "item": "second", "count": 2}])

    def act() -> None:
        orders.upsert([{"id": 1, "item": "third", "count": 3}])
        orders.delete([{"id": 2}])

    (done,) = orders.compact(MERGING, runner=Meanwhile(act)).rounds
    assert (done.through, orders.position) == (2, 4)
    found = {row["id"]: row["item"] for row in rows_of(orders)}
    assert found[1] == "third"
    assert 2 not in found
    assert len(found) == 63
    assert {row["id"]: row["item"] for row in rows_of(orders, position=2)}[1] == "second"


def test_writer_is_never_in_the_way(orders, attempts, monkeypatch):
    """A write that is committed while the round's transaction is under way changes nothing."""
    _fill(orders)
    orders.upsert([{"id": 1, "item": "second", "count": 2}])
    attempts.clear()
    taking = compaction.commit_round.__globals__["partition_at"]

    def beaten_to_it(txn, *args):
        found = taking(txn, *args)
        orders.upsert([{"id": 1, "item": "third", "count": 3}])
        return found

    monkeypatch.setitem(commit_round.__globals__, "partition_at", beaten_to_it)
    assert len(orders.compact(MERGING).rounds) == 1
    assert attempts.count("compact shop$orders") == 1
    assert orders.position == 3


def test_second_compactor_gives_up_and_deletes_its_files(orders):
    _fill(orders)
    orders.upsert([{"id": 1, "item": "second", "count": 2}])
    others: list[set[str]] = []

    def act() -> None:
        assert orders.compact(MERGING).rounds
        others.append(files_of(orders))

    report = orders.compact(MERGING, runner=Meanwhile(act))
    assert (report.rounds, report.beaten) == ((), 1)
    named = {file.path for log in orders.at().partitions.values() for file in log.bases[-1].files}
    assert named <= files_of(orders) < others[0]
    assert [one.round for one in orders.rounds()] == [2, 1]
    assert orders.count() == 64


def test_round_behind_a_smaller_one_is_still_good(orders):
    """Another compactor came less far: its round and this one both count."""
    _fill(orders)
    orders.upsert([{"id": 1, "item": "second", "count": 2}])
    less = orders.at()
    orders.upsert([{"id": 2, "item": "third", "count": 3}])

    def act() -> None:
        work = compaction._Work(
            orders,
            (plan := plan_compaction(orders, MERGING, less)),
            list(plan.due),
            runner=Threads(1),
            on_done=None,
        )
        work.run()
        assert [one.through for one in work.rounds] == [2]

    (done,) = orders.compact(MERGING, runner=Meanwhile(act)).rounds
    assert (done.through, done.round) == (3, 3)
    assert {row["id"]: row["item"] for row in rows_of(orders)}[2] == "third"
    assert {row["id"]: row["item"] for row in rows_of(orders, position=2)}[2] == "item 2"


def test_table_that_was_dropped_meanwhile_is_left_alone(orders):
    _fill(orders)
    orders.upsert([{"id": 1, "item": "second", "count": 2}])
    before = files_of(orders)
    with pytest.raises(TableNotFoundError, match="dropped"):
        orders.compact(MERGING, runner=Meanwhile(lambda: orders.catalog.drop_table(orders.id)))
    assert files_of(orders) == before


def test_files_that_a_vacuum_gave_up_are_written_again(orders):
    _fill(orders)
    orders.upsert([{"id": 1, "item": "second", "count": 2}])

    def act() -> None:
        assert orders.catalog.metastore.vacuum(older_than_ms=-60_000)

    report = orders.compact(MERGING, runner=Meanwhile(act))
    assert (len(report.rounds), report.beaten) == (1, 1)
    assert orders.count() == 64


def test_round_that_fails_deletes_what_it_wrote(lake):
    table = create_change_table(
        lake, "shop$parted", SCHEMA, keys=KEYS, partition_by=["part"], buckets=1
    )
    for number in range(3):
        table.upsert([{"at": None, "id": number, "part": part} for part in "ab"])
    damaged = next(one for one in table.at().partitions.values() if one.values == ("b",))
    store = lake.metastore.store
    store.delete([damaged.deltas[1].files[0].path])
    before = files_of(table)
    with pytest.raises(UnreadableError, match="is gone"):
        table.compact(ALWAYS, runner=Threads(1))
    # The partition that was done before is committed: no work is lost.
    (done,) = table.rounds()
    assert done.values == ("a",)
    (base,) = (log.bases[-1] for log in table.at().partitions.values() if log.values == ("a",))
    assert files_of(table) - before == {file.path for file in base.files}


def test_round_that_was_interrupted_after_it_happened_keeps_its_files(orders, monkeypatch):
    orders.upsert([{"id": 1, "item": "first", "count": 1}])
    orders.upsert([{"id": 1, "item": "second", "count": 2}])
    expected = rows_of(orders)
    commit = Metastore.run

    def interrupted(*args, **kwargs):
        commit(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(Metastore, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        orders.compact(MERGING)
    monkeypatch.undo()
    assert orders.rounds()
    assert rows_of(orders) == expected


def test_several_tables_and_partitions_are_compacted_beside_a_run_over_both(lake):
    tables = [
        create_change_table(lake, f"shop${name}", SCHEMA, keys=KEYS, partition_by=["part"])
        for name in ("one", "two")
    ]
    for number in range(12):
        rows = [{"at": None, "id": number, "part": part} for part in "abc"]
        write_changes(lake, [Batch(one.id, rows, "upsert") for one in tables])
    for table in tables:
        assert len(table.compact().rounds) == 3
        assert table.count() == 36
    fresh = ChangeTable(mooring.connect(lake.uri), "shop$one")
    assert [one.values for one in fresh.rounds()] == [("a",), ("b",), ("c",)]


def test_reader_that_looked_before_a_tidy_does_not_miss_what_it_deleted(orders, monkeypatch):
    """Another thread of this process knows more by the time that changes are looked up."""
    _fill(orders)
    look = ChangeLog.look

    def tidied_meanwhile(self, state):
        monkeypatch.undo()
        orders.upsert([{"id": 1, "item": "new", "count": 0}])
        orders.compact(FULL)
        tidy(orders, keep=orders.position)
        orders.at()
        return look(self, state)

    monkeypatch.setattr(ChangeLog, "look", tidied_meanwhile)
    moment = orders.at()
    assert moment.position == 2
    assert sum(one.num_rows for one in orders.to_batches(moment=moment)) == 64
    monkeypatch.setattr(ChangeLog, "look", tidied_meanwhile)
    with pytest.raises(InvalidInputError, match="tidied away"):
        orders.at(2)
