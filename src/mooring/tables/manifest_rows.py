"""The rows of `__manifest` as Lance holds them: written, read, asked for, and where they lie.

Spec: directory-namespace, "Manifest Table Schema".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
from lance.fragment import write_fragments

from mooring.identifiers import DELIMITER
from mooring.tables.manifest import ManifestRow, Named

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lance import LanceDataset
    from lance.fragment import FragmentMetadata, LanceFragment

    from mooring.tables.manifest import Scope

__all__ = [
    "ADDRESS",
    "OFFSETS",
    "OFFSET_BITS",
    "SCHEMA",
    "address_condition",
    "by_fragment",
    "children_condition",
    "fragment_of",
    "fragments_of",
    "read_rows",
    "rows_condition",
    "write_rows",
]

_STORAGE_VERSION = "2.2"
_PRIMARY_KEY = {"lance-schema:unenforced-primary-key:position": "0"}
SCHEMA = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False, metadata=_PRIMARY_KEY),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
    ]
)
# An address of a row is its fragment's number, and in the lower bits its offset there.
ADDRESS = "_rowaddr"
OFFSET_BITS = 32
OFFSETS = (1 << OFFSET_BITS) - 1


def write_rows(dataset: LanceDataset, rows: list[ManifestRow]) -> list[FragmentMetadata]:
    """Write rows that a commit adds."""
    columns = zip(*map(msgspec.structs.astuple, rows), strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return write_fragments(
        pa.Table.from_arrays(arrays, schema=SCHEMA),
        dataset,
        mode="append",
        data_storage_version=_STORAGE_VERSION,
    )


def read_rows(table: pa.Table) -> list[ManifestRow]:
    """Read what Lance returned."""
    columns = [table[name].to_pylist() for name in SCHEMA.names[:-1]]
    if table["base_objects"].null_count == table.num_rows:
        return list(map(ManifestRow, *columns))
    bases = [None if found is None else tuple(found) for found in table["base_objects"].to_pylist()]
    return list(map(ManifestRow, *columns, bases))


def fragment_of(dataset: LanceDataset, number: int) -> LanceFragment:
    """Return a fragment by its number.

    Raises:
        ValueError: the version has none.
    """
    found = dataset.get_fragment(number)
    if found is None:
        msg = f"fragment {number} is not in version {dataset.version}"
        raise ValueError(msg)
    return found


def fragments_of(dataset: LanceDataset) -> dict[int, FragmentMetadata]:
    """Describe the fragments of a version by their numbers."""
    return {found.fragment_id: found.metadata for found in dataset.get_fragments()}


def by_fragment(addresses: Iterable[int]) -> dict[int, list[int]]:
    """Sort addresses by fragment, as offsets there."""
    found: dict[int, list[int]] = {}
    for address in addresses:
        found.setdefault(address >> OFFSET_BITS, []).append(address & OFFSETS)
    return found


def address_condition(number: int, offsets: Iterable[int]) -> str:
    """Put into SQL which rows of a fragment are meant."""
    addresses = ", ".join(str((number << OFFSET_BITS) + offset) for offset in offsets)
    return f"{ADDRESS} IN ({addresses})"


def rows_condition(object_ids: Iterable[str], scopes: Iterable[Scope]) -> str:
    """Put into SQL which rows are looked for; empty for none."""
    conditions = [
        f"starts_with(object_id, {_quoted(scope.prefix)})"
        f" AND contains(object_id, {_quoted(scope.part)})"
        if isinstance(scope, Named)
        else f"location IN ({_quoted_all(scope.around)})"
        f" OR starts_with(location, {_quoted(scope.location + '/')})"
        for scope in scopes
    ]
    if single := _quoted_all(object_ids):
        conditions.append(f"object_id IN ({single})")
    return " OR ".join(f"({condition})" for condition in conditions)


def children_condition(prefix: str, kind: str) -> str:
    """Put into SQL what of a kind has a prefix; without one, what lies in the root."""
    place = (
        f"starts_with(object_id, {_quoted(prefix)})"
        if prefix
        else f"NOT contains(object_id, {_quoted(DELIMITER)})"
    )
    return f"object_type = {_quoted(kind)} AND {place}"


def _quoted_all(texts: Iterable[str]) -> str:
    return ", ".join(map(_quoted, texts))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
