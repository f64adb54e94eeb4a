"""Questions about columns, and about what is noted of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.survey.question import collect_into

if TYPE_CHECKING:
    from mooring.survey.question import Question
    from mooring.survey.subject import Subject

__all__ = ["QUESTIONS"]

QUESTIONS: dict[str, Question] = {}
_question = collect_into(QUESTIONS)


@_question("alter_table_add_columns")
def _add_columns(subject: Subject) -> None:
    new = [{"name": "m", "expression": "n * 2"}]
    subject.ask("alter_table_add_columns", id=subject.table(), new_columns=new)


@_question("alter_table_alter_columns")
def _alter_columns(subject: Subject) -> None:
    changed = [{"path": "n", "rename": "m"}]
    subject.ask("alter_table_alter_columns", id=subject.table(), alterations=changed)


@_question("alter_table_drop_columns")
def _drop_columns(subject: Subject) -> None:
    subject.ask("alter_table_drop_columns", id=subject.table(), columns=["word"])


@_question("alter_table_backfill_columns")
def _backfill(subject: Subject) -> None:
    table = subject.table()
    new = [{"name": "m", "computed": "n * 2"}]
    subject.ask("alter_table_add_columns", id=table, new_columns=new)
    subject.ask("alter_table_backfill_columns", id=table, column="m")


@_question("update_table_schema_metadata")
def _schema_metadata(subject: Subject) -> None:
    subject.ask("update_table_schema_metadata", id=subject.table(), metadata={"a": "b"})


@_question("update_field_metadata")
def _field_metadata(subject: Subject) -> None:
    updates = [{"path": "n", "metadata": {"unit": "s"}}]
    subject.ask("update_field_metadata", id=subject.table(), updates=updates)
