"""The figures of the studies, drawn from rows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from askwise.plotting import COLORS, svg
from askwise_bench.grid.store import TRIAL
from askwise_bench.report.figures import (
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
from askwise_bench.report.illustrations import illustration_pictures
from askwise_bench.report.image_results import image_pictures
from askwise_bench.report.rows import Quantity, data_name, method_name, ordered_data
from askwise_bench.report.uncertainty_tables import MEASURES, subset_errors

MOST_POINTS = 150


Axis = tuple[Quantity, str]
SCATTERS: dict[str, tuple[str, str, str]] = {
    "bias": (
        "Divergence from the model of the subset and from the model with all features",
        "Appendix E",
        "A point is a random subset of one seed; below the line the prediction is nearer to the model of the subset.",
    ),
    "risk-gap": ("Risk gap and ensemble variance", "Appendix F", "A point is a random subset of one seed."),
    "scatter": (
        "Aleatoric and epistemic uncertainty",
        "Appendix F",
        "A point is a test row at 30 % or 70 % of the price of everything, in nats.",
    ),
}
"""Title, place in the paper and note."""

AXES: dict[str, tuple[Axis, Axis]] = {
    "bias": (
        (Quantity("bias", "kl_full"), "KL to the model with all features"),
        (Quantity("bias", "kl_ref"), "KL to the model of the subset"),
    ),
    "risk-gap": (
        (Quantity("risk_gap", "variance"), "mean ensemble variance"),
        (Quantity("risk_gap", "delta", {"loss": "error"}), "risk gap in test error"),
    ),
    "scatter": ((Quantity("scatter", "aleatoric"), "aleatoric"), (Quantity("scatter", "epistemic"), "epistemic")),
}


def pictures(rows: pd.DataFrame) -> list[Picture]:
    """Every figure that the rows allow."""
    return [*accuracy_pictures(rows), *image_pictures(rows), *study_pictures(rows), *illustration_pictures()]


def study_pictures(rows: pd.DataFrame) -> list[Picture]:
    """The figures of the other studies; several kinds of prices of one study are drawn together."""
    colors = method_colors(rows)
    drawn = rows[rows["method"].isin(colors)]
    found = [_rejection(drawn, colors), *(_scatter(drawn, colors, name) for name in SCATTERS)]
    found += [_errors(drawn), _gaps(drawn)]
    return [picture for picture in found if picture is not None]


def _rejection(rows: pd.DataFrame, colors: Mapping[str, str]) -> Picture | None:
    """Accuracy on the rows that are kept, at the highest budget, by measure of uncertainty."""
    panels = []
    for measure in [name for name in MEASURES if name != "random"]:
        chosen = Quantity("selective", "kept_accuracy", {"measure": measure}, end="max").of(rows)
        by_data = chosen.groupby(["data", "method", "rejected"])["value"].mean()
        lines = by_data.groupby(["method", "rejected"]).mean().unstack("rejected")
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


def points(rows: pd.DataFrame, x: Quantity, y: Quantity) -> pd.DataFrame:
    """Pairs of two quantities of the same subset or case, with the columns ``x`` and ``y``."""
    keys = [*TRIAL, "budget", "subset", "case"]
    left, right = (quantity.of(rows)[[*keys, "value"]] for quantity in (x, y))
    return left.rename(columns={"value": "x"}).merge(right.rename(columns={"value": "y"}), on=keys).set_index(keys)


def _scatter(rows: pd.DataFrame, colors: Mapping[str, str], name: str) -> Picture | None:
    """Points by data and method, of all seeds."""
    (title, label, note), ((x, x_title), (y, y_title)) = SCATTERS[name], AXES[name]
    found = points(rows, x, y)
    data = ordered_data(found.index.unique("data"))
    panels = [Panel(data_name(each), _thinned(found[found.index.isin([each], "data")], "method")) for each in data]
    content = Panels(panels, x_title, y_title, colors, diagonal=name == "bias")
    note = f"{note} At most {MOST_POINTS} points of a method are drawn."
    return Picture(name, title, label, note, svg(name, draw_points, content)) if panels else None


def _thinned(found: pd.DataFrame, key: str) -> pd.DataFrame:
    """Every k-th point of each key, so that the page stays small; with the key as the index."""
    by_key = found.set_axis(found.index.get_level_values(key))
    parts = [by_key[by_key.index == name] for name in by_key.index.unique()]
    return pd.concat([part.iloc[:: -(-len(part) // MOST_POINTS)] for part in parts])


def _errors(rows: pd.DataFrame) -> Picture | None:
    """Test errors of the imputed and the adapted model on the same subsets."""
    found = points(rows, *(Quantity("reparametrization", f"error_{name}") for name in ("imputed", "adapted")))
    if found.empty:
        return None
    colors = dict(zip(ordered_data(found.index.unique("data")), cycle(COLORS), strict=False))
    x, y = (f"error of the {name} model" for name in ("imputed", "adapted"))
    content = Panels([Panel("", _thinned(found, "data"))], x, y, colors, diagonal=True)
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
    note = (
        "Left: the gap in test error to a model trained on the subset alone, over the random subsets of all seeds and "
        "data, with its mean and median. Right: the error that adapting saves, by the error of the model of the "
        "subset; above the line it helps."
    )
    drawing = svg("reparam-gaps", draw_gaps, (gaps, _thinned(advantage, "data")))
    return Picture("reparam-gaps", "Risk gap with and without reparametrization", "Appendix F", note, drawing)


def draw_gaps(content: tuple[Mapping[str, np.ndarray], pd.DataFrame]) -> Figure:
    """Two distributions of gaps, and points by data."""
    gaps, advantage = content
    figure, (left, right) = panel_grid(2)
    left.violinplot(list(gaps.values()), showmeans=True, showmedians=True)
    left.set_xticks([1, 2], list(gaps))
    left.axhline(0, color="#9aa1ab", linewidth=1, linestyle="--")
    finish_axes(left, "Gaps", "", "risk gap in test error")
    _draw_clouds(right, advantage, dict(zip(advantage.index.unique(), cycle(COLORS), strict=False)))
    right.axhline(0, color="#9aa1ab", linewidth=1, linestyle="--")
    finish_axes(right, "Error saved by adapting", "error of the model of the subset", "")
    add_legend(figure, [right])
    return figure


def draw_points(content: Panels) -> Figure:
    """Panels of points with one legend."""
    figure, grid = panel_grid(len(content.panels))
    for axes, panel in zip(grid, content.panels, strict=True):
        _draw_clouds(axes, panel.lines, content.colors)
        if content.diagonal:
            axes.axline((0, 0), slope=1, color="#9aa1ab", linewidth=1, linestyle="--")
        finish_axes(axes, panel.title, content.x, content.y)
    add_legend(figure, grid)
    return figure


def _draw_clouds(axes: Axes, by_key: pd.DataFrame, colors: Mapping[str, str]) -> None:
    for key in [name for name in colors if name in by_key.index]:
        x, y = by_key[by_key.index == key].to_numpy().T
        label = data_name(method_name(key))
        axes.scatter(x, y, s=9, alpha=0.55, linewidth=0, color=colors[key], label=label, gid=key)
