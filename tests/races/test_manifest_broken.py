"""Manifest catalogs that are wrong on purpose: the harness must catch each of them."""

from __future__ import annotations

from functools import partial

import pytest

import mooring.directory.registry
import mooring.directory.renaming
import mooring.directory.root_rows
import mooring.directory.sweeping
import mooring.directory.trash
from mooring.directory.compat_claims import Claims
from mooring.directory.compat_names import RootNames
from mooring.directory.draft import Draft
from mooring.directory.manifest import Manifest
from mooring.directory.registry import Registry
from mooring.directory.root_rows import RootRows
from mooring.directory.trash import Trash
from mooring.tables.versions import newest_version

from . import compat_harness
from .caught import require_caught
from .explorer import Limits
from .manifest_harness import Race, explore, race
from .manifests import StoreManifest, open_manifest_backend
from .test_manifest_tidying import TidiedManifest


def _caught(report) -> str:
    require_caught(report.violations)
    return report.violations[0]


def _catch(one: Race, *, faults: int = 0, preemptions: int = 2, **options) -> str:
    limits = Limits(preemptions=preemptions, faults=faults, stop_at_first=True)
    return _caught(explore(one, limits=limits, **options))


def _catch_in_compat(one: Race, *, faults: int = 0) -> str:
    limits = Limits(preemptions=3, faults=faults, stop_at_first=True)
    return _caught(compat_harness.explore(one, limits=limits))


class RebasedManifest(StoreManifest):
    """Lands a change that lost as the next free version, without planning it again."""

    def commit(self, change, properties):
        return super().commit(change, properties) or self._land(change)

    def commit_on(self, glimpse, change, properties) -> bool:
        return super().commit_on(glimpse, change, properties) or self._land(change) is not None

    def _land(self, change):
        newest = self._read(self.newest())
        rows = {key: row for key, row in newest.rows.items() if key not in change.removed}
        rows |= {row.object_id: row for row in change.added}
        made = self._put(newest, rows, newest.metadata)
        return None if made is None else lambda: self._settle(made)


@pytest.mark.parametrize(
    ("one", "harm"),
    [
        (race("namespace", "dropns n", "create n.t"), "not there"),
        (race("namespace", "create n.t", "create n.t"), "explains"),
        (race("dropped", "purge n.t", "undrop n.t"), "explains"),
    ],
    ids=str,
)
def test_commit_that_is_not_strict_is_caught(one, harm):
    assert harm in _catch(one, open_one=partial(open_manifest_backend, kind=RebasedManifest))


def test_purge_that_deletes_before_it_marks_is_caught(monkeypatch):
    def purge(self, keys, progress=None):
        with self._manifest.reading() as draft:
            found = [row for row in mooring.directory.trash._read_all(draft) if row.key in keys]
        for row in found:
            self._store.delete_prefix(row.row.location)
        self._manifest.change(lambda draft: draft.remove_all(key for key in keys if draft.get(key)))
        return found

    monkeypatch.setattr(Trash, "purge", purge)
    _catch(race("dropped", "purge n.t", "undrop n.t"))


def test_undrop_that_ignores_the_mark_of_a_purge_is_caught(monkeypatch):
    def newest(draft, object_id, kind):
        found = [
            row
            for row in mooring.directory.trash._read_all(draft)
            if row.object_id == object_id and row.row.object_type == kind
        ]
        return found[-1] if found else None

    monkeypatch.setattr(mooring.directory.trash, "_newest", newest)
    _catch(race("dropped", "purge n.t", "undrop n.t"))


def test_dropped_namespace_whose_children_are_looked_at_before_the_commit_is_caught(monkeypatch):
    strict = Trash.drop_namespace

    def drop_namespace(self, namespace, ttl, default_ttl_ms, *, cascade):
        with self._manifest.reading() as draft:
            below = draft.descendants(namespace)
        if cascade or below:
            return strict(self, namespace, ttl, default_ttl_ms, cascade=cascade)
        drop = self.begin_drop()

        def plan(draft):
            draft.require_namespace(namespace)
            row = draft.get(namespace)
            drop.move(draft, namespace, [row], None)
            return [row]

        return self._manifest.change(plan)

    monkeypatch.setattr(Trash, "drop_namespace", drop_namespace)
    assert "not there" in _catch(race("namespace", "dropns n", "create n.t"))


def test_namespace_that_is_looked_for_before_the_commit_is_caught(monkeypatch):
    monkeypatch.setattr(Draft, "require_namespace", lambda self, namespace: None)
    assert "not there" in _catch(race("namespace", "dropns n", "create n.t"))


def test_sweep_that_condemns_nothing_is_caught(monkeypatch):
    monkeypatch.setattr(mooring.directory.registry, "require_not_condemned", lambda *_: None)
    _catch(race("namespace", "create n.t", "sweep"))


def test_sweep_that_lifts_what_another_has_condemned_is_caught(monkeypatch):
    def release(known, orphans, deleted, sweep_id):
        lifted = {mooring.directory.sweeping.CONDEMNED + found.location: None for found in orphans}
        return {**strict(known, orphans, deleted, sweep_id), **lifted}

    strict = mooring.directory.sweeping._release
    monkeypatch.setattr(mooring.directory.sweeping, "_release", release)
    _catch(race("namespace", "create n.t", "sweep", "sweep"), preemptions=4)


def test_creator_that_does_not_look_for_its_files_is_caught(monkeypatch):
    monkeypatch.setattr(Registry, "_require_unswept", lambda *_: None)
    _catch(race("namespace", "create n.t", "sweep"))


def test_purge_of_a_root_directory_without_a_fence_is_caught(monkeypatch):
    monkeypatch.setattr(Manifest, "fence", lambda self: None)
    _catch_in_compat(race("without a row", "alias n.a t.lance", "v1drop t + purge t"))


def test_purge_of_a_root_directory_that_asks_nobody_is_caught(monkeypatch):
    monkeypatch.setattr(Claims, "fence", lambda self, name: None)
    _catch_in_compat(race("shared and dropped", "purge t", "rename n.a n.b"))


def test_root_table_that_does_not_give_way_is_caught(monkeypatch):
    monkeypatch.setattr(RootNames, "take", lambda self, table, properties, **_: None)
    _catch_in_compat(race("other", "rename n.u t", "create t"))


def test_row_that_is_settled_without_a_second_look_is_caught(monkeypatch):
    def settle(self, name, properties=None, **_):
        view = self._view(name)

        def follow(draft):
            mooring.directory.root_rows._follow(
                draft, view, properties or {}, inherit=True, author=self._author
            )

        self._manifest.change(follow)

    monkeypatch.setattr(RootRows, "settle", settle)
    _catch_in_compat(race("both", "drop t", "undrop t"))


def test_rename_that_does_not_seal_is_caught(monkeypatch):
    def newest(store, table_dir, nonce):
        return newest_version(store, table_dir)

    monkeypatch.setattr(mooring.directory.renaming, "put_seal", newest)
    _catch_in_compat(race("both", "rename t n.v", "append t"))


def test_number_that_was_set_free_and_is_not_looked_at_is_caught(monkeypatch):
    monkeypatch.setattr(TidiedManifest, "_require_kept", lambda *_: None)
    open_one = partial(open_manifest_backend, kind=TidiedManifest)
    _catch(race("namespace", "create n.t", "ns a + ns b + ns c"), open_one=open_one, commutes=None)
