"""The published specification, where its text is at hand (`SPEC_DIR`)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import lance_namespace
import pytest

import mooring
from mooring import errors
from mooring.namespace.lance import LanceAdapter

pytestmark = pytest.mark.interop

SUPPORTED = {
    "AlterTableAddColumns",
    "AlterTableAlterColumns",
    "AlterTableBackfillColumns",
    "AlterTableDropColumns",
    "AlterTransaction",
    "AnalyzeTableQueryPlan",
    "BatchCommitTables",
    "BatchCreateTableVersions",
    "BatchDeleteTableVersions",
    "CountTableRows",
    "CreateMaterializedView",
    "CreateNamespace",
    "CreateTable",
    "CreateTableBranch",
    "CreateTableIndex",
    "CreateTableScalarIndex",
    "CreateTableTag",
    "CreateTableVersion",
    "DeclareTable",
    "DeleteFromTable",
    "DeleteTableBranch",
    "DeleteTableTag",
    "DeregisterTable",
    "DescribeNamespace",
    "DescribeTable",
    "DescribeTableIndexStats",
    "DescribeTableVersion",
    "DescribeTransaction",
    "DropNamespace",
    "DropTable",
    "DropTableIndex",
    "ExplainTableQueryPlan",
    "GetTableStats",
    "GetTableTagVersion",
    "InsertIntoTable",
    "ListAllTables",
    "ListNamespaces",
    "ListTableBranches",
    "ListTableIndices",
    "ListTableTags",
    "ListTableVersions",
    "ListTables",
    "MergeInsertIntoTable",
    "NamespaceExists",
    "QueryTable",
    "RefreshMaterializedView",
    "RegisterTable",
    "RenameTable",
    "RestoreTable",
    "TableExists",
    "UpdateFieldMetadata",
    "UpdateTable",
    "UpdateTableSchemaMetadata",
    "UpdateTableTag",
}


def _specification() -> str:
    """Return the text of the Lance REST specification, or say that it is not at hand."""
    directory = os.environ.get("SPEC_DIR")
    path = Path(directory or "", "lance-rest-openapi.yaml")
    if not directory or not path.is_file():
        pytest.skip("not run: SPEC_DIR is absent")
    return path.read_text(encoding="utf-8")


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


@pytest.mark.peer("lance-document", they="fits", on="Lance REST")
def test_every_operation_that_is_claimed_is_one_of_the_specification_and_is_there():
    """Spec: lance-rest-openapi, every operationId."""
    text = _specification()
    known = set(re.findall(r"operationId: (\w+)", text))
    assert known >= SUPPORTED
    for operation in SUPPORTED:
        method = _snake(operation)
        for kind in (mooring.DirectoryNamespace, mooring.MetastoreNamespace):
            own = getattr(kind, method)
            assert own is not getattr(lance_namespace.LanceNamespace, method), operation


@pytest.mark.peer("lance-document", they="fits", on="Lance REST")
def test_no_operation_is_supported_without_being_claimed():
    text = _specification()
    methods = {_snake(name): name for name in re.findall(r"operationId: (\w+)", text)}
    official = lance_namespace.LanceNamespace
    overridden = {
        operation
        for name, operation in methods.items()
        if getattr(LanceAdapter, name) is not getattr(official, name, None)
    }
    assert overridden == SUPPORTED


@pytest.mark.peer("lance-document", they="fits", on="Lance REST")
def test_every_error_code_means_what_the_specification_says():
    """Spec: lance-rest-openapi, ErrorResponse, "Error codes"."""
    text = _specification()
    published = {
        int(code): name for code, name in re.findall(r"^\s+(\d+) - (\w+): ", text, re.MULTILINE)
    }
    assert set(published) == set(range(24))
    names = {code: name.removesuffix("Error") for code, name in published.items()}
    for kind in (getattr(errors, name) for name in errors.__all__):
        assert kind.code in published, kind
    by_name = {kind: getattr(errors, kind).code for kind in errors.__all__}
    codes = {name: code for code, name in names.items()}
    matched = {
        kind: code
        for kind, code in by_name.items()
        if codes.get(kind.removesuffix("Error"), code) == code
    }
    assert matched == by_name
    spoken = {kind.removesuffix("Error") for kind in by_name} & set(codes)
    assert {"TableNotFound", "TableAlreadyExists", "InvalidInput", "PermissionDenied"} <= spoken


def test_the_official_client_knows_the_same_codes():
    """Every code of ours becomes a class of `lance_namespace` with the same number."""
    for name in errors.__all__:
        kind = getattr(errors, name)
        official = lance_namespace.errors.from_error_code(kind.code, "what happened")
        assert official.code == kind.code
        assert str(official) == "what happened"
