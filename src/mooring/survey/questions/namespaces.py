"""Questions about namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.survey.question import collect_into
from mooring.survey.subject import expect, is_refused, make_body

if TYPE_CHECKING:
    from mooring.survey.question import Question
    from mooring.survey.subject import Subject

__all__ = ["QUESTIONS"]

QUESTIONS: dict[str, Question] = {}
_question = collect_into(QUESTIONS)


@_question("create_namespace")
def _create_namespace(subject: Subject) -> None:
    name = subject.namespace(properties={"owner": "me"})
    subject.ask("namespace_exists", id=[name])


@_question("create_namespace, mode exist_ok")
def _create_namespace_again(subject: Subject) -> None:
    name = subject.namespace(properties={"owner": "me"})
    subject.ask("create_namespace", id=[name], mode="exist_ok", properties={"owner": "you"})
    found = subject.ask("describe_namespace", id=[name]).properties or {}
    expect(that=found.get("owner") == "me", what="the properties changed")


@_question("create_namespace, mode overwrite")
def _overwrite_namespace(subject: Subject) -> None:
    name = subject.namespace(properties={"owner": "me"})
    subject.ask("create_namespace", id=[name], mode="overwrite", properties={"owner": "you"})
    found = subject.ask("describe_namespace", id=[name]).properties or {}
    expect(that=found.get("owner") == "you", what="the properties stayed")


@_question("create_namespace, a wrong mode is refused")
def _wrong_mode(subject: Subject) -> None:
    refused = is_refused(subject, "create_namespace", id=[subject.name("n")], mode="sideways")
    expect(that=refused, what="it was taken")


@_question("describe_namespace")
def _describe_namespace(subject: Subject) -> None:
    name = subject.namespace(properties={"owner": "me"})
    found = subject.ask("describe_namespace", id=[name]).properties
    expect(that=(found or {}).get("owner") == "me", what="the properties are gone")


@_question("namespace_exists")
def _namespace_exists(subject: Subject) -> None:
    subject.ask("namespace_exists", id=[subject.namespace()])
    expect(that=is_refused(subject, "namespace_exists", id=["absent"]), what="an absent one exists")


@_question("list_namespaces")
def _list_namespaces(subject: Subject) -> None:
    name = subject.namespace()
    expect(that=name in subject.ask("list_namespaces", id=[]).namespaces, what="it is not listed")


@_question("list_namespaces, an absent parent is refused")
def _list_absent(subject: Subject) -> None:
    subject.namespace()
    expect(that=is_refused(subject, "list_namespaces", id=["absent"]), what="it lists nothing")


@_question("drop_namespace")
def _drop_namespace(subject: Subject) -> None:
    name = subject.namespace()
    subject.ask("drop_namespace", id=[name])
    expect(that=is_refused(subject, "namespace_exists", id=[name]), what="it is still there")


@_question("drop_namespace, mode skip")
def _skip_absent(subject: Subject) -> None:
    subject.namespace()
    subject.ask("drop_namespace", id=["absent"], mode="skip")


@_question("drop_namespace, behavior cascade")
def _cascade(subject: Subject) -> None:
    name = subject.namespace()
    subject.ask("create_table", make_body(), id=[name, "t"])
    subject.ask("drop_namespace", id=[name], behavior="cascade")
    expect(that=is_refused(subject, "table_exists", id=[name, "t"]), what="its table stayed")
