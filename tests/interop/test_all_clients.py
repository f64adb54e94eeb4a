"""Every kind of client at once on one server: each sees what the others were told is done.

pylance, lancedb and lance-spark work on `/lance`, PyIceberg on `/iceberg` of the same process, and
each shows a token with a role of its own. Where a client cannot be had, the others go on without
it, and the test says at its end which one did not run.
"""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import lance
import lance_namespace as spec
import pyarrow as pa
import pytest
from lance_namespace import errors

from tests.docs.documents import DOCS, blocks_of
from tests.interop.gathering import RAN
from tests.interop.lance_peer import (
    CONNECTORS,
    NotBuiltError,
    NotHereError,
    PeerError,
    start_lancedb,
    start_pyiceberg,
    start_spark,
)
from tests.interop.served import run_served

pytestmark = pytest.mark.interop

ROUNDS = 4
SHOP = ["shop"]
GUIDE = DOCS / "how-to" / "use-the-server-from-clients.md"
# What each of the clients is called in the matrix.
PEERS = {"pylance": "pylance-rest", "lancedb": "lancedb", "pyiceberg": "pyiceberg"}
ROLES = {"ada": "writer", "bo": "writer", "cy": "writer", "di": "writer", "eve": "reader"}
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def secret_of(name):
    return f"the secret of {name}"


def bearer(name):
    return f"Bearer {name}:{secret_of(name)}"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    directory = tmp_path_factory.mktemp("all")
    clients = directory / "clients.toml"
    lines = [
        f'[{name}]\nid = "{name}"\nrole = "{role}"\n'
        f'secret_sha256 = "{hashlib.sha256(secret_of(name).encode()).hexdigest()}"\n'
        for name, role in ROLES.items()
    ]
    clients.write_text("\n".join(lines))
    clients.chmod(0o600)
    with run_served("nested", directory, "--credentials", str(clients)) as found:
        found.catalog.create_namespace("shop")
        yield found


@dataclass
class PyLance:
    """pylance, in this process."""

    uri: str
    author = "ada"

    def __post_init__(self):
        properties = {"uri": self.uri, "header.Authorization": bearer(self.author)}
        self.namespace = spec.connect("rest", properties)

    def make(self, table, at):
        rows = pa.table({"id": [at], "name": [self.author]}, schema=SCHEMA)
        place = {"namespace_client": self.namespace, "table_id": [*SHOP, table]}
        lance.write_dataset(rows, mode="create", **place)

    def add(self, table, at):
        rows = pa.table({"id": [at], "name": [self.author]}, schema=SCHEMA)
        place = {"namespace_client": self.namespace, "table_id": [*SHOP, table]}
        lance.write_dataset(rows, mode="append", **place)

    def tables(self):
        return self.namespace.list_tables(spec.ListTablesRequest(id=SHOP)).tables

    def ids(self, table):
        opened = lance.dataset(namespace_client=self.namespace, table_id=[*SHOP, table])
        return opened.to_table()["id"].to_pylist()

    def close(self):
        """Leave nothing: there is no process."""


class LanceDb:
    """lancedb, in a process of its own."""

    author = "bo"

    def __init__(self, uri, home):
        self._client = start_lancedb(home)
        self._client("connect", uri=uri, headers={"Authorization": bearer(self.author)})

    def make(self, table, at):
        self._client("create", namespace=SHOP, table=table, rows=[self._row(at)])

    def add(self, table, at):
        self._client("add", namespace=SHOP, table=table, rows=[self._row(at)])

    def _row(self, at):
        return {"id": at, "name": self.author}

    def tables(self):
        return self._client("tables", namespace=SHOP)

    def ids(self, table):
        return [row["id"] for row in self._client("everything", namespace=SHOP, table=table)]

    def close(self):
        self._client.close()


class LanceSpark:
    """lance-spark, in a process of its own."""

    author = "cy"

    def __init__(self, uri, home):
        self.connector, self._client = _first_spark(home)
        headers = {"Authorization": bearer(self.author)}
        self._client("attach", name="lance", uri=uri, headers=headers)

    def _sql(self, statement):
        return self._client("sql", statement=statement)

    def make(self, table, at):
        self._sql(f"CREATE TABLE lance.shop.{table} (id BIGINT, name STRING)")
        self.add(table, at)

    def add(self, table, at):
        self._sql(f"INSERT INTO lance.shop.{table} VALUES ({at}, '{self.author}')")  # noqa: S608  # the test's own

    def tables(self):
        return [row[1] for row in self._sql("SHOW TABLES IN lance.shop")]

    def ids(self, table):
        return [row[0] for row in self._sql(f"SELECT id FROM lance.shop.{table}")]  # noqa: S608  # the test's own

    def close(self):
        self._client.close()


def _first_spark(home):
    """Start the newest connector that can be had, and say which."""
    reasons = []
    for connector in CONNECTORS:
        try:
            return connector, start_spark(connector, home)
        except (NotBuiltError, NotHereError) as exc:
            reasons.append(str(exc))
    raise NotHereError("; ".join(reasons))


class PyIceberg:
    """PyIceberg, in a process of its own, which makes tables and reads no rows."""

    author = "di"

    def __init__(self, uri, home):
        credential = f"{self.author}:{secret_of(self.author)}"
        self._client = start_pyiceberg(home, uri=uri, credential=credential)

    def make(self, table, _at):
        self._client("create", namespace=SHOP, table=table)

    def tables(self):
        return self._client("tables", namespace=SHOP)

    def snapshot(self, table):
        return self._client("snapshot", namespace=SHOP, table=table)

    def close(self):
        self._client.close()


@pytest.fixture(scope="module")
def clients(served, tmp_path_factory):
    """Start those that can be had, by name, and tell why others cannot."""
    uri, home = served.uri.removesuffix("/iceberg"), tmp_path_factory.mktemp("home")
    found, missing = {"pylance": PyLance(f"{uri}/lance")}, {}
    kinds = {"lancedb": LanceDb, "lance-spark": LanceSpark, "pyiceberg": PyIceberg}
    for name, kind in kinds.items():
        try:
            base = served.uri if name == "pyiceberg" else f"{uri}/lance"
            found[name] = kind(base, home)
        except (NotBuiltError, NotHereError) as exc:
            missing[name] = exc
    yield found, missing
    for client in found.values():
        client.close()


@pytest.mark.peer("pylance-rest", they="list read write commit", on="Lance REST")
@pytest.mark.peer("lancedb", they="list read write commit", on="Lance REST")
@pytest.mark.peer("spark-4.1", they="list read write commit", on="Lance REST")
@pytest.mark.peer("spark-3.5", they="list read write commit", on="Lance REST")
@pytest.mark.peer("pyiceberg", they="list describe", on="Iceberg REST")
def test_all_clients_at_once_see_what_the_others_did(served, clients, record_property):
    working, missing = clients
    record_property(RAN, _names_of(working))
    rowed = {name: client for name, client in working.items() if hasattr(client, "add")}
    served.catalog.create_table("shop$shared", pa.table({"id": [], "name": []}, schema=SCHEMA))
    added: list[int] = []
    with ThreadPoolExecutor(len(working)) as pool:
        for at in range(ROUNDS):
            makes = [
                pool.submit(client.make, f"{client.author}_{at}", at) for client in working.values()
            ]
            _wait(makes)
            numbers = {name: at * 10 + nr for nr, name in enumerate(rowed)}
            _wait([pool.submit(rowed[name].add, "shared", nr) for name, nr in numbers.items()])
            added += numbers.values()
            # What was acknowledged is there for everybody.
            made = {f"{client.author}_{n}" for client in working.values() for n in range(at + 1)}
            listings = _wait([pool.submit(client.tables) for client in working.values()])
            assert all(made | {"shared"} == set(listed) for listed in listings)
            for ids in _wait([pool.submit(client.ids, "shared") for client in rowed.values()]):
                assert sorted(ids) == sorted(added)
            if "pyiceberg" in working:
                newest = served.catalog.table("shop$shared").version
                assert working["pyiceberg"].snapshot("shared") == newest
                table = f"{working['pyiceberg'].author}_{at}"
                _wait([pool.submit(client.ids, table) for client in rowed.values()])
    rows = served.catalog.table("shop$shared").to_arrow().to_pylist()
    assert sorted(row["id"] for row in rows) == sorted(added)
    assert {row["name"] for row in rows} == {client.author for client in rowed.values()}
    log = (served.root.parent / "serve.log").read_text().splitlines()
    subjects = {json.loads(line).get("subject") for line in log if line.startswith("{")}
    assert {client.author for client in working.values()} <= subjects
    if missing:
        told = "; ".join(f"{name}: {exc}" for name, exc in missing.items())
        pytest.skip(f"all but these passed, not run: {told}")


def _names_of(working):
    """Return who works, by name of the matrix."""
    return [PEERS.get(name) or client.connector for name, client in working.items()]


def _wait(futures):
    return [future.result() for future in futures]


@pytest.mark.peer("pylance-rest", they="read harmless", on="Lance REST")
@pytest.mark.peer("lancedb", they="read harmless", on="Lance REST")
@pytest.mark.peer("pyiceberg", they="list harmless", on="Iceberg REST")
def test_a_reader_reads_by_every_way_and_changes_nothing(
    served, clients, tmp_path, record_property
):
    working, _ = clients
    record_property(RAN, _names_of(working))
    base = served.uri.removesuffix("/iceberg")
    working["pylance"].make("for_readers", 1)
    before = served.catalog.list_tables("shop")
    properties = {"uri": f"{base}/lance", "header.Authorization": bearer("eve")}
    reader = spec.connect("rest", properties)
    place = {"namespace_client": reader, "table_id": [*SHOP, "for_readers"]}
    assert lance.dataset(**place).count_rows() == 1
    with pytest.raises(errors.PermissionDeniedError, match="eve"):
        reader.drop_table(spec.DropTableRequest(id=place["table_id"]))
    if "pyiceberg" in working:
        iceberg = start_pyiceberg(tmp_path, uri=served.uri, credential=f"eve:{secret_of('eve')}")
        assert "for_readers" in iceberg("tables", namespace=SHOP)
        with pytest.raises(PeerError, match="Forbidden"):
            iceberg("drop", namespace=SHOP, table="for_readers")
        iceberg.close()
    if "lancedb" in working:
        lancedb = start_lancedb(tmp_path)
        lancedb("connect", uri=f"{base}/lance", headers={"Authorization": bearer("eve")})
        assert lancedb("count", namespace=SHOP, table="for_readers") == 1
        with pytest.raises(PeerError, match="eve"):
            lancedb("drop", namespace=SHOP, table="for_readers")
        lancedb.close()
    assert served.catalog.list_tables("shop") == before


def test_the_snippets_of_the_guide_run(served, clients, tmp_path):
    working, missing = clients
    base = served.uri.removesuffix("/iceberg")
    starts = {"import lancedb": start_lancedb, "from pyiceberg": start_pyiceberg}
    served.catalog.drop_namespace("sales", cascade=True)
    for block in blocks_of(GUIDE, "py"):
        code = block.text.replace("http://127.0.0.1:8765", base)
        code = code.replace("etl:a secret", f"ada:{secret_of('ada')}")
        start = next((one for words, one in starts.items() if words in code), None)
        if start is None:
            exec(code, {})  # noqa: S102  # the guide's own
        elif start is start_lancedb and "lancedb" in working:
            client = start(tmp_path)
            client("run", code=code)
            client.close()
        elif start is start_pyiceberg and "pyiceberg" in working:
            client = start(tmp_path, uri=served.uri, credential=f"ada:{secret_of('ada')}")
            client("run", code=code)
            client.close()
    assert served.catalog.table("sales$items").count() == 3
    if set(missing) - {"lance-spark"}:
        pytest.skip(f"not run: {missing}")
