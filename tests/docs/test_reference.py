"""The reference names everything that there is, and says of it what is true."""

import importlib
import importlib.util
import inspect
import re

import msgspec
import pytest

import mooring
from mooring import config, namespaces
from mooring.directory import entries, layout
from mooring.directory.decisions import Decision, State
from mooring.errors import MooringError
from mooring.metastore import layout as metastore_layout
from mooring.namespace.properties import PROTECTED, RETENTION
from mooring.namespace.settings import Settings, settings_path
from mooring.tables.manifest import SHARED, ManifestRow
from tests.docs.documents import DOCS
from tests.program import PROGRAM

_IMPORT = re.compile(r"^from (mooring(?:\.\w+)?) import ([^()\n]+)$", re.MULTILINE)


def _load_generator():
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = _load_generator()


def in_code(path):
    """Return every word that a document shows as code."""
    return set(re.findall(r"`([^`\n]+)`", (DOCS / path).read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", generate.DOCUMENTS)
def test_generated_parts_are_up_to_date(name):
    """Bring them up to date with "python docs/generate.py"."""
    text = (DOCS / name).read_text(encoding="utf-8")
    assert text == generate.update(text, generate.DOCUMENTS[name])


def test_every_public_name_has_an_entry():
    headings = re.findall(
        r"^#+ `([\w.]+)`$", (DOCS / "reference/python-api.md").read_text(), re.MULTILINE
    )
    told = {heading.rpartition(".")[2] for heading in headings}
    classes = {name for name in mooring.__all__ if inspect.isclass(getattr(mooring, name))}
    assert classes <= told
    for package in generate.PACKAGES:
        exported = importlib.import_module(package).__all__
        assert {f"{package}.{name}" for name in exported} <= set(headings)


def test_examples_import_what_the_reference_tells():
    """Of a package that has an entry, documents use what it exports, and nothing deeper."""
    used = {
        (match[1], name.strip())
        for path in sorted(DOCS.rglob("*.md"))
        for match in _IMPORT.finditer(path.read_text(encoding="utf-8"))
        for name in match[2].split(",")
    }
    assert used
    for package, name in used:
        if package in generate.PACKAGES:
            assert name in importlib.import_module(package).__all__, (package, name)


def test_every_error_is_listed():
    def walk(kind):
        yield kind
        for child in kind.__subclasses__():
            yield from walk(child)

    ours = {kind.__name__ for kind in walk(MooringError) if kind.__module__ == "mooring.errors"}
    assert ours <= in_code("reference/errors.md")


def test_every_setting_is_listed():
    fields = {field.name for field in msgspec.structs.fields(Settings)}
    kinds = ("Directory", "Metastore", "Iceberg", "Remote")
    properties = set().union(*(getattr(namespaces, f"{kind}Namespace")._known for kind in kinds))
    variables = {f"MOORING_{name.upper()}" for name in config._NAMES} | {"MOORING_CONFIG"}
    listed = in_code("reference/settings.md")
    assert fields | properties | variables | set(config._NAMES) | set(config.PROFILE_KEYS) <= listed


def test_every_option_of_a_server_is_listed():
    listed = set(re.findall(r"--[\w-]+", (DOCS / "reference/settings.md").read_text()))
    serve = PROGRAM.commands["serve"]
    own = {name for option in serve.params for name in option.opts if name.startswith("--")}
    # What every command has, the reference of the command line tells once.
    common = {name for one in PROGRAM.params for name in one.opts}
    assert len(own - common) > 20
    assert own - common - {"--help"} <= listed


def test_every_argument_of_connect_is_listed_with_its_default():
    text = (DOCS / "reference/settings.md").read_text(encoding="utf-8")
    for name, parameter in inspect.signature(mooring.connect).parameters.items():
        assert f"| `{name}` |" in text
        if isinstance(parameter.default, bool):
            assert f"| `{name}` | `{parameter.default}` |" in text


def test_every_flag_of_a_namespace_is_listed_with_its_default(tmp_path):
    """The defaults are those of compatibility mode."""
    text = (DOCS / "reference/settings.md").read_text(encoding="utf-8")
    properties = text.partition("## Properties of")[2]
    for name in ("manifest_enabled", "dir_listing_enabled"):
        assert f"| `{name}` | `true` |" in properties
    backend = mooring.DirectoryNamespace(root=str(tmp_path))._backend
    assert backend.levels is None
    assert backend.listing


def test_properties_that_are_read_are_listed():
    assert {PROTECTED, RETENTION} <= in_code("reference/settings.md")


def test_every_field_and_file_is_listed():
    text = (DOCS / "reference/files-on-disk.md").read_text(encoding="utf-8")
    for kind in (Decision, entries.DropRecord, ManifestRow):
        fields = {field.name for field in msgspec.structs.fields(kind)}
        assert fields <= in_code("reference/files-on-disk.md")
    assert f"{entries.TRASH}$" in text
    assert SHARED in in_code("reference/files-on-disk.md")
    assert "__manifest/" in in_code("reference/files-on-disk.md")
    for path in (
        layout.decision_path("flights", 1),
        layout.hint_path("flights", 2, "live"),
        settings_path(1),
        layout.foreign_marker_path("flights"),
        layout.RESERVED,
        layout.DEREGISTERED,
    ):
        assert path in text


def test_every_place_of_a_metastore_is_listed():
    text = (DOCS / "reference/files-on-disk.md").read_text(encoding="utf-8")
    places = metastore_layout.__all__
    told = [
        getattr(metastore_layout, name) for name in places if name.endswith(("_DIR", "_MARKER"))
    ]
    assert len(told) >= 6
    for place in told:
        assert place in text
    for operation in metastore_layout.Operation:
        assert operation.value in in_code("reference/files-on-disk.md")


def test_longest_name_is_told():
    assert f"{layout.MAX_NAME_BYTES} bytes" in (DOCS / "explanation/names.md").read_text()


def test_every_state_is_explained():
    assert {state.value for state in State} <= in_code("explanation/lifecycle.md")
