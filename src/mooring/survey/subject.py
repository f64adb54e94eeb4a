"""A catalog under question: how it is asked, and how it is filled."""

from __future__ import annotations

import io
import itertools
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.ipc
from lance_namespace.errors import LanceNamespaceError, UnsupportedOperationError

from mooring.survey.models import MODELS

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["IgnoredError", "Subject", "expect", "get", "is_refused", "make_body"]


class IgnoredError(Exception):
    """A call answered and did not do what it was asked for."""


class Subject:
    """A catalog under question, and ways to fill it."""

    def __init__(
        self,
        namespace: Any,  # noqa: ANN401  # any implementation
        root: str,
        within: Sequence[str] = (),
        *,
        first: int = 1,
    ) -> None:
        """Question a catalog.

        Args:
            namespace: The catalog.
            root: Where it lies.
            within: The namespace of its tables, where they need one; it is made.
            first: The first number in names, where earlier ones are taken.
        """
        self._namespace = namespace
        self._root = root
        self._numbers = itertools.count(first)
        self.within = list(within)
        if within:
            self.ask("create_namespace", id=self.within)

    def name(self, kind: str = "t") -> str:
        """Return a name that nothing has."""
        return f"{kind}{next(self._numbers)}"

    def ask(self, operation: str, *data: bytes, **fields: Any) -> Any:  # noqa: ANN401  # any model
        """Call an operation; the reference takes some requests as mappings only."""
        method = getattr(self._namespace, operation)
        request = MODELS[operation](**fields)
        try:
            return method(request, *data)
        except TypeError as exc:
            if "Mapping" not in str(exc):
                raise
            return method(request.model_dump(exclude_none=True), *data)

    def place(self) -> list[str]:
        """Return an identifier that no table has."""
        return [*self.within, self.name()]

    def table(self) -> list[str]:
        """Create a table of four rows."""
        table = self.place()
        self.ask("create_table", make_body(), id=table)
        return table

    def locate(self, table: list[str]) -> str:
        """Tell where a table lies, relative to the root."""
        found = self.ask("describe_table", id=table).location.rstrip("/")
        return str(found.partition(f"{self._root}/")[2])

    def namespace(self, **fields: Any) -> str:  # noqa: ANN401  # a request's fields
        """Create a namespace."""
        name = self.name("n")
        self.ask("create_namespace", id=[name], **fields)
        return name

    def count(self, table: list[str]) -> int:
        """Count a table's rows."""
        return int(self.ask("count_table_rows", id=table).count)


def get(value: Any, name: str) -> Any:  # noqa: ANN401  # a model or a mapping
    """Read a field of a response."""
    return value[name] if isinstance(value, dict) else getattr(value, name)


def make_body(start: int = 0, rows: int = 4) -> bytes:
    """Write rows as an Arrow IPC stream."""
    numbers = list(range(start, start + rows))
    vectors = pa.array([[float(n), 1.0] for n in numbers], pa.list_(pa.float32(), 2))
    words = pa.array([f"word {n}" for n in numbers])
    table = pa.table({"n": pa.array(numbers, pa.int64()), "word": words, "vector": vectors})
    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def expect(*, that: bool, what: str) -> None:
    """Take note of an answer that did not do what was asked for."""
    if not that:
        raise IgnoredError(what)


def is_refused(subject: Subject, operation: str, *data: bytes, **fields: Any) -> bool:  # noqa: ANN401
    """Whether a call is refused; one that is not offered at all is no refusal."""
    try:
        subject.ask(operation, *data, **fields)
    except UnsupportedOperationError:
        raise
    except LanceNamespaceError:
        return True
    return False
