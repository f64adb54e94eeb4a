"""Who computes the steps of a run and writes its outputs: Spark, in `mooring.spark`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from mooring.changes.parts import Draft, PartWritten
    from mooring.pipelines.definition import Step
    from mooring.pipelines.expectations import Checked

__all__ = ["Engine"]


class Engine(Protocol):
    """Computes the rows of one run."""

    def check(self, step: Step) -> list[Checked]:
        """Count what is as expected in a step, and set apart what is not."""
        ...

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a source or step, or of the rejected rows of a step."""
        ...

    def write(self, name: str, draft: Draft) -> Sequence[PartWritten]:
        """Have workers write the rows of a source or step."""
        ...

    def close(self) -> None:
        """Forget what was computed."""
        ...
