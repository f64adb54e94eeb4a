"""`kill -9` at every step of a migration; then it goes on as if nothing had happened.

Spec: directory-namespace, "Migration from V1 to V2"; "Migration of 10,000 V1 tables: one
or few commits, under a minute here, killed half-way and resumed without harm".
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import lance
import pytest

from mooring.directory.compat_backend import CompatBackend
from mooring.directory.manifest import MANIFEST_DIR
from mooring.directory.migration import Migration
from mooring.identifiers import ROOT
from mooring.namespace.home import Home
from mooring.opening import open_directory
from mooring.store.local import LocalStore
from mooring.tables.versions import newest_version

from .killing import KillingStore, die, fast_processes, run_to_its_end

MANY = 10_000
FEW, BATCH = 25, 10
MOST_STEPS = 60


def _fill(root: Path, count: int) -> list[str]:
    """Make directories as V1 knows tables: a name, and a file in it."""
    names = [f"table-{number:05}" for number in range(count)]
    for name in names:
        directory = root / f"{name}.lance"
        directory.mkdir(parents=True)
        (directory / "data").write_bytes(b"x")
    return names


def _killed_at(root: str, step: int) -> None:
    store = KillingStore(LocalStore(root), step)
    home = Home(store, author="victim", settings=open_directory(root, {}).settings)
    Migration(CompatBackend(home), batch_rows=BATCH).run()


def _killed_after(root: str, batches: int) -> None:
    """Migrate in batches of the usual size, and die after the commit of some."""
    left = batches

    def progress(done: int, total: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            die()

    _migration(root).run(progress)


def _migration(root: str) -> Migration:
    return Migration(CompatBackend(Home(LocalStore(root), author="tester")))


@pytest.fixture(scope="module")
def processes():
    return fast_processes(__name__)


def _rows(root: str) -> list[str]:
    """Read the manifest past the catalog; there may be none yet."""
    if not newest_version(LocalStore(root), MANIFEST_DIR):
        return []
    return sorted(lance.dataset(f"{root}/{MANIFEST_DIR}").to_table()["object_id"].to_pylist())


def _files(root: str) -> dict[str, bytes]:
    """Read all files of tables."""
    found = Path(root).glob("*.lance/*")
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def test_a_migration_killed_at_any_step_is_finished_by_the_next(processes, tmp_path):
    master = tmp_path / "master"
    names = _fill(master, FEW)
    open_directory(str(master), {}).initialize()
    for step in range(MOST_STEPS):
        root = str(tmp_path / str(step))
        shutil.copytree(master, root)
        killed = run_to_its_end(processes, _killed_at, root, step)
        left = _rows(root)
        assert left == names[: len(left)]
        assert len(left) in {0, BATCH, 2 * BATCH, FEW}
        report = _migration(root).run()
        assert report.is_complete
        assert sorted([*report.added, *report.already]) == names
        assert report.already == tuple(left)
        assert _rows(root) == names
        assert _files(root) == _files(str(master))
        assert open_directory(root, {}, dir_listing_enabled=False).list_tables(ROOT) == names
        if not killed:
            assert left == names
            return
    pytest.fail(f"a migration takes more than {MOST_STEPS} steps")


@pytest.mark.torture
def test_ten_thousand_tables_take_few_commits(tmp_path, capsys):
    """The figure is printed and not asserted: it depends on the machine."""
    root = str(tmp_path / "lake")
    names = _fill(Path(root), MANY)
    before = _files(root)
    started = time.perf_counter()
    report = _migration(root).run()
    elapsed_s = time.perf_counter() - started
    commits = newest_version(LocalStore(root), MANIFEST_DIR)
    with capsys.disabled():
        print(f"\n{MANY:,} tables migrated in {elapsed_s:.2f} s by {commits} versions")  # noqa: T201  # the figure is the point
    assert report.is_complete
    assert list(report.added) == names
    assert _rows(root) == names
    assert commits <= 5
    assert _files(root) == before


@pytest.mark.torture
@pytest.mark.parametrize("kills", [(2,), (1, 1)])
def test_ten_thousand_tables_killed_half_way_and_resumed(processes, tmp_path, kills):
    root = str(tmp_path / "lake")
    names = _fill(Path(root), MANY)
    before = _files(root)
    done = 0
    for batches in kills:
        assert run_to_its_end(processes, _killed_after, root, batches)
        left = _rows(root)
        assert left == names[: len(left)]
        assert len(left) > done
        done = len(left)
    report = _migration(root).run()
    assert report.is_complete
    assert (len(report.already), len(report.added)) == (done, MANY - done)
    assert _rows(root) == names
    assert _files(root) == before
    assert open_directory(root, {}, manifest_enabled=False).list_tables(ROOT) == names
