"""Any backend, spoken to in the words of the Lance namespace specification."""

from __future__ import annotations

from mooring.namespace.lance.columns import ColumnRequests
from mooring.namespace.lance.content import ContentRequests
from mooring.namespace.lance.indexes import IndexRequests
from mooring.namespace.lance.insight import InsightRequests
from mooring.namespace.lance.queries import QueryRequests
from mooring.namespace.lance.references import ReferenceRequests
from mooring.namespace.lance.versions import VersionRequests
from mooring.namespace.lance.views import ViewRequests

__all__ = ["LanceAdapter"]


class LanceAdapter(
    ColumnRequests,
    ContentRequests,
    IndexRequests,
    InsightRequests,
    QueryRequests,
    ReferenceRequests,
    VersionRequests,
    ViewRequests,
):
    """A backend as a LanceNamespace: each base reads one group of requests."""
