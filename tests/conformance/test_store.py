"""One behaviour of every store: files, memory, and two S3 servers.

"store/": the verbs; soft-delete, "Conditional-write reliability".
"""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mooring.errors import (
    MooringError,
    PermissionDeniedError,
    ServiceUnavailableError,
    StoreUnsafeError,
    UnauthenticatedError,
    UnknownOutcomeError,
    UnsupportedError,
)
from mooring.store import ObjectTag, open_store, probe_store
from mooring.store.numbered import create_once
from mooring.store.passing import PROBE_PREFIX
from mooring.store.wrapped import WrappedStore
from tests.servers import S3Server

ODD_NAMES = [
    "a b",
    " lead",
    "trail ",
    "a%20b",
    "100%",
    "%2e%2e",
    "%2F",
    "a#b",
    "a?b=c",
    "a&b",
    "a+b",
    "a=b",
    "a@b",
    "a:b",
    "a;b",
    "it's",
    'say "hi"',
    "*",
    "<x>",
    "[x]{y}",
    "`x`",
    "$HOME",
    "~",
    "^|",
    "...",
    ".hidden",
    "-rf",
    "é",
    "e\u0301",
    "日本語",
    "العربية",
    "😀",
    "x" * 200,
]
S3 = pytest.mark.s3


@pytest.fixture(
    params=[
        "disk",
        "memory",
        pytest.param("moto", marks=S3),
        pytest.param("seaweedfs", marks=S3),
    ]
)
def store(request, prefix, tmp_path):
    if request.param == "disk":
        return open_store(tmp_path / "root")
    if request.param == "memory":
        return open_store("memory://")
    server = request.getfixturevalue(request.param)
    return open_store(server.uri(prefix), server.options)


@pytest.fixture
def keeps_empty_directories(request):
    """Whether the store lists directories for a while after their last object is gone.

    SeaweedFS removes its empty folders in the background.
    """
    return request.node.callspec.params["store"] == "seaweedfs"


# -- reading and writing --------------------------------------------------------------------------


def test_an_empty_store_answers_every_question(store):
    assert store.get("a") is None
    assert store.read("a") is None
    assert store.head("a") is None
    assert store.existing(["a", "b/c"]) == set()
    assert store.existing([]) == set()
    listing = store.list_dir("")
    assert (listing.directories, listing.files, listing.exists) == ([], [], False)
    assert store.list_prefix("a") == []
    assert store.delete_prefix("a") == 0
    store.delete(["a", "b/c"])
    store.delete([])


def test_what_is_put_is_got(store):
    store.put("a", b"first")
    assert store.get("a") == b"first"
    store.put("a", b"second")
    assert store.get("a") == b"second"
    store.put("empty", b"")
    assert store.get("empty") == b""
    large = bytes(range(256)) * 4096
    store.put("d/large", large)
    assert store.get("d/large") == large


def test_head_tells_size_time_and_tag(store):
    store.put("d/a", b"12345")
    first = store.head("d/a")
    assert (first.path, first.size_bytes) == ("d/a", 5)
    assert first.modified_ms > 1_600_000_000_000
    assert first.tag != ObjectTag()
    store.put("d/a", b"1234567")
    second = store.head("d/a")
    assert second.size_bytes == 7
    assert second.mark != first.mark


def test_read_tells_what_get_and_head_tell(store):
    for body in (b"12345", b""):
        store.put("d/a", body)
        found = store.read("d/a")
        assert found.body == body
        assert found.meta == store.head("d/a")


def test_a_directory_is_no_object(store):
    store.put("d/a", b"x")
    assert store.get("d") is None
    assert store.read("d") is None
    assert store.head("d") is None


def test_existing_tells_which_of_many_are_there(store):
    for name in ("a", "d/b"):
        store.put(name, b"")
    assert store.existing(["a", "absent", "d/b", "d/c"]) == {"a", "d/b"}


def test_put_new_creates_once(store):
    assert store.put_new("d/a", b"first") is True
    assert store.put_new("d/a", b"second") is False
    assert store.get("d/a") == b"first"
    store.delete(["d/a"])
    assert store.put_new("d/a", b"third") is True
    assert store.get("d/a") == b"third"


def test_put_new_gives_way_to_what_put_wrote(store):
    store.put("a", b"first")
    assert store.put_new("a", b"second") is False
    assert store.get("a") == b"first"


def test_create_once_compares_the_content(store):
    assert create_once(store, "a", b"mine")
    assert create_once(store, "a", b"mine")
    assert not create_once(store, "a", b"other")


def test_put_if_replaces_what_is_unchanged(store):
    store.put("a", b"first")
    tag = store.head("a").tag
    if not store.capabilities.compare_and_swap:
        with pytest.raises(UnsupportedError, match="compare-and-swap"):
            store.put_if("a", b"second", tag)
        assert store.get("a") == b"first"
        return
    assert store.put_if("a", b"second", tag) is True
    assert store.put_if("a", b"third", tag) is False
    assert store.get("a") == b"second"
    store.delete(["a"])
    assert store.put_if("a", b"fourth", tag) is False
    assert store.get("a") is None


# -- listing and deleting -------------------------------------------------------------------------


def test_list_dir_shows_one_level(store):
    for path in ("a", "d/b", "d/e/c", "d2/x"):
        store.put(path, b"")
    root = store.list_dir("")
    assert (sorted(root.directories), root.files, root.exists) == (["d", "d2"], ["a"], True)
    below = store.list_dir("d")
    assert (below.directories, below.files, below.exists) == (["e"], ["b"], True)
    assert not store.list_dir("absent").exists
    assert not store.list_dir("a").exists


def test_list_prefix_shows_everything_below_a_directory(store):
    for path in ("d/b", "d/e/c", "d/e/f/g", "d2/x", "da", "d.lance/x"):
        store.put(path, b"123")
    found = store.list_prefix("d")
    assert sorted(meta.path for meta in found) == ["d/b", "d/e/c", "d/e/f/g"]
    assert {meta.size_bytes for meta in found} == {3}
    assert len(store.list_prefix("")) == 6


def test_marks_of_a_listing_tell_a_change(store):
    store.put("d/a", b"1")
    (before,) = store.list_prefix("d")
    store.put("d/a", b"22")
    (after,) = store.list_prefix("d")
    assert before.tag != after.tag


def test_delete_takes_present_and_absent_objects(store):
    for path in ("a", "d/b", "d/c"):
        store.put(path, b"")
    store.delete(["a", "absent", "d/b", "no/where"])
    assert store.existing(["a", "d/b", "d/c"]) == {"d/c"}
    store.delete(path for path in ["d/c"])
    assert store.get("d/c") is None


def test_delete_prefix_deletes_below_a_directory_only(store, keeps_empty_directories):
    for path in ("d/b", "d/e/c", "d2/x", "da"):
        store.put(path, b"")
    assert store.delete_prefix("d") == 2
    assert store.list_prefix("d") == []
    assert store.existing(["d2/x", "da"]) == {"d2/x", "da"}
    assert store.list_dir("d").files == []
    assert not store.list_dir("d").exists or keeps_empty_directories


def test_a_directory_without_objects_can_be_pruned(store, keeps_empty_directories):
    store.put("d/e/a", b"")
    store.prune("d")
    assert store.get("d/e/a") == b""
    store.delete(["d/e/a"])
    store.prune("d")
    assert not store.list_dir("d").exists or keeps_empty_directories
    store.prune("absent")


def test_odd_names_work_in_every_verb(store):
    for name in ODD_NAMES:
        path = f"{name}.lance/{name}"
        assert store.put_new(path, name.encode()), name
        assert not store.put_new(path, b"other"), name
        store.put(f"{name}.deleted", b"x")
    root = store.list_dir("")
    assert sorted(root.directories) == sorted(f"{name}.lance" for name in ODD_NAMES)
    assert sorted(root.files) == sorted(f"{name}.deleted" for name in ODD_NAMES)
    paths = [f"{name}.lance/{name}" for name in ODD_NAMES]
    assert store.existing(paths) == set(paths)
    for name, path in zip(ODD_NAMES, paths, strict=True):
        assert store.get(path) == name.encode(), name
        assert store.head(path).path == path
        assert store.list_dir(f"{name}.lance").files == [name]
        assert [meta.path for meta in store.list_prefix(f"{name}.lance")] == [path]
    for name in ODD_NAMES[::2]:
        assert store.delete_prefix(f"{name}.lance") == 1, name
    store.delete(paths)
    assert store.existing(paths) == set()
    assert not any(store.list_prefix(f"{name}.lance") for name in ODD_NAMES)


# -- contention -----------------------------------------------------------------------------------


def _together(count, act):
    """Run ``act(0..count-1)`` in threads that start at one moment; return the results."""
    barrier = threading.Barrier(count)

    def run(number):
        barrier.wait()
        return act(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_of_sixteen_creations_at_once_one_wins(store):
    won = _together(16, lambda number: store.put_new("race", f"writer {number}".encode()))
    assert won.count(True) == 1
    assert store.get("race") == f"writer {won.index(True)}".encode()


def test_of_eight_swaps_at_once_one_wins(store):
    store.put("race", b"before")
    tag = store.head("race").tag
    if not store.capabilities.compare_and_swap:
        with pytest.raises(UnsupportedError):
            store.put_if("race", b"after", tag)
        return
    won = _together(8, lambda number: store.put_if("race", f"writer {number}".encode(), tag))
    assert won.count(True) == 1
    assert store.get("race") == f"writer {won.index(True)}".encode()


# -- the probe ------------------------------------------------------------------------------------


def test_the_probe_accepts_a_store_that_creates_once(store):
    probe_store(store)
    assert not [name for name in store.list_dir("").files if name.startswith(PROBE_PREFIX)]


@S3
def test_the_probe_refuses_a_store_that_ignores_the_condition(rclone, prefix):
    """Must show: `rclone serve s3` accepts `If-None-Match` and ignores it."""
    store = open_store(rclone.uri(prefix), rclone.options)
    with pytest.raises(StoreUnsafeError) as caught:
        probe_store(store)
    message = str(caught.value)
    assert rclone.uri(prefix) in message
    assert "If-None-Match" in message
    assert "read-only" in message
    assert store.list_dir("").files == []


def test_the_probe_knows_its_own_put_that_was_sent_twice():
    """A transport that repeats a request makes a creation find itself there."""

    class Repeating(WrappedStore):
        def put_new(self, path, body):
            if self.inner.get(path) is None:
                self.inner.put_new(path, body)
            return self.inner.put_new(path, body)

    store = Repeating(open_store("memory://"))
    probe_store(store)
    assert store.list_dir("").files == []


# -- refusals -------------------------------------------------------------------------------------


@S3
def test_wrong_credentials_are_told_by_every_verb(seaweedfs, prefix):
    wrong = {**seaweedfs.options, "aws_secret_access_key": "wrong"}
    store = open_store(seaweedfs.uri(prefix), wrong)
    for act in (
        lambda: store.get("a"),
        lambda: store.head("a"),
        lambda: store.list_dir(""),
        lambda: store.list_prefix("d"),
        lambda: store.put_new("a", b""),
        lambda: store.put("a", b""),
    ):
        with pytest.raises((PermissionDeniedError, UnauthenticatedError)):
            act()


@S3
def test_a_missing_bucket_is_a_definite_refusal(moto):
    """A 404 is an answer: nothing is unknown, and trying again cannot help."""
    store = open_store("s3://no-such-bucket/lake", moto.options)
    for act in (
        lambda: store.list_dir(""),
        lambda: store.list_prefix("d"),
        lambda: store.put_new("a", b""),
        lambda: store.put("a", b""),
    ):
        with pytest.raises(MooringError) as caught:
            act()
        assert not isinstance(caught.value, UnknownOutcomeError)
        assert not caught.value.retryable


def test_a_silent_server_leaves_only_puts_unknown():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    gone = S3Server(f"http://127.0.0.1:{port}")
    store = open_store(gone.uri("x"), gone.options)
    with pytest.raises(ServiceUnavailableError) as caught:
        store.get("a")
    assert not isinstance(caught.value, UnknownOutcomeError)
    with pytest.raises(UnknownOutcomeError):
        store.put_new("a", b"")


# -- going through a directory --------------------------------------------------------------------


def test_a_directory_is_gone_through_in_the_order_of_names(store):
    for name in ("b", "a", "c", "d/below"):
        store.put(f"dir/{name}", name.encode())
    store.put("directory", b"beside")
    assert [meta.path for meta in store.iter_dir("dir")] == ["dir/a", "dir/b", "dir/c"]
    assert [meta.path for meta in store.iter_dir("dir", after="a")] == ["dir/b", "dir/c"]
    assert [meta.size_bytes for meta in store.iter_dir("dir", after="b")] == [1]
    assert list(store.iter_dir("absent")) == []
    assert next(iter(store.iter_dir("dir"))).path == "dir/a"
