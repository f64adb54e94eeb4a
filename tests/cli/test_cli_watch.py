"""``mooring watch`` and what ``mooring serve`` is told about changes and purges."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import mooring
from mooring.cli.background import ByItself
from mooring.errors import InvalidInputError
from mooring.feed import watcher
from mooring.server.settings import ServerSettings

MOORING = str(Path(sys.executable).with_name("mooring"))
ROWS = [{"n": 1}]


@pytest.fixture
def small(tmp_path):
    """A catalog of a few objects."""
    catalog = mooring.connect(tmp_path / "small", author="ada")
    catalog.create_namespace("a")
    catalog.create_table("a$t", ROWS)
    catalog.create_table("u", ROWS)
    catalog.drop_table("u")
    return catalog


@pytest.fixture
def watch(run, small):
    """Watch it, in this process."""
    return lambda *words: run("watch", small.uri, "--interval", "1ms", *words)


def kinds(result):
    assert result.exit_code == 0, result.stderr
    told = [json.loads(line) for line in result.stdout.splitlines()]
    return [(one["kind"], one["name"]) for one in told]


def test_tells_all_there_is_from_the_beginning(watch):
    result = watch("--since", "beginning", "--until-idle", "0s", "-o", "ndjson")
    assert kinds(result) == [
        ("namespace.created", "a"),
        ("table.dropped", "u"),
        ("table.created", "a$t"),
    ]


def test_tells_nothing_where_nothing_changes(watch):
    result = watch("--until-idle", "0s")
    assert (result.exit_code, result.stdout) == (0, "")


def test_ends_after_so_many(watch):
    result = watch("--since", "beginning", "--count", "1", "-o", "ndjson")
    assert kinds(result) == [("namespace.created", "a")]


def test_tells_only_what_lies_in_a_namespace(watch):
    words = ("--since", "beginning", "--namespace", "a", "--until-idle", "0s", "-o", "ndjson")
    assert kinds(watch(*words)) == [("namespace.created", "a"), ("table.created", "a$t")]


def test_tells_changes_while_it_watches(watch, small, monkeypatch):
    looks = iter([None, lambda: small.undrop_table("u"), lambda: small.rename_table("a$t", "a$v")])
    poll = watcher.Watcher.poll

    def change_then_poll(self):
        """Have somebody else change the catalog before each look but the first."""
        change = next(looks, None)
        if change is not None:
            change()
        return poll(self)

    monkeypatch.setattr(watcher.Watcher, "poll", change_then_poll)
    result = watch("--count", "2")
    first, second = result.stdout.splitlines()
    assert "table.undropped" in first
    assert first.endswith("u  by ada")
    assert "table.renamed" in second
    assert "a$v  (was a$t)" in second


def test_a_list_of_json_is_whole(watch):
    result = watch("--since", "beginning", "--count", "2", "-o", "json")
    assert [one["kind"] for one in json.loads(result.stdout)] == [
        "namespace.created",
        "table.dropped",
    ]


@pytest.mark.parametrize("words", [("--interval", "never"), ("--until-idle", "soon")])
def test_a_duration_that_is_none_is_refused(watch, words):
    assert watch(*words).exit_code == 2


def test_an_interrupt_ends_it_in_good_order(small):
    command = [MOORING, "watch", small.uri, "-o", "json"]
    child = subprocess.Popen(
        [*command, "--since", "beginning"], stdout=subprocess.PIPE, env={**os.environ}, text=True
    )
    assert child.stdout is not None
    begin = child.stdout.readline()  # what is there is told, and nothing more happens
    child.send_signal(signal.SIGINT)
    rest = child.stdout.read()
    assert child.wait() == 0
    child.stdout.close()
    assert len(json.loads(begin + rest)) == 3


class TestServing:
    def test_says_where_changes_go_and_how_often_to_purge(self, tmp_path):
        secret = tmp_path / "secret"
        secret.write_text("hush\n")
        said = ByItself(("http://127.0.0.1:1/x",), secret, "2s", "1h")
        found = said.apply(ServerSettings(), {"MOORING_WEBHOOK_SECRET": "other"}).background
        assert found.webhooks == ("http://127.0.0.1:1/x",)
        assert (found.webhook_secret, found.poll_s, found.purge_every_s) == ("hush", 2.0, 3600.0)

    def test_the_environment_has_the_secret_too(self):
        said = ByItself((), None, "10s", None)
        found = said.apply(ServerSettings(), {"MOORING_WEBHOOK_SECRET": "hush"}).background
        assert (found.webhook_secret, found.purge_every_s) == ("hush", None)
        assert found.idle_poll_s == found.poll_s == 10.0

    @pytest.mark.parametrize(
        "said",
        [
            ByItself(("ftp://x",), None, "1s", None),
            ByItself((), None, "0s", None),
            ByItself((), None, "1s", "never"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, said):
        with pytest.raises(InvalidInputError):
            said.apply(ServerSettings(), {})

    def test_a_secret_that_is_not_there_is_refused(self, tmp_path):
        said = ByItself(("http://127.0.0.1:1/x",), tmp_path / "absent", "1s", None)
        with pytest.raises(InvalidInputError, match="absent"):
            said.apply(ServerSettings(), {})
