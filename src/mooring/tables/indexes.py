"""The indexes of a table: create, list, describe, drop.

Spec: lance-rest-openapi, CreateTableIndex, CreateTableScalarIndex, ListTableIndices,
DescribeTableIndexStats, DropTableIndex.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from mooring.errors import InvalidInputError, TableIndexNotFoundError
from mooring.identifiers import quote
from mooring.tables.commits import Committed
from mooring.tables.fields import find
from mooring.tables.handle import NEWEST, At
from mooring.tables.index_kinds import IndexKind, IndexParameters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from lance import LanceDataset

    from mooring.tables.handle import TableHandle

__all__ = ["Index", "Indexed", "Indexes", "describe_indexes"]

# Lance keeps books of its own among the indexes.
_INTERNAL = "__lance_"


@dataclass(frozen=True, slots=True)
class Index:
    """An index as Lance describes it.

    Attributes:
        name: Its name.
        uuid: Identifies its oldest segment.
        columns: The canonical paths of the fields it covers.
        kind: Its type, in Lance's writing.
        type_url: Its type, precisely.
        rows_indexed: Live rows that it covers.
        rows_unindexed: Rows that it does not.
        size_bytes: Of all its segments; None where an old version kept no sizes.
        segments: How many there are.
        created_at: When its first segment was written; None where an old version kept no time.
        format_version: Of its files.
        details: What its type has to tell.
        fragments: How many fragments it covers, those included that are no more.
    """

    name: str
    uuid: str
    columns: tuple[str, ...]
    kind: str
    type_url: str
    rows_indexed: int
    rows_unindexed: int
    size_bytes: int | None
    segments: int
    created_at: datetime | None
    format_version: int
    details: Mapping[str, Any]
    fragments: int = 0

    @property
    def distance(self) -> str | None:
        """How a vector index measures; None for others."""
        metric = self.details.get("metric_type")
        return None if metric is None else str(metric).lower()


@dataclass(frozen=True, slots=True)
class Indexed:
    """What the creation of an index made.

    Attributes:
        commit: The version and transaction; the index is built when this is answered.
        name: The index's name, given or made up.
    """

    commit: Committed
    name: str


class Indexes:
    """The indexes of one table."""

    def __init__(self, handle: TableHandle) -> None:
        """Work on a located table."""
        self._handle = handle

    def create(
        self,
        column: str,
        index_type: str | IndexKind = "BTREE",
        *,
        name: str | None = None,
        replace: bool = False,
        branch: str | None = None,
        **parameters: Unpack[IndexParameters],
    ) -> Indexed:
        """Build an index.

        Args:
            column: The path of the column; its case may differ.
            index_type: BTREE, BITMAP, LABEL_LIST, NGRAM, ZONEMAP, BLOOMFILTER, RTREE, FTS,
                IVF_FLAT, IVF_PQ, IVF_SQ, IVF_RQ, IVF_HNSW_FLAT, IVF_HNSW_PQ or IVF_HNSW_SQ.
            name: Its name; made of the column's unless given.
            replace: Build it anew where there is one of this name and column.
            branch: Where; main unless given.
            parameters: Those of the type.

        Raises:
            TableColumnNotFoundError: there is no such column.
            TableIndexAlreadyExistsError: there is an index of this name.
            InvalidInputError: the column's type has no such index, or a parameter makes no sense.
        """
        kind = index_type if isinstance(index_type, IndexKind) else IndexKind.parse(index_type)
        if name is not None and not name.strip():
            msg = f"an index of {self._handle.what} needs a name, or none for one made up"
            raise InvalidInputError(msg)
        with self._handle.changing(At(branch=branch)) as dataset:
            found = find(dataset, column, self._handle.what, any_case=True)
            arguments = kind.read(parameters, found.type)
            if kind.is_vector:
                dataset.create_index(found.path, kind.name, name, replace=replace, **arguments)
            else:
                scalar: Any = kind.name  # each is a literal type of its own
                dataset.create_scalar_index(found.path, scalar, name, replace=replace, **arguments)
            return _indexed(dataset)

    def list(self, at: At = NEWEST) -> list[Index]:
        """Return the indexes, sorted by name."""
        with self._handle.reading(at) as dataset:
            return describe_indexes(dataset)

    def get(self, name: str, at: At = NEWEST) -> Index:
        """Return one index.

        Raises:
            TableIndexNotFoundError: there is no such index.
        """
        indexes = self.list(at)
        for index in indexes:
            if index.name == name:
                return index
        known = ", ".join(index.name for index in indexes) or "none"
        msg = f"{self._handle.what} has no index {quote(name)}: its indexes are {known}"
        raise TableIndexNotFoundError(msg)

    def extend(self, names: Sequence[str], *, branch: str | None = None) -> Committed:
        """Let indexes cover the rows that they do not yet.

        Raises:
            ConcurrentModificationError: somebody else changes one of them.
        """
        with self._handle.changing(At(branch=branch)) as dataset:
            dataset.optimize.optimize_indices(index_names=list(names))
            return Committed.of(dataset)

    def drop(self, name: str, *, branch: str | None = None) -> Committed:
        """Drop an index.

        Raises:
            TableIndexNotFoundError: there is no such index.
        """
        with self._handle.changing(At(branch=branch)) as dataset:
            dataset.drop_index(name)
            return Committed.of(dataset)


def _indexed(dataset: LanceDataset) -> Indexed:
    """Read from the transaction what was built, for Lance makes up names."""
    transaction: Any = dataset.read_transaction(dataset.version)
    (made,) = transaction.operation.new_indices
    return Indexed(Committed(dataset.version, transaction.uuid), made.name)


def describe_indexes(dataset: LanceDataset) -> list[Index]:
    """Return the indexes of an opened version, sorted by name."""
    found = [one for one in dataset.describe_indices() if not one.name.startswith(_INTERNAL)]
    rows = dataset.count_rows() if found else 0
    return sorted((_index(one, rows) for one in found), key=lambda index: index.name)


def _index(found: Any, rows: int) -> Index:  # noqa: ANN401  # Lance gives it no public type
    segments = found.segments
    times = [segment.created_at for segment in segments if segment.created_at is not None]
    return Index(
        name=found.name,
        uuid=segments[0].uuid,
        columns=tuple(found.field_names),
        kind=found.index_type,
        type_url=found.type_url,
        rows_indexed=found.num_rows_indexed,
        rows_unindexed=max(rows - found.num_rows_indexed, 0),
        size_bytes=found.total_size_bytes,
        segments=len(segments),
        created_at=min(times, default=None),
        format_version=max(segment.index_version for segment in segments),
        details=found.details or {},
        fragments=len({one for segment in segments for one in segment.fragment_ids or ()}),
    )
