"""Pages of sorted names, while names come and go."""

from __future__ import annotations

import pytest

from mooring.errors import InvalidInputError
from mooring.namespace.paging import take_page


def _pages(names: list[str], limit: int) -> list[list[str]]:
    pages, token = [], None
    while True:
        page, token = take_page(names, token, limit)
        pages.append(page)
        if token is None:
            return pages


def test_without_a_limit_everything_comes_at_once():
    """Spec: lance-rest-openapi, PageLimit."""
    names = [f"{number:04}" for number in range(2500)]
    assert take_page(names, None, None) == (names, None)
    assert take_page([], None, None) == ([], None)


def test_pages_hold_the_limit_and_the_last_has_no_token():
    assert _pages(list("abcde"), 2) == [["a", "b"], ["c", "d"], ["e"]]
    assert _pages(list("abcd"), 2) == [["a", "b"], ["c", "d"]]
    assert _pages(list("ab"), 5) == [["a", "b"]]
    assert _pages([], 5) == [[]]


def test_an_empty_token_is_the_first_page():
    assert take_page(list("abc"), "", 2)[0] == ["a", "b"]


def test_a_token_without_a_limit_gives_the_rest():
    _, token = take_page(list("abcde"), None, 2)
    assert take_page(list("abcde"), token, None) == (["c", "d", "e"], None)


def test_names_that_come_and_go_move_no_other():
    """None that was there throughout is missed or repeated."""
    first, token = take_page(["b", "d", "f", "h"], None, 2)
    assert first == ["b", "d"]
    # The name the token stands on is gone, an earlier and a later one are new.
    rest, token = take_page(["a", "b", "e", "f", "h"], token, 10)
    assert rest == ["e", "f", "h"]
    assert token is None


@pytest.mark.parametrize("name", ["日本", "a b", 'quo"te', "😀", "=", "+/"])
def test_any_name_can_end_a_page(name):
    names = sorted([name, name + "z"])
    _, token = take_page(names, None, 1)
    assert token is not None
    assert token.isascii()
    assert take_page(names, token, 1)[0] == [name + "z"]


@pytest.mark.parametrize("token", ["!", "a", "é", "____", "日本", "YQ=\n"])
def test_a_token_nobody_gave_is_refused(token):
    with pytest.raises(InvalidInputError, match="token"):
        take_page(list("abc"), token, 2)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_of_nothing_is_refused(limit):
    with pytest.raises(InvalidInputError, match="limit"):
        take_page(list("abc"), None, limit)
