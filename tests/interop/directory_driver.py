"""Does with libraries that open a directory of Lance tables what it is told, line by line of JSON.

Runs in the libraries' environments, and imports nothing of the project. `start` names the library
and the directory. Tables have one column, `id`.
"""

# ruff: noqa: S608  # the names in statements are the tests' own

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

# What the libraries print must not come between the answers.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


class PyLance:
    """pylance's own DirectoryNamespace."""

    def __init__(self, root, settings):
        import lance_namespace

        self.namespace = lance_namespace.connect("dir", {"root": root, **settings})

    def tables(self):
        from lance_namespace import ListTablesRequest

        return sorted(self.namespace.list_tables(ListTablesRequest(id=[])).tables)

    def ids(self, table):
        import lance

        found = lance.dataset(namespace_client=self.namespace, table_id=[table])
        return sorted(found.to_table()["id"].to_pylist())

    def create(self, table, ids):
        self._write(table, ids, "create")

    def add(self, table, ids):
        self._write(table, ids, "append")

    def drop(self, table):
        from lance_namespace import DropTableRequest

        self.namespace.drop_table(DropTableRequest(id=[table]))

    def _write(self, table, ids, mode):
        import lance
        import pyarrow as pa

        place = {"namespace_client": self.namespace, "table_id": [table]}
        lance.write_dataset(pa.table({"id": pa.array(ids, pa.int64())}), mode=mode, **place)


class LanceDb:
    """lancedb, through the DirectoryNamespace that is built into it, or by a path."""

    def __init__(self, root, settings, by_path=False):
        import lancedb

        if by_path:
            self.db = lancedb.connect(root)
        else:
            self.db = lancedb.connect_namespace("dir", {"root": root, **settings})

    def tables(self, namespace=()):
        # By a path there are no namespaces to ask for.
        more = {"namespace_path": list(namespace)} if namespace else {}
        return sorted(self.db.list_tables(**more).tables)

    def namespaces(self):
        return sorted(self.db.list_namespaces().namespaces)

    def create_namespace(self, namespace):
        self.db.create_namespace(namespace)

    def drop_namespace(self, namespace):
        self.db.drop_namespace(namespace)

    def ids(self, table):
        return sorted(self.db.open_table(table).to_arrow()["id"].to_pylist())

    def create(self, table, ids):
        self.db.create_table(table, [{"id": one} for one in ids])

    def add(self, table, ids):
        self.db.open_table(table).add([{"id": one} for one in ids])

    def drop(self, table):
        self.db.drop_table(table)


class DuckDb:
    """DuckDB with its extension for Lance, which attaches the directory."""

    def __init__(self, root, settings):
        import duckdb
        import duckdb_extension_lance

        home = Path(duckdb_extension_lance.__file__).parent
        self.db = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        self.db.execute(f"LOAD '{next(home.rglob('*.duckdb_extension'))}'")
        self.root = root
        self._attach()

    def tables(self):
        self._attach()
        found = self._ask("SELECT table_name FROM duckdb_tables() WHERE database_name = 'lake'")
        return sorted(row[0] for row in found)

    def ids(self, table):
        self._attach()
        return [row[0] for row in self._ask(f"SELECT id FROM lake.main.{table} ORDER BY id")]

    def create(self, table, ids):
        self._ask(f"CREATE TABLE lake.main.{table} AS SELECT unnest({ids})::BIGINT AS id")

    def add(self, table, ids):
        self._ask(f"INSERT INTO lake.main.{table} SELECT unnest({ids})::BIGINT")

    def drop(self, table):
        self._attach()
        self._ask(f"DROP TABLE lake.main.{table}")

    def _attach(self):
        """Attach anew: DuckDB keeps what it saw of an attached directory."""
        self.db.execute("DETACH DATABASE IF EXISTS lake")
        self.db.execute(f"ATTACH '{self.root}' AS lake (TYPE LANCE)")

    def _ask(self, statement):
        return self.db.execute(statement).fetchall()


LIBRARIES = {"pylance-dir": PyLance, "lancedb": LanceDb, "duckdb-lance": DuckDb}


def main() -> None:
    driver = None
    for line in sys.stdin:
        request = json.loads(line)
        verb = request.pop("do")
        try:
            if verb == "start":
                driver = LIBRARIES[request.pop("library")](**request)
                result = None
            else:
                result = getattr(driver, verb)(**request)
            answer = {"result": result}
        except Exception as exc:  # noqa: BLE001  # whoever asked gets it
            answer = {"error": f"{type(exc).__name__}: {exc}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
