"""``mooring ui``: pages for one user, in the browser."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from mooring.server.auth import Authority
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client
from tests.lakes import FakeClock

MOORING = str(Path(sys.executable).with_name("mooring"))
LIMIT_S = 60
HTML = {"accept": "text/html"}


@contextmanager
def looking(*words, **environ):
    """Run it until the context ends; give the process and the address that it tells."""
    process = subprocess.Popen(
        [MOORING, "ui", *map(str, words), "-o", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environ},
    )
    try:
        told = ""
        while not told.rstrip().endswith("}"):
            line = process.stdout.readline()
            assert line, process.stderr.read()
            told += line
        yield process, json.loads(told)["address"]
    finally:
        process.kill()
        process.communicate()


def base_of(address):
    return address.partition("/login")[0]


def test_the_address_lets_its_user_in_and_nobody_else(lake):
    with looking(lake, "--no-browser") as (process, address):
        base = base_of(address)
        assert base.startswith("http://127.0.0.1:")
        page = f"{base}/catalogs/default/browse"
        assert httpx2.get(f"{page}.json").status_code == 401
        refused = httpx2.get(page, headers=HTML)
        assert refused.status_code == 303
        assert refused.headers["location"].startswith("/login")
        assert httpx2.get(f"{base}/lance/v1/namespace/$/list").status_code == 401
        with httpx2.Client(follow_redirects=True, headers=HTML) as browser:
            found = browser.get(address)
            assert (found.status_code, str(found.url)) == (200, page)
            assert "flights" in found.text
            assert "tester" in found.text
            assert "admin" in found.text
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT_S) == 0


def test_the_browser_gets_what_is_good_for_one_login(lake, tmp_path):
    seen = tmp_path / "seen"
    os.mkfifo(seen)
    program = tmp_path / "browser"
    program.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    program.chmod(0o755)
    with looking(lake, "--read-only", BROWSER=str(program)) as (_, told):
        opened = seen.read_text().strip()
        assert base_of(opened) == base_of(told)
        assert opened != told
        with httpx2.Client(follow_redirects=True, headers=HTML) as browser:
            assert "flights" in browser.get(opened).text
        assert httpx2.get(opened, headers=HTML).status_code == 401
        assert httpx2.get(told, headers=HTML).status_code == 303


def test_several_catalogs_are_beside_each_other(lake, plain):
    words = ("--no-browser", "--catalog", f"left={lake}", "--catalog", f"right={plain}")
    with looking(*words) as (_, address), httpx2.Client(follow_redirects=True) as browser:
        browser.get(address, headers=HTML)
        found = browser.get(f"{base_of(address)}/index.json").json()
        assert [one["name"] for one in found["catalogs"]] == ["left", "right"]


def test_without_any_catalog_it_says_how_to_name_one(run):
    result = run("ui", "--no-browser")
    assert result.exit_code == 2
    assert "no catalog is named" in result.stderr


def test_a_port_that_is_taken_is_told(run, lake):
    with looking(lake, "--no-browser") as (_, address):
        port = base_of(address).rpartition(":")[2]
        result = run("ui", str(lake), "--no-browser", "--port", port)
    assert result.exit_code == 2
    assert f"port {port} of 127.0.0.1 is in use" in result.stderr


@pytest.fixture
def clock():
    return FakeClock()


def test_what_is_good_for_one_login_ends_by_itself(clock):
    owner = Client.of("ada", "s", Grant(Role.ADMIN))
    authority = Authority([owner], token_ttl_s=60, clock=clock)
    once, late = authority.issue_once("ada"), authority.issue_once("ada")
    assert authority.owner_of(authority.redeem(once)) == "ada"
    assert authority.redeem(once) is None
    assert authority.redeem("another") is None
    clock.advance(5 * 60 * 1000)
    assert authority.redeem(late) is None
