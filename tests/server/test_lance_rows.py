"""Rows on their way in and out: streamed, within bounds, all or nothing.

Spec: lance-rest-openapi, CreateTable, InsertIntoTable, MergeInsertIntoTable, QueryTable.
"""

from __future__ import annotations

import asyncio
import io
import socket
import struct
import threading
import time

import lance_namespace as spec
import pyarrow as pa
import pyarrow.ipc
import pytest

from mooring.errors import ThrottledError
from mooring.namespace.lance import LanceAdapter
from mooring.server.lance.rows import FILE, STREAM, choose_form, write_chunks
from mooring.server.lance.uploads import Room, Upload
from mooring.server.settings import ServerSettings
from mooring.server.work import Lane, Workers
from tests.lakes import COMPAT_DISK, DISK, METASTORE_DISK, Lake
from tests.own_server import run_server
from tests.server.lance_served import ARROW, LanceServed, stream_of, table_of

ROWS = pa.table({"n": pa.array(range(100), pa.int64()), "word": [f"word {n}" for n in range(100)]})
MIB = 1024 * 1024
LIMIT_S = 20


@pytest.fixture(params=[COMPAT_DISK, DISK, METASTORE_DISK], ids=lambda kind: kind.name)
def served(request, tmp_path, clock):
    with LanceServed(Lake(request.param, str(tmp_path / "lake"), {}, clock)) as found:
        found.create("t", ROWS)
        yield found


@pytest.fixture
def one(tmp_path, clock):
    with LanceServed(Lake(COMPAT_DISK, str(tmp_path / "lake"), {}, clock)) as found:
        found.create("t", ROWS)
        yield found


def wait_for(fact, what):
    """Wait until something is so."""
    end = time.monotonic() + LIMIT_S
    while not fact():
        assert time.monotonic() < end, f"{what} did not come to be"
        time.sleep(0.01)


# -- broken streams --------------------------------------------------------------------------------


def _file():
    sink = io.BytesIO()
    with pyarrow.ipc.new_file(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    return sink.getvalue()


def _damaged(column: int, buffer: int, data: bytes) -> bytes:
    """Return a stream of rows, one buffer of which holds something else of the same size."""
    batch = ROWS.combine_chunks().to_batches()[0]
    original = batch.column(column).buffers()[buffer].to_pybytes()
    whole = stream_of(ROWS)
    at = whole.index(original[:64])
    return whole[:at] + data + whole[at + len(data) :]


BROKEN = {
    "nothing": b"",
    "garbage": b"\x00garbage" * 100,
    "text": b"n,word\n1,a\n",
    "a file": _file(),
    "cut in the schema": stream_of(ROWS)[:50],
    "cut in the rows": stream_of(ROWS)[:-300],
    "a huge message": b"\xff\xff\xff\xff" + struct.pack("<i", 2**31 - 1) + b"x" * 100,
    "a message of less than nothing": b"\xff\xff\xff\xff" + struct.pack("<i", -5) + b"x" * 100,
    "offsets beyond the end": _damaged(1, 1, struct.pack("<4i", 0, 6, 2**30, 18)),
    "offsets that go back": _damaged(1, 1, struct.pack("<4i", 0, 6, 3, 1)),
    "no UTF-8": _damaged(1, 2, b"\xff\xfe\xfd"),
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_a_broken_stream_changes_nothing(one, body):
    before = one.files
    merge = {"on": "n", "when_matched_update_all": "true", "when_not_matched_insert_all": "true"}
    for response in (
        one.send("t", "insert", body),
        one.send("t", "insert", body, params={"mode": "overwrite"}),
        one.send("t", "merge_insert", body, params=merge),
        one.send("u", "create", body),
        one.send("t", "create", body, params={"mode": "overwrite"}),
    ):
        assert (response.status_code, response.json()["code"]) == (400, 13), response.text
    assert one.files == before
    assert one.query("t").num_rows == 100


def test_a_broken_stream_changes_nothing_of_any_catalog(served):
    before = served.files
    for action in ("insert", "create"):
        response = served.send(
            "t" if action == "insert" else "u", action, BROKEN["cut in the rows"]
        )
        assert (response.status_code, response.json()["code"]) == (400, 13), response.text
    assert served.files == before


def test_rows_that_do_not_fit_change_nothing(served):
    before = served.files
    for rows in (pa.table({"n": ["text"]}), pa.table({"other": [1]})):
        response = served.send("t", "insert", rows)
        assert (response.status_code, response.json()["code"]) == (400, 20), response.text
    assert served.files == before
    absent = served.send("absent", "insert", ROWS)
    assert (absent.status_code, absent.json()["code"]) == (404, 4)
    assert served.files == before


def test_a_schema_alone_is_a_table_without_rows(served):
    served.create("u", ROWS.slice(0, 0))
    assert served.ask("u", "count_rows") == 0
    assert served.query("u").schema.names == ["n", "word"]
    assert served.send("u", "insert", ROWS.slice(0, 0)).json()["num_inserted_rows"] == 0
    assert served.send("u", "insert", ROWS).json()["num_inserted_rows"] == 100


def test_rows_into_a_declared_table_are_its_first(served):
    """Also where they are to be merged: there is nothing that they could be merged with."""
    for name, action, params in (("d", "insert", {}), ("e", "merge_insert", {"on": "n"})):
        served.ask(name, "declare")
        how = {**params, "when_matched_update_all": "true"}
        assert served.send(name, action, ROWS, params=how).json()["num_inserted_rows"] == 100
        assert served.query(name).num_rows == 100


def test_rows_are_merged_by_columns_of_any_name(one):
    """The parameter is repeated, as RestNamespace does: a name may hold a comma."""
    rows = pa.table({"a,b": [1, 1], "c": [1, 2], "d": [0, 0]})
    one.create("u", rows)
    how = {"on": ["a,b", "c"], "when_matched_update_all": "true"}
    news = pa.table({"a,b": [1], "c": [2], "d": [9]})
    assert one.send("u", "merge_insert", news, params=how).json()["num_updated_rows"] == 1
    assert one.query("u").sort_by("c")["d"].to_pylist() == [0, 9]


# -- uploads ---------------------------------------------------------------------------------------


async def _pieces(*parts: bytes, after=None):
    for part in parts:
        yield part
    if after is not None:
        raise after


def _large() -> bytes:
    """Return a stream of more rows than are gathered before a thread is asked for."""
    wide = pa.table({"n": range(1200), "word": ["x" * 10_000] * 1200})
    return stream_of(wide, max_chunksize=50)


def test_large_uploads_are_written_while_they_come(one):
    body = _large()
    assert len(body) > 8 * MIB
    parts = (body[at : at + 100_000] for at in range(0, len(body), 100_000))
    assert one.send("u", "create", parts).status_code == 200
    assert one.send("u", "insert", iter([body])).json()["num_inserted_rows"] == 1200
    merge = {"on": "n", "when_matched_update_all": "true"}
    merged = one.send("u", "merge_insert", body, params=merge)
    assert merged.status_code in {200, 400}, merged.text  # two rows of the table are one by key
    assert one.ask("u", "count_rows") == 2400


def test_a_large_broken_upload_leaves_no_file(served):
    body = _large()
    before = served.files
    for name, action in (("u", "create"), ("t", "insert")):
        response = served.send(name, action, body[: 9 * MIB])
        assert (response.status_code, response.json()["code"]) in {(400, 13), (400, 20)}
    assert served.files == before


def test_what_is_gathered_of_all_uploads_is_bounded():
    room = Room(100)
    room.take(60)
    with pytest.raises(Exception, match="too many send rows at once") as caught:
        room.take(50)
    assert caught.value.code == 21
    room.give_back(60)
    room.take(100)


def test_a_failed_upload_never_looks_like_its_end():
    """Whoever reads on after a failure gets it again."""

    async def run():
        upload = Upload(_pieces(after=OSError("cut")), Room())
        upload.is_whole = False

        def read():
            with pytest.raises(OSError, match="cut"):
                upload.read(10)
            with pytest.raises(OSError, match="cut"):
                upload.read(10)

        await asyncio.to_thread(read)

    asyncio.run(run())


def test_no_thread_waits_for_an_upload_that_was_given_up():
    async def run():
        waits = asyncio.Event()

        async def never():
            waits.set()
            await asyncio.Event().wait()
            yield b""

        upload = Upload(never(), Room())
        reading = asyncio.create_task(asyncio.to_thread(upload.read, 10))
        await waits.wait()
        upload.abandon()
        with pytest.raises(Exception, match="cut off"):
            await reading

    asyncio.run(run())


def _raw(address: str, path: str, length: int) -> socket.socket:
    """Begin a request of rows whose body is to be sent by hand."""
    host, _, port = address.removeprefix("http://").partition(":")
    opened = socket.create_connection((host, int(port)), timeout=LIMIT_S)
    head = f"POST /lance/v1{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {ARROW}\r\n"
    opened.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode())
    return opened


def _under_way(served: LanceServed) -> int:
    return sum(served.service.workers.under_way.values())


@pytest.mark.parametrize("sent", [50, 300_000, 10 * MIB], ids=["little", "some", "much"])
def test_a_client_that_hangs_up_while_it_sends_changes_nothing(one, sent):
    body = _large()
    before = one.files
    with run_server(one.service) as address:
        for path in ("/table/u/create", "/table/t/insert"):
            opened = _raw(address, path, len(body))
            opened.sendall(body[:sent])
            if sent > 8 * MIB:
                wait_for(lambda: _under_way(one), "the upload")
            opened.close()
        wait_for(lambda: not _under_way(one), "the end of the uploads")
    assert one.files == before


def test_slow_uploads_keep_nobody_from_asking(tmp_path, clock):
    """More clients than there are threads send rows, and stop in the middle."""
    body = _large()
    settings = ServerSettings(data_threads=2, idle_timeout_s=LIMIT_S)
    with LanceServed(Lake(COMPAT_DISK, str(tmp_path / "lake"), {}, clock), settings) as served:
        served.create("t", ROWS)
        before = served.files
        with run_server(served.service) as address:
            slow = [_raw(address, "/table/u/create", len(body)) for _ in range(6)]
            for opened in slow[:3]:
                opened.sendall(body[:1000])
            for opened in slow[3:]:
                opened.sendall(body[: 10 * MIB])
            wait_for(lambda: served.service.workers.under_way[Lane.UPLOAD] == 3, "the uploads")
            assert served.service.workers.under_way[Lane.DATA] == 0
            client = spec.connect("rest", {"uri": f"{address}/lance"})
            asked = spec.QueryTableRequest(id=["t"], vector={}, k=0)
            assert table_of(client.query_table(asked).data).num_rows == 100
            request = spec.InsertIntoTableRequest(id=["t"])
            client.insert_into_table(request, stream_of(ROWS))
            for opened in slow:
                opened.close()
            wait_for(lambda: not _under_way(served), "the end of the uploads")
        assert {path for path in served.files if "/u" in path} == {
            path for path in before if "/u" in path
        }


def test_a_client_that_stops_sending_is_told(tmp_path, clock):
    body = _large()
    settings = ServerSettings(idle_timeout_s=0.2)
    with LanceServed(Lake(COMPAT_DISK, str(tmp_path / "lake"), {}, clock), settings) as served:
        served.create("t")
        before = served.files
        with run_server(served.service) as address:
            for sent in (1000, 10 * MIB):
                with _raw(address, "/table/u/create", len(body)) as opened:
                    opened.sendall(body[:sent])
                    answer = opened.recv(10_000).decode()
                    assert answer.startswith("HTTP/1.1 400")
        assert not _under_way(served)
        assert served.files == before


# -- conflicts -------------------------------------------------------------------------------------


def _adapter(served: LanceServed) -> LanceAdapter:
    return LanceAdapter(served.catalog.backend, "a test")


def _meanwhile(rows: pa.Table, do) -> pa.RecordBatchReader:
    """Return rows that can be read once, in the middle of which something else happens."""

    def batches():
        first, *rest = rows.to_batches(max_chunksize=50)
        yield first
        do()
        yield from rest

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def test_rows_that_come_once_survive_a_conflict(served):
    """Lance commits again what it has written, and merges again what it has kept."""
    adapter = _adapter(served)
    more = pa.table({"n": pa.array(range(50, 150), pa.int64()), "word": ["new"] * 100})

    def change():
        served.ask("t", "update", {"updates": [["word", "'changed'"]], "predicate": "n < 60"})

    adapter.insert_into_table(
        spec.InsertIntoTableRequest(id=served.id("t")), _meanwhile(ROWS, change)
    )
    assert served.ask("t", "count_rows") == 200
    served.ask("t", "restore", {"version": 1})
    how = spec.MergeInsertIntoTableRequest(
        id=served.id("t"),
        on=["n"],
        when_matched_update_all=True,
        when_not_matched_insert_all=True,
    )
    done = adapter.merge_insert_into_table(how, _meanwhile(more, change))
    assert (done.num_updated_rows, done.num_inserted_rows) == (50, 50)
    found = served.query("t").sort_by("n")
    assert found["n"].to_pylist() == list(range(150))
    words = found["word"].to_pylist()
    assert words[:50] == ["changed"] * 50
    assert words[50:] == ["new"] * 100


# -- queries ---------------------------------------------------------------------------------------


def test_rows_come_as_the_client_asks_for_them(one):
    plain = one.post(one.at("t", "query"))
    assert plain.headers["content-type"] == FILE
    asked = one.post(one.at("t", "query"), headers={"accept": STREAM})
    assert asked.headers["content-type"] == STREAM
    assert pyarrow.ipc.open_stream(asked.content).read_all() == table_of(plain.content)
    for accept in ("*/*", "application/json", f"{STREAM}, {FILE}", ""):
        assert choose_form(accept) == FILE
    assert choose_form(f"text/html;q=0.1, {STREAM.upper()};q=1") == STREAM


def _words(*lists):
    kind = pa.dictionary(pa.int8(), pa.string())
    chunks = [pa.array(values, pa.string()).dictionary_encode().cast(kind) for values in lists]
    return pa.table({"word": pa.chunked_array(chunks)})


def test_a_file_has_one_dictionary_for_a_column(one):
    """A stream may replace one, a file may not."""
    rows = _words(["a", "b"], ["b", "c", None])
    one.create("u", rows.slice(0, 2))
    one.send("u", "insert", rows.slice(2))
    found = one.query("u")
    assert found["word"].to_pylist() == ["a", "b", "b", "c", None]
    assert pa.types.is_dictionary(found.schema.field("word").type)


def test_dictionaries_within_others_are_one_as_well():
    inner = [
        pa.ListArray.from_arrays([0, 2], pa.array(words).dictionary_encode())
        for words in (["a", "b"], ["c", "a"])
    ]
    rows = pa.table({"words": pa.chunked_array(inner)})
    whole = b"".join(write_chunks(rows.to_reader()))
    assert table_of(whole)["words"].to_pylist() == [["a", "b"], ["c", "a"]]


def test_dictionaries_that_do_not_fit_one_are_refused(one):
    many = [[f"{start} {n}" for n in range(100)] for start in range(2)]
    one.create("u", _words(many[0]))
    one.send("u", "insert", _words(many[1]))
    response = one.post(one.at("u", "query"))
    assert (response.status_code, response.json()["code"]) == (400, 13)
    asked = one.post(one.at("u", "query"), headers={"accept": STREAM})
    assert pyarrow.ipc.open_stream(asked.content).read_all().num_rows == 200


def test_large_rows_are_sent_in_parts():
    rows = pa.table({"word": ["x" * 100_000] * 200})
    for form, read in ((FILE, table_of), (STREAM, lambda b: pyarrow.ipc.open_stream(b).read_all())):
        chunks = list(write_chunks(rows.to_reader(), form))
        assert len(chunks) > 3
        assert max(map(len, chunks)) < 9 * MIB
        assert read(b"".join(chunks)) == rows


class _Slow:
    """A catalog whose rows never end, or end badly; takes note of who stops reading."""

    def __init__(self, adapter, *, fails: bool):
        self._adapter = adapter
        self._fails = fails
        self.closed = threading.Event()

    def __getattr__(self, name):
        return getattr(self._adapter, name)

    def query_table_stream(self, request):
        schema = pa.schema({"word": pa.string()})
        batch = pa.record_batch({"word": ["x" * 1000] * 1000}, schema)

        def batches():
            try:
                for _ in range(20 if self._fails else 10**9):
                    yield batch
                raise OSError("the disk is on fire")
            finally:
                self.closed.set()

        return pa.RecordBatchReader.from_batches(schema, batches())


def _begin(address: str) -> socket.socket:
    host, _, port = address.removeprefix("http://").partition(":")
    opened = socket.create_connection((host, int(port)), timeout=LIMIT_S)
    opened.sendall(b"POST /lance/v1/table/t/query HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return opened


def test_a_query_that_nobody_reads_any_more_ends(one):
    slow = _Slow(_adapter(one), fails=False)
    with run_server(slow) as address:
        with _begin(address) as opened:
            assert opened.recv(100).startswith(b"HTTP/1.1 200")
        assert slow.closed.wait(LIMIT_S)


def test_a_query_that_fails_in_the_middle_is_cut_off(one):
    slow = _Slow(_adapter(one), fails=True)
    with run_server(slow) as address, _begin(address) as opened:
        answer = b""
        while part := opened.recv(MIB):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"chunked" in answer[:500].lower()
    assert len(answer) > 5 * MIB
    assert not answer.endswith(b"0\r\n\r\n")
    assert slow.closed.is_set()


def test_what_was_begun_is_never_refused():
    """A query whose rows are half sent waits for a thread, however many do."""

    async def run():
        workers, gate = Workers(ServerSettings(data_threads=1, most_waiting=0)), threading.Event()
        try:
            busy = asyncio.create_task(workers.run(Lane.DATA, lambda: gate.wait(LIMIT_S)))
            await asyncio.sleep(0)
            with pytest.raises(ThrottledError):
                await workers.run(Lane.DATA, lambda: 1)
            next_step = asyncio.create_task(workers.run(Lane.DATA, lambda: 2, goes_on=True))
            await asyncio.sleep(0)
            gate.set()
            assert await busy
            assert await next_step == 2
        finally:
            gate.set()
            workers.close()

    asyncio.run(run())


def test_a_query_that_fails_at_once_is_a_failure(one):
    for body in ({"filter": "((("}, {"filter": "absent > 1"}, {"version": 99}):
        response = one.post(one.at("t", "query"), body)
        assert 400 <= response.status_code < 500
        assert response.json()["code"] in {11, 12, 13}
