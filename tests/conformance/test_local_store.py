"""POSIX files: durable, inside their root, and clear about what the system refuses."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import lance
import pytest

from mooring.errors import (
    InvalidInputError,
    MooringError,
    PermissionDeniedError,
    ServiceUnavailableError,
    StoreUnsafeError,
    UnsupportedError,
)
from mooring.store.local import LocalStore
from mooring.store.passing import TEMPORARY_PREFIX
from tests.lakes import rows, table_id


@pytest.fixture
def root(tmp_path):
    return tmp_path / "outer" / "root"


@pytest.fixture
def store(root):
    return LocalStore(root)


@pytest.fixture
def syncs(monkeypatch):
    """Take note of what is synced: `file` or `directory`."""
    seen: list[str] = []
    real = os.fsync

    def fsync(descriptor):
        kind = "directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        seen.append(kind)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return seen


def _everything(top: Path) -> set[str]:
    return {str(path.relative_to(top)) for path in top.rglob("*")}


# -- durable --------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["put", "put_new"])
def test_a_put_syncs_the_file_and_then_its_directory(store, syncs, verb):
    store.put("there", b"")
    syncs.clear()
    getattr(store, verb)("a", b"x")
    assert syncs == ["file", "directory"]


def test_a_new_directory_is_synced_into_its_parent(store, syncs):
    store.put("d/e/a", b"x")
    # The root's parent, the root, d and e are new: each name is synced where it stands.
    assert syncs.count("file") == 1
    assert syncs.count("directory") == 4 + 1
    assert syncs[-1] == "directory"


def test_a_refused_creation_leaves_nothing(store, root):
    store.put_new("a", b"first")
    before = _everything(root)
    assert store.put_new("a", b"second") is False
    assert _everything(root) == before == {"a"}


def test_no_put_leaves_a_temporary_file(store, root):
    store.put("a", b"1")
    store.put("a", b"2")
    store.put_new("d/b", b"3")
    assert not [name for name in _everything(root) if TEMPORARY_PREFIX in name]


@pytest.mark.parametrize(
    ("verb", "call"),
    [("put", "fsync"), ("put", "replace"), ("put_new", "fsync"), ("put_new", "link")],
)
def test_a_put_that_fails_leaves_neither_object_nor_temporary_file(
    store, root, monkeypatch, verb, call
):
    store.put("there", b"")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(ServiceUnavailableError, match="No space left"):
        getattr(store, verb)("a", b"x")
    monkeypatch.undo()
    assert _everything(root) == {"there"}


def test_a_store_that_need_not_be_durable_syncs_nothing(root, syncs):
    LocalStore(root, durable=False).put("d/a", b"x")
    assert syncs == []


def test_an_acknowledged_table_has_all_of_its_files_on_disk(disk_lake, monkeypatch):
    """Lance does not sync what it writes; whoever acknowledges a table has to."""
    disk_lake.create("first")
    synced: set[int] = set()
    real = os.fsync

    def fsync(descriptor):
        synced.add(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    disk_lake.create("t", [1])
    data = Path(disk_lake.uri, "t.lance", "data")
    wanted = [*data.iterdir(), data, data.parent, Path(disk_lake.uri)]
    assert [path.name for path in wanted if path.stat().st_ino not in synced] == []


# -- inside the root ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["..", "../x", "a/../../x", "/etc/passwd", "a//b", "a/", "./a", "a/.", "a/..", "a\0b"],
    ids=ascii,
)
@pytest.mark.parametrize(
    "verb", ["get", "read", "head", "put", "put_new", "delete", "delete_prefix"]
)
def test_no_path_leaves_the_root(store, root, path, verb):
    store.put("a/b", b"inside")
    victim = root.parent / "x"
    victim.write_bytes(b"outside")
    before = _everything(root.parent)
    act = getattr(store, verb)
    arguments = {"put": (path, b""), "put_new": (path, b""), "delete": ([path],)}
    with pytest.raises(InvalidInputError, match="root"):
        act(*arguments.get(verb, (path,)))
    assert _everything(root.parent) == before
    assert victim.read_bytes() == b"outside"


def test_a_linked_directory_is_not_listed_walked_or_emptied(store, root):
    outside = root.parent / "outside"
    outside.mkdir(parents=True)
    (outside / "file").write_bytes(b"precious")
    store.put("d/a", b"")
    (root / "linked").symlink_to(outside)
    (root / "d" / "deep").symlink_to(outside)
    assert "linked" not in store.list_dir("").directories
    assert store.list_dir("d").directories == []
    for act in (store.list_dir, store.list_prefix, store.delete_prefix):
        with pytest.raises(UnsupportedError, match="link"):
            act("linked")
    assert sorted(meta.path for meta in store.list_prefix("d")) == ["d/a", "d/deep"]
    store.delete_prefix("d")
    assert (outside / "file").read_bytes() == b"precious"


def test_a_linked_table_is_never_touched(disk_lake, tmp_path):
    """Nothing is ever created or deleted outside the root."""
    outside = tmp_path / "outside"
    lance.write_dataset(rows([1]), str(outside))
    before = _everything(outside)
    disk_lake.create("t")
    Path(disk_lake.uri, "linked.lance").symlink_to(outside)
    backend, linked = disk_lake.open(), table_id("linked")
    assert disk_lake.names() == ["t"]
    for act in (
        lambda: backend.drop_table(linked),
        lambda: backend.undrop_table(linked),
        lambda: backend.purge_table(linked),
        lambda: backend.deregister_table(linked),
        lambda: backend.protect_table(linked),
        lambda: backend.declare_table(linked),
        lambda: backend.create_table(linked, rows([2])),
    ):
        with pytest.raises(MooringError):
            act()
    assert _everything(outside) == before
    assert disk_lake.names() == ["t"]


def test_a_linked_root_is_a_root(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    store = LocalStore(tmp_path / "linked")
    store.put("a", b"x")
    assert (tmp_path / "real" / "a").read_bytes() == b"x"
    assert store.list_dir("").files == ["a"]


# -- refusals of the system -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "number", [errno.EACCES, errno.EROFS, errno.EPERM], ids=errno.errorcode.get
)
@pytest.mark.parametrize("verb", ["put", "put_new"])
def test_a_refusal_of_the_system_is_a_refusal(store, monkeypatch, verb, number):
    store.put("there", b"")
    module = sys.modules["mooring.store.local"]

    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module, "open", refused, raising=False)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionDeniedError, match="no permission for 'a'"):
        getattr(store, verb)("a", b"x")


def test_a_disk_without_hard_links_is_refused(store, monkeypatch):
    store.put("there", b"")

    def no_links(*_: object) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(StoreUnsafeError, match="hard links"):
        store.put_new("a", b"x")


def test_a_file_in_place_of_a_directory_is_reported(store):
    store.put("file", b"x")
    assert store.get("file/below") is None
    assert store.head("file/below") is None
    assert not store.list_dir("file").exists
    assert store.list_prefix("file") == []
    store.delete(["file/below"])
    for act in (store.put, store.put_new):
        with pytest.raises(MooringError, match="file/below"):
            act("file/below", b"y")
    assert store.get("file") == b"x"


def test_a_file_in_place_of_the_root_is_reported(root):
    root.parent.mkdir()
    root.write_text("not a directory")
    store = LocalStore(root)
    assert store.list_dir("").files == []
    with pytest.raises(MooringError):
        store.put("a", b"x")
    assert root.read_text() == "not a directory"


_UNPRIVILEGED = """
import json, os, sys, tempfile
import mooring
from mooring import errors
root = sys.argv[1]
# Every module is imported once before the user changes, who may not read where they lie.
with tempfile.TemporaryDirectory() as scratch:
    warm = mooring.connect(scratch + "/lake")
    warm.create_table("t", [{"n": 1}]).count()
    warm.drop_table("t")
    warm.purge_tables(["t", "absent"])
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
catalog = mooring.connect(root, author="nobody")
answers = {"names": mooring.connect(root, read_only=True).list_tables(),
           "trash": [str(found.id) for found in catalog.list_purgable_tables()],
           "rows": catalog.table("t").count()}
acts = {"create": lambda: catalog.create_table("new", [{"n": 1}]),
        "declare": lambda: catalog.declare_table("new"),
        "drop": lambda: catalog.drop_table("t"),
        "undrop": lambda: catalog.undrop_table("dropped"),
        "purge": lambda: catalog.purge_table("dropped")}
for name, act in acts.items():
    try:
        act()
    except errors.MooringError as exc:
        answers[name] = [type(exc).__name__, exc.code]
print(json.dumps(answers))
"""


def test_a_catalog_without_permission_to_write_can_be_read():
    """Deliver 1: "a catalog can be opened read-only without write permission"."""
    import mooring

    with tempfile.TemporaryDirectory(prefix="mooring-readonly-") as top:
        Path(top).chmod(0o755)
        root = Path(top, "lake")
        catalog = mooring.connect(root)
        catalog.create_table("t", [{"n": 1}, {"n": 2}])
        catalog.create_table("dropped", [{"n": 1}])
        catalog.drop_table("dropped")
        for path in [root, *root.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        done = subprocess.run(
            [sys.executable, "-c", _UNPRIVILEGED, str(root)],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        for path in [root, *root.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    refused = ["PermissionDeniedError", 15]
    assert json.loads(done.stdout) == {
        "names": ["t"],
        "trash": ["dropped"],
        "rows": 2,
        "create": refused,
        "declare": refused,
        "drop": refused,
        "undrop": refused,
        "purge": refused,
    }


# -- case -----------------------------------------------------------------------------------------


def test_this_disk_tells_case_apart_where_it_does(store, root):
    store.put("a", b"")
    (root / "Case").write_text("upper")
    tells = not (root / "cASE").exists()
    assert store.capabilities.case_sensitive is tells
    assert store.capabilities.compare_and_swap is False


def test_case_is_looked_at_where_the_path_has_letters(tmp_path, monkeypatch):
    """A root such as `/Volumes/Data/2024` has none in its last part."""
    root = tmp_path / "Data" / "2024"
    root.mkdir(parents=True)
    # A disk that ignores case: whatever differs by case only is the same file.
    monkeypatch.setattr(
        os.path, "samefile", lambda one, two: os.fspath(one).lower() == os.fspath(two).lower()
    )
    assert LocalStore(root).capabilities.case_sensitive is False
