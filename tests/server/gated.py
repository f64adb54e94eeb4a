"""Implementations of Lance's namespaces whose calls wait at a gate, or fail."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from lance_namespace import (
    CreateNamespaceResponse,
    DescribeTableResponse,
    LanceNamespace,
    ListNamespacesResponse,
)

_PATIENCE_S = 60


class Gate(LanceNamespace):
    """Waits in some calls until it is opened; the first such call says that it came."""

    def __init__(self, **properties: str) -> None:
        self.came = threading.Event()
        self.open = threading.Event()
        self.calls: list[str] = []

    def namespace_id(self) -> str:
        return "Gate"

    def _wait(self, call: str) -> None:
        self.calls.append(call)
        self.came.set()
        assert self.open.wait(_PATIENCE_S)

    def list_namespaces(self, request: Any) -> ListNamespacesResponse:
        self._wait("list_namespaces")
        return ListNamespacesResponse(namespaces=[])

    def describe_table(self, request: Any) -> DescribeTableResponse:
        self._wait("describe_table")
        return DescribeTableResponse(location="nowhere")

    def count_table_rows(self, request: Any) -> int:
        self._wait("count_table_rows")
        return 7

    def create_namespace(self, request: Any) -> CreateNamespaceResponse:
        self._wait("create_namespace")
        return CreateNamespaceResponse(properties={})


class FileGate(Gate):
    """A gate for other processes: who comes makes a pipe's other end open, and waits for another.

    Properties: ``came`` and ``open``, both paths of named pipes.
    """

    def __init__(self, came: str, open: str) -> None:  # noqa: A002  # as the property is named
        super().__init__()
        self._came, self._open = Path(came), Path(open)

    def _wait(self, call: str) -> None:
        self._came.write_text(call)
        self._open.read_text()

    def list_namespaces(self, request: Any) -> ListNamespacesResponse:
        return ListNamespacesResponse(namespaces=[])


class Failing(LanceNamespace):
    """Fails by what it was given."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def namespace_id(self) -> str:
        return "Failing"

    def list_namespaces(self, request: Any) -> ListNamespacesResponse:
        raise self.error

    def create_namespace(self, request: Any) -> CreateNamespaceResponse:
        raise self.error
