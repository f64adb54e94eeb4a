"""Does with clients of Iceberg catalogs what it is told, by one line of JSON after the other.

Runs in the clients' environment, or for Spark in the project's, and imports nothing of the
project. `start` names the client; then there are those verbs that browse, and attempts at what
Iceberg clients do to tables.
"""

# ruff: noqa: S608  # the names in statements are the tests' own

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path

# What the clients print must not come between the answers.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
logging.disable(logging.CRITICAL)


class PyIceberg:
    """PyIceberg's catalog of REST servers."""

    def __init__(self, uri: str) -> None:
        from pyiceberg.catalog.rest import RestCatalog

        self.catalog = RestCatalog("lake", uri=uri, warehouse="lake")

    def namespaces(self, parent):
        return [list(one) for one in self.catalog.list_namespaces(tuple(parent))]

    def tables(self, namespace):
        return [one[-1] for one in self.catalog.list_tables(tuple(namespace))]

    def columns(self, namespace, table):
        return [
            [one.name, str(one.field_type)] for one in self._load(namespace, table).schema().fields
        ]

    def docs(self, namespace, table):
        schema = self._load(namespace, table).schema()
        return [[one.field_id, one.name, one.doc] for one in schema.fields]

    def snapshots(self, namespace, table):
        found = self._load(namespace, table)
        assert found.inspect.snapshots().num_rows == len(found.snapshots())
        assert [one.snapshot_id for one in found.history()][
            -1
        ] == found.metadata.current_snapshot_id
        return [one.snapshot_id for one in found.snapshots()]

    def properties(self, namespace, table):
        return dict(self._load(namespace, table).properties)

    def scan(self, namespace, table):
        return self._load(namespace, table).scan().to_arrow().num_rows

    def append(self, namespace, table):
        self._load(namespace, table).append(self._rows(namespace, table))

    def append_nothing(self, namespace, table):
        found = self._load(namespace, table)
        found.append(found.schema().as_arrow().empty_table())

    def create_lance(self, namespace, table):
        from pyiceberg.schema import Schema
        from pyiceberg.types import IntegerType, NestedField, StringType

        schema = Schema(
            NestedField(1, "id", IntegerType(), required=False),
            NestedField(2, "name", StringType(), required=False),
        )
        properties = {"table_type": "LANCE"}
        self.catalog.create_table((*namespace, table), schema, properties=properties)

    def overwrite(self, namespace, table):
        self._load(namespace, table).overwrite(self._rows(namespace, table))

    def delete_rows(self, namespace, table):
        self._load(namespace, table).delete("id > 0")

    def upsert(self, namespace, table):
        self._load(namespace, table).upsert(self._rows(namespace, table), join_cols=["id"])

    def create_over(self, namespace, table):
        schema = self._load(namespace, table).schema()
        self.catalog.create_table((*namespace, table), schema)

    def create_plain(self, namespace, table):
        schema = self._load(namespace, table).schema()
        self.catalog.create_table((*namespace, f"{table}_plain"), schema)

    def create_staged(self, namespace, table):
        schema = self._load(namespace, table).schema()
        with self.catalog.create_table_transaction((*namespace, f"{table}_plain"), schema) as txn:
            txn.append(self._rows(namespace, table))

    def expire_one(self, namespace, table):
        found = self._load(namespace, table)
        oldest = min(one.snapshot_id for one in found.snapshots())
        found.maintenance.expire_snapshots().by_id(oldest).commit()

    def add_column(self, namespace, table):
        from pyiceberg.types import StringType

        with self._load(namespace, table).update_schema() as update:
            update.add_column("extra", StringType())

    def drop_column(self, namespace, table):
        with self._load(namespace, table).update_schema() as update:
            update.delete_column("id")

    def partition(self, namespace, table):
        with self._load(namespace, table).update_spec() as update:
            update.add_identity("id")

    def make_branch(self, namespace, table):
        found = self._load(namespace, table)
        found.manage_snapshots().create_branch(found.metadata.current_snapshot_id, "b").commit()

    def move_away(self, namespace, table):
        from pyiceberg.table.update import SetLocationUpdate

        found = self._load(namespace, table)
        found.catalog.commit_table(found, (), (SetLocationUpdate(location="file:///nowhere"),))

    def unguard(self, namespace, table):
        with self._load(namespace, table).transaction() as txn:
            txn.remove_properties("gc.enabled", "write.data.path", "table_type")

    def drop(self, namespace, table):
        self.catalog.drop_table((*namespace, table))

    def purge(self, namespace, table):
        self.catalog.purge_table((*namespace, table))

    def _load(self, namespace, table):
        return self.catalog.load_table((*namespace, table))

    def _rows(self, namespace, table):
        schema = self._load(namespace, table).schema().as_arrow()
        import pyarrow as pa

        return pa.Table.from_pylist([{"id": 7, "name": "x"}], schema=schema)


class Polars:
    """polars, which reads what PyIceberg finds."""

    def __init__(self, uri: str) -> None:
        self.iceberg = PyIceberg(uri)
        self.namespaces, self.tables = self.iceberg.namespaces, self.iceberg.tables
        self.snapshots = self.iceberg.snapshots

    def columns(self, namespace, table):
        schema = self._frame(namespace, table).collect_schema()
        return [[name, str(kind)] for name, kind in schema.items()]

    def scan(self, namespace, table):
        return self._frame(namespace, table).collect().height

    def append(self, namespace, table):
        self._write(namespace, table, "append")

    def overwrite(self, namespace, table):
        self._write(namespace, table, "overwrite")

    def _write(self, namespace, table, mode):
        import polars as pl

        rows = pl.from_arrow(self.iceberg._rows(namespace, table))
        rows.write_iceberg(self.iceberg._load(namespace, table), mode=mode)

    def _frame(self, namespace, table):
        import polars as pl

        return pl.scan_iceberg(self.iceberg._load(namespace, table))


class Daft:
    """daft, over a catalog of PyIceberg's."""

    def __init__(self, uri: str) -> None:
        from daft.catalog import Catalog

        self.iceberg = PyIceberg(uri)
        self.catalog = Catalog.from_iceberg(self.iceberg.catalog)
        self.snapshots = self.iceberg.snapshots

    def namespaces(self, parent):
        pattern = ".".join(parent) or None
        return [list(one) for one in self.catalog.list_namespaces(pattern)]

    def tables(self, namespace):
        return [str(one[-1]) for one in self.catalog.list_tables(".".join(namespace))]

    def columns(self, namespace, table):
        return [[one.name, str(one.dtype)] for one in self._table(namespace, table).schema()]

    def scan(self, namespace, table):
        return len(self._table(namespace, table).read().to_pydict())

    def append(self, namespace, table):
        self._table(namespace, table).append(self._rows(namespace, table))

    def overwrite(self, namespace, table):
        self._table(namespace, table).overwrite(self._rows(namespace, table))

    def create_over(self, namespace, table):
        self.catalog.create_table(self._name(namespace, table), self._rows(namespace, table))

    def drop(self, namespace, table):
        self.catalog.drop_table(self._name(namespace, table))

    def _name(self, namespace, table):
        from daft.catalog import Identifier

        return Identifier(*namespace, table)

    def _table(self, namespace, table):
        return self.catalog.get_table(self._name(namespace, table))

    def _rows(self, namespace, table):
        import daft

        return daft.from_arrow(self.iceberg._rows(namespace, table))


class DuckDb:
    """DuckDB with its extension for Iceberg."""

    def __init__(self, uri: str) -> None:
        import duckdb

        self.db = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        for name in ("httpfs", "avro", "iceberg"):
            package = __import__(f"duckdb_extension_{name}")
            home = Path(package.__file__).parent
            self.db.execute(f"LOAD '{next(home.rglob('*.duckdb_extension'))}'")
        options = (
            f"TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none',"
            " SUPPORT_NESTED_NAMESPACES true"
        )
        self.db.execute(f"ATTACH 'lake' AS lake ({options})")
        self.db.execute(f"ATTACH 'lake' AS purging ({options}, PURGE_REQUESTED true)")

    def namespaces(self, parent):
        sql = "SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'lake'"
        return [[one] for (one,) in self.db.execute(sql).fetchall()]

    def tables(self, namespace):
        sql = "SELECT name FROM (SHOW ALL TABLES) WHERE database = 'lake' AND schema = ?"
        return [one for (one,) in self.db.execute(sql, [".".join(namespace)]).fetchall()]

    def scan(self, namespace, table):
        return len(self.db.execute(f"SELECT * FROM {_sql(namespace, table)}").fetchall())

    def insert(self, namespace, table):
        self.db.execute(f"INSERT INTO {_sql(namespace, table)} (id) VALUES (7)")

    def update_rows(self, namespace, table):
        self.db.execute(f"UPDATE {_sql(namespace, table)} SET id = 7")

    def delete_rows(self, namespace, table):
        self.db.execute(f"DELETE FROM {_sql(namespace, table)}")

    def create_over(self, namespace, table):
        self.db.execute(f"CREATE TABLE {_sql(namespace, table)} (id INTEGER)")

    def create_plain(self, namespace, table):
        self.db.execute(f"CREATE TABLE {_sql(namespace, table + '_plain')} (id INTEGER)")

    def create_as(self, namespace, table):
        self.db.execute(f"CREATE TABLE {_sql(namespace, table + '_plain')} AS SELECT 7 AS id")

    def add_column(self, namespace, table):
        self.db.execute(f"ALTER TABLE {_sql(namespace, table)} ADD COLUMN extra VARCHAR")

    def drop(self, namespace, table):
        self.db.execute(f"DROP TABLE {_sql(namespace, table)}")

    def purge(self, namespace, table):
        self.db.execute(f"DROP TABLE {_sql(namespace, table, 'purging')}")


class Spark:
    """Spark with Iceberg's catalog."""

    def __init__(self, uri: str, jar: str) -> None:
        from pyspark.sql import SparkSession

        conf = {
            "spark.jars": jar,
            "spark.ui.enabled": "false",
            "spark.log.level": "OFF",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.extensions": (
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
            ),
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "rest",
            "spark.sql.catalog.lake.uri": uri,
            # A table is looked at anew each time.
            "spark.sql.catalog.lake.cache-enabled": "false",
        }
        builder = SparkSession.builder.master("local[1]")
        for key, value in conf.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()

    def namespaces(self, parent):
        place = f" IN {_ticked('lake', *parent)}"
        return [_levels(one.namespace) for one in self._sql(f"SHOW NAMESPACES{place}")]

    def tables(self, namespace):
        return [one.tableName for one in self._sql(f"SHOW TABLES IN {_ticked('lake', *namespace)}")]

    def columns(self, namespace, table):
        found = self._sql(f"DESCRIBE TABLE {self._name(namespace, table)}")
        return [[one.col_name, one.data_type] for one in found]

    def docs(self, namespace, table):
        found = self._sql(f"DESCRIBE TABLE {self._name(namespace, table)}")
        return [[0, one.col_name, one.comment] for one in found]

    def snapshots(self, namespace, table):
        # Its table of snapshots needs a file of metadata, which the document forbids.
        found = self._sql(f"SHOW TBLPROPERTIES {self._name(namespace, table)}")
        return [int(one.value) for one in found if one.key == "current-snapshot-id"]

    def scan(self, namespace, table):
        return len(self._sql(f"SELECT * FROM {self._name(namespace, table)}"))

    def count(self, namespace, table):
        return self._sql(f"SELECT count(*) AS n FROM {self._name(namespace, table)}")[0].n

    def insert(self, namespace, table):
        self._sql(f"INSERT INTO {self._name(namespace, table)} (id) VALUES (7)")

    def overwrite(self, namespace, table):
        self._sql(f"INSERT OVERWRITE {self._name(namespace, table)} SELECT 7, 'x'")

    def delete_rows(self, namespace, table):
        self._sql(f"DELETE FROM {self._name(namespace, table)} WHERE id > 0")

    def update_rows(self, namespace, table):
        self._sql(f"UPDATE {self._name(namespace, table)} SET id = 7")

    def truncate(self, namespace, table):
        self._sql(f"TRUNCATE TABLE {self._name(namespace, table)}")

    def merge(self, namespace, table):
        name = self._name(namespace, table)
        self._sql(
            f"MERGE INTO {name} t USING (SELECT 7 AS id) s ON t.id = s.id"
            " WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
        )

    def create_over(self, namespace, table):
        self._sql(f"CREATE TABLE {self._name(namespace, table)} (id INT) USING iceberg")

    def create_plain(self, namespace, table):
        self._sql(f"CREATE TABLE {self._name(namespace, table + '_plain')} (id INT) USING iceberg")

    def create_as(self, namespace, table):
        name = self._name(namespace, table + "_plain")
        self._sql(f"CREATE TABLE {name} USING iceberg AS SELECT 7 AS id")

    def replace(self, namespace, table):
        name = self._name(namespace, table)
        self._sql(f"CREATE OR REPLACE TABLE {name} USING iceberg AS SELECT 7 AS id")

    def expire(self, namespace, table):
        self._call("expire_snapshots", namespace, table, "older_than => current_timestamp()")

    def remove_orphans(self, namespace, table):
        self._call("remove_orphan_files", namespace, table)

    def rewrite(self, namespace, table):
        self._call("rewrite_data_files", namespace, table)

    def rewrite_manifests(self, namespace, table):
        self._call("rewrite_manifests", namespace, table)

    def roll_back(self, namespace, table):
        self._call("rollback_to_snapshot", namespace, table, "snapshot_id => 1")

    def add_column(self, namespace, table):
        self._sql(f"ALTER TABLE {self._name(namespace, table)} ADD COLUMN extra STRING")

    def drop_column(self, namespace, table):
        self._sql(f"ALTER TABLE {self._name(namespace, table)} DROP COLUMN id")

    def make_branch(self, namespace, table):
        self._sql(f"ALTER TABLE {self._name(namespace, table)} CREATE BRANCH b")

    def unguard(self, namespace, table):
        name = self._name(namespace, table)
        self._sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('gc.enabled', 'write.data.path')")

    def purge(self, namespace, table):
        self._sql(f"DROP TABLE {self._name(namespace, table)} PURGE")

    def drop(self, namespace, table):
        self._sql(f"DROP TABLE {self._name(namespace, table)}")

    def _call(self, procedure, namespace, table, more=""):
        name = _ticked(*namespace, table)
        arguments = f"table => '{name}'" + (f", {more}" if more else "")
        self._sql(f"CALL lake.system.{procedure}({arguments})")

    def _name(self, namespace, table):
        return _ticked("lake", *namespace, table)

    def _sql(self, text):
        return self.spark.sql(text).collect()


def _sql(namespace, table, catalog="lake"):
    return f'{catalog}."{".".join(namespace)}"."{table}"'


def _ticked(*names):
    return ".".join(f"`{name}`" for name in names)


def _levels(text):
    """Read a namespace as Spark shows it, without its quotes."""
    return [part.strip("`") for part in text.split(".")]


CLIENTS = {
    "pyiceberg": PyIceberg,
    "polars": Polars,
    "daft": Daft,
    "duckdb": DuckDb,
    "spark": Spark,
}


def main() -> None:
    driver = None
    for line in sys.stdin:
        request = json.loads(line)
        verb = request.pop("do")
        try:
            if verb == "start":
                driver = CLIENTS[request.pop("client")](**request)
                result = None
            else:
                result = getattr(driver, verb)(**request)
            answer = {"result": result}
        except Exception as exc:  # noqa: BLE001  # whoever asked gets it
            answer = {"error": f"{type(exc).__name__}: {exc}"}
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
