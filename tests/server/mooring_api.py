"""A client of ``/mooring/v1`` that holds every answer to the published document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jsonschema import Draft202012Validator

from mooring.server.mooring.document import make_document
from mooring.server.mooring.routes import find_route

if TYPE_CHECKING:
    from collections.abc import Sequence

    from httpx2 import Response
    from starlette.testclient import TestClient

    from mooring.server.mooring.routes import Route

__all__ = ["Api", "at", "code_of"]

_DOCUMENT = make_document()


class Api:
    """Asks, as somebody if wanted, in one catalog."""

    def __init__(self, client: TestClient, who: str | None = None, catalog: str = "") -> None:
        self._client = client
        self._headers = {"Authorization": f"Bearer {who}"} if who else {}
        self._base = f"http://x/mooring/{catalog}" if catalog else "http://x/mooring"

    def get(self, path: str, **params: Any) -> Response:
        """Ask for something."""
        return self._checked("GET", path, **({"params": params} if params else {}))

    def post(self, path: str, body: object = None, **more: Any) -> Response:
        """Ask for a change; without a body unless one is given."""
        sent = {} if body is None else {"json": body}
        return self._checked("POST", path, **sent, **more)

    def done(self, path: str, body: object = None) -> Any:
        """Ask for a change, and return what came of it."""
        response = self.post(path, body)
        assert response.status_code == 200, response.text
        return response.json()

    def found(self, path: str, **params: Any) -> Any:
        """Ask for something that is there, and return it."""
        response = self.get(path, **params)
        assert response.status_code == 200, response.text
        return response.json()

    def call(self, route: Route, object_id: str, body: object) -> Response:
        """Call an operation, whatever it is, about an object."""
        path = route.path.removeprefix("/v1").replace("{id}", object_id)
        sent = {"json": body} if route.method == "POST" else {}
        return self._checked(route.method, path, **sent)

    def _checked(self, method: str, path: str, **more: Any) -> Response:
        headers = {**self._headers, **more.pop("headers", {})}
        response = self._client.request(method, f"{self._base}/v1{path}", headers=headers, **more)
        _check(method, f"/v1{path}", response)
        return response


def _check(method: str, path: str, response: Response) -> None:
    """Hold an answer to the document, as far as it knows the path."""
    sent = path.partition("?")[0].strip("/").encode().split(b"/")
    route = find_route(method, sent).route
    if route is None:
        return
    answers = _DOCUMENT["paths"][route.path][method.lower()]["responses"]
    answer = answers[str(response.status_code)]
    if "$ref" in answer:
        answer = _DOCUMENT["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    schema = {**answer["content"]["application/json"]["schema"], **_closed()}
    Draft202012Validator(schema).validate(response.json())


def _closed() -> dict[str, Any]:
    """Return the shapes, which have no fields but those that are told."""
    shapes = _DOCUMENT["components"]["schemas"]
    closed = {
        name: {**shape, "additionalProperties": False} if "properties" in shape else shape
        for name, shape in shapes.items()
    }
    return {"components": {"schemas": closed}}


def at(names: Sequence[str]) -> str:
    """Write an identifier in a path; the root is the delimiter alone."""
    return quote("$".join(names) or "$", safe="")


def code_of(response: Response) -> tuple[int, int]:
    """Return the status of a failure, and its code."""
    return response.status_code, response.json()["code"]
