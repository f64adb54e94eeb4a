"""Making tables, and taking in those that are there.

Spec: iceberg-rest-openapi, "createTable", "registerTable".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from mooring.errors import TableNotFoundError, UnsupportedError
from mooring.iceberg.properties import is_lance, users_properties
from mooring.identifiers import quote
from mooring.namespace.api import CreateMode
from mooring.server.iceberg.locations import from_iceberg
from mooring.server.iceberg.properties import keeps_notes, notes_of, to_catalog
from mooring.server.iceberg.tables import answer_with

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mooring.identifiers import ObjectId
    from mooring.namespace.api import TableInfo
    from mooring.server.iceberg.calls import Answer, Call

__all__ = ["create_table", "register_table"]

_METADATA_FILES = (".metadata.json", ".metadata.json.gz", ".gz.metadata.json")


class _Fields(msgspec.Struct, frozen=True):
    """Of a way to partition or to sort, only whether it has fields matters here."""

    fields: list[Any] = []


class _Create(msgspec.Struct, frozen=True, rename="kebab"):
    name: str
    schema: dict[str, Any]
    location: str | None = None
    partition_spec: _Fields | None = None
    write_order: _Fields | None = None
    stage_create: bool | None = None
    properties: dict[str, str] | None = None


class _Register(msgspec.Struct, frozen=True, rename="kebab"):
    name: str
    metadata_location: str
    overwrite: bool | None = None


def create_table(call: Call) -> Answer:
    """Create an empty Lance table, or take in the one that lies at a location.

    Raises:
        UnsupportedError: it would be a table of Iceberg's, or is asked for in steps.
        TableAlreadyExistsError: there is one.
    """
    asked = call.read(_Create)
    table = call.namespace.child(asked.name)
    properties = asked.properties or {}
    _require_lance(table, asked, properties)
    kept, notes = users_properties(properties), notes_of(properties)
    if keeps_notes(call.backend):
        kept |= {to_catalog(key): value for key, value in notes.items()}
    if asked.location:
        info = _take_in(call, table, from_iceberg(asked.location, call.backend), kept)
    else:
        info = _make(call, table, asked.schema, kept)
    answer = answer_with(call, info, is_new=True)
    # By these its client knows that the table is the one that it asked for.
    answer.body["metadata"]["properties"] |= notes
    return answer


def _require_lance(table: ObjectId, asked: _Create, properties: Mapping[str, str]) -> None:
    shown = quote(table.name)
    if not is_lance(properties):
        raise UnsupportedError(
            f"this catalog holds Lance tables, and {shown} would be a table of Iceberg's: set the"
            " property 'table_type' to 'lance' for an empty Lance table, which is then written"
            " with Lance"
        )
    if asked.stage_create:
        raise UnsupportedError(
            f"{shown} is a Lance table, whose creation has no steps: create it without"
            " 'stage-create', then write it with Lance"
        )
    for what, given in (
        ("partitions", asked.partition_spec),
        ("a sort order", asked.write_order),
    ):
        if given is not None and given.fields:
            raise UnsupportedError(
                f"{shown} is a Lance table, which has no {what.removeprefix('a ')}: create it"
                f" without {what}"
            )


def _take_in(
    call: Call, table: ObjectId, location: str, properties: Mapping[str, str]
) -> TableInfo:
    """Give a name to the table at a location; where none is there, reserve both."""
    try:
        return call.backend.register_table(table, location, CreateMode.CREATE, properties)
    except TableNotFoundError:
        return call.backend.declare_table(table, location, properties)


def _make(
    call: Call, table: ObjectId, schema: Mapping[str, Any], properties: Mapping[str, str]
) -> TableInfo:
    import pyarrow as pa

    from mooring.iceberg.types import to_arrow

    columns = to_arrow(schema)
    if not columns.names:
        # Lance has no tables without columns: whoever writes the first rows brings them.
        return call.backend.declare_table(table, None, properties)
    rows = pa.RecordBatchReader.from_batches(columns, [])
    return call.backend.create_table(table, rows, CreateMode.CREATE, properties)


def register_table(call: Call) -> Answer:
    """Give a name to a Lance table that lies in storage.

    Raises:
        UnsupportedError: the location is that of a table of Iceberg's.
        TableNotFoundError: there is no Lance table.
    """
    asked = call.read(_Register)
    if asked.metadata_location.endswith(_METADATA_FILES):
        raise UnsupportedError(
            f"{quote(asked.metadata_location)} is the metadata of a table of Iceberg's, and this"
            " catalog holds Lance tables: give the directory of a Lance table"
        )
    table = call.namespace.child(asked.name)
    location = from_iceberg(asked.metadata_location, call.backend)
    mode = CreateMode.OVERWRITE if asked.overwrite else CreateMode.CREATE
    return answer_with(call, call.backend.register_table(table, location, mode), is_new=True)
