"""Which columns can be a key: those by which rows are told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from mooring.errors import InvalidInputError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["require_key_types"]


def require_key_types(schema: pa.Schema, columns: Sequence[str], what: str) -> None:
    """Refuse a key by which rows cannot be told apart.

    Raises:
        InvalidInputError: there is no key, a column is missing, or has a type of no use.
    """
    if not columns or len(set(columns)) < len(columns):
        msg = "name the key's columns, each once: --key id, or --key a,b"
        raise InvalidInputError(msg)
    for name in columns:
        if name not in schema.names:
            msg = f"{what} has no column {quote(name)} for a key: it has {', '.join(schema.names)}"
            raise InvalidInputError(msg)
        kind = schema.field(name).type
        if pa.types.is_nested(kind) or pa.types.is_floating(kind) or _is_odd(kind):
            msg = (
                f"column {quote(name)} of {what} is {kind}, which cannot be a key: use integers,"
                " text, bytes, booleans, dates, times or decimals"
            )
            raise InvalidInputError(msg)


def _is_odd(kind: pa.DataType) -> bool:
    is_view = pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)
    is_dictionary = pa.types.is_dictionary(kind) or isinstance(kind, pa.BaseExtensionType)
    return bool(pa.types.is_null(kind) or is_view or is_dictionary)
