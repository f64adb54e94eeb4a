"""A first catalog: create a table, read it, change it, and go back to an earlier version.

Run it with ``python examples/first_catalog.py``. It works in a temporary folder.
"""

from tempfile import TemporaryDirectory

import pyarrow as pa

import mooring

CITIES = pa.table(
    {
        "name": ["Oslo", "Lima", "Quito"],
        "people": [717_000, 10_092_000, 2_012_000],
    }
)


def main() -> None:
    with TemporaryDirectory() as folder:
        # A path; an s3://, gs:// or az:// URI does as well. Opening writes nothing.
        lake = mooring.connect(folder)
        cities = lake.create_table("cities", CITIES)
        print("tables:", lake.list_tables())
        print("large ones:", cities.count("people > 1000000"))

        cities.tags.create("census")
        cities.insert([{"name": "Cairo", "people": 10_230_000}])
        cities.update({"people": "people + 1"}, where="name = 'Oslo'")
        cities.delete("name = 'Lima'")
        for entry in cities.log():
            print(f"version {entry.version}: {entry.operation}, {entry.rows} rows")

        then = cities.query(["name"], tag="census").read_all()
        print("at the census:", then["name"].to_pylist())
        cities.restore(1)
        print("restored:", cities.to_arrow(columns=["name"])["name"].to_pylist())


if __name__ == "__main__":
    main()
