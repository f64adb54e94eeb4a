"""The server as an application: its catalogs under the addresses of each protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Mount

from mooring.catalog import Catalog
from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.server.auth import Authority
from mooring.server.catalogs import Catalogs, ForeignCatalog, MooringCatalog
from mooring.server.iceberg.endpoint import IcebergEndpoint
from mooring.server.lance.endpoint import LanceEndpoint
from mooring.server.service import Service
from mooring.server.settings import ServerSettings
from mooring.server.work import Workers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from lance_namespace import LanceNamespace
    from starlette.types import ASGIApp

    from mooring.server.catalogs import Served

__all__ = ["DEFAULT_NAME", "create_app", "create_service"]

DEFAULT_NAME = "default"
# Paths would be ambiguous with others, and names are shown in addresses.
_NAME = re.compile(r"(?!v[0-9]+$)[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


def create_app(
    catalogs: Catalog | LanceNamespace | Mapping[str, Catalog | LanceNamespace],
    settings: ServerSettings | None = None,
) -> Starlette:
    """Make the application that serves catalogs; nothing is written.

    Args:
        catalogs: What to serve: a catalog, any implementation of Lance's namespaces, or several of
            them by name, the first of which is that of clients who name none.
        settings: How.

    Raises:
        InvalidInputError: a name cannot be that of a catalog, or the namespace for the tables of
            the root is one that exists.
    """
    return app_of(create_service(catalogs, settings or ServerSettings()))


def create_service(
    catalogs: Catalog | LanceNamespace | Mapping[str, Catalog | LanceNamespace],
    settings: ServerSettings,
) -> Service:
    """Make what the protocols of a server share.

    Raises:
        InvalidInputError: a name cannot be that of a catalog.
    """
    named = catalogs if isinstance(catalogs, Mapping) else {DEFAULT_NAME: catalogs}
    return Service(
        catalogs=Catalogs({name: _served(name, one) for name, one in named.items()}),
        authority=Authority(settings.clients, token_ttl_s=settings.token_ttl_s),
        workers=Workers(settings),
        settings=settings,
    )


def app_of(service: Service) -> Starlette:
    """Make the application of a service."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        service.workers.close()

    return Starlette(
        routes=[
            _Mount("/iceberg", app=IcebergEndpoint(service)),
            _Mount("/lance", app=LanceEndpoint(service)),
        ],
        lifespan=lifespan,
    )


def _served(name: str, catalog: Catalog | LanceNamespace) -> Served:
    if not _NAME.fullmatch(name):
        msg = (
            f"{quote(name)} cannot be the name of a catalog: it has letters, digits, dots, hyphens"
            " and underscores, begins with a letter or digit, and is no 'v1'"
        )
        raise InvalidInputError(msg)
    if isinstance(catalog, Catalog):
        return MooringCatalog(name, catalog)
    return ForeignCatalog(name, catalog)


class _Mount(Mount):
    """A part of the server that answers every path below its own.

    The original does not know those that hold the end of a line.
    """

    def __init__(self, path: str, app: ASGIApp) -> None:
        super().__init__(path, app)
        self.path_regex = re.compile(self.path_regex.pattern, re.DOTALL)
