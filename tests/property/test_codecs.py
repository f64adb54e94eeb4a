"""Whatever is written is read back: identifiers, file names, decisions, hints, pages, times."""

from __future__ import annotations

import unicodedata
from functools import partial

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mooring.clock import parse_ttl
from mooring.directory.decisions import Decision, Hint, State, decode_decision, encode_decision
from mooring.directory.layout import (
    FOREIGN_SUFFIX,
    MAX_NAME_BYTES,
    StateFile,
    check_table_name,
    decision_path,
    hint_path,
    parse_state_file,
)
from mooring.errors import InvalidInputError, InvalidNameError
from mooring.identifiers import ObjectId, check_name, quote
from mooring.namespace.paging import cut, take_page
from mooring.store.numbered import find_newest, format_seq
from mooring.store.remote import RemoteStore
from mooring.tables.versions import parse_manifest

LARGEST_MS = 36**9 - 1


def is_name(text: str) -> bool:
    """Say independently of the code what a name may be."""
    forbidden = any(
        character in "/\\" or unicodedata.category(character) in {"Cc", "Cs"} for character in text
    )
    return bool(text) and text not in {".", ".."} and not forbidden


texts = st.text(max_size=40)
names = texts.filter(is_name)
odd_names = st.text(alphabet="ab$#.%é ", min_size=1, max_size=6).filter(is_name)
delimiters = st.text(alphabet="$#.ab", min_size=1, max_size=3)
times = st.none() | st.integers(0, LARGEST_MS)


@given(texts)
def test_a_text_is_a_name_or_is_refused(text):
    if is_name(text):
        check_name(text)
        return
    with pytest.raises(InvalidNameError) as caught:
        check_name(text)
    assert str(caught.value).isprintable()


@given(texts)
def test_a_quoted_name_can_be_printed(text):
    assert quote(text).isprintable()


@given(st.lists(names | odd_names, max_size=4), delimiters)
def test_an_identifier_is_read_back_with_any_delimiter_or_refused(parts, delimiter):
    """Spec: objects-and-relationships, "Object Identifier"."""
    table = ObjectId.of(parts)
    try:
        text = table.format(delimiter)
    except InvalidNameError:
        # Refused only where it would be read as something else.
        joined = delimiter.join(parts)
        assert joined.split(delimiter) != parts
        return
    assert ObjectId.parse(text, delimiter) == table
    assert ObjectId.parse(text, delimiter).level == len(parts)


@given(st.text(alphabet="ab$#", max_size=12), delimiters)
def test_a_text_is_read_as_levels_that_write_it_again(text, delimiter):
    try:
        table = ObjectId.parse(text, delimiter)
    except InvalidNameError:
        return
    assert table.format(delimiter) == text


@given(names, st.integers(1, 10**20 - 1), st.sampled_from(State), times, times)
def test_state_files_are_read_back(name, seq, state, deleted_at_ms, ttl_ms):
    assume(".lance-state." not in name)
    hint = Hint(state, deleted_at_ms, ttl_ms if deleted_at_ms is not None else None)
    assert parse_state_file(decision_path(name, seq)) == StateFile(name, seq, None)
    text = hint.format()
    assert parse_state_file(hint_path(name, seq, text)) == StateFile(name, seq, text)
    assert Hint.parse(text) == hint


@given(texts)
def test_a_table_name_is_one_that_no_file_of_the_layout_is_read_as(text):
    try:
        check_table_name(text)
    except InvalidNameError:
        return
    assert is_name(text)
    assert parse_state_file(text) is None
    assert not text.endswith(FOREIGN_SUFFIX)
    assert len(text.encode()) <= MAX_NAME_BYTES


@given(
    st.builds(
        Decision,
        state=st.sampled_from(State),
        nonce=st.text(max_size=32),
        prev=st.text(max_size=32),
        action=st.text(max_size=10),
        by=st.text(max_size=20),
        at_ms=st.integers(0, 2**53),
        deleted_at_ms=times,
        ttl_ms=times,
        version=st.none() | st.integers(0, 2**53),
        protected=st.booleans(),
        consumed=st.lists(st.text(max_size=20), max_size=3).map(tuple),
    )
)
def test_decisions_are_read_back(decision):
    assume(not any(unicodedata.category(c) == "Cs" for c in str(decision)))
    assert decode_decision("p", encode_decision(decision)) == decision


@given(st.text(max_size=30))
def test_no_hint_of_anybodys_breaks_the_reader(text):
    found = Hint.parse(text)
    assert found is None or found.state in State


@given(st.integers(-(10**30), 10**30), st.integers(-(10**30), 10**30))
def test_any_numbers_make_a_hint_that_fits_a_file_name(deleted_at_ms, ttl_ms):
    text = Hint(State.UNDROPPING, deleted_at_ms, ttl_ms).format()
    assert len(hint_path("x" * MAX_NAME_BYTES, 1, text).encode()) <= 255
    assert Hint.parse(text) is not None


@given(
    st.sets(st.text(max_size=4).filter(is_name), max_size=20),
    st.sets(st.text(max_size=4).filter(is_name), max_size=20),
    st.sets(st.text(max_size=4).filter(is_name), max_size=20),
    st.integers(1, 6),
)
def test_pages_miss_and_repeat_nothing_that_was_there_throughout(stay, leave, come, limit):
    """Names come and go between any two pages; each page sees another set."""
    seen: list[str] = []
    token, turn = None, 0
    while True:
        passing = leave if turn % 2 == 0 else come
        page, token = take_page(partial(cut, sorted(stay | passing)), token, limit)
        assert len(page) <= limit
        seen += page
        turn += 1
        if token is None:
            break
    assert seen == sorted(set(seen))
    assert stay <= set(seen)


@given(st.text(max_size=12))
def test_no_page_token_of_anybodys_breaks_the_reader(token):
    try:
        page, _ = take_page(partial(cut, ["a", "b"]), token, 1)
    except InvalidInputError:
        return
    assert page in (["a"], ["b"], [])


@given(st.integers(0, 60), st.data())
def test_the_newest_is_found_from_any_start(length, data):
    start = data.draw(st.integers(0, length))
    store = RemoteStore("memory://", {})
    for seq in range(1, length + 1):
        store.put_new(format_seq(seq), str(seq).encode())
    seq, body = find_newest(store, format_seq, start)
    assert seq == length
    assert body == (str(length).encode() if length > start else None)


@given(st.integers(0, 100_000), st.sampled_from(["ms", "s", "m", "h", "d", "w"]))
def test_durations_are_read_in_every_unit(number, unit):
    unit_ms = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
    try:
        assert parse_ttl(f"{number}{unit}") == number * unit_ms[unit]
    except InvalidInputError:
        # Only what passes a thousand years is too long.
        assert number * unit_ms[unit] > 1000 * 365 * unit_ms["d"]


@given(st.text(max_size=10))
def test_any_other_duration_is_refused(text):
    try:
        duration_ms = parse_ttl(text)
    except InvalidInputError:
        return
    assert duration_ms is None or duration_ms >= 0


@given(st.integers(1, 2**64 - 2))
def test_manifest_names_count_down_or_up(version):
    assert parse_manifest(f"{2**64 - 1 - version:020}.manifest") == version
    if version < 10**19:
        assert parse_manifest(f"{version}.manifest") == version
