"""A model of an Iceberg REST catalog that lives in a store, and a client of it.

Its whole state is one object, and every request is one call of the store: so it can be paused
before, its answer be lost, and it can arrive late. It checks what a request requires, and nothing
else: servers differ in what they refuse beyond that.
"""

from __future__ import annotations

import json
from typing import ClassVar

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    MooringError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from mooring.iceberg.client import LoadedTable

from .world import MemoryStore, MemoryWorld

SERVER = "irc.json"
REQUEST = "irc:"
ON_THE_WAY = "irc.late"
EMPTY = json.dumps({"namespaces": ["n"], "tables": {}, "made": 0}).encode()

_REFUSALS = {
    error.__name__: error
    for error in (
        ConcurrentModificationError,
        InvalidInputError,
        NamespaceAlreadyExistsError,
        NamespaceNotFoundError,
        TableAlreadyExistsError,
        TableNotFoundError,
    )
}


class Server:
    """An Iceberg catalog: a state, and what each request makes of it."""

    def __init__(self, state: bytes) -> None:
        self._state = json.loads(state)
        self._spaces: list[str] = self._state["namespaces"]
        self._tables: dict[str, dict] = self._state["tables"]

    @property
    def state(self) -> bytes:
        """What is kept of it."""
        return json.dumps(self._state, sort_keys=True).encode()

    def answer(self, request: dict) -> object:
        """Do what is asked."""
        return getattr(self, f"_{request.pop('verb')}")(**request)

    def _load_namespace(self, ns: str) -> dict[str, str]:
        self._require_space(ns)
        return {}

    def _create_namespace(self, ns: str) -> None:
        if ns in self._spaces:
            raise NamespaceAlreadyExistsError(ns)
        self._spaces.append(ns)

    def _list(self, ns: str) -> list[str]:
        self._require_space(ns)
        return sorted(name.partition("/")[2] for name in self._tables if name.startswith(f"{ns}/"))

    def _load(self, name: str) -> dict:
        if name not in self._tables:
            raise TableNotFoundError(name)
        return self._tables[name]

    def _create(self, name: str, location: str, properties: dict) -> dict:
        self._require_space(name.partition("/")[0])
        self._require_free(name)
        self._state["made"] += 1
        self._tables[name] = {
            "table-uuid": f"uuid-{self._state['made']}",
            "location": location,
            "properties": properties,
            "current-schema-id": 0,
            "last-column-id": 0,
            "last-sequence-number": 0,
            "refs": {},
            "snapshots": [],
        }
        return self._tables[name]

    def _drop(self, name: str) -> None:
        self._load(name)
        del self._tables[name]

    def _rename(self, source: str, target: str) -> None:
        found = self._load(source)
        self._require_space(target.partition("/")[0])
        self._require_free(target)
        self._tables[target] = found
        del self._tables[source]

    def _commit(self, changes: list[dict]) -> None:
        for change in changes:
            found = self._load(change["name"])
            for requirement in change["requirements"]:
                self._check(found, requirement)
        for change in changes:
            for update in change["updates"]:
                self._apply(self._tables[change["name"]], update)

    def _check(self, found: dict, requirement: dict) -> None:
        match requirement:
            case {"type": "assert-table-uuid", "uuid": uuid}:
                holds = found["table-uuid"] == uuid
            case {"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": snapshot}:
                holds = found["refs"].get(ref, {}).get("snapshot-id") == snapshot
            case {"type": "assert-last-assigned-field-id", "last-assigned-field-id": last}:
                holds = found["last-column-id"] == last
            case _:
                raise AssertionError(requirement)
        if not holds:
            raise ConcurrentModificationError(str(requirement))

    def _apply(self, found: dict, update: dict) -> None:
        match update:
            case {"action": "add-snapshot", "snapshot": snapshot}:
                self._remove(found, [snapshot["snapshot-id"]])
                found["snapshots"].append(snapshot)
                last = max(found["last-sequence-number"], snapshot["sequence-number"])
                found["last-sequence-number"] = last
            case {"action": "set-snapshot-ref", "ref-name": ref, "snapshot-id": snapshot}:
                found["refs"][ref] = {"snapshot-id": snapshot, "type": "branch"}
            case {"action": "remove-snapshots", "snapshot-ids": doomed}:
                self._remove(found, doomed)
            case {"action": "remove-snapshot-ref", "ref-name": ref}:
                found["refs"].pop(ref, None)
            case {"action": "add-schema", "last-column-id": last}:
                found["last-column-id"] = last
            case {"action": "set-current-schema"}:
                pass  # what is shown matters to nobody here
            case {"action": "set-location", "location": location}:
                found["location"] = location
            case {"action": "set-properties", "updates": updates}:
                found["properties"].update(updates)
            case _:
                raise AssertionError(update)

    def _remove(self, found: dict, doomed: list[int]) -> None:
        kept = [one for one in found["snapshots"] if one["snapshot-id"] not in doomed]
        found["snapshots"] = kept

    def _require_space(self, ns: str) -> None:
        if ns not in self._spaces:
            raise NamespaceNotFoundError(ns)

    def _require_free(self, name: str) -> None:
        if name in self._tables:
            raise TableAlreadyExistsError(name)


class ServedStore(MemoryStore):
    """A store that is a server, too: some objects are answers.

    What is read of it is ``get``; what changes it is ``put_new``, whose answer may be lost.
    """

    is_late = False

    def get(self, path: str) -> bytes | None:
        if path.startswith(REQUEST):
            return self._answer(path.removeprefix(REQUEST))
        return super().get(path)

    def put_new(self, path: str, body: bytes) -> object:
        if not path.startswith(REQUEST):
            return super().put_new(path, body)
        if self.is_late:
            self.is_late = False
            self.content[ON_THE_WAY] = body
            return None
        return self._answer(body.decode())

    def arrive(self) -> None:
        """Do what was asked for long ago."""
        self._answer(self.content.pop(ON_THE_WAY).decode())

    def _answer(self, request: str) -> bytes:
        server = Server(self.content[SERVER])
        try:
            answer = server.answer(json.loads(request))
        except MooringError as exc:
            return json.dumps({"refused": type(exc).__name__, "why": str(exc)}).encode()
        self.content[SERVER] = server.state
        return json.dumps({"answer": answer}).encode()


class ServedWorld(MemoryWorld):
    """Fresh stores that are servers."""

    def open(self, content: dict[str, bytes]) -> ServedStore:
        return ServedStore(content)


class ModelClient:
    """Speaks to the server in the store, as `RestClient` does to one elsewhere."""

    class config:  # noqa: N801  # what a server tells about itself
        separator = "%1F"
        properties: ClassVar[dict[str, str]] = {}

    def __init__(self, store) -> None:
        self._store = store

    def offers(self, method: str, path: str) -> bool:
        return bool(method and path)

    def load_namespace(self, ns: tuple[str, ...]) -> dict[str, str]:
        return self._ask("load_namespace", ns="/".join(ns))

    def create_namespace(self, ns: tuple[str, ...], properties) -> dict[str, str]:
        self._tell("create_namespace", ns="/".join(ns))
        return dict(properties)

    def list_tables(self, ns: tuple[str, ...]) -> list[str]:
        return self._ask("list", ns="/".join(ns))

    def load_table(self, ns, name: str, *, refs_only: bool = False) -> LoadedTable:
        found = self._ask("load", name=_join(ns, name))
        if refs_only:
            named = {ref["snapshot-id"] for ref in found["refs"].values()}
            found["snapshots"] = [one for one in found["snapshots"] if one["snapshot-id"] in named]
        return LoadedTable(found)

    def table_exists(self, ns, name: str) -> bool:
        try:
            self.load_table(ns, name)
        except TableNotFoundError:
            return False
        return True

    def create_table(self, ns, name: str, *, schema, location: str, properties) -> LoadedTable:
        del schema
        found = self._tell(
            "create", name=_join(ns, name), location=location, properties=dict(properties)
        )
        return LoadedTable(found)

    def update_table(self, ns, name: str, requirements, updates) -> None:
        self.commit_transaction([(ns, name, requirements, updates)])

    def commit_transaction(self, changes) -> None:
        told = [
            {"name": _join(ns, name), "requirements": requirements, "updates": updates}
            for ns, name, requirements, updates in changes
        ]
        self._tell("commit", changes=told)

    def drop_table(self, ns, name: str) -> None:
        self._tell("drop", name=_join(ns, name))

    def rename_table(self, source, target) -> None:
        self._tell("rename", source=_join(*source), target=_join(*target))

    def _ask(self, verb: str, **request: object):
        told = json.dumps({"verb": verb, **request}, sort_keys=True)
        return _read_answer(self._store.get(f"{REQUEST}{told}"))

    def _tell(self, verb: str, **request: object):
        told = json.dumps({"verb": verb, **request}, sort_keys=True)
        return _read_answer(self._store.put_new(f"{REQUEST}{verb}", told.encode()))


def _join(ns: tuple[str, ...], name: str) -> str:
    return "/".join((*ns, name))


def _read_answer(body: bytes):
    answer = json.loads(body)
    if "refused" in answer:
        raise _REFUSALS[answer["refused"]](answer["why"])
    return answer["answer"]
