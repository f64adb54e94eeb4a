"""Read and write tables with Spark: data frames, SQL over all tables, and an undo afterwards.

Run it with ``python examples/spark_tables.py``; it takes ``pip install 'mooring[spark]'`` and Java
17 or newer. It works in a temporary folder.
"""

from tempfile import TemporaryDirectory

import mooring
from mooring.spark import create_views, read_table, write_table
from mooring.spark.session import SparkSettings, open_session

ORDERS = [{"id": n, "customer": f"c{n % 3}", "total": float(n)} for n in range(300)]


def main() -> None:
    spark = open_session(SparkSettings("local[2]"), quiet=True)
    with TemporaryDirectory() as folder:
        lake = mooring.connect(folder)
        lake.create_table("orders", ORDERS)

        # Filters and columns are pushed down; executors read what is left.
        large = read_table(spark, lake, "orders").where("total > 250")
        print("large ones:", large.count())
        # Executors write, and one commit makes it a table.
        write_table(large, lake, "large_orders")
        print("tables:", lake.list_tables(), lake.table("large_orders").count(), "rows")

        create_views(spark, lake)
        by_customer = spark.sql(
            "SELECT customer, count(*) AS orders FROM orders GROUP BY customer ORDER BY customer"
        )
        print("by customer:", [tuple(row) for row in by_customer.collect()])

        # What Spark overwrote is a version like any other.
        write_table(large.limit(1), lake, "orders", mode="overwrite")
        lake.table("orders").restore(1)
        print("restored:", read_table(spark, lake, "orders").count())
    spark.stop()


if __name__ == "__main__":
    main()
