"""When a partition is compacted, and how: by what has come since it last was."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError
from mooring.identifiers import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GATHER", "MERGE", "CompactionPolicy"]

# Small changes are put together in few files as they are; or merged into the rows.
GATHER, MERGE = 1, 2

_PREFIX = "compaction."
# A bucket with more changes than this is slow to read, however few rows they have.
MOST_LAYERS = 64


@dataclass(frozen=True)
class CompactionPolicy:
    """When to compact a partition, and how.

    Attributes:
        deltas: So many changes since the last round make one due.
        files: So many files of changes do.
        bytes: So many bytes of changes do.
        ratio: Changes that are smaller than this share of the merged rows are gathered, larger
            ones are merged with them.
        target_bytes: How large a file may become; those of at least half of it are left alone
            where rows are not merged.
        target_rows: How many rows a file may have.
        level: 1 gathers, 2 merges; None decides by the ratio.
        force: Whether to rewrite everything, due or not.
    """

    deltas: int = 10
    files: int = 100
    bytes: int = 256 * 2**20
    ratio: float = 0.1
    target_bytes: int = 256 * 2**20
    target_rows: int = 4_000_000
    level: int | None = None
    force: bool = False

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense.

        Raises:
            InvalidInputError: one does not.
        """
        for name in ("deltas", "files", "bytes", "target_bytes", "target_rows"):
            if getattr(self, name) < 1:
                raise InvalidInputError(f"{_PREFIX}{name} is at least 1, not {getattr(self, name)}")
        if self.ratio < 0:
            raise InvalidInputError(f"{_PREFIX}ratio is no number below 0, not {self.ratio}")
        if self.level not in {None, GATHER, MERGE}:
            raise InvalidInputError(f"compaction has levels 1 and 2, not {self.level}")

    @classmethod
    def of(cls, properties: Mapping[str, str], **given: object) -> CompactionPolicy:
        """Return the policy of a table: what is given, else its properties, else the usual.

        Args:
            properties: Of the table: ``compaction.deltas``, ``compaction.files``,
                ``compaction.bytes``, ``compaction.ratio``, ``compaction.target_bytes``,
                ``compaction.target_rows``.
            given: What to use instead; None counts as not given.

        Raises:
            InvalidInputError: a property is no number, or makes no sense.
        """
        told = {
            key.removeprefix(_PREFIX): value
            for key, value in properties.items()
            if key.startswith(_PREFIX)
        }
        kinds = {
            one.name: float if one.name == "ratio" else int
            for one in fields(cls)
            if one.name not in {"level", "force"}
        }
        found: dict[str, object] = {}
        for name, text in told.items():
            if name not in kinds:
                msg = f"a table has no property {quote(_PREFIX + name)}: known are " + ", ".join(
                    _PREFIX + one for one in kinds
                )
                raise InvalidInputError(msg)
            try:
                found[name] = kinds[name](text)
            except ValueError as exc:
                msg = f"the property {quote(_PREFIX + name)} is a number, not {quote(text)}"
                raise InvalidInputError(msg) from exc
        wanted = {name: value for name, value in given.items() if value is not None}
        return replace(cls(), **{**found, **wanted})  # type: ignore[arg-type]  # checked when made

    def is_due(self, *, deltas: int, files: int, size: int) -> bool:
        """Whether changes since the last round are enough for another."""
        return self.force or bool(
            deltas and (deltas >= self.deltas or files >= self.files or size >= self.bytes)
        )

    def choose_level(self, *, unmerged: float, merged: float, layers: int) -> int:
        """Say how to compact.

        Args:
            unmerged: Bytes of changes that are not merged yet.
            merged: Bytes of rows that are.
            layers: The most changes that a bucket has which are not merged.
        """
        if self.force:
            return MERGE
        if self.level is not None:
            return self.level
        is_small = unmerged < self.ratio * merged and layers <= MOST_LAYERS
        return GATHER if is_small else MERGE
