"""Blobs: large binary values that lie beside the rows, of which a scan returns descriptions only.

A description tells how large a blob is. One that lies elsewhere, at an address that whoever wrote
the row chose, is never opened here: it could name any file that this process can read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mooring.errors import TableColumnNotFoundError
from mooring.identifiers import quote
from mooring.tables.failures import translated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from lance import LanceDataset

__all__ = ["Blob", "blob_columns", "describe_blob", "is_blob", "read_blob_parts"]

_ENCODING = b"lance-encoding:blob"
_EXTENSION = "lance.blob.v2"
_EXTENSION_KEY = b"ARROW:extension:name"
_EXTERNAL = 3


@dataclass(frozen=True, slots=True)
class Blob:
    """What a description says of a blob.

    Attributes:
        size_bytes: How large it is; 0 where it lies elsewhere and nobody looked.
        uri: Where it lies, where that is not with the table.
    """

    size_bytes: int
    uri: str = ""

    @property
    def is_own(self) -> bool:
        """Whether it lies with the table."""
        return not self.uri


def is_blob(field: pa.Field) -> bool:
    """Whether a column, of a table or of what a scan returns, holds blobs."""
    metadata = field.metadata or {}
    return bool(
        metadata.get(_ENCODING) == b"true"
        or metadata.get(_EXTENSION_KEY) == _EXTENSION.encode()
        or getattr(field.type, "extension_name", None) == _EXTENSION
    )


def blob_columns(schema: pa.Schema) -> frozenset[str]:
    """Return the names of the columns that hold blobs."""
    return frozenset(field.name for field in schema if is_blob(field))


def describe_blob(description: Mapping[str, Any] | None) -> Blob | None:
    """Read a description; None where there is no blob."""
    if description is None:
        return None
    position, size = description.get("position"), description.get("size")
    if position is None or size is None:
        return None
    # Files of format 2.0 have no other way to write a null.
    if "kind" not in description and size == 0 and position != 0:
        return None
    if description.get("kind", 0) >= _EXTERNAL or description.get("blob_uri"):
        return Blob(int(size), description.get("blob_uri") or "elsewhere")
    return Blob(int(size))


def read_blob_parts(
    dataset: LanceDataset, column: str, parts: Sequence[tuple[int, int, int]], what: str
) -> list[bytes | None]:
    """Read parts of blobs that lie with the table, all of them by one plan.

    Args:
        dataset: The table.
        column: The column of the blobs.
        parts: Of each part the row's id, where it begins and how long it is, within its blob.
        what: The table, for messages.

    Raises:
        TableColumnNotFoundError: there is no such column of blobs.
        MooringError: they cannot be read.
    """
    if column not in blob_columns(dataset.schema):
        raise TableColumnNotFoundError(f"{what} has no column {quote(column)} of blobs")
    if not parts:
        return []
    with translated(what):
        found = dataset.read_blob_ranges(column, list(parts), selector="ids", preserve_order=True)
    return [content for *_, content in found]
