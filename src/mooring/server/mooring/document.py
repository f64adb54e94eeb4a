"""The published document of these addresses, made of the table of routes.

Spec: OpenAPI 3.1.
"""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from mooring import __version__
from mooring.identifiers import DELIMITER
from mooring.server.mooring.routes import ROUTES
from mooring.server.problems import Failure
from mooring.server.roles import Role
from mooring.server.tokens import TOKEN_PATH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from msgspec import Struct

    from mooring.server.mooring.routes import Param, Route

__all__ = ["CHANGES_PATH", "DOCUMENT_PATH", "encode_document", "failures_of", "make_document"]

DOCUMENT_PATH = "/v1/openapi.json"
# Beside the table, as a stream that does not end.
CHANGES_PATH = "/v1/changes"
_ROLE = "x-mooring-role"
_JSON = "application/json"
_REF = "#/components/schemas/{name}"
# Every operation may answer with these.
_ALWAYS = (400, 401, 403, 404, 500, 503)
_SOME = _UNSUPPORTED, _CONFLICT = 406, 409
_ABOUT = (
    "What Mooring's catalogs have and Lance's REST protocol has no address for: dropped tables and"
    " their return, the trash, protection, properties, history, transactions and runs. Identifiers"
    " in paths are written as in Lance's protocol; in bodies they are lists of names. Times are"
    " milliseconds since 1970."
)
_SEGMENTS = {
    "id": f"The names from the root down, joined by the delimiter; '{DELIMITER}' is the root.",
    "txn": "The id of a transaction, as listed.",
    "run": "The id of a run, as listed, or how it begins.",
}


@cache
def encode_document() -> bytes:
    """Return the document as it is served."""
    return msgspec.json.encode(make_document())


def make_document() -> dict[str, Any]:
    """Make the document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Mooring", "version": __version__, "description": _ABOUT},
        "servers": [
            {"url": "/mooring", "description": "The catalog of those who name none."},
            {
                "url": "/mooring/{catalog}",
                "description": "A catalog by its name.",
                "variables": {"catalog": {"default": "default"}},
            },
        ],
        "security": [{}, {"bearer": []}, {"apiKey": []}, {"oauth2": []}],
        "paths": _paths(),
        "components": {
            "schemas": _schemas(),
            "responses": {_name(status): _failure(status) for status in (*_ALWAYS, *_SOME)},
            "securitySchemes": _security(),
        },
    }


def failures_of(route: Route) -> Sequence[int]:
    """Return the statuses of failures that an operation may answer with."""
    more = [] if route.is_foreign else [_UNSUPPORTED]
    return [*_ALWAYS, *more, *([_CONFLICT] if route.changes else [])]


def _paths() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {**paths, CHANGES_PATH: {"get": _changes()}, DOCUMENT_PATH: {"get": _document()}}


def _changes() -> dict[str, Any]:
    """Describe the stream of changes, which is no operation that is over at some time."""
    header = {
        "name": "Last-Event-ID",
        "in": "header",
        "description": "The id of the last event that was seen: the stream goes on after it.",
        "schema": {"type": "string"},
    }
    namespace = _parameter(
        "namespace", "Only changes in this namespace; all unless given.", {"type": "string"}
    )
    events = {"text/event-stream": {"schema": {"type": "string"}}}
    return {
        "operationId": "WatchChanges",
        "summary": "Hear of changes as they happen, as server-sent events.",
        "description": "For the role reader.",
        _ROLE: str(Role.READER),
        "parameters": [namespace, _delimiter(), header],
        "responses": {
            "200": {"description": "Events, as long as somebody listens.", "content": events},
            **_failed((*_ALWAYS, _UNSUPPORTED)),
        },
    }


def _document() -> dict[str, Any]:
    content = {_JSON: {"schema": {"type": "object"}}}
    return {
        "operationId": "GetDocument",
        "summary": "Get this document.",
        "description": "For anybody.",
        "security": [{}],
        "responses": {"200": {"description": "This document.", "content": content}},
    }


def _operation(route: Route) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": route.name,
        "summary": _first_line(route.run),
        "description": f"For the role {route.role}.",
        _ROLE: str(route.role),
        "parameters": list(_parameters(route)),
        "responses": _responses(route),
    }
    if route.takes is not None:
        needed = any(one.required for one in msgspec.structs.fields(route.takes))
        made["requestBody"] = {"required": needed, "content": _content(route.takes)}
    return made


def _parameters(route: Route) -> Iterator[dict[str, Any]]:
    for segment in route.segments:
        if segment.startswith("{"):
            name = segment.strip("{}")
            schema = {"type": "string", "minLength": 1}
            yield {"name": name, "in": "path", "required": True, "schema": schema} | {
                "description": _SEGMENTS[name]
            }
    for name, param in route.params.items():
        yield _parameter(name, param.about, _bounds(param))
    if "{id}" in route.segments or "within" in route.params:
        yield _delimiter()


def _delimiter() -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "default": DELIMITER}
    return _parameter("delimiter", "What separates the levels of the identifier.", schema)


def _parameter(name: str, about: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": about, "schema": schema}


def _bounds(param: Param) -> dict[str, Any]:
    bounds = {"minimum": param.least, "maximum": param.most}
    return {"type": param.kind} | {key: one for key, one in bounds.items() if one is not None}


def _responses(route: Route) -> dict[str, Any]:
    done = {"description": _first_line(route.gives), "content": _content(route.gives)}
    return {"200": done, **_failed(failures_of(route))}


def _failed(statuses: Iterable[int]) -> dict[str, Any]:
    return {
        str(status): {"$ref": f"#/components/responses/{_name(status)}"}
        for status in sorted(statuses)
    }


def _name(status: int) -> str:
    return HTTPStatus(status).phrase.replace(" ", "")


def _failure(status: int) -> dict[str, Any]:
    return {"description": HTTPStatus(status).phrase, "content": _content(Failure)}


def _content(shape: type[Struct]) -> dict[str, Any]:
    return {_JSON: {"schema": {"$ref": _REF.format(name=shape.__name__)}}}


def _schemas() -> dict[str, Any]:
    given = {route.gives for route in ROUTES} | {Failure}
    taken = {route.takes for route in ROUTES if route.takes is not None}
    shapes = sorted(given | taken, key=lambda one: one.__name__)
    _, found = msgspec.json.schema_components(shapes, ref_template=_REF)
    return {name: _flat(found[name]) for name in sorted(found)}


def _flat(schema: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only repeats the name."""
    return {key: value for key, value in schema.items() if key != "title"}


def _first_line(thing: object) -> str:
    return (thing.__doc__ or "").partition("\n")[0]


def _security() -> dict[str, Any]:
    return {
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token, or a client's id and secret, joined by a colon.",
        },
        "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
        "oauth2": {
            "type": "oauth2",
            "flows": {"clientCredentials": {"tokenUrl": TOKEN_PATH, "scopes": {}}},
        },
    }
