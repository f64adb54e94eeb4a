"""The step of the pipeline that is written in Python."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

RATES = {"NO": 0.25, "PE": 0.18, "IT": 0.22}


def with_tax(orders_of_customers: DataFrame, rebate: float) -> DataFrame:
    """Add the tax of the customer's country, less a rebate."""

    @sql.udf("double", useArrow=False)
    def tax(amount, country):  # noqa: ANN001, ANN202  # Spark takes types for those of pandas
        return round(amount * (1 - rebate) * RATES[country], 2)

    return orders_of_customers.withColumn("tax", tax("amount", "country"))
