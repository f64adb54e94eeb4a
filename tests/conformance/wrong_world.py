"""A catalog to send wrong requests to: it holds some of everything, and can tell if it changed."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance_namespace as spec
import pyarrow as pa
import pyarrow.ipc
from pydantic import ValidationError

import mooring
from mooring.survey.models import MODELS

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

__all__ = ["World", "make_rows", "to_body", "to_request"]


def make_rows(start: int = 0, count: int = 4) -> pa.Table:
    """Return rows with a column of each shape."""
    numbers = range(start, start + count)
    point = pa.struct([("x", pa.int32()), ("y", pa.string())])
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "s": pa.array([f"word {n}" for n in numbers]),
            "f": pa.array([float(n) for n in numbers]),
            "b": pa.array([n % 2 == 0 for n in numbers]),
            "p": pa.array([{"x": n, "y": f"y{n}"} for n in numbers], point),
            "tags": pa.array([["a", str(n)] for n in numbers]),
            "v": pa.array([[float(n), 1.0] for n in numbers], pa.list_(pa.float32(), 2)),
        }
    )


def to_body(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Write rows as an Arrow IPC stream."""
    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return sink.getvalue()


def to_request(operation: str, **fields: Any) -> Any:
    """Build a request, also of values that the model of a careful client refuses."""
    try:
        return MODELS[operation](**fields)
    except ValidationError:
        return MODELS[operation].model_construct(**fields)


class World:
    """One catalog on disk."""

    def __init__(self, root: Path, *, manifest: bool) -> None:
        self.root = root
        self.manifest = manifest
        self._kept = root.with_name(f"{root.name}-kept")
        self.open()
        self._fill()
        self.keep()

    def keep(self) -> None:
        """Make how it is now what a reset goes back to."""
        shutil.rmtree(self._kept, ignore_errors=True)
        shutil.copytree(self.root, self._kept)

    def open(self) -> None:
        """Open the catalog anew."""
        flags = {"manifest_enabled": self.manifest, "dir_listing_enabled": not self.manifest}
        words = {name: str(value).lower() for name, value in flags.items()}
        properties = {"root": str(self.root), **words}
        self.namespace: LanceNamespace = spec.connect("mooring.DirectoryNamespace", properties)
        self.catalog = mooring.connect(str(self.root), **flags)

    def reset(self) -> None:
        """Make everything as it was."""
        shutil.rmtree(self.root)
        shutil.copytree(self._kept, self.root)
        self.open()

    def ask(self, operation: str, *body: bytes, **fields: Any) -> Any:
        """Send a request."""
        return getattr(self.namespace, operation)(to_request(operation, **fields), *body)

    def files(self) -> dict[str, tuple[int, int]]:
        """List every file, and every directory without one, with its size and time."""
        found = {}
        for folder, below, names in os.walk(self.root):
            if not below and not names:
                found[folder] = (0, 0)
            for name in names:
                status = (Path(folder) / name).stat()
                found[f"{folder}/{name}"] = (status.st_size, status.st_mtime_ns)
        return found

    def _fill(self) -> None:
        for name in ("t", "other", "gone"):
            self.ask("create_table", to_body(make_rows()), id=[name])
        self.ask("drop_table", id=["gone"])
        self.ask("declare_table", id=["declared"])
        t = {"id": ["t"]}
        self.ask("insert_into_table", to_body(make_rows(4)), **t)
        self.ask("create_table_tag", **t, tag="one", version=1)
        self.ask("create_table_branch", **t, name="dev")
        self.ask("insert_into_table", to_body(make_rows(8)), **t, branch="dev")
        column = {"column": "n", "index_type": "BTREE", "name": "by_n"}
        self.ask("create_table_scalar_index", **t, **column)
        column = {"column": "s", "index_type": "FTS", "name": "by_s"}
        self.ask("create_table_scalar_index", **t, **column)
        if self.manifest:
            self.ask("create_namespace", id=["ns"], properties={"owner": "me"})
            self.ask("create_table", to_body(make_rows()), id=["ns", "t"])
