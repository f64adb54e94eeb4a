"""Questions about the names and lives of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mooring.survey.question import collect_into
from mooring.survey.subject import expect, is_refused, make_body

if TYPE_CHECKING:
    from mooring.survey.question import Question
    from mooring.survey.subject import Subject

__all__ = ["QUESTIONS"]

QUESTIONS: dict[str, Question] = {}
_question = collect_into(QUESTIONS)


@_question("create_table")
def _create_table(subject: Subject) -> None:
    expect(that=subject.count(subject.table()) == len(range(4)), what="rows are missing")


@_question("create_table, mode exist_ok")
def _create_again(subject: Subject) -> None:
    table = subject.table()
    subject.ask("create_table", make_body(rows=9), id=table, mode="exist_ok")
    expect(that=subject.count(table) == len(range(4)), what="the rows changed")


@_question("create_table, mode overwrite")
def _overwrite(subject: Subject) -> None:
    table = subject.table()
    subject.ask("create_table", make_body(rows=9), id=table, mode="overwrite")
    expect(that=subject.count(table) == len(range(9)), what="the rows stayed")


@_question("create_table, an absent namespace is refused")
def _create_nowhere(subject: Subject) -> None:
    refused = is_refused(subject, "create_table", make_body(), id=["absent", subject.name()])
    expect(that=refused, what="it was created")


@_question("declare_table")
def _declare(subject: Subject) -> None:
    table = subject.place()
    subject.ask("declare_table", id=table)
    subject.ask("table_exists", id=table)


@_question("describe_table")
def _describe(subject: Subject) -> None:
    found = subject.ask("describe_table", id=subject.table(), load_detailed_metadata=True)
    expect(that=found.version == 1 and found.var_schema is not None, what="details are missing")


@_question("table_exists")
def _exists(subject: Subject) -> None:
    subject.ask("table_exists", id=subject.table())
    expect(
        that=is_refused(subject, "table_exists", id=[*subject.within, "absent"]),
        what="an absent one exists",
    )


@_question("list_tables")
def _list_tables(subject: Subject) -> None:
    table = subject.table()
    found = subject.ask("list_tables", id=subject.within).tables
    expect(that=table[-1] in found, what="it is not listed")


@_question("list_all_tables")
def _list_all(subject: Subject) -> None:
    table = subject.table()
    found = subject.ask("list_all_tables").tables
    expect(that=any(table[-1] in one for one in found), what="it is not listed")


@_question("register_table")
def _register(subject: Subject) -> None:
    _registered(subject)


def _registered(subject: Subject, **fields: Any) -> list[str]:  # noqa: ANN401  # a request's fields
    table = subject.table()
    location = subject.locate(table)
    subject.ask("deregister_table", id=table)
    # The same name: in a plain directory it is given by the location.
    subject.ask("register_table", id=table, location=location, **fields)
    subject.ask("table_exists", id=table)
    return table


@_question("register_table, properties")
def _register_properties(subject: Subject) -> None:
    table = _registered(subject, properties={"owner": "me"})
    found = subject.ask("describe_table", id=table).properties or {}
    expect(that=found.get("owner") == "me", what="the properties are gone")


@_question("register_table, mode overwrite")
def _register_over(subject: Subject) -> None:
    space = subject.namespace()
    for name, rows in (("old", 4), ("new", 9)):
        subject.ask("create_table", make_body(rows=rows), id=[space, name])
    location = subject.locate([space, "new"])
    subject.ask("deregister_table", id=[space, "new"])
    subject.ask("register_table", id=[space, "old"], location=location, mode="overwrite")
    found = subject.ask("count_table_rows", id=[space, "old"]).count
    expect(that=found == len(range(9)), what="the name kept its table")


@_question("deregister_table")
def _deregister(subject: Subject) -> None:
    table = subject.table()
    subject.ask("deregister_table", id=table)
    expect(that=is_refused(subject, "describe_table", id=table), what="it is still there")


@_question("rename_table")
def _rename(subject: Subject) -> None:
    table, new = subject.table(), subject.place()
    subject.ask("rename_table", id=table, new_table_name=new[-1])
    expect(that=subject.count(new) == len(range(4)), what="the rows are gone")
    expect(that=is_refused(subject, "table_exists", id=table), what="the old name stayed")


@_question("drop_table")
def _drop(subject: Subject) -> None:
    table = subject.table()
    subject.ask("drop_table", id=table)
    expect(that=is_refused(subject, "table_exists", id=table), what="it is still there")
