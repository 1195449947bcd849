"""The paper's figures as inline SVG, drawn from rows; and the Bernoulli ensembles of Appendix A, which need none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from askwise.bench import published
from askwise.bench.methods import METHODS
from askwise.bench.tables import (
    CELL,
    MEASURES,
    PRICES,
    curves,
    data_name,
    method_name,
    ordered_data,
    pooled_calibration_error,
)
from askwise.bench.uncertainty_studies import REJECTED
from askwise.report import COLOURS, svg
from askwise.uncertainty import epistemic_divergence, kl_divergence, mutual_information

SHOWN = (*published.IN_FIGURES, "askwise", "static-best", "static-cmi", "random-mlp")
"""Methods that the figures show first; ten colours are as many as can be told apart."""

BUDGET = {"uniform": "features bought", "variable": "budget, % of all prices", "published": "budget, % of all prices"}
PERCENT_PER_LEVEL = 5
N_MEMBERS = 2000
MOST_POINTS = 150


@dataclass(frozen=True)
class Picture:
    """A drawing with what is said about it."""

    name: str
    title: str
    label: str
    note: str
    svg: Markup


@dataclass(frozen=True)
class Panel:
    """Lines by method: `lines` and `dotted` have a row per method and a column per budget."""

    title: str
    lines: pd.DataFrame
    dotted: pd.DataFrame | None = None


@dataclass(frozen=True)
class Panels:
    """Panels side by side with axes of one kind."""

    panels: Sequence[Panel]
    x: str
    y: str
    colours: Mapping[str, str]
    percent: bool = False
    zero: bool = False
    one_scale: bool = False


@dataclass(frozen=True)
class Cloud:
    """Points by method (or by another key): (n, 2) each."""

    title: str
    points: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Clouds:
    """Panels of points; `diagonal` draws the line of equal coordinates."""

    clouds: Sequence[Cloud]
    x: str
    y: str
    colours: Mapping[str, str]
    diagonal: bool = False


@dataclass(frozen=True)
class Axis:
    """An axis of a scatter: the metric up to its number, and what is written beside it."""

    metric: str
    title: str


SCATTERS = (
    (
        "bias",
        "Divergence from the model of the subset and from the model with everything",
        "Appendix E",
        "A point is a random subset of one seed; below the line the prediction is nearer to the model of the subset.",
        Axis("bias/kl_full", "KL to the model with everything"),
        Axis("bias/kl_ref", "KL to the model of the subset"),
    ),
    (
        "risk-gap",
        "Risk gap and ensemble variance",
        "Appendix F",
        "A point is a random subset of one seed.",
        Axis("risk_gap/variance", "mean ensemble variance"),
        Axis("risk_gap[error]/delta", "risk gap in test error"),
    ),
    (
        "scatter",
        "Aleatoric and epistemic uncertainty",
        "Appendix F",
        "A point is a test row at 30 % or 70 % of the price of everything, in nats.",
        Axis("scatter/aleatoric", "aleatoric"),
        Axis("scatter/epistemic", "epistemic"),
    ),
)


def method_colours(rows: pd.DataFrame) -> dict[str, str]:
    """The methods that are drawn, in the order of the legend, with colours that are the same in every figure."""
    found = set(rows["method"])
    chosen = [name for name in SHOWN if name in found]
    chosen += [name for name in METHODS if name in found and name not in SHOWN]
    free = [colour for name, colour in zip(SHOWN, COLOURS, strict=True) if name not in found]
    fixed = dict(zip(SHOWN, COLOURS, strict=True))
    return {name: fixed.get(name) or free.pop(0) for name in chosen[: len(COLOURS)]}


def pictures(rows: pd.DataFrame) -> list[Picture]:
    """Every figure that there are rows for."""
    return [*accuracy_pictures(rows), *study_pictures(rows), bernoulli_picture()]


def accuracy_pictures(rows: pd.DataFrame) -> list[Picture]:
    """What can be drawn from the suites of accuracy, for every kind of prices that is there."""
    with_accuracy = rows.loc[rows["metric"] == "accuracy", "prices"]
    colours = method_colours(rows)
    drawn = rows[rows["method"].isin(colours)]
    return [
        picture
        for prices in PRICES
        if prices in set(with_accuracy)
        for picture in (
            _by_data(curves(drawn, "accuracy", prices).groupby(["data", "method"]).mean(), prices, colours),
            _calibration(drawn, prices, colours),
            _against_random(drawn, prices, colours),
            _entropies(drawn, prices, colours),
        )
    ]


def _by_data(by_data: pd.DataFrame, prices: str, colours: Mapping[str, str]) -> Picture:
    panels = Panels(_panels_by_data(by_data, prices, colours), BUDGET[prices], "accuracy", colours, percent=True)
    title = f"Accuracy by budget, {PRICES[prices]}"
    return _lines(f"accuracy-{prices}", title, "Appendix E", "Mean over the seeds.", panels)


def _calibration(rows: pd.DataFrame, prices: str, colours: Mapping[str, str]) -> Picture:
    panels = _panels_by_data(pooled_calibration_error(rows, prices), prices, colours)
    return _lines(
        f"ece-{prices}",
        f"Calibration error by budget, {PRICES[prices]}",
        "Appendix E",
        "The test rows of all seeds are put together before they are binned: on few rows even a calibrated model shows "
        "an error.",
        Panels(panels, BUDGET[prices], "ECE", colours),
    )


def _against_random(rows: pd.DataFrame, prices: str, colours: Mapping[str, str]) -> Picture:
    difference = curves(rows, "accuracy", prices) - curves(rows, "random_accuracy", prices)
    lines, over = _over_data(difference, prices, colours)
    return _lines(
        f"difference-{prices}",
        f"Accuracy by the method's own choices less that by random ones, {PRICES[prices]}",
        "Figure 1",
        f"The same predictor under both, mean over the seeds and over {over}.",
        Panels([Panel("", lines)], BUDGET[prices], "difference in accuracy", colours, percent=True, zero=True),
    )


def _entropies(rows: pd.DataFrame, prices: str, colours: Mapping[str, str]) -> Picture:
    chosen, over = _over_data(curves(rows, "entropy", prices), prices, colours)
    at_random, _ = _over_data(curves(rows, "random_entropy", prices), prices, colours)
    return _lines(
        f"entropy-{prices}",
        f"Entropy of the prediction by budget, {PRICES[prices]}",
        "Section 4.2",
        f"Solid: the method's own choices; dotted: random ones. In nats, mean over the seeds and over {over}.",
        Panels([Panel("", chosen, at_random)], BUDGET[prices], "entropy", colours),
    )


def _over_data(by_level: pd.DataFrame, prices: str, colours: Mapping[str, str]) -> tuple[pd.DataFrame, str]:
    """A line per method, the mean over the data that all methods drawn have, at the levels that all of these have."""
    by_data = by_level.groupby(["data", "method"]).mean()
    n_methods = by_data.index.get_level_values("method").nunique()
    shared = by_data.groupby("data").filter(lambda part: len(part) == n_methods).dropna(axis=1)
    names = [data_name(name) for name in shared.index.get_level_values("data").unique()]
    lines = shared.groupby("method").mean()
    return _as_budgets(lines, prices, colours), ", ".join(names) or "no data that all methods have"


def _panels_by_data(by_data: pd.DataFrame, prices: str, colours: Mapping[str, str]) -> list[Panel]:
    names = by_data.index.get_level_values("data").unique()
    parts = {name: by_data[by_data.index.get_level_values("data") == name] for name in ordered_data(names)}
    lines = {name: part.droplevel("data").dropna(axis=1, how="all") for name, part in parts.items()}
    return [Panel(data_name(name), _as_budgets(line, prices, colours)) for name, line in lines.items()]


def _as_budgets(lines: pd.DataFrame, prices: str, colours: Mapping[str, str]) -> pd.DataFrame:
    """Methods in the order of the legend, levels as budgets."""
    lines = lines.loc[[name for name in colours if name in lines.index]]
    return lines if prices == "uniform" else lines.set_axis(lines.columns * PERCENT_PER_LEVEL, axis=1)


def study_pictures(rows: pd.DataFrame) -> list[Picture]:
    """What can be drawn from the other suites; several prices of one study are drawn together."""
    colours = method_colours(rows)
    drawn = rows[rows["method"].isin(colours)]
    found = [_rejection(drawn, colours), *(_scatter(drawn, colours, *each) for each in SCATTERS), _errors(drawn)]
    return [picture for picture in found if picture is not None]


def _rejection(rows: pd.DataFrame, colours: Mapping[str, str]) -> Picture | None:
    """Accuracy on the rows that are kept, at the highest budget, by measure of uncertainty."""
    panels = []
    for measure in [name for name in MEASURES if name != "random"]:
        curve = {percent: _at_most_money(rows, f"selective[{measure}]/kept_accuracy_{percent}") for percent in REJECTED}
        lines = pd.DataFrame(curve)
        if len(lines):
            panels.append(
                Panel(measure.replace("_", " "), lines.loc[[name for name in colours if name in lines.index]])
            )
    if not panels:
        return None
    return _lines(
        "rejection",
        "Accuracy when the most uncertain rows are rejected, by measure of uncertainty",
        "Appendix E",
        "At 50 % of the price of everything, mean over data and seeds. Rejecting at random would leave the accuracy as "
        "it is. Rivals have no members, hence entropy and confidence only.",
        Panels(panels, "rejected, %", "accuracy on the rest", colours, percent=True, one_scale=True),
    )


def _at_most_money(rows: pd.DataFrame, metric: str) -> pd.Series:
    """A metric at the highest budget of each cell, by method: the mean over data."""
    chosen = rows[rows["metric"] == metric]
    last = chosen.loc[chosen.groupby(CELL)["budget"].idxmax()]
    return last.groupby(["data", "method"])["value"].mean().groupby("method").mean()


def points(rows: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    """Pairs of numbered measurements: `x` and `y` are metrics up to the bracket with the number."""
    named = []
    for axis, prefix in (("x", x), ("y", y)):
        number = rows["metric"].str.extract(rf"^{re.escape(prefix)}\[\w+=(\d+)\]$", expand=False)
        chosen = rows[number.notna()].assign(number=number.dropna())
        named.append(chosen.set_index([*CELL, "budget", "number"])["value"].rename(axis))
    return pd.concat(named, axis=1, join="inner")


def _scatter(
    rows: pd.DataFrame, colours: Mapping[str, str], name: str, title: str, label: str, note: str, x: Axis, y: Axis
) -> Picture | None:
    """Points by data and method, of all seeds."""
    found = points(rows, x.metric, y.metric)
    clouds = []
    for data in ordered_data(found.index.unique("data")):
        part = found[found.index.get_level_values("data") == data]
        by_method = {
            method: _thinned(part[part.index.get_level_values("method") == method].to_numpy())
            for method in colours
            if method in part.index.unique("method")
        }
        clouds.append(Cloud(data_name(data), by_method))
    content = Clouds(clouds, x.title, y.title, colours, diagonal=name == "bias")
    note = f"{note} At most {MOST_POINTS} points of a method are drawn."
    return Picture(name, title, label, note, svg(name, draw_points, content)) if clouds else None


def _thinned(points: np.ndarray) -> np.ndarray:
    """Points at even distances in their order, so that the page stays small."""
    return points[:: -(-len(points) // MOST_POINTS)]


def _errors(rows: pd.DataFrame) -> Picture | None:
    """Test errors of the imputed and the adapted model on the same subsets."""
    found = points(rows, "reparam/error_imputed", "reparam/error_adapted")
    if found.empty:
        return None
    data = ordered_data(found.index.unique("data"))
    by_data = {name: _thinned(found[found.index.get_level_values("data") == name].to_numpy()) for name in data}
    content = Clouds(
        [Cloud("", by_data)],
        "error of the imputed model",
        "error of the adapted model",
        dict(zip(data, COLOURS, strict=False)),
        diagonal=True,
    )
    note = (
        "A point is a random subset of one seed; below the line the adapted model is better. At most "
        f"{MOST_POINTS} points of a table are drawn."
    )
    picture = svg("reparam", draw_points, content)
    return Picture("reparam", "Error with and without reparametrisation", "Appendix F", note, picture)


def _lines(name: str, title: str, label: str, note: str, content: Panels) -> Picture:
    return Picture(name, title, label, note, svg(name, draw_lines, content))


def draw_lines(content: Panels) -> Figure:
    """Panels of lines with one legend."""
    figure, grid = _grid(len(content.panels), content.one_scale)
    for axes, panel in zip(grid, content.panels, strict=True):
        for lines, style in ((panel.lines, "-"), (panel.dotted, ":")):
            for method, values in (pd.DataFrame() if lines is None else lines).iterrows():
                _line(axes, str(method), values, style, content.colours)
        if content.zero:
            axes.axhline(0, color="#9aa1ab", linewidth=1)
        if content.percent:
            axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g}%")
        _finish(axes, panel.title, content.x, content.y)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _legend(figure, grid)
    return figure


def _line(axes: Axes, method: str, values: pd.Series, style: str, colours: Mapping[str, str]) -> None:
    axes.plot(
        values.index,
        values,
        style,
        marker="o" if style == "-" else None,
        markersize=3,
        linewidth=2.2 if method == "askwise" else 1.4,
        color=colours[method],
        label=method_name(method) if style == "-" else None,
        gid=f"{method}{'-random' if style == ':' else ''}",
    )


def draw_points(content: Clouds) -> Figure:
    """Panels of points with one legend."""
    figure, grid = _grid(len(content.clouds))
    for axes, cloud in zip(grid, content.clouds, strict=True):
        for key, points in cloud.points.items():
            colour = content.colours.get(key, "#5c6570")
            x, y = points.T
            axes.scatter(x, y, s=9, alpha=0.55, linewidth=0, color=colour, label=data_name(method_name(key)), gid=key)
        if content.diagonal:
            axes.axline((0, 0), slope=1, color="#9aa1ab", linewidth=1, linestyle="--")
        _finish(axes, cloud.title, content.x, content.y)
    _legend(figure, grid)
    return figure


def bernoulli_picture() -> Picture:
    """Appendix A: e = EU + KL(mean || q) for members Bernoulli(theta) and a primary model Bernoulli(phi)."""
    uniform = (np.arange(N_MEMBERS) + 0.5) / N_MEMBERS
    cases = {"theta uniform on [0, 1]": uniform, "theta 0 or 1, half each": np.array([0.0, 1.0])}
    note = (
        "e, how far the members stand from the primary model, is their disagreement with each other plus how far their "
        "mean is from it. In nats."
    )
    return Picture(
        "bernoulli", "Bernoulli ensembles", "Appendix A", note, svg("bernoulli", draw_bernoulli, decompositions(cases))
    )


def decompositions(cases: Mapping[str, np.ndarray]) -> list[Panel]:
    """Both terms and their sum over phi, computed as the library computes them for its own predictions."""
    phi = np.linspace(0.01, 0.99, 99)
    primary = np.column_stack([1 - phi, phi])  # (n, 2)
    panels = []
    for title, theta in cases.items():
        members = np.repeat(np.column_stack([1 - theta, theta])[:, None, :], len(phi), axis=1)  # (k, n, 2)
        terms = {
            "e": epistemic_divergence(members, primary),
            "EU": mutual_information(members),
            "KL(mean || q)": kl_divergence(members.mean(axis=0), primary),
        }
        panels.append(Panel(title, pd.DataFrame(terms, index=phi).T))
    return panels


def draw_bernoulli(panels: Sequence[Panel]) -> Figure:
    """The three curves of each ensemble."""
    figure, grid = _grid(len(panels))
    for axes, panel in zip(grid, panels, strict=True):
        for (name, values), colour in zip(panel.lines.iterrows(), COLOURS, strict=False):
            axes.plot(values.index, values, color=colour, linewidth=1.8, label=name)
        _finish(axes, panel.title, "phi, of the primary model", "nats")
        axes.set_ylim(0, 3)
    _legend(figure, grid)
    return figure


def _grid(n: int, one_scale: bool = False) -> tuple[Figure, list[Axes]]:
    """At most three panels in a row; with `one_scale` heights can be compared between them."""
    columns = min(3, n) if n != 4 else 2
    lines = -(-n // columns)
    figure = Figure(figsize=(9.6, 0.9 + (2.9 if n > 1 else 3.4) * lines), layout="constrained")
    grid = np.ravel(figure.subplots(lines, columns, squeeze=False, sharey=one_scale))
    for axes in grid[n:]:
        axes.set_visible(False)
    return figure, list(grid[:n])


def _finish(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, loc="left")
    axes.set_xlabel(x)
    place = axes.get_subplotspec()
    if place is None or place.is_first_col():
        axes.set_ylabel(y)
    axes.grid(axis="y", color="#e6e9ee")
    axes.set_axisbelow(True)


def _legend(figure: Figure, grid: Sequence[Axes]) -> None:
    """One entry per name, whichever panels have it."""
    named: dict[str, Any] = {}
    for axes in grid:
        named.update({label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)})
    figure.legend(
        named.values(),
        named.keys(),
        loc="outside upper center",
        ncols=min(5, len(named)),
        frameon=False,
        markerscale=1.6,
    )
