"""``mooring spark-conf``: the settings that point lance-spark's SQL catalog at a catalog."""

from __future__ import annotations

import re
import shlex
from typing import Annotated

import typer

from mooring.cli.options import OptionalUri, command
from mooring.cli.session import Session
from mooring.config import is_secret
from mooring.errors import InvalidInputError, UnsupportedError
from mooring.hints import lance_spark_settings

__all__ = ["spark_conf_command"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HIDDEN = "****"


@command
def spark_conf_command(
    session: Session,
    uri: OptionalUri = None,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="What SQL calls the catalog.")
    ] = "lance",
    show_secrets: Annotated[
        bool, typer.Option("--show-secrets", help="Write secrets of the store, too.")
    ] = False,
) -> None:
    """Print the settings with which Spark SQL finds this catalog through lance-spark.

    lance-spark is another program, for Java: SQL with UPDATE, DELETE, MERGE and the like on tables
    of a directory. What it commits does not pass through this catalog; nothing of it is needed for
    the data source 'mooring'. Without --show-secrets secrets are masked.
    """
    session = session.at(uri)
    settings = _settings(session, name)
    hidden = [key for key in settings if is_secret(key) and not show_secrets]
    shown = {key: _HIDDEN if key in hidden else value for key, value in settings.items()}
    if not session.output.is_for_people:
        rows = [{"key": key, "value": value} for key, value in shown.items()]
        session.output.rows(["key", "value"], rows)
    else:
        for key, value in shown.items():
            typer.echo(f"--conf {shlex.quote(f'{key}={value}')}")
    if hidden:
        session.output.message(f"{len(hidden)} secrets are masked: --show-secrets writes them")


def _settings(session: Session, name: str) -> dict[str, str]:
    """Return the settings of Spark.

    Raises:
        InvalidInputError: the name cannot be that of a catalog of Spark.
        UnsupportedError: lance-spark cannot open this kind of catalog.
    """
    from mooring.cli.listing import stored
    from mooring.opening import ICEBERG_SCHEME, METASTORE_SCHEME

    if not _NAME.fullmatch(name):
        msg = f"'{name}' cannot name a catalog of Spark SQL: use letters, digits and underscores"
        raise InvalidInputError(msg)
    if session.uri.startswith(METASTORE_SCHEME):
        msg = (
            "lance-spark opens directories of tables, and a metastore only through a REST server,"
            " which this release does not have yet: read and write its tables with the data source"
            " 'mooring'"
        )
        raise UnsupportedError(msg)
    if session.uri.startswith(ICEBERG_SCHEME):
        msg = (
            "lance-spark opens directories of tables, and this is an Iceberg catalog: read and"
            " write its tables with the data source 'mooring', which commits through it"
        )
        raise UnsupportedError(msg)
    store = stored(session.open_catalog()).store
    above = f"spark.sql.catalog.{name}"
    flags = {
        f"{above}.{flag}": "false"
        for flag in ("manifest_enabled", "dir_listing_enabled")
        if not session.is_enabled(flag)
    }
    storage = session.config.storage_options
    return {
        **lance_spark_settings(name),
        f"{above}.impl": "dir",
        f"{above}.root": store.location("").rstrip("/"),
        **flags,
        **{f"{above}.storage.{key}": value for key, value in sorted(storage.items())},
    }
