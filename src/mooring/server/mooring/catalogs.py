"""The catalogs of the server, and what each is like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from mooring import __version__
from mooring.config import mask_uris
from mooring.server.catalogs import MooringCatalog
from mooring.server.mooring import shapes
from mooring.server.mooring.kinds import kind_of
from mooring.server.roles import Role

if TYPE_CHECKING:
    from mooring.server.catalogs import Served
    from mooring.server.mooring.calls import Call

__all__ = ["describe_catalog", "list_catalogs"]


def list_catalogs(call: Call) -> shapes.Catalogs:
    """List the catalogs in which whoever asks has a role."""
    shown = [
        _shown(call, one)
        for one in call.catalogs
        if any(grant.holds_in(one.name) for grant in call.identity.grants)
    ]
    return shapes.Catalogs(shown)


def _shown(call: Call, served: Served) -> shapes.ServedCatalog:
    return shapes.ServedCatalog(
        name=served.name,
        is_default=served is call.catalogs.default,
        kind=kind_of(served),
        uri=_masked_uri(served) if call.identity.may(Role.ADMIN, served.name) else UNSET,
    )


def _masked_uri(served: Served) -> str | UnsetType:
    return mask_uris(served.catalog.uri) if isinstance(served, MooringCatalog) else UNSET


def describe_catalog(call: Call) -> shapes.Catalog:
    """Tell what a catalog is like."""
    kind = kind_of(call.served)
    backend = None if kind == "foreign" else call.backend
    return shapes.Catalog(
        name=call.served.name,
        kind=kind,
        levels=call.served.levels,
        managed_versioning=backend is not None and backend.managed_versioning,
        keeps_versions=backend is not None and backend.keeps_versions,
        read_only=call.served.is_read_only,
        version=__version__,
    )
