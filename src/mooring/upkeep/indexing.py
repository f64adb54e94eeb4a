"""Building an index in parts: each worker indexes some fragments, one commit takes all in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from mooring.errors import ConcurrentModificationError
from mooring.jobs.address import CatalogAddress, TableAddress
from mooring.tables.failures import translated
from mooring.tables.handle import At
from mooring.tables.index_kinds import IndexKind
from mooring.tables.index_segments import (
    SegmentPlan,
    Undivided,
    build_segment,
    commit_segments,
    delete_segments,
    plan_segments,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mooring.catalog import Catalog, Name
    from mooring.jobs.runner import Runner
    from mooring.tables.commits import Committed
    from mooring.tables.index_kinds import IndexParameters

__all__ = ["BuiltIndex", "build_index"]

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """An index that was built.

    Attributes:
        commit: The version and transaction.
        name: The index's name, given or made up.
        parts: How many parts were built apart from each other; 0 where one process built it.
        whole_because: Why one process had to build it; None where none had to.
    """

    commit: Committed
    name: str
    parts: int
    whole_because: str | None = None


def build_index(
    catalog: Catalog,
    name: Name,
    column: str,
    index_type: str | IndexKind = "BTREE",
    *,
    runner: Runner,
    index_name: str | None = None,
    replace: bool = False,
    branch: str | None = None,
    **parameters: Unpack[IndexParameters],
) -> BuiltIndex:
    """Build an index of a table, divided among workers where its kind and the rows allow it.

    Rows that are appended meanwhile are not covered, as with any index. After a change that the
    index cannot follow it is built again.

    Args:
        catalog: The catalog.
        name: The table.
        column: The path of the column; its case may differ.
        index_type: As ``Table.indexes.create`` takes it.
        runner: Builds the parts.
        index_name: Its name; made of the column's unless given.
        replace: Build it anew where there is one of this name and column.
        branch: Where; main unless given.
        parameters: Those of the type.

    Raises:
        TableColumnNotFoundError: there is no such column.
        TableIndexAlreadyExistsError: there is an index of this name.
        InvalidInputError: the column's type has no such index, or a parameter makes no sense.
        ConcurrentModificationError: conflicting changes came first every time.
    """
    kind = index_type if isinstance(index_type, IndexKind) else IndexKind.parse(index_type)
    table = catalog.table(name)
    handle = table.handle
    handle.ledger.prepare()

    def attempt() -> BuiltIndex:
        plan = plan_segments(
            handle,
            column,
            kind,
            parameters,
            name=index_name,
            replace=replace,
            branch=branch,
            workers=runner.workers,
        )
        at = TableAddress(CatalogAddress.of(catalog), table.info.id.names, plan.version, branch)
        built: list[Any] = []
        try:
            with translated(handle.what):
                segments = runner.run(
                    _Build(at, plan),
                    plan.groups,
                    label=f"indexing {column}",
                    on_done=built.append,
                )
        except BaseException:
            delete_segments(handle, built, branch)
            raise
        done = commit_segments(handle, plan, segments, branch)
        return BuiltIndex(done.commit, done.name, len(segments))

    try:
        return _again(attempt)
    except Undivided as exc:
        whole = table.indexes.create(
            column, kind, name=index_name, replace=replace, branch=branch, **parameters
        )
        return BuiltIndex(whole.commit, whole.name, 0, str(exc))


def _again(attempt: Callable[[], BuiltIndex]) -> BuiltIndex:
    for _ in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except ConcurrentModificationError:
            continue
    return attempt()


@dataclass(frozen=True)
class _Build:
    """Builds one segment, wherever it is."""

    at: TableAddress
    plan: SegmentPlan

    def __call__(self, group: Sequence[int]) -> Any:  # noqa: ANN401  # Lance's own description
        # Opened for this segment alone: Lance lends a table to one builder at a time.
        handle = self.at.table().handle
        dataset = handle.open(At(self.plan.version, branch=self.at.branch))
        return build_segment(dataset, self.plan, group)
