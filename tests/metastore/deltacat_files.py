"""A catalog as deltacat leaves it, written file by file, without its library and our codec."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["NO_SCHEME", "START_NS", "Peer", "files", "namespace", "table"]

START_NS = 1_794_784_204_000_000_321
SECOND_NS = 1_000_000_000
NO_SCHEME = "deadbeef-7277-49a4-a195-fdc8ed235d42"


def namespace(own: str, name: str, properties=None) -> dict:
    return {
        "namespaceLocator": {"namespace": name},
        "properties": properties,
        "ancestor_ids": [],
        "id": own,
    }


def table(own: str, name: str, parent: str, description=None) -> dict:
    return {
        "tableLocator": {"namespaceLocator": {"namespace": own}, "tableName": name},
        "description": description,
        "properties": None,
        "latest_active_table_version": None,
        "latest_table_version": None,
        "nativeObject": None,
        "ancestor_ids": [parent],
        "id": own,
    }


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def digest(name: str) -> str:
    return hashlib.sha1(name.encode()).hexdigest()  # noqa: S324  # as the layout has it


@dataclass
class Peer:
    """Writes what deltacat would."""

    root: Path
    now_ns: int = START_NS
    revisions: dict = field(default_factory=dict)

    def begin(self, *, start_ns: int | None = None) -> Work:
        self.now_ns += SECOND_NS
        start = start_ns or self.now_ns
        return Work(self, f"{start}_{uuid.UUID(int=start, version=4)}")

    def make_namespace(self, name: str, **how) -> str:
        own = str(uuid.uuid5(uuid.NAMESPACE_OID, name))
        work = self.begin()
        work.revise((own,), "create", namespace(own, name))
        work.map((own,), "create", name)
        work.commit(**how)
        return own

    def make_table(self, parent: str, name: str, **how) -> str:
        own = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{parent}/{name}"))
        work = self.begin()
        work.revise((parent, own), "create", table(own, name, parent))
        work.map((parent, own), "create", name)
        work.commit(**how)
        return own

    def write(self, path: str, body: bytes = b"") -> str:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(body)
        return path


@dataclass
class Work:
    """A transaction of deltacat."""

    peer: Peer
    txn_id: str
    written: list = field(default_factory=list)
    mapped: list = field(default_factory=list)

    def revise(self, ids: tuple, operation: str, value: dict, *, number: int | None = None) -> None:
        path = "/".join((*ids, "rev"))
        body = msgspec.msgpack.encode(value)
        self.written.append(self._write(path, operation, "mpk", body, number))

    def map(self, ids: tuple, operation: str, name: str) -> None:
        path = "/".join((*ids[:-1], digest(name)))
        self.mapped.append(self._write(path, operation, ids[-1], b"", None))

    def _write(self, folder: str, operation: str, extension: str, body: bytes, number) -> str:
        known = self.peer.revisions
        number = number or known.get(folder, 0) + 1
        known[folder] = max(number, known.get(folder, 0))
        name = f"{number:020d}_{operation}_{self.txn_id}.{extension}"
        return self.peer.write(f"{folder}/1000000/1000/{name}", body)

    def hold(self) -> None:
        self.peer.write(f"txn/running/{self.txn_id}", b"")

    def commit(self, *, message=None, log: str = "whole", end_ns: int | None = None) -> str:
        start = int(self.txn_id.partition("_")[0])
        self.peer.now_ns += SECOND_NS
        end = end_ns or self.peer.now_ns
        operation = {
            "type": "create",
            "metafile_write_paths": self.written,
            "locator_write_paths": self.mapped,
        }
        found = {"operations": [operation], "id": self.txn_id, "end_time": end}
        if message is not None:
            found["commit_message"] = message
        minute = datetime.fromtimestamp(start // SECOND_NS, tz=UTC).strftime("%Y/%m/%d/%H/%M/")
        folder = "" if log == "flat" else minute
        body = b"" if log == "empty" else msgspec.msgpack.encode(found)
        self.peer.write(f"txn/success/{folder}{self.txn_id}/{end}", body)
        (self.peer.root / "txn" / "running" / self.txn_id).unlink(missing_ok=True)
        return self.txn_id
