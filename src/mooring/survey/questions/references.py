"""Questions about tags and branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.survey.question import collect_into
from mooring.survey.subject import expect

if TYPE_CHECKING:
    from mooring.survey.question import Question
    from mooring.survey.subject import Subject

__all__ = ["QUESTIONS"]

QUESTIONS: dict[str, Question] = {}
_question = collect_into(QUESTIONS)


def _tagged(subject: Subject) -> list[str]:
    table = subject.table()
    subject.ask("create_table_tag", id=table, tag="first", version=1)
    return table


@_question("create_table_tag")
def _create_tag(subject: Subject) -> None:
    _tagged(subject)


@_question("get_table_tag_version")
def _get_tag(subject: Subject) -> None:
    found = subject.ask("get_table_tag_version", id=_tagged(subject), tag="first")
    expect(that=found.version == 1, what="it is another")


@_question("list_table_tags")
def _list_tags(subject: Subject) -> None:
    found = subject.ask("list_table_tags", id=_tagged(subject)).tags
    expect(that="first" in found, what="it is not listed")


@_question("update_table_tag")
def _update_tag(subject: Subject) -> None:
    table = _tagged(subject)
    subject.ask("delete_from_table", id=table, predicate="n = 1")
    subject.ask("update_table_tag", id=table, tag="first", version=2)
    found = subject.ask("get_table_tag_version", id=table, tag="first")
    expect(that=found.version == len(range(2)), what="it stayed")


@_question("delete_table_tag")
def _delete_tag(subject: Subject) -> None:
    table = _tagged(subject)
    subject.ask("delete_table_tag", id=table, tag="first")
    expect(that=not subject.ask("list_table_tags", id=table).tags, what="it is still there")


def _branched(subject: Subject) -> list[str]:
    table = subject.table()
    subject.ask("create_table_branch", id=table, name="dev")
    return table


@_question("create_table_branch")
def _create_branch(subject: Subject) -> None:
    _branched(subject)


@_question("list_table_branches")
def _list_branches(subject: Subject) -> None:
    found = subject.ask("list_table_branches", id=_branched(subject)).branches
    expect(that="dev" in found, what="it is not listed")


@_question("delete_table_branch")
def _delete_branch(subject: Subject) -> None:
    table = _branched(subject)
    subject.ask("delete_table_branch", id=table, name="dev")
    found = subject.ask("list_table_branches", id=table).branches
    expect(that="dev" not in found, what="it is still there")
