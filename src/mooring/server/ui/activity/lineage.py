"""Lineage: which table came from what, by which pipeline, and what is published of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mooring.amounts import how_many
from mooring.config import mask_uris
from mooring.server.ui.activity.drawing import Drawing, Step, draw, steps_of
from mooring.server.ui.activity.graph import Graph, Node
from mooring.server.ui.activity.signs import Signs
from mooring.server.ui.view import View

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mooring.changes.publication import Publication
    from mooring.feed.look import Look
    from mooring.identifiers import ObjectId
    from mooring.pipelines import RunRecord
    from mooring.pipelines.history import InputRecord
    from mooring.server.ui.visit import Visit

__all__ = ["LineageView", "Places", "only_metastores", "show_lineage", "tone_of"]

_MOST_NODES = 200
_MOST_STEPS = 400
_USUAL_DEPTH = 4
_MOST_DEPTH = 20


class LineageView(View, frozen=True, kw_only=True):
    """Lineage.

    Attributes:
        obstacle: Why there is none.
        table: The table that it is about; empty for all.
        depth: How many steps from it are shown.
        drawing: The graph.
        steps: The same in words.
        note: What was left out.
        whole: Where all of it is.
    """

    obstacle: str = ""
    table: str = ""
    depth: int = _USUAL_DEPTH
    drawing: Drawing | None = None
    steps: list[Step] = msgspec.field(default_factory=list)
    note: str = ""
    whole: str = ""


def only_metastores(visit: Visit) -> str:
    """Say why a catalog has no runs; nothing where it is a metastore."""
    if visit.kind == "metastore":
        return ""
    return (
        "Only a metastore keeps runs of pipelines and what they read and wrote; this catalog is"
        " of another kind."
    )


def tone_of(record: RunRecord) -> str:
    """Return how a run looks."""
    return "good" if record.is_done else "bad"


def show_lineage(visit: Visit) -> LineageView:
    """Draw what comes from what, in all of a catalog or around a table.

    Raises:
        InvalidInputError: what was asked for makes no sense.
    """
    obstacle = only_metastores(visit)
    if obstacle:
        return LineageView(obstacle=obstacle)
    table = visit.query.get("table", "").strip()
    depth = visit.number("depth", least=1, most=_MOST_DEPTH) or _USUAL_DEPTH
    graph, focus = _graph_of(visit), ""
    if table:
        focus = f"table:{visit.parse(table)}"
        graph = graph.around(focus, depth)
    shown = graph.first(_MOST_NODES)
    steps = steps_of(shown)
    return LineageView(
        cli=visit.cli("runs", *([f"--table={table}"] if table else [])),
        table=table,
        depth=depth,
        drawing=draw(shown, focus) if shown.edges else None,
        steps=steps[:_MOST_STEPS],
        note=_note(graph, shown, steps),
        whole=visit.links.to("lineage"),
    )


def _note(graph: Graph, shown: Graph, steps: list[Step]) -> str:
    left = []
    if len(graph.nodes) > len(shown.nodes):
        left.append(f"The first {len(shown.nodes):,} of {len(graph.nodes):,} are drawn.")
    if len(steps) > _MOST_STEPS:
        left.append(f"The list has the first {_MOST_STEPS:,} of {len(steps):,} steps.")
    return " ".join(left + (["Choose a table to see what is around it."] if left else []))


class Places:
    """The nodes of a graph, with their pages."""

    def __init__(self, signs: Signs, graph: Graph) -> None:
        """Add to a graph.

        Args:
            signs: Where tables are.
            graph: The graph.
        """
        self._signs = signs
        self._graph = graph

    def table(self, name: str, kind: str = "changes") -> str:
        """Add a table by its identifier; return its key."""
        one = self._signs.parse(name)
        href = self._signs.to(one)
        return self._graph.add(
            Node(f"table:{one}", kind, one.name, str(one.parent), href, is_gone=not href)
        )

    def input(self, owner: str, one: InputRecord) -> str:
        """Add what a run read; return its key."""
        if one.kind != "files":
            return self.table(one.name, "table" if one.kind == "table" else "changes")
        place = mask_uris(one.name)
        return self._graph.add(Node(f"files:{owner}:{one.source}", "files", one.source, place))

    def publication(self, source: str, one: Publication, label: str) -> None:
        """Add what a table is published into."""
        if one.catalog is None:
            target = self.table(str(one.target), "table")
        else:
            uri = mask_uris(one.catalog)
            node = Node(f"outside:{uri}:{one.target}", "outside", str(one.target), uri)
            target = self._graph.add(node)
        self._graph.join(source, target, label, "good")


def _graph_of(visit: Visit) -> Graph:
    from mooring.pipelines import list_runs

    graph, signs = Graph(), Signs(visit)
    places = Places(signs, graph)
    runs = list_runs(visit.catalog)
    # The newest say how it is now; older ones what else came from where.
    for record in runs:
        _add_run(visit, places, graph, record)
    versions = {
        (output.table, output.published.partition(" ")[0]): output.published.partition(" ")[2]
        for record in reversed(runs)
        for output in record.outputs
        if output.published
    }
    for table, one in _publications(signs.look):
        version = versions.get((str(table), str(one.target)), "")
        places.publication(places.table(str(table)), one, version or "published")
    return graph


def _add_run(visit: Visit, places: Places, graph: Graph, record: RunRecord) -> None:
    tone = tone_of(record)
    key = f"pipeline:{record.pipeline}"
    known = graph.nodes.get(key)
    if known is not None and not record.is_done:
        return  # of those that failed, only the newest run of a pipeline counts
    for one in record.inputs:
        source = places.input(record.pipeline, one)
        href = visit.links.to("runs", pipeline=record.pipeline)
        graph.add(Node(key, "pipeline", record.pipeline, _said(record), href, tone))
        graph.join(source, key, one.shown, tone)
    graph.add(Node(key, "pipeline", record.pipeline, _said(record), "", tone))
    for output in record.outputs:
        rows = how_many(output.rows, "row")
        graph.join(key, places.table(output.table), rows if record.is_done else "nothing", tone)


def _said(record: RunRecord) -> str:
    return "pipeline" if record.is_done else "pipeline, failed"


def _publications(look: Look) -> Iterator[tuple[ObjectId, Publication]]:
    """Go through what is published of which table, as the catalog in memory has it."""
    from mooring.changes.publication import PROPERTY, Publication  # imports Lance

    texts = {
        table: seen.properties[PROPERTY]
        for table, seen in look.tables.items()
        if seen.properties and PROPERTY in seen.properties
    }
    for table, text in sorted(texts.items()):
        try:
            found = msgspec.json.decode(text, type=list[Publication])
        except msgspec.DecodeError:
            continue  # whoever publishes it is told
        for one in found:
            yield table, one
