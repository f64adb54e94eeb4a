"""How namespaces and tables are written in the paths and queries of an Iceberg REST catalog.

Every name is percent-encoded exactly once, also a slash, a plus sign and a space: servers differ in
what they read a bare one as.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "COMMIT_TRANSACTION",
    "DEFAULT_SEPARATOR",
    "RENAME_TABLE",
    "TABLE",
    "Paths",
    "encode_query",
    "read_separator",
]

# The unit separator, encoded: what joins the parts of a namespace unless a server says otherwise.
DEFAULT_SEPARATOR = "%1F"

# Endpoints as servers list them.
TABLE = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
RENAME_TABLE = "/v1/{prefix}/tables/rename"
COMMIT_TRANSACTION = "/v1/{prefix}/transactions/commit"

# A prefix is inserted as it was sent: it may be encoded already, and may have several parts.
_KEPT_IN_PREFIX = "/%:@!$&'()*+,;=~"


class Paths:
    """The paths of one catalog, below the server's address.

    Args:
        prefix: What the server wants before everything; may be none.
        separator: What joins the parts of a namespace, encoded.
    """

    def __init__(self, prefix: str | None, separator: str = DEFAULT_SEPARATOR) -> None:
        inserted = quote((prefix or "").strip("/"), safe=_KEPT_IN_PREFIX)
        self._base = f"/v1/{inserted}" if inserted else "/v1"
        self._separator = separator

    @property
    def namespaces(self) -> str:
        """Where namespaces are listed and made."""
        return f"{self._base}/namespaces"

    @property
    def rename(self) -> str:
        """Where tables are renamed."""
        return f"{self._base}/tables/rename"

    @property
    def transaction(self) -> str:
        """Where changes of several tables are committed."""
        return f"{self._base}/transactions/commit"

    def namespace(self, names: tuple[str, ...]) -> str:
        """Return where a namespace is."""
        return f"{self.namespaces}/{self._separator.join(map(_encode, names))}"

    def namespace_properties(self, names: tuple[str, ...]) -> str:
        """Return where the properties of a namespace are changed."""
        return f"{self.namespace(names)}/properties"

    def tables(self, namespace: tuple[str, ...]) -> str:
        """Return where the tables of a namespace are listed and made."""
        return f"{self.namespace(namespace)}/tables"

    def table(self, namespace: tuple[str, ...], name: str) -> str:
        """Return where a table is."""
        return f"{self.tables(namespace)}/{_encode(name)}"

    def parent(self, names: tuple[str, ...]) -> str:
        """Return a namespace as the value of a query, which is yet to be encoded."""
        return unquote(self._separator).join(names)


def read_separator(configured: str | None) -> str:
    """Return what joins the parts of a namespace, encoded, from how a server writes it."""
    if not configured:
        return DEFAULT_SEPARATOR
    return configured if "%" in configured else quote(configured, safe="")


def encode_query(parameters: Mapping[str, str]) -> str:
    """Return a query with its question mark; none for no parameters."""
    return f"?{urlencode(parameters, quote_via=quote, safe='')}" if parameters else ""


def _encode(name: str) -> str:
    # A lone dot is a step of a path to whatever normalizes addresses.
    return "%2E" * len(name) if name in {".", ".."} else quote(name, safe="")
