"""Real object stores for tests: moto, SeaweedFS, and rclone as the one that must be refused.

Each is started once a session (and worker), on a free port of 127.0.0.1, waited for by asking it,
and ended by its process id.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["BUCKET", "S3Server", "run_moto", "run_rclone", "run_seaweedfs"]

BUCKET = "lake"
ACCESS_KEY, SECRET_KEY = "mooring", "mooring-secret"
_HOST = "127.0.0.1"
_START_LIMIT_S = 60.0
_POLL_S = 0.05
_STOP_LIMIT_S = 1.0


@dataclass
class S3Server:
    """An S3 server that answers, with one bucket.

    Attributes:
        endpoint: Its URL.
        requests: How many requests of each kind it was sent, where the fixture can count:
            ``LIST``, ``HEAD``, ``GET``, ``PUT``, ``DELETE``, ``POST``.
    """

    endpoint: str
    requests: Counter[str] = field(default_factory=Counter)

    @property
    def options(self) -> dict[str, str]:
        """Storage options by which Mooring and Lance reach it."""
        return {
            "aws_access_key_id": ACCESS_KEY,
            "aws_secret_access_key": SECRET_KEY,
            "aws_endpoint": self.endpoint,
            "aws_region": "us-east-1",
            "allow_http": "true",
        }

    def uri(self, prefix: str) -> str:
        """Return the URI of a prefix of the bucket."""
        return f"s3://{BUCKET}/{prefix}"

    def make_bucket(self, name: str = BUCKET) -> None:
        """Create a bucket."""
        import boto3
        from botocore.config import Config

        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 10}),
        )
        client.create_bucket(Bucket=name)
        client.close()


@contextmanager
def run_moto() -> Iterator[S3Server]:
    """Serve moto's S3 from a thread, counting what arrives."""
    os.environ.setdefault("MOTO_S3_DEFAULT_KEY_BUFFER_SIZE", str(1 << 24))
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    requests: Counter[str] = Counter()
    inner = DomainDispatcherApplication(create_backend_app)

    def counting(environ, start_response):
        requests[_kind_of(environ)] += 1
        return inner(environ, start_response)

    server = make_server(_HOST, 0, counting, threaded=True)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        found = S3Server(f"http://{_HOST}:{server.server_port}", requests)
        found.make_bucket()
        requests.clear()
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _kind_of(environ: dict[str, str]) -> str:
    """Name a request; a GET of the bucket with a query is a listing."""
    method = environ["REQUEST_METHOD"]
    is_listing = method == "GET" and "list-type=" in environ.get("QUERY_STRING", "")
    return "LIST" if is_listing else method


@contextmanager
def run_seaweedfs(
    directory: Path, iceberg_port: int = 0, lance_port: int = 0
) -> Iterator[S3Server]:
    """Run SeaweedFS: master, volume, filer and S3 gateway in one process.

    Args:
        directory: Where its files lie.
        iceberg_port: Where its Iceberg catalog listens; there is none at 0.
        lance_port: Where its Lance REST listens; there is none at 0.
    """
    config = directory / "s3.json"
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    config.write_text(json.dumps({"identities": [identity]}))
    volumes = directory / "volumes"
    volumes.mkdir()
    ports = iter(_free_ports(8))
    command = [
        _tool("weed"),
        "server",
        f"-dir={volumes}",
        f"-ip={_HOST}",
        f"-ip.bind={_HOST}",
        f"-master.port={next(ports)}",
        f"-master.port.grpc={next(ports)}",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=32",
        f"-volume.port={next(ports)}",
        f"-volume.port.grpc={next(ports)}",
        "-filer",
        f"-filer.port={next(ports)}",
        f"-filer.port.grpc={next(ports)}",
        "-s3",
        f"-s3.port={(port := next(ports))}",
        f"-s3.port.grpc={next(ports)}",
        f"-s3.port.iceberg={iceberg_port}",
        f"-s3.port.lance={lance_port}",
        f"-s3.config={config}",
    ]
    with _process(command, directory / "weed.log", cwd=directory):
        endpoint = f"http://{_HOST}:{port}"
        _wait_for(lambda: _answers(f"{endpoint}/status"), "SeaweedFS", directory / "weed.log")
        found = S3Server(endpoint)
        found.make_bucket()
        yield found


@contextmanager
def run_rclone(directory: Path) -> Iterator[S3Server]:
    """Run ``rclone serve s3``, which accepts ``If-None-Match`` and ignores it."""
    served = directory / "served"
    (served / BUCKET).mkdir(parents=True)
    (port,) = _free_ports(1)
    command = [
        _tool("rclone"),
        "serve",
        "s3",
        str(served),
        f"--addr={_HOST}:{port}",
        f"--auth-key={ACCESS_KEY},{SECRET_KEY}",
        f"--config={directory / 'rclone.conf'}",
        "--vfs-cache-mode=off",
        f"--cache-dir={directory / 'cache'}",
    ]
    with _process(command, directory / "rclone.log", cwd=directory):
        endpoint = f"http://{_HOST}:{port}"
        _wait_for(lambda: _answers(endpoint), "rclone", directory / "rclone.log")
        yield S3Server(endpoint)


def _tool(name: str) -> str:
    """Find a program that a package of the environment brought."""
    return str(Path(sys.executable).parent / name)


def _free_ports(count: int) -> list[int]:
    """Let the system choose ports, holding all of them until the last is known."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((_HOST, 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


@contextmanager
def _process(command: list[str], log: Path, cwd: Path) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=cwd
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    """Whether an HTTP server is there, whatever it thinks of the question."""
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310  # our own server
            return True
    except urllib.error.HTTPError as exc:
        exc.close()
        return exc.code < 500
    except OSError:
        return False


def _wait_for(
    condition: Callable[[], bool], what: str, log: Path, limit_s: float = _START_LIMIT_S
) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            msg = f"{what} did not start in {limit_s:.0f} s:\n{log.read_text()[-2000:]}"
            raise RuntimeError(msg)
        time.sleep(_POLL_S)
