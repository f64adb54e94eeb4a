"""What a method gave back as an answer of HTTP."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import BaseModel
from starlette.responses import Response

from mooring.errors import InvalidInputError
from mooring.identifiers import DELIMITER, quote
from mooring.server.lance.operation import Gives

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mooring.server.lance.operation import Operation

    Shown = Callable[[dict[str, Any]], dict[str, Any]]

__all__ = ["render", "write_ids"]

_JSON = "application/json"
_HEADER = "header."
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\x20-\x7e]*")
# What an implementation that asks another server has from that one's answer, and what is only for
# this server to say.
_OWN_HEADERS = frozenset(
    {
        "access-control-allow-origin",
        "alt-svc",
        "connection",
        "date",
        "keep-alive",
        "location",
        "proxy-authenticate",
        "retry-after",
        "server",
        "set-cookie",
        "strict-transport-security",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "vary",
        "www-authenticate",
        "x-request-id",
    }
)


def render(
    operation: Operation,
    answer: Any,  # noqa: ANN401  # any of the answers
    shown: Shown,
) -> Response:
    """Write an answer.

    Args:
        operation: What was asked for.
        answer: What its method gave back: a model, or what a model would hold.
        shown: Leaves out what is not for the client.
    """
    fields = _fields(answer)
    context: Mapping[str, str] = fields.pop("context", None) or {}
    headers = _headers(context)
    if operation.gives is Gives.NOTHING:
        return Response(status_code=operation.status, headers=headers)
    rest = {key: value for key, value in context.items() if not key.startswith(_HEADER)}
    if rest:
        fields["context"] = rest
    body = _body(operation, answer, shown(fields) if operation.gives is Gives.FIELDS else fields)
    return Response(msgspec.json.encode(body), operation.status, headers, _JSON)


def _fields(answer: Any) -> dict[str, Any]:  # noqa: ANN401  # any of the answers
    if isinstance(answer, BaseModel):
        return answer.model_dump(by_alias=True, exclude_none=True)
    # Nobody looked whether these hold secrets: models are looked at, mappings are of others.
    found = answer if isinstance(answer, dict) else {}
    return {key: value for key, value in found.items() if key != "storage_options"}


def _body(operation: Operation, answer: Any, fields: dict[str, Any]) -> Any:  # noqa: ANN401  # any JSON
    match operation.gives:
        case Gives.NUMBER:
            return fields.get("count", answer)
        case Gives.TEXT:
            return fields.get("plan", fields.get("analysis", answer))
        case Gives.METADATA:
            return fields.get("metadata") or {}
    return fields


def _headers(context: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that an implementation wants to be sent."""
    found = {
        key.removeprefix(_HEADER).lower(): value
        for key, value in context.items()
        if key.startswith(_HEADER)
    }
    return {key: value for key, value in found.items() if _may_be_sent(key, value)}


def _may_be_sent(name: str, value: str) -> bool:
    if name in _OWN_HEADERS or name.startswith("content-"):
        return False
    return _NAME.fullmatch(name) is not None and _VALUE.fullmatch(value) is not None


def write_ids(body: dict[str, Any], delimiter: str, *, flat: bool) -> dict[str, Any]:
    """Write the identifiers of all tables with the delimiter that was asked for.

    Args:
        body: The answer.
        delimiter: What separates levels.
        flat: Whether all tables are in the root, so that nothing is separated.

    Raises:
        InvalidInputError: a name holds it.
    """
    if delimiter == DELIMITER or flat:
        return body
    for one in body["tables"]:
        if delimiter in one:
            msg = f"{quote(one)} holds the delimiter {quote(delimiter)}: choose another"
            raise InvalidInputError(msg)
    return {**body, "tables": [one.replace(DELIMITER, delimiter) for one in body["tables"]]}
