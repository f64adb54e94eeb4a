"""A lake behind Lance's REST protocol, as its clients see it."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.ipc
from starlette.testclient import TestClient

from mooring.server.app import app_of, create_service
from mooring.server.settings import ServerSettings

if TYPE_CHECKING:
    from httpx2 import Response

    from tests.lakes import Lake

__all__ = ["ARROW", "LanceServed", "files_of", "stream_of", "table_of"]

ARROW = "application/vnd.apache.arrow.stream"


class LanceServed:
    """A lake with a server before it."""

    def __init__(
        self, lake: Lake, settings: ServerSettings | None = None, catalog: Any = None
    ) -> None:
        self.lake = lake
        self.catalog = catalog or lake.connect()
        self.service = create_service(self.catalog, settings or ServerSettings())
        self.app = app_of(self.service)
        self.client = TestClient(self.app, base_url="http://localhost/lance/v1")
        # Where the lake's tables lie.
        self.within = lake.path("t")[:-1]

    def __enter__(self) -> Self:
        self.client.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self.client.__exit__(None, None, None)

    def id(self, name: str) -> list[str]:
        """Return the identifier of a table."""
        return [*self.within, name]

    def at(self, name: str, action: str) -> str:
        """Return where an action on a table is."""
        return f"/table/{quote('$'.join(self.id(name)), safe='')}/{action}"

    def post(self, path: str, body: object = None, **more: Any) -> Response:
        return self.client.post(path, json={} if body is None else body, **more)

    def ask(self, name: str, action: str, body: object = None, **more: Any) -> Any:
        """Ask for something about a table that is done, and return what was answered."""
        response = self.post(self.at(name, action), body, **more)
        assert response.is_success, response.text
        return response.json() if response.content else None

    def send(self, name: str, action: str, rows: object, **more: Any) -> Response:
        """Send rows, or whatever is to be taken for some."""
        body = stream_of(rows) if isinstance(rows, pa.Table) else rows
        headers = {"content-type": ARROW, **more.pop("headers", {})}
        return self.client.post(self.at(name, action), content=body, headers=headers, **more)

    def send_raw(
        self, path: str, body: bytes, kind: str = "application/json"
    ) -> tuple[int, dict[str, Any]]:
        """Send a request to an address as it is written, of which clients would clean some."""
        raw = f"/lance/v1{path}".encode()
        scope = {
            "type": "http",
            "method": "POST",
            "path": unquote(raw.decode()),
            "raw_path": raw,
            "root_path": "",
            "query_string": b"",
            "headers": [(b"host", b"localhost"), (b"content-type", kind.encode())],
        }
        heard: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            heard.append(message)

        asyncio.run(self.app(scope, receive, send))
        answer = b"".join(one.get("body", b"") for one in heard)
        return heard[0]["status"], json.loads(answer)

    def create(self, name: str, rows: pa.Table | None = None) -> None:
        """Create a table."""
        rows = pa.table({"n": [1, 2, 3]}) if rows is None else rows
        response = self.send(name, "create", rows)
        assert response.status_code == 200, response.text

    def query(self, name: str, body: object = None, **more: Any) -> pa.Table:
        response = self.post(self.at(name, "query"), body, **more)
        assert response.status_code == 200, response.text
        return table_of(response.content)

    @property
    def files(self) -> dict[str, str]:
        """Every file of the lake, by a hash of what it holds."""
        return files_of(self.lake.uri)


def files_of(root: str) -> dict[str, str]:
    """Return every file below a directory, by a hash of what it holds."""
    found = Path(root).rglob("*")
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found if path.is_file()
    }


def stream_of(rows: pa.Table, **more: Any) -> bytes:
    """Write rows as an Arrow IPC stream."""
    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows, **more)
    return sink.getvalue()


def table_of(body: bytes) -> pa.Table:
    """Read rows of an Arrow IPC file."""
    return pyarrow.ipc.open_file(pa.BufferReader(body)).read_all()
