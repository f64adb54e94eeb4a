"""A catalog of a harbour that has something to show on every page.

Ships with vectors, photographs and a history of many operations by several people; branches, tags
and indexes; changes that pipelines bring and publish; a trash with tables and a namespace.
"""

from __future__ import annotations

import struct
import textwrap
import zlib
from datetime import date
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import mooring
from mooring.changes import ChangeTable, create_change_table
from mooring.changes.publishing import publish
from mooring.errors import MooringError
from mooring.pipelines import list_runs
from tests.pipelines.direct import do

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mooring.catalog import Catalog

__all__ = [
    "PEOPLE",
    "fill_tables",
    "known_in",
    "make_harbour",
    "make_listing",
    "make_manifest",
    "make_ships",
    "picture",
]

PEOPLE = ("ada", "grace", "edsger")
_SIDE = 24
_DIMENSIONS = 16
_LANDINGS = """
    name: landings
    sources:
      calls: {files: calls.csv}
      cargo: {files: cargo.csv}
    outputs:
      - from: calls
        table: trade$calls
        change: upsert
        create: {keys: id, buckets: 2}
        publish: {into: trade$calls_published}
      - {from: cargo, table: trade$cargo, change: append, create: {}}
"""
_DUTIES = """
    name: duties
    sources: {cargo: {changes: trade$cargo}}
    outputs: [{from: cargo, table: trade$duties, change: append, create: {}}]
"""
_BROKEN = """
    name: broken
    sources: {calls: {files: calls.csv}}
    outputs: [{from: calls, table: trade$never, change: append, create: {}}]
"""


def make_harbour(folder: Path) -> Catalog:
    """Make the metastore."""
    uri = f"metastore+{folder / 'harbour'}"
    catalog = mooring.connect(uri, author="ada")
    catalog.create_namespace("port", {"description": "Ships and where they lie", "owner": "ada"})
    fill_tables(uri, "port$")
    catalog.create_namespace("trade", {"description": "What comes and goes"})
    _run_pipelines(catalog, folder)
    _change(mooring.connect(uri, author="grace"))
    catalog.create_namespace("archive", {"owner": "nobody"})
    catalog.create_table("archive$logbook", [{"line": "calm sea"}])
    catalog.create_table("archive$charts", [{"sheet": 7}])
    catalog.drop_namespace("archive", cascade=True, ttl="30d")
    return mooring.connect(uri, author="ada")


def make_manifest(folder: Path) -> Catalog:
    """Make a directory with namespaces in each other."""
    root = folder / "manifest"
    catalog = mooring.connect(root, author="ada")
    for name in ("port", "port$west", "port$west$pier"):
        catalog.create_namespace(name, {"description": f"All of {name}"})
    fill_tables(str(root), "port$west$")
    catalog.create_table("tides", [{"at": n, "metres": n / 7} for n in range(40)])
    return catalog


def make_listing(folder: Path) -> Catalog:
    """Make a plain directory, without a manifest."""
    root = folder / "listing"
    flags = {"manifest_enabled": False}
    fill_tables(str(root), "", **flags)
    return mooring.connect(root, author="ada", **flags)


# -- tables ----------------------------------------------------------------------------------------


def fill_tables(uri: str, at: str, **flags: bool) -> None:
    """Make tables of every kind, and a history of them.

    Args:
        uri: Of the catalog.
        at: What stands before the name of each table.
        flags: How the catalog is opened.
    """
    ada, grace, edsger = (mooring.connect(uri, author=one, **flags) for one in PEOPLE)
    ada.create_table(f"{at}ships", make_ships(0, 400))
    _sail(grace.table(f"{at}ships"), edsger.table(f"{at}ships"))
    rows = [{"berth": n, "depth": 4 + n % 9, "note": "quay " * (n % 80)} for n in range(1, 121)]
    ada.create_table(f"{at}berths", rows)
    ada.declare_table(f"{at}planned")
    ada.create_table(f"{at}treaty", [{"clause": "nobody leaves"}])
    ada.protect_table(f"{at}treaty")
    for name, ttl in (("wreck", "7d"), ("raft", "0s"), ("ark", "never")):
        grace.create_table(f"{at}{name}", [{"plank": n} for n in range(20)])
        grace.drop_table(f"{at}{name}", ttl=ttl)
    if at:
        ada.update_table(
            f"{at}ships", {"description": "All that floats", "owner": "harbour master"}
        )


def _sail(ships: mooring.Table, others: mooring.Table) -> None:
    """Give a table a history."""
    ships.insert(make_ships(400, 150))
    ships.tags.create("census", 2)
    ships.update({"tons": "tons + 10"}, "id < 50")
    others.delete("id % 40 = 3")
    ships.merge(make_ships(540, 30), "id")
    ships.indexes.create("id", "BTREE")
    others.indexes.create("place", "IVF_FLAT", num_partitions=2)
    ships.insert(make_ships(600, 25))
    ships.columns.add_computed({"crew": "id % 30 + 2"})
    ships.tags.create("spring")
    ships.branches.create("refit", version=3)
    others.delete("tons > 100000", branch="refit")
    ships.insert(make_ships(700, 12))


def make_ships(first: int, number: int) -> pa.Table:
    """Make rows: numbers, texts short and long, days, lists, a vector and a photograph each."""
    ids = np.arange(first, first + number)
    angle = ids[:, None] / 9 + np.arange(_DIMENSIONS)[None, :] / 3
    place = np.sin(angle).astype(np.float32)
    photographs = [picture(int(one)) if one % 3 else None for one in ids]
    columns = {
        "id": pa.array(ids),
        "name": pa.array([f"Ship {one}" for one in ids]),
        "tons": pa.array((ids * 37) % 5000, pa.int32()),
        "built": pa.array([date(1900 + int(one) % 120, 5, 1) for one in ids]),
        "flags": pa.array([["NO", "DK"][: int(one) % 3] for one in ids]),
        "place": pa.FixedSizeListArray.from_arrays(pa.array(place.ravel()), _DIMENSIONS),
        "photo": pa.array(photographs, pa.large_binary()),
        "log": pa.array([f"Day {one}: wind from the west. " * (int(one) % 40) for one in ids]),
    }
    table = pa.table(columns)
    at = table.schema.get_field_index("photo")
    blob = pa.field("photo", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    described = table.schema.field("name").with_metadata({"comment": "As painted on the bow"})
    schema = table.schema.set(at, blob).set(1, described)
    return pa.table([table.column(name) for name in table.column_names], schema=schema)


def picture(seed: int) -> bytes:
    """Make a small PNG: a sea, a sky and a hull, in colours of their own."""
    tint = (seed * 47) % 160
    sky, sea, hull = bytes((90, tint, 220)), bytes((10, 60, 90 + tint // 2)), bytes((200, 80, tint))
    lines = []
    for row in range(_SIDE):
        ground = sky if row < _SIDE // 2 else sea
        wide = 8 - abs(row - _SIDE // 2) if abs(row - _SIDE // 2) < 4 else 0
        edge = (_SIDE - 2 * wide) // 2
        lines.append(b"\0" + ground * edge + hull * (2 * wide) + ground * edge)
    head = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(b"".join(lines))), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in parts)


def _chunk(kind: bytes, body: bytes) -> bytes:
    checksum = struct.pack(">I", zlib.crc32(kind + body))
    return struct.pack(">I", len(body)) + kind + body + checksum


# -- changes ---------------------------------------------------------------------------------------


def _run_pipelines(catalog: Catalog, folder: Path) -> None:
    def write(name: str, text: str) -> str:
        path = folder / name
        path.write_text(textwrap.dedent(text).lstrip("\n"))
        return str(path)

    def land(first: int) -> None:
        rows = range(first, first + 20)
        write("calls.csv", "id,ship\n" + "".join(f"{n},Ship {n}\n" for n in rows))
        write("cargo.csv", "id,what\n" + "".join(f"{n},tea\n" for n in rows))
        do(catalog, landings)

    def sink(name: str) -> None:
        raise MooringError(f"the ship with '{name}' never came")

    landings, duties = write("landings.yaml", _LANDINGS), write("duties.yaml", _DUTIES)
    land(0)
    do(catalog, duties)
    land(15)
    do(catalog, duties)
    try:
        do(catalog, write("broken.yaml", _BROKEN), before_write=sink)
    except MooringError:
        pass
    else:
        raise AssertionError("the run was to fail")


def _change(catalog: Catalog) -> None:
    """Make a table of changes, and publish it twice."""
    schema = pa.schema([("id", pa.int64()), ("fare", pa.float64())])
    table = create_change_table(catalog, "trade$fares", schema, keys=["id"], buckets=2)
    table.upsert(pa.table({"id": range(30), "fare": [n / 2 for n in range(30)]}, schema=schema))
    publish(table, "trade$fares_published")
    corrected = pa.table({"id": [1, 2], "fare": [9.5, 9.75]}, schema=schema)
    ChangeTable(catalog, "trade$fares").upsert(corrected, message="as told by the pilots")
    publish(table)


def known_in(harbour: Catalog) -> Mapping[str, str]:
    """Return what stands in the addresses of the harbour's pages; see ``tests.ui.addresses``."""
    ships = harbour.table("port$ships")
    row = ships.to_arrow(columns=["id"], with_row_id=True, limit=1)["_rowid"][0]
    return {
        "table": "port$ships",
        "namespace": "port",
        "txn": next(harbour.metastore.transactions(1))[1].txn_id,
        "run": list_runs(harbour, "landings")[0].run,
        "UndropTable table": "port$wreck",
        "PurgeTable table": "port$wreck",
        "UndropNamespace namespace": "archive",
        "PurgeNamespace namespace": "archive",
        "Search?": "?q=ship",
        "Rows?": "?where=id+%3C+90&limit=30",
        "Cell?": f"?version={ships.version}&row={row}&column=place",
        "Diff?": f"?from=2&to={ships.version}",
        "Untag?": "?tag=spring",
        "Restore?": "?version=2",
        "DeleteBranch?": "?branch=refit",
    }
