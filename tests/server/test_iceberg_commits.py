"""Commits through the server: versions that Lance staged, properties, and what is refused.

Spec: iceberg-namespace, "Requirement for Implementation Managed Table"; iceberg-rest-openapi,
"updateTable", "commitTransaction".
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest

from mooring.errors import PermissionDeniedError, ServiceUnavailableError, UnknownOutcomeError
from mooring.iceberg.snapshots import Snapshot, find_snapshot
from mooring.tables.versions import manifest_name
from tests.server.served import add, change, kind_of, on_main

CONFLICT = (409, "CommitFailedException")
UNSUPPORTED = (400, "UnsupportedOperationException")
FOREIGN = {
    "snapshot-id": 7_234_567_890_123,
    "parent-snapshot-id": 2,
    "sequence-number": 3,
    "timestamp-ms": 1_800_000_000_000,
    "manifest-list": "s3://b/t/metadata/snap-7-1-x.avro",
    "summary": {"operation": "append", "added-records": "1"},
    "schema-id": 1,
}


def _race(*sends) -> list[int]:
    """Send requests at the same time; return the statuses, sorted."""
    start = Barrier(len(sends))

    def run(send):
        start.wait()
        return send().status_code

    with ThreadPoolExecutor(len(sends)) as threads:
        return sorted(threads.map(run, sends))


# -- versions -------------------------------------------------------------------------------------


def test_staged_manifest_becomes_the_next_version(served):
    served.fill("t", 1, 2)
    snapshot = served.stage("t", 3)
    landed = served.update("t", add(snapshot), [on_main(2)])
    assert landed.status_code == 200, landed.text
    assert landed.json()["metadata-location"].startswith("lance://")
    assert landed.json()["metadata"]["current-snapshot-id"] == 3
    assert served.values("t") == [1, 2, 3]


def test_version_keeps_what_its_writer_told(served):
    """A writer that never heard what became of its commit looks for its own id."""
    served.fill("t", 1)
    snapshot = served.stage("t", 2)
    served.update("t", add(snapshot), [on_main(1)])
    for params in ({}, {"snapshots": "refs"}):
        told = find_snapshot(served.load("t", params=params), 2)
        assert told.commit_id == snapshot.commit_id
        assert told.given == {"who": "ada"}
        assert told.manifest_path.endswith(".manifest")
        assert not told.manifest_path.startswith(("/", "tmp"))


def test_path_of_a_manifest_may_be_relative_to_the_table(served):
    served.fill("t", 1)
    snapshot = served.stage("t", 2)
    below = f"_versions/{snapshot.manifest_path.rpartition('/')[2]}"
    landed = served.update("t", add(replace(snapshot, manifest_path=below)), [on_main(1)])
    assert landed.status_code == 200, landed.text
    assert served.values("t") == [1, 2]


@pytest.mark.parametrize("before", [None, 0])
def test_first_version_of_a_declared_table_is_committed(spaced, before):
    spaced.fill("t", 1)
    spaced.catalog.declare_table(spaced.lake.id("d"))
    name = manifest_name(1)
    body = spaced.versions("t").joinpath(name).read_bytes()
    spaced.versions("d").mkdir(parents=True)
    spaced.versions("d").joinpath(f"{name}-staged").write_bytes(body)
    first = Snapshot(1, 0, f"_versions/{name}-staged")
    assert kind_of(spaced.update("d", add(first), [on_main(1)])) == CONFLICT
    assert spaced.update("d", add(first), [on_main(before)]).status_code == 200
    assert spaced.load("d")["current-snapshot-id"] == 1


def test_of_two_commits_of_one_version_one_lands(served):
    served.fill("t", 1)
    one, other = served.stage("t", 2), served.stage("t", 3)
    assert one.version == other.version == 2
    assert _race(
        lambda: served.update("t", add(one), [on_main(1)]),
        lambda: served.update("t", add(other), [on_main(1)]),
    ) == [200, 409]
    metadata = served.load("t")
    assert metadata["current-snapshot-id"] == 2
    winner = find_snapshot(metadata, 2).commit_id
    assert winner in {one.commit_id, other.commit_id}
    assert served.values("t") == [1, int(winner.removeprefix("commit of "))]


def test_of_two_transactions_of_one_version_one_lands(served):
    served.fill("t", 1)
    one, other = served.stage("t", 2), served.stage("t", 3)
    space = served.namespace
    assert _race(
        lambda: served.transact(change(space, "t", one)),
        lambda: served.transact(change(space, "t", other)),
    ) == [204, 409]
    assert served.load("t")["current-snapshot-id"] == 2
    assert len(served.values("t")) == 2


def test_of_many_commits_one_lands_each_time(served):
    served.fill("t", 1)
    for version in (2, 3):
        staged = [served.stage("t", 10 * version + number) for number in range(3)]
        sends = [
            lambda one=one: served.update("t", add(one), [on_main(version - 1)])  # noqa: B023  # sent within the round
            for one in staged
        ]
        assert _race(*sends) == [200, 409, 409]
    assert len(served.values("t")) == 3


def test_loser_is_refused_later_as_well_and_may_write_again(served):
    served.fill("t", 1)
    late = served.stage("t", 2)
    served.update("t", add(served.stage("t", 3)), [on_main(1)])
    assert kind_of(served.update("t", add(late), [on_main(1)])) == CONFLICT
    assert served.update("t", add(served.stage("t", 2)), [on_main(2)]).status_code == 200
    assert served.values("t") == [1, 2, 3]


def test_transaction_over_two_tables_lands_whole(metastore):
    for name in ("t", "u"):
        metastore.fill(name, 1)
    space = metastore.namespace
    done = metastore.transact(
        change(space, "t", metastore.stage("t", 2)), change(space, "u", metastore.stage("u", 2))
    )
    assert done.status_code == 204, done.text
    assert metastore.values("t") == metastore.values("u") == [1, 2]


@pytest.mark.parametrize("broken", ["late", "manifest", "requirement", "table"])
def test_transaction_over_two_tables_lands_not_at_all(metastore, broken):
    for name in ("t", "u"):
        metastore.fill(name, 1)
    space = metastore.namespace
    good = change(space, "t", metastore.stage("t", 2))
    staged = metastore.stage("u", 2)
    bad = change(space, "u", staged)
    if broken == "late":
        metastore.catalog.table(metastore.lake.id("u")).insert([{"n": 9}])
    elif broken == "manifest":
        bad = change(space, "u", replace(staged, manifest_path="_versions/absent.manifest-x"))
    elif broken == "requirement":
        bad["requirements"].append({"type": "assert-table-uuid", "uuid": "another"})
    else:
        bad = change(space, "absent", staged)
    refused = metastore.transact(good, bad)
    assert refused.status_code in {400, 404, 409}
    assert metastore.values("t") == [1]
    assert metastore.load("t")["current-snapshot-id"] == 1


def test_transactions_that_meet_on_one_table_land_whole_or_not_at_all(metastore):
    for name in ("t", "u", "v"):
        metastore.fill(name, 1)
    space = metastore.namespace
    first = [change(space, name, metastore.stage(name, 2)) for name in ("t", "u")]
    second = [change(space, name, metastore.stage(name, 3)) for name in ("u", "v")]
    statuses = _race(lambda: metastore.transact(*first), lambda: metastore.transact(*second))
    assert statuses == [204, 409]
    won = metastore.values("t") == [1, 2]
    assert metastore.values("t") == ([1, 2] if won else [1])
    assert metastore.values("u") == ([1, 2] if won else [1, 3])
    assert metastore.values("v") == ([1] if won else [1, 3])


@pytest.mark.parametrize("kind", ["plain", "compat"])
def test_directory_refuses_several_tables_before_anything_is_done(kind, request):
    served = request.getfixturevalue(kind)
    for name in ("t", "u"):
        served.fill(name, 1)
    changes = [change(served.namespace, name, served.stage(name, 2)) for name in ("t", "u")]
    before = served.files()
    refused = served.transact(*changes)
    assert kind_of(refused) == UNSUPPORTED
    assert "one table at a time" in refused.json()["error"]["message"]
    assert served.files() == before


def test_transaction_needs_one_change_of_each_named_table(served):
    served.fill("t", 1)
    one = change(served.namespace, "t", served.stage("t", 2))
    assert served.transact(one, one).status_code == 400
    assert served.transact({**one, "identifier": None}).status_code == 400
    assert served.transact().status_code == 204
    assert served.values("t") == [1]


def test_transaction_of_several_tables_makes_versions_only(metastore):
    for name in ("t", "u"):
        metastore.fill(name, 1)
    space = metastore.namespace
    good = change(space, "t", metastore.stage("t", 2))
    other = {
        "identifier": {"namespace": space, "name": "u"},
        "requirements": [],
        "updates": [{"action": "set-properties", "updates": {"a": "b"}}],
    }
    assert kind_of(metastore.transact(good, other)) == UNSUPPORTED
    assert metastore.values("t") == [1]
    assert "a" not in metastore.load("u")["properties"]


# -- who may make versions, and how ---------------------------------------------------------------


def test_snapshot_of_an_iceberg_engine_is_refused_and_nothing_changes(served):
    served.fill("t", 1, 2)
    before = served.files()
    updates = add(Snapshot(3, 0))
    updates[0]["snapshot"], updates[1]["snapshot-id"] = FOREIGN, FOREIGN["snapshot-id"]
    assert kind_of(served.update("t", updates, [on_main(2)])) == CONFLICT
    one = {"identifier": {"namespace": served.namespace, "name": "t"}, "updates": updates}
    assert served.transact({**one, "requirements": [on_main(2)]}).status_code == 409
    updates[0]["snapshot"] = {**FOREIGN, "snapshot-id": 3}
    updates[1]["snapshot-id"] = 3
    assert kind_of(served.update("t", updates, [on_main(2)])) == UNSUPPORTED
    assert served.files() == before


def test_declared_table_is_not_polluted_either(served):
    served.catalog.declare_table(served.lake.id("t"))
    before = served.files()
    updates = add(Snapshot(1, 0))
    assert kind_of(served.update("t", updates, [on_main(None)])) == UNSUPPORTED
    updates[0]["snapshot"] = FOREIGN
    assert kind_of(served.update("t", updates, [on_main(None)])) == CONFLICT
    assert served.files() == before


def test_number_of_a_version_is_the_next(served):
    served.fill("t", 1, 2)
    staged = served.stage("t", 3)
    for version in (1, 2, 4, 99, -1, 2**63):
        snapshot = replace(staged, version=version)
        assert kind_of(served.update("t", add(snapshot), [on_main(2)])) == CONFLICT, version
    assert served.values("t") == [1, 2]


def test_version_needs_to_say_on_what_it_builds(served):
    served.fill("t", 1)
    snapshot = served.stage("t", 2)
    assert kind_of(served.update("t", add(snapshot)))[0] == 400
    assert kind_of(served.update("t", add(snapshot)[:1], [on_main(1)]))[0] == 400
    assert served.values("t") == [1]


ELSEWHERE = [
    "/etc/passwd",
    "../other.lance/_versions/x.manifest-1",
    "_versions/18446744073709551614.manifest",
    "data/x.lance",
    "",
]


def test_manifest_lies_among_the_versions_of_its_table(served):
    served.fill("t", 1)
    served.fill("other", 1)
    before = served.files()
    for path in ELSEWHERE:
        refused = served.update("t", add(Snapshot(2, 0, path)), [on_main(1)])
        assert refused.status_code == 400, path
    assert served.files() == before


def test_staged_file_is_a_manifest_of_the_version(served):
    served.fill("t", 1)
    staged = served.versions("t") / f"{manifest_name(2)}-other"
    first = served.versions("t").joinpath(manifest_name(1)).read_bytes()
    (data,) = [one.read_bytes() for one in served.versions("t").parent.glob("data/*.lance")]
    assert data.endswith(b"LANC")  # as manifests do
    for body in (b"", b"{}", first + b"x", first, data, b"LANC", b"x" * 500 + b"LANC"):
        staged.write_bytes(body)
        refused = served.update("t", add(Snapshot(2, 0, f"_versions/{staged.name}")), [on_main(1)])
        assert kind_of(refused) == (400, "BadRequestException")
    assert served.values("t") == [1]


UNMET = [
    {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"},
    on_main(1),
    on_main(None),
    {"type": "assert-ref-snapshot-id", "ref": "absent", "snapshot-id": 1},
    {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 7},
    {"type": "assert-current-schema-id", "current-schema-id": 0},
    {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
    {"type": "assert-default-spec-id", "default-spec-id": 1},
    {"type": "assert-default-sort-order-id", "default-sort-order-id": 1},
]


def test_requirement_that_does_not_hold_refuses_the_commit(served):
    served.fill("t", 1, 2)
    snapshot = served.stage("t", 3)
    for requirement in UNMET:
        refused = served.update("t", add(snapshot), [on_main(2), requirement])
        assert kind_of(refused) == CONFLICT, requirement
    assert served.values("t") == [1, 2]


def test_requirements_that_hold_are_no_obstacle(served):
    served.fill("t", 1, 2)
    metadata = served.load("t")
    requirements = [
        on_main(2),
        {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
        {"type": "assert-ref-snapshot-id", "ref": "absent", "snapshot-id": None},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 1},
        {"type": "assert-current-schema-id", "current-schema-id": 1},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
        {"type": "assert-default-spec-id", "default-spec-id": 0},
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
    ]
    assert served.update("t", add(served.stage("t", 3)), requirements).status_code == 200


def test_table_that_must_not_exist_does(served):
    served.fill("t", 1)
    refused = served.update("t", [], [{"type": "assert-create"}])
    assert kind_of(refused) == (409, "AlreadyExistsException")
    assert served.update("absent", [], [{"type": "assert-create"}]).status_code == 404


# -- other updates --------------------------------------------------------------------------------

REFUSED: list[dict[str, Any]] = [
    {"action": "set-location", "location": "s3://elsewhere/t"},
    {"action": "remove-snapshots", "snapshot-ids": [1]},
    {"action": "add-spec", "spec": {"fields": []}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": []}},
    {"action": "set-default-sort-order", "sort-order-id": -1},
    {"action": "add-schema", "schema": {"type": "struct", "fields": []}},
    {"action": "set-current-schema", "schema-id": 0},
    {"action": "set-snapshot-ref", "ref-name": "v1", "type": "tag", "snapshot-id": 1},
    {"action": "set-snapshot-ref", "ref-name": "dev", "type": "branch", "snapshot-id": 1},
    {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
    {"action": "remove-snapshot-ref", "ref-name": "main"},
    {"action": "assign-uuid", "uuid": "00000000-0000-0000-0000-000000000000"},
    {"action": "upgrade-format-version", "format-version": 3},
    {"action": "set-statistics", "snapshot-id": 1, "statistics": {}},
    {"action": "remove-statistics", "snapshot-id": 1},
    {"action": "remove-partition-specs", "spec-ids": [0]},
    {"action": "remove-schemas", "schema-ids": [1]},
    {"action": "enable-row-lineage"},
    {"action": "set-properties", "updates": {"gc.enabled": "true"}},
    {"action": "set-properties", "updates": {"Table_Type": "iceberg"}},
    {"action": "set-properties", "updates": {"mooring.retention": "1d"}},
    {"action": "remove-properties", "removals": ["write.data.path"]},
]


def test_what_has_no_meaning_for_lance_is_refused_and_nothing_changes(spaced):
    spaced.fill("t", 1, 2)
    before = spaced.files()
    one = {"identifier": {"namespace": spaced.namespace, "name": "t"}, "requirements": []}
    for update in REFUSED:
        assert kind_of(spaced.update("t", [update])) == UNSUPPORTED, update
        assert spaced.transact({**one, "updates": [update]}).status_code == 400, update
    assert spaced.files() == before


SENSELESS: list[dict[str, Any]] = [
    {},
    {"action": None},
    {"action": "no-such-update"},
    {"action": ["add-snapshot"]},
    {"action": "add-snapshot"},
    {"action": "add-snapshot", "snapshot": {}},
    {"action": "add-snapshot", "snapshot": {"snapshot-id": "x", "summary": {}}},
    {"action": "add-snapshot", "snapshot": {"snapshot-id": 2, "summary": {"a": 1}}},
    {"action": "set-snapshot-ref", "ref-name": "main"},
    {"action": "set-properties", "updates": {"a": 1}},
    {"action": "remove-properties", "removals": "a"},
    {"action": "remove-snapshots", "snapshot-ids": ["a"]},
]


def test_senseless_update_is_refused(served):
    served.fill("t", 1)
    for update in SENSELESS:
        assert served.update("t", [update], [on_main(1)]).status_code == 400, update


def test_what_changes_nothing_is_accepted(served):
    served.fill("t", 1, 2)
    metadata = served.load("t")
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": 1},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "set-location", "location": metadata["location"]},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 2},
        {"action": "remove-snapshots", "snapshot-ids": [99]},
    ]
    before, told = served.files(), served.load("t", params={"snapshots": "refs"})
    assert served.update("t", updates).json()["metadata"] == told
    assert served.update("t", []).json()["metadata"] == told
    assert served.files() == before


def test_schema_beside_a_version_is_the_versions_own(served):
    served.fill("t", 1)
    other = {"type": "struct", "schema-id": 5, "fields": []}
    updates = [
        {"action": "add-schema", "schema": other},
        {"action": "set-current-schema", "schema-id": 5},
        *add(served.stage("t", 2)),
    ]
    landed = served.update("t", updates, [on_main(1)])
    assert landed.status_code == 200, landed.text
    assert landed.json()["metadata"]["schemas"][0]["fields"][0]["name"] == "n"


def test_properties_are_set_and_removed(spaced):
    spaced.fill("t", 1)
    landed = spaced.update("t", [{"action": "set-properties", "updates": {"a": "b", "c": "d"}}])
    assert landed.json()["metadata"]["properties"]["a"] == "b"
    spaced.update(
        "t",
        [
            {"action": "remove-properties", "removals": ["a", "absent"]},
            {"action": "set-properties", "updates": {"c": "e"}},
        ],
    )
    assert spaced.catalog.describe_table(spaced.lake.id("t")).properties == {"c": "e"}
    assert spaced.load("t")["current-snapshot-id"] == 1


def test_plain_directory_says_that_it_keeps_no_properties(plain):
    plain.fill("t", 1)
    refused = plain.update("t", [{"action": "set-properties", "updates": {"a": "b"}}])
    assert kind_of(refused) == UNSUPPORTED


def test_properties_and_a_version_are_not_decided_together(spaced):
    spaced.fill("t", 1)
    updates = [
        {"action": "set-properties", "updates": {"a": "b"}},
        *add(spaced.stage("t", 2)),
    ]
    assert spaced.update("t", updates, [on_main(1)]).status_code == 400
    assert spaced.values("t") == [1]
    assert "a" not in spaced.load("t")["properties"]


def test_two_versions_are_not_made_by_one_commit(served):
    served.fill("t", 1)
    one, other = served.stage("t", 2), served.stage("t", 3)
    assert served.update("t", [*add(one), *add(other)], [on_main(1)]).status_code == 400
    assert served.values("t") == [1]


# -- what nobody knows ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (UnknownOutcomeError("nobody knows"), (500, "CommitStateUnknownException")),
        (ServiceUnavailableError("not now"), (503, "ServiceUnavailableException")),
        (RuntimeError("a secret detail"), (500, "CommitStateUnknownException")),
    ],
)
def test_failed_commit_says_whether_it_may_have_landed(plain, monkeypatch, failure, expected):
    plain.fill("t", 1)
    snapshot = plain.stage("t", 2)

    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(plain.catalog.backend, "create_table_version", fail)
    refused = plain.update("t", add(snapshot), [on_main(1)])
    assert kind_of(refused) == expected
    assert "secret" not in refused.text
    assert "Traceback" not in refused.text


@pytest.mark.parametrize("failure", [ServiceUnavailableError, PermissionDeniedError])
def test_commit_that_landed_is_not_taken_for_refused(plain, monkeypatch, failure):
    plain.fill("t", 1)
    snapshot = plain.stage("t", 2)
    backend = plain.catalog.backend
    create = backend.create_table_version

    def create_then_fail(*given: object, **more: object) -> object:
        record = create(*given, **more)

        def fail(*_: object, **__: object) -> None:
            raise failure("not now")

        monkeypatch.setattr(backend, "describe_table", fail)
        return record

    monkeypatch.setattr(backend, "create_table_version", create_then_fail)
    refused = plain.update("t", add(snapshot), [on_main(1)])
    assert kind_of(refused) == (500, "CommitStateUnknownException")
    monkeypatch.undo()
    assert plain.values("t") == [1, 2]


def test_commit_to_a_table_that_is_renamed_at_once_is_not_taken_for_refused(spaced, monkeypatch):
    """Its writer would look where the table is now, and write the same rows again."""
    spaced.fill("t", 1)
    snapshot = spaced.stage("t", 2)
    backend = spaced.catalog.backend
    create = backend.create_table_version

    def create_then_rename(*given: object, **more: object) -> object:
        record = create(*given, **more)
        backend.rename_table(spaced.lake.id("t"), spaced.lake.id("moved"))
        return record

    monkeypatch.setattr(backend, "create_table_version", create_then_rename)
    told = spaced.update("t", add(snapshot), [on_main(1)])
    assert kind_of(told) == (500, "CommitStateUnknownException")
    assert spaced.values("moved") == [1, 2]
