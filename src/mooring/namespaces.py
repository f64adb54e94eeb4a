"""The classes that `lance_namespace.connect` and Lance itself take: catalogs from properties."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from lance_namespace.errors import from_error_code

from mooring.errors import InvalidInputError, MooringError
from mooring.namespace.lance import LanceAdapter
from mooring.opening import open_directory, open_metastore

if TYPE_CHECKING:
    from mooring.metastore.backend import MetastoreBackend
    from mooring.opening import DirectoryBackend

__all__ = ["DirectoryNamespace", "MetastoreNamespace"]

_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_STORAGE = "storage."
_MANAGED = "table_version_tracking_enabled"


class _FromProperties(LanceAdapter):
    """A catalog that is opened from string properties, and pickled by them."""

    _known: ClassVar[frozenset[str]]

    def __init__(self, **properties: str) -> None:
        """Open a catalog from properties.

        Raises:
            lance_namespace.LanceNamespaceError: the properties make no sense.
        """
        try:
            options = self._check(properties)
            backend = self._open(properties, options)
        except MooringError as exc:
            raise from_error_code(exc.code, str(exc)) from exc
        self._properties = dict(properties)
        root = backend.store.location("")
        super().__init__(backend, f"mooring.{type(self).__name__} {{ root: '{root}' }}")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by properties, so that executors open their own."""
        return _rebuild, (type(self), self._properties)

    def _check(self, properties: dict[str, str]) -> dict[str, str]:
        """Return the storage options among properties, and refuse what is not known."""
        if not properties.get("root"):
            msg = "a catalog needs the property 'root': a path or an object store URI"
            raise InvalidInputError(msg)
        for key in properties:
            if key not in self._known and not key.startswith(_STORAGE):
                known = ", ".join(sorted(self._known))
                msg = f"unknown property '{key}': known are {known} and {_STORAGE}*"
                raise InvalidInputError(msg)
        return {
            key.removeprefix(_STORAGE): value
            for key, value in properties.items()
            if key.startswith(_STORAGE)
        }

    @abstractmethod
    def _open(
        self, properties: dict[str, str], options: dict[str, str]
    ) -> DirectoryBackend | MetastoreBackend:
        """Open the catalog."""


class DirectoryNamespace(_FromProperties):
    """A directory of Lance tables.

    Properties, all strings:
        root: The directory: a path or an ``s3://``, ``gs://`` or ``az://`` URI.
        manifest_enabled: Use the catalog's manifest; ``true`` by default.
        dir_listing_enabled: Find root tables by their directories, too; ``true`` by default.
        read_only: Refuse every change.
        author: In whose name changes are recorded.
        table_version_tracking_enabled: Have Lance commit through the catalog; ``false`` unless the
            catalog's settings say so.
        storage.*: Options of the store, named as Lance names them.
    """

    _known = frozenset(
        {"root", "manifest_enabled", "dir_listing_enabled", "read_only", "author", _MANAGED}
    )

    def _open(self, properties: dict[str, str], options: dict[str, str]) -> DirectoryBackend:
        return open_directory(
            properties["root"],
            options,
            read_only=_flag(properties, "read_only", default=False),
            author=properties.get("author"),
            manifest_enabled=_flag(properties, "manifest_enabled", default=True),
            dir_listing_enabled=_flag(properties, "dir_listing_enabled", default=True),
            managed_versioning=_flag(properties, _MANAGED, default=False),
        )


class MetastoreNamespace(_FromProperties):
    """A metastore: namespaces of one level, tables in them, and transactions over all.

    Properties, all strings:
        root: Where it lies: a path or an ``s3://``, ``gs://`` or ``az://`` URI.
        read_only: Refuse every change.
        author: In whose name changes are recorded.
        dialect: The layout of a new one: ``document``, the default, or ``deltacat``.
        beside_others: Change one of deltacat's while its own writers do, too.
        storage.*: Options of the store, named as Lance names them.
    """

    _known = frozenset({"root", "read_only", "author", "dialect", "beside_others"})

    def _open(self, properties: dict[str, str], options: dict[str, str]) -> MetastoreBackend:
        return open_metastore(
            properties["root"].removeprefix("metastore+"),
            options,
            read_only=_flag(properties, "read_only", default=False),
            author=properties.get("author"),
            dialect=properties.get("dialect"),
            beside_others=_flag(properties, "beside_others", default=False),
        )


def _rebuild(kind: type[_FromProperties], properties: dict[str, str]) -> _FromProperties:
    return kind(**properties)


def _flag(properties: dict[str, str], key: str, *, default: bool) -> bool:
    text = properties.get(key)
    if text is None:
        return default
    if str(text).lower() not in _FLAGS:
        msg = f"property '{key}' is true or false, not '{text}'"
        raise InvalidInputError(msg)
    return _FLAGS[str(text).lower()]
