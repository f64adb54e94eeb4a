"""Questions about changes of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.survey.question import collect_into
from mooring.survey.subject import expect, make_body

if TYPE_CHECKING:
    from mooring.survey.question import Question
    from mooring.survey.subject import Subject

__all__ = ["QUESTIONS"]

QUESTIONS: dict[str, Question] = {}
_question = collect_into(QUESTIONS)


@_question("insert_into_table")
def _insert(subject: Subject) -> None:
    table = subject.table()
    subject.ask("insert_into_table", make_body(4), id=table)
    expect(that=subject.count(table) == len(range(8)), what="the rows are missing")


@_question("insert_into_table, mode overwrite")
def _insert_over(subject: Subject) -> None:
    table = subject.table()
    subject.ask("insert_into_table", make_body(rows=1), id=table, mode="overwrite")
    expect(that=subject.count(table) == 1, what="the old rows stayed")


@_question("insert_into_table, a declared table")
def _insert_first(subject: Subject) -> None:
    table = subject.place()
    subject.ask("declare_table", id=table)
    subject.ask("insert_into_table", make_body(), id=table)
    expect(that=subject.count(table) == len(range(4)), what="the rows are missing")


@_question("insert_into_table, branch")
def _insert_branch(subject: Subject) -> None:
    table = subject.table()
    subject.ask("create_table_branch", id=table, name="dev")
    subject.ask("insert_into_table", make_body(4), id=table, branch="dev")
    expect(that=subject.count(table) == len(range(4)), what="it went to main")
    found = subject.ask("count_table_rows", id=table, branch="dev").count
    expect(that=found == len(range(8)), what="it did not arrive")


@_question("merge_insert_into_table")
def _merge(subject: Subject) -> None:
    table = subject.table()
    subject.ask(
        "merge_insert_into_table",
        make_body(2),
        id=table,
        on=["n"],
        when_matched_update_all=True,
        when_not_matched_insert_all=True,
    )
    expect(that=subject.count(table) == len(range(6)), what="the rows are not merged")


@_question("merge_insert_into_table, deletion by a condition")
def _merge_delete(subject: Subject) -> None:
    table = subject.table()
    subject.ask(
        "merge_insert_into_table",
        make_body(2),
        id=table,
        on=["n"],
        when_matched_update_all=True,
        when_not_matched_by_source_delete=True,
        when_not_matched_by_source_delete_filt="n = 0",
    )
    expect(that=subject.count(table) == len(range(3)), what="the condition does not count")


@_question("update_table")
def _update(subject: Subject) -> None:
    table = subject.table()
    done = subject.ask("update_table", id=table, updates=[["n", "n + 9"]], predicate="n = 1")
    expect(that=done.updated_rows == 1, what="other rows changed")


@_question("update_table, properties")
def _update_properties(subject: Subject) -> None:
    table = subject.table()
    subject.ask("update_table", id=table, updates=[["n", "n"]], properties={"owner": "me"})
    found = subject.ask("describe_table", id=table).properties or {}
    expect(that=found.get("owner") == "me", what="the properties are gone")


@_question("delete_from_table")
def _delete(subject: Subject) -> None:
    table = subject.table()
    subject.ask("delete_from_table", id=table, predicate="n < 2")
    expect(that=subject.count(table) == len(range(2)), what="the rows stayed")


@_question("restore_table")
def _restore(subject: Subject) -> None:
    table = subject.table()
    subject.ask("delete_from_table", id=table, predicate="true")
    subject.ask("restore_table", id=table, version=1)
    expect(that=subject.count(table) == len(range(4)), what="the rows did not come back")
