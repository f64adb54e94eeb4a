"""Requests about the tags and branches of a table.

Spec: lance-rest-openapi, the operations of the tags Tag and Branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance_namespace as spec
from lance_namespace_urllib3_client.models.branch_contents import BranchContents
from lance_namespace_urllib3_client.models.tag_contents import TagContents

from mooring.namespace.lance.requests import Requests, worded
from mooring.namespace.paging import cut, take_page

if TYPE_CHECKING:
    from mooring.tables.branches import Branch
    from mooring.tables.tags import Tag

__all__ = ["ReferenceRequests"]


class ReferenceRequests(Requests):
    """Names for versions, and lines of versions."""

    # -- tags ------------------------------------------------------------------------------------

    @worded
    def list_table_tags(self, request: spec.ListTableTagsRequest) -> spec.ListTableTagsResponse:
        """List the tags by name; of a page only its own are read."""
        from mooring.tables.tags import Tags  # imports lance

        tags = Tags(self._locate(request.id))
        names = tags.names()
        page, token = take_page(
            lambda after, limit: cut(names, after, limit), request.page_token, request.limit
        )
        found = {tag.name: _tag_contents(tag) for tag in tags.list(page)}
        return spec.ListTableTagsResponse(tags=found, page_token=token)

    @worded
    def get_table_tag_version(
        self, request: spec.GetTableTagVersionRequest
    ) -> spec.GetTableTagVersionResponse:
        """Tell which version a tag names, and on which branch."""
        from mooring.tables.tags import Tags  # imports lance

        tag = Tags(self._locate(request.id)).get(request.tag)
        return spec.GetTableTagVersionResponse(version=tag.version, branch=tag.branch)

    @worded
    def create_table_tag(self, request: spec.CreateTableTagRequest) -> spec.CreateTableTagResponse:
        """Name a version; of several at the same time, one wins."""
        from mooring.tables.tags import Tags  # imports lance

        tags = Tags(self._locate(request.id))
        tags.create(request.tag, request.version, branch=request.branch)
        return spec.CreateTableTagResponse()

    @worded
    def update_table_tag(self, request: spec.UpdateTableTagRequest) -> spec.UpdateTableTagResponse:
        """Let a tag name another version."""
        from mooring.tables.tags import Tags  # imports lance

        tags = Tags(self._locate(request.id))
        tags.update(request.tag, request.version, branch=request.branch)
        return spec.UpdateTableTagResponse()

    @worded
    def delete_table_tag(self, request: spec.DeleteTableTagRequest) -> spec.DeleteTableTagResponse:
        """Forget a tag; the version stays."""
        from mooring.tables.tags import Tags  # imports lance

        Tags(self._locate(request.id)).delete(request.tag)
        return spec.DeleteTableTagResponse()

    # -- branches --------------------------------------------------------------------------------

    @worded
    def list_table_branches(
        self, request: spec.ListTableBranchesRequest
    ) -> spec.ListTableBranchesResponse:
        """List the branches by name; of a page only its own are read."""
        from mooring.tables.branches import Branches  # imports lance

        branches = Branches(self._locate(request.id))
        names = branches.names()
        page, token = take_page(
            lambda after, limit: cut(names, after, limit), request.page_token, request.limit
        )
        found = {branch.name: _branch_contents(branch) for branch in branches.list(page)}
        return spec.ListTableBranchesResponse(branches=found, page_token=token)

    @worded
    def create_table_branch(
        self, request: spec.CreateTableBranchRequest
    ) -> spec.CreateTableBranchResponse:
        """Make a branch; of several at the same time, one wins."""
        from mooring.tables.branches import Branches  # imports lance

        Branches(self._locate(request.id)).create(
            request.name, branch=request.from_branch, version=request.from_version
        )
        return spec.CreateTableBranchResponse()

    @worded
    def delete_table_branch(
        self, request: spec.DeleteTableBranchRequest
    ) -> spec.DeleteTableBranchResponse:
        """Delete a branch with its versions."""
        from mooring.tables.branches import Branches  # imports lance

        Branches(self._locate(request.id)).delete(request.name)
        return spec.DeleteTableBranchResponse()


def _tag_contents(tag: Tag) -> TagContents:
    return TagContents(branch=tag.branch, version=tag.version, manifestSize=tag.size_bytes)


def _branch_contents(branch: Branch) -> BranchContents:
    return BranchContents(
        parentBranch=branch.parent_branch,
        parentVersion=branch.parent_version,
        createAt=int(branch.created_at.timestamp()),
        manifestSize=branch.size_bytes,
        metadata=dict(branch.metadata) or None,
    )
