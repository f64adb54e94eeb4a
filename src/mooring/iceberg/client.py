"""A client of Iceberg REST catalogs: one method for each thing that can be asked of one.

It knows the wire and nothing of Lance. Listings are read to their end, names travel as they are,
and every failure is an error of Mooring's (`failures`).

Spec: Iceberg REST catalog, OpenAPI 1.9.0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from mooring.errors import NotFoundError, TableNotFoundError, UnsupportedError
from mooring.http.authorization import Grant
from mooring.iceberg.failures import ICEBERG, Ask, Goal, not_offered
from mooring.iceberg.paths import COMMIT_TRANSACTION, RENAME_TABLE, TABLE, encode_query
from mooring.iceberg.server_config import ServerConfig
from mooring.iceberg.settings import ClientSettings
from mooring.identifiers import DELIMITER, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mooring.iceberg.paths import Paths

__all__ = ["ClientSettings", "LoadedTable", "RestClient", "ServerConfig"]


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table as a catalog sends it.

    Attributes:
        metadata: Iceberg's metadata of it.
        config: How its storage is reached.
        credentials: The right to use its storage, by prefix of locations.
        metadata_location: Where the catalog keeps the metadata; None where it does not tell.
    """

    metadata: Mapping[str, Any]
    config: Mapping[str, str] = field(default_factory=dict, repr=False)  # it may hold secrets
    credentials: Sequence[Mapping[str, Any]] = field(default=(), repr=False)  # so does this
    metadata_location: str | None = None

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> LoadedTable | None:
        """Read an answer; None where it holds no metadata of a table."""
        metadata = answer.get("metadata")
        if not isinstance(metadata, dict):
            return None
        return cls(
            metadata,
            answer.get("config") or {},
            answer.get("storage-credentials") or (),
            answer.get("metadata-location"),
        )


class RestClient:
    """An Iceberg REST catalog; safe for threads.

    Every method raises UnauthenticatedError, PermissionDeniedError and ServiceUnavailableError
    where the server does; those that change something raise UnknownOutcomeError where it may have
    happened or not.

    Args:
        settings: How the server is reached; nothing is asked of it yet.

    Raises:
        MissingExtraError: the packages of the extra ``iceberg`` are not installed.
        InvalidInputError: a file of certificates cannot be used.
    """

    def __init__(self, settings: ClientSettings) -> None:
        from mooring.http.sender import Sender

        self._settings = settings
        grant = Grant.of(settings.given(), settings.address)
        self._sender = Sender(settings.reach, grant, ICEBERG)
        self._lock = Lock()
        self._config: ServerConfig | None = None

    def close(self) -> None:
        """Close all connections."""
        self._sender.close()

    @property
    def server(self) -> str:
        """The server's address, for messages."""
        return self._sender.server

    @property
    def config(self) -> ServerConfig:
        """What the server says about itself; asked once.

        Raises:
            NotFoundError: it has no such warehouse, or is no Iceberg REST catalog.
        """
        with self._lock:
            if self._config is None:
                self._config = self._fetch_config()
            return self._config

    def offers(self, method: str, path: str) -> bool:
        """Whether the server has an endpoint; one that does not list them may have any.

        Args:
            method: Of HTTP.
            path: As the specification writes it: ``/v1/{prefix}/tables/rename``.
        """
        return self.config.offers(method, path)

    def list_namespaces(self, parent: tuple[str, ...]) -> list[str]:
        """Name the direct children of a namespace; of the root, with no parent.

        Raises:
            NamespaceNotFoundError: there is no such parent.
        """
        query = {"parent": self._paths.parent(parent)} if parent else {}
        ask = Ask(Goal.READ_NAMESPACE, "GET", self._paths.namespaces, _namespace(parent))
        found = (tuple(one) for one in self._pages(ask, "namespaces", query))
        # Some servers name those below the children as well, or the parent itself.
        children = (one for one in found if len(one) == len(parent) + 1)
        return [one[-1] for one in children if one[:-1] == parent]

    def load_namespace(self, ns: tuple[str, ...]) -> dict[str, str]:
        """Return the properties of a namespace.

        Raises:
            NamespaceNotFoundError: there is none.
        """
        path = self._paths.namespace(ns)
        answer = self._sender.fetch(Ask(Goal.READ_NAMESPACE, "GET", path, _namespace(ns)))
        return dict(answer.get("properties") or {})

    def create_namespace(
        self, ns: tuple[str, ...], properties: Mapping[str, str]
    ) -> dict[str, str]:
        """Make a namespace and return its properties.

        Raises:
            NamespaceAlreadyExistsError: it is there already.
            NamespaceNotFoundError: there is no such parent, where the server minds.
            UnsupportedError: the server has no namespaces of so many levels.
        """
        body = {"namespace": list(ns), "properties": dict(properties)}
        ask = Ask(Goal.CREATE_NAMESPACE, "POST", self._paths.namespaces, _namespace(ns), body)
        return dict(self._sender.fetch(ask).get("properties") or {})

    def update_namespace(
        self, ns: tuple[str, ...], removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Change properties of a namespace.

        Raises:
            NamespaceNotFoundError: there is none.
            InvalidInputError: a property is to go and to be set.
        """
        body = {"removals": list(removals), "updates": dict(updates)}
        path = self._paths.namespace_properties(ns)
        self._sender.send(Ask(Goal.UPDATE_NAMESPACE, "POST", path, _namespace(ns), body))

    def drop_namespace(self, ns: tuple[str, ...]) -> None:
        """Delete an empty namespace.

        Raises:
            NamespaceNotFoundError: there is none.
            NamespaceNotEmptyError: something is in it.
        """
        path = self._paths.namespace(ns)
        self._sender.send(Ask(Goal.DROP_NAMESPACE, "DELETE", path, _namespace(ns)))

    def list_tables(self, ns: tuple[str, ...]) -> list[str]:
        """Name the tables of a namespace, whatever they are of; one request a page.

        Raises:
            NamespaceNotFoundError: there is none.
        """
        ask = Ask(Goal.READ_NAMESPACE, "GET", self._paths.tables(ns), _namespace(ns))
        return [str(one["name"]) for one in self._pages(ask, "identifiers", {})]

    def load_table(self, ns: tuple[str, ...], name: str, *, refs_only: bool = False) -> LoadedTable:
        """Return all that the catalog knows of a table.

        Args:
            ns: Its namespace.
            name: Its name.
            refs_only: Only those snapshots are needed that a branch or tag names; some servers send
                all nevertheless.

        Raises:
            TableNotFoundError: there is none.
            NamespaceNotFoundError: the server says that there is not even the namespace.
        """
        query = encode_query({"snapshots": "refs" if refs_only else "all"})
        path = f"{self._paths.table(ns, name)}{query}"
        return self._load(Ask(Goal.READ_TABLE, "GET", path, _table(ns, name)))

    def table_exists(self, ns: tuple[str, ...], name: str) -> bool:
        """Whether there is a table of this name, whatever it is of."""
        if not self.offers("HEAD", TABLE):
            return self._loads(ns, name)
        try:
            self._sender.send(
                Ask(Goal.READ_TABLE, "HEAD", self._paths.table(ns, name), _table(ns, name))
            )
        except TableNotFoundError:
            return False
        except UnsupportedError:
            return self._loads(ns, name)
        return True

    def create_table(
        self,
        ns: tuple[str, ...],
        name: str,
        *,
        schema: Mapping[str, Any],
        location: str | None,
        properties: Mapping[str, str],
    ) -> LoadedTable:
        """Make a table without a snapshot.

        Args:
            ns: Its namespace.
            name: Its name.
            schema: In Iceberg's JSON.
            location: Where it lies; the server decides where none is given.
            properties: Kept with it.

        Raises:
            NamespaceNotFoundError: there is no such namespace.
            TableAlreadyExistsError: the name is taken.
            InvalidInputError: the server does not accept the name, the schema or the location.
        """
        body: dict[str, Any] = {
            "name": name,
            "schema": dict(schema),
            "properties": dict(properties),
            "stage-create": False,
        }
        if location is not None:
            body["location"] = location
        return self._load(
            Ask(Goal.CREATE_TABLE, "POST", self._paths.tables(ns), _table(ns, name), body)
        )

    def update_table(
        self,
        ns: tuple[str, ...],
        name: str,
        requirements: Sequence[Mapping[str, Any]],
        updates: Sequence[Mapping[str, Any]],
    ) -> Mapping[str, Any]:
        """Change a table where all requirements hold, and return its new metadata.

        Raises:
            TableNotFoundError: there is none.
            ConcurrentModificationError: a requirement does not hold.
            InvalidInputError: the server does not accept an update.
        """
        body = _table_change(ns, name, requirements, updates)
        path = self._paths.table(ns, name)
        return self._load(Ask(Goal.COMMIT, "POST", path, _table(ns, name), body)).metadata

    def drop_table(self, ns: tuple[str, ...], name: str) -> None:
        """Forget a table and keep its bytes.

        Raises:
            TableNotFoundError: there is none.
        """
        path = f"{self._paths.table(ns, name)}{encode_query({'purgeRequested': 'false'})}"
        self._sender.send(Ask(Goal.DROP_TABLE, "DELETE", path, _table(ns, name)))

    def rename_table(
        self, source: tuple[tuple[str, ...], str], target: tuple[tuple[str, ...], str]
    ) -> None:
        """Give a table another name, also in another namespace.

        Raises:
            TableNotFoundError: there is none.
            NamespaceNotFoundError: there is no such namespace to go to.
            TableAlreadyExistsError: the new name is taken.
            UnsupportedError: the server cannot.
        """
        body = {"source": _identifier(*source), "destination": _identifier(*target)}
        what = f"{_table(*source)} to {_table(*target)}"
        ask = Ask(Goal.RENAME_TABLE, "POST", self._paths.rename, what, body)
        self._require_offer(ask, RENAME_TABLE)
        self._sender.send(ask)

    def commit_transaction(
        self,
        changes: Sequence[
            tuple[
                tuple[str, ...],
                str,
                Sequence[Mapping[str, Any]],
                Sequence[Mapping[str, Any]],
            ]
        ],
    ) -> None:
        """Change several tables, all or none, where all requirements hold.

        Args:
            changes: Of each table its namespace, its name, what must hold, and what to do.

        Raises:
            TableNotFoundError: one is not there.
            ConcurrentModificationError: a requirement does not hold.
            UnsupportedError: the server cannot.
        """
        body = {"table-changes": [_table_change(*one) for one in changes]}
        what = ", ".join(_table(one[0], one[1]) for one in changes)
        ask = Ask(Goal.COMMIT_SEVERAL, "POST", self._paths.transaction, what, body)
        self._require_offer(ask, COMMIT_TRANSACTION)
        self._sender.send(ask)

    @property
    def _paths(self) -> Paths:
        return self.config.paths

    def _fetch_config(self) -> ServerConfig:
        warehouse = self._settings.warehouse
        query = encode_query({"warehouse": warehouse} if warehouse else {})
        what = f"warehouse {quote(warehouse)}" if warehouse else "the configuration"
        answer = self._sender.fetch(Ask(Goal.CONFIG, "GET", f"/v1/config{query}", what))
        config = ServerConfig.read(answer, self._settings)
        self._sender.follow(config.address, Grant.of(config.properties, config.address))
        return config

    def _pages(self, ask: Ask, key: str, query: Mapping[str, str]) -> Iterator[Any]:
        """Read a listing to its end.

        Servers of Iceberg's own making page only for those who send a token, also an empty one.
        """
        token, seen = "", set[str]()
        while True:
            page = {"pageToken": token, "pageSize": str(self._settings.page_size)}
            answer = self._sender.fetch(
                Ask(ask.goal, ask.method, f"{ask.path}{encode_query({**query, **page})}", ask.what)
            )
            yield from answer.get(key) or ()
            token = answer.get("next-page-token") or ""
            if not token:
                return
            if token in seen:
                raise self._sender.unreadable(ask, "its pages go in a circle")
            seen.add(token)

    def _load(self, ask: Ask) -> LoadedTable:
        found = LoadedTable.read(self._sender.fetch(ask))
        if found is None:
            raise self._sender.unreadable(ask, "there is no metadata of a table in it")
        return found

    def _loads(self, ns: tuple[str, ...], name: str) -> bool:
        try:
            self.load_table(ns, name, refs_only=True)
        except NotFoundError:
            return False
        return True

    def _require_offer(self, ask: Ask, path: str) -> None:
        if not self.offers(ask.method, path):
            raise not_offered(ask, self.server)


def _namespace(names: tuple[str, ...]) -> str:
    return f"namespace {quote(DELIMITER.join(names))}" if names else "the root namespace"


def _table(namespace: tuple[str, ...], name: str) -> str:
    return f"table {quote(DELIMITER.join((*namespace, name)))}"


def _identifier(namespace: tuple[str, ...], name: str) -> dict[str, Any]:
    return {"namespace": list(namespace), "name": name}


def _table_change(
    namespace: tuple[str, ...],
    name: str,
    requirements: Sequence[Mapping[str, Any]],
    updates: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    return {
        "identifier": _identifier(namespace, name),
        "requirements": list(requirements),
        "updates": list(updates),
    }
