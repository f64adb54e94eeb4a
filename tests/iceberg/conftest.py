"""Iceberg REST catalogs that nobody here wrote, each started once."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.irc_servers import NotHereError, run_fixture, run_nessie, run_seaweedfs_irc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.irc_servers import IrcServer
    from tests.servers import S3Server


@pytest.fixture(scope="session")
def fixture_irc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IrcServer]:
    with _told_if_absent(), run_fixture(tmp_path_factory.mktemp("fixture")) as server:
        yield server


@pytest.fixture(scope="session")
def nessie_irc(
    tmp_path_factory: pytest.TempPathFactory, seaweedfs: S3Server
) -> Iterator[IrcServer]:
    with _told_if_absent(), run_nessie(tmp_path_factory.mktemp("nessie"), seaweedfs) as server:
        yield server


@pytest.fixture(scope="session")
def seaweedfs_irc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IrcServer]:
    with run_seaweedfs_irc(tmp_path_factory.mktemp("seaweedfs_irc")) as server:
        yield server


@contextmanager
def _told_if_absent() -> Iterator[None]:
    try:
        yield
    except NotHereError as exc:
        pytest.skip(f"not run: {exc}")
