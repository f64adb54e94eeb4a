"""How far races go: the environment variable MOORING_RACES raises it.

It counts for manifest catalogs and for the tables of a metastore. The suites take
what fits their time. `MOORING_RACES=3` takes a good part of an hour.
"""

from __future__ import annotations

import os

from .explorer import Limits

_DEPTH = int(os.environ.get("MOORING_RACES", "1"))
IS_DEEP = _DEPTH > 1

# A preemption takes the turn from an actor that could go on; switches at an actor's end are free.
WIDE = Limits(preemptions=_DEPTH)
DEEP = Limits(preemptions=_DEPTH + 1)
WITH_A_FAULT = Limits(preemptions=_DEPTH - 1, faults=1)
