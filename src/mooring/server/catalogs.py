"""The served catalog in the name of each of its clients.

A backend records changes in one name, so that each client who has one gets a backend of its own,
opened when it is first needed.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from mooring.opening import connect

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.catalog import Catalog
    from mooring.namespace.api import Backend

__all__ = ["Catalogs"]


class Catalogs:
    """One catalog, for everybody who uses it."""

    def __init__(self, catalog: Catalog, open_as: Callable[[str], Catalog] | None = None) -> None:
        """Serve a catalog.

        Args:
            catalog: As it was opened, for those who have no name.
            open_as: Opens it in another name; as it was opened before unless given.
        """
        self._catalog = catalog
        self._open_as = open_as or self._reopen
        self._named: dict[str, Backend] = {}
        self._opening = threading.Lock()

    @property
    def backend(self) -> Backend:
        """The catalog in its own name."""
        return self._catalog.backend

    def in_name_of(self, subject: str | None) -> Backend:
        """Return the catalog whose changes are recorded in somebody's name."""
        if subject is None:
            return self._catalog.backend
        with self._opening:
            if subject not in self._named:
                self._named[subject] = self._open_as(subject).backend
            return self._named[subject]

    def _reopen(self, subject: str) -> Catalog:
        return connect(self._catalog.uri, **{**self._catalog.options, "author": subject})
