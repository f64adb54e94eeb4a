"""Where Spark looks for the data source `mooring`: it imports every module named `pyspark_*`."""

from mooring.spark.source import MooringDataSource as DefaultSource

__all__ = ["DefaultSource"]
