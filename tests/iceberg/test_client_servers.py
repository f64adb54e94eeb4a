"""The client against real Iceberg REST catalogs, and what each of them does differently.

A difference is not skipped: the test says what the server answers instead.
"""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest

from mooring.errors import (
    ConcurrentModificationError,
    InvalidInputError,
    MooringError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    NotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnauthenticatedError,
    UnsupportedError,
)
from mooring.iceberg.client import ClientSettings, RestClient
from mooring.iceberg.properties import ManagedBy, own_properties
from mooring.iceberg.snapshots import MAIN, Snapshot, current_version, read_snapshots

pytestmark = pytest.mark.interop

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "x", "required": False, "type": "long", "doc": "int64"}],
}
NAMES = ["with space", "日本語", "ключ", "UPPER", "a/b", "a+b", "a%20b", "a&b=c", "🦀"]


@dataclass(frozen=True)
class Traits:
    """What a server does, where servers differ.

    Attributes:
        any_name: Names may have spaces, capitals and letters of all scripts.
        minds_parents: A namespace needs its parent, and a parent with children stays.
        knows_absent: Listing in a namespace that is not there fails.
        minds_namespace: A table needs its namespace.
        refuses_taken: Making a table of a name that is taken fails.
        takes_location: Tables lie where they are told to.
        keeps_snapshots: Snapshots stay until they are removed, and branches go where they are sent.
        asserts_absence: A commit that requires that there be no snapshot fails where there is one.
        knows_refs: Only the snapshots of branches and tags can be asked for.
        lists_endpoints: It says what it offers.
    """

    any_name: bool = True
    minds_parents: bool = True
    knows_absent: bool = True
    minds_namespace: bool = True
    refuses_taken: bool = True
    takes_location: bool = True
    keeps_snapshots: bool = True
    asserts_absence: bool = True
    knows_refs: bool = True
    lists_endpoints: bool = False


TRAITS = {
    "fixture": Traits(
        minds_parents=False, minds_namespace=False, knows_refs=False, lists_endpoints=True
    ),
    "nessie": Traits(
        knows_absent=False, takes_location=False, keeps_snapshots=False, asserts_absence=False
    ),
    "seaweedfs": Traits(
        any_name=False, minds_parents=False, knows_absent=False, refuses_taken=False
    ),
}


@pytest.fixture(scope="module", params=sorted(TRAITS))
def irc(request):
    return request.getfixturevalue(f"{request.param}_irc")


@pytest.fixture
def traits(irc):
    return TRAITS[irc.name]


@pytest.fixture
def settings(irc):
    credential = irc.properties.get("credential")
    return ClientSettings(irc.uri, warehouse=irc.warehouse, credential=credential)


@pytest.fixture
def client(settings):
    opened = RestClient(settings)
    yield opened
    opened.close()


@pytest.fixture
def ns(client):
    """A namespace of the test's own."""
    name = (f"n{uuid.uuid4().hex}",)
    client.create_namespace(name, {"k": "v"})
    return name


def make(client, ns, name, location=None):
    return client.create_table(
        ns, name, schema=SCHEMA, location=location, properties=own_properties(ManagedBy.IMPL)
    )


def step(version, commit_id="mine"):
    """Return what must hold, and what to do, so that a version becomes the newest."""
    parent = version - 1 or None
    snapshot = Snapshot(version, time.time_ns() // 10**6, f"_versions/{version}", 7, "e", commit_id)
    return (
        [{"type": "assert-ref-snapshot-id", "ref": MAIN, "snapshot-id": parent}],
        [
            {"action": "add-snapshot", "snapshot": snapshot.to_json(parent=parent, schema_id=0)},
            {
                "action": "set-snapshot-ref",
                "ref-name": MAIN,
                "type": "branch",
                "snapshot-id": version,
            },
        ],
    )


def test_a_server_says_what_it_offers_or_nothing(client, traits):
    assert (client.config.endpoints is not None) == traits.lists_endpoints
    assert client.offers("POST", "/v1/{prefix}/tables/rename")
    assert client.offers("POST", "/v1/{prefix}/transactions/commit")


@pytest.mark.peer("{irc}", we="namespaces", on="Iceberg REST")
def test_namespaces_live(client, ns):
    assert client.load_namespace(ns).items() >= {"k": "v"}.items()
    assert ns[0] in client.list_namespaces(())
    client.update_namespace(ns, ["k"], {"größe": "日本"})
    found = client.load_namespace(ns)
    assert "k" not in found
    assert found["größe"] == "日本"
    with pytest.raises(NamespaceAlreadyExistsError):
        client.create_namespace(ns, {})
    client.drop_namespace(ns)
    with pytest.raises(NamespaceNotFoundError):
        client.load_namespace(ns)
    with pytest.raises(NamespaceNotFoundError):
        client.drop_namespace(ns)


@pytest.mark.peer("{irc}", we="namespaces", on="Iceberg REST")
def test_namespaces_nest(client, ns, traits):
    client.create_namespace((*ns, "b"), {})
    client.create_namespace((*ns, "b", "c"), {})
    make(client, (*ns, "b", "c"), "t")
    assert client.list_namespaces(ns) == ["b"]
    assert client.list_namespaces((*ns, "b")) == ["c"]
    assert client.list_tables((*ns, "b", "c")) == ["t"]
    assert client.list_tables((*ns, "b")) == []
    with pytest.raises(NamespaceNotEmptyError):
        client.drop_namespace((*ns, "b", "c"))


def test_a_namespace_without_its_parent(client, ns, traits):
    if not traits.minds_parents:
        client.create_namespace((*ns, "no", "c"), {})
        client.create_namespace((*ns, "b"), {})
        client.drop_namespace(ns)
        return
    with pytest.raises(NamespaceNotFoundError):
        client.create_namespace((*ns, "no", "c"), {})
    client.create_namespace((*ns, "b"), {})
    with pytest.raises(NamespaceNotEmptyError):
        client.drop_namespace(ns)


def test_what_is_in_a_namespace_that_is_not_there(client, traits):
    if not traits.knows_absent:
        assert client.list_namespaces(("absent",)) == []
        assert client.list_tables(("absent",)) == []
        return
    with pytest.raises(NamespaceNotFoundError):
        client.list_namespaces(("absent",))
    with pytest.raises(NamespaceNotFoundError):
        client.list_tables(("absent",))


@pytest.mark.parametrize("name", NAMES)
def test_names_travel_as_they_are(client, ns, traits, name):
    if not traits.any_name:
        with pytest.raises(InvalidInputError, match="name"):
            client.create_namespace((*ns, name), {})
        with pytest.raises(InvalidInputError, match="name"):
            make(client, ns, name)
        return
    inner = (*ns, name)
    client.create_namespace(inner, {})
    client.create_namespace((*inner, name), {})
    make(client, inner, f"t {name}")
    assert client.list_namespaces(ns) == [name]
    assert client.list_namespaces(inner) == [name]
    assert client.list_tables(inner) == [f"t {name}"]
    assert client.table_exists(inner, f"t {name}")
    assert client.load_table(inner, f"t {name}").metadata["properties"]["table_type"] == "lance"
    client.rename_table((inner, f"t {name}"), ((*inner, name), name))
    assert client.list_tables((*inner, name)) == [name]
    client.drop_table((*inner, name), name)
    client.drop_namespace((*inner, name))
    assert client.list_namespaces(inner) == []


@pytest.mark.peer("{irc}", we="describe drop", on="Iceberg REST")
def test_tables_live(client, ns, traits):
    made = make(client, ns, "t")
    assert current_version(made.metadata) is None
    assert client.load_table(ns, "t").metadata["table-uuid"] == made.metadata["table-uuid"]
    assert client.table_exists(ns, "t")
    assert not client.table_exists(ns, "absent")
    for call in (client.load_table, client.drop_table):
        with pytest.raises(TableNotFoundError):
            call(ns, "absent")
    with pytest.raises(NotFoundError):
        client.load_table(("absent",), "t")
    with pytest.raises(NamespaceNotEmptyError):
        client.drop_namespace(ns)
    client.drop_table(ns, "t")
    assert not client.table_exists(ns, "t")


def test_a_table_of_a_name_that_is_taken(client, ns, traits):
    made = make(client, ns, "t")
    if not traits.refuses_taken:
        again = make(client, ns, "t")
        assert again.metadata["table-uuid"] == made.metadata["table-uuid"]
        return
    with pytest.raises(TableAlreadyExistsError):
        make(client, ns, "t")


def test_a_table_without_its_namespace(client, traits):
    ns = (f"absent{uuid.uuid4().hex}",)
    if not traits.minds_namespace:
        make(client, ns, "t")
        return
    with pytest.raises(NamespaceNotFoundError):
        make(client, ns, "t")


def test_a_table_lies_where_it_is_told_to(irc, client, ns, traits):
    wanted = f"{irc.properties.get('root', 's3://lake/chosen')}/{ns[0]}"
    found = make(client, ns, "t", wanted).metadata["location"]
    assert (found == wanted) == traits.takes_location


@pytest.mark.peer("{irc}", we="commit", on="Iceberg REST")
def test_commits_are_arbitrated(client, ns, traits):
    made = make(client, ns, "t")
    for version in (1, 2, 3):
        assert current_version(client.update_table(ns, "t", *step(version))) == version
    with pytest.raises(ConcurrentModificationError):
        client.update_table(ns, "t", *step(3))
    with pytest.raises(ConcurrentModificationError):
        client.update_table(ns, "t", *step(5))
    other = [{"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}]
    with pytest.raises(ConcurrentModificationError):
        client.update_table(ns, "t", other, step(4)[1])
    with pytest.raises(TableNotFoundError):
        client.update_table(ns, "absent", *step(1))
    loaded = client.load_table(ns, "t").metadata
    assert loaded["table-uuid"] == made.metadata["table-uuid"]
    newest, *rest = read_snapshots(loaded)
    assert (newest.version, newest.manifest_path, newest.commit_id) == (3, "_versions/3", "mine")
    assert [one.version for one in rest] == ([2, 1] if traits.keeps_snapshots else [])


def test_a_first_commit_is_arbitrated_or_not(client, ns, traits):
    make(client, ns, "t")
    client.update_table(ns, "t", *step(1, "first"))
    if traits.asserts_absence:
        with pytest.raises(ConcurrentModificationError):
            client.update_table(ns, "t", *step(1, "second"))
    else:
        client.update_table(ns, "t", *step(1, "second"))
    (found,) = read_snapshots(client.load_table(ns, "t").metadata)
    assert found.commit_id == ("first" if traits.asserts_absence else "second")


@pytest.mark.peer("{irc}", we="commit", on="Iceberg REST")
def test_of_many_who_commit_a_version_one_does(client, ns):
    make(client, ns, "t")
    client.update_table(ns, "t", *step(1))

    def commit(turn):
        version, writer = turn
        try:
            client.update_table(ns, "t", *step(version, str(writer)))
        except ConcurrentModificationError:
            return None
        return str(writer)

    with ThreadPoolExecutor(5) as pool:
        for version in range(2, 8):
            told = pool.map(commit, [(version, writer) for writer in range(5)])
            (winner,) = [one for one in told if one]
            newest = read_snapshots(client.load_table(ns, "t").metadata)[0]
            assert (newest.version, newest.commit_id) == (version, winner)


def test_snapshots_are_removed(client, ns, traits):
    make(client, ns, "t")
    for version in (1, 2, 3):
        client.update_table(ns, "t", *step(version))
    update = [{"action": "remove-snapshots", "snapshot-ids": [1]}]
    if not traits.keeps_snapshots:
        with pytest.raises(UnsupportedError, match="does not allow external snapshot management"):
            client.update_table(ns, "t", [], update)
        return
    left = read_snapshots(client.update_table(ns, "t", [], update))
    assert [one.version for one in left] == [3, 2]
    client.update_table(ns, "t", [], update)


def test_only_the_newest_snapshot_is_asked_for(client, ns, traits):
    make(client, ns, "t")
    for version in (1, 2, 3):
        client.update_table(ns, "t", *step(version))
    found = client.load_table(ns, "t", refs_only=True).metadata
    assert current_version(found) == 3
    assert (len(found["snapshots"]) == 1) == (traits.knows_refs or not traits.keeps_snapshots)


@pytest.mark.peer("{irc}", we="commit", on="Iceberg REST")
def test_several_tables_change_together_or_not(client, ns):
    for name in ("t", "u"):
        make(client, ns, name)
        client.update_table(ns, name, *step(1))
    client.commit_transaction([(ns, "t", *step(2)), (ns, "u", *step(2))])
    with pytest.raises(ConcurrentModificationError):
        client.commit_transaction([(ns, "t", *step(3)), (ns, "u", *step(2))])
    versions = [current_version(client.load_table(ns, name).metadata) for name in ("t", "u")]
    assert versions == [2, 2]
    with pytest.raises(NotFoundError):
        client.commit_transaction([(ns, "t", *step(3)), (ns, "absent", *step(1))])
    assert current_version(client.load_table(ns, "t").metadata) == 2


def test_properties_of_a_table_change(client, ns):
    make(client, ns, "t")
    update = [{"action": "set-properties", "updates": {"größe": "日本"}}]
    assert client.update_table(ns, "t", [], update)["properties"]["größe"] == "日本"
    update = [{"action": "remove-properties", "removals": ["größe"]}]
    assert "größe" not in client.update_table(ns, "t", [], update)["properties"]


def test_a_rename_decides(client, ns):
    inner = (*ns, "b")
    client.create_namespace(inner, {})
    made = make(client, ns, "t")
    make(client, ns, "taken")
    with pytest.raises(TableAlreadyExistsError):
        client.rename_table((ns, "t"), (ns, "taken"))
    with pytest.raises(TableNotFoundError):
        client.rename_table((ns, "absent"), (ns, "u"))
    client.rename_table((ns, "t"), (inner, "u"))
    with pytest.raises(TableNotFoundError):
        client.rename_table((ns, "t"), (inner, "v"))
    assert client.list_tables(ns) == ["taken"]
    moved = client.load_table(inner, "u").metadata
    assert (moved["table-uuid"], moved["location"]) == (
        made.metadata["table-uuid"],
        made.metadata["location"],
    )


@pytest.mark.peer("{irc}", we="list", on="Iceberg REST")
def test_pages_are_read_to_their_end(settings, client, ns):
    names = [f"t{number:02}" for number in range(23)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: make(client, ns, name), names))
        list(pool.map(lambda name: client.create_namespace((*ns, f"n{name}"), {}), names))
    small = RestClient(replace(settings, page_size=5))
    try:
        assert sorted(small.list_tables(ns)) == names
        assert sorted(small.list_namespaces(ns)) == [f"n{name}" for name in names]
    finally:
        small.close()


def test_what_a_server_does_not_accept_is_told_in_its_words(client, ns):
    make(client, ns, "t")
    with pytest.raises(MooringError) as caught:
        client.update_table(ns, "t", [], [{"action": "no-such-action"}])
    assert f"table '{ns[0]}$t'" in str(caught.value)


def test_a_wrong_credential_is_refused(irc, settings):
    if settings.credential is None:
        return
    stranger = RestClient(replace(settings, credential="mooring:wrong"))
    try:
        with pytest.raises(UnauthenticatedError) as caught:
            _ = stranger.config
    finally:
        stranger.close()
    assert "wrong" not in str(caught.value)
