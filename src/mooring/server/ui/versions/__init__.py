"""The versions of a table: as a timeline, compared with each other, named and brought back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.server.ui.route import Action, Page
from mooring.server.ui.versions.branching import (
    ask_branch,
    ask_delete_branch,
    create_branch,
    delete_branch,
)
from mooring.server.ui.versions.diff import show_diff
from mooring.server.ui.versions.page import show_versions
from mooring.server.ui.versions.restoring import ask_restore, restore
from mooring.server.ui.versions.tagging import ask_tag, ask_untag, tag, untag
from mooring.server.work import Lane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.ui.route import Route

__all__ = ["VERSIONS"]

VERSIONS: Sequence[Route] = (
    Page(
        name="Versions",
        path="/tables/{table}/versions",
        view=show_versions,
        template="versions/versions.html",
        lane=Lane.DATA,
    ),
    Page(
        name="Diff",
        path="/tables/{table}/diff",
        view=show_diff,
        template="versions/diff.html",
        lane=Lane.DATA,
    ),
    Action(name="Tag", path="/tables/{table}/tag", ask=ask_tag, perform=tag, lane=Lane.DATA),
    Action(
        name="Untag", path="/tables/{table}/untag", ask=ask_untag, perform=untag, lane=Lane.DATA
    ),
    Action(
        name="Restore",
        path="/tables/{table}/restore",
        ask=ask_restore,
        perform=restore,
        lane=Lane.DATA,
    ),
    Action(
        name="CreateBranch",
        path="/tables/{table}/branch",
        ask=ask_branch,
        perform=create_branch,
        lane=Lane.DATA,
    ),
    Action(
        name="DeleteBranch",
        path="/tables/{table}/delete-branch",
        ask=ask_delete_branch,
        perform=delete_branch,
        lane=Lane.DATA,
    ),
)
