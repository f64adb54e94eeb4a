"""The namespaces of a remote catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mooring.errors import (
    MooringError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
)
from mooring.identifiers import ROOT, ObjectId
from mooring.namespace.api import CreateMode
from mooring.namespace.asking import ask_each, namespaces_below
from mooring.namespace.paging import cut
from mooring.remote.times import ttl_headers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.namespace.api import Ttl
    from mooring.remote.connection import Connection

__all__ = ["Namespaces"]

_MODES = {
    CreateMode.CREATE: "Create",
    CreateMode.EXIST_OK: "ExistOk",
    CreateMode.OVERWRITE: "Overwrite",
}


class Namespaces:
    """What can be done with the namespaces of a remote catalog."""

    def __init__(self, connection: Connection) -> None:
        """Work for a catalog."""
        self._connection = connection

    def list(
        self, parent: ObjectId, after: str | None = None, limit: int | None = None
    ) -> list[str]:
        """Name the direct child namespaces, sorted."""

        def ask(page: Mapping[str, str | None]) -> dict[str, Any]:
            return self._connection.lance.of_namespace(parent, "list", method="GET", query=page)

        pages = self._connection.pages(ask)
        found = [str(name) for page in pages for name in page.get("namespaces") or ()]
        return cut(self._connection.child_names(parent, found), after, limit)

    def describe(self, namespace: ObjectId) -> dict[str, str]:
        """Return a namespace's properties.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
        """
        return _properties(self._connection.lance.of_namespace(namespace, "describe"))

    def describe_all(self) -> Sequence[tuple[ObjectId, Mapping[str, str]]]:
        """Return all namespaces with their properties, sorted: the root first."""
        beside = self._connection.beside.offered()
        if beside is not None:
            answer = beside.of_catalog("namespaces", "the namespaces", method="GET")
            told = answer.get("namespaces") or ()
            return sorted(
                ((ObjectId(tuple(one["id"])), one.get("properties") or {}) for one in told),
                key=lambda pair: pair[0],
            )
        found = [*namespaces_below(ROOT, self.list)]
        return [*zip(found, ask_each(self._look, found), strict=True)]

    def _look(self, namespace: ObjectId) -> Mapping[str, str]:
        """Describe a namespace; not all servers have words for their root."""
        try:
            return self.describe(namespace)
        except MooringError:
            if namespace.is_root:
                return {}
            raise

    def create(
        self, namespace: ObjectId, properties: Mapping[str, str], mode: CreateMode
    ) -> dict[str, str]:
        """Make a namespace."""
        self._connection.require_writable()
        body = {"mode": _MODES[mode], "properties": dict(properties)}

        def change() -> dict[str, str]:
            try:
                answer = self._connection.lance.of_namespace(
                    namespace, "create", body=body, changes=True
                )
            except NamespaceAlreadyExistsError:
                if mode is CreateMode.EXIST_OK:
                    return self.describe(namespace)  # some servers do not know the mode
                raise
            return _properties(answer)

        def look() -> dict[str, str] | None:
            found = self.describe(namespace)
            if mode is CreateMode.EXIST_OK:
                return found
            # Of one that was to be new, nothing tells whose it is.
            return found if mode is CreateMode.OVERWRITE and found == properties else None

        return self._connection.settle(change, look)

    def update(self, namespace: ObjectId, updates: Mapping[str, str | None]) -> dict[str, str]:
        """Change properties of a namespace, None removes one; return all."""
        self._connection.require_writable()
        beside = self._connection.beside.require("change properties of a namespace")

        def change() -> dict[str, str]:
            answer = beside.of_namespace(
                namespace, "properties", body={"updates": dict(updates)}, changes=True
            )
            return _properties(answer)

        def look() -> dict[str, str] | None:
            found = self.describe(namespace)
            return found if all(found.get(key) == text for key, text in updates.items()) else None

        return self._connection.settle(change, look)

    def drop(self, namespace: ObjectId, *, cascade: bool, ttl: Ttl | None) -> dict[str, str]:
        """Drop a namespace.

        Raises:
            UnsupportedError: a time in the trash is wanted of a server that has none.
        """
        self._connection.require_writable()
        if ttl is not None:
            self._connection.beside.require("keep what is dropped for a time")
        body = {"mode": "Fail", "behavior": "Cascade" if cascade else "Restrict"}

        def change() -> dict[str, str]:
            answer = self._connection.lance.of_namespace(
                namespace, "drop", body=body, headers=ttl_headers(ttl), changes=True
            )
            return _properties(answer)

        def look() -> dict[str, str] | None:
            try:
                self.describe(namespace)
            except NamespaceNotFoundError:
                return {}
            return None

        return self._connection.settle(change, look)

    def undrop(self, namespace: ObjectId) -> int:
        """Bring a dropped namespace back; tell how many objects that were."""
        self._connection.require_writable()
        beside = self._connection.beside.require("bring a namespace back")
        answer = beside.of_namespace(namespace, "undrop", changes=True)
        return int(answer.get("count") or 0)


def _properties(answer: Mapping[str, Any]) -> dict[str, str]:
    found = answer.get("properties") or {}
    return {str(key): str(value) for key, value in found.items()}
