import pytest

from mooring.amounts import how_many


@pytest.mark.parametrize(
    ("number", "words", "said"),
    [
        (0, ("table",), "0 tables"),
        (1, ("table",), "1 table"),
        (1200, ("table",), "1,200 tables"),
        (1, ("property", "properties"), "1 property"),
        (2, ("property", "properties"), "2 properties"),
    ],
)
def test_an_amount_is_one_thing_or_several(number, words, said):
    assert how_many(number, *words) == said
