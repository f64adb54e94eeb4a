"""Where the boxes and lines of a graph are drawn."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.server.ui.activity.graph import Graph, Node
from mooring.server.ui.activity.layers import Layout, Sizes, lay_out

SIZES = Sizes()
NODES = 12


def crossings(layout: Layout) -> int:
    ends = [(one.points[0], one.points[-1]) for one in layout.lines]
    return sum(
        (a[0][1] - b[0][1]) * (a[1][1] - b[1][1]) < 0
        for a, b in combinations(ends, 2)
        if a[0][0] == b[0][0] and a[1][0] == b[1][0]
    )


def test_lines_lead_from_left_to_right():
    layout = lay_out(4, [(0, 1), (1, 2), (0, 2), (2, 3)])
    assert [one.layer for one in layout.boxes] == [0, 1, 2, 3]
    for line in layout.lines:
        xs = [x for x, _ in line.points]
        assert xs == sorted(xs)
        assert not line.is_back


def test_crossings_are_avoided():
    crossed = [(0, 5), (1, 4), (2, 3)]
    assert crossings(lay_out(6, crossed)) == 0
    tree = [(0, 4), (1, 3), (2, 4), (1, 5), (0, 6), (2, 6)]
    assert crossings(lay_out(7, tree)) <= 1


def test_a_line_has_a_way_past_the_boxes_between():
    layout = lay_out(3, [(0, 1), (1, 2), (0, 2)])
    far = layout.lines[2]
    between = layout.boxes[1]
    passing = [y for x, y in far.points if between.x <= x <= between.x + SIZES.width]
    assert passing
    assert all(not between.y <= y <= between.y + SIZES.height for y in passing)


def test_cycles_end_and_what_leads_back_is_marked():
    layout = lay_out(3, [(0, 1), (1, 2), (2, 0), (1, 1)])
    assert [one.is_back for one in layout.lines] == [False, False, True, True]
    assert layout.lines[2].points[0][0] > layout.lines[2].points[-1][0]


def test_nothing_needs_no_place():
    assert lay_out(0, []).boxes == []
    assert len(lay_out(3, []).boxes) == 3


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=30, unique=True
    )
)
def test_whatever_the_graph_boxes_lie_beside_each_other_within_the_drawing(edges):
    layout = lay_out(NODES, edges)
    assert layout == lay_out(NODES, edges)
    for one, other in combinations(layout.boxes, 2):
        if one.layer == other.layer:
            assert abs(one.y - other.y) >= SIZES.height
    for box in layout.boxes:
        assert 0 <= box.x <= layout.width - SIZES.width
        assert 0 <= box.y <= layout.height - SIZES.height
    for line in layout.lines:
        assert all(0 <= x <= layout.width and 0 <= y <= layout.height for x, y in line.points)
        assert line.is_back == (line.points[0][0] >= line.points[-1][0]) or line.is_back


def test_many_layers_do_not_reach_the_end_of_the_stack():
    nodes = 3000
    layout = lay_out(nodes, [(one, one + 1) for one in range(nodes - 1)])
    assert layout.boxes[-1].layer == nodes - 1


def test_around_a_node_only_what_leads_there_or_follows():
    graph = Graph()
    for key in "abcde":
        graph.add(Node(key, "table", key))
    for source, target in ("ab", "bc", "dc", "be"):
        graph.join(source, target)
    near = graph.around("b", 1)
    assert set(near.nodes) == {"a", "b", "c", "e"}
    assert set(near.edges) == {("a", "b"), ("b", "c"), ("b", "e")}
    assert set(graph.around("c", 5).nodes) == {"a", "b", "c", "d"}
    assert set(graph.around("nowhere", 5).nodes) == set()
