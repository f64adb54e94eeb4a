"""A request of HTTP as the model that Lance's namespaces take.

What it is about stands in the path, and may stand in the body, too: then both must agree. Context
travels in headers as well as in bodies: those that begin with `x-mooring-` are context by what
follows, so that a client can say `x-mooring-ttl: 7d` where a request has no body.

Spec: lance-rest-openapi, "Context", "Identity", and "REST NAMESPACE ONLY" throughout.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from mooring.errors import InvalidInputError, InvalidNameError
from mooring.identifiers import DELIMITER, ObjectId, quote
from mooring.server.addresses import decode, read_delimiter, read_pairs
from mooring.server.lance.operation import Param, Takes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.server.lance.operation import Operation

__all__ = [
    "Query",
    "check_rows",
    "delimiter_of",
    "read_fields",
    "read_id",
    "read_query",
    "read_segment",
    "restore_root",
]

_JSON = "application/json"
_ARROW = {"application/vnd.apache.arrow.stream", "application/octet-stream"}
_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_CONTEXT, _BEARER = "x-mooring-", "bearer "
_LARGEST_PAGE = 2**31 - 1
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_NO_VECTORS: tuple[dict[str, list[float]], ...] = ({}, {"single_vector": []}, {"multi_vector": []})

Query = dict[str, list[str]]


def read_query(text: bytes) -> Query:
    """Read the parameters of a request.

    Raises:
        InvalidInputError: they cannot be read.
    """
    found: Query = {}
    for key, value in read_pairs(text):
        found.setdefault(key, []).append(value)
    return found


def delimiter_of(query: Query) -> str:
    """Return what separates the levels of identifiers in a request and its answer.

    Raises:
        InvalidInputError: it is empty.
    """
    return read_delimiter(query.get("delimiter", [DELIMITER])[-1])


def read_id(text: str, delimiter: str, said: object = None) -> ObjectId:
    """Read the identifier in a path; the delimiter alone is the root.

    Args:
        text: As it was decoded.
        delimiter: What separates its levels.
        said: What the body says, which is the same where it is the same text: so names that hold
            the delimiter can be said.

    Raises:
        InvalidNameError: it cannot be one.
        InvalidInputError: the body says something else.
    """
    if not text:
        raise InvalidNameError(f"an identifier is missing: the root is {quote(delimiter)}")
    names = [] if text == delimiter else text.split(delimiter)
    if isinstance(said, list) and said and delimiter.join(map(str, said)) == text:
        return ObjectId.of(said)
    _agree("id", names, said)
    return ObjectId.of(names)


def restore_root(segments: Sequence[bytes], query_string: bytes) -> Sequence[bytes]:
    """Put the root back where it is missing: a segment of one dot means nothing in addresses.

    Most clients therefore leave it out, also where the delimiter is a dot.

    Args:
        segments: The path from ``v1`` on.
        query_string: The parameters, as they were sent.
    """
    if b"delimiter=" not in query_string or list(segments[:2]) != [b"v1", b"namespace"]:
        return segments
    given = dict(parse_qsl(query_string.decode("ascii", "replace"), keep_blank_values=True))
    rest = list(segments[2:])
    # The parameter tells the tables of the root from the namespaces of one that is called 'table'.
    lists_tables = rest == [b"table", b"list"] and "include_declared" in given
    if given.get("delimiter") != "." or not (len(rest) == 1 or lists_tables):
        return segments
    return [*segments[:2], b".", *rest]


def read_segment(segment: bytes) -> str:
    """Read a segment of a path as Lance's own clients write it.

    Raises:
        InvalidNameError: it is not valid Unicode.
    """
    # They write a space as a plus sign, and a plus sign as %2B.
    return decode(segment.replace(b"+", b" "))


def read_fields(
    operation: Operation,
    *,
    body: bytes,
    path: Mapping[str, str],
    query: Query,
    headers: Mapping[str, str],
) -> dict[str, Any]:
    """Gather the fields of a request's model from wherever they stand.

    Args:
        operation: What is asked for.
        body: What is no rows.
        path: The variable segments of the path.
        query: The parameters.
        headers: By name in small letters.

    Raises:
        InvalidInputError: something cannot be read, or contradicts something else.
    """
    fields = _read_body(operation, headers, body)
    fields |= _read_params(operation.params, query)
    said = fields.pop("id", None)
    for name, value in path.items():
        if name == "id":
            fields["id"] = list(read_id(value, delimiter_of(query), said).names)
        else:
            _agree(name, value, fields.get(name))
            fields[name] = value
    _complete(operation, fields)
    fields["identity"] = _identity(headers) or fields.get("identity")
    fields["context"] = _merge(fields.get("context"), _context(headers))
    if isinstance(fields.get("limit"), int):
        fields["limit"] = min(fields["limit"], _LARGEST_PAGE)
    return {key: value for key, value in fields.items() if value is not None}


def _complete(operation: Operation, fields: dict[str, Any]) -> None:
    """Complete a query, or one in a request, which is about the same table."""
    if "k" in operation.model.model_fields:
        _complete_query(fields)
    inner = fields.get("query")
    if "query" in operation.model.model_fields and isinstance(inner, dict):
        _agree("id", fields["id"], inner.get("id"))
        inner["id"] = fields["id"]
        _complete_query(inner)


def _complete_query(query: dict[str, Any]) -> None:
    """Say what the model of a query demands, though a query of rows has no need to say it."""
    query["vector"] = {} if query.get("vector") is None else query["vector"]
    query["k"] = 0 if query.get("k") is None else query["k"]
    if query["vector"] in _NO_VECTORS:
        # lancedb says with every query that has no vector that it wants no index of vectors.
        query.pop("bypass_vector_index", None)


def _merge(said: object, more: Mapping[str, str]) -> object:
    """Add to the context that a body has; what is no context is for the model to refuse."""
    if said is None or isinstance(said, dict):
        return {**(said or {}), **more} or None
    return said


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
    if found is None:  # how clients of Lance 13 ask for the versions of a table
        return {}
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
            return [value for value in values if value]
        case Param.FLAG if text.lower() in _FLAGS:
            return _FLAGS[text.lower()]
        case Param.NUMBER if _NUMBER.fullmatch(text):
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
