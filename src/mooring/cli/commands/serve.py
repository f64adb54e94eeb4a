"""``mooring serve``: a catalog for clients that speak HTTP."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.background import (
    ByItself,
    PurgeEvery,
    Survey,
    WatchEvery,
    Webhooks,
    WebhookSecretFile,
)
from mooring.cli.invitation import invite
from mooring.cli.operating import (
    DataThreads,
    Drain,
    Grace,
    LogAs,
    LogFrom,
    LogImportance,
    MetricsAnonymous,
    MostWaiting,
    Operating,
    RequestTimeout,
    Threads,
    WorkerCount,
)
from mooring.cli.options import command
from mooring.cli.served_catalogs import (
    CATALOGS,
    DEFAULT_NAME,
    CatalogName,
    NamedCatalogs,
    ServedUri,
    WantedCatalog,
    wanted_catalogs,
)
from mooring.cli.server_run import ServerRun, require_server
from mooring.cli.serving import (
    AllowAnonymous,
    AllowedHosts,
    AuditFile,
    CredentialsFile,
    Protection,
    TlsCert,
    TlsClientCa,
    TlsKey,
    VendCredentials,
    VendDuration,
    VendEndpoint,
    VendRole,
)
from mooring.cli.session import Session
from mooring.errors import InvalidInputError

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from mooring.server.settings import ServerSettings
    from mooring.server.supervisor import Worker

__all__ = ["serve_command"]

_KEY_BYTES = 32
_ADDRESS = "Address"  # how the help groups them


@command
def serve_command(
    session: Session,
    uri: ServedUri = None,
    catalog: NamedCatalogs = None,
    name: CatalogName = DEFAULT_NAME,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDRESS", rich_help_panel=_ADDRESS, help="The address to listen on."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            rich_help_panel=_ADDRESS,
            help="The port; 0 is any that is free.",
        ),
    ] = 8765,
    root_namespace: Annotated[
        str,
        typer.Option(
            "--root-namespace",
            metavar="NAME",
            rich_help_panel=CATALOGS,
            help="The namespace in which Iceberg clients see tables that lie in none.",
        ),
    ] = "root",
    credentials: CredentialsFile = None,
    allow_anonymous: AllowAnonymous = False,
    allowed_host: AllowedHosts = None,
    vend_credentials: VendCredentials = False,
    vend_role: VendRole = None,
    vend_duration: VendDuration = 3600,
    vend_endpoint: VendEndpoint = None,
    audit_log: AuditFile = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    tls_client_ca: TlsClientCa = None,
    workers: WorkerCount = 1,
    threads: Threads = 16,
    data_threads: DataThreads = 8,
    most_waiting: MostWaiting = 512,
    request_timeout: RequestTimeout = 300,
    drain: Drain = 0,
    grace: Grace = 30,
    metrics_anonymous: MetricsAnonymous = False,
    log_format: LogAs = None,
    log_level: LogFrom = LogImportance.INFO,
    webhook: Webhooks = None,
    webhook_secret_file: WebhookSecretFile = None,
    watch_every: WatchEvery = "1s",
    purge_every: PurgeEvery = None,
    survey: Survey = True,
) -> None:
    """Serve catalogs to people, Lance clients and Iceberg clients, until Ctrl-C or SIGTERM.

    Pages for people are at /, Lance's REST protocol is under /lance, an Iceberg REST catalog with
    every Lance table under /iceberg, what only Mooring has under /mooring; beside them
    /health/live, /health/ready and /metrics. Several catalogs are chosen by name: /lance/NAME, the
    warehouse NAME, /mooring/NAME. With --read-only nothing can be changed.
    """
    catalogs = wanted_catalogs(session, uri, catalog or (), name)
    operating = Operating(
        workers=workers,
        threads=threads,
        data_threads=data_threads,
        most_waiting=most_waiting,
        request_timeout_s=request_timeout,
        drain_s=drain,
        grace_s=grace,
        metrics_anonymous=metrics_anonymous,
        log_format=log_format,
        log_level=log_level,
    )
    require_server()
    from mooring.server.settings import ServerSettings
    from mooring.server.supervisor import Worker

    worker = Worker.here(os.environ)
    protection = Protection(
        credentials=credentials,
        allow_anonymous=allow_anonymous,
        allowed_hosts=tuple(allowed_host or ()),
        vend_credentials=vend_credentials,
        vend_role=vend_role,
        vend_duration_s=vend_duration,
        vend_endpoint=vend_endpoint,
        audit_log=audit_log,
        tls_cert=tls_cert,
        tls_key=tls_key,
        tls_client_ca=tls_client_ca,
    )
    if purge_every is not None and session.flags.read_only:
        raise InvalidInputError("--purge-every deletes, and --read-only forbids it: choose one")
    by_itself = ByItself(
        tuple(webhook or ()), webhook_secret_file, watch_every, purge_every, survey=survey
    )
    settings = protection.apply(ServerSettings(root_namespace=root_namespace), session)
    settings = by_itself.apply(settings, os.environ)
    serving = _Serving(session, catalogs, operating.apply(settings, worker), operating, protection)
    operating.configure_logs()
    if worker is not None:
        serving.work(worker)
        return
    from mooring.server.running import bind

    with bind(host, port) as taken:
        protection.check_reach(settings, host, taken)
        serving.serve(taken)


@dataclass(frozen=True, slots=True)
class _Serving:
    """A server that is to be run."""

    session: Session
    catalogs: Sequence[WantedCatalog]
    settings: ServerSettings
    operating: Operating
    protection: Protection

    def serve(self, taken: socket.socket) -> None:
        """Serve on a socket until told to end."""
        if self.operating.workers > 1:
            self._watch(taken)
            return
        self._run.run(taken, lambda _: self._tell(taken))

    def work(self, worker: Worker) -> None:
        """Serve as one of several processes."""
        self._run.run(worker.taken, lambda _: worker.say_ready(), worker.channel)

    @property
    def _run(self) -> ServerRun:
        quiet = self.session.flags.quiet
        return ServerRun(self.catalogs, self.settings, self.operating, quiet=quiet)

    def _watch(self, taken: socket.socket) -> None:
        """Have several processes serve."""
        from mooring.server.supervisor import Supervisor, this_command

        key = secrets.token_bytes(_KEY_BYTES)
        supervisor = Supervisor(taken, self.operating.workers, key)
        code = supervisor.run(this_command(), lambda: self._tell(taken))
        if code:
            raise typer.Exit(code)

    def _tell(self, taken: socket.socket) -> None:
        from mooring.server.running import address_of

        scheme = "http" if self.settings.tls is None else "https"
        asks_nobody = self.settings.asks_nobody
        base = f"{scheme}://{address_of(taken)}"
        invite(self.session, self.catalogs, base, asks_nobody=asks_nobody)
        for line in self.protection.idle(self.settings, {one.name for one in self.catalogs}):
            self.session.output.message(line)
        is_read_only = bool(self.session.flags.read_only)
        for line in self.protection.notices(self.settings, taken, is_read_only=is_read_only):
            self.session.output.message(line)
