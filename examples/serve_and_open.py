"""Serve a catalog, and open it by Lance's own REST client and by Mooring.

Run it with ``python examples/serve_and_open.py``; it takes ``pip install 'mooring[server]'``. It
works in a temporary folder, and the server ends with it.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import lance
import lance_namespace

import mooring

PROGRAM = "from mooring.cli.app import main; main()"


@contextmanager
def server(folder: str) -> Iterator[str]:
    """Run "mooring serve" for this machine alone, and give its address once it answers."""
    command = [sys.executable, "-c", PROGRAM, "serve", folder, "--port", "0", "-o", "ndjson"]
    with subprocess.Popen(  # noqa: S603  # the program itself
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            told = process.stdout.readline() if process.stdout else ""
            yield json.loads(told)["lance"]
        finally:
            process.terminate()


def main() -> None:
    with TemporaryDirectory() as folder:
        mooring.connect(folder).create_table("cities", [{"name": "Oslo"}, {"name": "Lima"}])
        with server(folder) as address:
            # What every Lance client speaks.
            names = lance_namespace.connect("rest", {"uri": address})
            cities = lance.dataset(namespace_client=names, table_id=["cities"])
            print("Lance counts:", cities.count_rows())

            # The same with all that Mooring has: a drop by one client is undone by another.
            names.drop_table(lance_namespace.DropTableRequest(id=["cities"]))
            remote = mooring.connect(f"lance+{address}")
            print("tables:", remote.list_tables())
            remote.undrop_table("cities")
            print("undropped through the server:", remote.table("cities").count(), "rows")


if __name__ == "__main__":
    main()
