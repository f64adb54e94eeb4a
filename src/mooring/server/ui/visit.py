"""A request as pages see it: who looks at what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.catalog import Catalog
from mooring.config import mask_uris
from mooring.errors import InvalidNameError
from mooring.identifiers import ROOT, ObjectId
from mooring.server.addresses import parse_id, read_number
from mooring.server.catalogs import MooringCatalog
from mooring.server.mooring.kinds import kind_of
from mooring.server.roles import Role
from mooring.server.ui.command_lines import catalog_words, command_line
from mooring.server.ui.links import Links

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mooring.namespace.api import Backend
    from mooring.server.catalogs import Served
    from mooring.server.mooring.kinds import Kind
    from mooring.server.roles import Identity
    from mooring.server.service import Service
    from mooring.server.ui.atlas.atlas import Atlas
    from mooring.table import Table

__all__ = ["Visit"]


@dataclass(frozen=True, slots=True)
class Visit:
    """One request for a page.

    Attributes:
        service: The server.
        served: The catalog.
        atlas: What is known of the catalog as a whole.
        identity: Who looks.
        path: The variable segments of the path, by name.
        query: The parameters.
        base: The server's address, as the browser has it.
        now_ms: When.
    """

    service: Service
    served: Served
    atlas: Atlas
    identity: Identity
    path: Mapping[str, str]
    query: Mapping[str, str]
    base: str
    now_ms: int

    # -- what is looked at -------------------------------------------------------------------------

    @property
    def links(self) -> Links:
        """The addresses within the catalog."""
        return Links(self.served.name)

    @property
    def kind(self) -> Kind:
        """What kind of catalog it is."""
        return kind_of(self.served)

    @property
    def backend(self) -> Backend:
        """The catalog, in the name of whoever looks.

        Raises:
            UnsupportedError: it is no catalog of Mooring's.
        """
        return self.served.backend(self.identity.subject)

    @property
    def catalog(self) -> Catalog:
        """The same, as people use it from Python; jobs can open it again elsewhere.

        Raises:
            UnsupportedError: it is no catalog of Mooring's.
        """
        backend, served = self.backend, self.served
        assert isinstance(served, MooringCatalog)  # noqa: S101  # others have no backend
        return Catalog(backend, served.catalog.uri, served.catalog.options)

    @property
    def table(self) -> ObjectId:
        """The table in the path.

        Raises:
            InvalidNameError: it cannot be one.
        """
        table = self._parse(self.path["table"])
        if table.is_root:
            raise InvalidNameError("a table needs a name: this is the root")
        return table

    @property
    def namespace(self) -> ObjectId:
        """The namespace in the path; the root where there is none.

        Raises:
            InvalidNameError: it cannot be one.
        """
        return self._parse(self.path["namespace"]) if "namespace" in self.path else ROOT

    def open_table(self) -> Table:
        """Return the live table in the path.

        Raises:
            TableNotFoundError: there is none.
        """
        return self.catalog.table(self.table)

    def parse(self, text: str) -> ObjectId:
        """Read an identifier that somebody typed, its levels joined by ``$``.

        Raises:
            InvalidNameError: it cannot be one.
        """
        return self._parse(text.strip())

    def _parse(self, text: str) -> ObjectId:
        return parse_id(text, "$", self.served.levels)

    def number(self, name: str, *, least: int = 0, most: int | None = None) -> int | None:
        """Read a parameter that is a whole number; None where it is not given.

        Raises:
            InvalidInputError: it is none, or not within its bounds.
        """
        # A field of a form that is left empty is sent, too.
        given = {key: text for key, value in self.query.items() if (text := value.strip())}
        return read_number(given, name, least=least, most=most)

    # -- what is allowed ---------------------------------------------------------------------------

    def may(self, role: Role, one: ObjectId = ROOT) -> bool:
        """Whether what a role may do is allowed with an object, and the catalog can be changed."""
        if role is not Role.READER and self.is_read_only:
            return False
        return self.identity.may(role, self.served.name, one)

    def sees(self, one: ObjectId) -> bool:
        """Whether a namespace may be shown: it can be read, or it leads to what can."""
        return self.identity.sees(self.served.name, one)

    @property
    def is_read_only(self) -> bool:
        """Whether nobody may change anything: it is no catalog of Mooring's, or opened so."""
        return self.served.is_read_only or not isinstance(self.served, MooringCatalog)

    # -- how others get there ----------------------------------------------------------------------

    @property
    def remote_uri(self) -> str:
        """How the catalog is opened through this server."""
        return f"lance+{self.base}/lance/{self.served.name}"

    @property
    def direct_uri(self) -> str | None:
        """How the catalog is opened without the server; None for those who may not know."""
        if not isinstance(self.served, MooringCatalog) or not self.may_know_uri:
            return None
        return mask_uris(self.served.catalog.uri)

    @property
    def may_know_uri(self) -> bool:
        """Whether whoever looks may know where the catalog lies: admins of all of it may."""
        return self.identity.may(Role.ADMIN, self.served.name)

    def cli(self, *words: str, names: Sequence[str] = ()) -> str:
        """Return a command that does something with this catalog, from any directory.

        Args:
            words: The command and its options.
            names: What follows them; one that begins with a dash is no option.
        """
        return command_line([*catalog_words(self), *words], *names)
