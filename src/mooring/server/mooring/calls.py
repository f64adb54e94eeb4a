"""A request as the operations see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from mooring.errors import InvalidNameError, UnsupportedError
from mooring.identifiers import ROOT, ObjectId, quote
from mooring.server.addresses import parse_id, read_number
from mooring.server.mooring.kinds import kind_of, name_kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.metastore.backend import MetastoreBackend
    from mooring.namespace.api import Backend, TableInfo
    from mooring.server.catalogs import Catalogs, Served
    from mooring.server.roles import Identity

__all__ = ["MOST", "Call", "Whole"]

# So many entries of a listing may be asked for.
MOST = 10_000


class _Standing(Protocol):
    @property
    def deleted_at_ms(self) -> int | None: ...

    @property
    def ttl_ms(self) -> int | None: ...


@runtime_checkable
class Whole(Protocol):
    """A catalog that tells all it holds without a look at each object."""

    def describe_namespaces(self) -> Sequence[tuple[ObjectId, Mapping[str, str]]]:
        """Return every namespace with its properties; the root is the first."""
        ...

    def describe_tables(self, within: ObjectId = ROOT) -> Sequence[TableInfo]:
        """Locate all live tables below a namespace."""
        ...

    def dropped_namespaces(self) -> Sequence[tuple[ObjectId, _Standing]]:
        """List the namespaces in the trash."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        catalogs: What the server has.
        served: The catalog that is asked for.
        identity: Who asks.
        path: The variable segments of the path, by name.
        query: The parameters.
        delimiter: What separates the levels of identifiers.
        asked: The body, in the shape that its route takes.
    """

    catalogs: Catalogs
    served: Served
    identity: Identity
    path: Mapping[str, str]
    query: Mapping[str, str]
    delimiter: str
    asked: Any = None

    @property
    def backend(self) -> Backend:
        """The catalog, in the name of whoever asks.

        Raises:
            UnsupportedError: it is no catalog of Mooring's.
        """
        return self.served.backend(self.identity.subject)

    @property
    def whole(self) -> Whole:
        """The same, where it tells all it holds.

        Raises:
            UnsupportedError: it does not.
        """
        backend = self.backend
        if isinstance(backend, Whole):
            return backend
        msg = f"catalog {quote(self.served.name)} cannot tell all it holds: ask namespace by one"
        raise UnsupportedError(msg)

    @property
    def metastore(self) -> MetastoreBackend:
        """The same, where it is a metastore.

        Raises:
            UnsupportedError: it is of another kind.
        """
        from mooring.metastore.backend import MetastoreBackend

        backend = self.backend
        if isinstance(backend, MetastoreBackend):
            return backend
        msg = (
            f"catalog {quote(self.served.name)} is {name_kind(kind_of(self.served))}, and only a"
            " metastore has transactions and runs"
        )
        raise UnsupportedError(msg)

    @property
    def about(self) -> ObjectId:
        """The identifier in the path; the root where there is none.

        Raises:
            InvalidNameError: it cannot be one.
        """
        return ROOT if "id" not in self.path else self._parse(self.path["id"])

    @property
    def table(self) -> ObjectId:
        """The identifier in the path, which is that of a table.

        Raises:
            InvalidNameError: it cannot be one.
        """
        about = self.about
        if about.is_root:
            raise InvalidNameError("a table needs a name: this is the root")
        return about

    @property
    def within(self) -> ObjectId:
        """The namespace that a listing is of; the root unless one is given.

        Raises:
            InvalidNameError: it cannot be one.
        """
        text = self.query.get("within")
        return self._parse(text) if text else ROOT

    def number(self, name: str, *, least: int | None = None, most: int | None = None) -> int | None:
        """Read a parameter that is a whole number; None where it is not given.

        Raises:
            InvalidInputError: it is none, or not within its bounds.
        """
        return read_number(self.query, name, least=least, most=most)

    def _parse(self, text: str) -> ObjectId:
        return parse_id(text, self.delimiter, self.served.levels)
