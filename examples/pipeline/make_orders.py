"""Make the files that the pipeline of this directory reads: orders of two days, and customers.

A few orders are wrong on purpose: one has no customer, and some have amounts below zero.
"""

import csv
from datetime import date
from pathlib import Path

COUNTRIES = ("NO", "PE", "IT")
CUSTOMERS = 30
ORDERS = 200


def main(directory: Path = Path()) -> None:
    data = directory / "data"
    (data / "orders").mkdir(parents=True, exist_ok=True)
    with (data / "customers.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["customer_id", "country"])
        writer.writerows((number, COUNTRIES[number % 3]) for number in range(CUSTOMERS))
    for day in (date(2024, 1, 31), date(2024, 2, 1)):
        with (data / "orders" / f"{day}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["order_id", "day", "customer_id", "amount"])
            writer.writerows(order(day, number) for number in range(ORDERS))


def order(day: date, number: int) -> list[object]:
    customer = "" if number == 13 else number % CUSTOMERS
    amount = -5.0 if number % 50 == 49 else round(1.25 * (number % 40) + 1, 2)
    return [f"{day:%m%d}-{number:03}", day, customer, amount]


if __name__ == "__main__":
    main()
