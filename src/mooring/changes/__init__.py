"""Change tables: rows that come as changes, are read merged, compacted and published."""

from mooring.changes.commits import Landed
from mooring.changes.compaction_policy import CompactionPolicy
from mooring.changes.publication_status import publications
from mooring.changes.publish_report import PublishReport
from mooring.changes.publishing import publish
from mooring.changes.table import ChangeTable, create_change_table, list_change_tables
from mooring.changes.vectors import Vector
from mooring.changes.writing import Batch, ChangeRun, write_changes

__all__ = [
    "Batch",
    "ChangeRun",
    "ChangeTable",
    "CompactionPolicy",
    "Landed",
    "PublishReport",
    "Vector",
    "create_change_table",
    "list_change_tables",
    "publications",
    "publish",
    "write_changes",
]
