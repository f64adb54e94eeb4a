"""Tables of an Iceberg catalog that several processes write together."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import mooring
from mooring.errors import UnsupportedError
from mooring.jobs.open_write import begin_write
from mooring.jobs.writing import WriteMode
from tests.own_irc import run_own

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mooring.catalog import Catalog

SCHEMA = pa.schema([pa.field("n", pa.int64())])


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    served = mooring.connect(tmp_path / "served")
    served.create_namespace("a")
    with run_own(served) as address:
        yield f"iceberg+{address}"


def write(catalog: Catalog, *numbers: int) -> int:
    """Write a row by each of some workers, then commit them together."""
    name = catalog.identifier("a$t")
    begun = begin_write(catalog, name, lambda table: table or SCHEMA, mode=WriteMode.APPEND)
    sent = pickle.loads(pickle.dumps(begun))  # noqa: S301  # our own
    parts = [sent.write([pa.record_batch({"n": [number]}, SCHEMA)]) for number in numbers]
    landed = begun.finish(parts)
    assert landed is not None
    return int(landed.version)


def values(catalog: Catalog) -> list[int]:
    found: list[int] = sorted(catalog.table("a$t").to_arrow()["n"].to_pylist())
    return found


def test_a_declared_table_is_written_beside_its_place(address: str) -> None:
    catalog = mooring.connect(address)
    catalog.declare_table("a$t")
    assert write(catalog, 1, 2) == 1
    assert write(catalog, 3) == 2
    assert values(catalog) == [1, 2, 3]


def test_where_only_the_server_knows_the_place_it_must_be_declared_first(address: str) -> None:
    catalog = mooring.connect(address)
    with pytest.raises(UnsupportedError, match="declare it first"):
        write(catalog, 1)
    assert catalog.list_tables("a") == []
