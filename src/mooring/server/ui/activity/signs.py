"""The way from a name in a record to the page of what has that name now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.config import mask_uris
from mooring.errors import MooringError
from mooring.identifiers import ObjectId

if TYPE_CHECKING:
    from mooring.server.ui.visit import Visit

__all__ = ["Place", "Signs"]

_FILES = "files"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What was read or written.

    Attributes:
        name: The table, or the files.
        href: The table's page; empty where it has none.
        what: Which version, or how many rows.
    """

    name: str
    href: str
    what: str


class Signs:
    """The pages of a catalog's objects, as one look at it has them."""

    def __init__(self, visit: Visit) -> None:
        """Look once, however many names follow.

        Args:
            visit: The request.
        """
        self._visit = visit
        self.look = visit.atlas.picture().look

    def parse(self, name: str) -> ObjectId:
        """Read the identifier of a table, whatever it is."""
        try:
            return self._visit.parse(name)
        except MooringError:
            return ObjectId((name,))

    def to(self, one: ObjectId) -> str:
        """Return the page of a table or namespace; nothing where it is not there."""
        if one in self.look.tables:
            return self._visit.links.table(one)
        is_namespace = bool(one.names) and one in self.look.namespaces
        return self._visit.links.namespace(one) if is_namespace else ""

    def place(self, kind: str, name: str, what: str = "") -> Place:
        """Show what was read or written.

        Args:
            kind: What it is; files are in no catalog.
            name: Its name.
            what: Which version, or how many rows.
        """
        if kind == _FILES:
            return Place(name=mask_uris(name), href="", what=what)
        return Place(name=name, href=self.to(self.parse(name)), what=what)
