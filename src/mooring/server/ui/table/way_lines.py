"""The lines with which programs open one version of one table, by one way to its catalog.

Names and addresses are literals of the language that a line is in, whatever is in them. Secrets are
never written: where one is needed, the line takes it from the environment.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from mooring.hints import lance_spark_settings
from mooring.identifiers import DELIMITER
from mooring.server.ui.command_lines import command_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["CREDENTIAL", "Wanted", "Way", "curl_lines"]

# What the command reads by itself, and lines in Python from the environment.
CREDENTIAL = "MOORING_LANCE_CREDENTIAL"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENVIRONMENT = f'os.environ["{CREDENTIAL}"]'


@dataclass(frozen=True, slots=True)
class Wanted:
    """A version of a table.

    Attributes:
        names: The table.
        version: Its number; None for whatever is the newest.
        tag: A tag that names it, if it is asked for by that.
        branch: Its branch; None for main.
    """

    names: tuple[str, ...]
    version: int | None = None
    tag: str | None = None
    branch: str | None = None

    @property
    def key(self) -> str:
        """The table, as commands and options take it."""
        return DELIMITER.join(self.names)

    @property
    def chosen(self) -> dict[str, int | str]:
        """What tells the version; a tag names the branch, too."""
        if self.tag is not None:
            return {"tag": self.tag}
        told = {"version": self.version, "branch": self.branch}
        return {name: value for name, value in told.items() if value is not None}

    @property
    def view(self) -> str:
        """What SQL may call the table."""
        name = self.names[-1]
        return name if _IDENTIFIER.fullmatch(name) else "the_table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a catalog is opened.

    Attributes:
        uri: Its address for Mooring.
        options: What ``mooring.connect`` takes beside it.
        flags: The same for commands.
        asks: Whether a credential is needed.
        namespace: The class by which Lance opens it, with its properties; None where there is none.
    """

    uri: str
    options: Mapping[str, bool]
    flags: Sequence[str]
    asks: bool
    namespace: tuple[str, Mapping[str, str]] | None

    # -- Python ------------------------------------------------------------------------------------

    def mooring(self, wanted: Wanted) -> str:
        """Open it with Mooring."""
        given = "".join(f", {name}={value!r}" for name, value in wanted.chosen.items())
        return self._python(
            ["import mooring"],
            f"catalog = {self._connect()}",
            f"table = catalog.table({list(wanted.names)!r})",
            f"rows = table.query(limit=10{given}).read_all()",
        )

    def changes(self, wanted: Wanted) -> str:
        """Open a table of changes with Mooring."""
        return self._python(
            ["import mooring", "from mooring.changes import ChangeTable"],
            f"catalog = {self._connect()}",
            f"table = ChangeTable(catalog, {list(wanted.names)!r})",
            "rows = table.to_arrow()",
        )

    def lance(self, wanted: Wanted) -> str:
        """Open it with Lance."""
        version = wanted.version if wanted.tag is None else wanted.tag
        at = "" if version is None or wanted.branch else f", version={version!r}"
        lines = [
            f"names = lance_namespace.connect({self._namespace()})",
            f"dataset = lance.dataset(namespace_client=names, table_id={list(wanted.names)!r}{at})",
        ]
        if wanted.branch:
            lines.append(
                f"dataset = dataset.checkout_version(({wanted.branch!r}, {wanted.version!r}))"
            )
        return self._python(
            ["import lance", "import lance_namespace"], *lines, "rows = dataset.to_table(limit=10)"
        )

    def lancedb(self, wanted: Wanted) -> str:
        """Open it with lancedb, which knows versions by their numbers."""
        *above, name = wanted.names
        lines = [
            f"db = lancedb.connect_namespace({self._namespace()})",
            f"table = db.open_table({name!r}, namespace_path={above!r})",
        ]
        if wanted.version is not None:
            lines.append(f"table.checkout({wanted.version!r})")
        return self._python(["import lancedb"], *lines, "rows = table.head(10)")

    # -- Spark -------------------------------------------------------------------------------------

    def spark(self, wanted: Wanted) -> str:
        """Open it as a data frame of Spark, and ask it with SQL."""
        select = f"SELECT * FROM {wanted.view} LIMIT 10"  # noqa: S608  # a line to copy; the name is a plain one
        return self._python(
            ["from mooring.spark.session import open_session"],
            "spark = open_session()",
            "rows = (",
            '    spark.read.format("mooring")',
            *(f"    .option({name!r}, {value})" for name, value in self._spark_options(wanted)),
            "    .load()",
            ")",
            f"rows.createOrReplaceTempView({wanted.view!r})",
            f"spark.sql({select!r}).show()",
        )

    def lance_spark_settings(self) -> str:
        """Point lance-spark's SQL catalog at the catalog."""
        above = "spark.sql.catalog.lance"
        name, properties = self.namespace or ("", {})
        settings = {
            **lance_spark_settings("lance"),
            f"{above}.impl": "rest" if name == "rest" else "dir",
            **{f"{above}.{key}": value for key, value in properties.items()},
        }
        lines = [f"--conf {shlex.quote(f'{key}={value}')}" for key, value in settings.items()]
        if self.asks:
            bearer = f"{above}.header.Authorization=Bearer ${CREDENTIAL}"
            lines.append(f'--conf "{bearer}"')
        return " \\\n  ".join(["spark-sql", *lines])

    def lance_spark(self, wanted: Wanted) -> str:
        """Ask it with lance-spark's SQL."""
        name = ".".join(f"`{one.replace('`', '``')}`" for one in wanted.names)
        at = "" if wanted.version is None else f" VERSION AS OF {wanted.version}"
        return f"SELECT * FROM lance.{name}{at} LIMIT 10;"  # noqa: S608  # a line to copy, its names quoted

    # -- a shell -----------------------------------------------------------------------------------

    def commands(self, wanted: Wanted) -> str:
        """Look at it with the command."""
        at = [f"--{name}={value}" for name, value in wanted.chosen.items()]
        mooring = ["mooring", "-c", self.uri, *self.flags, "table"]
        lines = [
            command_line([*mooring, "schema", *at], wanted.key),
            command_line([*mooring, "count", *at], wanted.key),
            command_line([*mooring, "query", "--limit=10", *at], wanted.key),
            command_line([*mooring, "query", "--to=rows.parquet", *at], wanted.key),
        ]
        return "\n".join([*self._exported(), *lines])

    def changes_commands(self, wanted: Wanted) -> str:
        """Look at a table of changes with the command."""
        mooring = ["mooring", "-c", self.uri, *self.flags, "changes"]
        lines = [command_line([*mooring, verb], wanted.key) for verb in ("show", "log", "read")]
        return "\n".join([*self._exported(), *lines])

    # -- parts -------------------------------------------------------------------------------------

    def _exported(self) -> list[str]:
        return [f"export {CREDENTIAL}='ID:SECRET'"] if self.asks else []

    def _python(self, imports: Sequence[str], *lines: str) -> str:
        needed = ["import os", *imports] if self.asks else imports
        return "\n".join([*needed, "", *lines])

    def _connect(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self.options.items())
        if self.asks:
            given += f', storage_options={{"lance.credential": {_ENVIRONMENT}}}'
        return f"mooring.connect({self.uri!r}{given})"

    def _namespace(self) -> str:
        name, properties = self.namespace or ("", {})
        pairs = [f"{key!r}: {value!r}" for key, value in properties.items()]
        if self.asks:
            pairs.append(f'"header.Authorization": "Bearer " + {_ENVIRONMENT}')
        return f"{name!r}, {{{', '.join(pairs)}}}"

    def _spark_options(self, wanted: Wanted) -> list[tuple[str, str]]:
        told = {"catalog": self.uri, "table": wanted.key, **wanted.chosen}
        options = [(name, repr(value)) for name, value in told.items()]
        options += [(name, repr(str(value).lower())) for name, value in self.options.items()]
        if self.asks:
            options.append(("storage.lance.credential", _ENVIRONMENT))
        return options


def curl_lines(base: str, catalog: str, wanted: Wanted, *, asks: bool) -> str:
    """Ask for it by HTTP: what it is, by Lance's protocol, and its first rows as JSON.

    Args:
        base: The server's address.
        catalog: The catalog's name.
        wanted: The version of the table.
        asks: Whether a credential is needed.
    """
    name = quote(wanted.key, safe="")
    header = f' -H "Authorization: Bearer ${CREDENTIAL}"' if asks else ""
    body = {} if wanted.version is None else {"version": wanted.version}
    describe = f"{base}/lance/{catalog}/v1/table/{name}/describe"
    rows = f"{base}/catalogs/{quote(catalog, safe='')}/tables/{name}/rows.json"
    query = "&".join(f"{key}={quote(str(value), safe='')}" for key, value in wanted.chosen.items())
    sent = f"-H 'content-type: application/json' -d {shlex.quote(json.dumps(body))}"
    return (
        f"curl -X POST {shlex.quote(describe)}{header} {sent}\n"
        f"curl {shlex.quote(rows + (f'?{query}' if query else ''))}{header}"
    )
