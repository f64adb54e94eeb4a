"""Questions about versions, and about commits of several tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mooring.store import open_store
from mooring.survey.question import collect_into
from mooring.survey.subject import expect, get
from mooring.tables.seal import renumber

if TYPE_CHECKING:
    from mooring.survey.question import Question
    from mooring.survey.subject import Subject

__all__ = ["QUESTIONS"]

QUESTIONS: dict[str, Question] = {}
_question = collect_into(QUESTIONS)


@_question("list_table_versions")
def _list_versions(subject: Subject) -> None:
    table = subject.table()
    subject.ask("delete_from_table", id=table, predicate="n = 1")
    asked = subject.ask("list_table_versions", id=table, descending=True).versions
    expect(that=[one.version for one in asked] == [2, 1], what="the order does not count")


@_question("describe_table_version")
def _describe_version(subject: Subject) -> None:
    found = subject.ask("describe_table_version", id=subject.table(), version=1)
    expect(that=get(get(found, "version"), "version") == 1, what="it is another")


@_question("create_table_version")
def _create_version(subject: Subject) -> None:
    subject.ask("create_table_version", **_next_version(subject))


def _next_version(subject: Subject) -> dict[str, Any]:
    """Stage a manifest for a table's second version."""
    table = subject.table()
    described = subject.ask("describe_table", id=table)
    store = open_store(described.location, described.storage_options or {})
    (manifest,) = (one for one in store.list_dir("_versions").files if one.endswith(".manifest"))
    body = store.get(f"_versions/{manifest}")
    number = f"{2**64 - 3:020d}"
    staged = f"_versions/{number}.manifest-0a1b2c3d"
    store.put(staged, renumber(manifest, body or b"", 2))
    path = described.location.removeprefix("file://").strip("/")
    return {"id": table, "version": 2, "manifest_path": f"{path}/{staged}", "naming_scheme": "V2"}


@_question("batch_create_table_versions, one")
def _batch_create(subject: Subject) -> None:
    subject.ask("batch_create_table_versions", entries=[_next_version(subject)])


@_question("batch_create_table_versions, several together")
def _batch_create_two(subject: Subject) -> None:
    entries = [_next_version(subject), _next_version(subject)]
    subject.ask("batch_create_table_versions", entries=entries)


@_question("batch_delete_table_versions")
def _batch_delete(subject: Subject) -> None:
    table = subject.table()
    subject.ask("delete_from_table", id=table, predicate="n = 1")
    ranges = [{"start_version": 1, "end_version": 2}]
    subject.ask("batch_delete_table_versions", id=table, ranges=ranges)
    found = subject.ask("list_table_versions", id=table).versions
    expect(that=[one.version for one in found] == [2], what="the record is still there")


@_question("batch_commit_tables, one")
def _batch_commit(subject: Subject) -> None:
    table = subject.place()
    subject.ask("batch_commit_tables", operations=[{"declare_table": {"id": table}}])
    subject.ask("table_exists", id=table)


@_question("batch_commit_tables, several together")
def _batch_commit_two(subject: Subject) -> None:
    operations = [{"declare_table": {"id": subject.place()}} for _ in range(2)]
    subject.ask("batch_commit_tables", operations=operations)
