"""What a figure tells: ratios of the rounds, their spread, and targets."""

import pytest
from bench.curves import Curve, Line
from bench.figures import Figure
from bench.report import tell_ratio, tell_spread
from bench.sections import Section
from bench.units import spread_of


def test_a_ratio_is_that_of_the_medians_and_its_spread_that_of_the_rounds():
    # In the second round the machine was busy for both.
    figure = Figure("list", [1.0, 10.0, 1.0], beside="other", theirs=[2.0, 20.0, 3.0])
    assert figure.ratios == (2.0, 2.0, 3.0)
    assert figure.faster == 3.0
    assert tell_ratio(figure) == "3.0x faster"
    assert tell_spread(figure) == "2.00x to 3.0x, 3 rounds"


def test_what_is_slower_is_told_by_how_many_times_the_time_it_takes():
    figure = Figure("list", [4.0, 4.0], beside="other", theirs=[1.0, 2.0], within=3)
    assert tell_ratio(figure) == "2.67x of it"
    assert tell_spread(figure) == "2.00x to 4.0x, 2 rounds"
    assert figure.is_met


def test_the_spread_of_many_rounds_is_their_middle_half():
    assert spread_of([5.0, *(1.0,) * 6, 100.0]) == (1.0, 2.0)
    assert spread_of([3.0, 1.0, 2.0]) == (1.0, 3.0)
    assert spread_of([1.0]) is None


def test_one_value_is_told_as_one_run():
    assert tell_spread(Figure("migrate", 2.0)) == "1 run"
    assert tell_spread(Figure("migrate", 2.0, beside="other", theirs=3.0)) == "1 run"
    assert not tell_spread(Figure("list", 3, kind="requests", beside="other", theirs=30))


def test_sides_with_other_numbers_of_rounds_are_told_as_that():
    figure = Figure("compact", 1.0, beside="other", theirs=[2.0, 4.0])
    assert tell_spread(figure) == "2.00x to 4.0x, 1 run beside 2"


def test_a_mean_counts_what_a_median_hides():
    rounds = [1.0] * 9 + [11.0]
    assert Figure("commit", rounds, theirs=[2.0] * 10).faster == 2.0
    assert Figure("commit", rounds, theirs=[2.0] * 10, average="mean").faster == 1.0


@pytest.mark.parametrize(
    ("figure", "target", "is_met"),
    [
        (Figure("a", 1.0, theirs=5.0, at_least=5), ">= 5x faster", True),
        (Figure("a", 1.0, theirs=4.9, at_least=5), ">= 5x faster", False),
        (Figure("a", 3.0, theirs=1.0, within=2), "within 2x of it", False),
        (Figure("a", 0.2, at_most=0.1), "<= 100.0 ms", False),
        (Figure("a", 0, kind="count", at_most=0), "<= 0", True),
        (Figure("a", 1.0), "", None),
    ],
)
def test_a_target_is_met_or_missed(figure, target, is_met):
    assert figure.target == target
    assert figure.is_met is is_met


@pytest.mark.parametrize(
    "figure",
    [
        Figure("a", 1.0, beside="other", at_least=5, missing="there is no other"),
        Figure("a", at_most=1.0, missing="the disk is full"),
    ],
)
def test_a_target_of_what_was_not_measured_is_neither_met_nor_missed(figure):
    assert figure.target
    assert figure.is_met is None


def test_a_section_is_read_back_as_it_was_kept():
    figures = [
        Figure("a", [1.0, 2.0], beside="b", theirs=[3.0, 4.0], at_least=1, is_telling=True),
        Figure("none lost", 0, kind="count", at_most=0, group="counts"),
        Figure("c", missing="no such peer", is_failure=True),
    ]
    line = Line("mooring", ((10, [1.0, 2.0]), (100, 3.0)))
    curve = Curve("grown", "catalog size", "tables", (line,), "rate", group="growth")
    section = Section("All", [*figures, curve], ["a note"])
    assert Section.from_json(section.to_json()) == section
