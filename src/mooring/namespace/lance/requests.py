"""What every request needs: the backend, a located table, and errors in the official words.

Spec: lance-rest-openapi, the models; objects-and-relationships, identifiers.
"""

from __future__ import annotations

import functools
import io
from typing import TYPE_CHECKING, Any, TypeVar, cast

import lance_namespace as spec
from lance_namespace.errors import from_error_code

from mooring.errors import InvalidInputError, MooringError
from mooring.identifiers import ObjectId

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from mooring.namespace.api import Backend
    from mooring.tables.handle import TableHandle

__all__ = ["Requests", "choose", "field", "read_ipc", "table_id", "worded"]

Method = TypeVar("Method", bound="Callable[..., Any]")


def worded(method: Method) -> Method:
    """Raise the specification's error of the same code."""

    @functools.wraps(method)
    def wrapper(*args: object, **kwargs: object) -> object:
        try:
            return method(*args, **kwargs)
        except MooringError as exc:
            raise from_error_code(exc.code, str(exc)) from exc

    return cast("Method", wrapper)


class Requests(spec.LanceNamespace):
    """A backend that is spoken to in requests; each subclass reads one group of them.

    Nothing is decided here: a method reads a request, calls what does the work and words its
    answer.
    """

    def __init__(self, backend: Backend, name: str) -> None:
        """Adapt a backend; ``name`` identifies it in messages and caches."""
        self._backend = backend
        self._name = name

    def namespace_id(self) -> str:
        """Identify the catalog, in messages and in Lance's caches."""
        return self._name

    def _locate(self, names: Sequence[str] | None) -> TableHandle:
        """Find the table that a request is about."""
        from mooring.namespace.located import locate  # imports lance

        return locate(self._backend, table_id(names))


def table_id(names: Sequence[str] | None) -> ObjectId:
    """Read a request's identifier as that of a table.

    Raises:
        InvalidInputError: it is the root's.
    """
    table = ObjectId.of(names)
    if table.is_root:
        msg = "a table's identifier needs at least one name"
        raise InvalidInputError(msg)
    return table


def field(request: Any, name: str) -> Any:  # noqa: ANN401  # a model, or Lance's dictionary
    """Read a field of a request; Lance's own calls bring dictionaries, without those not set."""
    return request.get(name) if isinstance(request, dict) else getattr(request, name)


def choose(text: str | None, allowed: tuple[str, ...], what: str) -> str:
    """Read a word in any case; the first one is the default.

    Raises:
        InvalidInputError: it is none of the allowed ones.
    """
    chosen = (text or allowed[0]).lower()
    if chosen not in allowed:
        msg = f"'{text}' is not a {what} of this operation: use one of {', '.join(allowed)}"
        raise InvalidInputError(msg)
    return chosen


def read_ipc(body: bytes | pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Read the rows of a request's body; whoever reads it as it comes has them already.

    Raises:
        InvalidInputError: it is no Arrow IPC stream.
    """
    import pyarrow as pa
    import pyarrow.ipc

    if isinstance(body, pa.RecordBatchReader):
        return body
    try:
        return pyarrow.ipc.open_stream(io.BytesIO(body))
    except (pa.ArrowInvalid, OSError) as exc:
        msg = f"the request's body is not an Arrow IPC stream: {exc}"
        raise InvalidInputError(msg) from exc
