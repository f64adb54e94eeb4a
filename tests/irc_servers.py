"""Iceberg REST catalogs that nobody here wrote, as context managers.

Each runs on a port of its own until its context ends. Where a server's jar cannot be had, the
context raises `NotHereError`, and the tests that need it say that they were not run.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.interop.java_peers import NotHereError, find_jar, find_java
from tests.servers import (
    _HOST,
    ACCESS_KEY,
    BUCKET,
    SECRET_KEY,
    _answers,
    _free_ports,
    _process,
    _wait_for,
    run_seaweedfs,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers import S3Server

__all__ = ["IrcServer", "NotHereError", "run_fixture", "run_nessie", "run_seaweedfs_irc"]

FIXTURE = "org.apache.iceberg:iceberg-open-api:1.10.1"
NESSIE = "org.projectnessie.nessie:nessie-quarkus:0.99.0:jar:runner"
_NESSIE_NEEDS_JAVA = 21
_NESSIE_START_LIMIT_S = 180.0
TABLE_BUCKET = "tables"
_HEAP = "-Xmx768m"
_KEYS = "lake-keys.s3"
_SECRETS = "urn:nessie-secret:quarkus"


@dataclass(frozen=True)
class IrcServer:
    """An Iceberg REST catalog that answers.

    Attributes:
        name: What it is.
        uri: Its address.
        warehouse: Which of its catalogs.
        properties: By which Mooring opens it: ``uri``, ``warehouse``, ``credential``, ``root`` (a
            place where it lets tables lie), and ``storage.*``.
    """

    name: str
    uri: str
    warehouse: str | None
    properties: dict[str, str] = field(repr=False)


@contextmanager
def run_fixture(directory: Path) -> Iterator[IrcServer]:
    """Run the server that Apache Iceberg tests its clients with, on a local directory."""
    jar = find_jar(FIXTURE)
    (port,) = _free_ports(1)
    warehouse = directory / "warehouse"
    warehouse.mkdir()
    settings = {
        "CATALOG_WAREHOUSE": f"file://{warehouse}",
        "CATALOG_URI": f"jdbc:sqlite:{directory / 'catalog.db'}",
        "CATALOG_REST_PORT": str(port),
    }
    # The server takes its settings from the environment alone.
    command = ["env", *(f"{key}={value}" for key, value in settings.items())]
    command += [find_java(17), _HEAP, "-jar", str(jar)]
    uri = f"http://{_HOST}:{port}"
    log = directory / "fixture.log"
    with _process(command, log, cwd=directory):
        _wait_for(lambda: _answers(f"{uri}/v1/config"), "Iceberg's fixture", log)
        yield IrcServer("fixture", uri, None, {"uri": uri, "root": f"file://{warehouse}"})


@contextmanager
def run_nessie(directory: Path, s3: S3Server) -> Iterator[IrcServer]:
    """Run Nessie in memory, with its tables in a bucket of an S3 server."""
    jar, java = find_jar(NESSIE), find_java(_NESSIE_NEEDS_JAVA)
    port, other = _free_ports(2)
    storage = "nessie.catalog.service.s3.default-options"
    settings = {
        "quarkus.http.host": _HOST,
        "quarkus.http.port": port,
        "quarkus.management.host": _HOST,
        "quarkus.management.port": other,
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": BUCKET,
        f"nessie.catalog.warehouses.{BUCKET}.location": s3.uri("nessie/"),
        f"{storage}.region": "us-east-1",
        f"{storage}.endpoint": s3.endpoint,
        f"{storage}.path-style-access": "true",
        f"{storage}.auth-type": "STATIC",
        f"{storage}.access-key": f"{_SECRETS}:{_KEYS}",
        f"{_KEYS}.name": ACCESS_KEY,
        f"{_KEYS}.secret": SECRET_KEY,
    }
    options = [f"-D{key}={value}" for key, value in settings.items()]
    uri = f"http://{_HOST}:{port}/iceberg"
    log = directory / "nessie.log"
    with _process([java, _HEAP, *options, "-jar", str(jar)], log, cwd=directory):
        _wait_for(lambda: _answers(f"{uri}/v1/config"), "Nessie", log, _NESSIE_START_LIMIT_S)
        given = {"uri": uri, "warehouse": BUCKET, **_storage(s3)}
        yield IrcServer("nessie", uri, BUCKET, given)


@contextmanager
def run_seaweedfs_irc(directory: Path) -> Iterator[IrcServer]:
    """Run SeaweedFS with its Iceberg catalog, which asks for OAuth2 tokens."""
    (port,) = _free_ports(1)
    uri = f"http://{_HOST}:{port}"
    with run_seaweedfs(directory, iceberg_port=port) as s3:
        _wait_for(lambda: _answers(f"{uri}/v1/config"), "SeaweedFS", directory / "weed.log")
        _make_table_bucket(s3)
        given = {
            "uri": uri,
            "warehouse": TABLE_BUCKET,
            "credential": f"{ACCESS_KEY}:{SECRET_KEY}",
            # Tables lie two directories deep, or their files are refused.
            "root": f"s3://{TABLE_BUCKET}/lance",
            **_storage(s3),
        }
        yield IrcServer("seaweedfs", uri, TABLE_BUCKET, given)


def _storage(s3: S3Server) -> dict[str, str]:
    return {f"storage.{key}": value for key, value in s3.options.items()}


def _make_table_bucket(s3: S3Server) -> None:
    import boto3

    client = boto3.client(
        "s3tables",
        endpoint_url=s3.endpoint,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name="us-east-1",
    )
    client.create_table_bucket(name=TABLE_BUCKET)
    client.close()
