"""Upkeep of tables, and of whole catalogs: jobs whose parts run in threads or on Spark."""

from mooring.upkeep.cleaning import CleanedUp, RunState, SweptRun, cleanup, sweep_runs
from mooring.upkeep.compaction import compact
from mooring.upkeep.filling import fill_column
from mooring.upkeep.indexing import BuiltIndex, build_index

__all__ = [
    "BuiltIndex",
    "CleanedUp",
    "RunState",
    "SweptRun",
    "build_index",
    "cleanup",
    "compact",
    "fill_column",
    "sweep_runs",
]
