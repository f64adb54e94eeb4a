"""Where the boxes and lines of a graph are drawn: layers from left to right, few crossings.

Only numbers come in and go out, and the same ones give the same drawing. What leads back is drawn
as if it led on, so that no cycle keeps anything from ending. A line that passes a layer has a place
in it, as if it were a box without height.

After Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of Hierarchical System
Structures", with the barycenters of neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Box", "Layout", "Line", "Sizes", "lay_out"]

_SWEEPS = 12
_SETTLING = 8

_Links = dict[int, list[int]]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large things are."""

    width: float = 172
    height: float = 46
    across: float = 80
    between: float = 18
    margin: float = 14
    passing: float = 12


@dataclass(frozen=True, slots=True)
class Box:
    """Where a node is: its left upper corner."""

    x: float
    y: float
    layer: int


@dataclass(frozen=True, slots=True)
class Line:
    """The way of an edge: the points it passes, from its source to its target."""

    points: tuple[tuple[float, float], ...]
    is_back: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """A drawing.

    Attributes:
        boxes: The nodes, in the order they were given.
        lines: The edges, in the order they were given.
        width: Of the drawing.
        height: Of the drawing.
    """

    boxes: Sequence[Box]
    lines: Sequence[Line]
    width: float
    height: float


def lay_out(nodes: int, edges: Sequence[tuple[int, int]], sizes: Sizes | None = None) -> Layout:
    """Find a place for everything.

    Args:
        nodes: How many nodes there are; they are called by their numbers.
        edges: From which to which node.
        sizes: How large things are.
    """
    sizes = sizes or Sizes()
    back = _find_back(nodes, edges)
    onward = [(b, a) if number in back else (a, b) for number, (a, b) in enumerate(edges)]
    layers = _assign_layers(nodes, onward)
    chains, layers = _add_passing(onward, layers)
    order = _order(layers, chains)
    tops = _place(order, chains, layers, _Heights(nodes, sizes))
    boxes = [
        Box(sizes.margin + layers[one] * (sizes.width + sizes.across), tops[one], layers[one])
        for one in range(nodes)
    ]
    lines = [
        _line(chain, boxes, tops, sizes, is_back=number in back)
        for number, chain in enumerate(_whole(chains, onward))
    ]
    width = max((one.x for one in boxes), default=0) + sizes.width + sizes.margin
    height = max((one.y for one in boxes), default=0) + sizes.height + sizes.margin
    return Layout(boxes, lines, width, max([height, *_depths(lines, sizes)]))


def _depths(lines: Iterable[Line], sizes: Sizes) -> list[float]:
    return [y + sizes.margin for line in lines for _, y in line.points]


# -- which edges lead back -------------------------------------------------------------------------


def _find_back(nodes: int, edges: Sequence[tuple[int, int]]) -> set[int]:
    """Return the edges that close a cycle, by going through the graph in depth."""
    leaving: dict[int, list[tuple[int, int]]] = defaultdict(list)
    entered = {target for source, target in edges if source != target}
    for number, (source, target) in enumerate(edges):
        leaving[source].append((number, target))
    # From where nothing leads to first: there the way begins.
    starts = sorted(range(nodes), key=lambda one: (one in entered, one))
    back: set[int] = set()
    done: set[int] = set()
    for start in starts:
        if start not in done:
            back |= _go_through(start, leaving, done)
    return back


def _go_through(
    start: int, leaving: Mapping[int, Sequence[tuple[int, int]]], done: set[int]
) -> set[int]:
    back: set[int] = set()
    above = {start}
    way = [(start, iter(leaving.get(start, ())))]
    while way:
        node, left = way[-1]
        number, target = next(left, (-1, -1))
        if number < 0:
            way.pop()
            above.discard(node)
            done.add(node)
        elif target in above:
            back.add(number)
        elif target not in done:
            above.add(target)
            way.append((target, iter(leaving.get(target, ()))))
    return back


# -- layers ----------------------------------------------------------------------------------------


def _assign_layers(nodes: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Put every node right of all that lead to it; those that only lead on stand close to it."""
    after, before = _links(edges)
    waits = [len(before[one]) for one in range(nodes)]
    ready = [one for one in range(nodes) if not waits[one]]
    layers = [0] * nodes
    sorted_nodes = []
    while ready:
        node = ready.pop(0)
        sorted_nodes.append(node)
        for target in after[node]:
            layers[target] = max(layers[target], layers[node] + 1)
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    for node in reversed(sorted_nodes):
        if after[node] and not before[node]:
            layers[node] = min(layers[one] for one in after[node]) - 1
    return layers


def _links(edges: Iterable[tuple[int, int]]) -> tuple[_Links, _Links]:
    after: _Links = defaultdict(list)
    before: _Links = defaultdict(list)
    for source, target in edges:
        if source != target:
            after[source].append(target)
            before[target].append(source)
    return after, before


def _add_passing(
    edges: Sequence[tuple[int, int]], layers: Sequence[int]
) -> tuple[list[list[int]], list[int]]:
    """Return the nodes of each edge, one a layer, and the layers with those that were added."""
    found, chains = list(layers), []
    for source, target in edges:
        between = range(layers[source] + 1, layers[target])
        added = list(range(len(found), len(found) + len(between)))
        found.extend(between)
        chains.append([source, *added, target])
    return chains, found


# -- the order within a layer ----------------------------------------------------------------------


def _order(layers: Sequence[int], chains: Sequence[Sequence[int]]) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(max(layers, default=-1) + 1)]
    for node, layer in enumerate(layers):
        rows[layer].append(node)
    pairs = [pair for chain in chains for pair in pairwise(chain)]
    after, before = _links(pairs)
    best, fewest = [list(row) for row in rows], _count_crossings(rows, after)
    for sweep in range(_SWEEPS):
        is_down = sweep % 2 == 0
        order = range(1, len(rows)) if is_down else range(len(rows) - 2, -1, -1)
        for layer in order:
            beside = rows[layer - 1] if is_down else rows[layer + 1]
            rows[layer] = _sorted_row(rows[layer], beside, before if is_down else after)
        crossings = _count_crossings(rows, after)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def _sorted_row(row: Sequence[int], beside: Sequence[int], links: _Links) -> list[int]:
    """Sort a layer by the mean place of what each is linked to in the one beside it."""
    places = {node: place for place, node in enumerate(beside)}

    def center(place: int, node: int) -> float:
        near = [places[one] for one in links[node] if one in places]
        return sum(near) / len(near) if near else place

    centers = {node: center(place, node) for place, node in enumerate(row)}
    return sorted(row, key=centers.__getitem__)


def _count_crossings(rows: Sequence[Sequence[int]], after: _Links) -> int:
    total = 0
    for left, right in pairwise(rows):
        places = {node: place for place, node in enumerate(right)}
        ends = [
            place
            for node in left
            for place in sorted(places[one] for one in after[node] if one in places)
        ]
        total += _count_inversions(ends, len(right))
    return total


def _count_inversions(values: Sequence[int], size: int) -> int:
    """Count pairs in the wrong order, with sums kept in a tree."""
    sums = [0] * (size + 1)
    total = 0
    for seen, value in enumerate(values):
        total += seen - _sum(sums, value + 1)
        at = value + 1
        while at <= size:
            sums[at] += 1
            at += at & -at
    return total


def _sum(sums: Sequence[int], at: int) -> int:
    total = 0
    while at > 0:
        total += sums[at]
        at -= at & -at
    return total


# -- places ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Heights:
    nodes: int
    sizes: Sizes

    def of(self, node: int) -> float:
        """Return how high a node is; lines that pass need little."""
        return self.sizes.height if node < self.nodes else self.sizes.passing


def _place(
    rows: Sequence[Sequence[int]],
    chains: Sequence[Sequence[int]],
    layers: Sequence[int],
    heights: _Heights,
) -> list[float]:
    """Return the upper end of every node: each near the middle of its neighbours."""
    pairs = [pair for chain in chains for pair in pairwise(chain)]
    after, before = _links(pairs)
    tops = [0.0] * len(layers)
    for row in rows:
        _spread(row, dict.fromkeys(row, 0.0), tops, heights)
    for turn in range(_SETTLING):
        links = before if turn % 2 == 0 else after
        for row in rows if turn % 2 == 0 else list(reversed(rows)):
            wanted = {node: _middle(node, links, tops, heights) for node in row}
            _spread(row, wanted, tops, heights)
    highest = min(tops, default=0.0)
    return [top - highest + heights.sizes.margin for top in tops]


def _middle(node: int, links: _Links, tops: Sequence[float], heights: _Heights) -> float:
    near = [tops[one] + heights.of(one) / 2 for one in links[node]]
    return sum(near) / len(near) - heights.of(node) / 2 if near else tops[node]


def _spread(
    row: Sequence[int], wanted: Mapping[int, float], tops: list[float], heights: _Heights
) -> None:
    """Put a layer as near as can be to where it should be, in its order and without overlaps.

    Nodes that would overlap make a block, which is put where all of it is nearest.
    """
    gap = heights.sizes.between
    blocks: list[tuple[float, list[int], float]] = []  # its top, its nodes, its height
    for node in row:
        top, nodes, height = wanted[node], [node], heights.of(node)
        while blocks and blocks[-1][0] + blocks[-1][2] + gap > top:
            above_top, above, above_height = blocks.pop()
            count, more = len(above), len(nodes)
            top = (above_top * count + (top - above_height - gap) * more) / (count + more)
            nodes, height = [*above, *nodes], above_height + gap + height
        blocks.append((top, nodes, height))
    for top, nodes, _ in blocks:
        at = top
        for node in nodes:
            tops[node] = at
            at += heights.of(node) + gap


# -- lines -----------------------------------------------------------------------------------------


def _whole(
    chains: Sequence[Sequence[int]], edges: Sequence[tuple[int, int]]
) -> list[Sequence[int]]:
    return [
        [source, target] if source == target else chain
        for chain, (source, target) in zip(chains, edges, strict=True)
    ]


def _line(
    chain: Sequence[int],
    boxes: Sequence[Box],
    tops: Sequence[float],
    sizes: Sizes,
    *,
    is_back: bool,
) -> Line:
    first, last = boxes[chain[0]], boxes[chain[-1]]
    points = [(first.x + sizes.width, first.y + sizes.height / 2)]
    for step, node in enumerate(chain[1:-1], start=1):
        left = sizes.margin + (first.layer + step) * (sizes.width + sizes.across)
        y = tops[node] + sizes.passing / 2
        points += [(left, y), (left + sizes.width, y)]
    points.append((last.x, last.y + sizes.height / 2))
    return Line(tuple(reversed(points) if is_back else points), is_back)
