"""The operations of the protocol, all of them.

Each is a method of Lance's namespaces: a request is read into its model, the method is called, and
its answer written.

Spec: lance-rest-openapi, "paths".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance_namespace as spec

from mooring.server.lance.operation import ABSENT, Gives, Operation, Param, Takes
from mooring.server.roles import Role
from mooring.server.work import Lane

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["OPERATIONS"]

_UNSUPPORTED, _CONFLICT = 406, 409
_ACCEPTED, _CREATED = 202, 201
_READ = Role.READER


_BRANCH = {"branch": Param.TEXT}
_PAGE = {"page_token": Param.TEXT, "limit": Param.NUMBER}
_DECLARED = {"include_declared": Param.FLAG}
_AND_CONFLICT = frozenset({ABSENT, _CONFLICT})
_AND_UNSUPPORTED = frozenset({ABSENT, _UNSUPPORTED})


def _of_namespace(name: str, action: str, call: str, model: Any, **more: Any) -> Operation:  # noqa: ANN401  # models are of many types
    return Operation(name, "POST", f"/v1/namespace/{{id}}/{action}", call, model, **more)


def _of_table(name: str, action: str, call: str, model: Any, **more: Any) -> Operation:  # noqa: ANN401  # models are of many types
    return Operation(name, "POST", f"/v1/table/{{id}}/{action}", call, model, **more)


def _of_rows(name: str, action: str, call: str, model: Any, **more: Any) -> Operation:  # noqa: ANN401  # models are of many types
    return _of_table(name, action, call, model, lane=Lane.DATA, **more)


OPERATIONS: Sequence[Operation] = (
    # -- namespaces ------------------------------------------------------------------------------
    _of_namespace(
        "CreateNamespace",
        "create",
        "create_namespace",
        spec.CreateNamespaceRequest,
        listed=frozenset({ABSENT, _UNSUPPORTED, _CONFLICT}),
    ),
    Operation(
        "ListNamespaces",
        "GET",
        "/v1/namespace/{id}/list",
        "list_namespaces",
        spec.ListNamespacesRequest,
        role=_READ,
        params=_PAGE,
        listed=_AND_UNSUPPORTED,
    ),
    _of_namespace(
        "DescribeNamespace",
        "describe",
        "describe_namespace",
        spec.DescribeNamespaceRequest,
        role=_READ,
    ),
    _of_namespace(
        "DropNamespace", "drop", "drop_namespace", spec.DropNamespaceRequest, listed=_AND_CONFLICT
    ),
    _of_namespace(
        "NamespaceExists",
        "exists",
        "namespace_exists",
        spec.NamespaceExistsRequest,
        role=_READ,
        gives=Gives.NOTHING,
    ),
    Operation(
        "ListTables",
        "GET",
        "/v1/namespace/{id}/table/list",
        "list_tables",
        spec.ListTablesRequest,
        role=_READ,
        params={**_PAGE, **_DECLARED},
        listed=_AND_UNSUPPORTED,
    ),
    # -- the lives of tables -----------------------------------------------------------------------
    Operation(
        "ListAllTables",
        "GET",
        "/v1/table",
        "list_all_tables",
        spec.ListTablesRequest,
        role=_READ,
        params={**_PAGE, **_DECLARED},
        listed=frozenset(),
    ),
    _of_table(
        "RegisterTable",
        "register",
        "register_table",
        spec.RegisterTableRequest,
        listed=frozenset({ABSENT, _UNSUPPORTED, _CONFLICT}),
    ),
    _of_table(
        "DescribeTable",
        "describe",
        "describe_table",
        spec.DescribeTableRequest,
        role=_READ,
        params={
            "with_table_uri": Param.FLAG,
            "load_detailed_metadata": Param.FLAG,
            "check_declared": Param.FLAG,
        },
    ),
    _of_table(
        "TableExists",
        "exists",
        "table_exists",
        spec.TableExistsRequest,
        role=_READ,
        gives=Gives.NOTHING,
    ),
    _of_table("DropTable", "drop", "drop_table", spec.DropTableRequest),
    _of_table("DeregisterTable", "deregister", "deregister_table", spec.DeregisterTableRequest),
    _of_table(
        "RenameTable", "rename", "rename_table", spec.RenameTableRequest, listed=_AND_CONFLICT
    ),
    _of_table(
        "DeclareTable", "declare", "declare_table", spec.DeclareTableRequest, listed=_AND_CONFLICT
    ),
    _of_rows(
        "CreateTable",
        "create",
        "create_table",
        spec.CreateTableRequest,
        takes=Takes.ROWS,
        params={"mode": Param.TEXT, "properties": Param.MAP, "storage_options": Param.MAP},
        listed=_AND_CONFLICT,
    ),
    # -- versions ----------------------------------------------------------------------------------
    _of_table(
        "ListTableVersions",
        "version/list",
        "list_table_versions",
        spec.ListTableVersionsRequest,
        role=_READ,
        params={**_BRANCH, **_PAGE, "descending": Param.FLAG},
    ),
    _of_table(
        "CreateTableVersion",
        "version/create",
        "create_table_version",
        spec.CreateTableVersionRequest,
        listed=_AND_CONFLICT,
    ),
    _of_table(
        "DescribeTableVersion",
        "version/describe",
        "describe_table_version",
        spec.DescribeTableVersionRequest,
        role=_READ,
    ),
    _of_table(
        "BatchDeleteTableVersions",
        "version/delete",
        "batch_delete_table_versions",
        spec.BatchDeleteTableVersionsRequest,
    ),
    Operation(
        "BatchCreateTableVersions",
        "POST",
        "/v1/table/version/batch-create",
        "batch_create_table_versions",
        spec.BatchCreateTableVersionsRequest,
        listed=_AND_CONFLICT,
    ),
    Operation(
        "BatchCommitTables",
        "POST",
        "/v1/table/batch-commit",
        "batch_commit_tables",
        spec.BatchCommitTablesRequest,
        listed=_AND_CONFLICT,
    ),
    _of_table("RestoreTable", "restore", "restore_table", spec.RestoreTableRequest, lane=Lane.DATA),
    # -- rows --------------------------------------------------------------------------------------
    _of_rows(
        "InsertIntoTable",
        "insert",
        "insert_into_table",
        spec.InsertIntoTableRequest,
        takes=Takes.ROWS,
        params={**_BRANCH, "mode": Param.TEXT},
    ),
    _of_rows(
        "MergeInsertIntoTable",
        "merge_insert",
        "merge_insert_into_table",
        spec.MergeInsertIntoTableRequest,
        takes=Takes.ROWS,
        params={
            **_BRANCH,
            "on": Param.TEXTS,
            "when_matched_update_all": Param.FLAG,
            "when_matched_update_all_filt": Param.TEXT,
            "when_not_matched_insert_all": Param.FLAG,
            "when_not_matched_by_source_delete": Param.FLAG,
            "when_not_matched_by_source_delete_filt": Param.TEXT,
            "timeout": Param.TEXT,
            "use_index": Param.FLAG,
        },
    ),
    _of_rows("UpdateTable", "update", "update_table", spec.UpdateTableRequest),
    _of_rows("DeleteFromTable", "delete", "delete_from_table", spec.DeleteFromTableRequest),
    _of_rows(
        "QueryTable",
        "query",
        "query_table",
        spec.QueryTableRequest,
        role=_READ,
        gives=Gives.ROWS,
    ),
    _of_rows(
        "CountTableRows",
        "count_rows",
        "count_table_rows",
        spec.CountTableRowsRequest,
        role=_READ,
        gives=Gives.NUMBER,
    ),
    _of_rows(
        "ExplainTableQueryPlan",
        "explain_plan",
        "explain_table_query_plan",
        spec.ExplainTableQueryPlanRequest,
        role=_READ,
        gives=Gives.TEXT,
    ),
    _of_rows(
        "AnalyzeTableQueryPlan",
        "analyze_plan",
        "analyze_table_query_plan",
        spec.AnalyzeTableQueryPlanRequest,
        role=_READ,
        gives=Gives.TEXT,
    ),
    _of_rows("GetTableStats", "stats", "get_table_stats", spec.GetTableStatsRequest, role=_READ),
    # -- columns -----------------------------------------------------------------------------------
    _of_table(
        "UpdateTableSchemaMetadata",
        "schema_metadata/update",
        "update_table_schema_metadata",
        spec.UpdateTableSchemaMetadataRequest,
        lane=Lane.DATA,
        takes=Takes.METADATA,
        gives=Gives.METADATA,
        params=_BRANCH,
    ),
    _of_rows(
        "UpdateFieldMetadata",
        "update_field_metadata",
        "update_field_metadata",
        spec.UpdateFieldMetadataRequest,
    ),
    _of_rows(
        "AlterTableAddColumns",
        "add_columns",
        "alter_table_add_columns",
        spec.AlterTableAddColumnsRequest,
    ),
    _of_rows(
        "AlterTableAlterColumns",
        "alter_columns",
        "alter_table_alter_columns",
        spec.AlterTableAlterColumnsRequest,
    ),
    _of_rows(
        "AlterTableDropColumns",
        "drop_columns",
        "alter_table_drop_columns",
        spec.AlterTableDropColumnsRequest,
    ),
    _of_rows(
        "AlterTableBackfillColumns",
        "backfill_column",
        "alter_table_backfill_columns",
        spec.AlterTableBackfillColumnsRequest,
        status=_ACCEPTED,
    ),
    # -- indexes -----------------------------------------------------------------------------------
    _of_rows(
        "CreateTableIndex", "create_index", "create_table_index", spec.CreateTableIndexRequest
    ),
    _of_rows(
        "CreateTableScalarIndex",
        "create_scalar_index",
        "create_table_scalar_index",
        spec.CreateTableIndexRequest,
    ),
    _of_rows(
        "ListTableIndices",
        "index/list",
        "list_table_indices",
        spec.ListTableIndicesRequest,
        role=_READ,
    ),
    _of_rows(
        "DescribeTableIndexStats",
        "index/{index_name}/stats",
        "describe_table_index_stats",
        spec.DescribeTableIndexStatsRequest,
        role=_READ,
    ),
    _of_rows(
        "DropTableIndex",
        "index/{index_name}/drop",
        "drop_table_index",
        spec.DropTableIndexRequest,
        params=_BRANCH,
    ),
    # -- tags and branches -------------------------------------------------------------------------
    _of_table(
        "ListTableTags",
        "tags/list",
        "list_table_tags",
        spec.ListTableTagsRequest,
        role=_READ,
        params=_PAGE,
        lane=Lane.DATA,
    ),
    _of_rows(
        "GetTableTagVersion",
        "tags/version",
        "get_table_tag_version",
        spec.GetTableTagVersionRequest,
        role=_READ,
    ),
    _of_rows(
        "CreateTableTag",
        "tags/create",
        "create_table_tag",
        spec.CreateTableTagRequest,
        listed=_AND_CONFLICT,
    ),
    _of_rows("DeleteTableTag", "tags/delete", "delete_table_tag", spec.DeleteTableTagRequest),
    _of_rows("UpdateTableTag", "tags/update", "update_table_tag", spec.UpdateTableTagRequest),
    _of_rows(
        "ListTableBranches",
        "branches/list",
        "list_table_branches",
        spec.ListTableBranchesRequest,
        role=_READ,
        params=_PAGE,
    ),
    _of_rows(
        "CreateTableBranch",
        "branches/create",
        "create_table_branch",
        spec.CreateTableBranchRequest,
        listed=_AND_CONFLICT,
    ),
    _of_rows(
        "DeleteTableBranch", "branches/delete", "delete_table_branch", spec.DeleteTableBranchRequest
    ),
    # -- views and transactions --------------------------------------------------------------------
    Operation(
        "RefreshMaterializedView",
        "POST",
        "/v1/materialized_view/{id}/refresh",
        "refresh_materialized_view",
        spec.RefreshMaterializedViewRequest,
        status=_ACCEPTED,
    ),
    Operation(
        "CreateMaterializedView",
        "POST",
        "/v1/materialized_view/{id}/create",
        "create_materialized_view",
        spec.CreateMaterializedViewRequest,
        status=_CREATED,
        listed=_AND_CONFLICT,
    ),
    Operation(
        "DescribeTransaction",
        "POST",
        "/v1/transaction/{id}/describe",
        "describe_transaction",
        spec.DescribeTransactionRequest,
        role=_READ,
    ),
    Operation(
        "AlterTransaction",
        "POST",
        "/v1/transaction/{id}/alter",
        "alter_transaction",
        spec.AlterTransactionRequest,
        listed=_AND_CONFLICT,
    ),
)
