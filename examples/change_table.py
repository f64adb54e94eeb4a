"""A change table, published: upserts and deletions come in, a Lance table with an index goes out.

Run it with ``python examples/change_table.py``. It works in a temporary folder.
"""

from tempfile import TemporaryDirectory

import pyarrow as pa

import mooring
from mooring.changes import create_change_table, publish

SCHEMA = pa.schema([("id", pa.int64()), ("item", pa.string()), ("price", pa.float64())])


def main() -> None:
    with TemporaryDirectory() as folder:
        shop = mooring.connect(f"metastore+{folder}")
        shop.create_namespace("sales")
        stock = create_change_table(shop, "sales$stock", SCHEMA, keys=["id"], buckets=2)

        stock.upsert([{"id": n, "item": f"item {n}", "price": 2.0} for n in range(100)])
        stock.upsert([{"id": 7, "price": 9.5}])  # the item stays
        stock.delete([{"id": 8}])
        print("rows now:", stock.count(), "and at position 1:", stock.to_arrow(position=1).num_rows)
        print("row 7:", stock.to_arrow(where="id = 7").to_pylist())

        first = publish(stock, "sales$shelf", indexes=["id:BTREE"])
        print(f"position {first.position} is version {first.version}: {first.rows_written} rows")

        stock.upsert([{"id": 7, "price": 10.0}])
        then = publish(stock)
        print(
            f"position {then.position} is version {then.version}: {then.rows_written} row written"
        )
        shelf = shop.table("sales$shelf")
        print("published:", shelf.to_arrow(filter="id = 7").to_pylist(), "of", shelf.count())


if __name__ == "__main__":
    main()
