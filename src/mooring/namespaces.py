"""The classes that `lance_namespace.connect` and Lance itself take: catalogs from properties."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, cast

from lance_namespace.errors import from_error_code

from mooring.config import mask_uris
from mooring.errors import InvalidInputError, MooringError
from mooring.namespace.lance import LanceAdapter
from mooring.opening import current_author, open_directory, open_metastore

if TYPE_CHECKING:
    from mooring.iceberg.backend import IcebergBackend
    from mooring.metastore.backend import MetastoreBackend
    from mooring.opening import DirectoryBackend
    from mooring.remote.backend import RemoteBackend

    AnyBackend = DirectoryBackend | MetastoreBackend | IcebergBackend | RemoteBackend

__all__ = ["DirectoryNamespace", "IcebergNamespace", "MetastoreNamespace", "RemoteNamespace"]

_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_STORAGE = "storage."
_MANAGED = "table_version_tracking_enabled"


class _FromProperties(LanceAdapter):
    """A catalog that is opened from string properties, and pickled by them."""

    _known: ClassVar[frozenset[str]]
    _needed: ClassVar[str] = "root"
    _need: ClassVar[str] = "a path or an object store URI"

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
        where = self._where(properties, backend)
        super().__init__(backend, f"mooring.{type(self).__name__} {{ {self._needed}: '{where}' }}")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by properties, so that executors open their own."""
        return _rebuild, (type(self), self._properties)

    def _check(self, properties: dict[str, str]) -> dict[str, str]:
        """Return the storage options among properties, and refuse what is not known."""
        if not properties.get(self._needed):
            msg = f"a catalog needs the property '{self._needed}': {self._need}"
            raise InvalidInputError(msg)
        for key in properties:
            if not self._knows(key) and not key.startswith(_STORAGE):
                known = ", ".join(sorted(self._known))
                msg = f"unknown property '{key}': known are {known} and {_STORAGE}*"
                raise InvalidInputError(msg)
        return {
            key.removeprefix(_STORAGE): value
            for key, value in properties.items()
            if key.startswith(_STORAGE)
        }

    def _knows(self, key: str) -> bool:
        return key in self._known

    def _where(
        self,
        properties: dict[str, str],
        backend: AnyBackend,
    ) -> str:
        """Tell where the catalog is, for messages and Lance's caches."""
        del properties
        return cast("DirectoryBackend | MetastoreBackend", backend).store.location("")

    @abstractmethod
    def _open(self, properties: dict[str, str], options: dict[str, str]) -> AnyBackend:
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


class IcebergNamespace(_FromProperties):
    """An Iceberg REST catalog, of which the tables with `table_type=lance` are Lance's.

    Properties, all strings:
        uri: The address of the REST server.
        warehouse: Which of the server's catalogs.
        prefix: What goes before everything in paths; the server says it unless given.
        token: A bearer token.
        credential: ``id:secret`` of OAuth2's client credentials.
        scope: What tokens are asked for; ``catalog`` by default.
        oauth2_server_uri: Who gives tokens; the server itself unless given.
        audience, resource: For whom and for what tokens are, where that is asked.
        ca_file: The authorities whose certificates count.
        client_cert, client_key: What is shown to the server.
        verify: Whether the server's certificate is looked at; ``true`` by default.
        timeout_s: How long an answer may take, in seconds; 30 by default.
        page_size: How many names are asked for at once; 1000 by default.
        delegation: Ask the server for credentials of the storage; ``true`` by default.
        root: Where new tables lie: a path or URI; where the server says unless given.
        managed_by: Who decides about versions of new tables: ``storage``, the default, or ``impl``.
        checked_listing: Leave tables of Iceberg's out of listings, with a request for each table.
        read_only: Refuse every change.
        author: In whose name changes are recorded.
        header.*: Sent with every request.
        storage.*: Options of the store, named as Lance names them.
    """

    _needed = "uri"
    _need = "the address of an Iceberg REST catalog, as in 'https://host/iceberg'"
    _known = frozenset(
        {
            "auth_token",
            "audience",
            "author",
            "ca_file",
            "checked_listing",
            "client_cert",
            "client_key",
            "credential",
            "delegation",
            "managed_by",
            "oauth2-server-uri",
            "oauth2_server_uri",
            "page_size",
            "prefix",
            "read_only",
            "resource",
            "rest-page-size",
            "root",
            "scope",
            "timeout_s",
            "token",
            "uri",
            "verify",
            "warehouse",
        }
    )

    def _knows(self, key: str) -> bool:
        return super()._knows(key) or key.startswith("header.")

    def _where(
        self,
        properties: dict[str, str],
        backend: AnyBackend,
    ) -> str:
        del backend
        warehouse = properties.get("warehouse")
        return mask_uris(properties["uri"]) + (f"', warehouse: '{warehouse}" if warehouse else "")

    def _open(self, properties: dict[str, str], options: dict[str, str]) -> IcebergBackend:
        from mooring.iceberg.opening import open_iceberg

        own = _own(properties)
        return open_iceberg(
            {**own, "uri": own["uri"].removeprefix("iceberg+")},
            options,
            read_only=_flag(properties, "read_only", default=False),
            author=properties.get("author") or current_author(),
        )


class RemoteNamespace(_FromProperties):
    """What a Lance REST server keeps, with all that Mooring's servers have beside Lance REST.

    Properties, all strings:
        uri: The address of the server, as in ``http://host:8765/lance``.
        delimiter: What joins the names of identifiers in paths; ``$`` by default.
        mooring_uri: Where the server has what Lance REST has no route for; beside ``/lance`` unless
            given, ``none`` for nowhere.
        token: A bearer token.
        credential: ``id:secret``; sent as it is unless somebody gives tokens for it.
        oauth2_server_uri: Who gives tokens for the credential, by OAuth2.
        scope: What tokens are asked for; ``catalog`` by default.
        api_key: Sent as ``x-api-key``.
        ca_file: The authorities whose certificates count.
        client_cert, client_key: What is shown to the server.
        verify: Whether the server's certificate is looked at; ``true`` by default.
        timeout_s: How long an answer may take, in seconds; 30 by default.
        page_size: How many names are asked for at once; 1000 by default.
        delegation: Ask the server for credentials of the storage; ``true`` by default.
        read_only: Refuse every change.
        author: In whose name tables are written; the server's records name whom it knows.
        header.*: Sent with every request.
        storage.*: Options of the store, named as Lance names them.
    """

    _needed = "uri"
    _need = "the address of a Lance REST server, as in 'https://host/lance'"
    _known = frozenset(
        {
            "api_key",
            "author",
            "ca_file",
            "client_cert",
            "client_key",
            "credential",
            "delegation",
            "delimiter",
            "mooring_uri",
            "oauth2_server_uri",
            "page_size",
            "read_only",
            "scope",
            "timeout_s",
            "token",
            "uri",
            "verify",
        }
    )

    def _knows(self, key: str) -> bool:
        return super()._knows(key) or key.startswith("header.")

    def _where(self, properties: dict[str, str], backend: AnyBackend) -> str:
        del backend
        return mask_uris(properties["uri"])

    def _open(self, properties: dict[str, str], options: dict[str, str]) -> RemoteBackend:
        from mooring.remote.opening import open_remote

        own = _own(properties)
        return open_remote(
            {**own, "uri": own["uri"].removeprefix("lance+")},
            options,
            read_only=_flag(properties, "read_only", default=False),
            author=properties.get("author") or current_author(),
        )


def _own(properties: dict[str, str]) -> dict[str, str]:
    """Return what says how a server is reached."""
    return {
        key: value
        for key, value in properties.items()
        if key not in {"read_only", "author"} and not key.startswith(_STORAGE)
    }


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
