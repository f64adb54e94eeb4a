"""The server as an application: its catalogs under the addresses of each protocol."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.middleware import Middleware

from mooring.catalog import Catalog
from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.server.audit import AuditLog, NoAudit
from mooring.server.auth import Authority
from mooring.server.background import Background
from mooring.server.catalogs import Catalogs, ForeignCatalog, MooringCatalog
from mooring.server.doorkeeper import Doorkeeper
from mooring.server.health import Health
from mooring.server.hosts import Hosts
from mooring.server.iceberg.endpoint import IcebergEndpoint
from mooring.server.lance.endpoint import LanceEndpoint
from mooring.server.metrics import Measured, Metrics, MetricsEndpoint
from mooring.server.mooring.endpoint import MooringEndpoint
from mooring.server.mounting import AnyPath
from mooring.server.oidc import OidcVerifier
from mooring.server.request_ids import RequestIds
from mooring.server.service import Service
from mooring.server.settings import ServerSettings
from mooring.server.tokens import tokens_at
from mooring.server.tracing import Traced, can_trace
from mooring.server.ui.pages import Pages
from mooring.server.vending import Vendor
from mooring.server.work import Workers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from lance_namespace import LanceNamespace

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
    metrics: Metrics | None = None,
) -> Service:
    """Make what the protocols of a server share.

    Args:
        catalogs: What to serve.
        settings: How.
        metrics: What counts; new ones unless given.

    Raises:
        InvalidInputError: a name cannot be that of a catalog.
    """
    named = catalogs if isinstance(catalogs, Mapping) else {DEFAULT_NAME: catalogs}
    metrics = metrics or Metrics()
    return Service(
        catalogs=Catalogs({name: _served(name, one) for name, one in named.items()}),
        authority=_authority(settings),
        workers=Workers(settings, metrics),
        settings=settings,
        audit=NoAudit() if settings.audit_log is None else AuditLog(settings.audit_log),
        vendor=None if settings.vending is None else Vendor(settings.vending),
        metrics=metrics,
    )


def _authority(settings: ServerSettings) -> Authority:
    return Authority(
        settings.clients,
        token_ttl_s=settings.token_ttl_s,
        key=settings.token_key,
        verifiers=() if settings.oidc is None else (OidcVerifier(settings.oidc),),
    )


def app_of(service: Service) -> Starlette:
    """Make the application of a service."""
    background = Background(service)
    pages = Pages(service, background)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with background.running():
            yield
        # Not in the loop: rows that a thread still waits for are cut off there.
        await asyncio.to_thread(pages.atlases.finish)
        await asyncio.to_thread(service.close)

    app = Starlette(
        routes=[
            *Health(service).routes,
            *MetricsEndpoint(service, service.metrics).routes,
            AnyPath("/iceberg", app=IcebergEndpoint(service)),
            *tokens_at(service, ("", "/lance", "/lance/{catalog}")),
            AnyPath("/lance", app=LanceEndpoint(service)),
            *background.routes,
            AnyPath("/mooring", app=MooringEndpoint(service)),
            *pages.routes,
        ],
        # The first stands before all others.
        middleware=[
            Middleware(RequestIds),
            *([Middleware(Traced)] if can_trace() else []),
            Middleware(Measured, service.metrics),
            *_guards(service),
        ],
        exception_handlers={404: pages.door.lead, 405: pages.door.lead},
        lifespan=lifespan,
    )
    app.state.ending = service.ending  # to be told by whoever runs it
    app.state.background = background  # it counts what it does
    app.state.pages = pages  # they know the catalogs
    return app


def _guards(service: Service) -> list[Middleware]:
    """Return what looks at a request before any protocol does."""
    settings, hosts = service.settings, service.settings.allowed_hosts
    return [
        *([] if hosts is None else [Middleware(Hosts, allowed=hosts)]),
        Middleware(Doorkeeper, authority=service.authority, file=settings.credentials_file),
    ]


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
