"""Search vectors: the rows nearest to one, among those that a filter leaves, by an index.

Run it with ``python examples/vector_search.py``. It works in a temporary folder.
"""

from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

import mooring

ROWS, WIDTH = 2_000, 16


def make_pictures() -> pa.Table:
    """Make rows with a vector each, as a model would give for pictures."""
    numbers = np.random.default_rng(7).normal(size=(ROWS, WIDTH)).astype(np.float32)
    return pa.table(
        {
            "id": range(ROWS),
            "kind": ["cat" if n % 2 else "dog" for n in range(ROWS)],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), WIDTH),
        }
    )


def main() -> None:
    with TemporaryDirectory() as folder:
        lake = mooring.connect(folder)
        rows = make_pictures()
        pictures = lake.create_table("pictures", rows)
        asked = rows["vector"][41].as_py()

        exact = pictures.query(["id", "kind"], vector=asked, k=3).read_all()
        print("nearest:", exact["id"].to_pylist())
        cats = pictures.query(["id", "kind"], "kind = 'cat'", vector=asked, k=3).read_all()
        print("nearest cats:", cats["id"].to_pylist(), set(cats["kind"].to_pylist()))

        pictures.indexes.create("vector", "IVF_FLAT")
        pictures.indexes.create("kind", "BITMAP")
        print("indexes:", [index.name for index in pictures.indexes.list()])
        found = pictures.query(["id"], vector=asked, k=1).read_all()
        print("by the index:", found["id"].to_pylist())


if __name__ == "__main__":
    main()
