"""What Spark pushes down leaves every row that Spark would keep."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from mooring.spark.filters import translate
from mooring.tables.scans import accepts_filter

NAN = float("nan")
NOON = datetime(2026, 3, 29, 12, tzinfo=UTC)
VALUES = {
    "n": [None, 0, -1, 1, 2**63 - 1, -(2**63)],
    "small": [None, 0, -128, 127, 5, 6],
    "big": [None, 0, 1, 2**64 - 1, 2**63, 7],
    "f": [None, NAN, 0.0, -0.0, 1.5, math.inf],
    "g": [None, NAN, -1.5, 1.5, -math.inf, 2.0**-140],
    "odd name": [None, "", "it's", "A", "a", "é%_\\"],
    'q"x $': [None, "b", "a'b", "''", "B", "ab"],
    "word": [None, "a", "b", "it's", "", "a"],
    "d": [None, date(1969, 12, 31), date(2026, 3, 29), date(1, 1, 1), date(9999, 12, 31), None],
    "z": [None, NOON, NOON + timedelta(microseconds=1), NOON - timedelta(hours=1), None, None],
    "t": [None, *(at.replace(tzinfo=None) for at in (NOON, NOON + timedelta(microseconds=1))), None,
          datetime(1, 1, 1), datetime(9999, 12, 31)],  # noqa: DTZ001
    "x": [None, Decimal("0.00"), Decimal("-1.50"), Decimal("1.50"), Decimal("1.51"), None],
    "b": [None, b"", b"\x00", b"\x00\xff", b"a", None],
    "flag": [None, True, False, None, True, False],
}  # fmt: skip
TYPES = {
    "small": pa.int8(),
    "big": pa.uint64(),
    "g": pa.float32(),
    "word": pa.dictionary(pa.int8(), pa.string()),
    "z": pa.timestamp("us", "UTC"),
    "x": pa.decimal128(10, 2),
}
COMPARISONS = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)
TEXT = (StringStartsWith, StringEndsWith, StringContains)


def every_row() -> pa.Table:
    """Return rows with tricky values in columns of each type, numbered by ``at``."""
    columns = {name: pa.array(values, TYPES.get(name)) for name, values in VALUES.items()}
    columns["at"] = pa.array(range(6))
    columns["deep"] = pa.array([None, {"n": None}, *({"n": n} for n in range(4))])
    return pa.table(columns)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return lance.write_dataset(every_row(), tmp_path_factory.mktemp("filters") / "t.lance")


def value_of(dataset_row, path):
    for name in path:
        dataset_row = None if dataset_row is None else dataset_row[name]
    return dataset_row


def order(value):
    """Return what Spark compares: NaN is above all, zeros have no sign, text is bytes."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def holds(wanted, row):  # noqa: PLR0911  # a kind of filters each
    """Evaluate a filter as Spark does: true, false, or None."""
    if isinstance(wanted, Not):
        found = holds(wanted.child, row)
        return None if found is None else not found
    value = value_of(row, wanted.attribute)
    if isinstance(wanted, IsNull | IsNotNull):
        return (value is None) is isinstance(wanted, IsNull)
    if isinstance(wanted, EqualNullSafe):
        return (
            order(value) == order(wanted.value)
            if None not in (value, wanted.value)
            else (value is wanted.value)
        )
    if isinstance(wanted, In):
        if value is None:
            return None
        found = any(order(one) == order(value) for one in wanted.value if one is not None)
        return True if found else (None if None in wanted.value else False)
    if value is None or wanted.value is None:
        return None
    return _compare(wanted, value)


def _compare(wanted, value):
    if isinstance(wanted, StringStartsWith):
        return value.startswith(wanted.value)
    if isinstance(wanted, StringEndsWith):
        return value.endswith(wanted.value)
    if isinstance(wanted, StringContains):
        return wanted.value in value
    one, other = order(value), order(wanted.value)
    return {
        EqualTo: one == other,
        GreaterThan: one > other,
        GreaterThanOrEqual: one >= other,
        LessThan: one < other,
        LessThanOrEqual: one <= other,
    }[type(wanted)]


def filters():
    """Filters that Spark may push for the columns of the table."""
    columns = st.sampled_from(sorted(VALUES))
    values = columns.flatmap(
        lambda name: st.tuples(st.just((name,)), st.sampled_from(VALUES[name]))
    )
    compared = st.builds(lambda kind, pair: kind(*pair), st.sampled_from(COMPARISONS), values)
    listed = columns.flatmap(
        lambda name: st.builds(
            In, st.just((name,)), st.lists(st.sampled_from(VALUES[name]), max_size=3)
        )
    )
    present = st.builds(
        lambda kind, name: kind((name,)), st.sampled_from((IsNull, IsNotNull)), columns
    )
    words = st.sampled_from(["", "'", "a", "é", "%", "_", "\\", "A"])
    text = st.builds(
        lambda kind, name, word: kind((name,), word),
        st.sampled_from(TEXT),
        st.sampled_from(["odd name", 'q"x $', "word", "n"]),
        words,
    )
    deep = st.builds(
        lambda kind, n: kind(("deep", "n"), n), st.sampled_from(COMPARISONS), st.integers(0, 3)
    )
    plain = compared | listed | present | text | deep
    return plain | plain.map(Not)


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(wanted=filters())
def test_no_row_is_lost(dataset, wanted):
    inner = wanted.child if isinstance(wanted, Not) else wanted
    expression = translate(wanted, dataset.schema)
    if expression is None or (isinstance(inner, TEXT) and inner.attribute == ("n",)):
        assert expression is None or inner.attribute != ("n",)
        return
    assert accepts_filter(dataset, expression), expression
    rows = dataset.to_table().to_pylist()
    expected = {row["at"] for row in rows if holds(wanted, row) is True}
    found = dataset.to_table(columns=["at"], filter=expression)["at"].to_pylist()
    assert expected <= set(found), expression


@pytest.mark.parametrize(
    ("wanted", "expression"),
    [
        (EqualTo(("n",), 1), "`n` = 1"),
        (In(("odd name",), ["it's", None]), "`odd name` IN ('it''s')"),
        (Not(EqualTo(("flag",), True)), "NOT (`flag` = true)"),
        (GreaterThan(("f",), 1.5), "(`f` > 1.5 OR isnan(`f`))"),
        (LessThan(("x",), Decimal("1.5")), "`x` < CAST('1.5' AS DECIMAL(10, 2))"),
        (EqualTo(("z",), NOON), "`z` = TIMESTAMP '2026-03-29T12:00:00+00:00'"),
        (EqualTo(("b",), b"\x00\xff"), "`b` = X'00ff'"),
        (IsNull(("deep", "n")), "`deep`.`n` IS NULL"),
        (StringContains(("word",), "'"), "contains(`word`, '''')"),
    ],
)
def test_filters_as_lance_reads_them(dataset, wanted, expression):
    assert translate(wanted, dataset.schema) == expression


@pytest.mark.parametrize(
    "wanted",
    [
        EqualTo(("f",), NAN),
        EqualTo(("f",), 0.0),
        GreaterThan(("f",), math.inf),
        LessThan(("g",), 0.1),
        LessThan(("g",), 1e300),
        EqualTo(("n",), -(2**63)),
        EqualTo(("n",), 1.0),
        EqualTo(("n",), True),
        EqualTo(("small",), 300),
        EqualTo(("x",), Decimal("1.501")),
        EqualTo(("z",), NOON.replace(tzinfo=None)),
        EqualTo(("t",), NOON),
        EqualTo(("n",), None),
        EqualTo(("missing",), 1),
        EqualTo(("n", "n"), 1),
        In(("n",), []),
        Not(In(("n",), [1, None])),
        Not(EqualNullSafe(("n",), 1)),
        Not(GreaterThan(("f",), 1.5)),
    ],
)
def test_what_lance_might_read_otherwise_stays_with_spark(dataset, wanted):
    assert translate(wanted, dataset.schema) is None


def test_columns_that_lance_keeps_otherwise_stay_with_spark():
    schema = pa.schema(
        [
            pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
            pa.field("ns", pa.timestamp("ns")),
            pa.field("berlin", pa.timestamp("us", "Europe/Berlin")),
            pa.field("day", pa.date64()),
            pa.field("h", pa.float16()),
            pa.field("clock", pa.time64("us")),
        ]
    )
    naive = NOON.replace(tzinfo=None)
    for wanted in (
        IsNull(("b",)),
        EqualTo(("ns",), naive),
        EqualTo(("berlin",), NOON),
        EqualTo(("day",), date(2026, 1, 1)),
        EqualTo(("h",), 1.5),
        EqualTo(("clock",), 1),
    ):
        assert translate(wanted, schema) is None
