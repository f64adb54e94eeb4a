"""What each writer leaves in a manifest: ours alone, and beside pylance at the same time.

Spec: directory-namespace, "Manifest Table Schema" to "Manifest Table Directory"; "Manifest Table
Commits".
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import threading
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import lance
import lance.namespace
import lance_namespace as spec
import pyarrow as pa
import pytest

import mooring
from mooring.opening import open_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.interop

MANIFEST_ONLY = {"dir_listing_enabled": "false"}
INLINE = {"inline_optimization_enabled": "true"}
PATIENCE_S = 60
# A shared catalog is tidied by whoever commits every so many versions.
TIDIES_WITHIN = 16
# Processes that import what they need, as those of other people do.
processes = multiprocessing.get_context("spawn")


def open_ours(root: Path, **properties: str) -> mooring.DirectoryNamespace:
    return mooring.DirectoryNamespace(root=str(root), **properties)


def open_theirs(root: Path, **properties: str) -> lance.namespace.DirectoryNamespace:
    return lance.namespace.DirectoryNamespace(root=str(root), **properties)


def create_namespace(client: spec.LanceNamespace, *path: str, **properties: str) -> None:
    request = spec.CreateNamespaceRequest(id=list(path), properties=properties or None)
    client.create_namespace(request)


def declare(client: spec.LanceNamespace, *path: str, **properties: str) -> None:
    request = spec.DeclareTableRequest(id=list(path), properties=properties or None)
    client.declare_table(request)


def drop(client: spec.LanceNamespace, *path: str) -> None:
    client.drop_table(spec.DropTableRequest(id=list(path)))


def create(client: spec.LanceNamespace, *path: str, **properties: str) -> None:
    table = pa.table({"n": pa.array([1, 2], pa.int64())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    request = spec.CreateTableRequest(id=list(path), properties=properties or None)
    client.create_table(request, sink.getvalue().to_pybytes())


def names(client: spec.LanceNamespace, *path: str) -> tuple[set[str], set[str]]:
    """Name the namespaces and the tables in a namespace."""
    namespaces = client.list_namespaces(spec.ListNamespacesRequest(id=list(path))).namespaces
    tables = client.list_tables(spec.ListTablesRequest(id=list(path))).tables
    assert len(set(namespaces)) == len(namespaces)
    assert len(set(tables)) == len(tables)
    return set(namespaces), set(tables)


def manifest_of(root: Path) -> lance.LanceDataset:
    return lance.dataset(str(root / "__manifest"))


def rows_of(root: Path) -> dict[str, dict]:
    """Read the manifest with Lance alone; no identifier may be there twice."""
    rows = manifest_of(root).to_table().to_pylist()
    twice = [key for key, count in Counter(row["object_id"] for row in rows).items() if count > 1]
    assert not twice
    return {row["object_id"]: row for row in rows}


# -- writers at the same time ---------------------------------------------------------------------


def write_busily(job: dict, pulse, stop, answers) -> None:
    """Create namespaces and declare tables with pylance, one after the other, until told to stop.

    Runs in a process of its own. A pulse is given after each acknowledgement; at last what was
    acknowledged and what was refused is answered.
    """
    client = lance.namespace.DirectoryNamespace(**job["properties"])
    acknowledged, refused = [], []
    number = 0
    while not stop.is_set():
        number += 1
        name = f"{job['name']}{number}"
        try:
            if number % 2:
                create_namespace(client, name, number=str(number))
            else:
                declare(client, "busy", name, number=str(number))
        except spec.errors.LanceNamespaceError as exc:
            refused.append((name, str(exc)))
        else:
            acknowledged.append(name if number % 2 else f"busy${name}")
            pulse.release()
    answers.put((acknowledged, refused))


class Busy:
    """Processes in which pylance writes to a catalog without a pause."""

    def __init__(self, root: Path, count: int, properties: dict[str, str]) -> None:
        self._pulse = processes.Semaphore(0)
        self._stop = processes.Event()
        self._answers = processes.Queue()
        self.processes = [
            processes.Process(
                target=write_busily,
                args=(
                    {"name": f"w{number}x", "properties": {"root": str(root), **properties}},
                    self._pulse,
                    self._stop,
                    self._answers,
                ),
                daemon=True,
            )
            for number in range(count)
        ]
        for process in self.processes:
            process.start()

    def wait(self) -> None:
        """Wait until one of them was acknowledged something from now on."""
        while self._pulse.acquire(block=False):
            pass
        assert self._pulse.acquire(timeout=PATIENCE_S), "pylance does not write any more"

    def finish(self) -> tuple[set[str], list[tuple[str, str]]]:
        """Stop them; return what they were acknowledged, and what they were refused."""
        self._stop.set()
        answers = [self._answers.get(timeout=PATIENCE_S) for _ in self.processes]
        for process in self.processes:
            process.join(PATIENCE_S)
        acknowledged = {name for found, _ in answers for name in found}
        return acknowledged, [failed for _, refused in answers for failed in refused]


@contextmanager
def busy(root: Path, count: int = 1, **properties: str) -> Iterator[Busy]:
    writers = Busy(root, count, properties)
    try:
        yield writers
    finally:
        for process in writers.processes:
            if process.is_alive():
                process.kill()
                process.join()


def prepare(root: Path, **properties: str) -> mooring.DirectoryNamespace:
    ours = open_ours(root, **properties)
    create_namespace(ours, "busy")
    create_namespace(ours, "mine")
    return ours


class Changes:
    """Changes of every kind by ours, one after the other, and what they should lead to."""

    def __init__(self, client: mooring.DirectoryNamespace) -> None:
        self.client = client
        self.live = {"busy", "mine"}
        self.dropped = 0

    def make(self, number: int) -> None:
        """Make one change: a single commit, except for tables of the root."""
        KINDS[number % len(KINDS)](self, number // len(KINDS))

    def create_namespace(self, turn: int) -> None:
        create_namespace(self.client, "mine", f"n{turn}", turn=str(turn))
        self.live.add(f"mine$n{turn}")

    def update_namespace(self, turn: int) -> None:
        self.client.update_namespace(["mine", f"n{turn}"], {"more": "x"})

    def declare(self, turn: int) -> None:
        declare(self.client, "mine", f"n{turn}", "t", turn=str(turn))
        self.live.add(f"mine$n{turn}$t")

    def create(self, turn: int) -> None:
        create(self.client, "mine", f"n{turn}", "c", turn=str(turn))
        self.live.add(f"mine$n{turn}$c")

    def rename(self, turn: int) -> None:
        request = spec.RenameTableRequest(
            id=["mine", f"n{turn}", "t"], new_table_name=f"t{turn}", new_namespace_id=["mine"]
        )
        self.client.rename_table(request)
        self.live ^= {f"mine$n{turn}$t", f"mine$t{turn}"}

    def drop(self, turn: int) -> None:
        drop(self.client, "mine", f"t{turn}")
        self.live.remove(f"mine$t{turn}")

    def undrop(self, turn: int) -> None:
        self.client.undrop_table(["mine", f"t{turn}"])
        self.live.add(f"mine$t{turn}")

    def deregister(self, turn: int) -> None:
        request = spec.DeregisterTableRequest(id=["mine", f"t{turn}"])
        self.location = self.client.deregister_table(request).location.rpartition("/")[2]
        self.live.remove(f"mine$t{turn}")

    def register(self, turn: int) -> None:
        request = spec.RegisterTableRequest(id=["mine", f"r{turn}"], location=self.location)
        self.client.register_table(request)
        self.live.add(f"mine$r{turn}")

    def drop_tree(self, turn: int) -> None:
        request = spec.DropNamespaceRequest(id=["mine", f"n{turn}"], behavior="cascade")
        self.client.drop_namespace(request)
        self.live -= {f"mine$n{turn}", f"mine$n{turn}$c"}

    def undrop_tree(self, turn: int) -> None:
        assert self.client.undrop_namespace(["mine", f"n{turn}"]) == 2
        self.live |= {f"mine$n{turn}", f"mine$n{turn}$c"}

    def create_empty(self, turn: int) -> None:
        create_namespace(self.client, "mine", f"e{turn}")
        self.live.add(f"mine$e{turn}")

    def drop_empty(self, turn: int) -> None:
        self.client.drop_namespace(spec.DropNamespaceRequest(id=["mine", f"e{turn}"]))
        self.live.remove(f"mine$e{turn}")
        self.dropped += 1

    def create_root(self, turn: int) -> None:
        create(self.client, f"root{turn}", turn=str(turn))
        self.live.add(f"root{turn}")

    def drop_root(self, turn: int) -> None:
        drop(self.client, f"root{turn}")
        self.live.remove(f"root{turn}")

    def undrop_root(self, turn: int) -> None:
        self.client.undrop_table([f"root{turn}"])
        self.live.add(f"root{turn}")

    def deregister_root(self, turn: int) -> None:
        self.client.deregister_table(spec.DeregisterTableRequest(id=[f"root{turn}"]))
        self.live.remove(f"root{turn}")

    def update_root(self, turn: int) -> None:
        self.client.update_namespace([], {"turn": str(turn)})


KINDS = (
    Changes.create_namespace,
    Changes.update_namespace,
    Changes.declare,
    Changes.create,
    Changes.rename,
    Changes.drop,
    Changes.undrop,
    Changes.deregister,
    Changes.register,
    Changes.drop_tree,
    Changes.undrop_tree,
    Changes.create_empty,
    Changes.drop_empty,
    Changes.create_root,
    Changes.drop_root,
    Changes.undrop_root,
    Changes.deregister_root,
    Changes.update_root,
)
COMMITS = 2 * len(KINDS)


def dropped_rows(root: Path) -> list[str]:
    """Return the rows of the trash, without those that only stand for directories."""
    trash = [key for key in rows_of(root) if key.startswith("__mooring_trash$")]
    return [key for key in trash if not key.startswith("__mooring_trash$directory$")]


def require_all(root: Path, mine: set[str], acknowledged: set[str], refused: list) -> None:
    """Compare the manifest with what was acknowledged, to the last row."""
    rows = rows_of(root)
    trash = {key for key in rows if key.startswith("__mooring_trash$")}
    unsure = {name for failed, _ in refused for name in (failed, f"busy${failed}")}
    assert not acknowledged - rows.keys(), "lost"
    assert rows.keys() - trash - unsure == mine | acknowledged - unsure
    for key in acknowledged:
        number = re.fullmatch(r"(?:busy\$)?w\dx(\d+)", key)
        assert json.loads(rows[key]["metadata"]) == {"number": number and number[1]}
    ours, theirs = open_ours(root), open_theirs(root)
    for path in ([], ["busy"], ["mine"]):
        assert names(ours, *path) == names(theirs, *path)


@pytest.mark.parametrize(
    ("writers", "theirs", "ours"),
    [(1, {}, {}), (1, INLINE, {}), (2, {}, MANIFEST_ONLY)],
    ids=["one", "one-with-inline-indexes", "two"],
)
@pytest.mark.peer("pylance-dir", they="commit", we="commit", on="V2")
def test_each_of_36_changes_lands_beside_busy_pylance_writers(tmp_path, writers, theirs, ours):
    """Must show: no lost rows, no duplicate ids, no starvation, whatever the kind of change."""
    changes = Changes(prepare(tmp_path, **ours))
    with busy(tmp_path, writers, **theirs) as beside:
        for number in range(COMMITS):
            beside.wait()
            changes.make(number)
        acknowledged, refused = beside.finish()
    assert len(acknowledged) >= COMMITS
    require_all(tmp_path, changes.live, acknowledged, refused)
    assert len(dropped_rows(tmp_path)) == changes.dropped == 2


@pytest.mark.peer("pylance-dir", they="commit", we="commit", on="V2")
def test_threads_of_both_share_a_manifest(tmp_path):
    """Must show: no lost rows, no duplicate ids; here all in one process."""
    ours, theirs = prepare(tmp_path), open_theirs(tmp_path)
    failures: list[Exception] = []
    start = threading.Barrier(4)

    def write(client: spec.LanceNamespace, name: str) -> None:
        start.wait()
        for number in range(10):
            try:
                declare(client, "mine", f"{name}{number}")
                create_namespace(client, f"{name}{number}")
            except spec.errors.LanceNamespaceError as exc:
                failures.append(exc)

    threads = [
        threading.Thread(target=write, args=(client, name))
        for client, name in ((ours, "a"), (ours, "b"), (theirs, "c"), (theirs, "d"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    expected = {f"{name}{number}" for name in "abcd" for number in range(10)}
    assert rows_of(tmp_path).keys() == {
        "busy",
        "mine",
        *expected,
        *(f"mine${name}" for name in expected),
    }
    assert names(ours, "mine") == names(theirs, "mine") == (set(), expected)


@pytest.fixture
def eager(monkeypatch):
    """Have ours tidy after every commit instead of every few."""
    monkeypatch.setattr("mooring.tables.lance_manifest.is_due", lambda *_, **__: True)


@pytest.mark.peer("pylance-dir", we="harmless", on="V2")
def test_what_pylance_wrote_survives_our_tidying(tmp_path, eager):
    """Old versions go while pylance writes: what it was acknowledged stays."""
    changes = Changes(prepare(tmp_path))
    with busy(tmp_path) as beside:
        for number in range(12):
            beside.wait()
            changes.make(number)
        acknowledged, refused = beside.finish()
    # pylance alone would have left a file for every version.
    assert len(list((tmp_path / "__manifest" / "data").iterdir())) < manifest_of(tmp_path).version
    require_all(tmp_path, changes.live, acknowledged, refused)


READS: dict[str, Callable] = {
    "list_namespaces": lambda ns: names(ns)[0],
    "list_tables": lambda ns: names(ns, "mine")[1],
    "describe_namespace": lambda ns: (
        ns.describe_namespace(spec.DescribeNamespaceRequest(id=["mine"])).properties
    ),
    "table_exists": lambda ns: ns.table_exists(spec.TableExistsRequest(id=["mine", "t"])),
}


@pytest.mark.parametrize("before", ["wrote", "read"])
@pytest.mark.peer("pylance-dir", they="commit", on="V2")
def test_a_pylance_client_that_waited_goes_on_after_our_tidying(tmp_path, before):
    """A client of long standing finds its way from a version that is tidied away.

    One that only reads leaves no trace: the catalog must be told of it.
    """
    open_directory(str(tmp_path), {}).initialize(shared=before == "read")
    client = prepare(tmp_path)
    declare(client, "mine", "t")
    waiting = {verb: open_theirs(tmp_path, **MANIFEST_ONLY) for verb in (*READS, "write")}
    for verb, theirs in waiting.items():
        names(theirs, "mine")
        if before == "wrote":
            create_namespace(theirs, f"by_{verb}")
    for number in range(100):
        client.update_namespace(["mine"], {"number": str(number)})
    create_namespace(client, "new")
    declare(client, "mine", "new")
    fresh = open_theirs(tmp_path, **MANIFEST_ONLY)
    told = {verb: read(waiting[verb]) for verb, read in READS.items()}
    assert told == {verb: read(fresh) for verb, read in READS.items()}
    create_namespace(waiting["write"], "late")
    declare(waiting["write"], "late", "t")
    assert names(client, "late") == names(fresh, "late") == (set(), {"t"})


def test_what_pylance_leaves_far_behind_is_tidied_away(tmp_path):
    """However many versions it wrote between two changes of ours."""
    client, theirs = prepare(tmp_path), open_theirs(tmp_path)
    for turn in range(2):
        for number in range(150):
            create_namespace(theirs, f"n{turn}x{number}")
        for number in range(2 * TIDIES_WITHIN):
            client.update_namespace(["mine"], {"number": str(number)})
    manifest = tmp_path / "__manifest"
    assert len(list((manifest / "_versions").glob("*.manifest"))) == manifest_of(tmp_path).version
    assert len(list((manifest / "data").iterdir())) < 4 * TIDIES_WITHIN
    assert names(client) == names(theirs) == names(open_theirs(tmp_path))
    assert len(names(client)[0]) == 302


@pytest.mark.peer("pylance-dir", they="commit", on="V2")
def test_what_a_paused_pylance_writer_was_told_is_there(tmp_path, eager):
    """A number that a sleeping writer goes for is not free, however many versions came since."""
    client = prepare(tmp_path)
    with busy(tmp_path) as beside:
        [process] = beside.processes
        for turn in range(12):
            beside.wait()
            os.kill(process.pid, signal.SIGSTOP)
            for number in range(10):
                client.update_namespace(["mine"], {"number": f"{turn}.{number}"})
            os.kill(process.pid, signal.SIGCONT)
        beside.wait()
        acknowledged, refused = beside.finish()
    require_all(tmp_path, {"busy", "mine"}, acknowledged, refused)


# -- what ours leaves, byte for byte --------------------------------------------------------------

PRIMARY_KEY = {b"lance-schema:unenforced-primary-key:position": b"0"}
PROPERTIES = {"owner": "ada", "note": 'ü "$" \\ \n'}


def fill(client: spec.LanceNamespace) -> None:
    create_namespace(client, "bare")
    create_namespace(client, "ns", **PROPERTIES)
    create_namespace(client, "ns", "deep")
    declare(client, "ns", "declared", **PROPERTIES)
    create(client, "ns", "deep", "made")
    declare(client, "root_declared")
    create(client, "root_made", **PROPERTIES)


@pytest.fixture(params=["ours", "theirs"])
def either(request, tmp_path):
    """A manifest made by either: what is asserted of ours holds for pylance's, too."""
    opened = {"ours": open_ours, "theirs": open_theirs}[request.param]
    fill(opened(tmp_path))
    return tmp_path


def test_the_schema_is_that_of_pylance_field_by_field(either):
    """Spec: directory-namespace, "Manifest Table Schema"."""
    manifest = manifest_of(either)
    fields = [(found.name, found.type, found.nullable, found.metadata) for found in manifest.schema]
    assert fields == [
        ("object_id", pa.string(), False, PRIMARY_KEY),
        ("object_type", pa.string(), False, None),
        ("location", pa.string(), True, None),
        ("metadata", pa.string(), True, None),
        ("base_objects", pa.list_(pa.field("object_id", pa.string())), True, None),
    ]
    assert manifest.schema.field("base_objects").type.value_field.name == "object_id"
    assert manifest.schema.field("base_objects").type.value_field.nullable
    assert not manifest.schema.metadata
    assert manifest.data_storage_version == "2.2"


def test_field_ids_and_feature_flags_are_those_of_pylance(tmp_path):
    """Readers of Lance's own format find the same table, whoever made it."""
    fill(open_ours(tmp_path / "ours"))
    fill(open_theirs(tmp_path / "theirs"))
    ours, theirs = manifest_of(tmp_path / "ours"), manifest_of(tmp_path / "theirs")
    assert [(found.name(), found.id()) for found in ours.lance_schema.fields()] == [
        (found.name(), found.id()) for found in theirs.lance_schema.fields()
    ]
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.config() == theirs.config() == {}
    assert ours.metadata == theirs.metadata == {}


def test_rows_are_written_as_pylance_writes_them(either):
    """Spec: directory-namespace, "Manifest Table Schema" and "Compatibility Mode", rule 3."""
    rows = rows_of(either)
    assert {key: row["object_type"] for key, row in rows.items()} == {
        "bare": "namespace",
        "ns": "namespace",
        "ns$deep": "namespace",
        "ns$declared": "table",
        "ns$deep$made": "table",
        "root_declared": "table",
        "root_made": "table",
    }
    assert all(row["base_objects"] is None for row in rows.values())
    assert {key for key, row in rows.items() if row["location"] is None} == {
        "bare",
        "ns",
        "ns$deep",
    }
    for key in ("ns$declared", "ns$deep$made"):
        assert re.fullmatch(r"[0-9a-f]{8}_" + re.escape(key), rows[key]["location"])
    assert rows["root_declared"]["location"] == "root_declared.lance"
    assert rows["root_made"]["location"] == "root_made.lance"


def test_properties_are_compact_json_with_letters_as_they_are(either):
    """Spec: directory-namespace, "Manifest Table Schema", metadata."""
    rows = rows_of(either)
    with_properties = {key for key, row in rows.items() if row["metadata"] is not None}
    assert with_properties == {"ns", "ns$declared", "root_made"}
    for key in with_properties:
        text = rows[key]["metadata"]
        # pylance keeps no order of keys.
        assert text in {
            json.dumps(dict(order), ensure_ascii=False, separators=(",", ":"))
            for order in (PROPERTIES.items(), reversed(PROPERTIES.items()))
        }


def test_a_declared_directory_holds_the_reservation_alone(either):
    """Spec: directory-namespace, "Marker Files"."""
    for key in ("ns$declared", "root_declared"):
        directory = either / rows_of(either)[key]["location"]
        assert [found.name for found in directory.iterdir()] == [".lance-reserved"]


def test_manifest_only_root_tables_have_hashed_directories(tmp_path):
    """Spec: directory-namespace, "Manifest Table Directory"."""
    fill(open_ours(tmp_path, **MANIFEST_ONLY))
    rows = rows_of(tmp_path)
    for key in ("root_declared", "root_made"):
        location = rows[key]["location"]
        assert re.fullmatch(rf"[0-9a-f]{{8}}_{key}", location)
        assert (tmp_path / location).is_dir()
    assert not list(tmp_path.glob("*.lance"))


def indexes_of(root: Path) -> dict[str, tuple[str, list[str]]]:
    found = manifest_of(root).describe_indices()
    return {index.name: (index.type_url, index.field_names) for index in found}


def test_tidying_makes_the_three_indexes_that_pylance_makes(tmp_path):
    """Spec: directory-namespace, "Manifest Table Indexes"."""
    fill(open_theirs(tmp_path / "theirs", **INLINE))
    ours = open_ours(tmp_path / "ours")
    fill(ours)
    for number in range(60):
        ours.update_namespace(["ns"], {"number": str(number)})
    assert indexes_of(tmp_path / "ours") == indexes_of(tmp_path / "theirs")
    assert indexes_of(tmp_path / "ours") == {
        "object_id_btree": ("/lance.table.BTreeIndexDetails", ["object_id"]),
        "object_type_bitmap": ("/lance.table.BitmapIndexDetails", ["object_type"]),
        "base_objects_label_list": ("/lance.table.LabelListIndexDetails", ["base_objects"]),
    }


def test_indexes_that_pylance_dropped_come_back(tmp_path):
    """Its copy-on-write rewrite leaves none; the next tidying makes them again."""
    ours, theirs = prepare(tmp_path), open_theirs(tmp_path)
    for number in range(60):
        ours.update_namespace(["mine"], {"number": str(number)})
    assert len(indexes_of(tmp_path)) == 3
    create_namespace(theirs, "theirs")
    assert indexes_of(tmp_path) == {}
    assert len(manifest_of(tmp_path).get_fragments()) == 1
    for number in range(60):
        ours.update_namespace(["mine"], {"number": str(number)})
    assert len(indexes_of(tmp_path)) == 3
    assert names(ours) == names(theirs) == ({"busy", "mine", "theirs"}, set())


# -- what ours keeps beside the rows of others ----------------------------------------------------


@pytest.mark.peer("pylance-dir", they="harmless", on="V2")
def test_dropped_rows_outlast_pylance_and_never_show(tmp_path):
    """Trash rows are plain rows to pylance: it lists none of them and copies all of them."""
    ours, theirs = prepare(tmp_path), open_theirs(tmp_path, **MANIFEST_ONLY)
    create_namespace(ours, "mine", "deep", **PROPERTIES)
    for number in range(5):
        create(ours, "mine", f"t{number}", **PROPERTIES)
        create(ours, "mine", "deep", f"t{number}")
        drop(ours, "mine", f"t{number}")
    ours.drop_namespace(spec.DropNamespaceRequest(id=["mine", "deep"], behavior="cascade"))
    before = {key: row for key, row in rows_of(tmp_path).items() if "trash" in key}
    assert len(before) == 11
    create(theirs, "mine", "t0", second="life")
    create_namespace(theirs, "mine", "deep")
    theirs.drop_namespace(spec.DropNamespaceRequest(id=["mine", "deep"]))
    after = {key: row for key, row in rows_of(tmp_path).items() if "trash" in key}
    assert after == before
    assert names(theirs) == ({"busy", "mine"}, set())
    assert names(theirs, "mine") == (set(), {"t0"})
    assert ours.undrop_namespace(["mine", "deep"]) == 6
    for number in range(1, 5):
        ours.undrop_table(["mine", f"t{number}"])
    ours.undrop_table(["mine", "t0"], ["mine", "first"])
    assert names(theirs, "mine") == ({"deep"}, {"first", *(f"t{number}" for number in range(5))})
    assert names(theirs, "mine", "deep")[1] == {f"t{number}" for number in range(5)}


@pytest.mark.peer("pylance-dir", they="harmless", on="V2")
def test_properties_of_the_root_outlast_pylance(tmp_path):
    """They are in the table's own map, which a rewrite by pylance keeps."""
    ours, theirs = prepare(tmp_path), open_theirs(tmp_path)
    ours.update_namespace([], {"team": "x"})
    create_namespace(theirs, "theirs")
    declare(theirs, "theirs", "t")
    root = spec.DescribeNamespaceRequest(id=[])
    assert open_ours(tmp_path).describe_namespace(root).properties == {"team": "x"}
    # Defect: pylance answers no properties of the root.
    assert theirs.describe_namespace(root).properties == {}
