"""The addresses of pages, which stay what they are: they may be kept and sent to others.

Each ends in a fixed word, after which ``.json`` asks for the same page as JSON: a name that itself
ends so is no other page's twin. An identifier stands in one segment, as in Lance's REST protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from mooring.identifiers import DELIMITER, ROOT

if TYPE_CHECKING:
    from mooring.identifiers import ObjectId

__all__ = ["CATALOGS_PATH", "JSON_ENDING", "LOGIN_PATH", "LOGOUT_PATH", "Links"]

CATALOGS_PATH = "/catalogs"
LOGIN_PATH = "/login"
LOGOUT_PATH = "/logout"
JSON_ENDING = ".json"


@dataclass(frozen=True, slots=True)
class Links:
    """The addresses within a catalog.

    Attributes:
        catalog: Its name.
    """

    catalog: str

    def to(self, page: str, /, **query: str | int | None) -> str:
        """Return the address of a page of the catalog, as ``trash`` or ``search``."""
        return _with(f"{CATALOGS_PATH}/{quote(self.catalog, safe='')}/{page}", query)

    def table(self, table: ObjectId, page: str = "overview", /, **query: str | int | None) -> str:
        """Return the address of a page of a table."""
        return self.to(f"tables/{_segment(table)}/{page}", **query)

    def namespace(
        self, namespace: ObjectId = ROOT, page: str = "browse", /, **query: str | int | None
    ) -> str:
        """Return the address of a page of a namespace."""
        if namespace.is_root:
            return self.to(page, **query)
        return self.to(f"namespaces/{_segment(namespace)}/{page}", **query)

    def transaction(self, txn_id: str) -> str:
        """Return the address of what a transaction did."""
        return self.to(f"transactions/{quote(txn_id, safe='')}/changes")

    def run(self, run: str) -> str:
        """Return the address of a run of a pipeline."""
        return self.to(f"runs/{quote(run, safe='')}/details")


def _segment(one: ObjectId) -> str:
    return quote(DELIMITER.join(one.names), safe="")


def _with(path: str, query: dict[str, str | int | None]) -> str:
    given = {key: value for key, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path
