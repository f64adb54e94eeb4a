"""Catalogs of each kind, each served to Iceberg clients by a `mooring serve` of its own."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import mooring
from tests.servers import _HOST, _answers, _free_ports, _process, _tool, _wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mooring import Catalog

__all__ = ["EVERY_TYPE", "KINDS", "PEOPLE", "TIMES", "Served", "read_files", "run_served"]

PEOPLE = pa.schema([("id", pa.int32()), ("name", pa.string())])
TIMES = pa.schema([("at_s", pa.time32("s")), ("at_ns", pa.time64("ns"))])
# The types that Lance keeps in its default format, whatever Iceberg has, but for times of day:
# Spark opens no Iceberg table that has one.
EVERY_TYPE = pa.schema(
    [
        ("none", pa.null()),
        ("flag", pa.bool_()),
        ("tiny", pa.int8()),
        ("count", pa.uint32()),
        ("many", pa.uint64()),
        ("half", pa.float16()),
        ("ratio", pa.float64()),
        ("word", pa.large_string()),
        ("bytes", pa.large_binary()),
        ("four", pa.binary(4)),
        ("day", pa.date32()),
        ("day_ms", pa.date64()),
        ("then_ns", pa.timestamp("ns")),
        ("then_berlin", pa.timestamp("us", "Europe/Berlin")),
        ("took", pa.duration("ms")),
        ("price", pa.decimal128(38, 10)),
        ("huge", pa.decimal256(60, 4)),
        ("vector", pa.list_(pa.float32(), 8)),
        ("matrix", pa.list_(pa.list_(pa.float32(), 2), 3)),
        ("tags", pa.list_(pa.string())),
        ("kind", pa.dictionary(pa.int8(), pa.string())),
        ("json", pa.json_()),
        ("uuid", pa.uuid()),
        ("image", pa.fixed_shape_tensor(pa.float32(), [2, 3])),
        ("deep", pa.struct([("b.c", pa.int8()), ("b", pa.struct([("c", pa.list_(pa.int8()))]))])),
        ("Deep", pa.int8()),
        ("名前", pa.string()),
    ]
)


@dataclass(frozen=True)
class Served:
    """A catalog that Iceberg clients reach.

    Attributes:
        catalog: The catalog itself.
        root: Where it lies.
        uri: Its address for Iceberg clients.
        namespace: Where they see its tables.
        inner: Where the catalog itself has them.
        namespaces: All that they see.
    """

    catalog: Catalog
    root: Path
    uri: str
    namespace: tuple[str, ...]
    inner: tuple[str, ...]
    namespaces: tuple[tuple[str, ...], ...]

    @property
    def tables(self) -> list[str]:
        """What is served."""
        return sorted(self.catalog.list_tables(self.inner))

    def name(self, table: str) -> tuple[str, ...]:
        """Return a table's name in the catalog."""
        return (*self.inner, table)

    def add(self, name: str, rows: int = 3) -> None:
        """Create a table of people, with a version more for each row but one."""
        self.catalog.create_table(self.name(name), _people(0))
        for at in range(1, rows):
            self.catalog.table(self.name(name)).insert(_people(at))

    def rows(self, name: str) -> list[dict[str, object]]:
        """Return a table's rows."""
        return self.catalog.table(self.name(name)).to_lance().to_table().to_pylist()

    def directory(self, name: str) -> Path:
        """Return where a table lies."""
        info = self.catalog.describe_table(self.name(name))
        return Path(info.location.removeprefix("file://"))


def read_files(above: Path) -> dict[str, str]:
    """Return a hash of each file below a directory, by its path there."""
    return {
        str(path.relative_to(above)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in above.rglob("*")
        if path.is_file()
    }


def _people(first: int) -> pa.Table:
    return pa.table({"id": [first], "name": [f"nr {first}"]}, schema=PEOPLE)


@dataclass(frozen=True)
class Kind:
    """A kind of catalog.

    Attributes:
        scheme: What its URI begins with.
        options: How Mooring opens it.
        flags: How the command does.
        namespaces: Those that are made in it; tables lie in the last.
        seen: Those that clients see.
    """

    scheme: str
    options: Mapping[str, bool]
    flags: tuple[str, ...]
    namespaces: tuple[tuple[str, ...], ...]
    seen: tuple[tuple[str, ...], ...]


_DEEP = (("sales",), ("sales", "eu"), ("sales", "eu", "日本 west"))
KINDS = {
    "directory": Kind("", {"manifest_enabled": False}, ("--no-manifest",), (), (("root",),)),
    "nested": Kind("", {}, (), _DEEP, (("root",), *_DEEP)),
    "metastore": Kind("metastore+", {}, (), (("sales",),), (("sales",),)),
}


@contextmanager
def run_served(name: str, directory: Path, *flags: str) -> Iterator[Served]:
    """Make a catalog with tables, and serve it until the context ends.

    Args:
        name: One of `KINDS`.
        directory: An empty one.
        flags: More of `mooring serve`.
    """
    kind, root = KINDS[name], directory / "lake"
    catalog = mooring.connect(f"{kind.scheme}{root}", author="tester", **kind.options)
    for namespace in kind.namespaces:
        catalog.create_namespace(namespace)
    (port,) = _free_ports(1)
    address = f"http://{_HOST}:{port}/iceberg"
    inner = kind.namespaces[-1] if kind.namespaces else ()
    served = Served(catalog, root, address, kind.seen[-1], inner, kind.seen)
    served.add("people")
    for table, schema in (("every type", EVERY_TYPE), ("times", TIMES)):
        catalog.create_table(served.name(table), pa.RecordBatchReader.from_batches(schema, []))
    command = [_tool("mooring"), "serve", f"{kind.scheme}{root}", "--port", str(port)]
    log = directory / "serve.log"
    with _process([*command, *kind.flags, *flags], log, cwd=directory):
        _wait_for(lambda: _answers(f"{address}/v1/config"), "mooring serve", log)
        yield served
