"""Lines over the budget as inline SVG, drawn from rows: accuracy, calibration, entropy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from askwise.plotting import COLORS, svg
from askwise_bench.grid.methods import METHODS
from askwise_bench.paper import paper_results
from askwise_bench.report.rows import (
    PERCENT_PER_LEVEL,
    PRICES,
    Quantity,
    curves,
    data_name,
    method_name,
    ordered_data,
    pooled_calibration_error,
)

SHOWN = (*paper_results.IN_FIGURES, "askwise", "static-best", "static-cmi", "random-mlp")
"""Methods that the figures show first; more than ten colors could not be told apart."""

BUDGET = {"uniform": "features bought", "variable": "budget, % of all prices", "published": "budget, % of all prices"}


@dataclass(frozen=True)
class Picture:
    """A figure with its title, where the paper has it, and a note."""

    name: str
    title: str
    label: str
    note: str
    svg: Markup


@dataclass(frozen=True)
class Panel:
    """Lines by method: a row per method and a column per budget. Or points by a key: rows of x and y under that key."""

    title: str
    lines: pd.DataFrame
    dotted: pd.DataFrame | None = None


@dataclass(frozen=True)
class Panels:
    """Panels side by side with axes of one kind; `diagonal` draws the line of equal coordinates."""

    panels: Sequence[Panel]
    x: str
    y: str
    colors: Mapping[str, str]
    percent: bool = False
    zero: bool = False
    one_scale: bool = False
    diagonal: bool = False


def method_colors(rows: pd.DataFrame) -> dict[str, str]:
    """The methods that are drawn, in the order of the legend, with colors that are the same in every figure."""
    found = set(rows["method"])
    chosen = [name for name in SHOWN if name in found]
    chosen += [name for name in METHODS if name in found and name not in SHOWN]
    free = [color for name, color in zip(SHOWN, COLORS, strict=True) if name not in found]
    fixed = dict(zip(SHOWN, COLORS, strict=True))
    return {name: fixed.get(name) or free.pop(0) for name in chosen[: len(COLORS)]}


def accuracy_pictures(rows: pd.DataFrame) -> list[Picture]:
    """The figures of accuracy, calibration and entropy, for every kind of prices in the rows."""
    colors = method_colors(rows)
    drawn = rows[rows["method"].isin(colors)]
    measured = set(Quantity("accuracy", "accuracy").of(drawn)["prices"])
    makers = (_by_data, _calibration, _against_random, _entropies)
    return [make(drawn, prices, colors) for prices in PRICES if prices in measured for make in makers]


def _by_data(rows: pd.DataFrame, prices: str, colors: Mapping[str, str]) -> Picture:
    by_data = curves(rows, "accuracy", prices).groupby(["data", "method"]).mean()
    panels = Panels(_panels_by_data(by_data, prices, colors), BUDGET[prices], "accuracy", colors, percent=True)
    title = f"Accuracy by budget, {PRICES[prices]}"
    label = _label("Appendix E", prices, ("variable", "uniform"))
    return line_picture(f"accuracy-{prices}", title, label, "Mean over seeds.", panels)


def _calibration(rows: pd.DataFrame, prices: str, colors: Mapping[str, str]) -> Picture:
    panels = _panels_by_data(pooled_calibration_error(rows, prices), prices, colors)
    return line_picture(
        f"ece-{prices}",
        f"Calibration error by budget, {PRICES[prices]}",
        _label("Appendix E", prices),
        "Expected calibration error in 15 bins, 0 is best. The test rows of all seeds are pooled before they are "
        "binned, because on few rows even a calibrated model shows an error.",
        Panels(panels, BUDGET[prices], "ECE", colors),
    )


def _against_random(rows: pd.DataFrame, prices: str, colors: Mapping[str, str]) -> Picture:
    difference = curves(rows, "accuracy", prices) - curves(rows, "random_accuracy", prices)
    lines, over = _over_data(difference.dropna(how="all"), prices, colors)
    return line_picture(
        f"difference-{prices}",
        f"Accuracy of the method's own choices minus that of random ones, {PRICES[prices]}",
        _label("Figure 1", prices),
        f"The same predictor under both; above 0 the method's choices are better. Mean over seeds and over {over}.",
        Panels([Panel("", lines)], BUDGET[prices], "difference in accuracy", colors, percent=True, zero=True),
    )


def _entropies(rows: pd.DataFrame, prices: str, colors: Mapping[str, str]) -> Picture:
    chosen, over = _over_data(curves(rows, "entropy", prices), prices, colors)
    at_random, _ = _over_data(curves(rows, "random_entropy", prices), prices, colors)
    return line_picture(
        f"entropy-{prices}",
        f"Entropy of the prediction by budget, {PRICES[prices]}",
        _label("Section 5", prices),
        f"Solid: the method's own choices; dotted: random ones. In nats, mean over seeds and over {over}.",
        Panels([Panel("", chosen, at_random)], BUDGET[prices], "entropy", colors),
    )


def _over_data(by_level: pd.DataFrame, prices: str, colors: Mapping[str, str]) -> tuple[pd.DataFrame, str]:
    """A line per method: the mean over the data that all drawn methods have, at the levels that all of these have.

    If some of the data are the paper's, only those count.
    """
    by_data = by_level.groupby(["data", "method"]).mean()
    of_the_paper = by_data[by_data.index.get_level_values("data").isin(paper_results.DATA)]
    by_data = by_data if of_the_paper.empty else of_the_paper
    n_methods = by_data.index.get_level_values("method").nunique()
    shared = by_data.groupby("data").filter(lambda part: len(part) == n_methods).dropna(axis=1)
    names = [data_name(name) for name in shared.index.get_level_values("data").unique()]
    lines = shared.groupby("method").mean()
    said = f"{', '.join(names)} (the data that all methods have)" if names else "no data, as none has all methods"
    return _as_budgets(lines, prices, colors), said


def _label(place: str, prices: str, shown: Sequence[str] = ("variable",)) -> str:
    """Where the paper shows the same, if it does for these prices."""
    return place if prices in shown else "beyond the paper"


def _panels_by_data(by_data: pd.DataFrame, prices: str, colors: Mapping[str, str]) -> list[Panel]:
    names = by_data.index.get_level_values("data").unique()
    parts = {name: by_data[by_data.index.get_level_values("data") == name] for name in ordered_data(names)}
    lines = {name: part.droplevel("data").dropna(axis=1, how="all") for name, part in parts.items()}
    return [Panel(data_name(name), _as_budgets(line, prices, colors)) for name, line in lines.items()]


def _as_budgets(lines: pd.DataFrame, prices: str, colors: Mapping[str, str]) -> pd.DataFrame:
    """Methods in the order of the legend, levels as budgets."""
    lines = lines.loc[[name for name in colors if name in lines.index]]
    return lines if prices == "uniform" else lines.set_axis(lines.columns * PERCENT_PER_LEVEL, axis=1)


def line_picture(name: str, title: str, label: str, note: str, content: Panels) -> Picture:
    """A figure of panels of lines."""
    return Picture(name, title, label, note, svg(name, draw_lines, content))


def draw_lines(content: Panels) -> Figure:
    """Panels of lines with one legend."""
    figure, grid = panel_grid(len(content.panels), content.one_scale)
    for axes, panel in zip(grid, content.panels, strict=True):
        for lines, style in ((panel.lines, "-"), (panel.dotted, ":")):
            for method, values in (pd.DataFrame() if lines is None else lines).iterrows():
                _line(axes, str(method), values, style, content.colors)
        if content.zero:
            axes.axhline(0, color="#9aa1ab", linewidth=1)
        if content.percent:
            axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g}%")
        finish_axes(axes, panel.title, content.x, content.y)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    add_legend(figure, grid)
    return figure


def _line(axes: Axes, method: str, values: pd.Series, style: str, colors: Mapping[str, str]) -> None:
    width, gid = 2.2 if method == "askwise" else 1.4, f"{method}{'-random' if style == ':' else ''}"
    named: dict[str, Any] = {"marker": "o", "label": method_name(method)} if style == "-" else {}
    axes.plot(values.index, values, style, markersize=3, linewidth=width, color=colors[method], gid=gid, **named)


def panel_grid(n: int, one_scale: bool = False) -> tuple[Figure, list[Axes]]:
    """At most three panels in a row; with `one_scale` heights can be compared between them."""
    columns = min(3, n) if n != 4 else 2
    lines = -(-n // columns)
    figure = Figure(figsize=(9.6, 0.9 + (2.9 if n > 1 else 3.4) * lines), layout="constrained")
    grid = np.ravel(figure.subplots(lines, columns, squeeze=False, sharey=one_scale))
    for axes in grid[n:]:
        axes.set_visible(False)
    return figure, list(grid[:n])


def finish_axes(axes: Axes, title: str, x: str, y: str) -> None:
    """Title, names of the axes (the left one only in the first column) and a light grid."""
    axes.set_title(title, loc="left")
    axes.set_xlabel(x)
    place = axes.get_subplotspec()
    if place is None or place.is_first_col():
        axes.set_ylabel(y)
    axes.grid(axis="y")


def add_legend(figure: Figure, grid: Sequence[Axes]) -> None:
    """One entry per name, whichever panels have it."""
    named: dict[str, Any] = {}
    for axes in grid:
        named.update({label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)})
    place: dict[str, Any] = {"loc": "outside upper center", "frameon": False, "markerscale": 1.6}
    figure.legend(named.values(), named.keys(), ncols=min(5, len(named)), **place)
