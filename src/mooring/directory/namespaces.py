"""The namespaces of a manifest: rows with properties; the root's are in the manifest's own map.

Spec: directory-namespace, "V2: Manifest"; objects-and-relationships, "Namespace".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.directory.entries import (
    is_namespace,
    make_row,
    parent_of,
    properties_of,
    with_properties,
)
from mooring.errors import InvalidInputError, NamespaceNotFoundError
from mooring.identifiers import quote
from mooring.namespace.api import CreateMode
from mooring.namespace.properties import merge_properties
from mooring.tables.manifest import FORMAT_KEYS, NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mooring.directory.draft import Draft
    from mooring.directory.manifest import Manifest

__all__ = ["Namespaces"]

# What begins so in the manifest's map is not the root's.
_HIDDEN = (FORMAT_KEYS, "mooring.")


class Namespaces:
    """Makes, describes and changes namespaces."""

    def __init__(self, manifest: Manifest) -> None:
        """Work on a catalog's manifest."""
        self._manifest = manifest

    def properties(self, namespace: str) -> dict[str, str]:
        """Return a namespace's properties.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
        """
        if not namespace:
            return self._of_root()
        row = self._manifest.find(namespace)
        if not is_namespace(row):
            msg = f"there is no namespace {quote(namespace)}"
            raise NamespaceNotFoundError(msg)
        return properties_of(row)

    def _of_root(self) -> dict[str, str]:
        metadata = self._manifest.metadata
        return {k: value for k, value in metadata.items() if not k.startswith(_HIDDEN)}

    def require(self, namespace: str) -> None:
        """Refuse to go on without a namespace.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
        """
        if namespace:
            self.properties(namespace)

    def create(
        self,
        namespace: str,
        properties: Mapping[str, str],
        mode: CreateMode,
        check: Callable[[Draft, str], None],
    ) -> dict[str, str]:
        """Make a namespace.

        Returns:
            Its properties: those given, or those of the one that was there.

        Raises:
            NamespaceNotFoundError: the namespace around it is not there.
            NamespaceAlreadyExistsError: it is there, and the mode does not allow it.
            TableAlreadyExistsError: a table has its name.
        """

        def plan(draft: Draft) -> dict[str, str]:
            draft.require_namespace(parent_of(namespace))
            known = draft.get(namespace)
            if known is not None and is_namespace(known) and mode is not CreateMode.CREATE:
                if mode is CreateMode.EXIST_OK:
                    return properties_of(known)
                draft.put(with_properties(known, properties))
                return dict(properties)
            draft.require_free(namespace)
            check(draft, namespace)
            draft.put(make_row(namespace, NAMESPACE, None, properties))
            return dict(properties)

        return self._manifest.change(plan)

    def update(self, namespace: str, updates: Mapping[str, str | None]) -> dict[str, str]:
        """Change properties; None removes one.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
        """
        if not namespace:
            _require_properties(updates)
            self._manifest.change_metadata(
                lambda known: {k: v for k, v in updates.items() if known.get(k) != v}
            )
            return self._of_root()

        def plan(draft: Draft) -> dict[str, str]:
            draft.require_namespace(namespace)
            row = draft.get(namespace)
            assert row is not None  # noqa: S101  # required above
            properties = merge_properties(properties_of(row), updates)
            draft.put(with_properties(row, properties))
            return properties

        return self._manifest.change(plan)


def _require_properties(updates: Mapping[str, str | None]) -> None:
    for key in updates:
        if key.startswith(_HIDDEN):
            msg = f"{quote(key)} cannot be a property of the root: the manifest uses it itself"
            raise InvalidInputError(msg)
