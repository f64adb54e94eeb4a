"""Two tables in one transaction: rows move from one to the other, and nobody sees half of it.

Run it with ``python examples/two_tables_at_once.py``. It works in a temporary folder.
"""

from tempfile import TemporaryDirectory

import pyarrow as pa

import mooring
from mooring.changes import Batch, ChangeTable, create_change_table, write_changes
from mooring.metastore import Locator, Table

SCHEMA = pa.schema([("id", pa.int64()), ("item", pa.string())])


def main() -> None:
    with TemporaryDirectory() as folder:
        # Transactions take a metastore: the same kind of place, with metastore+ before it.
        shop = mooring.connect(f"metastore+{folder}")
        shop.create_namespace("sales")
        orders = create_change_table(shop, "sales$orders", SCHEMA, keys=["id"])
        returns = create_change_table(shop, "sales$returns", SCHEMA, keys=["id"])
        orders.upsert([{"id": 1, "item": "pen"}, {"id": 2, "item": "cup"}])

        # An order comes back: out of one table and into the other, by one commit. The name of the
        # run makes it count once, however often it is repeated.
        back = [
            Batch("sales$orders", [{"id": 2}], "delete"),
            Batch("sales$returns", [{"id": 2, "item": "cup"}], "upsert"),
        ]
        print("new:", [landed.is_new for landed in write_changes(shop, back, run="return 2")])
        print("again:", [landed.is_new for landed in write_changes(shop, back, run="return 2")])
        for name in ("sales$orders", "sales$returns"):
            print(name, ChangeTable(shop, name).to_arrow().to_pylist())

        # Objects of the catalog change together, too.
        with shop.transaction(message="two tables or none") as txn:
            txn.create(Locator.of("sales", "audit"), Table(properties={"owner": "ada"}))
            txn.create(Locator.of("sales", "archive"), Table())
        newest = next(iter(shop.metastore.transactions()))[1]
        print("the last transaction:", newest.message)
        print("positions:", orders.position, returns.position)


if __name__ == "__main__":
    main()
