"""Pictures of the report: well-formed, told in words, and with everything inside."""

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from bench.axes import fit
from bench.bars import draw_ratios
from bench.charts import draw_curve
from bench.curves import Curve, Line
from bench.figures import Figure

SVG = "{http://www.w3.org/2000/svg}"


def curve(*lines, kind="seconds"):
    return Curve("List <all> tables", "catalog size", "tables", lines, kind)


FAR = curve(
    Line("mooring", ((10, [1e-4, 2e-4]), (10_000, [3e-3, 2e-3]))),
    Line("another", ((10, [1e-3, 1e-3]), (10_000, [2.0, 1.0]))),
)
NEAR = curve(
    Line("mooring", ((1, 100.0), (2, 180.0))), Line("another", ((1, 90.0), (2, 178.0))), kind="rate"
)
ONE = curve(Line("mooring", ((10, 1e-3), (20, 1e-3))))


def places(svg):
    """Give where everything lies, with the size of the picture first."""
    root = ET.fromstring(svg)  # noqa: S314  # ours
    width, height = (float(part) for part in root.get("viewBox").split()[2:])
    for one in root.iter():
        for across, down in (("x", "y"), ("x1", "y1"), ("x2", "y2"), ("cx", "cy")):
            if one.get(across):
                yield width, height, float(one.get(across)), float(one.get(down))
        for pair in (one.get("points") or "").split():
            yield width, height, *map(float, pair.split(","))


@pytest.mark.parametrize("drawn", [FAR, NEAR, ONE], ids=["far", "near", "one"])
def test_a_curve_stays_inside_its_picture(drawn):
    found = list(places(draw_curve(drawn)))
    assert len(found) > 10
    assert all(0 <= x <= width and 0 <= y <= height for width, height, x, y in found)


def test_a_picture_is_told_in_words_and_has_colours_for_the_dark():
    svg = draw_curve(FAR)
    root = ET.fromstring(svg)  # noqa: S314  # ours
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text == "List <all> tables"
    assert "another: 1.0 ms at 10, 1,500.0 ms at 10,000." in root.find(f"{SVG}desc").text
    assert "prefers-color-scheme: dark" in root.find(f"{SVG}style").text


def test_names_at_the_ends_of_lines_do_not_lie_over_each_other():
    root = ET.fromstring(draw_curve(NEAR))  # noqa: S314  # ours
    names = [one for one in root.iter(f"{SVG}text") if (one.get("class") or "").startswith("f")]
    heights = sorted(float(one.get("y")) for one in names)
    assert len(heights) == 2
    assert all(after - before >= 15 for before, after in pairwise(heights))


def test_values_far_apart_are_on_a_logarithmic_axis():
    axis = fit([1, 10_000], 0, 400)
    assert axis.is_logarithmic
    assert [axis.place(tick) for tick in axis.ticks] == [0, 100, 200, 300, 400]
    axis = fit([80, 100], 0, 400)
    assert not axis.is_logarithmic
    assert axis.place(0) == 0
    assert axis.ticks[-1] == 100


def test_bars_go_right_where_it_is_faster_and_left_where_it_is_slower():
    figures = [
        Figure("fast", [1.0, 1.0], beside="other", theirs=[10.0, 12.0]),
        Figure("slow", [4.0, 4.0], beside="other", theirs=[1.0, 1.0]),
        Figure("alone", 1.0),
    ]
    svg = draw_ratios("Ratios", figures)
    root = ET.fromstring(svg)  # noqa: S314  # ours
    bars = [one for one in root.iter(f"{SVG}rect") if (one.get("class") or "").startswith("bar")]
    base = next(
        float(one.get("x1")) for one in root.iter(f"{SVG}line") if one.get("class") == "base"
    )
    fast, slow = bars
    assert float(fast.get("x")) == base
    assert float(slow.get("x")) + float(slow.get("width")) == pytest.approx(base)
    assert all(0 <= x <= width and 0 <= y <= height for width, height, x, y in places(svg))


def test_figures_without_another_beside_them_make_no_bars():
    assert not draw_ratios("Ratios", [Figure("alone", 1.0), Figure("not here", missing="why")])
