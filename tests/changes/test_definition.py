"""What a change table can be, how rows are parted, and that hashes never change."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from mooring.changes import create_change_table
from mooring.changes.hashing import bucket_of, hash_rows
from mooring.changes.transforms import parse_field, partition_id, show_field, split
from mooring.errors import InvalidInputError

UTC = dt.UTC


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"keys": ["none"]}, "no column 'none' for a key"),
        ({"keys": ["price"]}, "'price' .* cannot be a key"),
        ({"order": "id"}, "cannot be the merge order"),
        ({"keys": ["id"], "order": "none"}, "cannot be ordered by 'none'"),
        ({"keys": ["id"], "partition_by": ["month(at)"]}, "which is no merge key"),
        ({"partition_by": ["month(id)"]}, "column 'id' is int64"),
        ({"partition_by": ["weeks(at)"]}, "does not say how to part rows"),
        ({"partition_by": ["bucket(none, id)"]}, "'none' is no number above zero"),
        ({"partition_by": ["none"]}, "columns are id, at, price"),
        ({"sort_by": ["none"]}, "cannot be sorted by 'none'"),
        ({"buckets": 8}, "1 without merge keys"),
        ({"keys": ["id"], "buckets": 5000}, "buckets are 1 to 4096"),
    ],
)
def test_what_does_not_fit_the_columns_is_refused(lake, options, told):
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us")), ("price", pa.float64())])
    with pytest.raises(InvalidInputError, match=told):
        create_change_table(lake, "shop$t", schema, **options)


@pytest.mark.parametrize(
    "text",
    [
        "region",
        "year(at)",
        "month(at)",
        "day(at)",
        "hour(at)",
        "bucket(16, id)",
        "truncate(4, zip)",
    ],
)
def test_how_rows_are_parted_is_written_as_it_is_read(text):
    assert show_field(parse_field(text)) == text


AT = dt.datetime(2013, 1, 31, 23, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("c", pa.array(["a", None, "a"]), ["a", None, "a"]),
        ("c", pa.array([True, None]), [True, None]),
        ("c", pa.array([dt.date(2013, 1, 2)]), ["2013-01-02"]),
        ("c", pa.array([b"\x01\xff"]), ["01ff"]),
        ("year(c)", pa.array([AT, None], pa.timestamp("us", "UTC")), ["2013", None]),
        ("month(c)", pa.array([AT], pa.timestamp("ns", "Europe/Berlin")), ["2013-01"]),
        ("day(c)", pa.array([dt.date(1969, 12, 31)]), ["1969-12-31"]),
        ("hour(c)", pa.array([AT], pa.timestamp("s")), ["2013-01-31T23"]),
        ("truncate(2, c)", pa.array(["größe", "a", None]), ["gr", "a", None]),
        ("truncate(10, c)", pa.array([25, -1, 0, -10, None]), [20, -10, 0, -10, None]),
    ],
)
def test_partition_values(text, values, expected):
    found, places = split([parse_field(text)], pa.table({"c": values}))
    assert [found[place][0] for place in places.to_pylist()] == expected


def test_rows_are_parted_by_several_columns():
    rows = pa.table({"a": ["x", "y", "x", None], "n": [1, 1, 2, 1]})
    found, places = split([parse_field("a"), parse_field("bucket(4, n)")], rows)
    by_row = [found[place] for place in places.to_pylist()]
    assert len(set(by_row)) >= 3
    assert [values[0] for values in by_row] == ["x", "y", "x", None]
    assert by_row[0][1] == by_row[1][1] == by_row[3][1]


def test_partitions_have_ids_that_hold_no_names():
    assert partition_id(()) == "all"
    ids = {
        partition_id(values) for values in [("a/b",), ("a", "b"), (None,), ("null",), (1,), ("1",)]
    }
    assert len(ids) == 6
    assert all(one.isalnum() for one in ids)


def test_hashes_are_those_of_every_release():
    """Files in the world were written by them."""
    columns = [
        pa.chunked_array([pa.array([0, 1, -1, None], pa.int64())]),
        pa.chunked_array([pa.array(["", "pen", "größe", None])]),
        pa.chunked_array([pa.array([dt.date(2013, 1, 1)] * 3 + [None])]),
    ]
    assert hash_rows(columns).tolist() == HASHES
    assert bucket_of(hash_rows(columns), 8).tolist() == [value % 8 for value in HASHES]


HASHES = [7816741636624433960, 9949615816476644486, 16286269206878362597, 4096142402050300089]


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (pa.array([1, -5, None], pa.int8()), pa.int64()),
        (pa.array([1.5, -0.0, None], pa.float32()), pa.float64()),
        (pa.array(["a", "", None]), pa.large_string()),
        (pa.array(["a", "b", None]).dictionary_encode(), pa.string()),
    ],
)
def test_what_is_equal_hashes_equal_after_a_column_was_widened(narrow, wide):
    first = hash_rows([pa.chunked_array([narrow])])
    assert first.tolist() == hash_rows([pa.chunked_array([narrow.cast(wide)])]).tolist()


def test_hashes_do_not_depend_on_where_an_array_begins():
    words = pa.array([f"word {number}" for number in range(100)])
    whole = hash_rows([pa.chunked_array([words])])
    parts = pa.chunked_array([words.slice(0, 33), words.slice(33, 0), words.slice(33)])
    assert hash_rows([parts]).tolist() == whole.tolist()
    assert hash_rows([pa.chunked_array([words.slice(40)])]).tolist() == whole[40:].tolist()
    assert len(set(whole.tolist())) == 100


def test_keys_spread_over_all_buckets():
    for values in (pa.array(range(8000)), pa.array([f"{n:08}" for n in range(8000)])):
        buckets = bucket_of(hash_rows([pa.chunked_array([values])]), 8)
        counts = [int((buckets == number).sum()) for number in range(8)]
        assert min(counts) > 850


@pytest.mark.parametrize(
    "kind",
    [
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.int64()),
        pa.list_(pa.binary_view()),
        pa.uuid(),
    ],
)
def test_types_that_could_not_be_read_again_are_refused(lake, kind):
    columns = pa.schema([("id", pa.int64()), ("c", kind)])
    with pytest.raises(InvalidInputError, match=r"'c' is .*, which a change table cannot keep"):
        create_change_table(lake, "shop$t", columns, keys=["id"])
    table = create_change_table(lake, "shop$t", columns.remove(1), keys=["id"])
    with pytest.raises(InvalidInputError, match=r"'c' is .*, which a change table cannot keep"):
        table.add_columns([columns.field("c")])


def test_half_floats_are_kept_and_no_merge_order(lake):
    columns = pa.schema([("id", pa.int64()), ("half", pa.float16())])
    with pytest.raises(InvalidInputError, match="'half' cannot be the merge order"):
        create_change_table(lake, "shop$t", columns, keys=["id"], order="half")
    table = create_change_table(lake, "shop$t", columns, keys=["id"])
    table.upsert(pa.table({"id": [1], "half": pa.array([0.5], pa.float16())}))
    assert table.to_arrow()["half"].to_pylist() == [0.5]
