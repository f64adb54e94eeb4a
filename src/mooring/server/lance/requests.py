"""A request of HTTP as the model that Lance's namespaces take.

What it is about stands in the path, and may stand in the body, too: then both must agree. Context
travels in headers as well as in bodies: those that begin with `x-mooring-` are context by what
follows, so that a client can say `x-mooring-ttl: 7d` where a request has no body.

Spec: lance-rest-openapi, "Context", "Identity", and "REST NAMESPACE ONLY" throughout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec

from mooring.errors import InvalidInputError, InvalidNameError
from mooring.identifiers import DELIMITER, ROOT, ObjectId, quote
from mooring.server.lance.operations import Param, Takes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.server.lance.operations import Operation

__all__ = [
    "Query",
    "check_rows",
    "decode",
    "read_delimiter",
    "read_fields",
    "read_id",
    "read_query",
]

_JSON = "application/json"
_ARROW = {"application/vnd.apache.arrow.stream", "application/octet-stream"}
_MOST_PARAMETERS = 64
_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_CONTEXT, _BEARER = "x-mooring-", "bearer "

Query = dict[str, list[str]]


def read_query(text: bytes) -> Query:
    """Read the parameters of a request.

    Raises:
        InvalidInputError: they cannot be read.
    """
    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_PARAMETERS,
        )
    except ValueError as exc:
        raise InvalidInputError(f"the parameters of the request cannot be read: {exc}") from exc
    found: Query = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def read_delimiter(query: Query) -> str:
    """Return what separates the levels of identifiers in a request and its answer.

    Raises:
        InvalidInputError: it is empty.
    """
    delimiter = query.get("delimiter", [DELIMITER])[-1]
    if not delimiter:
        raise InvalidInputError("the delimiter cannot be empty: leave it out for '$'")
    return delimiter


def read_id(segment: bytes, delimiter: str, levels: int | None) -> ObjectId:
    """Read the identifier in a path; the delimiter alone is the root.

    Raises:
        InvalidNameError: it cannot be one.
    """
    text = decode(segment)
    if text == delimiter:
        return ROOT
    if not text:
        raise InvalidNameError(f"an identifier is missing: the root is {quote(delimiter)}")
    if levels == 1 and delimiter == DELIMITER:
        return ObjectId.of([text])  # there is nothing to separate
    return ObjectId.parse(text, delimiter)


def decode(segment: bytes) -> str:
    """Read a segment of a path.

    Raises:
        InvalidNameError: it is not valid Unicode.
    """
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError as exc:
        msg = f"{quote(segment.decode('ascii', 'replace'))} cannot be a name: it is not UTF-8"
        raise InvalidNameError(msg) from exc


def read_fields(
    operation: Operation,
    *,
    body: bytes,
    path: Mapping[str, str],
    about: ObjectId | None,
    query: Query,
    headers: Mapping[str, str],
) -> dict[str, Any]:
    """Gather the fields of a request's model from wherever they stand.

    Args:
        operation: What is asked for.
        body: What is no rows.
        path: The variable segments of the path, but for the identifier.
        about: The identifier.
        query: The parameters.
        headers: By name in small letters.

    Raises:
        InvalidInputError: something cannot be read, or contradicts something else.
    """
    fields = _read_body(operation, headers, body)
    fields |= _read_params(operation.params, query)
    for name, value in path.items():
        _agree(name, value, fields.get(name))
        fields[name] = value
    if about is not None:
        names = list(about.names)
        _agree("id", names, fields.get("id"))
        fields["id"] = names
    fields["identity"] = _identity(headers)
    context = {**(fields.get("context") or {}), **_context(headers)}
    fields["context"] = context or None
    return {key: value for key, value in fields.items() if value is not None}


def check_rows(headers: Mapping[str, str]) -> None:
    """Refuse a body that says to be no rows.

    Raises:
        InvalidInputError: it does.
    """
    kind = _media_type(headers)
    if kind and kind not in _ARROW:
        msg = f"rows come as 'application/vnd.apache.arrow.stream', not as {quote(kind)}"
        raise InvalidInputError(msg)


def _read_body(operation: Operation, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    if not body:
        return {}
    kind = _media_type(headers)
    if kind and kind != _JSON:
        raise InvalidInputError(f"this request is '{_JSON}', not {quote(kind)}")
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        raise InvalidInputError(f"the request is no JSON: {exc}") from exc
    if not isinstance(found, dict):
        raise InvalidInputError("the request is no JSON object")
    return {"metadata": found} if operation.takes is Takes.METADATA else found


def _read_params(known: Mapping[str, Param], query: Query) -> dict[str, Any]:
    return {
        name: _read_param(name, kind, query[name]) for name, kind in known.items() if name in query
    }


def _read_param(name: str, kind: Param, values: Sequence[str]) -> Any:  # noqa: ANN401  # of many types
    text = values[-1]
    match kind:
        case Param.TEXT:
            return text
        case Param.TEXTS:
            return [part for value in values for part in value.split(",") if part]
        case Param.FLAG if text.lower() in _FLAGS:
            return _FLAGS[text.lower()]
        case Param.NUMBER if text.strip().lstrip("-").isdecimal():
            return int(text)
        case Param.MAP:
            return _read_map(name, text)
    wanted = "true or false" if kind is Param.FLAG else "a whole number"
    raise InvalidInputError(f"parameter '{name}' is {wanted}, not {quote(text)}")


def _read_map(name: str, text: str) -> dict[str, str]:
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.MsgspecError, UnicodeEncodeError) as exc:
        msg = f"parameter '{name}' is a JSON object of texts: {exc}"
        raise InvalidInputError(msg) from exc


def _agree(name: str, asked: object, said: object) -> None:
    if said is not None and said != asked:
        msg = f"the path says that '{name}' is {asked!r}, but the body says {said!r}"
        raise InvalidInputError(msg)


def _identity(headers: Mapping[str, str]) -> dict[str, str] | None:
    found = {}
    authorization = headers.get("authorization", "")
    if authorization.lower().startswith(_BEARER):
        found["auth_token"] = authorization[len(_BEARER) :].strip()
    if "x-api-key" in headers:
        found["api_key"] = headers["x-api-key"]
    return found or None


def _context(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(_CONTEXT): value
        for name, value in headers.items()
        if name.startswith(_CONTEXT)
    }


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()
