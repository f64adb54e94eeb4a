"""The copy of a manifest in memory is what a fresh read gives, whoever changed the table.

Two clients follow each other, commit on what they know, and tidy; a third program rewrites all
rows with every change, as pylance does.

Spec: directory-namespace, "Manifest Table Commits".
"""

from __future__ import annotations

import os
import shutil
import tempfile
from unittest.mock import patch

import lance
import lance.namespace
import lance_namespace as spec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mooring.store.local import LocalStore
from mooring.tables import manifest_copy
from mooring.tables.lance_manifest import LanceManifest
from mooring.tables.manifest import NAMESPACE, TABLE, ManifestRow, RowChange

PATH = "__manifest"
BY = {"mooring.by": "test"}
KEYS = [f"it's {number}%" for number in range(12)]
clients = st.integers(0, 1)
keys = st.sampled_from(KEYS)
texts = st.none() | st.sampled_from(["", '{"a":"b"}', "日本 $"])
rows = st.builds(
    ManifestRow,
    object_id=keys,
    object_type=st.sampled_from([NAMESPACE, TABLE]),
    location=texts,
    metadata=texts,
    base_objects=st.none() | st.sampled_from([(), ("x",), ("x", "y")]),
)


class Copies(RuleBasedStateMachine):
    """Changes a manifest through two copies and compares both with the table."""

    def __init__(self) -> None:
        super().__init__()
        self._root = tempfile.mkdtemp()
        # Small numbers, so that deletion vectors and merged fragments come about with few rows.
        self._patches = [
            patch.object(manifest_copy, "_SMALL", 2),
            patch.object(os, "fsync", lambda _: None),
        ]
        for change in self._patches:
            change.start()
        self.store = LocalStore(self._root)
        self.tables = [self._open(), self._open()]
        self.tables[0].create()
        self.rows: dict[str, ManifestRow] = {}
        self.metadata: dict[str, str] = {}
        for table in self.tables:
            table.follow(table.newest())

    def teardown(self) -> None:
        for change in self._patches:
            change.stop()
        shutil.rmtree(self._root)

    def _open(self) -> LanceManifest:
        return LanceManifest(self.store, PATH)

    @rule(who=clients)
    def follow(self, who):
        """What a client is told to have changed covers what did."""
        table = self.tables[who]
        before = dict(table.rows)
        changed = table.follow(table.newest())
        differ = {
            key
            for key in before.keys() | table.rows.keys()
            if before.get(key) != table.rows.get(key)
        }
        assert differ <= changed

    @rule(
        who=clients,
        added=st.lists(rows, max_size=5, unique_by=lambda row: row.object_id),
        removed=st.sets(keys, max_size=4),
        catch_up=st.booleans(),
    )
    def commit(self, who, added, removed, catch_up):
        """A commit lands on the version it was planned on, or not at all."""
        table = self.tables[who]
        if catch_up:
            table.follow(table.newest())
        # As a draft puts it together: what is replaced is removed first.
        gone = (removed | {row.object_id for row in added}) & table.rows.keys()
        is_current = table.version == table.newest()
        done = table.commit(RowChange(frozenset(gone), tuple(added)), BY)
        assert (done is not None) == is_current
        if done is None:
            return
        done()
        for key in gone:
            del self.rows[key]
        self.rows.update({row.object_id: row for row in added})

    @rule(who=clients, row=rows)
    def commit_on_a_glimpse(self, who, row):
        """Without the copy: on the rows alone that are to change."""
        table = self.tables[who]
        glimpse = table.look(table.newest(), [row.object_id])
        assert dict(glimpse.rows) == {
            key: found for key, found in self.rows.items() if key == row.object_id
        }
        assert table.commit_on(glimpse, RowChange(frozenset(glimpse.rows), (row,)), BY)
        table.give_up()
        self.rows[row.object_id] = row

    @rule(who=clients, key=st.sampled_from("ab"), value=st.none() | st.sampled_from("xy"))
    def commit_metadata(self, who, key, value):
        table = self.tables[who]
        assert table.commit_metadata(table.look(table.newest(), []), {key: value}, BY)
        merged = {**self.metadata, key: value}
        self.metadata = {key: value for key, value in merged.items() if value is not None}

    @rule(who=clients)
    def tidy(self, who):
        self.tables[who].tidy()

    @rule(name=st.sampled_from(["p", "q"]))
    def another_program_rewrites_everything(self, name):
        if any(row.object_type not in {NAMESPACE, TABLE} for row in self.rows.values()):
            return
        pylance = lance.namespace.DirectoryNamespace(root=self._root)
        if name in self.rows:
            pylance.drop_namespace(spec.DropNamespaceRequest(id=[name]))
            del self.rows[name]
        else:
            pylance.create_namespace(spec.CreateNamespaceRequest(id=[name]))
            self.rows[name] = ManifestRow(name, NAMESPACE)

    @rule()
    def another_program_compacts(self):
        lance.dataset(self.store.location(PATH)).optimize.compact_files()

    @rule(who=clients)
    def another_process_goes_on(self, who):
        self.tables[who] = self._open()

    @invariant()
    def a_fresh_read_shows_the_model(self):
        fresh = self._open()
        fresh.follow(fresh.newest())
        assert fresh.rows == self.rows
        ours = {key: value for key, value in fresh.metadata.items() if "." not in key}
        assert ours == self.metadata

    @invariant()
    def a_copy_that_caught_up_is_the_same(self):
        for table in self.tables:
            if table.version and table.version == table.newest():
                assert table.rows == self.rows


Copies.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestCopies = Copies.TestCase
