"""Lists tables with lance-namespace-impls, in an environment of its own."""

from __future__ import annotations

import json
import sys
import time

from lance_namespace import ListTablesRequest
from lance_namespace_impls.iceberg import IcebergNamespace


def main() -> None:
    """Print how many tables there are, and how long it took."""
    endpoint, token, namespace = json.loads(sys.argv[1])
    catalog = IcebergNamespace(endpoint=endpoint, auth_token=token)
    started = time.perf_counter()
    found = catalog.list_tables(ListTablesRequest(id=namespace))
    sys.stdout.write(f"{len(found.tables)} {time.perf_counter() - started}\n")


if __name__ == "__main__":
    main()
