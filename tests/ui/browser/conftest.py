"""Fixtures: a browser, a harbour, and servers of it."""

from __future__ import annotations

import shutil
from contextlib import ExitStack, contextmanager

import pytest

import mooring
from mooring.server.roles import Grant, Role
from mooring.server.settings import Client, ServerSettings
from tests.own_server import run_server
from tests.ui.browser.axe import find_axe
from tests.ui.browser.chromium import run_chromium
from tests.ui.browser.looks import LOOKS
from tests.ui.browser.reader import looking
from tests.ui.harbour import known_in, make_harbour, make_listing, make_manifest

HERE = "tests/ui/browser/"


def pytest_collection_modifyitems(items):
    """All of these need the browser."""
    for item in items:
        if HERE in item.path.as_posix():
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser():
    with run_chromium() as found:
        yield found


@pytest.fixture(scope="session")
def axe():
    return find_axe()


@pytest.fixture(scope="session")
def lakes(tmp_path_factory):
    """Catalogs of each kind, made once; nobody changes these."""
    folder = tmp_path_factory.mktemp("lakes")
    make_harbour(folder)
    make_manifest(folder)
    make_listing(folder)
    return folder


@pytest.fixture(scope="session")
def known(lakes):
    """What stands in addresses."""
    return known_in(mooring.connect(f"metastore+{lakes / 'harbour'}"))


@pytest.fixture(scope="session")
def served(lakes):
    """All of them, served to be looked at."""
    catalogs = {
        "default": mooring.connect(f"metastore+{lakes / 'harbour'}", author="ada"),
        "manifest": mooring.connect(lakes / "manifest", author="ada"),
        "listing": mooring.connect(lakes / "listing", author="ada", manifest_enabled=False),
    }
    with run_server(catalogs) as base:
        yield base


@pytest.fixture(scope="session")
def _windows(browser, served):
    """Opened once, as that takes longer than most pages."""
    with ExitStack() as stack:
        yield {
            look: stack.enter_context(looking(browser, served, **how))
            for look, how in LOOKS.items()
        }


@pytest.fixture
def windows(_windows):
    """Those who look at the harbour in light, in dark and on a phone."""
    for one in _windows.values():
        one.troubles.clear()
    yield _windows
    for one in _windows.values():
        one.troubles.clear()


@pytest.fixture
def reader(browser, served):
    """Somebody who looks at the harbour."""
    with looking(browser, served) as found:
        yield found


@pytest.fixture
def own_lake(lakes, tmp_path):
    """A harbour that a test may change."""
    shutil.copytree(lakes / "harbour", tmp_path / "harbour")
    return mooring.connect(f"metastore+{tmp_path / 'harbour'}", author="ada")


@pytest.fixture
def master(browser, own_lake):
    """Somebody who may do everything in a harbour of the test's own."""
    with run_server(own_lake) as base, looking(browser, base) as found:
        yield found


@pytest.fixture
def guarded(browser, own_lake):
    """The same for those who log in: a role is asked for, and who looks then has it."""
    clients = tuple(Client.of(role.value, "s", Grant(role)) for role in Role)
    with run_server(own_lake, ServerSettings(clients=clients)) as base:

        @contextmanager
        def enter(role, **how):
            with looking(browser, base, **how) as found:
                yield found.log_in(f"{role}:s")

        yield enter
