"""The server as an application: the catalog under the addresses of each protocol."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Mount

from mooring.errors import InvalidInputError, NamespaceNotFoundError
from mooring.identifiers import ROOT
from mooring.namespace.home import AtHome
from mooring.server.auth import Authority
from mooring.server.catalogs import Catalogs
from mooring.server.iceberg.endpoint import IcebergEndpoint
from mooring.server.iceberg.names import Names
from mooring.server.settings import ServerSettings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from mooring.catalog import Catalog
    from mooring.namespace.api import Backend

__all__ = ["create_app"]


def create_app(catalog: Catalog, settings: ServerSettings | None = None) -> Starlette:
    """Make the application that serves a catalog; nothing is written.

    Args:
        catalog: What to serve.
        settings: How.

    Raises:
        InvalidInputError: the namespace for the tables of the root is one that exists.
    """
    wanted = settings or ServerSettings()
    names = Names(_name_for_root(catalog.backend, wanted.root_namespace))
    authority = Authority(wanted.clients, token_ttl_s=wanted.token_ttl_s)
    iceberg = IcebergEndpoint(Catalogs(catalog), names, authority, wanted)
    return Starlette(routes=[_Mount("/iceberg", app=iceberg)])


class _Mount(Mount):
    """A part of the server that answers every path below its own.

    The original does not know those that hold the end of a line.
    """

    def __init__(self, path: str, app: ASGIApp) -> None:
        super().__init__(path, app)
        self.path_regex = re.compile(self.path_regex.pattern, re.DOTALL)


def _name_for_root(backend: Backend, name: str) -> str | None:
    """Return what stands for the root; None where no table can lie in it."""
    if backend.levels not in {None, 1} or not isinstance(backend, AtHome):
        return None
    try:
        backend.describe_namespace(ROOT.child(name))
    except NamespaceNotFoundError:
        return name
    msg = (
        f"the catalog has a namespace '{name}', so that this cannot be the name for the tables of"
        " its root: choose another with --root-namespace"
    )
    raise InvalidInputError(msg)
