"""A flowchart as a picture: boxes from left to right, as many columns as questions, in inline SVG or as a page.

Boxes are as high as their text and stacked by subtree, so that none overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from askwise.explain import words
from askwise.explain.lettering import text_width, wrapped
from askwise.explain.tree import Leaf, Node
from askwise.table.desk import percent

if TYPE_CHECKING:
    from askwise.explain.chart import Flowchart

BOX, LINE, PAD, APART = 216, 19, 12, 18
BOLD, FACT, SMALL = 17, 14, 12.5
"""Sizes of text in pixels; bold letters of 15 pixels are as wide as plain ones of 17."""

TRUNK, MARGIN = 22, 28
NARROWEST_GAP, WIDEST_ANSWER = 96, 150
BESIDE = TRUNK + 32
"""Room for the trunk, the mark of the usual branch and some air beside an answer."""

THINNEST, THICKEST = 1.5, 9.0
BAR = 9
OTHER_COLOR = "#9aa1ab"

STYLE = """
.askwise-chart { --card: #fff; --ink: #1c2128; --soft: #5c6570; --line: #cfd5dd; --box: #f4f6f9; --leaf: #fff;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
@media screen and (prefers-color-scheme: dark) { .askwise-chart { --card: #1e2229; --ink: #e8ebef; --soft: #a8b0bb;
  --line: #4a5260; --box: #2a303a; --leaf: #1e2229; } }
.askwise-chart text { fill: var(--ink); font-size: 12.5px; }
.askwise-chart .name { font-size: 15px; font-weight: 600; }
.askwise-chart .title { font-size: 21px; font-weight: 700; }
.askwise-chart .fact { font-size: 14px; }
.askwise-chart .soft { fill: var(--soft); }
.askwise-chart .paper { fill: var(--card); }
.askwise-chart .box { fill: var(--box); stroke: var(--line); }
.askwise-chart .leaf { fill: var(--leaf); stroke: var(--line); }
.askwise-chart .edge { fill: none; stroke: var(--line); stroke-linejoin: round; }
.askwise-chart .rest { fill: var(--line); }
"""


@dataclass
class Placed:
    """A node with its text, the answers that lead to it, and its place: left edge, middle, and height of the box."""

    node: Node
    depth: int
    name: list[str]
    full_name: str
    small: str
    answer: list[str] = field(default_factory=list)
    usual: bool = False
    children: list[Placed] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0

    @property
    def height(self) -> float:
        bar = BAR + 6 if isinstance(self.node, Leaf) else 0
        return 2 * PAD + LINE * (len(self.name) + 1) + bar - 4

    @property
    def room(self) -> float:
        """Height of the box or of the answer beside it, whichever is higher, and the space below."""
        above = LINE * len(self.answer) + 8
        return max(self.height, 2 * above) + APART

    @property
    def span(self) -> float:
        """Height of everything from here on."""
        return max(self.room, sum(child.span for child in self.children))

    def all(self) -> Iterator[Placed]:
        yield self
        for child in self.children:
            yield from child.all()


def svg(chart: Flowchart) -> str:
    """The chart as one SVG element."""
    root = _placed(chart, chart.root, 0)
    right = _columns(root)
    width = max(right + MARGIN, 900)
    head = _head(chart, width)
    _rows(root, head.bottom + 10)
    bottom = head.bottom + 10 + root.span
    foot, height = _paragraphs(words.notes(chart), bottom + 20, width, "soft")
    colors = _colors(chart)
    parts = [
        Markup('<rect class="paper" width="{0:g}" height="{1:g}" rx="12"/>').format(width, height + MARGIN / 2),
        *head.parts,
        *(_edge(parent, child, chart.n_grown) for parent in root.all() for child in parent.children),
        *(_box(chart, placed, colors) for placed in root.all()),
        *foot,
    ]
    return str(
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" class="askwise-chart" role="img" viewBox="0 0 {0:g} {1:g}" '
            'width="{0:g}" height="{1:g}"><title>{2}</title><style>{3}</style>{4}</svg>'
        ).format(width, height + MARGIN / 2, _title(chart), Markup(STYLE), Markup("\n").join(parts))
    )


def html(chart: Flowchart) -> str:
    """The chart as a page."""
    from askwise.plotting import template

    return template("flowchart.html").render(title=_title(chart), picture=Markup(svg(chart)))


def _title(chart: Flowchart) -> str:
    labels = [words.name(label, 30) for label in chart.classes]
    if sum(map(len, labels)) > 80:
        return f"Which of {len(labels)} classes?"
    said = f"{', '.join(labels[:-1])} or {labels[-1]}?"
    return f"Class {said}" if all(label.lstrip("-").isdigit() for label in labels) else said


def _placed(chart: Flowchart, node: Node, depth: int) -> Placed:
    if isinstance(node, Leaf):
        label = words.name(chart.classes[node.decision])
        small = f"{words.rows(node.n_rows)} · {words.cost(node)}"
        return Placed(node, depth, wrapped(label, BOLD, BOX - 2 * PAD - 52), label, small)
    label = words.question(chart, node) + "?"
    small = f"{words.cost_of(chart, node)} · {words.rows(node.n_rows)}"
    placed = Placed(node, depth, wrapped(label, BOLD, BOX - 2 * PAD), label, small)
    for k, (given, child) in enumerate(node.branches):
        below = _placed(chart, child, depth + 1)
        below.answer = wrapped(words.answer(chart, node, given), SMALL, WIDEST_ANSWER)
        below.usual = k == node.usual
        placed.children.append(below)
    return placed


def _columns(root: Placed) -> float:
    """Set the left edges, with gaps as wide as their answers; returns the right edge of the last column."""
    x, nodes = float(MARGIN), [root]
    while nodes:
        widest = max((text_width(line, SMALL) for placed in nodes for line in placed.answer), default=0.0)
        if nodes[0] is not root:
            x += max(NARROWEST_GAP, widest + BESIDE)
        for placed in nodes:
            placed.x = x
        x += BOX
        nodes = [child for placed in nodes for child in placed.children]
    return x


def _rows(placed: Placed, top: float) -> None:
    """Set the middles: children below each other, each question in the middle of its own."""
    inside = sum(child.span for child in placed.children)
    below = top + max(0.0, placed.room - inside) / 2
    for child in placed.children:
        _rows(child, below)
        below += child.span
    ends = [child.y for child in placed.children]
    placed.y = (ends[0] + ends[-1]) / 2 if ends else top + placed.span / 2
    placed.y = min(max(placed.y, top + placed.room / 2), top + placed.span - placed.room / 2)


@dataclass(frozen=True)
class _Head:
    parts: list[Markup]
    bottom: float


def _head(chart: Flowchart, width: float) -> _Head:
    """The title, what was measured, and the color of each class."""
    parts = [_text(MARGIN, MARGIN + 16, _title(chart), "title")]
    facts, y = _paragraphs(words.facts(chart), MARGIN + 44, width, "fact")
    x: float = MARGIN
    for label, color in _colors(chart).items():
        shown = "other" if label is None else words.name(chart.classes[label], 30)
        wide = text_width(shown, SMALL) + 38
        if x > MARGIN and x + wide > width - MARGIN:
            x, y = MARGIN, y + LINE
        parts.append(Markup('<rect x="{0:g}" y="{1:g}" width="11" height="11" rx="3" fill="{2}"/>').format(x, y, color))
        parts.append(_text(x + 17, y + 10, shown))
        x += wide
    return _Head(parts + facts, y + 30)


def _paragraphs(sentences: list[str], y: float, width: float, style: str) -> tuple[list[Markup], float]:
    size = FACT if style == "fact" else SMALL
    lines = [line for said in sentences for line in wrapped(said, size, width - 2 * MARGIN, most=9)]
    return [_text(MARGIN, y + LINE * k, line, style) for k, line in enumerate(lines)], y + LINE * len(lines)


def _edge(parent: Placed, child: Placed, n_rows: int) -> Markup:
    """The line from a question to what comes next, as thick as its share of the rows; the answer stands above it."""
    start, bend = parent.x + BOX, parent.x + BOX + TRUNK
    thick = THINNEST + (THICKEST - THINNEST) * child.node.n_rows / max(n_rows, 1)
    path = f"M{start:g} {parent.y:g}H{bend:g}V{child.y:g}H{child.x:g}"
    line = Markup('<path class="edge" d="{0}" stroke-width="{1:.2f}"/>').format(path, thick)
    top = child.y - thick / 2 - 6 - (LINE - 4) * (len(child.answer) - 1)
    said = [_text(bend + 9, top + (LINE - 4) * k, text) for k, text in enumerate(_marked(child))]
    return line + Markup("").join(said)


def _marked(child: Placed) -> list[str]:
    return [*child.answer[:-1], f"{child.answer[-1]} •" if child.usual else child.answer[-1]]


def _box(chart: Flowchart, placed: Placed, colors: dict[int | None, str]) -> Markup:
    top = placed.y - placed.height / 2
    leaf = isinstance(placed.node, Leaf)
    style = "leaf" if leaf else "box"
    parts = [
        Markup('<rect class="{0}" x="{1:g}" y="{2:g}" width="{3}" height="{4:g}" rx="9"/>').format(
            style, placed.x, top, BOX, placed.height
        ),
        *(
            _text(placed.x + PAD, top + PAD + 13 + LINE * k, line, "name", placed.full_name)
            for k, line in enumerate(placed.name)
        ),
        _text(placed.x + PAD, top + placed.height - PAD + 1, placed.small, "soft"),
    ]
    if isinstance(placed.node, Leaf):
        share = percent(placed.node.proba[placed.node.decision])
        parts.append(_text(placed.x + BOX - PAD, top + PAD + 13, share, "name", end=True))
        parts += _bar(placed.node, placed.x + PAD, top + PAD + LINE * len(placed.name) + 3, colors)
    return Markup("<g>{0}</g>").format(Markup("").join(parts))


def _bar(leaf: Leaf, x: float, y: float, colors: dict[int | None, str]) -> Iterator[Markup]:
    """The probabilities of the classes side by side."""
    rest = Markup('<rect class="rest" x="{0:g}" y="{1:g}" width="{2}" height="{3}" rx="2"/>')
    yield rest.format(x, y, BOX - 2 * PAD, BAR)
    part = Markup('<rect x="{0:.2f}" y="{1:g}" width="{2:.2f}" height="{3}" fill="{4}"/>')
    for label, color in colors.items():
        others = (p for k, p in enumerate(leaf.proba) if k not in colors)
        share = sum(others) if label is None else leaf.proba[label]
        wide = share * (BOX - 2 * PAD)
        if wide >= 0.3:
            yield part.format(x, y, wide, BAR, color)
        x += wide


def _colors(chart: Flowchart) -> dict[int | None, str]:
    """The color of each class by its position; of very many the last are one, None."""
    from askwise.plotting import COLORS

    found: dict[int | None, str] = dict(zip(range(len(chart.classes)), COLORS, strict=False))
    if len(chart.classes) > len(COLORS):
        found[None] = OTHER_COLOR
    return found


def _text(x: float, y: float, said: str, style: str = "", title: str = "", *, end: bool = False) -> Markup:
    attributes = Markup(' class="{0}"').format(style) if style else Markup("")
    attributes += Markup(' text-anchor="end"') if end else Markup("")
    hover = Markup("<title>{0}</title>").format(title) if title and title != said else Markup("")
    return Markup('<text x="{0:g}" y="{1:g}"{2}>{3}{4}</text>').format(x, y, attributes, hover, escape(said))
