"""The namespaces of an Iceberg catalog, as far as the server has them.

Spec: iceberg-namespace, "Namespace Mapping".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import (
    InvalidInputError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    ProtectedError,
    UnsupportedError,
)
from mooring.iceberg.connection import TRASH
from mooring.iceberg.properties import split_updates
from mooring.identifiers import ObjectId, quote
from mooring.namespace.api import CreateMode
from mooring.namespace.paging import cut
from mooring.namespace.presence import already_there
from mooring.namespace.properties import PROTECTED, check_properties

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.iceberg.connection import Connection

__all__ = ["Namespaces"]


class Namespaces:
    """What can be done with the namespaces of an Iceberg catalog."""

    def __init__(self, connection: Connection) -> None:
        """Work for a catalog."""
        self._connection = connection

    def list(
        self, parent: ObjectId, after: str | None = None, limit: int | None = None
    ) -> list[str]:
        """Name the direct child namespaces, sorted, without the trash.

        Others may have given names that no identifier can hold, as ``a/b``: they are left out.
        """
        self._connection.check_namespace(parent)
        try:
            found = sorted(self._connection.client.list_namespaces(parent.names))
        except NamespaceNotFoundError as exc:
            raise _absent(parent) from exc
        if parent.is_root:
            found = [name for name in found if name != TRASH]
        elif not found:
            self.describe(parent)  # some servers answer no names for what is not there
        return cut([name for name in found if self._connection.can_hold(name)], after, limit)

    def describe(self, namespace: ObjectId) -> dict[str, str]:
        """Return a namespace's properties; the root has none.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
        """
        if namespace.is_root:
            return {}
        self._connection.check_namespace(namespace)
        try:
            return self._connection.client.load_namespace(namespace.names)
        except NamespaceNotFoundError as exc:
            raise _absent(namespace) from exc

    def create(
        self, namespace: ObjectId, properties: Mapping[str, str], mode: CreateMode
    ) -> dict[str, str]:
        """Make a namespace.

        Raises:
            NamespaceAlreadyExistsError: it exists, and the mode is ``create``.
            NamespaceNotFoundError: there is no such parent.
            TableAlreadyExistsError: a table has the name.
        """
        self._connection.require_writable()
        if namespace.is_root:
            msg = "the root namespace is always there: name another"
            raise NamespaceAlreadyExistsError(msg)
        self._connection.check_namespace(namespace)
        self._connection.check_new(namespace.name)
        check_properties(properties)
        self._require_place(namespace)
        try:
            return self._connection.client.create_namespace(namespace.names, dict(properties))
        except NamespaceAlreadyExistsError as exc:
            if mode is CreateMode.CREATE:
                msg = f"there is a namespace {quote(str(namespace))} already"
                raise NamespaceAlreadyExistsError(msg) from exc
        known = self.describe(namespace)
        if mode is CreateMode.EXIST_OK:
            return known
        gone: dict[str, str | None] = dict.fromkeys(set(known) - set(properties) - {"location"})
        return self.update(namespace, {**gone, **properties})

    def _require_place(self, namespace: ObjectId) -> None:
        """Refuse a name without a parent, or one that a table has."""
        if namespace.parent.is_root:
            return
        self.describe(namespace.parent)
        if self._connection.client.table_exists(namespace.parent.names, namespace.name):
            raise already_there(namespace)

    def update(self, namespace: ObjectId, updates: Mapping[str, str | None]) -> dict[str, str]:
        """Change properties of a namespace, None removes one; return all."""
        self._connection.require_writable()
        if namespace.is_root:
            msg = "the root of an Iceberg catalog has no properties"
            raise UnsupportedError(msg)
        check_properties(updates)
        known = self.describe(namespace)
        put, removed = split_updates(known, updates)
        if removed or put:
            self._connection.client.update_namespace(namespace.names, removed, put)
        return self.describe(namespace)

    def drop(self, namespace: ObjectId, *, cascade: bool) -> dict[str, str]:
        """Drop an empty namespace.

        Raises:
            NamespaceNotEmptyError: something is in it.
            UnsupportedError: all in it is to go along, which no single request decides.
            ProtectedError: it is protected.
        """
        self._connection.require_writable()
        if namespace.is_root:
            msg = "the root namespace cannot be dropped"
            raise InvalidInputError(msg)
        properties = self.describe(namespace)
        if properties.get(PROTECTED) == "true":
            msg = f"namespace {quote(str(namespace))} is protected: lift the protection first"
            raise ProtectedError(msg)
        try:
            self._require_childless(namespace)
            self._connection.client.drop_namespace(namespace.names)
        except NamespaceNotEmptyError as exc:
            if not cascade:
                raise
            msg = (
                f"namespace {quote(str(namespace))} is not empty, and an Iceberg catalog decides"
                " about one table at a time: drop what is in it first, each can come back"
            )
            raise UnsupportedError(msg) from exc
        return properties

    def _require_childless(self, namespace: ObjectId) -> None:
        """Refuse a namespace with others in it, of which not all servers take note."""
        below = self._connection.client.list_namespaces(namespace.names)
        if below:
            msg = (
                f"namespace {quote(str(namespace))} is not empty: {len(below)} namespaces are in"
                f" it, such as {quote(min(below))}"
            )
            raise NamespaceNotEmptyError(msg)


def _absent(namespace: ObjectId) -> NamespaceNotFoundError:
    return NamespaceNotFoundError(f"there is no namespace {quote(str(namespace))}")
