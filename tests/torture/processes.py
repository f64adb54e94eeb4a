"""Real processes on a real catalog, with faults that a seed hands out; then a judgement.

The seed decides what every process does and what happens to it: that it is killed, how far its
clock is off, whether its disk is full or its store fails. When all that happens is the machine's.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

import libfaketime

import mooring
from mooring.errors import MooringError, TableNotFoundError
from mooring.identifiers import ROOT
from mooring.tables.opening import open_at
from mooring.upkeep.audit import audit
from mooring.upkeep.findings import Severity
from tests.races import catalog_model
from tests.races.catalog_model import NAMESPACE, TABLE, Catalog
from tests.races.compat_model import Lake
from tests.races.manifest_harness import object_id
from tests.races.metastore_tables_harness import Model
from tests.server.processes import serving
from tests.servers import run_moto, run_seaweedfs

from . import compat_subject, metastore_subject, plain_subject, rows_subject
from .hand import ROWS, open_backend, perform, rows_of
from .history import History, Search, TooManyError
from .places import DISK, MOTO, SEAWEEDFS, SERVED
from .subject import Ending, Verb, choose, parse
from .tally import PROCESSES, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[2]
_HOUR_S = 3600
_MOST_HOURS = 48
_QUOTA = 30_000
_LIMIT_S = 120.0
_LONGEST_S = 0.4
_WORDS = {
    "listing": {"protect", "unprotect"},
    "manifest": {"alias", "overwrite"},
    "compat": {"alias", "overwrite", "append"},
    "metastore": {"append", "twice", "trim", "read", "vacuum"},
}
_MAKING = ("ns n",)
START = {"listing": (), "metastore": ("make n", "make m"), "manifest": _MAKING, "compat": _MAKING}


def verbs_of(backend: str) -> tuple[Verb, ...]:
    """Return what processes do, which is what simulations do as far as Lance's files allow it."""
    subject = {
        "listing": plain_subject.PlainSubject,
        "compat": compat_subject.CompatSubject,
        "metastore": metastore_subject.TablesSubject,
    }.get(backend, rows_subject.ManifestSubject)
    left_out = _WORDS[model_of(backend)]
    return tuple(verb for verb in subject.verbs if verb.word not in left_out)


def model_of(backend: str) -> str:
    """Tell what is behind a server."""
    return "manifest" if backend == SERVED else backend


class Servers:
    """Object stores, each started when it is first needed."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._started: dict[str, object] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def place(self, store: str, folder: Path) -> tuple[str, dict[str, str]]:
        """Return where a new catalog is to be, and how to reach it."""
        if store == DISK:
            return str(folder / "lake"), {}
        if store not in self._started:
            if store == MOTO:
                server = run_moto()
            else:
                directory = self._stack.enter_context(tempfile.TemporaryDirectory())
                server = run_seaweedfs(Path(directory))
            self._started[store] = self._stack.enter_context(server)
        server = self._started[store]
        return server.uri(f"{folder.name}/lake"), dict(server.options)


@dataclass
class Hand:
    """A row of processes: what they are to do, and what happens to each."""

    number: int
    ops: list
    rng: random.Random
    lives: int = 0
    process: subprocess.Popen | None = None
    told: IO[bytes] | None = None
    victim_at: str | None = None
    delay_s: float = 0.0

    def job(self, place: dict, *, can_fill: bool) -> tuple[dict, int]:
        """Choose what happens to the next process; return its job and how its clock is off."""
        rng = self.rng
        fault = rng.choice(["none", "step", "kill", "flaky", "quota" if can_fill else "flaky"])
        self.lives += 1
        is_last = self.lives > 3
        self.victim_at, self.delay_s = None, rng.random() * _LONGEST_S
        if fault == "kill" and not is_last:
            self.victim_at = rng.choice(self.ops).token
        job = {
            **place,
            "author": f"hand{self.number}.{self.lives}",
            "ops": [[op.verb, list(op.names), op.token] for op in self.ops],
            "step": rng.randrange(25) if fault == "step" and not is_last else None,
            "flaky": rng.random() if fault == "flaky" else None,
            "quota": _QUOTA if fault == "quota" else 0,
        }
        shifted = rng.random() < 0.4
        return job, rng.randint(-_MOST_HOURS, _MOST_HOURS) if shifted else 0


@dataclass
class Torture:
    """One run of one seed."""

    backend: str
    store: str
    seed: int
    uri: str
    options: dict[str, str]
    reached: str = ""
    history: History = field(default_factory=History)
    hours: dict[str, int] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def run(self) -> str | None:
        """Run all processes to their ends; tell what is wrong."""
        rng = random.Random(f"{PROCESSES} {self.backend} {self.store} {self.seed}")
        verbs = verbs_of(self.backend)
        hands = []
        for number in range(rng.randint(2, 4)):
            mine = random.Random(rng.random())
            tokens = [f"{chr(ord('A') + number)}{at}." for at in range(rng.randint(6, 14))]
            hands.append(Hand(number, [choose(verbs, mine, token) for token in tokens], mine))
        self._ops = {op.token: op for hand in hands for op in hand.ops}
        problem = self._live(hands)
        bugs = [f"{key} {said}" for key, said in self.history.said.items() if "BUG" in said]
        return problem or next(iter([*bugs, *self.broken]), None)

    def prepare(self) -> None:
        backend = model_of(self.backend)
        opened = open_backend(backend, self.uri, self.options, "start")
        opened.initialize()
        for number, line in enumerate(START[backend]):
            op = parse(line, f"I{number}")
            perform(backend, op, opened)
            if backend != "metastore":  # its model begins with them
                self.history.begin(op.token, op)
                self.history.end(op.token, "ok")

    # -- processes ---------------------------------------------------------------------------------

    def _live(self, hands: list[Hand]) -> str | None:
        reading, writing = os.pipe()
        deadline = time.monotonic() + _LIMIT_S
        timer = threading.Timer(_LIMIT_S, self._end_all, [hands])
        timer.start()
        try:
            with os.fdopen(reading) as lines:
                leading = [
                    threading.Thread(target=self._lead, args=(hand, writing)) for hand in hands
                ]
                closing = threading.Thread(target=_close_after, args=(leading, writing))
                for thread in (*leading, closing):
                    thread.start()
                for line in lines:
                    self._take(json.loads(line), hands)
        finally:
            timer.cancel()
            self._end_all(hands)
        return f"no end after {_LIMIT_S:.0f} s" if time.monotonic() > deadline else None

    def _start(self, hand: Hand, writing: int) -> None:
        place = {
            "backend": self.backend,
            "uri": self.reached,
            "options": self.options,
        }
        job, hours = hand.job(place, can_fill=self.store == DISK and self.backend != SERVED)
        hours = 0 if self.store == SEAWEEDFS else hours  # it refuses requests of another hour
        env = os.environ.copy()
        if hours:
            _, faking = libfaketime.get_reload_information()
            env |= faking | {"FAKETIME": f"{hours * _HOUR_S:+d}", "DONT_FAKE_MONOTONIC": "1"}
            self.faults["shifted clock"] += 1
        self.hours |= {op.token: hours for op in hand.ops}
        keys = ("step", "flaky", "quota")
        chosen = {key: job[key] for key in keys if job[key]} | {"hours": hours}
        self.trace.append(f"{job['author']} starts {chosen}, kill at {hand.victim_at}")
        hand.told = tempfile.TemporaryFile()  # noqa: SIM115  # it is the process's
        hand.process = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.hand", json.dumps(job)],
            cwd=REPOSITORY,
            env=env,
            stdout=writing,
            stderr=hand.told,
        )

    def _lead(self, hand: Hand, writing: int) -> None:
        """Start the first process of a hand, and the next one where one was killed."""
        while hand.ops:
            self._start(hand, writing)
            hand.process.wait()
            os.write(writing, (json.dumps(["ended", str(hand.number)]) + "\n").encode())
            killed = hand.process.returncode == -signal.SIGKILL
            self.faults["crash"] += killed
            if not killed and hand.process.returncode:
                hand.told.seek(0)
                told = hand.told.read().decode(errors="replace")[-1500:]
                self.broken.append(f"hand{hand.number}.{hand.lives} ended by itself: {told}")
            hand.told.close()
            hand.ops = hand.ops[self._begun(hand) :] if killed else []

    def _begun(self, hand: Hand) -> int:
        """Count the operations of a dead process that were begun, once all its lines are read."""
        while True:
            if any(line == f"ended {hand.number}.{hand.lives}" for line in self.trace):
                return sum(op.token in self.history.ops for op in hand.ops)
            time.sleep(0.01)

    def _take(self, words: list[str], hands: list[Hand]) -> None:
        match words:
            case ["begin", token]:
                self.history.begin(token, self._ops[token])
                self.trace.append(f"begin {token} {self._ops[token]}")
                for hand in hands:
                    if hand.victim_at == token:
                        threading.Timer(hand.delay_s, hand.process.kill).start()
            case ["end", token, said]:
                self.history.end(token, said)
                self.trace.append(f"end {token} {said}")
            case ["fault", word]:
                self.faults[word] += 1
                self.trace.append(f"fault {word}")
            case ["ended", number]:
                self.trace.append(f"ended {number}.{hands[int(number)].lives}")

    def _end_all(self, hands: list[Hand]) -> None:
        for hand in hands:
            if hand.process is not None and hand.process.poll() is None:
                hand.process.kill()

    # -- judging -----------------------------------------------------------------------------------

    def judge(self) -> str | None:
        """Tell what is wrong with what is left."""
        backend = model_of(self.backend)
        opened = open_backend(backend, self.uri, self.options, "judge")
        return self._explain(backend, opened) or self._audit() or self._use(backend, opened)

    def _explain(self, backend: str, opened) -> str | None:
        ending = Ending({}, self.history, self.hours)
        if backend == "listing":
            for name in plain_subject.NAMES:
                final, problem = plain_subject.look(name, opened, _reader(opened))
                problem = problem or plain_subject.explain_name(name, ending, final)
                if problem:
                    return f"'{name}': {problem}"
            return None
        seen = _seen(opened)
        self.trace.append(f"left: {sorted(map(str, seen))}")
        lost = [one for one in seen if "LOST" in str(one[2])]
        if lost:
            return f"the data of {lost} is gone"
        model, initial, draw = {
            "manifest": (
                rows_subject.RowsModel(ending, True, self.backend == SERVED),
                Catalog(),
                _draw_rows,
            ),
            "compat": (compat_subject.model_of(ending), Lake(), _draw_lake),
            "metastore": (
                metastore_subject.TablesModel(),
                Model(spaces={"n": True, "m": True}).freeze(),
                _draw_metastore,
            ),
        }[backend]
        search = Search(model, self.history)
        problem = search.problem(initial, lambda state: draw(state) == seen)
        return f"{problem}; left is {sorted(map(str, seen))}" if problem else None

    def _audit(self) -> str | None:
        """An audit finds nothing that cannot be read: what a crash leaves is only in the way."""
        backend = model_of(self.backend)
        scheme = "metastore+" if backend == "metastore" else ""
        flags = {
            "listing": {"manifest_enabled": False},
            "manifest": {"dir_listing_enabled": False},
        }.get(backend, {})
        catalog = mooring.connect(f"{scheme}{self.uri}", storage_options=self.options, **flags)
        found = audit(catalog)
        self.trace += [f"audit: {one}" for one in found.findings]
        errors = [one for one in found.findings if one.severity is Severity.ERROR]
        return f"an audit found {errors[0]}" if errors else None

    def _use(self, backend: str, opened) -> str | None:
        try:
            if backend == "listing":
                for name in plain_subject.NAMES:
                    plain_subject.exercise(opened, name, rows_of("after"))
            else:
                _use_names(backend, opened)
        except MooringError as exc:
            return f"stuck afterwards: {exc!r}"
        return None


def _close_after(threads: list[threading.Thread], writing: int) -> None:
    """Let readers of a pipe come to its end once nobody writes any more."""
    for thread in threads:
        thread.join()
    os.close(writing)


def _reader(opened):
    """Return what reads the token of a table by the path of its directory, or of a row."""

    def read(location: str) -> str | None:
        place = location if "://" in location or location.startswith("/") else None
        try:
            found = open_at(place or opened.store.location(location), opened.store.options)
        except TableNotFoundError:
            return None  # declared, unless the model knows better
        except (MooringError, ValueError, OSError) as exc:
            return f"LOST {exc}"
        tokens = found.to_table()["token"].to_pylist()
        return tokens[0] if tokens == tokens[:1] * ROWS else f"LOST {tokens}"

    return read


def _seen(opened) -> frozenset[tuple[str, str, str | None]]:
    """Draw what is live: name, kind and content."""
    read = _reader(opened)
    found = set()
    for table in opened.list_all_tables():
        info = opened.describe_table(table, check_declared=True)
        content = None if info.is_only_declared else read(info.location)
        found.add((".".join(table.names), TABLE, content))
    waiting = [ROOT]
    while waiting:
        parent = waiting.pop()
        below = [parent.child(name) for name in opened.list_namespaces(parent)]
        found |= {(".".join(one.names), NAMESPACE, None) for one in below}
        waiting += below
    return frozenset(found)


def _draw_rows(catalog: Catalog) -> frozenset:
    return catalog_model.picture(catalog).live


def _draw_lake(lake: Lake) -> frozenset:
    content = lake.directory[1] if lake.has_directory else None
    live = catalog_model.picture(lake.rows.write("t.lance", content)).live
    if lake.is_live and lake.rows.get("t") is None:
        live |= {("t", TABLE, content)}
    return live


def _draw_metastore(state: tuple) -> frozenset:
    model = Model.thaw(state)
    live = {
        (".".join(key), TABLE, rows[-1] if rows else None)
        for key, rows in model.live.items()
        if model.spaces.get(key[0])
    }
    return frozenset(
        live | {(name, NAMESPACE, None) for name, is_live in model.spaces.items() if is_live}
    )


def _use_names(backend: str, opened) -> None:
    """Drop and purge what there is; then every name is used anew."""
    for table in opened.list_all_tables():
        opened.drop_table(table)
    for table in {found.id for found in opened.list_purgable_tables()}:
        opened.purge_table(table)
    names = {
        "manifest": rows_subject.TABLES,
        "compat": compat_subject.TABLES,
        "metastore": metastore_subject.TABLES,
    }[backend]
    known = {one.names for one, _ in opened.describe_namespaces()}
    for name in names:
        table = object_id(name)
        for depth in range(1, len(table.names)):
            if table.names[:depth] not in known:
                opened.create_namespace(object_id(".".join(table.names[:depth])), {})
                known.add(table.names[:depth])
        opened.create_table(table, rows_of("after"))
        opened.drop_table(table)
        opened.undrop_table(table)
        found = _reader(opened)(opened.describe_table(table).location)
        if found != "after":
            msg = f"a later table reads {found}"
            raise MooringError(msg)
        opened.drop_table(table)
        opened.purge_table(table)


@contextmanager
def _reached(backend: str, uri: str) -> Iterator[str]:
    """Serve a catalog where processes are to ask a server for it."""
    if backend != SERVED:
        yield uri
        return
    with serving(uri) as running:
        yield f"lance+{running.base}/lance"


def torture(backend: str, store: str, seed: int, servers: Servers) -> tuple[Verdict, list[str]]:
    """Run one seed on a backend and a store."""
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        uri, options = servers.place(store, Path(folder))
        run = Torture(backend, store, seed, uri, options)
        run.prepare()
        with _reached(backend, uri) as run.reached:
            problem = run.run()
            undecided = False
            try:
                problem = problem or run.judge()
            except TooManyError:
                undecided = True
    run.trace.append(f"verdict: {problem or ('undecided' if undecided else 'ok')}")
    operations = len(run.history.ops)
    verdict = Verdict(PROCESSES, backend, store, seed, operations, run.faults, problem, undecided)
    return verdict, run.trace


__all__ = ["Servers", "torture"]
