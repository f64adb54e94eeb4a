"""Sources to ingest, and what lies in a directory before and after."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import mooring

__all__ = ["ROWS", "open_lake", "rejects_in", "same_rows", "tree", "write_source"]

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "city": ["Oslo", "Lima", None],
        "height": pa.array([23.5, 154.0, 1.25], pa.float64()),
    }
)


def open_lake(kind: str, root: Path):
    """Open a catalog of a kind; return it with a prefix for names of tables."""
    if kind == "v1":
        return mooring.connect(root, manifest_enabled=False), ""
    catalog = mooring.connect(root if kind == "v2" else f"metastore+{root}")
    catalog.create_namespace("a", mode="exist_ok")
    return catalog, "a$"


def write_source(path: Path, rows: pa.Table, **options) -> str:
    """Write rows in the format that the suffix tells."""
    path.parent.mkdir(parents=True, exist_ok=True)
    match path.suffix:
        case ".parquet":
            pq.write_table(rows, path, **options)
        case ".csv":
            import pyarrow.csv

            pyarrow.csv.write_csv(rows, path)
        case ".json":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))
        case ".orc":
            import pyarrow.orc

            pyarrow.orc.write_table(rows, path, **options)
        case ".lance":
            import lance

            lance.write_dataset(rows, str(path), **options)
    return str(path)


def tree(root: Path) -> set[str]:
    """Name every file below a directory."""
    return {str(path.relative_to(root)) for path in Path(root).rglob("*") if path.is_file()}


def same_rows(table, rows: pa.Table, by: str = "id") -> bool:
    return table.to_arrow().sort_by(by).to_pylist() == rows.sort_by(by).to_pylist()


def rejects_in(path: Path) -> list[tuple[int, str]]:
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    return [(line["row"], line["reason"]) for line in lines]
