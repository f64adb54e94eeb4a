"""Where processes are tortured: which kinds of catalogs, on which stores."""

from __future__ import annotations

DISK, MOTO, SEAWEEDFS = "disk", "moto", "seaweedfs"
# A catalog that has its manifest alone, behind ``mooring serve``.
SERVED = "served"
BACKENDS = ("listing", "compat", "manifest", "metastore")
PLACES = (
    *((backend, store) for store in (DISK, MOTO, SEAWEEDFS) for backend in BACKENDS),
    (SERVED, DISK),
)
