"""The live tables of a remote catalog: which there are, and where each lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mooring.errors import MooringError, TableNotFoundError
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.asking import ask_each, namespaces_below

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.namespace.api import TableInfo
    from mooring.remote.connection import Connection
    from mooring.remote.namespaces import Namespaces

__all__ = ["Tables"]


class Tables:
    """Lists and locates the live tables of a catalog."""

    def __init__(self, connection: Connection, namespaces: Namespaces) -> None:
        """Work for a catalog.

        Args:
            connection: The server.
            namespaces: The catalog's namespaces.
        """
        self._connection = connection
        self._namespaces = namespaces

    # -- which there are -------------------------------------------------------------------------

    def all(self) -> list[ObjectId]:
        """Return the identifiers of all tables, sorted."""

        def ask(page: Mapping[str, str | None]) -> dict[str, Any]:
            lance = self._connection.lance
            return lance.of_catalog("table", "all tables", method="GET", query=page)

        if self._connection.beside.offered() is None:
            # Others do not have it, or list the tables of the root alone.
            return self._below(ROOT)
        found = [
            self._connection.parse(str(text))
            for page in self._connection.pages(ask)
            for text in page.get("tables") or ()
        ]
        return sorted({table for table in found if table is not None})

    def _below(self, namespace: ObjectId) -> list[ObjectId]:
        return sorted(
            one.child(name)
            for one in namespaces_below(namespace, self._namespaces.list)
            for name in self._names_in(one)
        )

    def _names_in(self, namespace: ObjectId) -> list[str]:
        """Name a namespace's tables; of some servers, the root cannot hold any."""
        try:
            return self.names_in(namespace)
        except MooringError:
            if namespace.is_root:
                return []
            raise

    def names_in(self, namespace: ObjectId, *, include_declared: bool = True) -> list[str]:
        """Name the tables of a namespace, sorted."""
        declared = None if include_declared else "false"

        def ask(page: Mapping[str, str | None]) -> dict[str, Any]:
            query = {**page, "include_declared": declared}
            lance = self._connection.lance
            return lance.of_namespace(namespace, "table/list", method="GET", query=query)

        pages = self._connection.pages(ask)
        found = [str(name) for page in pages for name in page.get("tables") or ()]
        return self._connection.child_names(namespace, found)

    # -- where they lie --------------------------------------------------------------------------

    def describe_below(self, namespace: ObjectId) -> list[TableInfo]:
        """Locate all tables of a namespace and of those below it.

        Of a server of Lance REST alone that takes a request for each.
        """
        beside, facts = self._connection.beside.offered(), self._connection.beside.facts
        if beside is None or facts is None:
            found = ask_each(self.look, self._below(namespace))
            return [info for info in found if info is not None]
        joint = beside.delimiter_for(namespace)
        query = {"within": joint.join(namespace.names) or None}
        answer = beside.of_catalog(
            "tables", "all tables", method="GET", query=query, delimiter=joint
        )
        return [
            self._connection.info(
                ObjectId(tuple(one["id"])),
                one,
                keeps_versions=bool(one.get("keeps_versions", facts.keeps_versions)),
            )
            for one in answer.get("tables") or ()
        ]

    def look(self, table: ObjectId) -> TableInfo | None:
        """Locate a table; None where there is none."""
        try:
            return self.describe(table)
        except TableNotFoundError:
            return None

    def describe(self, table: ObjectId, *, check_declared: bool = False) -> TableInfo:
        """Locate a table.

        Args:
            table: The identifier.
            check_declared: Whether to tell if it has no data.

        Raises:
            TableNotFoundError: there is none.
        """
        self._connection.require_table(table)
        asked = {"check_declared": "true"} if check_declared else {}
        answer = self._connection.lance.of_table(
            table,
            "describe",
            query=asked,
            body={
                "vend_credentials": self._connection.settings.delegation,
                **({"check_declared": True} if check_declared else {}),
            },
        )
        return self._connection.info(table, answer)
