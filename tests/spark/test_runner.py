"""The parts of a job as tasks of Spark."""

from __future__ import annotations

import pytest

from mooring.errors import InvalidInputError
from mooring.jobs.runner import Threads
from mooring.spark.runner import SparkRunner


def double(number: int) -> int:
    if number < 0:
        msg = f"{number} cannot be doubled"
        raise InvalidInputError(msg)
    return 2 * number


@pytest.fixture(params=["threads", "spark"])
def runner(request):
    if request.param == "threads":
        return Threads(2)
    return SparkRunner(request.getfixturevalue("spark"))


def test_results_are_in_the_order_of_the_items(runner, spark):
    heard = []
    assert runner.run(double, [3, 1, 2], on_done=heard.append) == [6, 2, 4]
    assert sorted(heard) == [2, 4, 6]


def test_no_items_are_no_work(runner, spark):
    assert runner.run(double, []) == []


def test_a_failure_of_a_part_is_raised_as_what_it_is(runner, spark):
    with pytest.raises(InvalidInputError, match="-1 cannot be doubled"):
        runner.run(double, [1, -1])
