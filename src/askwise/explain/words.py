"""A flowchart in words: plain text with lines, Mermaid, and the phrases that the picture uses, too."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from askwise.explain.tree import Answer, Leaf, Node, Question
from askwise.table.columns import Column
from askwise.table.desk import OR_MORE, percent

if TYPE_CHECKING:
    from askwise.explain.chart import Flowchart

LONGEST_NAME = 60
MOST_VALUES = 6
BAR = 10
"""Width of a probability bar in characters."""

WIDTH = 100

# Control characters and marks that turn the direction of writing: XML forbids most, and terminals obey them.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_MERMAID = re.compile(r"[^\w \-.,:/%+=·≥]")
Z = 1.96


def name(text: object, longest: int = LONGEST_NAME) -> str:
    """A name on one line without control characters, cut where it is too long."""
    line = _CONTROL.sub("\ufffd", " ".join(str(text).split()))
    return line if len(line) <= longest else line[: longest - 1] + "…"


def number(value: float) -> str:
    """A cut or a price as people write it.

    Examples
    --------
    >>> number(2.50), number(1234567.0)
    ('2.5', '1,234,567')
    """
    return f"{value:,.0f}" if abs(value) >= 1e6 and value == int(value) else f"{value:.6g}"


def price(value: float) -> str:
    """A price with two decimals where it needs any."""
    return "free" if value == 0 else f"{value:.2f}".rstrip("0").rstrip(".") if value >= 0.01 else number(value)


def rows(n: int) -> str:
    return f"{n:,} row{'' if n == 1 else 's'}"


def question(chart: Flowchart, node: Question) -> str:
    """What is asked: the feature, and of a group the column that counts."""
    feature, column = chart.schema.features[node.feature], chart.schema.columns[node.column].name
    return name(column) if feature in column else f"{name(feature)}: {name(column)}"


def cost_of(chart: Flowchart, node: Question) -> str:
    """What a question costs where it is asked; the other columns of a group come with the first."""
    if node.price > 0:
        return f"price {price(node.price)}"
    return "free" if np.asarray(chart.prices.costs)[node.feature] == 0 else "no extra price"


def answer(chart: Flowchart, node: Question, given: Answer) -> str:
    """A set of answers in words."""
    if given.unavailable:
        return "unavailable"
    if given.codes is not None:
        return listed_values(chart.schema.columns[node.column], given.codes)
    return interval_in_words(given.low, given.high)


def listed_values(column: Column, codes: Sequence[float]) -> str:
    """Categories by their codes, the first few.

    Examples
    --------
    >>> import pandas as pd
    >>> from askwise.table.schema import read_table
    >>> schema, rows = read_table(pd.DataFrame({"color": ["red", "blue"]}))
    >>> listed_values(schema.columns[0], rows.values[:, 0])
    'red, blue'
    """
    shown = [name(column.show(code), 30) for code in codes]
    more = len(shown) - MOST_VALUES
    return ", ".join(shown) if more <= 1 else f"{', '.join(shown[:MOST_VALUES])} and {more} more"


def interval_in_words(low: float | None, high: float | None) -> str:
    """Numbers from `low` to below `high`.

    Examples
    --------
    >>> interval_in_words(None, 2.5), interval_in_words(2.5, 4.0), interval_in_words(4.0, None)
    ('under 2.5', '2.5 to under 4', '4 or more')
    """
    if low is None:
        return "any value" if high is None else f"under {number(high)}"
    return f"{number(low)}{OR_MORE}" if high is None else f"{number(low)} to under {number(high)}"


def facts(chart: Flowchart) -> list[str]:
    """What was measured, in sentences."""
    found = chart.measured
    low, high = interval(found.policy, found.n_rows)
    of = ", ".join(f"{label}: {percent(share)} of {n_rows}" for label, n_rows, share in found.by_class)
    return [
        f"Decides like the policy in {percent(found.policy)} of {rows(found.n_rows)} held out "
        f"(95% interval {percent(low)} to {percent(high)}), at an average price of {price(found.price)} "
        f"(policy {price(found.policy_price)}, everything {price(found.full_price)}).",
        f"Decides like the model with the full row in {percent(found.full)} (policy {percent(found.policy_full)}); "
        f"by its decision {of}.",
    ]


def notes(chart: Flowchart) -> list[str]:
    """How to read the chart."""
    said = [
        f"Grown on {rows(chart.n_grown)}. A percentage is the average probability of the decision, and a price the "
        "average cost, of the rows that end there."
    ]
    if isinstance(chart.root, Question):
        said.append(
            "If an answer is unavailable and has no branch of its own, or is not listed, follow the branch marked •."
        )
    return said


def interval(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share of `n` rows.

    >>> [round(end, 3) for end in interval(0.9, 100)]
    [0.826, 0.945]
    """
    middle, half = share + Z**2 / (2 * n), Z * (share * (1 - share) / n + Z**2 / (4 * n**2)) ** 0.5
    return max((middle - half) / (1 + Z**2 / n), 0.0), min((middle + half) / (1 + Z**2 / n), 1.0)


def text(chart: Flowchart) -> str:
    """The chart as plain text."""
    said = [line for fact in [*facts(chart), *notes(chart)] for line in textwrap.wrap(fact, WIDTH)]
    return "\n".join([*_lines(chart, chart.root), "", *said])


def _lines(chart: Flowchart, node: Node) -> Iterator[str]:
    if isinstance(node, Leaf):
        yield _leaf(chart, node)
        return
    yield f"{question(chart, node)}? ({cost_of(chart, node)})"
    for k, (given, child) in enumerate(node.branches):
        final = k == len(node.branches) - 1
        first, *others = _lines(chart, child)
        mark = "•" if k == node.usual else " "
        arrow = "=>" if isinstance(child, Leaf) else "->"
        yield f"{'└─' if final else '├─'}{mark}{answer(chart, node, given)} {arrow} {first}"
        yield from (f"{' ' if final else '│'}      {line}" for line in others)


def _leaf(chart: Flowchart, leaf: Leaf) -> str:
    share = leaf.proba[leaf.decision]
    filled = round(BAR * share)
    bar = "█" * filled + "░" * (BAR - filled)
    decision = name(chart.classes[leaf.decision], 30)
    return f"{decision} {bar} {percent(share)}, {rows(leaf.n_rows)}, {cost(leaf)}"


def cost(leaf: Leaf) -> str:
    """What the rows of a leaf cost on average."""
    return "free" if leaf.price == 0 else f"price {price(leaf.price)}"


def mermaid(chart: Flowchart) -> str:
    """The chart in Mermaid syntax; what was measured is a comment on top."""
    nodes: list[str] = []
    _add(chart, chart.root, nodes)
    return "\n".join([*(f"%% {fact}" for fact in facts(chart)), "flowchart LR", *nodes]) + "\n"


def _add(chart: Flowchart, node: Node, lines: list[str]) -> str:
    """Add the lines of a node and of those below it; returns its id."""
    key = f"n{sum(not line.startswith('    n') or '-->' not in line for line in lines)}"
    if isinstance(node, Leaf):
        share = percent(node.proba[node.decision])
        label = f"{_quoted(name(chart.classes[node.decision]))} {share}<br/>{rows(node.n_rows)}, {cost(node)}"
        lines.append(f'    {key}(["{label}"])')
        return key
    lines.append(f'    {key}["{_quoted(question(chart, node))}?<br/>{cost_of(chart, node)}"]')
    for k, (given, child) in enumerate(node.branches):
        mark = " •" if k == node.usual else ""
        below = _add(chart, child, lines)
        lines.append(f'    {key} -->|"{_quoted(answer(chart, node, given))}{mark}"| {below}')
    return key


def _quoted(label: str) -> str:
    """A label inside quotes: quotes, brackets and other marks of the syntax as entity codes."""
    return _MERMAID.sub(lambda found: f"#{ord(found[0])};", label)
