"""The objects of a metastore, as they are kept: typed, frozen, in MessagePack.

What an object is called and where it lies is not in it: names are mapped to ids, and a revision
lies in the directory of its object.

Spec: deltacat-storage-model, the object types.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, TypeAlias

import msgspec

from mooring.errors import InvalidInputError
from mooring.metastore.decoding import decode_with
from mooring.metastore.locator import Kind

__all__ = [
    "LOCATION",
    "CommitState",
    "DataFile",
    "Delta",
    "DeltaType",
    "Drop",
    "Lifecycle",
    "Manifest",
    "MetaObject",
    "Namespace",
    "Partition",
    "PartitionField",
    "PartitionScheme",
    "Segment",
    "SortField",
    "SortScheme",
    "Stream",
    "Table",
    "TableVersion",
    "decode_object",
    "encode_object",
]


# The property of a stream that names the directory of its Lance table.
LOCATION = "location"


class Lifecycle(StrEnum):
    """How far a table version has come."""

    CREATED = "created"
    UNRELEASED = "unreleased"
    ACTIVE = "active"
    BETA = "beta"
    DEPRECATED = "deprecated"
    DELETED = "deleted"


class CommitState(StrEnum):
    """Whether a stream or partition counts."""

    STAGED = "staged"
    COMMITTED = "committed"
    DEPRECATED = "deprecated"


class DeltaType(StrEnum):
    """What a delta does to the rows before it."""

    ADD = "add"
    APPEND = "append"
    UPSERT = "upsert"
    DELETE = "delete"


class PartitionField(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One key of a partition scheme.

    Attributes:
        columns: The columns it is made of.
        transform: How: identity, bucket, truncate, year, month, day or hour.
        argument: How many buckets, or how wide.
        name: What the key is called.
    """

    columns: tuple[str, ...]
    transform: str = "identity"
    argument: int | None = None
    name: str | None = None


class PartitionScheme(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How rows are parted."""

    fields: tuple[PartitionField, ...] = ()
    name: str | None = None
    id: str | None = None


class SortField(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One key of a sort scheme."""

    columns: tuple[str, ...]
    descending: bool = False
    nulls_first: bool = False


class SortScheme(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How rows are sorted."""

    fields: tuple[SortField, ...] = ()
    name: str | None = None
    id: str | None = None


class Segment(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Consecutive rows of a file that belong to one bucket.

    Attributes:
        bucket: The bucket.
        offset: How many rows of the file come before.
        rows: How many they are.
        position: Of the delta that brought them, in a file that gathers several; else 0.
        type: What they do, where that is not what the file's delta does.
        columns: The numbers of the columns that they bring, where these are not all of the file.
    """

    bucket: int
    offset: int
    rows: int
    position: int = 0
    type: DeltaType | None = None
    columns: tuple[int, ...] | None = None


class DataFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of rows.

    Attributes:
        path: Relative to the catalog's root, or a URI outside of it.
        content_type: Its format.
        rows: How many rows it has.
        size_bytes: Its size.
        minimum: The least value of columns, as far as it is known.
        maximum: The greatest.
        nulls: How many values of a column are null.
        segments: Its rows by buckets, where they are known.
        kept: What another library says of it that has no other place here.
    """

    path: str
    content_type: str = "application/parquet"
    rows: int | None = None
    size_bytes: int | None = None
    minimum: dict[str, object] = {}
    maximum: dict[str, object] = {}
    nulls: dict[str, int] = {}
    segments: tuple[Segment, ...] = ()
    kept: dict[str, object] = {}


class Manifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The files of a delta."""

    files: tuple[DataFile, ...] = ()
    author: str | None = None


class Drop(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """That an object is in the trash: it lives under another name until it comes back or is purged.

    Attributes:
        name: What it was called.
        seq: The state it was dropped from: of two drops the later has the larger one.
        at_ms: When it was dropped.
        ttl_ms: How long it stays; None is for ever.
        by: Who dropped it.
        purging: Whether its files are being deleted; it does not come back then.
    """

    name: str
    seq: int = 0
    at_ms: int = 0
    ttl_ms: int | None = None
    by: str = ""
    purging: bool = False

    @property
    def expires_at_ms(self) -> int | None:
        """When its time in the trash is over; None for never."""
        return None if self.ttl_ms is None else self.at_ms + self.ttl_ms


class _Object(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    # What another library keeps of an object and this model has no place for.
    kept: dict[str, object] = {}
    kind: ClassVar[Kind]

    @property
    def assigned_id(self) -> str | None:
        """The id that the object brings along; None where the catalog gives it one.

        Raises:
            InvalidInputError: it has to bring one and does not.
        """
        return None


class Namespace(
    _Object, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="namespace"
):
    """A group of tables."""

    kind: ClassVar[Kind] = Kind.NAMESPACE
    properties: dict[str, str] = {}
    description: str | None = None
    dropped: Drop | None = None


class Table(_Object, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="table"):
    """A table through all of its versions."""

    kind: ClassVar[Kind] = Kind.TABLE
    properties: dict[str, str] = {}
    description: str | None = None
    latest_version: str | None = None
    latest_active_version: str | None = None
    dropped: Drop | None = None


class TableVersion(
    _Object, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="table_version"
):
    """A table with one schema; readers of another version do not see it.

    Attributes:
        version: Its name and id.
        schema: An Arrow schema in IPC form; None for a table without one.
        partition_scheme: How rows are parted.
        sort_scheme: How they are sorted.
        content_types: Formats of its files.
        state: How far it has come.
        watermark: Up to which time its data is complete.
        previous_version: The version before.
        description: For people.
        properties: Of its own.
    """

    kind: ClassVar[Kind] = Kind.TABLE_VERSION
    version: str = ""
    schema: bytes | None = None
    partition_scheme: PartitionScheme | None = None
    sort_scheme: SortScheme | None = None
    content_types: tuple[str, ...] = ()
    state: Lifecycle = Lifecycle.CREATED
    watermark: int | None = None
    previous_version: str | None = None
    description: str | None = None
    properties: dict[str, str] = {}

    @property
    def assigned_id(self) -> str:
        """The version."""
        return _assigned(self.version, self.kind, "version")


class Stream(
    _Object, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="stream"
):
    """A row of changes in one format."""

    kind: ClassVar[Kind] = Kind.STREAM
    stream_id: str = ""
    format: str = "deltacat"
    partition_scheme: PartitionScheme | None = None
    state: CommitState = CommitState.STAGED
    previous_stream_id: str | None = None
    watermark: int | None = None
    properties: dict[str, str] = {}

    @property
    def assigned_id(self) -> str:
        """The stream's id."""
        return _assigned(self.stream_id, self.kind, "stream_id")


class Partition(
    _Object, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="partition"
):
    """The changes of rows that have the same partition values.

    Attributes:
        partition_id: Its id.
        values: What its rows have in common; none where a stream is not parted.
        scheme_id: Of which partition scheme.
        state: Whether it counts.
        stream_position: The newest delta.
        previous_position: The newest one of the partition that it replaces.
        previous_partition_id: That partition.
        content_types: Formats of its files.
        compaction: Where the last round of compaction stopped.
        properties: Of its own.
    """

    kind: ClassVar[Kind] = Kind.PARTITION
    partition_id: str = ""
    values: tuple[str | int | float | bool | None, ...] = ()
    scheme_id: str | None = None
    state: CommitState = CommitState.STAGED
    stream_position: int | None = None
    previous_position: int | None = None
    previous_partition_id: str | None = None
    content_types: tuple[str, ...] = ()
    compaction: dict[str, object] | None = None
    properties: dict[str, str] = {}

    @property
    def assigned_id(self) -> str:
        """The partition's id."""
        return _assigned(self.partition_id, self.kind, "partition_id")


class Delta(_Object, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="delta"):
    """One change of a partition's rows."""

    kind: ClassVar[Kind] = Kind.DELTA
    stream_position: int | None = None
    type: DeltaType = DeltaType.APPEND
    manifest: Manifest = Manifest()
    previous_position: int | None = None
    at_ms: int | None = None
    properties: dict[str, str] = {}

    @property
    def assigned_id(self) -> str:
        """The position in the stream."""
        position = self.stream_position
        return _assigned("" if position is None else str(position), self.kind, "stream_position")


MetaObject: TypeAlias = Namespace | Table | TableVersion | Stream | Partition | Delta

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[MetaObject] = msgspec.msgpack.Decoder(MetaObject)


def encode_object(found: MetaObject) -> bytes:
    """Write an object as it is kept."""
    return _encoder.encode(found)


def decode_object(body: bytes, where: str) -> MetaObject:
    """Read an object.

    Raises:
        UnreadableError: it is damaged.
    """
    return decode_with(_decoder, body, where)


def _assigned(value: str, kind: Kind, field: str) -> str:
    if not value:
        msg = f"a {kind.value} is committed with an id of its own: set {field}"
        raise InvalidInputError(msg)
    return value
