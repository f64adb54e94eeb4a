"""Going through a catalog: namespaces, what is in them, and what is found by a few letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.server.ui.browse.namespace import show_namespace
from mooring.server.ui.browse.search import show_search
from mooring.server.ui.browse.tree import show_tree
from mooring.server.ui.route import Page, seen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.ui.route import Route

__all__ = ["BROWSE"]

BROWSE: Sequence[Route] = (
    Page(
        name="Root",
        path="/browse",
        view=show_namespace,
        template="browse/namespace.html",
        touches=seen,
    ),
    Page(
        name="Namespace",
        path="/namespaces/{namespace}/browse",
        view=show_namespace,
        template="browse/namespace.html",
        touches=seen,
    ),
    Page(name="RootTree", path="/tree", view=show_tree, template="browse/tree.html", touches=seen),
    Page(
        name="Tree",
        path="/namespaces/{namespace}/tree",
        view=show_tree,
        template="browse/tree.html",
        touches=seen,
    ),
    Page(
        name="Search",
        path="/search",
        view=show_search,
        template="browse/search.html",
        touches=seen,
    ),
)
