"""The served catalogs, each in the name of whoever uses it.

A backend records changes in one name, so that each client who has one gets a backend of its own,
opened when it is first needed. Any other implementation of Lance's namespaces can be served, too:
it is asked in its own name, and has what it has.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from mooring.catalog import Catalog
from mooring.errors import NotFoundError, UnsupportedError
from mooring.identifiers import quote
from mooring.opening import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lance_namespace import LanceNamespace

    from mooring.namespace.api import Backend

__all__ = ["Catalogs", "ForeignCatalog", "MooringCatalog", "Served"]

_MOST_NAMES = 1000


class Served(Protocol):
    """A catalog, for everybody who uses it."""

    @property
    def name(self) -> str:
        """By which clients choose it."""
        ...

    @property
    def levels(self) -> int | None:
        """The level of every table where there is one level only; None where tables nest."""
        ...

    @property
    def is_read_only(self) -> bool:
        """Whether it is known that nobody may change it."""
        ...

    def backend(self, subject: str | None = None) -> Backend:
        """Return it in somebody's name.

        Raises:
            UnsupportedError: it is no catalog of Mooring's.
        """
        ...

    def lance(self, subject: str | None = None) -> LanceNamespace:
        """Return it as Lance's requests are put to it, in somebody's name."""
        ...


@dataclass(frozen=True, slots=True)
class _Opened:
    backend: Backend
    lance: LanceNamespace


class MooringCatalog:
    """A catalog of Mooring's."""

    def __init__(
        self, name: str, catalog: Catalog, open_as: Callable[[str], Catalog] | None = None
    ) -> None:
        """Serve a catalog.

        Args:
            name: By which clients choose it.
            catalog: As it was opened, for those who have no name.
            open_as: Opens it in another name; as it was opened before unless given.
        """
        self.name = name
        self.catalog = catalog
        self._open_as = open_as or self._reopen
        self._named: dict[str | None, _Opened] = {}
        self._opening = threading.Lock()

    @property
    def levels(self) -> int | None:
        """The level of every table where there is one level only; None where tables nest."""
        return self.catalog.backend.levels

    @property
    def is_read_only(self) -> bool:
        """Whether it was opened so."""
        # Not by asking whether it is writable: that may write.
        return bool(getattr(self.catalog.backend, "read_only", False))

    def backend(self, subject: str | None = None) -> Backend:
        """Return the catalog whose changes are recorded in somebody's name."""
        return self._in_name_of(subject).backend

    def lance(self, subject: str | None = None) -> LanceNamespace:
        """Return it as Lance's requests are put to it, in somebody's name."""
        return self._in_name_of(subject).lance

    def _in_name_of(self, subject: str | None) -> _Opened:
        found = self._named.get(subject)
        if found is not None:
            return found
        with self._opening:
            opened = self._named.get(subject) or self._open(subject)
            self._named[subject] = opened
            # An issuer of tokens may have any number of subjects.
            for old in [*self._named][:-_MOST_NAMES]:
                del self._named[old]
            return opened

    def _open(self, subject: str | None) -> _Opened:
        from mooring.namespace.lance import LanceAdapter  # imports lance_namespace

        catalog = self.catalog if subject is None else self._open_as(subject)
        return _Opened(catalog.backend, LanceAdapter(catalog.backend, f"mooring {self.name}"))

    def _reopen(self, subject: str) -> Catalog:
        from mooring.metastore.backend import MetastoreBackend  # what directories do not need

        backend = self.catalog.backend
        if isinstance(backend, MetastoreBackend):
            # One chain in memory, and one line in which all wait for a commit.
            return Catalog(backend.in_name_of(subject), self.catalog.uri, self.catalog.options)
        return connect(self.catalog.uri, **{**self.catalog.options, "author": subject})


class ForeignCatalog:
    """Any implementation of Lance's namespaces."""

    levels = None
    is_read_only = False  # it tells those who try

    def __init__(self, name: str, namespace: LanceNamespace) -> None:
        """Serve an implementation.

        Args:
            name: By which clients choose it.
            namespace: The implementation, which must be safe for threads.
        """
        self.name = name
        self._namespace = namespace

    def backend(self, subject: str | None = None) -> Backend:
        """Refuse what only catalogs of Mooring's have.

        Raises:
            UnsupportedError: always.
        """
        del subject
        msg = (
            f"catalog {quote(self.name)} is {self._namespace.namespace_id()}, which has only what"
            " Lance's REST protocol has: use that, or serve a catalog of Mooring's"
        )
        raise UnsupportedError(msg)

    def lance(self, subject: str | None = None) -> LanceNamespace:
        """Return the implementation; in whose name it works is its own affair."""
        del subject
        return self._namespace


class Catalogs:
    """All catalogs of a server, the first of which is what those get who name none."""

    def __init__(self, served: Mapping[str, Served]) -> None:
        """Serve some catalogs, at least one."""
        self._served = dict(served)

    def __iter__(self) -> Iterator[Served]:
        """Go through them."""
        return iter(self._served.values())

    def __len__(self) -> int:
        """Count them."""
        return len(self._served)

    def __contains__(self, name: object) -> bool:
        """Whether one has a name."""
        return name in self._served

    @cached_property
    def default(self) -> Served:
        """The catalog of those who name none."""
        return next(iter(self._served.values()))

    def find(self, name: str | None) -> Served:
        """Return the catalog of a name.

        Raises:
            NotFoundError: there is none.
        """
        if name is None:
            return self.default
        if name not in self._served:
            known = ", ".join(quote(one) for one in self._served)
            raise NotFoundError(f"this server has no catalog {quote(name)}: it has {known}")
        return self._served[name]
