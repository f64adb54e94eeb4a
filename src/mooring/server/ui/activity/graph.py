"""A graph of what comes from what: tables, pipelines and sources outside of the catalog."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Edge", "Graph", "Node"]


@dataclass(frozen=True, slots=True)
class Node:
    """Something that rows are in, or go through.

    Attributes:
        key: Tells it from others.
        kind: ``table``, ``changes``, ``files``, ``outside``, ``pipeline`` or ``step``.
        label: Its name.
        above: What its name lies in.
        href: Its page; empty where it has none.
        tone: How it is: ``good``, ``bad``, or nothing to say.
        is_gone: Whether it is in the catalog no more.
    """

    key: str
    kind: str
    label: str
    above: str = ""
    href: str = ""
    tone: str = ""
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """What goes from one to the other.

    Attributes:
        source: From which node.
        target: To which.
        label: What, in a few words.
        tone: How it went.
    """

    source: str
    target: str
    label: str = ""
    tone: str = ""


@dataclass(slots=True)
class Graph:
    """Nodes and edges, in the order in which they were added; the first of each is kept."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[tuple[str, str], Edge] = field(default_factory=dict)

    def add(self, node: Node) -> str:
        """Add a node; return its key."""
        self.nodes.setdefault(node.key, node)
        return node.key

    def join(self, source: str, target: str, label: str = "", tone: str = "") -> None:
        """Add an edge; nothing comes from itself."""
        if source != target:
            self.edges.setdefault((source, target), Edge(source, target, label, tone))

    def around(self, key: str, depth: int) -> Graph:
        """Return what leads to a node, and what it leads to, at most so many edges away."""
        before: dict[str, list[str]] = defaultdict(list)
        after: dict[str, list[str]] = defaultdict(list)
        for edge in self.edges.values():
            after[edge.source].append(edge.target)
            before[edge.target].append(edge.source)
        near = {**_reach(key, before, depth), **_reach(key, after, depth)}
        return self._only(sorted(near, key=lambda one: (near[one], one)))

    def first(self, most: int) -> Graph:
        """Return the nodes that were added first, with the edges between them."""
        return self._only(list(self.nodes)[:most])

    def _only(self, keys: Sequence[str]) -> Graph:
        kept = {key: self.nodes[key] for key in keys if key in self.nodes}
        edges = {
            ends: edge
            for ends, edge in self.edges.items()
            if edge.source in kept and edge.target in kept
        }
        return Graph(kept, edges)


def _reach(start: str, links: Mapping[str, Sequence[str]], depth: int) -> dict[str, int]:
    found = {start: 0}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        if found[node] == depth:
            continue
        for one in links.get(node, ()):
            if one not in found:
                found[one] = found[node] + 1
                waiting.append(one)
    return found
