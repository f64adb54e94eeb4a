"""Servers that are killed in the middle of their clients' changes, again and again.

Whatever was acknowledged is there after each restart, whatever was not is there whole or not at
all, and what a catalog tells about itself agrees.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import mooring
from tests.server.processes import COMMAND, LIMIT_S, Running, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.torture

_CLIENTS = 32
_KILLS = 20
_ROWS = "application/vnd.apache.arrow.stream"
# Told by a server that goes on: nothing was done.
_REFUSED = {14, 17, 21}
_ABSENT, _DROPPED = "absent", "dropped"
# What a table is: absent, dropped with some rows, or live with some.
State = tuple[str, int]
NOTHING: State = (_ABSENT, 0)


class InDoubt(Exception):  # noqa: N818  # no failure: nobody knows yet
    """The server went away before it answered."""


@dataclass
class Thing:
    """A namespace or a table that one client owns, and what it may be by what was acknowledged."""

    key: str
    is_table: bool
    may_be: set[State] = field(default_factory=lambda: {NOTHING})
    wanted: State = NOTHING


class Connection:
    """A client's connection, which is opened again when it broke."""

    def __init__(self, base: str) -> None:
        self._address = urlsplit(base).netloc
        self._http = http.client.HTTPConnection(self._address, timeout=LIMIT_S)

    def close(self) -> None:
        self._http.close()

    def get(self, path: str) -> Any:
        return self._ask("GET", path, None, "")

    def post(self, path: str, body: bytes = b"{}", kind: str = "application/json") -> Any:
        """Ask for something.

        Raises:
            InDoubt: nobody knows what came of it.
        """
        return self._ask("POST", path, body, kind)

    def _ask(self, method: str, path: str, body: bytes | None, kind: str) -> Any:
        try:
            self._http.request(method, path, body, {"content-type": kind})
            answer = self._http.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as exc:
            self._http.close()
            raise InDoubt(path) from exc
        found = json.loads(text) if text else None
        if answer.status >= 400:
            raise RefusedError(answer.status, found)
        return found


class RefusedError(Exception):
    """What the server answered instead."""

    def __init__(self, status: int, body: dict[str, object]) -> None:
        super().__init__(status, body)
        self.status = status
        self.code = body["code"]


@dataclass
class Step:
    """A change of one thing: what is asked for, and what it is then."""

    path: str
    after: Callable[[State], State]
    body: bytes = b"{}"
    kind: str = "application/json"


def rows(*values: int) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"n": pa.array(values, pa.int64())})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def table_steps(key: str) -> Iterator[Step]:
    """Create, fill, drop and undrop a table."""
    at, lifecycle = f"/lance/v1/table/{key}", f"/mooring/v1/table/{key}"
    yield Step(f"{at}/create?mode=create", lambda _: ("live", 1), rows(0), _ROWS)
    while True:
        yield Step(f"{at}/insert?mode=append", lambda s: ("live", s[1] + 2), rows(1, 2), _ROWS)
        yield Step(f"{at}/drop", lambda s: (_DROPPED, s[1]))
        yield Step(f"{lifecycle}/undrop", lambda s: ("live", s[1]))


def namespace_steps(key: str) -> Iterator[Step]:
    """Create a namespace; drop every third."""
    at = f"/lance/v1/namespace/{key}"
    yield Step(f"{at}/create", lambda _: ("live", 0))
    if key.endswith(("0", "3", "6", "9")):
        yield Step(f"{at}/drop", lambda _: NOTHING)


class Owner(threading.Thread):
    """A client that changes what is its own, one step after the other."""

    def __init__(self, number: int, base: str, world: World) -> None:
        super().__init__()
        self._number = number
        self._base = base
        self._world = world
        self.failure: BaseException | None = None

    def run(self) -> None:
        connection = Connection(self._base)
        try:
            while not self._world.is_over.is_set():
                self._change_one(connection)
        except InDoubt:
            pass
        except BaseException as exc:  # noqa: BLE001  # told by whoever joins
            self.failure = exc
        finally:
            connection.close()

    def _change_one(self, connection: Connection) -> None:
        is_table = self._number % 4 == 0
        key = self._world.new_key(self._number)
        thing = Thing(f"base${key}" if is_table else key, is_table)
        self._world.things.append(thing)
        steps = table_steps(thing.key) if is_table else namespace_steps(thing.key)
        for _, step in zip(range(7), steps, strict=False):
            self._take(connection, thing, step)

    def _take(self, connection: Connection, thing: Thing, step: Step) -> None:
        (before,) = thing.may_be
        after = step.after(before)
        while True:
            thing.may_be, thing.wanted = {before, after}, after
            try:
                connection.post(step.path, step.body, step.kind)
            except RefusedError as exc:
                if exc.code not in _REFUSED:
                    raise
                continue
            except InDoubt:
                if not self._world.goes_on:
                    raise
                self._world.look(connection, thing)
                if thing.may_be != {after}:
                    continue
                return
            thing.may_be = {after}
            self._world.count()
            return


class World:
    """What all clients did so far, and when it is time to kill."""

    def __init__(self, *, goes_on: bool = False) -> None:
        self.things: list[Thing] = []
        self.is_over = threading.Event()
        self.is_time = threading.Event()
        # Whether clients go on when one of several processes dies.
        self.goes_on = goes_on
        self.acknowledged = 0
        self.in_doubt = Counter[str]()
        self._target = 0
        self._keys = 0
        self._lock = threading.Lock()

    def new_key(self, number: int) -> str:
        with self._lock:
            self._keys += 1
            return f"c{number:02}_{self._keys:06}"

    def count(self) -> None:
        with self._lock:
            self.acknowledged += 1
            if self.acknowledged >= self._target:
                self.is_time.set()

    def aim(self, more: int) -> None:
        """Wait for so many more acknowledged changes."""
        with self._lock:
            self._target = self.acknowledged + more
            self.is_time.clear()

    def tell(self) -> None:
        doubts = dict(self.in_doubt)
        sys.stdout.write(f"{self.acknowledged} changes acknowledged, in doubt: {doubts}\n")

    def look(self, connection: Connection, thing: Thing) -> None:
        """Find out what a thing is, and hold it to it from now on."""
        found = self._state(connection, thing)
        assert found in thing.may_be, (thing, found)
        if len(thing.may_be) > 1:
            self.in_doubt["done" if found == thing.wanted else "not done"] += 1
        thing.may_be = {found}

    def _state(self, connection: Connection, thing: Thing) -> State:
        while True:
            try:
                return _ask(connection, thing)
            except InDoubt:
                if not self.goes_on:
                    raise

    def check(self, base: str, things: list[Thing]) -> None:
        connection = Connection(base)
        try:
            for thing in things:
                self.look(connection, thing)
        finally:
            connection.close()


def _ask(connection: Connection, thing: Thing) -> State:
    if not thing.is_table:
        try:
            connection.post(f"/lance/v1/namespace/{thing.key}/exists")
        except RefusedError as exc:
            assert exc.status == 404, exc  # noqa: PT017  # the rest of it is the answer
            return NOTHING
        return ("live", 0)
    status = connection.get(f"/mooring/v1/table/{thing.key}/status")["status"]
    if status == "not_found":
        return NOTHING
    if status == "soft_deleted":
        held = [count for state, count in thing.may_be if state == _DROPPED]
        return (_DROPPED, held[0] if held else -1)
    count = connection.post(f"/lance/v1/table/{thing.key}/count_rows")
    return ("live", int(str(count)))


def drive(running: Running, world: World) -> list[Owner]:
    owners = [Owner(number, running.base, world) for number in range(_CLIENTS)]
    for owner in owners:
        owner.start()
    return owners


def settle(owners: list[Owner]) -> None:
    for owner in owners:
        owner.join()
    for owner in owners:
        if owner.failure is not None:
            raise owner.failure


def check_whole(uri: str, world: World) -> None:
    """Compare everything that was acknowledged with the catalog, read by the library."""
    catalog = mooring.connect(uri)
    live = {thing.key for thing in world.things for state in thing.may_be if state[0] == "live"}
    tables = {thing.key for thing in world.things if thing.is_table} & live
    found = {str(one) for one in catalog.backend.list_all_tables()}
    assert found == tables
    assert set(catalog.list_namespaces()) == (live - tables) | {"base"}
    dropped = {str(one.id) for one in catalog.backend.list_purgable_tables()}
    expected = {thing.key for thing in world.things if min(thing.may_be)[0] == _DROPPED}
    assert dropped == expected
    for thing in world.things:
        (state,) = thing.may_be
        if state[0] == _DROPPED:
            catalog.undrop_table(thing.key)
        if thing.is_table and state[0] != _ABSENT:
            assert catalog.table(thing.key).to_arrow().num_rows == state[1], thing
    done = subprocess.run(
        [COMMAND, "audit", "-c", uri], capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(params=["", "metastore+"], ids=["manifest", "metastore"])
def uri(request, tmp_path):
    where = f"{request.param}{tmp_path / 'lake'}"
    mooring.connect(where).create_namespace("base")
    return where


@pytest.fixture
def chance():
    seed = random.randrange(2**32)
    sys.stdout.write(f"seed {seed}\n")
    return random.Random(seed)


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(uri, chance):
    world = World()
    checked = 0
    for _ in range(_KILLS):
        with serving(uri) as running:
            world.check(running.base, world.things[checked:])
            checked = len(world.things)
            world.aim(chance.randrange(20, 200))
            owners = drive(running, world)
            assert world.is_time.wait(LIMIT_S)
            running.process.kill()
            settle(owners)
    with serving(uri) as running:
        world.check(running.base, world.things)
    world.tell()
    assert world.in_doubt.total() > 0
    check_whole(uri, world)


def test_nothing_acknowledged_is_lost_when_one_of_two_processes_is_killed(uri, chance):
    world = World(goes_on=True)
    with serving(uri, "--workers", 2) as running:
        owners = drive(running, world)
        for _ in range(5):
            world.aim(chance.randrange(50, 200))
            assert world.is_time.wait(LIMIT_S)
            os.kill(chance.choice(sorted(running.children)), signal.SIGKILL)
            while len(running.children) < 2:
                pass
        world.is_over.set()
        settle(owners)
        world.check(running.base, world.things)
    world.tell()
    check_whole(uri, world)
