"""A catalog's names and properties as lines of JSON: taken from one, brought into another.

Only what is live is written: the trash stays with its catalog, and so do the bytes of tables.
Reading back gives names to tables that lie in the target already.
"""

from mooring.exchange.bringing import Outcome, Result, bring_in
from mooring.exchange.lines import FORMAT, read_lines, write_lines
from mooring.exchange.snapshot import NamespaceEntry, Snapshot, TableEntry, take_snapshot

__all__ = [
    "FORMAT",
    "NamespaceEntry",
    "Outcome",
    "Result",
    "Snapshot",
    "TableEntry",
    "bring_in",
    "read_lines",
    "take_snapshot",
    "write_lines",
]
