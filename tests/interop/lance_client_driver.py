"""Does with clients of Lance's REST protocol what it is told, by one line of JSON after the other.

Runs in the clients' environments, and imports nothing of the project. `start` names the client.
"""

from __future__ import annotations

import json
import logging
import os
import sys

# What the clients print must not come between the answers.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
logging.disable(logging.CRITICAL)


class LanceDb:
    """lancedb's connection through a namespace."""

    def connect(self, uri, headers=None, pushdown=()):
        import lancedb

        properties = {f"header.{name}": value for name, value in (headers or {}).items()}
        self.db = lancedb.connect_namespace(
            "rest",
            {"uri": uri, **properties},
            namespace_client_pushdown_operations=list(pushdown),
        )

    def create_namespace(self, namespace):
        self.db.create_namespace(namespace)

    def drop_namespace(self, namespace):
        self.db.drop_namespace(namespace)

    def namespaces(self, parent):
        return list(self.db.list_namespaces(namespace_path=parent).namespaces)

    def tables(self, namespace):
        return list(self.db.list_tables(namespace_path=namespace).tables)

    def table_exists(self, namespace, table):
        return self.db.table_exists([*namespace, table])

    def create(self, namespace, table, rows, mode="create"):
        return self.db.create_table(table, rows, mode=mode, namespace_path=namespace).count_rows()

    def rename(self, namespace, table, to):
        self.db.rename_table(table, to, cur_namespace_path=namespace, new_namespace_path=namespace)

    def drop(self, namespace, table):
        self.db.drop_table(table, namespace_path=namespace)

    def add(self, namespace, table, rows):
        return self._open(namespace, table).add(rows).version

    def count(self, namespace, table, where=None, version=None):
        opened = self._open(namespace, table)
        if version is not None:
            opened.checkout(version)
        return opened.count_rows(where)

    def everything(self, namespace, table):
        return self._open(namespace, table).to_arrow().to_pylist()

    def where(self, namespace, table, condition, columns):
        found = self._open(namespace, table).search().where(condition).select(columns)
        return found.to_arrow().to_pylist()

    def nearest(self, namespace, table, vector, k):
        found = self._open(namespace, table).search(vector).limit(k).to_arrow().to_pylist()
        return [row["id"] for row in found]

    def words(self, namespace, table, text):
        found = self._open(namespace, table).search(text, query_type="fts").limit(100)
        return sorted(row["id"] for row in found.to_arrow().to_pylist())

    def merge(self, namespace, table, rows):
        merge = self._open(namespace, table).merge_insert("id")
        done = merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)
        return [done.num_updated_rows, done.num_inserted_rows]

    def update(self, namespace, table, where, values):
        return self._open(namespace, table).update(where=where, values=values).rows_updated

    def delete(self, namespace, table, where):
        return self._open(namespace, table).delete(where).num_deleted_rows

    def index(self, namespace, table, column):
        self._open(namespace, table).create_scalar_index(column)

    def index_words(self, namespace, table, column):
        self._open(namespace, table).create_fts_index(column)

    def indexes(self, namespace, table):
        return sorted(one.columns[0] for one in self._open(namespace, table).list_indices())

    def add_column(self, namespace, table, name, expression):
        self._open(namespace, table).add_columns({name: expression})

    def tag(self, namespace, table, name, version):
        opened = self._open(namespace, table)
        opened.tags.create(name, version)
        return opened.tags.get_version(name)

    def restore(self, namespace, table, version):
        self._open(namespace, table).restore(version)

    def optimize(self, namespace, table):
        self._open(namespace, table).optimize()

    def versions(self, namespace, table):
        return [one["version"] for one in self._open(namespace, table).list_versions()]

    def _open(self, namespace, table):
        return self.db.open_table(table, namespace_path=namespace)


class Spark:
    """Spark with lance-spark's catalog."""

    def __init__(self, jars, first):
        from pyspark.sql import SparkSession

        opened = "--add-opens=java.base/java.nio=ALL-UNNAMED"
        settings = {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.extraJavaOptions": opened,
            "spark.sql.extensions": "org.lance.spark.extensions.LanceSparkSessionExtensions",
        }
        if first:  # its Arrow is newer than Spark's, and both have the same names
            settings["spark.driver.extraClassPath"] = ":".join(jars)
        else:
            settings["spark.jars"] = ",".join(jars)
        building = SparkSession.builder.master("local[1]").appName("lance")
        for key, value in settings.items():
            building = building.config(key, value)
        self.session = building.getOrCreate()
        self.session.sparkContext.setLogLevel("OFF")

    def attach(self, name, uri, headers=None):
        more = {f"header.{key}": value for key, value in (headers or {}).items()}
        self.session.conf.set(
            f"spark.sql.catalog.{name}", "org.lance.spark.LanceNamespaceSparkCatalog"
        )
        for key, value in {"impl": "rest", "uri": uri, **more}.items():
            self.session.conf.set(f"spark.sql.catalog.{name}.{key}", value)

    def sql(self, statement):
        return [list(row) for row in self.session.sql(statement).collect()]

    def version(self):
        return self.session.version


class PyIceberg:
    """PyIceberg's catalog of REST servers."""

    def __init__(self, uri, credential=None):
        from pyiceberg.catalog.rest import RestCatalog

        more = {"credential": credential} if credential else {}
        self.catalog = RestCatalog("lake", uri=uri, **more)

    def namespaces(self, parent):
        return [list(one) for one in self.catalog.list_namespaces(tuple(parent))]

    def create_namespace(self, namespace):
        self.catalog.create_namespace(tuple(namespace))

    def tables(self, namespace):
        return sorted(one[-1] for one in self.catalog.list_tables(tuple(namespace)))

    def columns(self, namespace, table):
        schema = self.catalog.load_table((*namespace, table)).schema()
        return [[one.name, str(one.field_type)] for one in schema.fields]

    def snapshot(self, namespace, table):
        return self.catalog.load_table((*namespace, table)).metadata.current_snapshot_id

    def create(self, namespace, table):
        from pyiceberg.schema import Schema
        from pyiceberg.types import LongType, NestedField, StringType

        schema = Schema(
            NestedField(1, "id", LongType(), required=False),
            NestedField(2, "name", StringType(), required=False),
        )
        properties = {"table_type": "lance"}
        self.catalog.create_table((*namespace, table), schema, properties=properties)

    def drop(self, namespace, table):
        self.catalog.drop_table((*namespace, table))


class Impls:
    """lance-namespace-impls' catalog of Iceberg REST servers, and pylance for rows."""

    def __init__(self, uri, warehouse):
        from lance_namespace_impls.iceberg import IcebergNamespace

        self.namespace, self.warehouse = IcebergNamespace(endpoint=uri), warehouse

    def namespaces(self):
        return self._ask("list_namespaces", "ListNamespaces").namespaces

    def create_namespace(self, namespace):
        self._ask("create_namespace", "CreateNamespace", *namespace)

    def drop_namespace(self, namespace):
        self._ask("drop_namespace", "DropNamespace", *namespace)

    def tables(self, namespace):
        return sorted(self._ask("list_tables", "ListTables", *namespace).tables)

    def ids(self, namespace, table):
        import lance

        found = self._ask("describe_table", "DescribeTable", *namespace, table)
        return sorted(lance.dataset(found.location).to_table()["id"].to_pylist())

    def declare(self, namespace, table, location):
        self._ask("declare_table", "DeclareTable", *namespace, table, location=location)

    def deregister(self, namespace, table):
        self._ask("deregister_table", "DeregisterTable", *namespace, table)

    def _ask(self, verb, request, *names, **more):
        import lance_namespace

        kind = getattr(lance_namespace, f"{request}Request")
        return getattr(self.namespace, verb)(kind(id=[self.warehouse, *names], **more))


CLIENTS = {"impls": Impls, "lancedb": LanceDb, "spark": Spark, "pyiceberg": PyIceberg}


def main() -> None:
    driver = None
    for line in sys.stdin:
        request = json.loads(line)
        verb = request.pop("do")
        try:
            if verb == "start":
                driver = CLIENTS[request.pop("client")](**request)
                result = None
            elif verb == "run":
                exec(request["code"], {})  # noqa: S102  # a snippet of the project's own guide
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
