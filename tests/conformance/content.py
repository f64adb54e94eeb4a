"""What tests of table operations share: a table with some past, and requests about it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import lance_namespace as spec
import pyarrow as pa
import pytest
from lance_namespace_urllib3_client import models

from mooring.store.scripted import ScriptedStore
from mooring.tables.place import Place

if TYPE_CHECKING:
    from collections.abc import Callable

    from mooring.table import Table
    from mooring.tables.handle import TableHandle
    from tests.lakes import Lake

__all__ = ["ask", "fails_with", "fill", "speak", "together", "watch"]


def speak(lake: Lake, **more: str) -> spec.LanceNamespace:
    """Open the catalog as clients of the specification do."""
    return spec.connect(lake.kind.namespace, {**lake.properties, **more})


def ask(lake: Lake, operation: str, **arguments: object):
    """Send a request about table ``t`` by the name of its operation."""
    words = "".join(word.capitalize() for word in operation.split("_"))
    request = getattr(models, f"{words}Request")(**{"id": lake.path("t"), **arguments})
    return getattr(speak(lake), operation)(request)


def fails_with(code: int):
    """Expect the specification's error of a code."""
    return pytest.raises(Exception, check=lambda exc: getattr(exc, "code", None) == code)


def fill(lake: Lake, versions: int = 3, rows: int = 2) -> Table:
    """Create table ``t`` of so many versions, each of which appends some rows."""
    numbers = [range(at * rows, (at + 1) * rows) for at in range(versions)]
    catalog = lake.connect(author="alice")
    table = catalog.create_table(lake.id("t"), pa.table({"n": pa.array(numbers[0], pa.int64())}))
    for more in numbers[1:]:
        table.insert(pa.table({"n": pa.array(more, pa.int64())}))
    return table


def watch(handle: TableHandle, script: object) -> TableHandle:
    """Follow a script at every call that a table's references make to the store."""
    place = handle.place
    handle.place = Place(ScriptedStore(place.store, script), place.directory)
    return handle


def together(acts: list[Callable[[], object]]) -> list[object]:
    """Do several things at the same time and return what each returned or raised."""
    outcomes: list[object] = [None] * len(acts)
    start = threading.Barrier(len(acts))

    def run(at: int) -> None:
        start.wait()
        try:
            outcomes[at] = acts[at]()
        except Exception as exc:  # noqa: BLE001  # what came of it is what is asked for
            outcomes[at] = exc

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes
