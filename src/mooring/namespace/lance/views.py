"""Requests about materialized views, which a catalog without a service cannot offer.

Spec: lance-rest-openapi, CreateMaterializedView, RefreshMaterializedView.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.errors import UnsupportedError
from mooring.namespace.lance.requests import Requests, worded

if TYPE_CHECKING:
    import lance_namespace as spec

__all__ = ["ViewRequests"]

_REASON = (
    "this catalog has no materialized views: it is a library, and no service is there that could"
    " run a view's query when its tables change; create a table from the query's result instead"
)


class ViewRequests(Requests):
    """Says why there are no views."""

    @worded
    def create_materialized_view(
        self, request: spec.CreateMaterializedViewRequest
    ) -> spec.CreateMaterializedViewResponse:
        """Refuse, with the reason."""
        del request
        raise UnsupportedError(_REASON)

    @worded
    def refresh_materialized_view(
        self, request: spec.RefreshMaterializedViewRequest
    ) -> spec.RefreshMaterializedViewResponse:
        """Refuse, with the reason."""
        del request
        raise UnsupportedError(_REASON)
