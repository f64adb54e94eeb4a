"""Conditions: how they are read, what they mean, and that nothing is left out which they mean."""

from __future__ import annotations

import datetime as dt
import pickle
import random
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mooring
from mooring.changes import create_change_table
from mooring.changes.compaction_policy import CompactionPolicy
from mooring.changes.definition import Definition
from mooring.changes.log import Piece
from mooring.changes.plan import BucketRead
from mooring.changes.predicates import parse_predicate
from mooring.errors import InvalidInputError
from mooring.metastore import DataFile, DeltaType, Segment
from tests.changes.conditions import random_condition
from tests.changes.model import canonical, to_table

TABLE = Definition.make(
    pa.schema(
        [
            ("a", pa.int64()),
            ("b", pa.string()),
            ("f", pa.float32()),
            ("t", pa.timestamp("us")),
            ("date", pa.date32()),
            ("ok", pa.bool_()),
            ("price", pa.decimal128(10, 2)),
            ("small", pa.int8()),
            ("kind", pa.dictionary(pa.int32(), pa.string())),
            ("raw", pa.binary()),
            ("zoned", pa.timestamp("ns", "Europe/Berlin")),
            ("big", pa.uint64()),
            ("odd name", pa.int32()),
        ]
    )
)
ROWS = [
    {},
    {
        "a": 1,
        "b": "x",
        "f": 0.0,
        "t": dt.datetime(2020, 1, 1),  # noqa: DTZ001  # the column has no zone
        "date": dt.date(2020, 1, 1),
        "ok": True,
        "price": Decimal("1.50"),
        "small": 7,
        "kind": "q",
        "raw": b"z",
        "zoned": dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
        "big": 2**64 - 1,
    },
    {
        "a": 2,
        "b": "xyz_%",
        "f": float("nan"),
        "t": dt.datetime(2021, 1, 1),  # noqa: DTZ001  # the column has no zone
        "date": dt.date(2021, 1, 1),
        "ok": False,
        "price": Decimal("-2.25"),
        "small": -128,
        "kind": "r",
        "big": 0,
    },
    {"a": 3, "b": "\nA it's", "f": -0.0},
]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a = 1", [1]),
        ("a != 1", [2, 3]),
        ("NOT a = 1", [2, 3]),
        ("1 < a", [2, 3]),
        ("a in (1, 2)", [1, 2]),
        ("a NOT IN (1, 2)", [3]),
        ("a IN (1, NULL)", [1]),
        ("a NOT IN (1, NULL)", []),
        ("a = NULL", []),
        ("NOT (a = NULL)", []),
        ("a IS NULL", [None]),
        ("a IS NOT NULL", [1, 2, 3]),
        ("a BETWEEN 1 AND 2", [1, 2]),
        ("a NOT BETWEEN 1 AND 2", [3]),
        ("a > 1.5", [2, 3]),
        ("a <= 1.5", [1]),
        ("a = 1.5", []),
        ("a <> 1.5", [1, 2, 3]),
        ("a = 1.0", [1]),
        ("a = 1e0", [1]),
        ("small < 300", [1, 2]),
        ("small >= 300", []),
        ("small != 300", [1, 2]),
        ("small > -129", [1, 2]),
        ("small <= -128", [2]),
        ("big > -1", [1, 2]),
        ("big = 18446744073709551615", [1]),
        ("f = 0", [1, 3]),
        ("f IN (0, 9)", [1, 3]),
        ("f != 0", [2]),
        ("NOT (f > 0)", [1, 2, 3]),
        ("b LIKE 'x%'", [1, 2]),
        ("b NOT LIKE 'x%'", [3]),
        (r"b LIKE '%\_\%'", [2]),
        ("b LIKE '_A%'", [3]),
        ("b LIKE '%it''s'", [3]),
        ("b >= 'x'", [1, 2]),
        ("t >= '2020-06-01'", [2]),
        ("t = DATE '2020-01-01'", [1]),
        ("date > TIMESTAMP '2020-01-01 10:00:00'", [2]),
        ("date >= TIMESTAMP '2020-01-01T00:00:00Z'", [1, 2]),
        ("zoned = TIMESTAMP '2020-01-01 01:00:00+01:00'", [1]),
        ("zoned < TIMESTAMP '2020-01-01 00:00:00.000000001'", [1]),
        ("date = date '2021-01-01'", [2]),
        ("ok", [1]),
        ("NOT ok", [2]),
        ("ok = false", [2]),
        ("price > 1.495", [1]),
        ("price = 1.505", []),
        ("price IN (1.5, -2.25, 9e300)", [1, 2]),
        ("kind = 'q'", [1]),
        ("kind LIKE 'r%' OR kind IN ('q')", [1, 2]),
        ("raw IS NULL AND a > 0", [2, 3]),
        ("a = 1 OR b = 'xyz_%' AND ok = false", [1, 2]),
        ("(a = 1 OR b = 'xyz_%') AND ok", [1]),
        ('"odd name" IS NULL AND `odd name` IS NULL', [None, 1, 2, 3]),
        ("true", [None, 1, 2, 3]),
        ("false OR null", []),
    ],
)
def test_a_condition_means_what_it_means_in_sql(text, meant):
    rows = pa.Table.from_pylist(ROWS, TABLE.schema)
    found = pickle.loads(pickle.dumps(parse_predicate(text, TABLE)))  # noqa: S301  # our own
    assert rows.filter(found.expression(TABLE.schema))["a"].to_pylist() == meant


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("a", "at its end: expected ="),
        ("a = = 1", "'= 1', character 5: expected a number"),
        ("a = b", "'b', character 5: a column is compared with a literal"),
        ("a = 'x'", "character 5: column 'a' is int64, and 'x' is not"),
        ("b = 1", "column 'b' is string, and 1 is not"),
        ("zz = 1", "character 1: there is no column 'zz': columns are a, b"),
        ("a IN ()", "character 7: expected a number"),
        ("a IN (1", "at its end: expected ,"),
        ("(a = 1", r"at its end: expected \)"),
        ("a = 1)", "character 6: expected AND, OR or the end"),
        ("a LIKE 'x'", "LIKE compares text"),
        ("raw = 'x'", "IS NULL or IS NOT NULL"),
        ("ok > true", "compare by =, != or IN"),
        ("date = '2020-13-01'", "character 8: '2020-13-01' is no date"),
        ("date = DATE 'x'", "'x' is no date or time"),
        ("a = 1e999999", "too many digits"),
        ("b = 'x", "character 5: a quote is not closed"),
        ("a = 1 b", "character 7: expected AND"),
        ("a ? 1", "character 3: it means nothing"),
        ("(" * 300 + "a = 1", "more than 100 deep"),
        ("a BETWEEN 1", "expected AND"),
        ("5", "expected a condition"),
    ],
)
def test_a_condition_that_cannot_be_used_is_refused_with_its_place(text, why):
    with pytest.raises(InvalidInputError, match=why):
        parse_predicate(text, TABLE)


def test_equal_keys_are_looked_for_in_one_bucket(lake):
    schema = pa.schema([("id", pa.int64()), ("part", pa.string()), ("v", pa.int64())])
    table = create_change_table(lake, "shop$t", schema, keys=["id", "part"], buckets=64)
    table.upsert([{"id": n % 50, "part": "ab"[n % 2], "v": n} for n in range(50)])
    table.upsert([{"id": 3, "part": None, "v": 7}])
    assert len(table.plan(where="id = 3 AND part = 'b'").buckets) == 1
    assert len(table.plan(where="v > 0 AND id IN (3, 4) AND part IN ('a', 'b')").buckets) <= 4
    found = table.to_arrow(where="id = 3 AND part IS NULL")
    assert found.to_pylist() == [{"id": 3, "part": None, "v": 7}]
    assert len(table.plan(where="id = 3 AND part IS NULL").buckets) == 1


def test_partitions_by_hash_and_files_by_their_values_are_left_out(lake):
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("text", pa.string())])
    table = create_change_table(lake, "shop$t", schema, partition_by=["bucket(8, id)"])
    for start in (0, 100):
        rows = [{"id": n, "v": start + n, "text": f"{start}"} for n in range(40)]
        table.append(rows)
    plan = table.plan(where="id = 5 AND v >= 100")
    assert [len(read.pieces) for read in plan.buckets] == [1]
    assert table.count("id = 5 AND v >= 100") == 1
    assert not table.plan(where="text LIKE '2%'").buckets
    assert not table.plan(where="v IS NULL").buckets


def test_of_columns_that_a_part_of_a_file_does_not_bring_nothing_is_known():
    """A file that gathers changes has the statistics of all of them."""
    table = Definition.make(pa.schema([("id", pa.int64()), ("v", pa.int64())]), keys=["id"])
    known = {"minimum": {"1": 1, "2": 5}, "maximum": {"1": 9, "2": 5}, "nulls": {"1": 0, "2": 0}}
    file = DataFile(path="f", rows=4, **known)
    whole, part = Segment(0, 0, 2), Segment(0, 2, 2, columns=(1,))
    for segment, type_, is_left in [
        (whole, DeltaType.UPSERT, False),
        (part, DeltaType.UPSERT, True),
        (part, DeltaType.DELETE, False),
    ]:
        read = BucketRead((), 0, (), (Piece(1, type_, file, segment),))
        found = parse_predicate("v = 6 AND id < 9", table).prune(read, table)
        assert (found is not None) is is_left
    assert parse_predicate("v = 5", table).prune(read, table) is None


VALUES = {
    "day": [None, *(dt.date(2013, month, 1) for month in (1, 2, 3))],
    "id": [None, 1, 2, 3, 2**40],
    "amount": [None, *range(-3, 4)],
    "note": [None, "x", "yy", "y" * 80, "it's"],
    "weight": [None, 0.5, -1.25, 3.0],
}
SCHEMA = pa.schema(
    [
        ("day", pa.date32()),
        ("id", pa.int32()),
        ("amount", pa.int32()),
        ("note", pa.string()),
        ("weight", pa.float32()),
    ]
).set(1, pa.field("id", pa.int64()))


def _batch(random_, names):
    rows = {}
    for _ in range(random_.randint(1, 8)):
        row = {name: random_.choice(values) for name, values in VALUES.items() if name in names}
        row["id"] = row["id"] or 1
        rows[row["day"], row["id"]] = row
    return list(rows.values())


def _change(random_, table, names):
    type_ = random_.choice(["append", "upsert", "upsert", "partial", "delete"])
    if type_ == "append" or not table.definition.is_keyed:
        return table.append(to_table(_batch(random_, names), table.schema))
    kept = {"partial": {"day", "id", *random_.sample(sorted(names), 2)}, "delete": {"day", "id"}}
    rows = _batch(random_, kept.get(type_, names))
    if type_ == "delete":
        return table.delete(to_table(rows, table.schema))
    return table.upsert(to_table(rows, table.schema))


def _evolve(random_, table, names):
    step = random_.choice(["add", "widen", "rename", "compact", "nothing", "nothing"])
    if step == "add" and "more" not in names:
        table.add_columns([pa.field("more", pa.int64())], {"more": 7})
        names.add("more")
    elif step == "widen":
        table.widen_column("weight", pa.float64())
    elif step == "rename":
        table.rename_column("note", "kept")
        table.rename_column("kept", "note")
    elif step == "compact":
        table.compact(CompactionPolicy(force=True, level=random_.choice([1, 2])))


def _check(random_, table, names):
    values = {
        name: found for name, found in (VALUES | {"more": [None, 7, 8]}).items() if name in names
    }
    everything = table.to_arrow().to_pylist()
    skipped = 0
    for _ in range(12):
        text, meaning = random_condition(random_, values)
        want = canonical([row for row in everything if meaning(row) is True])
        assert canonical(table.to_arrow(where=text).to_pylist()) == want, text
        before, after = table.plan(), table.plan(where=text)
        skipped += sum(map(_pieces, before.buckets)) - sum(map(_pieces, after.buckets))
    return skipped


def _pieces(read):
    return len(read.pieces)


def _look_at_random_tables(directory, seed):
    random_ = random.Random(seed)
    lake = mooring.connect(f"metastore+{directory / str(seed)}")
    lake.create_namespace("shop")
    keys = random_.choice([["day", "id"], ["day", "id"], []])
    parting = random_.choice([["month(day)"], ["bucket(4, id)"], []])
    table = create_change_table(
        lake,
        "shop$t",
        SCHEMA,
        keys=keys,
        order=random_.choice([None, "amount"]) if keys else None,
        partition_by=parting,
        buckets=3 if keys else 1,
    )
    names = set(SCHEMA.names)
    for _ in range(random_.randint(2, 6)):
        _change(random_, table, names)
        _evolve(random_, table, names)
    return _check(random_, table, names)


def test_nothing_is_left_out_that_is_meant(tmp_path):
    """With a file that lacks a column nothing is known of its values there."""
    assert sum(_look_at_random_tables(tmp_path, seed) for seed in range(6)) > 50


@pytest.mark.interop
@settings(max_examples=100, deadline=None, derandomize=True)
@given(seed=st.integers(1000, 2**31))
def test_nothing_is_left_out_that_is_meant_in_many_tables(tmp_path_factory, seed):
    _look_at_random_tables(tmp_path_factory.mktemp("tables"), seed)
