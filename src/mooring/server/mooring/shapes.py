"""What goes over the wire, in and out; its document is made of these.

Identifiers are lists of names. Times are milliseconds since 1970 and end in ``_at_ms``. What is
left out of an answer is not known, or not for whoever asks.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

__all__ = [
    "Catalog",
    "Catalogs",
    "Change",
    "Counted",
    "DroppedObject",
    "Expectation",
    "FailedPurge",
    "History",
    "Namespace",
    "Namespaces",
    "Nothing",
    "Properties",
    "PropertyUpdates",
    "Protection",
    "Purge",
    "PurgeResult",
    "Run",
    "RunInput",
    "RunOutput",
    "RunPlace",
    "RunStep",
    "RunWithLineage",
    "Runs",
    "ServedCatalog",
    "Table",
    "TableStatus",
    "Tables",
    "Transaction",
    "TransactionChange",
    "TransactionWithChanges",
    "Transactions",
    "Trash",
    "Undrop",
    "Undropped",
]

Id = Annotated[list[str], Meta(description="The names from the root down; the root has none.")]
BelowRoot = Annotated[list[str], Meta(description="The names from the root down.", min_length=1)]
AtMs = Annotated[int, Meta(description="Milliseconds since 1970.")]
Kind = Literal["directory", "metastore", "iceberg", "lance", "foreign"]


# -- catalogs ------------------------------------------------------------------------------------


class ServedCatalog(Struct, frozen=True):
    """A catalog of the server."""

    name: Annotated[str, Meta(description="What stands before /v1 in addresses of it.")]
    is_default: Annotated[bool, Meta(description="Whether addresses that name none are of it.")]
    kind: Kind
    uri: Annotated[str, Meta(description="Where it lies; told to its admins.")] | UnsetType = UNSET


class Catalogs(Struct, frozen=True):
    """The catalogs in which whoever asks has a role."""

    catalogs: list[ServedCatalog]


class Catalog(Struct, frozen=True):
    """A catalog, and what it is like; of a foreign one the rest is not known, and false."""

    name: str
    kind: Kind
    levels: Annotated[
        int | None,
        Meta(description="The level of every table; null where tables may lie at any level."),
    ]
    managed_versioning: Annotated[
        bool, Meta(description="Whether whoever opens a table is to commit through the catalog.")
    ]
    keeps_versions: Annotated[
        bool, Meta(description="Whether versions are records of the catalog's own.")
    ]
    read_only: bool
    version: Annotated[str, Meta(description="Of Mooring.")]


# -- namespaces and tables -----------------------------------------------------------------------


class Namespace(Struct, frozen=True):
    """A namespace; one that only leads to what may be read shows no properties."""

    id: Id
    properties: dict[str, str]


class Namespaces(Struct, frozen=True):
    """Namespaces at any level, the root first."""

    namespaces: list[Namespace]


class Table(Struct, frozen=True):
    """A live table."""

    id: BelowRoot
    location: str
    properties: dict[str, str]
    keeps_versions: (
        Annotated[
            bool,
            Meta(description="Whether its versions are the catalog's; absent where all are alike."),
        ]
        | UnsetType
    ) = UNSET


class Tables(Struct, frozen=True):
    """Live tables at any level, sorted."""

    tables: list[Table]


class TableStatus(Struct, frozen=True):
    """What a table is, and of a dropped one since when and how long."""

    status: Literal["exists", "soft_deleted", "not_found"]
    deleted_at_ms: AtMs | UnsetType = UNSET
    expires_at_ms: (
        Annotated[int | None, Meta(description="When a purge may take it; null for never.")]
        | UnsetType
    ) = UNSET


class Undrop(Struct, frozen=True):
    """How a dropped table is to come back."""

    new_id: Annotated[BelowRoot | None, Meta(description="Another identifier.")] = None


class Undropped(Struct, frozen=True):
    """A table that is live again."""

    id: BelowRoot
    location: str


class Protection(Struct, frozen=True):
    """Whether drops are to be refused."""

    protected: bool = True


class PropertyUpdates(Struct, frozen=True):
    """Properties to set; null removes one."""

    updates: dict[str, str | None]


class Properties(Struct, frozen=True):
    """All properties, as they are now."""

    properties: dict[str, str]


class Change(Struct, frozen=True):
    """Something that happened to a table in the catalog."""

    action: str
    state: Annotated[str, Meta(description="What came of it.")]
    by: str
    at_ms: AtMs
    version: Annotated[int | None, Meta(description="The version that was made.")] = None


class History(Struct, frozen=True):
    """What happened to a table, the oldest first."""

    changes: list[Change]


class Counted(Struct, frozen=True):
    """How many there were."""

    count: int


class Nothing(Struct, frozen=True):
    """It is done."""


# -- the trash -----------------------------------------------------------------------------------


class DroppedObject(Struct, frozen=True):
    """A table or namespace in the trash."""

    id: BelowRoot
    deleted_at_ms: AtMs
    expires_at_ms: Annotated[
        int | None, Meta(description="When a purge may take it; null for never.")
    ]


class Trash(Struct, frozen=True):
    """What was dropped and can be brought back, sorted."""

    tables: list[DroppedObject]
    namespaces: list[DroppedObject]


class Purge(Struct, frozen=True):
    """What is to be deleted for good."""

    ids: Annotated[
        list[BelowRoot] | None,
        Meta(description="Exactly these dropped tables; without any, all whose time is over."),
    ] = None


class FailedPurge(Struct, frozen=True):
    """A table that is still there, and why."""

    id: BelowRoot
    code: int
    error: str


class PurgeResult(Struct, frozen=True):
    """What became of each table of a purge."""

    purged: list[BelowRoot]
    failed: list[FailedPurge]


# -- transactions --------------------------------------------------------------------------------


class Transaction(Struct, frozen=True):
    """A committed transaction of a metastore."""

    id: str
    commit: Annotated[int, Meta(description="The place in the order of all commits.")]
    by: str
    at_ms: AtMs
    changes: Annotated[int, Meta(description="How many objects changed.")]
    message: str | None


class Transactions(Struct, frozen=True):
    """Committed transactions, the newest first."""

    transactions: list[Transaction]


class TransactionChange(Struct, frozen=True):
    """What a transaction did to an object."""

    operation: str
    kind: str
    object: Annotated[str, Meta(description="The object as people name it.")]
    id: Annotated[str, Meta(description="The ids from its namespace down to itself.")]
    revision: int
    names: Annotated[
        list[str], Meta(description="Names that begin, after a plus, or end, after a minus.")
    ]


class TransactionWithChanges(Struct, frozen=True):
    """A committed transaction, with all that it did."""

    id: str
    commit: int
    by: str
    began_at_ms: AtMs
    at_ms: AtMs
    message: str | None
    changes: list[TransactionChange]


# -- runs of pipelines ---------------------------------------------------------------------------


class RunInput(Struct, frozen=True):
    """Something that a run read."""

    source: Annotated[str, Meta(description="What the pipeline calls it.")]
    kind: str
    name: Annotated[str, Meta(description="The table, or the paths.")]
    shown: Annotated[str, Meta(description="Its version, for people.")]
    version: dict[str, Any]


class RunStep(Struct, frozen=True):
    """A step of a run."""

    name: str
    kind: str
    needs: list[str]


class Expectation(Struct, frozen=True):
    """What was counted for an expectation."""

    step: str
    expectation: str
    on_failure: str
    rows: int
    passed: int
    failed: int
    example: Annotated[str | None, Meta(description="A row that is not as expected.")]


class RunOutput(Struct, frozen=True):
    """Something that a run wrote."""

    table: str
    change: str
    source: Annotated[str, Meta(description="The step that it is from.")]
    rows: int
    position: int | None
    table_id: str | None
    is_created: bool
    was_kept: Annotated[bool, Meta(description="Whether an earlier try of the run wrote it.")]
    published: str | None


class Run(Struct, frozen=True, kw_only=True):
    """A run of a pipeline."""

    run: str
    pipeline: str
    state: Literal["done", "failed"]
    fingerprint: Annotated[str, Meta(description="What makes it the same as another.")]
    parameters: dict[str, str]
    by: str
    started_at_ms: AtMs
    ended_at_ms: AtMs
    attempts: int
    error: str | None
    inputs: list[RunInput]
    steps: list[RunStep]
    expectations: list[Expectation]
    outputs: list[RunOutput]
    file: str | None
    txn_id: str | None


class Runs(Struct, frozen=True):
    """Runs, the newest first."""

    runs: list[Run]


class RunPlace(Struct, frozen=True):
    """A run before or after another, and the table between them."""

    run: str
    table: str


class RunWithLineage(Run, frozen=True, kw_only=True):
    """A run of a pipeline, with the runs around it."""

    upstream: list[RunPlace]
    downstream: list[RunPlace]
