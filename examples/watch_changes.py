"""Watch a catalog: whoever changes it and however, the change is told.

Run it with ``python examples/watch_changes.py``. It works in a temporary folder.
"""

from tempfile import TemporaryDirectory

import mooring
from mooring.feed import Watcher


def tell(watcher: Watcher) -> None:
    for event in watcher.poll():
        print(f"{event.kind.value:<18} {event.id} by {event.by or 'somebody'}")


def main() -> None:
    with TemporaryDirectory() as folder:
        lake = mooring.connect(folder, author="ada")
        # The first look is what later ones are compared with. A program polls now and then; a
        # look in which nothing changed is one listing.
        watcher = Watcher(lake.backend)
        watcher.poll()
        begin = watcher.cursor

        lake.create_namespace("geo")
        lake.create_table("geo$cities", [{"name": "Oslo"}])
        tell(watcher)

        # Another process, another machine, a server: it does not matter who.
        mooring.connect(folder, author="bob").drop_table("geo$cities")
        tell(watcher)

        lake.undrop_table("geo$cities")
        tell(watcher)
        lake.rename_table("geo$cities", "geo$towns")
        tell(watcher)
        print("since the beginning:", len(watcher.since(begin)), "events")


if __name__ == "__main__":
    main()
