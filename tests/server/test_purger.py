"""Expired tables are purged now and then, if that was asked for."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import mooring
from mooring.catalog import Catalog
from mooring.errors import InvalidInputError, ServiceUnavailableError
from mooring.namespace.api import Ttl
from mooring.server.app import create_app, create_service
from mooring.server.background_settings import BackgroundSettings
from mooring.server.catalogs import Catalogs, MooringCatalog
from mooring.server.purger import Purger
from mooring.server.service import Service
from mooring.server.settings import ServerSettings
from mooring.store.scripted import ScriptedStore
from tests.lakes import COMPAT_DISK, DISK, METASTORE_DISK, Lake

if TYPE_CHECKING:
    from mooring.server.audit import Change
    from mooring.store import Store
    from mooring.store.wrapped import Call

HOUR_MS = 3_600_000


class Heard:
    """Keeps what the audit log would hold."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def record(self, change: Change) -> None:
        self.changes.append(change)

    def close(self) -> None:
        pass

    @property
    def told(self) -> list[tuple[str | None, str, str, str]]:
        return [
            (one.subject, one.operation, str(one.objects[0]), one.outcome) for one in self.changes
        ]


def serve(lake: Lake, store: Store | None = None, **options: bool) -> Service:
    """Serve a lake whose clock is the test's, in whoever's name."""
    made = create_service(lake.connect(**options), ServerSettings())

    def open_as(subject: str) -> Catalog:
        return Catalog(lake.open(author=subject, store=store, **options), lake.uri, {})

    served = MooringCatalog("lake", lake.connect(**options), open_as)
    return Service(
        Catalogs({"lake": served}), made.authority, made.workers, made.settings, audit=Heard()
    )


def purge(service: Service, lake: Lake) -> Purger:
    """Go one round."""
    purger = Purger(service, 60, lake.clock)
    asyncio.run(purger.run_once())
    return purger


@pytest.fixture(params=[DISK, COMPAT_DISK, METASTORE_DISK], ids=lambda kind: kind.name)
def lake(request, tmp_path, clock) -> Lake:
    return Lake(request.param, str(tmp_path / "lake"), {}, clock)


@pytest.fixture
def plain(tmp_path, clock) -> Lake:
    return Lake(DISK, str(tmp_path / "lake"), {}, clock)


class TestRounds:
    def test_purges_what_has_expired_and_nothing_else(self, lake):
        for name, ttl in (("over", HOUR_MS), ("later", 2 * HOUR_MS), ("never", None)):
            lake.create(name)
            lake.backend.drop_table(lake.id(name), Ttl(ttl))
        lake.create("live")
        service = serve(lake)
        assert purge(service, lake).purged == 0
        lake.clock.advance(HOUR_MS)
        purger = purge(service, lake)
        assert (purger.purged, purger.failures) == (1, 0)
        assert lake.trash() == sorted(map(str, (lake.id("later"), lake.id("never"))))
        assert str(lake.id("live")) in lake.tables()
        assert service.audit.told == [
            ("purger", "mooring.PurgeExpired", str(lake.id("over")), "done")
        ]

    def test_a_drop_of_the_same_name_that_has_time_left_stays(self, tmp_path, clock):
        lake = Lake(METASTORE_DISK, str(tmp_path / "lake"), {}, clock)
        for ttl in (HOUR_MS, None):
            lake.create("t")
            lake.backend.drop_table(lake.id("t"), Ttl(ttl))
        lake.clock.advance(HOUR_MS)
        assert purge(serve(lake), lake).purged == 1
        assert lake.trash() == [str(lake.id("t"))]

    def test_purges_are_recorded_in_its_name(self, plain):
        plain.create("t")
        plain.backend.drop_table(plain.id("t"), Ttl(0))
        purge(serve(plain), plain)
        history = plain.open().table_history(plain.id("t"))
        assert [change.by for change in history if change.action == "purge"][-1] == "purger"


class TestFailures:
    def test_a_store_that_fails_is_logged_and_the_next_round_goes_on(self, plain, caplog):
        plain.create("t")
        plain.backend.drop_table(plain.id("t"), Ttl(0))
        outage = _Outage()
        service = serve(plain, ScriptedStore(plain.store, outage))
        outage.is_on = True
        with caplog.at_level(logging.WARNING):
            assert purge(service, plain).failures >= 1
        assert "the store is down" in caplog.text
        outage.is_on = False
        assert purge(service, plain).purged == 1

    def test_a_table_that_cannot_be_purged_is_audited(self, plain):
        plain.create("t")
        plain.backend.drop_table(plain.id("t"), Ttl(0))
        outage = _Outage("delete", below="t.lance")
        service = serve(plain, ScriptedStore(plain.store, outage))
        outage.is_on = True
        assert purge(service, plain).failures >= 1
        assert ("purger", "mooring.PurgeExpired", "t", "failed") in service.audit.told

    def test_a_catalog_that_is_read_only_is_left_alone(self, plain):
        plain.create("t")
        plain.backend.drop_table(plain.id("t"), Ttl(0))
        purger = purge(serve(plain, read_only=True), plain)
        assert (purger.purged, purger.failures) == (0, 0)
        assert plain.trash() == ["t"]


class _Outage:
    """A store that fails for a while."""

    is_on = False

    def __init__(self, verbs: str = "", below: str = "") -> None:
        self._verbs = verbs
        self._below = below

    def before(self, call: Call) -> None:
        is_meant = call.verb.startswith(self._verbs) and call.path.startswith(self._below)
        if self.is_on and is_meant:
            raise ServiceUnavailableError(f"the store is down: {call.verb}")

    def after(self, call: Call, result: object) -> None:
        pass


class TestServers:
    def test_a_server_that_is_told_to_purges_by_itself(self, tmp_path):
        catalog = mooring.connect(str(tmp_path / "lake"), manifest_enabled=False)
        catalog.create_table("t", pa.table({"n": [1]}))
        catalog.drop_table("t", ttl="0s")
        settings = ServerSettings(background=BackgroundSettings(purge_every_s=0.02))
        with TestClient(create_app(catalog, settings)) as client:
            purger = client.app.state.background.purger
            while not purger.purged:
                client.get("/health/live")
        assert catalog.list_purgable_tables() == []
        assert purger.failures == 0

    @pytest.mark.parametrize(("every_s", "worker"), [(None, 0), (60, 1)])
    def test_one_that_is_not_told_to_or_is_not_the_first_does_not(self, plain, every_s, worker):
        background = BackgroundSettings(purge_every_s=every_s)
        settings = ServerSettings(background=background, worker=worker)
        with TestClient(create_app(plain.connect(), settings)) as client:
            assert client.app.state.background.purger is None

    def test_how_often_is_more_than_nothing(self):
        with pytest.raises(InvalidInputError, match="purge"):
            BackgroundSettings(purge_every_s=0)
