"""The classes that `lance_namespace.connect` and Lance itself take: catalogs from properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_namespace.errors import from_error_code

from mooring.errors import InvalidInputError, MooringError, UnsupportedError
from mooring.namespace.lance import LanceAdapter
from mooring.opening import open_directory

if TYPE_CHECKING:
    from mooring.directory.backend import DirectoryBackend

__all__ = ["DirectoryNamespace"]

_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_STORAGE = "storage."
_KNOWN = {"root", "manifest_enabled", "dir_listing_enabled", "read_only", "author"}


class DirectoryNamespace(LanceAdapter):
    """A directory of Lance tables.

    Properties, all strings:
        root: The directory: a path or an ``s3://``, ``gs://`` or ``az://`` URI.
        manifest_enabled: Must be ``false`` (and is by default): this release lists directories.
        dir_listing_enabled: Must be ``true`` (and is by default).
        read_only: Refuse every change.
        author: In whose name changes are recorded.
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
    if _flag(properties, "manifest_enabled", default=False):
        msg = "manifest catalogs are not part of this release: leave manifest_enabled=false"
        raise UnsupportedError(msg)
    if not _flag(properties, "dir_listing_enabled", default=True):
        msg = "without a manifest, dir_listing_enabled=false leaves nothing to read"
        raise UnsupportedError(msg)
    options = {
        key.removeprefix(_STORAGE): value
        for key, value in properties.items()
        if key.startswith(_STORAGE)
    }
    read_only = _flag(properties, "read_only", default=False)
    return open_directory(root, options, read_only=read_only, author=properties.get("author"))


def _flag(properties: dict[str, str], key: str, *, default: bool) -> bool:
    text = properties.get(key)
    if text is None:
        return default
    if str(text).lower() not in _FLAGS:
        msg = f"property '{key}' is true or false, not '{text}'"
        raise InvalidInputError(msg)
    return _FLAGS[str(text).lower()]
