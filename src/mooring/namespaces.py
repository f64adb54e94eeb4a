"""The classes that `lance_namespace.connect` and Lance itself take: catalogs from properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_namespace.errors import from_error_code

from mooring.errors import InvalidInputError, MooringError
from mooring.namespace.lance import LanceAdapter
from mooring.opening import open_directory

if TYPE_CHECKING:
    from mooring.opening import DirectoryBackend

__all__ = ["DirectoryNamespace"]

_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_STORAGE = "storage."
_MANAGED = "table_version_tracking_enabled"
_KNOWN = {"root", "manifest_enabled", "dir_listing_enabled", "read_only", "author", _MANAGED}


class DirectoryNamespace(LanceAdapter):
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

    def __init__(self, **properties: str) -> None:
        """Open a catalog from properties.

        Raises:
            lance_namespace.LanceNamespaceError: the properties make no sense.
        """
        try:
            backend = _open(properties)
        except MooringError as exc:
            raise from_error_code(exc.code, str(exc)) from exc
        self._properties = dict(properties)
        root = backend.store.location("")
        super().__init__(backend, f"mooring.DirectoryNamespace {{ root: '{root}' }}")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by properties, so that executors open their own."""
        return _rebuild, (self._properties,)


def _rebuild(properties: dict[str, str]) -> DirectoryNamespace:
    return DirectoryNamespace(**properties)


def _open(properties: dict[str, str]) -> DirectoryBackend:
    root = properties.get("root")
    if not root:
        msg = "a directory catalog needs the property 'root': a path or an object store URI"
        raise InvalidInputError(msg)
    unknown = [key for key in properties if key not in _KNOWN and not key.startswith(_STORAGE)]
    if unknown:
        known = ", ".join(sorted(_KNOWN))
        msg = f"unknown property '{unknown[0]}': known are {known} and {_STORAGE}*"
        raise InvalidInputError(msg)
    options = {
        key.removeprefix(_STORAGE): value
        for key, value in properties.items()
        if key.startswith(_STORAGE)
    }
    return open_directory(
        root,
        options,
        read_only=_flag(properties, "read_only", default=False),
        author=properties.get("author"),
        manifest_enabled=_flag(properties, "manifest_enabled", default=True),
        dir_listing_enabled=_flag(properties, "dir_listing_enabled", default=True),
        managed_versioning=_flag(properties, _MANAGED, default=False),
    )


def _flag(properties: dict[str, str], key: str, *, default: bool) -> bool:
    text = properties.get(key)
    if text is None:
        return default
    if str(text).lower() not in _FLAGS:
        msg = f"property '{key}' is true or false, not '{text}'"
        raise InvalidInputError(msg)
    return _FLAGS[str(text).lower()]
