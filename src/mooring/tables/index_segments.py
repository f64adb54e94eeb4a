"""An index in segments: each covers some fragments and is built by itself, one commit takes all in.

A vector index is trained once, before, so that all of its segments are of one kind. The segments
are then merged, and the index is what one process would have built.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lance.indices import IndicesBuilder
from lance.lance import indices as trainers

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    TableIndexAlreadyExistsError,
)
from mooring.identifiers import quote
from mooring.tables.commits import Committed
from mooring.tables.field_paths import quoted
from mooring.tables.fields import find
from mooring.tables.handle import At
from mooring.tables.indexes import Indexed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lance import LanceDataset

    from mooring.tables.fields import Found
    from mooring.tables.handle import TableHandle
    from mooring.tables.index_kinds import IndexKind

__all__ = [
    "SegmentPlan",
    "Undivided",
    "build_segment",
    "commit_segments",
    "delete_segments",
    "plan_segments",
]

_INDEXES_DIR = "_indices"
_SAMPLE_RATE = 256
_LEAST_RATE = 2
_ITERATIONS = 50
_BITS = 8
_RQ_BITS = 5
# How many rows a partition has where nothing is said, as Lance chooses it.
_PARTITION_ROWS = {"IVF_FLAT": 4096, "IVF_RQ": 4096}
_PARTITION_ROWS_ELSE = 8192
_PARTITION_ROWS_HNSW = 1024 * 1024
_MOST_PARTITIONS = 4096


class Undivided(Exception):  # noqa: N818  # an answer, not an error
    """The index cannot be built in segments; the text says why."""


@dataclass(frozen=True)
class SegmentPlan:
    """What workers must know to build the segments of an index; it travels.

    Attributes:
        version: The version that is indexed.
        column: The column's path.
        kind: The kind of index, by Lance's name.
        name: The index's name.
        groups: The fragments of each segment.
        arguments: What else Lance is told: parameters, and what was trained.
    """

    version: int
    column: str
    kind: str
    name: str
    groups: tuple[tuple[int, ...], ...]
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)


def plan_segments(
    handle: TableHandle,
    column: str,
    kind: IndexKind,
    parameters: Mapping[str, Any],
    *,
    name: str | None = None,
    replace: bool = False,
    branch: str | None = None,
    workers: int,
) -> SegmentPlan:
    """Divide the building of an index, and train what its segments share.

    Args:
        handle: The table.
        column: The path of the column; its case may differ.
        kind: The kind of index.
        parameters: Those of the kind.
        name: The index's name; made of the column's unless given.
        replace: Whether an index of this name and column may be there.
        branch: Where; main unless given.
        workers: How many segments are built at once.

    Raises:
        Undivided: one process must build it.
        TableColumnNotFoundError: there is no such column.
        TableIndexAlreadyExistsError: there is an index of this name.
        InvalidInputError: a parameter makes no sense.
    """
    if name is not None and not name.strip():
        msg = f"an index of {handle.what} needs a name, or none for one made up"
        raise InvalidInputError(msg)
    with handle.reading(At(branch=branch)) as dataset:
        found = find(dataset, column, handle.what, any_case=True)
        arguments = kind.read(parameters, found.type)
        named = _name(dataset, found, kind, name, what=handle.what, replace=replace)
        groups = _groups(dataset, workers)
        if not groups:
            msg = "there are no rows"
            raise Undivided(msg)
        if kind.name.endswith("SQ") and len(groups) > 1:
            # Distances of one segment would then mean nothing beside those of another.
            msg = f"each segment of an index of type {kind.name} has a scale of its own"
            raise Undivided(msg)
        if kind.is_vector:
            arguments = _train(dataset, found, kind, arguments)
        return SegmentPlan(dataset.version, found.path, kind.name, named, groups, arguments)


def build_segment(dataset: LanceDataset, plan: SegmentPlan, group: Sequence[int]) -> Any:  # noqa: ANN401  # Lance's own description of it
    """Build one segment, on the table at the version of the plan; nobody sees it yet."""
    return dataset.create_index_uncommitted(
        plan.column,
        plan.kind,
        plan.name,
        replace=True,  # the name is taken or given up by the commit
        fragment_ids=list(group),
        **plan.arguments,
    )


def commit_segments(
    handle: TableHandle, plan: SegmentPlan, segments: Sequence[Any], branch: str | None
) -> Indexed:
    """Make an index of its segments, by one commit; what is not in it afterwards is deleted.

    Raises:
        ConcurrentModificationError: a conflicting change came first; the segments are gone.
    """
    made = list(segments)
    try:
        chosen = _merge(handle, plan, made, branch)
        made += [one for one in chosen if one not in made]
        with handle.changing(At(plan.version, branch=branch)) as dataset:
            dataset.commit_existing_index_segments(plan.name, plan.column, chosen)
            done = Indexed(Committed.of(dataset), plan.name)
    except ConcurrentModificationError:
        delete_segments(handle, made, branch)  # after any other failure a version may have them
        raise
    kept = {one.uuid for one in chosen}
    delete_segments(handle, [one for one in made if one.uuid not in kept], branch)
    return done


def delete_segments(handle: TableHandle, segments: Iterable[Any], branch: str | None) -> None:
    """Delete segments that no version has."""
    place = handle.place_of(branch)
    for segment in segments:
        place.store.delete_prefix(place.path(f"{_INDEXES_DIR}/{segment.uuid}"))
    place.store.prune(place.path(_INDEXES_DIR))


def _merge(
    handle: TableHandle, plan: SegmentPlan, made: Sequence[Any], branch: str | None
) -> list[Any]:
    if len(made) == 1:
        return list(made)
    try:
        with handle.reading(At(plan.version, branch=branch)) as dataset:
            return [dataset.merge_existing_index_segments(list(made))]
    except BaseException:
        delete_segments(handle, made, branch)
        raise


def _name(
    dataset: LanceDataset,
    found: Found,
    kind: IndexKind,
    name: str | None,
    *,
    what: str,
    replace: bool,
) -> str:
    """Choose a name as Lance does: an index of another kind on the column has one of its own."""
    there = {one.name: one for one in dataset.describe_indices()}

    def is_same(one: Any) -> bool:  # noqa: ANN401  # Lance gives it no public type
        return list(one.field_names) == [found.path] and _is_kind(one.index_type, kind)

    if name is None:
        name, number = f"{found.path}_idx", 2
        while name in there and not is_same(there[name]):
            name, number = f"{found.path}_idx_{number}", number + 1
    if name in there and not (replace and list(there[name].field_names) == [found.path]):
        msg = (
            f"{what} has an index {quote(name)} already: choose another name, or replace it"
            " where it is of the same column"
        )
        raise TableIndexAlreadyExistsError(msg)
    return name


def _is_kind(text: str, kind: IndexKind) -> bool:
    return text.replace("_", "").upper() == kind.name.replace("_", "")


def _groups(dataset: LanceDataset, workers: int) -> tuple[tuple[int, ...], ...]:
    """Divide the fragments into as many groups as there are workers, of about as many rows."""
    sizes = sorted(
        ((one.count_rows(), one.fragment_id) for one in dataset.get_fragments()), reverse=True
    )
    groups: list[list[int]] = [[] for _ in range(min(workers, len(sizes)))]
    rows = [0] * len(groups)
    for size, fragment in sizes:
        least = rows.index(min(rows))
        groups[least].append(fragment)
        rows[least] += size
    return tuple(tuple(sorted(group)) for group in groups)


def _train(
    dataset: LanceDataset, found: Found, kind: IndexKind, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Train what all segments share, and replace what was said of the training by it."""
    told = dict(arguments)
    training = _Training(dataset, found, kind, told)
    metric, bits = told["metric"], told.get("num_bits")
    model = training.partitions(metric)
    shared: dict[str, Any] = {"ivf_centroids": model.centroids}
    if kind.name.endswith("PQ"):
        shared["pq_codebook"] = training.codebook(model, bits or _BITS)
    if kind.name.endswith("RQ"):
        shared["rabitq_model"] = trainers.build_rq_model(training.dimension, bits or _RQ_BITS)
    return {**told, "num_partitions": len(model.centroids), **shared}


class _Training:
    """The training of a vector index, over a sample of the rows."""

    def __init__(
        self, dataset: LanceDataset, found: Found, kind: IndexKind, told: dict[str, Any]
    ) -> None:
        if found.is_nested or not pa.types.is_fixed_size_list(found.type):
            msg = f"the vectors in {quote(found.path)} are no plain column"
            raise Undivided(msg)
        self._builder = IndicesBuilder(dataset, found.name)
        self._rows = dataset.count_rows(f"{quoted(found.name)} IS NOT NULL")
        self._rate = told.pop("sample_rate", _SAMPLE_RATE)
        self._iterations = told.pop("max_iters", _ITERATIONS)
        size = told.pop("target_partition_size", None) or _partition_rows(kind)
        usual = min(max(1, self._rows // size), _MOST_PARTITIONS)
        self._partitions = told.pop("num_partitions", None) or usual
        self._sub_vectors = told.get("num_sub_vectors")
        self.dimension = found.type.list_size

    def partitions(self, metric: str) -> Any:  # noqa: ANN401  # Lance's own model
        """Find the centres of the partitions."""
        return self._builder.train_ivf(
            self._partitions,
            distance_type=metric,
            sample_rate=self._affordable(self._partitions),
            max_iters=self._iterations,
        )

    def codebook(self, model: Any, bits: int) -> Any:  # noqa: ANN401  # Lance's own
        """Find the codes of parts of vectors."""
        return self._builder.train_pq(
            model,
            self._sub_vectors,
            sample_rate=self._affordable(2**bits),
            max_iters=self._iterations,
            num_bits=bits,
        ).codebook

    def _affordable(self, centres: int) -> int:
        """Return how many rows of the sample each centre gets."""
        rate = int(min(self._rate, self._rows // centres))
        if rate < _LEAST_RATE:
            msg = f"{self._rows:,} vectors are too few to train {centres:,} centres for all"
            raise Undivided(msg)
        return rate


def _partition_rows(kind: IndexKind) -> int:
    if "HNSW" in kind.name:
        return _PARTITION_ROWS_HNSW
    return _PARTITION_ROWS.get(kind.name, _PARTITION_ROWS_ELSE)
