"""Does with the deltacat library what it is told, by one line of JSON after the other.

Runs in the environment of the library, on Python 3.10 as well, and imports nothing of the project.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import sys

# What the library prints must not come between the answers.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
logging.disable(logging.CRITICAL)

import deltacat.storage.main.impl as storage  # noqa: E402  # after its logging is off
import deltacat.storage.model.transaction as transactions_module  # noqa: E402
import pyarrow as pa  # noqa: E402
from deltacat.catalog.model.properties import CatalogProperties  # noqa: E402
from deltacat.storage.model.metafile import Metafile  # noqa: E402
from deltacat.storage.model.partition import (  # noqa: E402
    PartitionKey,
    PartitionKeyList,
    PartitionScheme,
)
from deltacat.storage.model.schema import Schema  # noqa: E402
from deltacat.storage.model.sort_key import SortKey, SortKeyList, SortScheme  # noqa: E402
from deltacat.storage.model.transform import (  # noqa: E402
    BucketingStrategy,
    BucketTransform,
    BucketTransformParameters,
    DayTransform,
)
from deltacat.storage.model.types import (  # noqa: E402
    DeltaType,
    LifecycleState,
    NullOrder,
    SortOrder,
    TransactionOperationType,
)
from deltacat.types.media import ContentType  # noqa: E402
from deltacat.types.tables import DatasetType  # noqa: E402

NO_PARTITION = None


class Driver:
    def start(self, root) -> None:
        self.catalog = CatalogProperties(root=root)

    @property
    def on(self) -> dict:
        return {"inner": self.catalog}

    def create_namespace(self, name, properties=None):
        return storage.create_namespace(name, properties=properties, **self.on)

    def rename_namespace(self, name, to):
        storage.update_namespace(name, new_namespace=to, **self.on)

    def set_properties(self, namespace, table, properties):
        storage.update_table(namespace, table, properties=properties, **self.on)

    def delete_namespace(self, name):
        storage.delete_namespace(name, **self.on)

    def create_plain_table(self, namespace, table, columns=None):
        fields = [(name, getattr(pa, kind)()) for name, kind in (columns or {}).items()]
        storage.create_table_version(
            namespace,
            table,
            schema=Schema.of(pa.schema(fields)) if fields else None,
            lifecycle_state=LifecycleState.ACTIVE,
            **self.on,
        )

    def create_rich_table(self, namespace, table):
        keys = [
            PartitionKey.of(
                ["id"],
                name="bucket",
                transform=BucketTransform.of(
                    BucketTransformParameters.of(4, BucketingStrategy.DEFAULT)
                ),
            ),
            PartitionKey.of(["at"], transform=DayTransform.of()),
        ]
        sort = SortKey.of(["name"], SortOrder.DESCENDING, NullOrder.AT_START)
        columns = [("id", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("us"))]
        storage.create_table_version(
            namespace,
            table,
            schema=Schema.of(pa.schema(columns)),
            partition_scheme=PartitionScheme.of(
                PartitionKeyList.of(keys), name="by id", scheme_id="scheme-1"
            ),
            sort_keys=SortScheme.of(SortKeyList.of([sort]), name="by name", scheme_id="sort-1"),
            table_description="what was ordered",
            table_properties={"owner": "ada", "tier": 2},
            table_version_description="the first",
            table_version_properties={"flag": True},
            supported_content_types=[ContentType.PARQUET],
            lifecycle_state=LifecycleState.ACTIVE,
            **self.on,
        )

    def rename_table(self, namespace, table, to):
        storage.update_table(namespace, table, new_table_name=to, **self.on)

    def delete_table(self, namespace, table):
        storage.delete_table(namespace, table, **self.on)

    def add_partition(self, namespace, table, version="1", values=NO_PARTITION):
        stream = storage.get_stream(namespace, table, version, **self.on)
        staged = storage.stage_partition(stream, values, **self.on)
        return storage.commit_partition(staged, **self.on).partition_id

    def stage_partition(self, namespace, table, version="1"):
        stream = storage.get_stream(namespace, table, version, **self.on)
        return storage.stage_partition(stream, **self.on).partition_id

    def append(self, namespace, table, rows, version="1", kind="append", properties=None):
        stream = storage.get_stream(namespace, table, version, **self.on)
        partition = storage.get_partition(stream.locator, None, **self.on)
        staged = storage.stage_delta(
            pa.table(rows), partition, DeltaType(kind), properties=properties, **self.on
        )
        return storage.commit_delta(staged, **self.on).stream_position

    def with_message(self, namespace, table, to, message):
        """Rename in a transaction of its own."""
        txn = transactions_module.Transaction.of(commit_message=message).start(
            self.catalog.root, self.catalog.filesystem
        )
        storage.update_table(namespace, table, new_table_name=to, transaction=txn, **self.on)
        txn.seal()
        return txn.id

    def begin_and_leave(self, name):
        """Begin a transaction that makes a namespace, and do not end it."""
        self.open = transactions_module.Transaction.of().start(
            self.catalog.root, self.catalog.filesystem
        )
        storage.create_namespace(name, transaction=self.open, **self.on)
        return self.open.id

    def finish(self):
        self.open.seal()

    def tables(self, namespace):
        return sorted(t.table_name for t in storage.list_tables(namespace, **self.on).all_items())

    def namespaces(self):
        return sorted(n.namespace for n in storage.list_namespaces(**self.on).all_items())

    def describe(self):
        """Tell everything that the library lists, from the namespaces down."""
        return {
            namespace.namespace: {
                "value": namespace,
                "tables": {
                    table.table_name: self._table(namespace.namespace, table)
                    for table in storage.list_tables(namespace.namespace, **self.on).all_items()
                },
            }
            for namespace in storage.list_namespaces(**self.on).all_items()
        }

    def _table(self, namespace, table):
        listed = storage.list_table_versions(namespace, table.table_name, **self.on).all_items()
        return {"value": table, "versions": {v.table_version: self._version(v) for v in listed}}

    def _version(self, version):
        names = (version.namespace, version.table_name, version.table_version)
        streams = storage.list_streams(*names, **self.on).all_items()
        return {"value": version, "streams": {s.stream_id: self._stream(s) for s in streams}}

    def _stream(self, stream):
        if stream.stream_format != "deltacat":
            return {"value": stream, "partitions": {}}  # it goes no further in other formats
        partitions = storage.list_stream_partitions(stream, **self.on).all_items()
        return {
            "value": stream,
            "partitions": {
                p.partition_id: {"value": p, "deltas": self._deltas(p)} for p in partitions
            },
        }

    def _deltas(self, partition):
        listed = storage.list_partition_deltas(partition, include_manifest=True, **self.on)
        return {str(delta.stream_position): delta for delta in listed.all_items()}

    def rows(self, namespace, table, version="1"):
        """Read the rows of a table through its stream, its partition and its deltas."""
        stream = storage.get_stream(namespace, table, version, **self.on)
        partition = storage.get_partition(stream.locator, None, **self.on)
        deltas = storage.list_partition_deltas(
            partition, include_manifest=True, **self.on
        ).all_items()
        found = []
        for delta in sorted(deltas, key=lambda one: one.stream_position):
            for url in (entry.url for entry in delta.manifest.entries):
                path = self.catalog.reconstruct_full_path(url)
                found += pa.parquet.read_table(path).to_pylist()
        return found

    def partition_by_values(self, namespace, table, values, scheme_id, version="1"):
        stream = storage.get_stream(namespace, table, version, **self.on)
        return storage.get_partition(stream.locator, values, scheme_id, **self.on)

    def transactions(self):
        """Read the log of every transaction, as the library's own history does."""
        folder = os.path.join(self.catalog.root, "txn")  # noqa: PTH118  # as the library joins
        transactions_module.transaction_log_dir_and_filesystem = lambda _: (
            folder,
            self.catalog.filesystem,
        )
        found = transactions_module.transactions(limit=1000, read_as=DatasetType.PYARROW)
        return found.to_pylist()

    def table_as_of(self, namespace, table, time_ns):
        txn = transactions_module.Transaction.of().start(
            self.catalog.root, self.catalog.filesystem, historic_timestamp=time_ns
        )
        return storage.get_table(namespace, table, transaction=txn, **self.on)

    def delete_partition(self, namespace, table, version="1"):
        stream = storage.get_stream(namespace, table, version, **self.on)
        storage.delete_partition(stream.locator, None, **self.on)

    def update_twice(self, namespace, table):
        """Change a table's description by the lowest level there is."""
        before = storage.get_table(namespace, table, **self.on)
        after = Metafile.update_for(before)
        after.description = "changed below"
        operation = transactions_module.TransactionOperation.of(
            TransactionOperationType.UPDATE, after, before
        )
        transactions_module.Transaction.of([operation]).commit(
            self.catalog.root, self.catalog.filesystem
        )


def plain(value):
    """Return what JSON can hold."""
    if isinstance(value, Schema):
        return {"arrow": [[one.name, str(one.type), one.nullable] for one in value.arrow]}
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)


def main() -> None:
    driver = Driver()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            result = getattr(driver, request.pop("do"))(**request)
            answer = {"result": plain(result)}
        except Exception as exc:  # noqa: BLE001  # whoever asked gets it
            answer = {"error": f"{type(exc).__name__}: {exc}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
