"""What a pipeline is: sources, steps with expectations, outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mooring.pipelines.functions import FunctionName, FunctionSource
    from mooring.pipelines.parameters import ParameterValue
    from mooring.pipelines.yaml_file import Place

__all__ = [
    "ChangesSource",
    "Creation",
    "Expectation",
    "FilesSource",
    "OnFailure",
    "Output",
    "Pipeline",
    "Publication",
    "PythonStep",
    "Source",
    "SqlStep",
    "Step",
    "TableSource",
]


@dataclass(frozen=True)
class FilesSource:
    """Files, read as ``mooring ingest`` reads them.

    Attributes:
        name: What steps call it.
        paths: Paths, directories, patterns or URIs.
        format: Their format; told by their suffixes unless given.
        delimiter: Of CSV.
        header: Whether CSV names its columns.
        null_values: Texts of CSV that mean null.
        place: Where it is defined.
    """

    name: str
    paths: tuple[str, ...]
    format: str | None
    delimiter: str | None
    header: bool
    null_values: tuple[str, ...]
    place: Place


@dataclass(frozen=True)
class TableSource:
    """A table of the catalog, of Lance or of changes.

    Attributes:
        name: What steps call it.
        table: The table.
        version: The version of a Lance table.
        tag: The tag of one.
        position: The position of a change table.
        place: Where it is defined.
    """

    name: str
    table: str
    version: int | None
    tag: str | None
    position: int | None
    place: Place


@dataclass(frozen=True)
class ChangesSource:
    """What changed in a change table since the last run of the pipeline.

    Attributes:
        name: What steps call it.
        table: The table.
        after: The position to begin after in the first run.
        place: Where it is defined.
    """

    name: str
    table: str
    after: int
    place: Place


Source = FilesSource | TableSource | ChangesSource


class OnFailure(StrEnum):
    """What becomes of rows that are not as expected."""

    FAIL = "fail"
    DROP = "drop"
    QUARANTINE = "quarantine"


@dataclass(frozen=True)
class Expectation:
    """What every row of a step is expected to be.

    Attributes:
        name: What it is called.
        check: A condition of SQL; a row for which it is null is not as expected.
        on_failure: What becomes of rows that are not.
        table: The change table that gets them.
        max_fraction: Which part of the rows may be so; beyond it the run fails.
        place: Where it is defined.
    """

    name: str
    check: str
    on_failure: OnFailure
    table: str | None
    max_fraction: float
    place: Place


@dataclass(frozen=True)
class SqlStep:
    """A query of Spark over sources and other steps."""

    name: str
    sql: str
    needs: tuple[str, ...]
    expectations: tuple[Expectation, ...]
    place: Place


@dataclass(frozen=True)
class PythonStep:
    """A function that gets data frames and returns one.

    Attributes:
        name: What others call it.
        function: The function.
        source: Its file, and its arguments: names of sources, steps and parameters, ``spark`` and
            ``parameters``.
        needs: The arguments that are sources and steps.
        expectations: What its rows are expected to be.
        place: Where it is defined.
    """

    name: str
    function: FunctionName
    source: FunctionSource
    needs: tuple[str, ...]
    expectations: tuple[Expectation, ...]
    place: Place


Step = SqlStep | PythonStep


@dataclass(frozen=True)
class Creation:
    """How a table is made that is not there."""

    keys: tuple[str, ...] = ()
    order: str | None = None
    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    buckets: int | None = None


@dataclass(frozen=True)
class Publication:
    """The Lance table that a change table is published as after the run.

    Attributes:
        into: The Lance table.
        settings: Those of ``mooring publish``, by name.
        place: Where it is defined.
    """

    into: str
    settings: Mapping[str, object]
    place: Place


@dataclass(frozen=True)
class Output:
    """A change table, and what becomes of it.

    Attributes:
        source: The source or step whose rows it gets.
        table: The table.
        change: ``append``, ``upsert``, ``delete`` or ``replace``.
        create: How it is made where it is not there; None where it has to be.
        publish: What it is published as.
        place: Where it is defined.
    """

    source: str
    table: str
    change: str
    create: Creation | None
    publish: Publication | None
    place: Place

    @property
    def label(self) -> str:
        """Tell it apart from the other outputs of a pipeline."""
        return f"{self.change} {self.table} from {self.source}"


@dataclass(frozen=True)
class Pipeline:
    """A pipeline whose parameters have values.

    Attributes:
        name: Its name, by which the catalog knows its runs.
        description: For people.
        catalog: The metastore; that of the command unless given.
        path: The file.
        parameters: Their values.
        sources: By name.
        steps: By name.
        outputs: In order.
    """

    name: str
    description: str | None
    catalog: str | None
    path: Path
    parameters: Mapping[str, ParameterValue]
    sources: Mapping[str, Source]
    steps: Mapping[str, Step]
    outputs: tuple[Output, ...] = field(default=())
