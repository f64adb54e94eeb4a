"""From whatever a caller has to a stream of Arrow batches."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from mooring.errors import InvalidInputError
from mooring.tables.rows import read_file, to_reader

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])
ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
TABLE = pa.Table.from_pylist(ROWS, schema=SCHEMA)
BATCH = TABLE.to_batches()[0]


class OnlyAnArray:
    """Speaks the Arrow array protocol and nothing else."""

    def __arrow_c_array__(self, requested_schema=None):
        return BATCH.__arrow_c_array__(requested_schema)


KINDS = {
    "table": lambda: TABLE,
    "batch": lambda: BATCH,
    "reader": TABLE.to_reader,
    "array protocol": OnlyAnArray,
    "pandas": TABLE.to_pandas,
    "dictionaries": lambda: ROWS,
    "iterator of dictionaries": lambda: iter(ROWS),
    "batches": lambda: [BATCH.slice(0, 1), BATCH.slice(1, 1)],
    "iterator of batches": lambda: iter([BATCH.slice(0, 1), BATCH.slice(1, 1)]),
    "tables": lambda: (TABLE.slice(0, 1), TABLE.slice(1, 1)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_come_from_every_kind_of_data(kind):
    read = to_reader(KINDS[kind]()).read_all()
    assert read.to_pylist() == ROWS
    assert read.schema.names == ["a", "b"]


@pytest.mark.parametrize(
    "kind", ["table", "batch", "pandas", "dictionaries", "iterator of dictionaries"]
)
def test_a_schema_is_given_to_rows_or_cast_to(kind):
    wanted = pa.schema([("a", pa.int32()), ("b", pa.large_string())])
    assert to_reader(KINDS[kind](), wanted).read_all().schema.types == wanted.types


def test_the_index_of_a_data_frame_is_no_column():
    frame = pd.DataFrame({"a": [1, 2, 3]})
    assert to_reader(frame[frame.a > 1]).schema.names == ["a"]
    assert to_reader(frame.set_index(pd.Index(["x", "y", "z"]))).schema.names == ["a"]


def test_an_empty_iterable_needs_a_schema():
    with pytest.raises(InvalidInputError, match="schema"):
        to_reader([])
    assert to_reader([], SCHEMA).read_all().num_rows == 0


def test_an_empty_table_keeps_its_schema():
    assert to_reader(TABLE.slice(0, 0)).read_all().schema == SCHEMA
    assert to_reader([TABLE.slice(0, 0)]).read_all().schema == SCHEMA


def test_an_iterator_is_read_as_it_is_consumed():
    pulled = []

    def batches():
        for number in range(100):
            pulled.append(number)
            yield BATCH

    reader = to_reader(batches())
    assert len(pulled) <= 2
    assert reader.read_all().num_rows == 200


def test_many_dictionaries_become_many_batches_of_one_schema():
    rows = ({"a": number} for number in range(25_000))
    read = to_reader(rows).read_all()
    assert read.num_rows == 25_000
    assert read.column("a").num_chunks > 1


def test_a_key_that_only_later_rows_have_is_not_lost_in_silence():
    rows = [{"a": 1}, {"a": 2, "b": "late"}]
    try:
        read = to_reader(rows).read_all()
    except InvalidInputError:
        return
    assert read.to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "late"}]


def test_a_missing_key_is_null():
    assert to_reader([{"a": 1, "b": "x"}, {"a": 2}]).read_all().to_pylist()[1] == {
        "a": 2,
        "b": None,
    }


@pytest.mark.parametrize("data", ["text", b"bytes", 7, None, {"a": [1]}, object()])
def test_what_is_no_rows_is_refused_with_what_would_be(data):
    with pytest.raises(InvalidInputError, match="data frame"):
        to_reader(data)


def test_an_iterable_of_something_else_is_refused():
    with pytest.raises(InvalidInputError, match="int"):
        to_reader([1, 2])


def test_dictionaries_that_fit_no_schema_are_refused():
    with pytest.raises(InvalidInputError, match="schema"):
        to_reader([{"a": 1}, {"a": "x"}])


@pytest.mark.parametrize("kind", ["parquet", "csv", "json", "arrow", "feather"])
def test_files_are_read_by_their_suffix(tmp_path, kind):
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(TABLE, path)
    elif kind == "csv":
        pyarrow.csv.write_csv(TABLE, path)
    elif kind == "json":
        path.write_text('{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n')
    elif kind == "arrow":
        with pa.ipc.new_file(path, SCHEMA) as writer:
            writer.write_table(TABLE)
    else:
        pyarrow.feather.write_feather(TABLE, str(path))
    assert read_file(path).read_all().to_pylist() == ROWS


def test_a_file_that_is_absent_unknown_or_damaged_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="no file"):
        read_file(tmp_path / "absent.csv")
    odd = tmp_path / "rows.xlsx"
    odd.write_bytes(b"x")
    with pytest.raises(InvalidInputError, match="format"):
        read_file(odd)
    bad = tmp_path / "rows.parquet"
    bad.write_bytes(b"not parquet")
    with pytest.raises(InvalidInputError, match="parquet"):
        read_file(bad)
