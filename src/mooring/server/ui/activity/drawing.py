"""The drawing of a graph, as numbers and texts that a template writes as SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.server.ui.activity.layers import Sizes, lay_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mooring.server.ui.activity.graph import Edge, Graph, Node
    from mooring.server.ui.activity.layers import Box, Line

__all__ = ["Drawing", "DrawnBox", "DrawnLine", "Step", "draw", "steps_of"]

_SIZES = Sizes()
_LONGEST = 20
_LONGEST_ABOVE = 25
_LONGEST_LABEL = 15
_KINDS = {
    "table": "table",
    "changes": "change table",
    "files": "files",
    "outside": "in another catalog",
    "pipeline": "pipeline",
    "step": "step",
}
_TABLES = frozenset({"table", "changes"})


class DrawnBox(msgspec.Struct, frozen=True, kw_only=True):
    """A node; its texts are cut to what fits."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    tone: str
    label: str
    above: str
    title: str
    href: str
    is_gone: bool
    is_focus: bool


class DrawnLine(msgspec.Struct, frozen=True, kw_only=True):
    """An edge."""

    path: str
    tone: str
    label: str
    title: str
    x: float
    y: float
    is_back: bool


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """A graph."""

    width: float
    height: float
    boxes: list[DrawnBox]
    lines: list[DrawnLine]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """An edge in words.

    Attributes:
        source: From where.
        source_kind: What that is.
        source_href: Its page.
        what: What goes there.
        target: To where.
        target_kind: What that is.
        target_href: Its page.
        tone: How it went.
    """

    source: str
    source_kind: str
    source_href: str
    what: str
    target: str
    target_kind: str
    target_href: str
    tone: str


def draw(graph: Graph, focus: str = "") -> Drawing:
    """Draw a graph.

    Args:
        graph: The graph.
        focus: The node that it is about.
    """
    numbers = {key: number for number, key in enumerate(graph.nodes)}
    edges = list(graph.edges.values())
    layout = lay_out(len(numbers), [(numbers[one.source], numbers[one.target]) for one in edges])
    return Drawing(
        width=_round(layout.width),
        height=_round(layout.height),
        boxes=[
            _box(node, box, is_focus=node.key == focus)
            for node, box in zip(graph.nodes.values(), layout.boxes, strict=True)
        ],
        lines=[_line(edge, line) for edge, line in zip(edges, layout.lines, strict=True)],
    )


def steps_of(graph: Graph) -> list[Step]:
    """Tell a graph in words, edge by edge."""
    return [
        Step(
            source=name_of(graph.nodes[edge.source]),
            source_kind=_KINDS[graph.nodes[edge.source].kind],
            source_href=graph.nodes[edge.source].href,
            what=edge.label,
            target=name_of(graph.nodes[edge.target]),
            target_kind=_KINDS[graph.nodes[edge.target].kind],
            target_href=graph.nodes[edge.target].href,
            tone=edge.tone,
        )
        for edge in graph.edges.values()
    ]


def name_of(node: Node) -> str:
    """Return the whole name of a node."""
    return f"{node.above}${node.label}" if node.kind in _TABLES and node.above else node.label


def _box(node: Node, box: Box, *, is_focus: bool) -> DrawnBox:
    return DrawnBox(
        x=_round(box.x),
        y=_round(box.y),
        width=_SIZES.width,
        height=_SIZES.height,
        kind=node.kind,
        tone=node.tone,
        label=_cut(node.label, _LONGEST),
        above=_cut_above(node),
        title=_title(node),
        href=node.href,
        is_gone=node.is_gone,
        is_focus=is_focus,
    )


def _title(node: Node) -> str:
    if node.is_gone:
        return f"{name_of(node)}, which is not in the catalog"
    if node.kind in _TABLES or not node.above:
        return name_of(node)
    return f"{node.label}: {node.above}"


def _line(edge: Edge, line: Line) -> DrawnLine:
    # Where it leaves, as there are fewer lines there than where it arrives.
    (ax, ay), (bx, by) = line.points[:2]
    return DrawnLine(
        path=_path(line.points),
        tone=edge.tone,
        label=_cut(edge.label, _LONGEST_LABEL),
        title=edge.label,
        x=_round((ax + bx) / 2),
        y=_round((ay + by) / 2),
        is_back=line.is_back,
    )


def _path(points: Sequence[tuple[float, float]]) -> str:
    """Write a curve that leaves and arrives level."""
    (x, y), *rest = points
    words = [f"M{_round(x)} {_round(y)}"]
    for next_x, next_y in rest:
        half = _round((x + next_x) / 2)
        words.append(
            f"C{half} {_round(y)} {half} {_round(next_y)} {_round(next_x)} {_round(next_y)}"
        )
        x, y = next_x, next_y
    return "".join(words)


def _cut_above(node: Node) -> str:
    """Cut what a name lies in; of the place of something outside the end tells most."""
    if node.kind not in {"files", "outside"} or len(node.above) <= _LONGEST_ABOVE:
        return _cut(node.above, _LONGEST_ABOVE)
    return f"…{node.above[1 - _LONGEST_ABOVE :]}"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _round(value: float) -> float:
    return round(value, 1)
