"""Questions about transactions and materialized views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.survey.question import collect_into

if TYPE_CHECKING:
    from mooring.survey.question import Question
    from mooring.survey.subject import Subject

__all__ = ["QUESTIONS"]

QUESTIONS: dict[str, Question] = {}
_question = collect_into(QUESTIONS)


@_question("describe_transaction")
def _describe_transaction(subject: Subject) -> None:
    table = subject.table()
    done = subject.ask("restore_table", id=table, version=1)
    subject.ask("describe_transaction", id=[*table, done.transaction_id or "none"])


@_question("alter_transaction")
def _alter_transaction(subject: Subject) -> None:
    table = subject.table()
    done = subject.ask("restore_table", id=table, version=1)
    action = {"set_property_action": {"key": "a", "value": "b"}}
    subject.ask("alter_transaction", id=[*table, done.transaction_id or "none"], actions=[action])


@_question("create_materialized_view")
def _create_view(subject: Subject) -> None:
    subject.ask(
        "create_materialized_view",
        id=subject.place(),
        kind="query",
        source_query="SELECT 1",
        output_schema="{}",
    )


@_question("refresh_materialized_view")
def _refresh_view(subject: Subject) -> None:
    subject.ask("refresh_materialized_view", id=subject.place())
