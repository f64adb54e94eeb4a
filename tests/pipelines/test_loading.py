"""What is wrong with a pipeline's file is told with its line and column, before anything starts."""

import pytest

from mooring.errors import InvalidInputError, NotFoundError
from mooring.pipelines import load_pipeline
from mooring.pipelines.definition import OnFailure, SqlStep

WHOLE = """
    name: sales
    description: What was sold
    parameters:
      day: 2024-01-31
      least: {type: number, default: 0}
      region: {required: true}
    sources:
      raw: {files: 'data/${day}/*.csv', delimiter: ';', null_values: [NA, '']}
      places: {table: ref$places, version: 3}
      news: {changes: shop$news, after: 7}
    steps:
      clean:
        sql: |
          -- FROM nowhere
          SELECT * FROM raw JOIN Places USING (id)
          WHERE amount > ${least} AND region = :region
        expectations:
          - {name: priced, check: amount > 0, on_failure: quarantine, table: shop$bad}
          - {name: placed, check: place IS NOT NULL}
    outputs:
      - from: clean
        table: shop$sales
        change: upsert
        create: {keys: [id, day], order: at, partition_by: month(day), buckets: 4}
"""
MINIMAL = """
name: p
sources:
  a: {files: a.csv}
steps:
  s: {sql: SELECT * FROM a}
outputs:
  - {from: s, table: n$t, change: append}
"""


def test_whole_file_is_understood(write, tmp_path):
    found = load_pipeline(write("p.yaml", WHOLE), {"region": "eu", "least": "2.5"})
    assert found.parameters["least"] == 2.5
    assert found.parameters["day"].isoformat() == "2024-01-31"
    raw, places, news = found.sources.values()
    assert raw.paths == (str(tmp_path / "data/2024-01-31/*.csv"),)
    assert (raw.delimiter, raw.null_values, raw.header) == (";", ("NA", ""), True)
    assert (places.table, places.version, news.after) == ("ref$places", 3, 7)
    (clean,) = found.steps.values()
    assert isinstance(clean, SqlStep)
    assert clean.needs == ("raw", "places")
    assert "amount > 2.5 AND region = :region" in clean.sql
    priced, placed = clean.expectations
    assert (priced.on_failure, priced.table, priced.max_fraction) == (
        OnFailure.QUARANTINE, "shop$bad", 1.0,
    )  # fmt: skip
    assert (placed.on_failure, placed.max_fraction) == (OnFailure.FAIL, 0.0)
    (output,) = found.outputs
    assert output.create.partition_by == ("month(day)",)
    assert output.create.keys == ("id", "day")


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "told"),
    [
        ("sources:", "sources: [", 4, 1, "this is no YAML: .* line 2, expected"),
        ("  s: {sql", "\ts: {sql", 5, 1, r"this is no YAML: .*'\\t'"),
        ("name: p", "nam: p", 1, 1, "a pipeline has no key 'nam'; is 'name' meant?"),
        ("name: p", "name: p\nname: q", 2, 1, "'name' comes twice in a pipeline: see line 1"),
        ("name: p", "name: [p]", 1, 7, "the name is a text, and here is a list"),
        ("name: p", "name: a/b", 1, 7, "'a/b' cannot name a pipeline"),
        ("{files: a.csv}", "{file: a.csv}", 3, 6, "source 'a' has one of 'files', 'table'"),
        ("{files: a.csv}", "{files: a.csv, fromat: csv}", 3, 21, "is 'format' meant?"),
        ("{files: a.csv}", "{files: a.csv, format: avro}", 3, 29, "'avro' is no format"),
        ("{files: a.csv}", "{table: t, version: x}", 3, 26, "whole number from 1 on, and here"),
        ("{files: a.csv}", "{table: t, version: 1, tag: x}", 3, 6, "'version' and 'tag'"),
        ("{files: a.csv}", "{files: []}", 3, 14, "'files' of source 'a' is at least one text"),
        ("  s: {sql", "  A: {sql", 5, 6, "'A' is the name of something else: see line 3"),
        ("  s: {sql", "  spark: {sql", 5, 10, "'spark' cannot be a name here"),
        ("FROM a}", "FROM b}", 5, 12, "the query names 'b', which is no source or step"),
        ("{sql: SELECT * FROM a}", "{}", 5, 6, "step 's' has either 'sql' or 'python'"),
        ("sql: SELECT * FROM a", "python: x", 5, 15, "module:function or file.py:function"),
        ("sql: SELECT * FROM a", "python: f.py:f", 5, 15, "there is no file"),
        ("sql: SELECT * FROM a", "python: nope.no:f", 5, 15, "there is no module 'nope.no'"),
        ("from: s", "from: t", 7, 12, "'t' is none: known are a, s"),
        ("from: s", "from: '${x}'", 7, 12, "there is no parameter 'x': the pipeline has none"),
        ("change: append", "change: appnd", 7, 35, "one of append, upsert, delete, replace"),
        (", change: append", "", 7, 5, "an output needs 'change'"),
        ("change: append", "change: append, create: {key: id}", 7, 52, "is 'keys' meant?"),
        ("  - {from", "  - {from: s, table: n$t, change: append}\n  - {from", 8, 5, "twice"),
        ("outputs:", "outputs: []\nno:", 7, 1, "a pipeline has no key 'no'"),
    ],
)  # fmt: skip
def test_error_names_line_and_column(write, old, new, line, column, told):
    path = write("p.yaml", MINIMAL.replace(old, new, 1))
    with pytest.raises(InvalidInputError, match=told) as failure:
        load_pipeline(path)
    assert str(failure.value).startswith(f"{path}, line {line}, column {column}: ")


def test_unknown_name_in_a_longer_query_is_found_in_its_line(write):
    path = write("p.yaml", WHOLE.replace("JOIN Places", "JOIN plcaes"))
    with pytest.raises(InvalidInputError, match=r"line 15, column 30: .* is 'places' meant"):
        load_pipeline(path, {"region": "eu"})


def test_ring_of_steps_is_named(write):
    steps = """
  a1: {sql: SELECT * FROM a2}
  a2: {sql: SELECT * FROM a JOIN a3}
  a3: {sql: SELECT * FROM a1}
"""
    path = write("p.yaml", MINIMAL.replace("\n  s: {sql: SELECT * FROM a}", steps))
    with pytest.raises(InvalidInputError, match=r"line 5, .* in a ring: a1 -> a2 -> a3 -> a1"):
        load_pipeline(path)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "line 6, .*parameter 'region' has no value: give one with --param region=..."),
        ({"region": "x", "dya": "y"}, "has no parameter 'dya'; is 'day' meant?"),
        ({"region": "x", "day": "soon"}, "parameter 'day' is a date, not 'soon'"),
        ({"region": "x", "least": "no"}, "parameter 'least' is a number, not 'no'"),
    ],
)
def test_parameter_is_refused(write, given, told):
    with pytest.raises(InvalidInputError, match=told):
        load_pipeline(write("p.yaml", WHOLE), given)


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ("x: {type: word}", "the type of parameter 'x' is one of text, integer"),
        ("x: {type: integer, default: y}", "parameter 'x' is an integer, not 'y'"),
        ("x: {}", "parameter 'x' needs a type or a default"),
        ("x: {default: 1, required: true}", "its default says nothing"),
        ("x: [1]", "is a single value, and here is a list"),
        ("a: 1", "'a' is the name of something else"),
    ],
)
def test_definition_of_a_parameter_is_refused(write, section, told):
    path = write("p.yaml", f"parameters:\n  {section}{MINIMAL}")
    with pytest.raises(InvalidInputError, match=f"line [0-9]+, column [0-9]+: .*{told}"):
        load_pipeline(path, {})


def test_values_of_parameters_may_be_numbers_and_names_may_stand_for_themselves(write):
    text = f"parameters: {{n: 4, on: true}}{MINIMAL}"
    text = text.replace("{files: a.csv}", "{table: 't-$${n}-${on}', version: '${n}'}")
    source = load_pipeline(write("p.yaml", text), {"n": "12"}).sources["a"]
    assert (source.table, source.version) == ("t-${n}-true", 12)


def test_function_gets_what_its_arguments_name(write):
    write("f.py", "def f(a, day, spark, parameters): ...\ndef g(what): ...\ndef h(*a): ...\n")
    text = f"parameters: {{day: 1}}{MINIMAL}"
    good = text.replace("sql: SELECT * FROM a", "python: f.py:f")
    (step,) = load_pipeline(write("p.yaml", good)).steps.values()
    assert (step.needs, step.source.arguments) == (("a",), ("a", "day", "spark", "parameters"))
    for name, told in (
        ("g", "argument 'what' of f.py:g is no source, step or parameter"),
        ("h", "takes arguments that have no names"),
        ("i", "has no function 'i': it has f, g, h"),
    ):
        with pytest.raises(InvalidInputError, match=f"line 6, column 15: .*{told}"):
            load_pipeline(write("p.yaml", good.replace("f.py:f", f"f.py:{name}")))
    write("f.py", "def f(:")
    with pytest.raises(InvalidInputError, match=r"line 6, column 15: .*is no Python"):
        load_pipeline(write("p.yaml", good))


@pytest.mark.parametrize(
    ("expectation", "told"),
    [
        ("{name: x}", "needs 'check'"),
        ("{name: x, check: 1, on_failure: ignore}", "one of fail, drop, quarantine"),
        ("{name: x, check: 1, on_failure: quarantine}", "with 'table'"),
        ("{name: x, check: 1, table: n$t}", "with 'table'"),
        ("{name: x, check: 1, max_fraction: 2}", "a number from 0 to 1, and here is '2'"),
        ("{name: x, check: 1}, {name: x, check: 1}", "two expectations 'x'"),
    ],
)
def test_expectation_is_refused(write, expectation, told):
    step = f"FROM a, expectations: [{expectation}]}}"
    with pytest.raises(InvalidInputError, match=f"line 5, column [0-9]+: .*{told}"):
        load_pipeline(write("p.yaml", MINIMAL.replace("FROM a}", step)))


def test_file_that_is_missing_empty_or_no_text(tmp_path, write):
    with pytest.raises(NotFoundError, match=r"there is no file 'nope.yaml'"):
        load_pipeline("nope.yaml")
    with pytest.raises(InvalidInputError, match="line 1, column 1: the file is empty"):
        load_pipeline(write("p.yaml", "# nothing\n"))
    with pytest.raises(InvalidInputError, match="is a directory"):
        load_pipeline(tmp_path)
    (tmp_path / "b.yaml").write_bytes(b"name: \xff\n")
    with pytest.raises(InvalidInputError, match="is no text in UTF-8"):
        load_pipeline(tmp_path / "b.yaml")
    with pytest.raises(InvalidInputError, match="line 2, column 7: this is no YAML"):
        load_pipeline(write("p.yaml", "name: x\nwhat: \x07\n"))
    with pytest.raises(InvalidInputError, match="the pipeline has no 'outputs', which it needs"):
        load_pipeline(write("p.yaml", "name: x\nsources: {}\n"))
