"""Pages of sorted names, while names come and go."""

from __future__ import annotations

from functools import partial

import pytest

from mooring.errors import InvalidInputError
from mooring.namespace.paging import cut, take_page


def _take(names: list[str], token: str | None, limit: int | None) -> tuple[list[str], str | None]:
    return take_page(partial(cut, names), token, limit)


def _pages(names: list[str], limit: int) -> list[list[str]]:
    pages, token = [], None
    while True:
        page, token = _take(names, token, limit)
        pages.append(page)
        if token is None:
            return pages


def test_without_a_limit_everything_comes_at_once():
    """Spec: lance-rest-openapi, PageLimit."""
    names = [f"{number:04}" for number in range(2500)]
    assert _take(names, None, None) == (names, None)
    assert _take([], None, None) == ([], None)


def test_pages_hold_the_limit_and_the_last_has_no_token():
    assert _pages(list("abcde"), 2) == [["a", "b"], ["c", "d"], ["e"]]
    assert _pages(list("abcd"), 2) == [["a", "b"], ["c", "d"]]
    assert _pages(list("ab"), 5) == [["a", "b"]]
    assert _pages([], 5) == [[]]


def test_an_empty_token_is_the_first_page():
    assert _take(list("abc"), "", 2)[0] == ["a", "b"]


def test_a_token_without_a_limit_gives_the_rest():
    _, token = _take(list("abcde"), None, 2)
    assert _take(list("abcde"), token, None) == (["c", "d", "e"], None)


def test_names_that_come_and_go_move_no_other():
    """None that was there throughout is missed or repeated."""
    first, token = _take(["b", "d", "f", "h"], None, 2)
    assert first == ["b", "d"]
    # The name the token stands on is gone, an earlier and a later one are new.
    rest, token = _take(["a", "b", "e", "f", "h"], token, 10)
    assert rest == ["e", "f", "h"]
    assert token is None


@pytest.mark.parametrize("name", ["日本", "a b", 'quo"te', "😀", "=", "+/"])
def test_any_name_can_end_a_page(name):
    names = sorted([name, name + "z"])
    _, token = _take(names, None, 1)
    assert token is not None
    assert token.isascii()
    assert _take(names, token, 1)[0] == [name + "z"]


@pytest.mark.parametrize("token", ["!", "a", "é", "____", "日本", "YQ=\n"])
def test_a_token_nobody_gave_is_refused(token):
    with pytest.raises(InvalidInputError, match="token"):
        _take(list("abc"), token, 2)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_of_nothing_is_refused(limit):
    with pytest.raises(InvalidInputError, match="limit"):
        _take(list("abc"), None, limit)


def test_a_page_asks_for_one_name_more_than_it_holds_and_no_other():
    """Deliver 1: "paging that does not scan everything for ten rows"."""
    asked = []

    def list_names(after: str | None, limit: int | None) -> list[str]:
        asked.append((after, limit))
        return cut([f"{number:06}" for number in range(1000)], after, limit)

    page, token = take_page(list_names, None, 10)
    page, _ = take_page(list_names, token, 10)
    assert page == [f"{number:06}" for number in range(10, 20)]
    assert asked == [(None, 11), ("000009", 11)]


def test_a_cut_takes_names_after_one_and_of_them_the_first():
    names = list("bdfh")
    assert cut(names, None, None) == names
    assert cut(names, None, 2) == ["b", "d"]
    assert cut(names, "d", None) == ["f", "h"]
    assert cut(names, "e", 1) == ["f"]
    assert cut(names, "z", 5) == []
    assert cut(names, "", 1) == ["b"]
    assert cut([], "a", 1) == []


def test_a_cut_asks_no_further_than_it_needs():
    """What tells whether a name is wanted may be a request to the store."""
    asked = []

    def is_wanted(name: str) -> bool:
        asked.append(name)
        return name in "bdf"

    assert cut(list("abcdefgh"), "a", 2, is_wanted) == ["b", "d"]
    assert asked == ["b", "c", "d"]
    assert cut(list("abcdefgh"), None, None, is_wanted) == ["b", "d", "f"]
