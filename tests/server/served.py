"""A catalog behind its server, as clients see it; and Lance writers that commit through it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from mooring.iceberg.snapshots import Snapshot
from mooring.namespace.located import locate
from mooring.server.app import create_app
from mooring.tables.ledger_client import LedgerClient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from httpx2 import Response

    from mooring.server.settings import ServerSettings
    from tests.lakes import Lake

_NOT_MADE = "nobody was asked for it"
LANCE = {"table_type": "lance"}
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "n", "type": "long", "required": False}],
}


class Served:
    """A lake with a server before it."""

    def __init__(self, lake: Lake, settings: ServerSettings, **options: Any) -> None:
        self.lake = lake
        self.catalog = lake.connect(**options)
        self.client = TestClient(create_app(self.catalog, settings), base_url="http://x/iceberg/v1")
        # The namespace in which the lake's tables lie, as clients name it.
        self.namespace = lake.path("t")[:-1] or ["root"]

    def __enter__(self) -> Self:
        self.client.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self.client.__exit__(None, None, None)

    # -- addresses ---------------------------------------------------------------------------------

    @property
    def tables(self) -> str:
        """Where the tables are."""
        return f"{at(self.namespace)}/tables"

    def table(self, name: str) -> str:
        """Where a table is."""
        return f"{self.tables}/{quote(name, safe='')}"

    # -- requests ----------------------------------------------------------------------------------

    def get(self, path: str, **more: Any) -> Response:
        return self.client.get(path, **more)

    def post(self, path: str, body: object, **more: Any) -> Response:
        return self.client.post(path, json=body, **more)

    def delete(self, path: str, **more: Any) -> Response:
        return self.client.delete(path, **more)

    def head(self, path: str, **more: Any) -> Response:
        return self.client.head(path, **more)

    def load(self, name: str, **more: Any) -> dict[str, Any]:
        """Return a table's metadata."""
        response = self.get(self.table(name), **more)
        assert response.status_code == 200, response.text
        metadata: dict[str, Any] = response.json()["metadata"]
        return metadata

    def names(self) -> list[str]:
        """Name the tables."""
        return [one["name"] for one in self.get(self.tables).json()["identifiers"]]

    def create(self, name: str, **more: Any) -> Response:
        """Create an empty Lance table."""
        return self.post(self.tables, {"name": name, "schema": SCHEMA, "properties": LANCE, **more})

    def update(
        self,
        name: str,
        updates: Sequence[dict[str, Any]],
        requirements: Sequence[dict[str, Any]] = (),
    ) -> Response:
        """Send a commit."""
        body = {"requirements": list(requirements), "updates": list(updates)}
        return self.post(self.table(name), body)

    def transact(self, *changes: dict[str, Any]) -> Response:
        """Send a commit of several tables."""
        return self.post("/transactions/commit", {"table-changes": list(changes)})

    # -- as Lance writers --------------------------------------------------------------------------

    def fill(self, name: str, *values: int) -> None:
        """Make a table of one version for each value, without the server."""
        self.lake.create(name, values[:1])
        table = self.catalog.table(self.lake.id(name))
        for value in values[1:]:
            table.insert(pa.table({"n": [value]}))

    def stage(self, name: str, value: int) -> Snapshot:
        """Have Lance write a row and the manifest of the next version, and ask for nothing."""
        found = self.catalog.backend.describe_table(self.lake.id(name))
        handle = locate(self.catalog.backend, found.id, found)
        client = _Stager(handle.ledger)
        with pytest.raises(OSError, match="is unknown"):
            handle.open_through(client).insert(pa.table({"n": pa.array([value], pa.int64())}))
        version, path = client.staged
        return Snapshot(version, 0, path, 0, commit_id=f"commit of {value}", given={"who": "ada"})

    def values(self, name: str) -> list[int]:
        """Read a table."""
        found = self.catalog.table(self.lake.id(name)).to_arrow()
        values: list[int] = sorted(found["n"].to_pylist())
        return values

    def versions(self, name: str) -> Path:
        """Where a table's versions lie."""
        return Path(self.catalog.describe_table(self.lake.id(name)).location) / "_versions"

    def files(self) -> dict[str, bytes]:
        """Return every file of the lake."""
        found = self.lake.store.list_prefix("")
        return {meta.path: self.lake.store.get(meta.path) or b"" for meta in found}


def at(namespace: Sequence[str]) -> str:
    """Where a namespace is."""
    return f"/namespaces/{'%1F'.join(quote(name, safe='') for name in namespace)}"


def on_main(version: int | None) -> dict[str, Any]:
    """Demand that a version still be the newest."""
    return {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": version}


def add(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Ask for a version, as Lance writers do."""
    parent = snapshot.version - 1 or None
    return [
        {"action": "add-snapshot", "snapshot": snapshot.to_json(parent=parent)},
        {
            "action": "set-snapshot-ref",
            "ref-name": "main",
            "type": "branch",
            "snapshot-id": snapshot.version,
        },
    ]


def change(namespace: Sequence[str], name: str, snapshot: Snapshot) -> dict[str, Any]:
    """Ask for a version of one of several tables."""
    return {
        "identifier": {"namespace": list(namespace), "name": name},
        "requirements": [on_main(snapshot.version - 1 or None)],
        "updates": add(snapshot),
    }


def kind_of(response: Response) -> tuple[int, str]:
    """Return the status of a failure, and what Iceberg's clients tell it by."""
    return response.status_code, response.json()["error"]["type"]


class _Stager(LedgerClient):
    """Takes note of what Lance staged, and does not make it a version."""

    staged: tuple[int, str]

    def create_table_version(self, request: dict[str, Any]) -> Any:
        self.staged = int(request["version"]), request["manifest_path"]
        raise OSError(_NOT_MADE)

    def describe_table_version(self, request: dict[str, Any]) -> Any:
        raise OSError(_NOT_MADE)
