"""A pipeline from its YAML file: all that is wrong with it is told with its line and column."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mooring.errors import InvalidInputError
from mooring.identifiers import quote
from mooring.pipelines.definition import (
    ChangesSource,
    Creation,
    Expectation,
    FilesSource,
    OnFailure,
    Output,
    Pipeline,
    Publication,
    PythonStep,
    SqlStep,
    TableSource,
)
from mooring.pipelines.functions import FunctionName, find_function
from mooring.pipelines.graph import in_order
from mooring.pipelines.parameters import fill_in, parse_parameters, settle
from mooring.pipelines.sql_names import table_names
from mooring.pipelines.yaml_file import near, read_yaml

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mooring.pipelines.definition import Source, Step
    from mooring.pipelines.parameters import ParameterValue
    from mooring.pipelines.yaml_file import Place, Value

__all__ = ["CHANGES", "load_pipeline"]

CHANGES = ("append", "upsert", "delete", "replace")
_TOP = ("name", "description", "catalog", "parameters", "sources", "steps", "outputs")
_OF_CSV = ("delimiter", "header", "null_values")
_SOURCES = {
    "files": ("files", "format", *_OF_CSV),
    "table": ("table", "version", "tag", "position"),
    "changes": ("changes", "after"),
}
_OF_EXPECTATIONS = ("name", "check", "on_failure", "table", "max_fraction")
_OF_OUTPUTS = ("from", "table", "change", "create", "publish")
_OF_CREATION = ("keys", "order", "partition_by", "sort_by", "buckets")
_PUBLISHED = ("into", "columns", "vector", "indexes")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PIPELINE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")
# What functions are given besides data frames.
RESERVED = ("spark", "parameters")


def load_pipeline(path: str | Path, given: Mapping[str, str] | None = None) -> Pipeline:
    """Read a pipeline and give its parameters their values.

    Args:
        path: Its YAML file.
        given: Values of parameters, as texts.

    Raises:
        NotFoundError: there is no such file.
        InvalidInputError: something is wrong with it; the line and column are named.
        MissingExtraError: the package that reads YAML is not installed.
    """
    file = Path(path)
    top = read_yaml(file).mapping("a pipeline", _TOP)
    for key in ("name", "sources", "outputs"):
        if key not in top:
            raise InvalidInputError(f"{file}: the pipeline has no {quote(key)}, which it needs")
    names = _Names()
    parameters = parse_parameters(top.get("parameters"), names.take)
    values = settle(parameters, given or {}, str(file))
    fill = fill_in(values)
    filled = {key: value.filled(fill) for key, value in top.items() if key != "parameters"}
    return _Loader(file, names, values).load(filled)


class _Names:
    """The names that are taken, whatever their case: Spark does not tell it apart."""

    def __init__(self) -> None:
        self._taken: dict[str, Place] = {}

    def take(self, name: str, place: Place) -> None:
        if not _NAME.fullmatch(name) or name in RESERVED:
            why = "is given to functions" if name in RESERVED else "has other characters"
            msg = f"{quote(name)} cannot be a name here, it {why}: use letters, digits and _"
            raise place.error(msg)
        if name.lower() in self._taken:
            line = self._taken[name.lower()].line
            raise place.error(f"{quote(name)} is the name of something else: see line {line}")
        self._taken[name.lower()] = place


class _Loader:
    """Reads the sections of one file."""

    def __init__(self, file: Path, names: _Names, values: dict[str, ParameterValue]) -> None:
        self._file = file
        self._around = file.absolute().parent
        self._names = names
        self._values = values

    def load(self, top: Mapping[str, Value]) -> Pipeline:
        sources = self._sources(top["sources"])
        steps = self._steps(top.get("steps"), sources)
        in_order(steps)
        outputs = self._outputs(top["outputs"], [*sources, *steps])
        return Pipeline(
            self._pipeline_name(top["name"]),
            top["description"].text("the description") if "description" in top else None,
            self._place_of(top["catalog"].text("the catalog")) if "catalog" in top else None,
            self._file,
            self._values,
            sources,
            steps,
            outputs,
        )

    def _pipeline_name(self, value: Value) -> str:
        name = value.text("the name")
        if not _PIPELINE_NAME.fullmatch(name):
            msg = f"{quote(name)} cannot name a pipeline: use letters, digits, '-', '_' and '.'"
            raise value.place.error(msg)
        return name

    def _place_of(self, uri: str) -> str:
        """Take a path from where the file lies, wherever the command is run."""
        scheme = "metastore+" if uri.startswith("metastore+") else ""
        rest = uri.removeprefix(scheme)
        return uri if "://" in rest else f"{scheme}{self._around / Path(rest).expanduser()}"

    # -- sources ---------------------------------------------------------------------------------

    def _sources(self, section: Value) -> dict[str, Source]:
        found: dict[str, Source] = {}
        for name, value in section.mapping("sources").items():
            self._names.take(name, value.place)
            found[name] = self._source(name, value)
        if not found:
            raise section.place.error("a pipeline needs at least one source")
        return found

    def _source(self, name: str, value: Value) -> Source:
        what = f"source {quote(name)}"
        keys = value.mapping(what)
        kinds = [kind for kind in _SOURCES if kind in keys]
        if len(kinds) != 1:
            told = " and ".join(map(quote, kinds)) or f"only {', '.join(map(quote, keys))}"
            if not keys:
                told = "nothing"
            msg = f"{what} has one of 'files', 'table' and 'changes', and here is {told}"
            raise value.place.error(msg)
        keys = value.mapping(f"{what} of {kinds[0]}", _SOURCES[kinds[0]])
        match kinds[0]:
            case "files":
                return self._files(name, keys, value.place)
            case "table":
                return _table(name, keys, value.place)
            case _:
                after = keys["after"].number(f"'after' of {what}") if "after" in keys else 0
                table = keys["changes"].text(f"'changes' of {what}")
                return ChangesSource(name, table, after, value.place)

    def _files(self, name: str, keys: Mapping[str, Value], place: Place) -> FilesSource:
        what = f"source {quote(name)}"
        paths = keys["files"].texts(f"'files' of {what}")
        kind = keys["format"].text(f"'format' of {what}") if "format" in keys else None
        if kind is not None:
            from mooring.ingest.sources import parse_kind

            try:
                parse_kind(kind)
            except InvalidInputError as exc:
                raise keys["format"].place.error(str(exc)) from exc
        nulls = keys.get("null_values")
        return FilesSource(
            name,
            tuple(self._place_of(path) for path in paths),
            kind,
            keys["delimiter"].name(f"'delimiter' of {what}") if "delimiter" in keys else None,
            keys["header"].flag(f"'header' of {what}") if "header" in keys else True,
            ("",) if nulls is None else _null_values(nulls, what),
            place,
        )

    # -- steps -----------------------------------------------------------------------------------

    def _steps(self, section: Value | None, sources: Mapping[str, Source]) -> dict[str, Step]:
        if section is None:
            return {}
        values = section.mapping("steps")
        for name, value in values.items():
            self._names.take(name, value.place)
        known = [*sources, *values]
        return {name: self._step(name, value, known) for name, value in values.items()}

    def _step(self, name: str, value: Value, known: Collection[str]) -> Step:
        what = f"step {quote(name)}"
        keys = value.mapping(what, ("sql", "python", "expectations"))
        if ("sql" in keys) == ("python" in keys):
            raise value.place.error(f"{what} has either 'sql' or 'python'")
        expectations = self._expectations(keys.get("expectations"), what)
        if "python" in keys:
            return self._python(name, keys["python"], known, expectations, value.place)
        sql = keys["sql"].text(f"'sql' of {what}")
        needs = _needs_of_sql(keys["sql"], sql, known)
        return SqlStep(name, sql, needs, expectations, value.place)

    def _python(  # noqa: PLR0917  # what a step is made of
        self,
        name: str,
        value: Value,
        known: Collection[str],
        expectations: tuple[Expectation, ...],
        place: Place,
    ) -> PythonStep:
        try:
            function = FunctionName.parse(value.text(f"'python' of step {quote(name)}"))
            source = find_function(function, self._around)
        except InvalidInputError as exc:
            if str(exc).startswith(str(self._file)):
                raise
            raise value.place.error(str(exc)) from exc
        may_be = {*known, *self._values, *RESERVED}
        for argument in source.arguments:
            if argument not in may_be:
                msg = (
                    f"argument {quote(argument)} of {function} is no source, step or parameter"
                    f"{near(argument, may_be)}"
                )
                raise value.place.error(msg)
        needs = tuple(one for one in source.arguments if one in known)
        return PythonStep(name, function, source, needs, expectations, place)

    def _expectations(self, section: Value | None, what: str) -> tuple[Expectation, ...]:
        found: dict[str, Expectation] = {}
        for value in [] if section is None else section.items(f"'expectations' of {what}"):
            one = _expectation(value, what)
            if one.name in found:
                raise value.place.error(f"{what} has two expectations {quote(one.name)}")
            found[one.name] = one
        return tuple(found.values())

    # -- outputs ---------------------------------------------------------------------------------

    def _outputs(self, section: Value, known: Collection[str]) -> tuple[Output, ...]:
        found: dict[str, Output] = {}
        for value in section.items("outputs"):
            one = _output(value, known, self._around)
            if one.label in found:
                line = found[one.label].place.line
                raise value.place.error(f"this output comes twice: see line {line}")
            found[one.label] = one
        if not found:
            raise section.place.error("a pipeline needs at least one output")
        return tuple(found.values())


def _table(name: str, keys: Mapping[str, Value], place: Place) -> TableSource:
    what = f"source {quote(name)}"
    which = [key for key in ("version", "tag", "position") if key in keys]
    if len(which) > 1:
        told = " and ".join(map(quote, which))
        raise place.error(f"{what} is read at one moment, and here are {told}")
    return TableSource(
        name,
        keys["table"].text(f"'table' of {what}"),
        keys["version"].number(f"'version' of {what}", least=1) if "version" in keys else None,
        keys["tag"].text(f"'tag' of {what}") if "tag" in keys else None,
        keys["position"].number(f"'position' of {what}") if "position" in keys else None,
        place,
    )


def _null_values(value: Value, what: str) -> tuple[str, ...]:
    if value.kind != "list":
        return (value.name(f"'null_values' of {what}"),)
    return tuple(one.name(f"an item of 'null_values' of {what}") for one in value.items(what))


def _needs_of_sql(value: Value, sql: str, known: Collection[str]) -> tuple[str, ...]:
    """Find what a query reads; other tables than sources and steps are none of its business."""
    by_case = {name.lower(): name for name in known}
    needs: dict[str, None] = {}
    for one in table_names(sql):
        if one.name.lower() not in by_case:
            msg = f"the query names {quote(one.name)}, which is no source or step"
            raise value.place_at(one.offset).error(f"{msg}{near(one.name, known)}")
        needs[by_case[one.name.lower()]] = None
    return tuple(needs)


def _expectation(value: Value, of: str) -> Expectation:
    what = f"an expectation of {of}"
    keys = value.mapping(what, _OF_EXPECTATIONS)
    for key in ("name", "check"):
        if key not in keys:
            raise value.place.error(f"{what} needs {quote(key)}")
    name = keys["name"].text(f"the name of {what}")
    action = OnFailure.FAIL
    if "on_failure" in keys:
        told = keys["on_failure"].choice(f"'on_failure' of {what}", list(OnFailure))
        action = OnFailure(told)
    if (action is OnFailure.QUARANTINE) != ("table" in keys):
        msg = f"expectation {quote(name)} names the table of the rejected rows with 'table'"
        msg += ", which goes with on_failure: quarantine"
        raise value.place.error(msg)
    most = 1.0 if action is not OnFailure.FAIL else 0.0
    return Expectation(
        name,
        keys["check"].text(f"'check' of expectation {quote(name)}"),
        action,
        keys["table"].text(f"'table' of expectation {quote(name)}") if "table" in keys else None,
        keys["max_fraction"].fraction(f"'max_fraction' of expectation {quote(name)}")
        if "max_fraction" in keys
        else most,
        value.place,
    )


def _output(value: Value, known: Collection[str], around: Path) -> Output:
    keys = value.mapping("an output", _OF_OUTPUTS)
    for key in ("from", "table", "change"):
        if key not in keys:
            raise value.place.error(f"an output needs {quote(key)}")
    source = keys["from"].text("'from' of an output")
    if source not in known:
        msg = f"an output is from a source or step, and {quote(source)} is none"
        raise keys["from"].place.error(f"{msg}{near(source, known)}")
    table = keys["table"].text("'table' of an output")
    create = _creation(keys["create"], table) if "create" in keys else None
    publish = _publication(keys["publish"], table, around) if "publish" in keys else None
    change = keys["change"].choice("'change' of an output", CHANGES)
    return Output(source, table, change, create, publish, value.place)


def _creation(value: Value, table: str) -> Creation:
    what = f"'create' of {quote(table)}"
    keys = value.mapping(what, _OF_CREATION)
    return Creation(
        keys["keys"].texts(f"'keys' of {what}") if "keys" in keys else (),
        keys["order"].text(f"'order' of {what}") if "order" in keys else None,
        keys["partition_by"].texts(f"'partition_by' of {what}") if "partition_by" in keys else (),
        keys["sort_by"].texts(f"'sort_by' of {what}") if "sort_by" in keys else (),
        keys["buckets"].number(f"'buckets' of {what}", least=1) if "buckets" in keys else None,
    )


def _publication(value: Value, table: str, around: Path) -> Publication:
    what = f"'publish' of {quote(table)}"
    keys = value.mapping(what, _PUBLISHED)
    if "into" not in keys:
        raise value.place.error(f"{what} needs 'into', the Lance table")
    settings: dict[str, object] = {}
    for key in ("columns", "indexes"):
        if key in keys:
            settings[key] = keys[key].texts(f"{quote(key)} of {what}")
    if "vector" in keys:
        name, _, made = keys["vector"].text(f"'vector' of {what}").partition("=")
        is_file = ".py:" in made
        settings["vector"] = f"{name}={around / made}" if is_file else f"{name}={made}"
    return Publication(keys["into"].text(f"'into' of {what}"), settings, value.place)
