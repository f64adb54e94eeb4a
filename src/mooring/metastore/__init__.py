"""A transactional catalog: namespaces, tables, versions, streams, partitions and deltas."""

from mooring.metastore.locator import Kind, Locator
from mooring.metastore.model import (
    CommitState,
    DataFile,
    Delta,
    DeltaType,
    Lifecycle,
    Manifest,
    Namespace,
    Partition,
    PartitionField,
    PartitionScheme,
    Segment,
    SortField,
    SortScheme,
    Stream,
    Table,
    TableVersion,
)

__all__ = [
    "CommitState",
    "DataFile",
    "Delta",
    "DeltaType",
    "Kind",
    "Lifecycle",
    "Locator",
    "Manifest",
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
]
