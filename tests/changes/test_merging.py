"""Merge-on-read equals the same changes done one row at a time."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import mooring
from mooring.changes import create_change_table
from mooring.changes.taking import take_rows
from tests.changes.model import (
    KEYS,
    ORDER,
    SCHEMA,
    Model,
    canonical,
    has_key,
    random_batch,
    to_table,
)


@pytest.mark.parametrize("with_order", [False, True])
def test_random_changes_equal_the_model_at_every_tenth_position(tmp_path, with_order):
    schema = SCHEMA.append(pa.field(ORDER, pa.int64())) if with_order else SCHEMA
    lake = mooring.connect(f"metastore+{tmp_path}")
    lake.create_namespace("shop")
    table = create_change_table(
        lake,
        "shop$orders",
        schema,
        keys=KEYS,
        order=ORDER if with_order else None,
        partition_by=["month(at)"],
        buckets=3,
    )
    model = Model(columns=tuple(schema.names), order=ORDER if with_order else None)
    random_, seen = random.Random(7), {0: []}
    while table.position < 60:
        type_, rows = random_batch(random_, order=with_order)
        rows = [row for row in rows if has_key(row)]
        if not rows:
            continue
        table._write(to_table(rows, schema), type_, None, None)
        model.apply(type_, rows)
        seen[table.position] = model.rows()
    for position in range(0, 61, 10):
        assert canonical(table.to_arrow(position=position).to_pylist()) == seen[position]


def test_text_that_is_too_much_for_one_array_is_taken_in_several(monkeypatch):
    monkeypatch.setattr("mooring.changes.taking._MOST", 500)
    words = pa.chunked_array([[f"word {number}" for number in range(100)], ["last", None]])
    numbers = np.array([101, 100, *range(99, -1, -1), 5, 5])
    rows = take_rows(pa.table({"word": words, "n": range(102)}), numbers)
    assert rows["word"].num_chunks > 2
    assert rows["word"].to_pylist() == [words[number].as_py() for number in numbers.tolist()]
    assert rows["n"].to_pylist() == numbers.tolist()
    assert rows["word"].type == pa.string()
