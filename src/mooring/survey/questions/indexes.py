"""Questions about indexes and statistics."""

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


def _indexed(subject: Subject) -> list[str]:
    table = subject.table()
    subject.ask("create_table_scalar_index", id=table, column="n", index_type="BTREE", name="by_n")
    return table


@_question("create_table_scalar_index")
def _scalar_index(subject: Subject) -> None:
    _indexed(subject)


@_question("create_table_index")
def _vector_index(subject: Subject) -> None:
    subject.ask(
        "create_table_index",
        id=subject.table(),
        column="vector",
        index_type="IVF_FLAT",
        num_partitions=1,
        distance_type="l2",
    )


@_question("list_table_indices")
def _list_indices(subject: Subject) -> None:
    found = subject.ask("list_table_indices", id=_indexed(subject)).indexes
    expect(that=[one.index_name for one in found] == ["by_n"], what="it is not listed")


@_question("describe_table_index_stats")
def _index_stats(subject: Subject) -> None:
    table = _indexed(subject)
    found = subject.ask("describe_table_index_stats", id=table, index_name="by_n")
    expect(that=found.num_indexed_rows == len(range(4)), what="rows are not counted")


@_question("drop_table_index")
def _drop_index(subject: Subject) -> None:
    table = _indexed(subject)
    subject.ask("drop_table_index", id=table, index_name="by_n")
    expect(that=not subject.ask("list_table_indices", id=table).indexes, what="it is still there")


@_question("get_table_stats")
def _stats(subject: Subject) -> None:
    found = subject.ask("get_table_stats", id=subject.table())
    expect(that=found.num_rows == len(range(4)), what="rows are not counted")
