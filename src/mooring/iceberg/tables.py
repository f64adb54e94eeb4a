"""The live tables of an Iceberg catalog: which there are, and which of them are Lance's.

A server's listing has names alone. Where more is to be told, each table is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import NamespaceNotFoundError, NotLanceTableError
from mooring.identifiers import is_name
from mooring.namespace.asking import ask_each, namespaces_below

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.iceberg.connection import Connection
    from mooring.iceberg.namespaces import Namespaces
    from mooring.iceberg.table import IcebergTable
    from mooring.identifiers import ObjectId

__all__ = ["Tables"]


class Tables:
    """Lists and loads the live tables of a catalog."""

    def __init__(self, connection: Connection, namespaces: Namespaces, *, checked: bool) -> None:
        """Work for a catalog.

        Args:
            connection: The server.
            namespaces: The catalog's namespaces.
            checked: Whether listings leave out tables of Iceberg's.
        """
        self._connection = connection
        self._namespaces = namespaces
        self._checked = checked

    def names_in(self, namespace: ObjectId, *, include_declared: bool = True) -> list[str]:
        """Name the tables of a namespace, sorted; the root has none.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
        """
        if namespace.is_root:
            return []
        self._connection.check_namespace(namespace)
        names = sorted(self._listed_in(namespace))
        if not include_declared:
            return [table.id.name for table in self._load(namespace, names) if table.has_data()]
        if self._checked:
            return [table.id.name for table in self._load(namespace, names)]
        return names

    def _listed_in(self, namespace: ObjectId) -> list[str]:
        try:
            names = self._connection.client.list_tables(namespace.names)
        except NamespaceNotFoundError:
            names = []
        if not names:
            # Some servers list nothing of what is not there.
            self._namespaces.describe(namespace)
        return [name for name in names if is_name(name)]

    def below(self, namespace: ObjectId) -> list[ObjectId]:
        """Return the identifiers of all tables of a namespace and of those below it."""
        return [
            one.child(name)
            for one in namespaces_below(namespace, self._namespaces.list)
            for name in self.names_in(one)
        ]

    def load_below(self, namespace: ObjectId) -> list[IcebergTable]:
        """Return all Lance tables of a namespace and of those below it: a request for each."""
        tables = self.below(namespace)
        found = []
        for parent in sorted({table.parent for table in tables}):
            names = [table.name for table in tables if table.parent == parent]
            found += self._load(parent, names)
        return found

    def _load(self, namespace: ObjectId, names: Sequence[str]) -> list[IcebergTable]:
        """Return those tables of names that are Lance's, some asked for at once."""

        def look(name: str) -> IcebergTable | None:
            try:
                return self._connection.look(namespace.child(name), refs_only=True)
            except NotLanceTableError:
                return None

        return [table for table in ask_each(look, names) if table is not None]
