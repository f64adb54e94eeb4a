"""Undo a drop: the trash, a whole namespace that comes back, protection, and what is final.

Run it with ``python examples/undo_a_drop.py``. It works in a temporary folder.
"""

from tempfile import TemporaryDirectory

import mooring
from mooring.errors import ProtectedError, TableNotFoundError

ROWS = [{"name": "Oslo"}, {"name": "Lima"}]


def main() -> None:
    with TemporaryDirectory() as folder:
        lake = mooring.connect(folder)
        lake.create_namespace("geo")
        lake.create_table("geo$cities", ROWS)

        lake.drop_table("geo$cities", ttl="3d")  # hidden; the bytes stay where they are
        try:
            lake.table("geo$cities")
        except TableNotFoundError as gone:
            print("refused:", gone)
        print("in the trash:", [str(table.id) for table in lake.list_purgable_tables()])
        lake.undrop_table("geo$cities")
        print("back again:", lake.table("geo$cities").count(), "rows")

        lake.drop_namespace("geo", cascade=True)  # one commit, whatever is in it
        print("objects that came back:", lake.undrop_namespace("geo"))

        lake.protect_table("geo$cities")
        try:
            lake.drop_table("geo$cities")
        except ProtectedError as refusal:
            print("refused:", refusal)

        lake.protect_table("geo$cities", protected=False)
        lake.drop_table("geo$cities")
        lake.purge_table("geo$cities")  # only this deletes bytes, and only after a drop
        print("purged:", lake.table_status("geo$cities"))


if __name__ == "__main__":
    main()
