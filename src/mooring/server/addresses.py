"""What a request's address says: the catalog, the path below it, identifiers and parameters.

Paths are taken as they were sent, before they are decoded, so that a name may hold whatever a path
is made of. Identifiers stand in one segment, their levels joined by a delimiter.

Spec: lance-rest-openapi, "String Identifier".
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote_to_bytes

from mooring.errors import InvalidInputError, InvalidNameError
from mooring.identifiers import DELIMITER, ROOT, ObjectId, quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.types import Scope

__all__ = [
    "decode",
    "match_path",
    "parse_id",
    "raw_path",
    "read_delimiter",
    "read_number",
    "read_pairs",
    "read_query",
    "split_catalog",
]

_VERSION = b"v1"
_MOST_PARAMETERS = 64
_MOST_DIGITS = 18  # of any number; long ones take long to read


def raw_path(scope: Scope) -> bytes:
    """Return the path below where an application is mounted, as it was sent."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    above: str = scope.get("root_path", "")
    return raw.partition(b"?")[0].removeprefix(above.encode())


def split_catalog(path: bytes) -> tuple[str | None, list[bytes]]:
    """Return the catalog that a path names before ``v1``, if it does, and the rest of it."""
    segments = path.strip(b"/").split(b"/")
    if len(segments) > 1 and segments[0] != _VERSION and segments[1] == _VERSION:
        return segments[0].decode("ascii", "replace"), segments[1:]
    return None, segments


def match_path(template: Sequence[str], sent: Sequence[bytes]) -> Mapping[str, bytes] | None:
    """Return the variable segments of a path, as they were sent; None where it is another path.

    Args:
        template: The segments, with names in braces for what varies.
        sent: Those of a request.
    """
    if len(template) != len(sent):
        return None
    values: dict[str, bytes] = {}
    for name, segment in zip(template, sent, strict=True):
        if name.startswith("{"):
            values[name.strip("{}")] = segment
        elif name.encode() != segment:
            return None
    return values


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


def read_pairs(text: bytes) -> list[tuple[str, str]]:
    """Read the parameters of a request, each as often as it was given.

    Raises:
        InvalidInputError: they cannot be read.
    """
    try:
        return parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_PARAMETERS,
        )
    except ValueError as exc:
        raise InvalidInputError(f"the parameters of the request cannot be read: {exc}") from exc


def read_query(text: bytes) -> dict[str, str]:
    """Read the parameters of a request; of those that are given twice, the last counts.

    Raises:
        InvalidInputError: they cannot be read.
    """
    return dict(read_pairs(text))


def read_number(
    query: Mapping[str, str], name: str, *, least: int | None = None, most: int | None = None
) -> int | None:
    """Read a parameter that is a whole number; None where it is not given.

    Raises:
        InvalidInputError: it is none, or not within its bounds.
    """
    text = query.get(name)
    if text is None:
        return None
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS):
        raise InvalidInputError(f"parameter '{name}' is a whole number, not {quote(text)}")
    value = int(text)
    if (least is not None and value < least) or (most is not None and value > most):
        bounds = f"at least {least}" if most is None else f"from {least} to {most}"
        raise InvalidInputError(f"parameter '{name}' is {bounds}, not {value}")
    return value


def read_delimiter(given: str | None) -> str:
    """Return what separates the levels of the identifiers in an address.

    Raises:
        InvalidInputError: it is empty.
    """
    if given == "":
        raise InvalidInputError("the delimiter cannot be empty: leave it out for '$'")
    return given or DELIMITER


def parse_id(text: str, delimiter: str, levels: int | None) -> ObjectId:
    """Read an identifier; the delimiter alone is the root.

    Args:
        text: As it was decoded.
        delimiter: What separates its levels.
        levels: The level of every table where the catalog has one level only.

    Raises:
        InvalidNameError: it cannot be one.
    """
    if text == delimiter:
        return ROOT
    if not text:
        raise InvalidNameError(f"an identifier is missing: the root is {quote(delimiter)}")
    if levels == 1 and delimiter == DELIMITER:
        return ObjectId.of([text])  # there is nothing to separate
    return ObjectId.parse(text, delimiter)
