"""Declarative pipelines: sources, steps, expectations, and outputs that are committed together."""

from mooring.pipelines.definition import Pipeline
from mooring.pipelines.history import RunRecord, list_runs, require_run
from mooring.pipelines.lineage import Lineage, trace
from mooring.pipelines.loading import load_pipeline
from mooring.pipelines.planning import RunPlan, plan_run
from mooring.pipelines.running import RunReport, run_pipeline

__all__ = [
    "Lineage",
    "Pipeline",
    "RunPlan",
    "RunRecord",
    "RunReport",
    "list_runs",
    "load_pipeline",
    "plan_run",
    "require_run",
    "run_pipeline",
    "trace",
]
