"""Where tables of an Iceberg catalog lie, and how places are reached that have no table yet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError
from mooring.http.handed_options import prefer
from mooring.iceberg.credentials import storage_options
from mooring.iceberg.table import lance_location
from mooring.identifiers import quote

if TYPE_CHECKING:
    from mooring.iceberg.connection import Connection
    from mooring.identifiers import ObjectId

__all__ = ["Places"]

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST = 60
# Where a server tells that its tables lie.
_BASES = ("default-base-location", "warehouse")


class Places:
    """Knows where new tables go."""

    def __init__(self, connection: Connection, root: str | None) -> None:
        """Work for a catalog.

        Args:
            connection: The server.
            root: Where new tables lie; where the server says unless given.
        """
        self._connection = connection
        self.root = None if root is None else root.rstrip("/")

    def choose(self, table: ObjectId) -> str | None:
        """Choose a directory that no table has had; None where only the server knows."""
        base = self.below(table.parent)
        if base is None:
            return None
        # The name is for people who look into the directory; what tells tables apart is random.
        readable = _UNSAFE.sub("_", "-".join(table.names))[:_LONGEST].strip("_") or "table"
        return f"{base}/{readable}-{self._connection.ids.new_id()[:16]}.lance"

    def below(self, namespace: ObjectId) -> str | None:
        """Tell below what new tables of a namespace lie; None where only the server knows."""
        return self.root or self._base_of(namespace)

    def _base_of(self, namespace: ObjectId) -> str | None:
        client = self._connection.client
        known = client.load_namespace(namespace.names).get("location")
        offered = [known, *(client.config.properties.get(key) for key in _BASES)]
        found = next((one for one in offered if one and (":/" in one or one[0] == "/")), None)
        return None if found is None else found.rstrip("/")

    def options_for(self, location: str) -> dict[str, str]:
        """Tell how a place is reached of which the server has no table yet."""
        handed = storage_options(location, self._connection.client.config.properties, ())
        return prefer(handed, self._connection.storage_options)

    def absolute(self, location: str) -> str:
        """Return a location that was given, as Lance writes it.

        Raises:
            InvalidInputError: it is relative, and nothing says to what.
        """
        where = lance_location(location)
        if "://" in where or where.startswith("/"):
            return where
        if self.root is None:
            msg = f"{quote(location)} is no location here: give an absolute path or a URI, or open"
            raise InvalidInputError(f"{msg} the catalog with the property 'root'")
        return f"{lance_location(self.root)}/{where}"
