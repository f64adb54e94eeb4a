"""Change tables in plain Python: one row at a time, as the documentation says it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import random

Row = dict[str, Any]

SCHEMA = pa.schema(
    [
        ("at", pa.date32()),
        ("id", pa.int64()),
        ("part", pa.string()),
        ("amount", pa.int64()),
        ("note", pa.string()),
        ("weight", pa.float64()),
    ]
)
KEYS = ("at", "id", "part")
ORDER = "seen"


@dataclass
class _Key:
    rows: list[Row] = field(default_factory=list)
    top: int | None = None


@dataclass
class Model:
    """What a table holds after the changes so far."""

    keys: tuple[str, ...] = KEYS
    columns: tuple[str, ...] = tuple(SCHEMA.names)
    order: str | None = None
    known: dict[tuple[Any, ...], _Key] = field(default_factory=dict)

    def apply(self, type_: str, rows: list[Row]) -> None:
        for row in rows:
            key = self.known.setdefault(tuple(row.get(name) for name in self.keys), _Key())
            getattr(self, f"_{type_}")(key, row)

    def _append(self, key: _Key, row: Row) -> None:
        key.rows.append({name: row.get(name) for name in self.columns})
        self._raise(key, row)

    _add = _append

    def _upsert(self, key: _Key, row: Row) -> None:
        if self._is_late(key, row):
            return
        before = key.rows[-1] if key.rows else dict.fromkeys(self.columns)
        key.rows = [{**before, **row}]
        self._raise(key, row)

    def _delete(self, key: _Key, row: Row) -> None:
        if self._is_late(key, row):
            return
        key.rows = []
        self._raise(key, row)

    def _is_late(self, key: _Key, row: Row) -> bool:
        if self.order is None or self.order not in row or key.top is None:
            return False
        return row[self.order] is None or row[self.order] < key.top

    def _raise(self, key: _Key, row: Row) -> None:
        value = row.get(self.order) if self.order else None
        if value is not None and (key.top is None or value > key.top):
            key.top = value

    def rows(self) -> list[Row]:
        return canonical([row for key in self.known.values() for row in key.rows])


def canonical(rows: list[Row]) -> list[Row]:
    """Sort rows, so that those of two tables can be compared."""
    return sorted(rows, key=lambda row: [(value is None, str(value)) for value in row.values()])


def random_batch(random_: random.Random, *, order: bool = False) -> tuple[str, list[Row]]:
    """Make a batch: appends, upserts of all or some columns, or deletions."""
    type_ = random_.choices(["append", "upsert", "partial", "delete"], [1, 4, 3, 2])[0]
    rows: dict[tuple[Any, ...], Row] = {}
    chosen = random_.sample(["amount", "note", "weight"], random_.randint(1, 2))
    with_order = order and random_.random() < 0.8
    for _ in range(random_.randint(1, 12)):
        row = _random_row(random_)
        key = tuple(row[name] for name in KEYS)
        if type_ == "partial":
            row = {name: value for name, value in row.items() if name in {*KEYS, *chosen}}
        if type_ == "delete":
            row = {name: row[name] for name in KEYS}
        if order and (with_order or type_ == "append"):
            row[ORDER] = random_.choice([None, *range(30)])
        rows[(*key, len(rows)) if type_ == "append" else key] = row
    return ("upsert" if type_ == "partial" else type_), list(rows.values())


def _random_row(random_: random.Random) -> Row:
    at = dt.date(2013, random_.randint(1, 12), random_.randint(1, 2))
    return {
        "at": random_.choice([at, at, at, None]),
        "id": random_.choice([None, 1, 2, 3, 2**40]),
        "part": random_.choice(["a", "b", "", None]),
        "amount": random_.choice([None, random_.randint(-5, 5)]),
        "note": random_.choice([None, "x", "y" * 80]),
        "weight": random_.choice([None, random_.random()]),
    }


def has_key(row: Row) -> bool:
    """Whether a row has a key at all."""
    return any(row[name] is not None for name in KEYS)


def to_table(rows: list[Row], schema: pa.Schema) -> pa.Table:
    """Make an Arrow table of the columns that rows have."""
    named = [one for one in schema if one.name in rows[0]]
    return pa.Table.from_pylist(rows, pa.schema(named))
