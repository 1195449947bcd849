"""The figures of the studies, drawn from rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from askwise.bench.grid.store import TRIAL
from askwise.bench.report.figures import (
    Panel,
    Panels,
    Picture,
    accuracy_pictures,
    add_legend,
    finish_axes,
    line_picture,
    method_colors,
    panel_grid,
)
from askwise.bench.report.illustrations import illustration_pictures
from askwise.bench.report.image_results import image_pictures
from askwise.bench.report.rows import Quantity, data_name, method_name, ordered_data
from askwise.bench.report.uncertainty_tables import MEASURES, subset_errors
from askwise.plotting import COLORS, svg

MOST_POINTS = 150


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
    colors: Mapping[str, str]
    diagonal: bool = False


@dataclass(frozen=True)
class Axis:
    """An axis of a scatter plot: what it shows by subset or case, and its label."""

    quantity: Quantity
    title: str


SCATTERS = (
    (
        "bias",
        "Divergence from the model of the subset and from the model with all features",
        "Appendix E",
        "A point is a random subset of one seed; below the line the prediction is nearer to the model of the subset.",
        Axis(Quantity("bias", "kl_full"), "KL to the model with all features"),
        Axis(Quantity("bias", "kl_ref"), "KL to the model of the subset"),
    ),
    (
        "risk-gap",
        "Risk gap and ensemble variance",
        "Appendix F",
        "A point is a random subset of one seed.",
        Axis(Quantity("risk_gap", "variance"), "mean ensemble variance"),
        Axis(Quantity("risk_gap", "delta", {"loss": "error"}), "risk gap in test error"),
    ),
    (
        "scatter",
        "Aleatoric and epistemic uncertainty",
        "Appendix F",
        "A point is a test row at 30 % or 70 % of the price of everything, in nats.",
        Axis(Quantity("scatter", "aleatoric"), "aleatoric"),
        Axis(Quantity("scatter", "epistemic"), "epistemic"),
    ),
)


def pictures(rows: pd.DataFrame) -> list[Picture]:
    """Every figure that the rows allow."""
    return [*accuracy_pictures(rows), *image_pictures(rows), *study_pictures(rows), *illustration_pictures()]


def study_pictures(rows: pd.DataFrame) -> list[Picture]:
    """The figures of the other studies; several kinds of prices of one study are drawn together."""
    colors = method_colors(rows)
    drawn = rows[rows["method"].isin(colors)]
    found = [_rejection(drawn, colors), *(_scatter(drawn, colors, *each) for each in SCATTERS)]
    found += [_errors(drawn), _gaps(drawn)]
    return [picture for picture in found if picture is not None]


def _rejection(rows: pd.DataFrame, colors: Mapping[str, str]) -> Picture | None:
    """Accuracy on the rows that are kept, at the highest budget, by measure of uncertainty."""
    panels = []
    for measure in [name for name in MEASURES if name != "random"]:
        lines = _at_the_highest_budget(rows, Quantity("selective", "kept_accuracy", {"measure": measure}))
        if len(lines):
            panels.append(Panel(measure.replace("_", " "), lines.loc[[name for name in colors if name in lines.index]]))
    if not panels:
        return None
    return line_picture(
        "rejection",
        "Accuracy when the most uncertain rows are rejected, by measure of uncertainty",
        "Appendix E",
        "At 50 % of the price of everything, mean over data and seeds. Rejecting at random would not change the "
        "accuracy. Baselines have no members, hence entropy (total) and confidence gap only.",
        Panels(panels, "rejected, %", "accuracy on the rest", colors, percent=True, one_scale=True),
    )


def _at_the_highest_budget(rows: pd.DataFrame, quantity: Quantity) -> pd.DataFrame:
    """A row per method, a column per percentage rejected: the mean over data, at the highest budget of each trial."""
    chosen = quantity.of(rows)
    last = chosen[chosen["budget"] == chosen.groupby(TRIAL)["budget"].transform("max")]
    by_data = last.groupby(["data", "method", "rejected"])["value"].mean()
    return by_data.groupby(["method", "rejected"]).mean().unstack("rejected")


def points(rows: pd.DataFrame, x: Quantity, y: Quantity) -> pd.DataFrame:
    """Pairs of two quantities of the same subset or case, with the columns ``x`` and ``y``."""
    keys = [*TRIAL, "budget", "subset", "case"]
    left, right = (quantity.of(rows)[[*keys, "value"]] for quantity in (x, y))
    return left.rename(columns={"value": "x"}).merge(right.rename(columns={"value": "y"}), on=keys).set_index(keys)


def _scatter(
    rows: pd.DataFrame, colors: Mapping[str, str], name: str, title: str, label: str, note: str, x: Axis, y: Axis
) -> Picture | None:
    """Points by data and method, of all seeds."""
    found = points(rows, x.quantity, y.quantity)
    clouds = []
    for data in ordered_data(found.index.unique("data")):
        part = found[found.index.get_level_values("data") == data]
        by_method = {
            method: _thinned(part[part.index.get_level_values("method") == method].to_numpy())
            for method in colors
            if method in part.index.unique("method")
        }
        clouds.append(Cloud(data_name(data), by_method))
    content = Clouds(clouds, x.title, y.title, colors, diagonal=name == "bias")
    note = f"{note} At most {MOST_POINTS} points of a method are drawn."
    return Picture(name, title, label, note, svg(name, draw_points, content)) if clouds else None


def _thinned(points: np.ndarray) -> np.ndarray:
    """Every k-th point, so that the page stays small."""
    return points[:: -(-len(points) // MOST_POINTS)]


def _errors(rows: pd.DataFrame) -> Picture | None:
    """Test errors of the imputed and the adapted model on the same subsets."""
    found = points(rows, *(Quantity("reparametrization", f"error_{name}") for name in ("imputed", "adapted")))
    if found.empty:
        return None
    data = ordered_data(found.index.unique("data"))
    by_data = {name: _thinned(found[found.index.get_level_values("data") == name].to_numpy()) for name in data}
    content = Clouds(
        [Cloud("", by_data)],
        "error of the imputed model",
        "error of the adapted model",
        dict(zip(data, COLORS, strict=False)),
        diagonal=True,
    )
    note = (
        "A point is a random subset of one seed; below the line the adapted model is better. At most "
        f"{MOST_POINTS} points of a table are drawn."
    )
    picture = svg("reparam", draw_points, content)
    return Picture("reparam", "Error with and without reparametrization", "Appendix F", note, picture)


def _gaps(rows: pd.DataFrame) -> Picture | None:
    """The distribution of the risk gap over the subsets, and what adapting gains by how hard the subset is."""
    errors = subset_errors(rows[rows["method"] == "rl-remlp"])
    if errors.empty:
        return None
    gaps = {name: (errors[name] - errors["local"]).to_numpy() for name in ("imputed", "adapted")}
    advantage = pd.DataFrame({"x": errors["local"], "y": errors["imputed"] - errors["adapted"]})
    by_data = {data: _thinned(advantage.xs(data, level="data").to_numpy()) for data in errors.index.unique("data")}
    note = (
        "Left: the gap in test error to a model trained on the subset alone, over the random subsets of all seeds and "
        "data, with its mean and median. Right: the error that adapting saves, by the error of the model of the "
        "subset; above the line it helps."
    )
    drawing = svg("reparam-gaps", draw_gaps, (gaps, by_data))
    return Picture("reparam-gaps", "Risk gap with and without reparametrization", "Appendix F", note, drawing)


def draw_gaps(content: tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]) -> Figure:
    """Two distributions of gaps, and points by data."""
    gaps, by_data = content
    figure, (left, right) = panel_grid(2)
    left.violinplot(list(gaps.values()), showmeans=True, showmedians=True)
    left.set_xticks([1, 2], list(gaps))
    left.axhline(0, color="#9aa1ab", linewidth=1, linestyle="--")
    finish_axes(left, "Gaps", "", "risk gap in test error")
    for (data, points), color in zip(by_data.items(), COLORS, strict=False):
        x, y = points.T
        right.scatter(x, y, s=9, alpha=0.55, linewidth=0, color=color, label=data_name(data))
    right.axhline(0, color="#9aa1ab", linewidth=1, linestyle="--")
    finish_axes(right, "Error saved by adapting", "error of the model of the subset", "")
    add_legend(figure, [right])
    return figure


def draw_points(content: Clouds) -> Figure:
    """Panels of points with one legend."""
    figure, grid = panel_grid(len(content.clouds))
    for axes, cloud in zip(grid, content.clouds, strict=True):
        for key, points in cloud.points.items():
            color = content.colors.get(key, "#5c6570")
            x, y = points.T
            axes.scatter(x, y, s=9, alpha=0.55, linewidth=0, color=color, label=data_name(method_name(key)), gid=key)
        if content.diagonal:
            axes.axline((0, 0), slope=1, color="#9aa1ab", linewidth=1, linestyle="--")
        finish_axes(axes, cloud.title, content.x, content.y)
    add_legend(figure, grid)
    return figure
