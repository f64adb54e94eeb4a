"""Tables in and out of Spark, and jobs that a cluster does.

Everything here imports PySpark, which takes a second, or starts it, which takes several: the rest
of Mooring asks for this package only where Spark is wanted, and the names below are imported when
they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mooring.spark.changes_writing import read_changes, write_changes
    from mooring.spark.streaming import stream_table, write_stream
    from mooring.spark.tables import (
        WrittenTable,
        create_view,
        create_views,
        read_table,
        write_table,
    )

__all__ = [
    "WrittenTable",
    "create_view",
    "create_views",
    "read_changes",
    "read_table",
    "stream_table",
    "write_changes",
    "write_stream",
    "write_table",
]

_ELSEWHERE = {
    "read_changes": "changes_writing",
    "stream_table": "streaming",
    "write_changes": "changes_writing",
    "write_stream": "streaming",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401  # whatever has the name
    """Import what is asked for."""
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    module = _ELSEWHERE.get(name, "tables")
    return getattr(import_module(f"mooring.spark.{module}"), name)
