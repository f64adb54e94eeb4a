"""Catalogs of other implementations of Lance's namespaces, by a URI: ``impl+dir?root=/data``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qsl

from mooring.config import mask_uris
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    from lance_namespace import LanceNamespace

    from mooring.catalog import Catalog

__all__ = ["FOREIGN_SCHEME", "Servable", "open_foreign"]

# Whatever a server can serve.
Servable: TypeAlias = "Catalog | LanceNamespace"

FOREIGN_SCHEME = "impl+"
# Where in Lance's own source something failed helps nobody.
_SOURCE = re.compile(r",? /\S+\.rs:\d+:\d+")


def open_foreign(uri: str) -> LanceNamespace:
    """Open an implementation.

    Args:
        uri: Its name or the path of its class after ``impl+``, and its properties after ``?``.

    Raises:
        InvalidInputError: there is none, or it does not take its properties.
    """
    from lance_namespace import connect

    name, _, query = uri.removeprefix(FOREIGN_SCHEME).partition("?")
    try:
        properties = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
        return connect(name, properties)
    except Exception as exc:  # an implementation may fail by anything
        cause = exc.__context__
        if isinstance(cause, ValueError) and "unpack" in str(cause):  # it has no dot
            reason = f"'{name}' is neither dir, rest nor the path of a class, as package.Class"
        else:
            reason = _SOURCE.sub("", mask_uris(str(exc)))
        raise InvalidInputError(f"'{mask_uris(uri)}' cannot be opened: {reason}") from exc
