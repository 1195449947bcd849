"""Graphs in Mermaid's syntax (``graph TD`` with ``a --> b``), drawn as SVG when the site is built."""

from __future__ import annotations

import html
import re
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

HEIGHT, PER_LETTER, PADDING = 30, 7.6, 22


def edges_of(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^\s*(\w+)\s*-->\s*(\w+)\s*$", text, re.MULTILINE)


def drawn(edges: list[tuple[str, str]]) -> str:
    """Layers from top to bottom by Sugiyama's method (grandalf), in the colors of the page."""
    from grandalf.graphs import Edge, Graph, Vertex
    from grandalf.layouts import SugiyamaLayout

    class Box:
        def __init__(self, name: str) -> None:
            self.w, self.h = PER_LETTER * len(name) + PADDING, HEIGHT
            self.xy = (0.0, 0.0)

    vertices = {name: Vertex(name) for name in sorted({name for edge in edges for name in edge})}
    for name, vertex in vertices.items():
        vertex.view = Box(name)
    graph = Graph(list(vertices.values()), [Edge(vertices[a], vertices[b]) for a, b in edges])
    for part in graph.C:
        layout = SugiyamaLayout(part)
        layout.xspace, layout.yspace = 14, 34
        layout.init_all()
        layout.draw(8)
    left = min(v.view.xy[0] - v.view.w / 2 for v in vertices.values()) - 4
    top = min(v.view.xy[1] for v in vertices.values()) - HEIGHT / 2 - 4
    right = max(v.view.xy[0] + v.view.w / 2 for v in vertices.values()) + 4
    bottom = max(v.view.xy[1] for v in vertices.values()) + HEIGHT / 2 + 4
    parts = []
    for a, b in edges:
        (x1, y1), (x2, y2) = vertices[a].view.xy, vertices[b].view.xy
        y1, y2 = y1 + HEIGHT / 2, y2 - HEIGHT / 2 - 5
        half = (y1 + y2) / 2
        parts.append(f'<path d="M{x1:.0f} {y1:.0f}C{x1:.0f} {half:.0f} {x2:.0f} {half:.0f} {x2:.0f} {y2:.0f}"/>')
    boxes = []
    for name, vertex in vertices.items():
        (x, y), w = vertex.view.xy, vertex.view.w
        boxes.append(f'<rect x="{x - w / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{w:.0f}" height="{HEIGHT}" rx="6"/>')
        boxes.append(f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle">{html.escape(name)}</text>')
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>'
    )
    said = html.escape(f"Graph of {len(vertices)} boxes and {len(edges)} arrows; the text below lists them.")
    size = f'width="{right - left:.0f}" viewBox="{left:.0f} {top:.0f} {right - left:.0f} {bottom - top:.0f}"'
    svg = f'<svg class="graph" role="img" aria-label="{said}" {size}>{marker}{"".join(parts)}{"".join(boxes)}</svg>'
    listed = "".join(f"<li>{html.escape(a)} imports {html.escape(b)}</li>" for a, b in edges)
    return f'<figure class="graph">{svg}<details><summary>As a list</summary><ul>{listed}</ul></details></figure>'


class Draw(SphinxPostTransform):
    default_priority = 400

    def run(self, **kwargs: Any) -> None:
        for block in list(self.document.findall(nodes.literal_block)):
            if block.get("language") == "mermaid":
                block.replace_self(nodes.raw("", drawn(edges_of(block.astext())), format="html"))


def setup(app: Any) -> dict[str, bool]:
    app.add_post_transform(Draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
