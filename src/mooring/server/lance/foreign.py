"""Calls of implementations that are not Mooring's: they take and raise a little else.

Some methods of Lance's own take mappings only, failures of its core come as text in an error of
no particular kind, and rows come and go as bytes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.ipc
from lance_namespace.errors import InternalError
from pydantic import BaseModel, ValidationError

from mooring.errors import InvalidInputError, MooringError, TableSchemaValidationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lance_namespace import LanceNamespace

__all__ = ["call", "is_own", "query"]

# How Lance's core words what is wrong with a request.
_CLIENT_FAULT = re.compile(
    r"Invalid ?input|Invalid user input|Schema ?Error|FieldNotFound|sql parser error"
    r"|does not exist in|Cannot cast|type mismatch",
    re.IGNORECASE,
)
_MISFIT = re.compile(r"different schema|schema mismatch|schemas? (do|does|did) not", re.IGNORECASE)


def is_own(namespace: LanceNamespace) -> bool:
    """Whether an implementation is Mooring's, which takes and gives rows as streams."""
    return hasattr(namespace, "query_table_stream")


def call(namespace: LanceNamespace, method: str, request: BaseModel, *rows: object) -> Any:  # noqa: ANN401  # any of the answers
    """Call a method of an implementation.

    Raises:
        Exception: whatever it fails by; what is the client's fault is an error that says so.
    """
    function = getattr(namespace, method)
    if is_own(namespace):
        return function(request, *rows)
    try:
        return _call(function, request, *rows)
    except ValidationError as exc:
        msg = f"the catalog answered what cannot be read: {exc.error_count()} fields are not right"
        raise MooringError(msg) from exc
    except NotImplementedError:
        raise
    except (InternalError, ValueError, OSError, RuntimeError) as exc:
        if _MISFIT.search(str(exc)):
            raise TableSchemaValidationError(_first_line(exc)) from exc
        if _CLIENT_FAULT.search(str(exc)):
            raise InvalidInputError(_first_line(exc)) from exc
        raise


def _call(function: Callable[..., Any], request: BaseModel, *rows: object) -> Any:  # noqa: ANN401  # any of the answers
    try:
        return function(request, *rows)
    except TypeError as exc:
        # Found out before anything was done.
        if "Mapping" not in str(exc):
            raise
    return function(request.model_dump(by_alias=True, exclude_none=True), *rows)


def query(namespace: LanceNamespace, request: BaseModel) -> pa.RecordBatchReader:
    """Run a query; the answer of others is in memory as a whole.

    Raises:
        Exception: whatever it fails by.
    """
    if is_own(namespace):
        stream: pa.RecordBatchReader = call(namespace, "query_table_stream", request)
        return stream
    answer = call(namespace, "query_table", request)
    whole = answer if isinstance(answer, bytes) else bytes(answer.data)
    with pyarrow.ipc.open_file(pa.BufferReader(whole)) as found:
        batches = [found.get_batch(at) for at in range(found.num_record_batches)]
        return pa.RecordBatchReader.from_batches(found.schema, batches)


def _first_line(exc: Exception) -> str:
    """Return what is said, without where in Lance's source it is said."""
    return str(exc).partition("\n")[0].partition(", /")[0].partition(", location:")[0]
