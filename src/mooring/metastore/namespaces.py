"""The namespaces of a metastore: of one level, with properties, dropped and brought back whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from mooring.errors import (
    InvalidInputError,
    NamespaceAlreadyExistsError,
    UnsupportedError,
)
from mooring.identifiers import ObjectId, quote
from mooring.metastore.ground import Ground, live_namespaces
from mooring.metastore.lance_table import check_names, check_new_name, locator_of
from mooring.metastore.model import Namespace
from mooring.metastore.trash import require_namespace
from mooring.namespace.api import CreateMode
from mooring.namespace.paging import cut
from mooring.namespace.properties import check_properties, merge_properties

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.metastore.transaction import Transaction
    from mooring.namespace.api import Ttl

__all__ = ["Namespaces"]


class Namespaces(Ground):
    """What can be done with namespaces."""

    def list_namespaces(
        self, parent: ObjectId, *, after: str | None = None, limit: int | None = None
    ) -> list[str]:
        """Name the namespaces of the root; there are no others."""
        view = self.metastore.begin()
        if not parent.is_root:
            require_namespace(view, parent)
            return []
        return cut([found.locator.parts[0] for found in live_namespaces(view)], after, limit)

    def describe_namespace(self, namespace: ObjectId) -> Mapping[str, str]:
        """Return a namespace's properties; the root has none."""
        if namespace.is_root:
            return {}
        found = require_namespace(self.metastore.begin(), namespace)
        return dict(cast("Namespace", found.value).properties)

    def create_namespace(
        self,
        namespace: ObjectId,
        properties: Mapping[str, str],
        mode: CreateMode = CreateMode.CREATE,
    ) -> Mapping[str, str]:
        """Make a namespace of the root."""
        _check_namespace(namespace)
        check_properties(properties)
        locator = locator_of(namespace)

        def work(txn: Transaction) -> dict[str, str]:
            known = txn.find(locator)
            if known is None:
                txn.create(locator, Namespace(properties=dict(properties)))
                return dict(properties)
            if mode is CreateMode.CREATE:
                msg = f"there is a namespace {quote(str(namespace))} already"
                raise NamespaceAlreadyExistsError(msg)
            value = cast("Namespace", known.value)
            if mode is CreateMode.EXIST_OK:
                return dict(value.properties)
            txn.update(locator, replace(value, properties=dict(properties)))
            return dict(properties)

        return self._run(work, f"create namespace {namespace}", creates=True)

    def update_namespace(
        self, namespace: ObjectId, updates: Mapping[str, str | None]
    ) -> Mapping[str, str]:
        """Change properties of a namespace."""
        check_properties(updates)
        if namespace.is_root:
            msg = "the root of a metastore keeps no properties: set those of a namespace"
            raise UnsupportedError(msg)

        def work(txn: Transaction) -> dict[str, str]:
            found = require_namespace(txn, namespace)
            value = cast("Namespace", found.value)
            merged = merge_properties(value.properties, updates)
            txn.update(found.locator, replace(value, properties=merged))
            return merged

        return self._run(work, f"update namespace {namespace}")

    def drop_namespace(
        self, namespace: ObjectId, *, cascade: bool = False, ttl: Ttl | None = None
    ) -> Mapping[str, str]:
        """Move a namespace into the trash."""
        if namespace.is_root:
            msg = "the root namespace is the catalog itself and cannot be dropped"
            raise InvalidInputError(msg)
        self.home.reload_settings()

        def work(txn: Transaction) -> dict[str, str]:
            found = require_namespace(txn, namespace)
            self._trash.drop_namespace(txn, found, ttl, cascade=cascade)
            return dict(cast("Namespace", found.value).properties)

        return self._run(work, f"drop namespace {namespace}")

    def undrop_namespace(self, namespace: ObjectId) -> int:
        """Bring a dropped namespace back with all that was dropped with it."""
        check_names(namespace)
        return self._run(
            lambda txn: self._trash.undrop_namespace(txn, namespace),
            f"undrop namespace {namespace}",
        )


def _check_namespace(namespace: ObjectId) -> None:
    if namespace.is_root:
        msg = "a namespace needs a name"
        raise InvalidInputError(msg)
    check_new_name(namespace)
    if namespace.level > 1:
        msg = (
            f"{quote(str(namespace))} cannot be a namespace: a metastore has namespaces of one"
            " level, and tables in them"
        )
        raise UnsupportedError(msg)
