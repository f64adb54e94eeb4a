import pytest

from mooring.cli.ages import parse_age
from mooring.errors import InvalidInputError


def test_an_age_is_a_duration_that_ends():
    assert parse_age("12h") == 12 * 3600 * 1000
    with pytest.raises(InvalidInputError, match="'never' is no age"):
        parse_age("never")
