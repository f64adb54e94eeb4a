# ruff: noqa: INP001  # a script, not a package
"""The parts of the reference that the code writes: errors, operations, the Python interface, REST.

``python docs/generate.py`` brings errors.md, operations.md, python-api.md and mooring-rest.md in
docs/reference up to date. What stands above the marker is written by hand, everything below it
comes from the code; a test holds the files to it. mooring-rest.json is written whole.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mooring
from mooring import errors, metastore
from mooring.identifiers import ROOT
from mooring.metastore.metastore import Metastore
from mooring.metastore.transaction import Found, Transaction
from mooring.namespace.api import Change, PurgeReport, TableInfo
from mooring.namespace.lance import LanceAdapter
from mooring.namespace.states import DroppedTable
from mooring.server.mooring.document import make_document
from mooring.survey import COLUMNS, compare
from mooring.tables.api import VersionRecord
from mooring.tables.backfill import Backfilled
from mooring.tables.branches import Branch, Branches
from mooring.tables.changes import Changed
from mooring.tables.columns import Columns
from mooring.tables.commits import Committed
from mooring.tables.compaction import Cleaned, Compacted
from mooring.tables.comparison import RowChanges, VersionDiff
from mooring.tables.indexes import Index, Indexed, Indexes
from mooring.tables.log import LogEntry
from mooring.tables.schema_changes import SchemaChange
from mooring.tables.stats import TableStats
from mooring.tables.tags import Tag, Tags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["DOCUMENTS", "MARKER", "PACKAGES", "update"]

MARKER = "<!-- Below: written by python docs/generate.py -->"
# Everything that these export is public.
PACKAGES = (
    "mooring.changes",
    "mooring.ingest",
    "mooring.pipelines",
    "mooring.spark",
    "mooring.feed",
    "mooring.upkeep",
)
_HERE = Path(__file__).parent
_LONGEST = 80
_ARGUMENT_INDENT = 4
_SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Properties, all strings):")
_ITEM = re.compile(r"(\*{0,2}[\w.*]+): (.*)")


def update(text: str, render: Callable[[], str]) -> str:
    """Return a document with everything below the marker written anew."""
    by_hand = text.partition(MARKER)[0].rstrip()
    return f"{by_hand}\n\n{MARKER}\n\n{render()}"


# -- errors --------------------------------------------------------------------------------------


def render_errors() -> str:
    """Write the table of all errors, children after their parents."""
    lines = [
        "| error | is a | Lance code | HTTP | exit | retry | meaning |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [_error_row(kind) for kind in _walk(errors.MooringError)]
    return "\n".join(lines) + "\n"


def _walk(kind: type[errors.MooringError]) -> Iterator[type[errors.MooringError]]:
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _walk(child)


def _error_row(kind: type[errors.MooringError]) -> str:
    parent = kind.__base__.__name__ if kind.__base__ else ""
    meaning = " ".join(_plain(inspect.getdoc(kind) or "").split())
    retry = "yes" if kind.retryable else "no"
    cells = [f"`{kind.__name__}`", f"`{parent}`", kind.code, kind.http_status, kind.exit_code]
    return "| " + " | ".join(str(cell) for cell in [*cells, retry, meaning]) + " |"


# -- the Python interface ------------------------------------------------------------------------


def render_api() -> str:
    """Write every public name with its signature and docstring."""
    parts = [
        _entry("mooring.connect", mooring.connect, level=2),
        *_class("mooring.Catalog", mooring.Catalog),
        *_class("mooring.Table", mooring.Table),
        *_class("mooring.Table.columns", Columns),
        *_class("mooring.Table.indexes", Indexes),
        *_class("mooring.Table.tags", Tags),
        *_class("mooring.Table.branches", Branches),
        *_class("mooring.Catalog.metastore", Metastore),
        *_class("Transaction", Transaction),
        "## Objects of a metastore\n",
        *(
            _entry(f"mooring.metastore.{name}", getattr(metastore, name), level=3)
            for name in metastore.__all__
        ),
        "## Values\n",
        *(
            _entry(kind.__name__, kind, level=3)
            for kind in (
                mooring.Exists,
                mooring.SoftDeleted,
                mooring.NotFound,
                DroppedTable,
                TableInfo,
                Change,
                Found,
                PurgeReport,
                Changed,
                VersionRecord,
                Committed,
                Backfilled,
                Index,
                Indexed,
                Tag,
                Branch,
                LogEntry,
                VersionDiff,
                RowChanges,
                SchemaChange,
                TableStats,
                Compacted,
                Cleaned,
            )
        ),
        *(part for package in PACKAGES for part in _package(package)),
        _entry("mooring.MetastoreNamespace", mooring.MetastoreNamespace, level=2),
        _entry("mooring.IcebergNamespace", mooring.IcebergNamespace, level=2),
        _entry("mooring.RemoteNamespace", mooring.RemoteNamespace, level=2),
        _entry("mooring.DirectoryNamespace", mooring.DirectoryNamespace, level=2),
        *(
            method
            for group in LanceAdapter.__mro__
            if group.__module__.startswith("mooring.namespace.lance")
            for method in _methods("DirectoryNamespace.", group)
        ),
    ]
    return "\n".join(parts)


def _class(name: str, kind: type) -> Iterator[str]:
    yield f"## `{name}`\n\n{_prose(kind)}"
    yield from _methods(f"{kind.__name__}.", kind)


def _package(name: str) -> Iterator[str]:
    """Write what a package exports; methods stand below their class."""
    package = importlib.import_module(name)
    yield f"## `{name}`\n\n{_prose(package)}"
    for exported in package.__all__:
        thing = getattr(package, exported)
        if isinstance(thing, type) and issubclass(thing, Enum):
            yield _values(f"{name}.{exported}", thing)
            continue
        yield _entry(f"{name}.{exported}", thing, level=3)
        if inspect.isclass(thing):
            yield from _methods(f"{exported}.", thing, level=4)


def _values(name: str, kind: type[Enum]) -> str:
    values = ", ".join(f"`{one.value}`" for one in kind)
    return f"### `{name}`\n\n{_prose(kind)}\nOne of {values}.\n"


def _methods(prefix: str, kind: type, level: int = 3) -> Iterator[str]:
    for name, member in vars(kind).items():
        if name.startswith("_") or not _is_told(member):
            continue
        shown = getattr(kind, name) if isinstance(member, (classmethod, staticmethod)) else member
        yield _entry(f"{prefix}{name}", shown, level)


def _is_told(member: object) -> bool:
    """Tell methods and properties from fields, which the class itself tells."""
    kinds = (property, cached_property, classmethod, staticmethod)
    return isinstance(member, kinds) or inspect.isfunction(member)


def _entry(name: str, thing: object, level: int) -> str:
    heading = f"{'#' * level} `{name}`"
    if isinstance(thing, (property, cached_property)):
        return f"{heading}\n\n{_prose(thing)}"
    call = f"{name.rpartition('.')[2]}{_signature(thing)}"
    return f"{heading}\n\n```\n{call}\n```\n\n{_prose(thing)}"


def _signature(thing: object) -> str:
    signature = inspect.signature(thing)  # type: ignore[arg-type]  # a function or class
    shown = [_parameter(p) for p in signature.parameters.values() if p.name != "self"]
    kinds = [p.kind for p in signature.parameters.values() if p.name != "self"]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        shown.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returned = "" if inspect.isclass(thing) else f" -> {_annotation(signature.return_annotation)}"
    line = f"({', '.join(shown)}){returned}"
    return line if len(line) < _LONGEST else "(\n    " + ",\n    ".join(shown) + f",\n){returned}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_KEYWORD: "**", inspect.Parameter.VAR_POSITIONAL: "*"}
    text = f"{stars.get(parameter.kind, '')}{parameter.name}: {_annotation(parameter.annotation)}"
    if parameter.default is inspect.Parameter.empty:
        return text
    return f"{text} = {_default(parameter.default)}"


def _default(value: object) -> str:
    if isinstance(value, Enum):
        return repr(value.value)
    return "ROOT" if value == ROOT else repr(value)


def _annotation(annotation: object) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "object")
    return text.replace("spec.", "")


def _prose(thing: object) -> str:
    """Turn a docstring into Markdown: its sections become lists."""
    lines: list[str] = []
    section = ""
    for line in (inspect.getdoc(thing) or "").splitlines():
        text = _plain(line.strip())
        if match := _SECTION.fullmatch(text):
            section = match[1]
            lines += [f"{section}:", ""]
        elif section and (match := _ITEM.fullmatch(text)) and _indent(line) == _ARGUMENT_INDENT:
            lines.append(f"- `{match[1]}`: {match[2]}")
        elif section and text:
            lines.append(f"  {text}" if _indent(line) > _ARGUMENT_INDENT else text)
        else:
            lines.append(text)
    return "\n".join(lines).rstrip() + "\n"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _plain(text: str) -> str:
    return text.replace("``", "`")


# -- operations ----------------------------------------------------------------------------------


def render_operations() -> str:
    """Write which operation every mode supports, beside the reference implementation."""
    lines = [
        "| operation | " + " | ".join(COLUMNS) + " | note |",
        "|---|" + "---|" * (len(COLUMNS) + 1),
    ]
    lines += [
        "| " + " | ".join(str(cell or "") for cell in row.values()) + " |" for row in compare()
    ]
    return "\n".join(lines) + "\n"


# -- Mooring's own REST interface ----------------------------------------------------------------


def render_rest() -> str:
    """Write every address with what it takes and gives, and then all shapes."""
    document = make_document()
    schemas = document["components"]["schemas"]
    lines = ["| address | role | what it does | takes | gives |", "|---|---|---|---|---|"]
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            takes = _shape_in(told.get("requestBody", {}))
            gives = _shape_in(told["responses"]["200"])
            role = told.get("x-mooring-role", "anybody")
            cells = [f"`{method.upper()} {path}`", role, told["summary"], takes, gives]
            lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "## Parameters", "", "| address | parameter | meaning |", "|---|---|---|"]
    lines += [
        f"| `{path}` | `{one['name']}` | {one['description']} |"
        for path, methods in document["paths"].items()
        for told in methods.values()
        for one in told.get("parameters", ())
        if one["in"] != "path" and one["name"] != "delimiter"
    ]
    lines += ["", "## Shapes", ""]
    for name, schema in schemas.items():
        lines += [f"### {name}", "", f"{schema.get('description', '')}", "", *_fields_of(schema)]
    return "\n".join(lines).rstrip() + "\n"


def _shape_in(told: dict[str, Any]) -> str:
    """Name the shape of a body; of other media their type."""
    for media, content in told.get("content", {}).items():
        if "$ref" in content["schema"]:
            return _type_of(content["schema"])
        return f"`{media}`"
    return ""


def _fields_of(schema: dict[str, Any]) -> list[str]:
    if not schema.get("properties"):
        return []
    rows = [
        f"| `{name}` | {_type_of(one)} | {'' if name in schema['required'] else 'may be absent'} |"
        f" {one.get('description', '')} |"
        for name, one in schema["properties"].items()
    ]
    return ["| field | type | | meaning |", "|---|---|---|---|", *rows, ""]


def _type_of(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return _shape_link(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_type_of(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type_of(schema['items'])}"
    if schema.get("type") == "object" and schema.get("additionalProperties"):
        return f"map to {_type_of(schema['additionalProperties'])}"
    return str(schema.get("type", "anything"))


def _shape_link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


DOCUMENTS: dict[str, Callable[[], str]] = {
    "reference/errors.md": render_errors,
    "reference/mooring-rest.md": render_rest,
    "reference/operations.md": render_operations,
    "reference/python-api.md": render_api,
}


def main() -> None:
    """Bring the documents up to date."""
    for name, render in DOCUMENTS.items():
        path = _HERE / name
        path.write_text(update(path.read_text(encoding="utf-8"), render), encoding="utf-8")
        sys.stdout.write(f"{path} is up to date\n")
    published = json.dumps(make_document(), indent=2, ensure_ascii=False)
    (_HERE / "reference/mooring-rest.json").write_text(f"{published}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
