"""Export and import of a catalog's names and properties."""

import json
import shutil
import threading

import pytest

import mooring

DONE, FAILED, USAGE, NOT_FOUND, CONFLICT, REFUSED = range(6)


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path, lines):
    """Write an export by hand, with a first line that fits."""
    kinds = [line["type"] for line in lines]
    header = {
        "type": "mooring export",
        "format": 1,
        "state": "live",
        "namespaces": kinds.count("namespace"),
        "tables": kinds.count("table"),
    }
    text = "".join(json.dumps(line) + "\n" for line in [header, *lines])
    path.write_text(text, encoding="utf-8")
    return path


def results(result, code=DONE):
    """Return what became of each object, by name."""
    assert result.exit_code == code, result.output
    return {row["name"]: row["result"] for row in json.loads(result.stdout)}


@pytest.fixture
def exported(on_tree, tmp_path):
    assert on_tree("export", "names.jsonl").exit_code == DONE
    return tmp_path / "names.jsonl"


# -- export --------------------------------------------------------------------------------------


def test_an_export_is_lines_of_json_with_parents_first(exported, tree):
    header, *lines = lines_of(exported)
    assert header == {
        "type": "mooring export",
        "format": 1,
        "state": "live",
        "namespaces": 5,
        "tables": 4,
    }
    assert [(line["type"], "$".join(line["id"])) for line in lines] == [
        ("namespace", ""),
        ("namespace", "sales"),
        ("namespace", "sales$eu"),
        ("namespace", "sales$us"),
        ("namespace", "vault"),
        ("table", "ports"),
        ("table", "sales$eu$orders"),
        ("table", "sales$orders"),
        ("table", "vault$gold"),
    ]
    assert lines[1]["properties"] == {"owner": "ada", "description": "What is sold"}
    assert lines[7]["properties"] == {"description": "By day"}
    for line in lines[5:]:
        assert (tree / line["location"]).is_dir()


def test_an_export_to_standard_output_is_the_same(on_tree, exported):
    result = on_tree("export", "-")
    assert result.stdout == exported.read_text(encoding="utf-8")
    assert result.stderr == "exported 4 namespaces and 4 tables; what was dropped is not in it\n"
    assert on_tree("export", "-", "-q").stderr == ""


def test_what_was_dropped_is_not_exported(on_tree, exported):
    on_tree("table", "drop", "ports")
    on_tree("namespace", "drop", "sales", "--cascade", "--yes")
    told = on_tree("export", exported, "-o", "json")
    assert json.loads(told.stdout) == {
        "file": str(exported),
        "result": "exported",
        "namespaces": 1,
        "tables": 1,
    }
    assert "orders" not in exported.read_text(encoding="utf-8")


def test_an_export_of_a_plain_directory_has_its_tables(on_plain, tmp_path):
    on_plain("export", "names.jsonl")
    header, root, *tables = lines_of(tmp_path / "names.jsonl")
    assert (header["namespaces"], header["tables"]) == (1, 7)
    assert root == {"type": "namespace", "id": [], "properties": {}}
    found = {tuple(line["id"]): line for line in tables}
    assert found["a$b",]["location"] == "a$b.lance"
    assert found["guarded",]["properties"] == {"mooring.protected": "true"}


def test_an_export_that_cannot_be_written_leaves_the_old_file(on_tree, exported, tmp_path):
    before = sorted(tmp_path.iterdir())
    assert on_tree("export", "nowhere/names.jsonl").exit_code == USAGE
    assert on_tree("export", tmp_path).exit_code == USAGE
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("code", "args"),
    [
        (USAGE, ["export"]),
        (USAGE, ["import"]),
        (USAGE, ["import", "nothing.jsonl"]),
        (USAGE, ["import", "."]),
        (USAGE, ["import", "names.jsonl", "--mode", "append"]),
        (NOT_FOUND, ["import", "names.jsonl", "-c", "./nowhere"]),
        (NOT_FOUND, ["export", "-", "-c", "./nowhere"]),
    ],
)
def test_exit_code(on_tree, exported, code, args):
    result = on_tree(*args)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output


# -- a round trip --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [[], ["--no-listing"]])
def test_a_round_trip_into_a_new_manifest_over_the_same_files(run, tree, exported, mode):
    on = lambda *args: run("-c", tree, *mode, *args)  # noqa: E731  # one line says it
    on("namespace", "set", "-p", "team=data")
    on("export", exported)
    before = exported.read_bytes()
    shutil.rmtree(tree / "__manifest")
    done = results(on("import", exported, "-o", "json"))
    assert done == {
        "": "updated",
        "sales": "created",
        "sales$eu": "created",
        "sales$us": "created",
        "vault": "created",
        "ports": "registered",
        "sales$eu$orders": "registered",
        "sales$orders": "registered",
        "vault$gold": "registered",
    }
    on("export", exported)
    assert exported.read_bytes() == before
    assert mooring.connect(tree).table("sales$eu$orders").count() == 2
    assert on("table", "drop", "vault$gold").exit_code == REFUSED


def test_a_round_trip_in_compatibility_mode(on, lake, tmp_path):
    """Root tables lie in their own directories, protection included; the trash stays behind."""
    catalog = mooring.connect(lake)
    catalog.update_table("flights", {"owner": "ada"})
    catalog.update_table("guarded", {"owner": "eve"})
    del catalog  # with its copy of the manifest
    on("export", "names.jsonl")
    before = (tmp_path / "names.jsonl").read_bytes()
    shutil.rmtree(lake / "__manifest")
    assert mooring.connect(lake).describe_table("flights").properties == {}
    assert set(results(on("import", "names.jsonl", "-o", "json")).values()) == {
        "unchanged",
        "created",
        "registered",
    }
    on("export", "names.jsonl")
    assert (tmp_path / "names.jsonl").read_bytes() == before
    assert on("table", "drop", "guarded").exit_code == REFUSED
    assert "hidden" not in before.decode()
    assert not mooring.connect(lake).backend.unrecorded_tables()


def test_an_import_into_another_root_registers_what_was_copied(run, tree, exported, tmp_path):
    copied = next(path.name for path in tree.iterdir() if path.name.endswith("sales$orders"))
    shutil.copytree(tree / copied, tmp_path / "other" / copied)
    result = run("import", exported, "-c", "other")
    assert result.exit_code == DONE
    assert "imported: 1 unchanged, 4 created, 3 skipped, 1 registered" in result.stderr
    skipped = [line for line in result.stderr.splitlines() if "skipped:" in line]
    assert [line.partition(" skipped:")[0] for line in skipped] == [
        "table 'ports'",
        "table 'sales$eu$orders'",
        "table 'vault$gold'",
    ]
    assert all("there is no table at" in line for line in skipped)
    assert run("ls", "other", "sales").stdout == "orders\n"


def test_an_import_reads_standard_input(run, on_tree, exported):
    result = run("import", "-", "-c", "tree", input=exported.read_bytes())
    assert result.stderr == "imported: 9 unchanged\n"


# -- again, and cut off --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["create", "exist_ok", "overwrite"])
def test_an_import_done_again_changes_nothing(on_tree, exported, tree, mode):
    before = sorted(path for path in tree.rglob("*"))
    result = on_tree("import", exported, "--mode", mode, "-o", "json")
    assert set(results(result).values()) == {"unchanged"}
    assert sorted(path for path in tree.rglob("*")) == before


@pytest.mark.parametrize("after", [0, 1, 3, 5, 7])
def test_an_import_that_was_cut_off_is_finished_by_another(
    on_tree, exported, tree, monkeypatch, after
):
    shutil.rmtree(tree / "__manifest")
    left = threading.Semaphore(after)

    def cut_off(name):
        real = getattr(mooring.Catalog, name)

        def act(self, *args, **options):
            if not left.acquire(blocking=False):
                raise mooring.errors.ServiceUnavailableError("the line is dead")
            return real(self, *args, **options)

        monkeypatch.setattr(mooring.Catalog, name, act)

    with monkeypatch.context() as monkeypatch:  # noqa: PLR1704  # undone before the second run
        for name in ("create_namespace", "register_table"):
            cut_off(name)
        stopped = on_tree("import", exported)
        assert stopped.exit_code == FAILED
        assert "the line is dead" in stopped.stderr
    done = results(on_tree("import", exported, "-o", "json"))
    assert list(done.values()).count("unchanged") == 1 + after
    before = exported.read_bytes()
    on_tree("export", exported)
    assert exported.read_bytes() == before


def test_a_protection_that_was_cut_off_is_made_up_for(on, lake, exported, monkeypatch):
    write(
        exported,
        [
            {
                "type": "table",
                "id": ["flights"],
                "location": "flights.lance",
                "properties": {"mooring.protected": "true", "owner": "ada"},
            }
        ],
    )
    shutil.rmtree(lake / "__manifest")

    def fail(*_, **__):
        raise mooring.errors.ServiceUnavailableError("the line is dead")

    with monkeypatch.context() as patched:
        patched.setattr(mooring.Catalog, "protect_table", fail)
        assert on("import", exported).exit_code == FAILED
    assert results(on("import", exported, "-o", "json")) == {"flights": "updated"}
    assert results(on("import", exported, "-o", "json")) == {"flights": "unchanged"}
    assert on("table", "drop", "flights").exit_code == REFUSED


# -- what is there and differs -------------------------------------------------------------------


@pytest.fixture
def changed(on_tree, exported):
    """The tree, after an export, with another owner, another location and another description."""
    on_tree("namespace", "set", "sales", "--owner", "eve", "-p", "more=yes")
    mooring_tree = mooring.connect("tree", dir_listing_enabled=False)
    mooring_tree.update_table("sales$orders", {"description": "By week"})
    mooring_tree.drop_table("ports")
    mooring_tree.create_table("ports", [{"n": 1}])
    return on_tree


def test_mode_create_fails_what_differs_and_goes_on(changed, exported, tree):
    shutil.rmtree(next(tree.glob("*vault$gold")))
    changed("namespace", "set", "vault", "--unprotect")
    changed("table", "deregister", "vault$gold")
    result = changed("import", exported, "-o", "json")
    done = results(result, CONFLICT)
    assert (done["sales"], done["ports"], done["sales$orders"]) == ("failed",) * 3
    assert (done["vault"], done["vault$gold"]) == ("failed", "skipped")
    assert done["sales$eu$orders"] == "unchanged"
    errors = [json.loads(line)["error"] for line in result.stderr.splitlines()]
    assert errors[0]["message"] == (
        "namespace 'sales': namespace 'sales' exists already, and differs in the properties 'owner'"
    )
    assert [error["type"] for error in errors] == [
        "ConflictError",
        "ConflictError",
        "TableAlreadyExistsError",
        "ConflictError",
    ]


def test_mode_exist_ok_leaves_what_differs(changed, exported):
    done = results(changed("import", exported, "--mode", "exist_ok", "-o", "json"))
    assert (done["sales"], done["ports"], done["sales$orders"]) == ("exists",) * 3
    kept = json.loads(changed("namespace", "describe", "sales", "-o", "json").stdout)
    assert kept["properties"]["owner"] == "eve"


def test_mode_overwrite_brings_back_what_was_exported(changed, exported, tree):
    before = exported.read_bytes()
    done = results(changed("import", exported, "--mode", "overwrite", "-o", "json"))
    assert (done["sales"], done["ports"], done["sales$orders"]) == (
        "updated",
        "registered",
        "updated",
    )
    changed("export", exported)
    assert exported.read_bytes() == before
    assert mooring.connect(tree, dir_listing_enabled=False).table("ports").count() == 2
    dropped = json.loads(changed("trash", "list", "-o", "json").stdout)
    assert [row["name"] for row in dropped] == ["ports", "ports"]


@pytest.mark.parametrize("mode", ["create", "exist_ok", "overwrite"])
def test_a_dry_run_changes_nothing(changed, exported, tree, mode):
    before = sorted(path for path in tree.rglob("*"))
    result = changed("import", exported, "--mode", mode, "--dry-run", "-o", "json")
    assert result.exit_code == (CONFLICT if mode == "create" else DONE)
    planned = {row["name"]: row["result"] for row in json.loads(result.stdout)}
    assert sorted(path for path in tree.rglob("*")) == before
    really = changed("import", exported, "--mode", mode, "-o", "json")
    assert {row["name"]: row["result"] for row in json.loads(really.stdout)} == planned


def test_a_dry_run_tells_the_plan(run, exported, tmp_path):
    (tmp_path / "new").mkdir()
    result = run("import", exported, "-c", "new", "--dry-run")
    assert result.exit_code == DONE
    assert "namespace  sales$eu         created" in result.stdout
    assert "dry run: 1 unchanged, 4 created, 4 skipped; nothing was changed" in result.stderr
    assert list((tmp_path / "new").iterdir()) == []


def test_a_read_only_catalog_takes_no_import(on_tree, exported, tree):
    shutil.rmtree(tree / "__manifest")
    assert on_tree("import", exported, "--read-only", "--dry-run").exit_code == DONE
    assert on_tree("import", exported, "--read-only").exit_code == REFUSED


# -- what cannot be brought in -------------------------------------------------------------------


def test_reasons_are_told_one_by_one(on_tree, tmp_path, tree):
    here = next(path.name for path in tree.iterdir() if path.name.endswith("ports"))
    table = {"type": "table", "location": here}
    path = write(
        tmp_path / "odd.jsonl",
        [
            {"type": "namespace", "id": ["no", "parent"]},
            {"type": "namespace", "id": ["ports"]},
            {"type": "namespace", "id": ["a$b"]},
            {"type": "namespace", "id": ["bad"], "properties": {"mooring.retention": "soon"}},
            {**table, "id": []},
            {**table, "id": ["sales"]},
            {**table, "id": ["nothing", "t"]},
            {**table, "id": ["up"], "location": "../x"},
            {**table, "id": ["far"], "location": "s3://other/x"},
            {**table, "id": ["own"], "location": "__manifest"},
            {**table, "id": ["deep"], "location": "no/such/place"},
            {**table, "id": ["alias"]},
        ],
    )
    result = on_tree("import", path, "-o", "json")
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert {name: row["result"] for name, row in rows.items()} == {
        "no$parent": "skipped",
        "ports": "failed",
        "a$b": "failed",
        "bad": "failed",
        "": "failed",
        "sales": "failed",
        "nothing$t": "skipped",
        "up": "skipped",
        "far": "skipped",
        "own": "skipped",
        "deep": "skipped",
        "alias": "registered",
    }
    assert all(row["reason"] for row in rows.values() if row["result"] != "registered")
    assert result.exit_code == USAGE
    assert mooring.connect(tree).table("alias").count() == 2


def test_a_plain_directory_takes_what_it_can(on_plain, plain, tmp_path):
    table = {"type": "table", "properties": {}}
    path = write(
        tmp_path / "mixed.jsonl",
        [
            {"type": "namespace", "id": [], "properties": {"owner": "ada"}},
            {"type": "namespace", "id": ["sales"]},
            {**table, "id": ["sales", "t"], "location": "1234_sales$t"},
            {**table, "id": ["flights"], "location": "flights.lance", "properties": {"x": "y"}},
            {**table, "id": ["hidden"], "location": "hidden.lance"},
            {**table, "id": ["old"], "location": "old.lance"},
            {
                **table,
                "id": ["quo'te"],
                "location": "quo'te.lance",
                "properties": {"mooring.protected": "true"},
            },
        ],
    )
    result = on_plain("import", path, "-o", "json")
    rows = {row["name"]: (row["result"], row["reason"]) for row in json.loads(result.stdout)}
    assert rows[""][0] == rows["sales"][0] == rows["sales$t"][0] == "skipped"
    assert rows["flights"][0] == "unchanged"
    assert "keeps none" in rows["flights"][1]
    assert rows["hidden"] == ("registered", None)
    assert rows["old"][0] == "skipped"
    assert "table undrop old" in rows["old"][1]
    assert rows["quo'te"] == ("updated", None)
    assert on_plain("table", "drop", "quo'te").exit_code == REFUSED
    assert not (plain / "__manifest").exists()


@pytest.mark.parametrize(
    ("mode", "result", "code"),
    [
        ("create", "failed", CONFLICT),
        ("exist_ok", "exists", DONE),
        ("overwrite", "failed", CONFLICT),
    ],
)
def test_a_table_that_only_a_listing_finds_keeps_its_name(run, plain, tmp_path, mode, result, code):
    """The directory of a root table has its name, whatever the file says."""
    (plain / "1234_flights").mkdir()
    path = write(
        tmp_path / "one.jsonl",
        [{"type": "table", "id": ["flights"], "location": "1234_flights"}],
    )
    done = run("import", path, "--mode", mode, "-o", "json", "-c", plain)
    assert results(done, code) == {"flights": result}
    assert mooring.connect(plain).table("flights").count() == 2


def test_an_overwrite_lifts_a_protection_in_a_plain_directory(on_plain, tmp_path):
    path = write(
        tmp_path / "one.jsonl",
        [{"type": "table", "id": ["guarded"], "location": "guarded.lance"}],
    )
    assert results(on_plain("import", path, "-o", "json")) == {"guarded": "unchanged"}
    over = on_plain("import", path, "--mode", "overwrite", "-o", "json")
    assert results(over) == {"guarded": "updated"}
    assert on_plain("table", "drop", "guarded").exit_code == DONE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1"),
        ("nonsense\n", "line 1"),
        ("{}\n", "line 1"),
        ('{"type": "table", "id": ["t"], "location": "t.lance"}\n', "line 1"),
        ("HEADER\nnonsense\n", "line 2"),
        ('HEADER\n{"type": "view", "id": ["v"]}\n', "line 2"),
        ('HEADER\n{"type": "table", "id": ["t"]}\n', "line 2"),
        ('HEADER\n{"type": "table", "id": "t", "location": "t.lance"}\n', "line 2"),
        ('HEADER\n{"type": "namespace", "id": ["n"], "properties": {"n": 1}}\n', "line 2"),
        (
            'HEADER\n{"type": "namespace", "id": ["n"]}\n{"type": "namespace", "id": ["n"]}\n',
            "line 3",
        ),
        ("HEADER\n", "not whole"),
        ('HEADER\n{"type": "namespace", "id": ["n"]}\n', "not whole"),
        ("\udcff\n", "line 1"),
    ],
)
def test_a_broken_file_is_a_usage_error_that_changes_nothing(
    on_tree, tree, tmp_path, text, message
):
    header = {"type": "mooring export", "format": 1, "state": "live", "namespaces": 2, "tables": 0}
    path = tmp_path / "broken.jsonl"
    path.write_bytes(text.replace("HEADER", json.dumps(header)).encode("utf-8", "surrogateescape"))
    before = sorted(tree.rglob("*"))
    result = on_tree("import", path, "-o", "json")
    assert result.exit_code == USAGE
    assert message in json.loads(result.stderr)["error"]["message"]
    assert sorted(tree.rglob("*")) == before


def test_a_file_of_a_newer_release_is_refused(on_tree, exported):
    first, _, rest = exported.read_text(encoding="utf-8").partition("\n")
    exported.write_text(first.replace('"format":1', '"format":2') + "\n" + rest, encoding="utf-8")
    result = on_tree("import", exported)
    assert result.exit_code == REFUSED
    assert "upgrade" in result.stderr


def test_many_tables_share_commits(run, tmp_path):
    """Changes that wait together are one version of the manifest."""
    root = tmp_path / "wide"
    for number in range(100):
        (root / f"{number:08x}_t{number}").mkdir(parents=True)
    lines = [
        {"type": "table", "id": [f"t{number}"], "location": f"{number:08x}_t{number}"}
        for number in range(100)
    ]
    path = write(tmp_path / "wide.jsonl", lines)
    assert "100 registered" in run("import", path, "-c", root).stderr
    version, rows = mooring.connect(root).backend.measure_manifest()
    assert rows == 100
    assert version < 100
