"""One self-contained HTML page: savings, accuracy by budget, the order of acquisition, and the story of one case.

Pictures are inline SVG; the page loads nothing. The same numbers give the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

import askwise
from askwise.cli.comparison import Comparison, Story
from askwise.cli.options import check_report_path
from askwise.cli.wording import NONE_FIRES, NONE_POSSIBLE, short, shown_number, shown_value, step_name, warnings_of
from askwise.errors import AskwiseError
from askwise.explain import Flowchart
from askwise.files import write_whole
from askwise.plotting import COLORS, INK, PAPER, svg, template
from askwise.trajectory import Trajectory

OTHER_COLOR = "#c9ced6"
WAY_COLORS = ("#3b6fd4", "#e0793a", "#7a828c", "#3a9d6e")
POLICY_COLORS = {"askwise": "#3b6fd4", "static": "#e0793a", "random": "#7a828c"}
SHARES = ("askwise", "static", "random", "random_low", "random_high", "balanced_accuracy", "kept", "kept_of_worst")
"""Columns of the table of numbers that are shown in percent."""

_BLUE = (0.231, 0.435, 0.831)
ON_BLUE = "#fdfdfe"  # white on a light page and on a dark one, unlike the color of the paper
WIDTH = 6.2
"""Inches; narrow enough for the text of a figure to be read on a phone."""

MOST_FEATURES_DRAWN = 30
MOST_STEPS_DRAWN = 30
MOST_STEPS_IN_FIGURES = 15


@dataclass(frozen=True)
class Report:
    """All that the page says; without a `comparison` it tells the story only. `about` lists (what, text).

    `film` is the story in pictures, where the case is an image; `flowchart` the policy as a tree of questions.
    """

    title: str
    about: list[tuple[str, str]]
    story: Story
    comparison: Comparison | None = None
    film: Markup | None = None
    flowchart: Flowchart | None = None


def write_report(path: str | os.PathLike[str], report: Report) -> Path:
    """Write the page to `path`, at once or not at all."""
    target = check_report_path(path)
    page = render(report)
    try:
        write_whole(target, page)
    except OSError as error:
        raise AskwiseError(f"The report cannot be written to {target}: {error}. Choose another place.") from None
    return target


def render(report: Report) -> str:
    """The page as text."""
    story, comparison = report.story, report.comparison
    pictures = {"story": svg("story", draw_story, story)}
    if comparison is not None:
        if comparison.savings is not None:
            pictures["savings"] = svg("savings", partial(draw_savings, priced=comparison.priced), comparison.savings)
        pictures["curves"] = svg("curves", draw_curves, comparison)
        pictures["order"] = svg("order", draw_order, comparison.trajectory)
    shown, colors = class_colors(story.trace)
    return template("report.html", value=shown_value, number=shown_number).render(
        report=report,
        pictures=pictures,
        steps=_steps(story, shown),
        colors=colors,
        rows=[] if comparison is None else comparison.curves.to_dict("records"),
        columns=[] if comparison is None else list(comparison.curves.columns),
        shares=SHARES,
        ruled=any("rules" in step for step in story.trace),
        left_out=0 if comparison is None else max(0, len(comparison.trajectory.features) - MOST_FEATURES_DRAWN),
        none_fires=NONE_FIRES,
        none_possible=NONE_POSSIBLE,
        about=[*report.about, ("askwise", f"version {askwise.__version__}")],
    )


def draw_savings(savings: pd.DataFrame, priced: bool, unit: str = "", width: float = WIDTH) -> Figure:
    """Average price at which each share of the decisions is kept, with intervals: stop per case, fixed budgets."""
    levels, ways = savings["level"].unique()[::-1], list(savings["way"].unique())
    columns = 3 if width == WIDTH else 1  # of the legend
    height = 1.1 + 0.62 * len(levels) + 0.2 * ((len(ways) + 1) // columns)
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    everything = float((savings["price"] / savings["share"]).max())
    for k, way in enumerate(ways):
        rows = savings[savings["way"] == way].set_index("level").loc[levels]
        at = np.arange(len(levels)) + 0.78 / len(ways) * ((len(ways) - 1) / 2 - k)
        price = rows["price"].to_numpy()
        around = np.abs(np.stack([price - rows["low"], rows["high"] - price]))
        style = {"ecolor": INK, "elinewidth": 1.2}
        axes.barh(
            at, price, 0.72 / len(ways), xerr=around, error_kw=style, color=WAY_COLORS[k], label=way, gid=f"savings-{k}"
        )
        for y, value in zip(at, price, strict=True):
            axes.text(1.01 * everything, y, "never" if np.isnan(value) else f"{value:.3g}", va="center", size=8)
    axes.axvline(everything, color=INK, linestyle="--", linewidth=1.2, label="everything")
    axes.set_yticks(range(len(levels)), [f"{level:.4g}%" for level in 100 * levels])
    axes.set_ylabel("decisions kept")
    axes.set_xlabel(f"average price per case{unit}" if priced else "average number of features per case")
    axes.set_xlim(0, everything)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.xaxis.set_major_locator(MaxNLocator(6 if width == WIDTH else 4))
    figure.legend(loc="outside upper center", ncols=columns, frameon=False)
    return figure


def draw_curves(comparison: Comparison) -> Figure:
    """Accuracy by budget: askwise, a static order, random orders with their range, and the model with everything."""
    curves = comparison.curves
    figure = Figure(figsize=(WIDTH, 3.8), layout="constrained")
    axes = figure.subplots()
    axes.axhline(comparison.full, color=INK, linestyle="--", linewidth=1.2, label="the model with everything")
    band: dict[str, Any] = {"color": POLICY_COLORS["random"], "alpha": 0.2, "linewidth": 0, "gid": "band-random"}
    axes.fill_between(curves["budget"], curves["random_low"], curves["random_high"], **band)
    names = {"askwise": "askwise", "static": comparison.static, "random": "random order (mean and range)"}
    for key, name in names.items():
        style: dict[str, Any] = {"marker": "o", "markersize": 4, "linewidth": 2.4 if key == "askwise" else 1.6}
        axes.plot(curves["budget"], curves[key], color=POLICY_COLORS[key], label=name, gid=f"curve-{key}", **style)
    axes.set_xlabel(f"{comparison.units} bought" if not comparison.priced else "budget")
    axes.set_ylabel("accuracy on held-out rows")
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g}%")
    axes.xaxis.set_major_locator(MaxNLocator(integer=not comparison.priced))
    axes.grid(axis="y")
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure


def draw_order(trajectory: Trajectory) -> Figure:
    """Share of cases that bought each feature at each step; features by their mean position, early ones on top."""
    features, share = order_shares(trajectory)
    features, share = features[:MOST_FEATURES_DRAWN], share[:MOST_FEATURES_DRAWN, :MOST_STEPS_DRAWN]
    rows, steps = share.shape
    figure = Figure(figsize=(WIDTH, 1.0 + 0.29 * rows), layout="constrained")
    axes = figure.subplots()
    darkest = max(0.5, share.max(initial=0))
    edges = np.arange(steps + 1) + 0.5, np.arange(rows + 1) - 0.5
    # From transparent to full, so that it can be read on a dark page too.
    blues = LinearSegmentedColormap.from_list("share", [(*_BLUE, 0.04), (*_BLUE, 1.0)])
    axes.pcolormesh(*edges, share, cmap=blues, vmin=0, vmax=darkest, edgecolors=PAPER, linewidth=1, gid="cells")
    for (i, t), value in np.ndenumerate(share):
        if round(100 * value) and steps <= MOST_STEPS_IN_FIGURES:
            color = ON_BLUE if value > 0.6 * darkest else INK
            axes.text(t + 1, i, f"{100 * value:.0f}", ha="center", va="center", color=color, size=8)
    axes.set_yticks(range(rows), [short(name) for name in features])
    axes.set_ylim(rows - 0.5, -0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("step")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


def draw_story(story: Story) -> Figure:
    """The case from top to bottom: class probabilities after each step, stacked, and their entropy beside them."""
    trace = story.trace
    shown, colors = class_colors(trace)
    figure = Figure(figsize=(WIDTH, 1.25 + 0.32 * len(trace)), layout="constrained")
    bars, entropy = figure.subplots(1, 2, sharey=True, width_ratios=[3, 1], gridspec_kw={"wspace": 0.12})
    at = np.arange(len(trace))
    left = np.zeros(len(trace))
    for label in shown:
        width = np.array([_probability(step, label, shown) for step in trace])
        name = "other" if label is None else short(label, 18)
        bars.barh(at, width, left=left, height=0.72, color=colors[label], label=name)
        left += width
    bars.set_yticks(at, [_step_label(number, step) for number, step in enumerate(trace)])
    bars.set_ylim(len(trace) - 0.5, -0.5)
    bars.set_xlim(0, 1)
    bars.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
    bars.set_title("probability of each class", loc="left")
    total = [step["uncertainty"]["total"] for step in trace]
    entropy.plot(total, at, marker="o", markersize=4, color=INK, gid="story-entropy")
    entropy.set_xlim(0, max(np.log(len(trace[0]["probabilities"])), *total) * 1.06)
    entropy.xaxis.set_major_locator(MaxNLocator(2))
    entropy.set_title("entropy", loc="left")
    entropy.grid(axis="x")
    for axes in (bars, entropy):
        axes.tick_params(axis="y", length=0)
    handles = bars.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=min(5, len(shown)), frameon=False)
    return figure


def order_shares(trajectory: Trajectory) -> tuple[list[str], np.ndarray]:
    """Features by mean position, and the share of cases that bought each at each step, (M, T).

    A feature that a case did not buy counts as one that came after its last step.
    """
    order, n_features = trajectory.order, len(trajectory.features)
    bought = order[:, :, None] == np.arange(n_features)  # (n, T, M)
    position = np.zeros((1, n_features))
    if order.size:
        position = np.where(bought.any(axis=1), bought.argmax(axis=1), order.shape[1])
    ranked = np.argsort(position.mean(axis=0), kind="stable")
    share = bought.mean(axis=0).T[ranked]
    return [trajectory.features[i] for i in ranked], share


def class_colors(trace: Sequence[dict[str, Any]]) -> tuple[list[str | None], dict[str | None, str]]:
    """The classes that are shown, and the color of each; of very many the least likely are one, None: "other"."""
    labels = list(trace[0]["probabilities"])
    peak = {label: max(step["probabilities"][label] for step in trace) for label in labels}
    kept = sorted(labels, key=lambda label: -peak[label])[: len(COLORS)]
    colors: dict[str | None, str] = dict(zip(filter(kept.__contains__, labels), COLORS, strict=False))
    if len(kept) < len(labels):
        colors[None] = OTHER_COLOR
    return list(colors), colors


def _probability(step: dict[str, Any], label: str | None, shown: Sequence[str | None]) -> float:
    chances: dict[str, float] = step["probabilities"]
    return chances[label] if label is not None else sum(p for name, p in chances.items() if name not in shown)


def _step_label(number: int, step: dict[str, Any]) -> str:
    if step["feature"] is None:
        return "before the first answer"
    return f"{number}. {short(step['feature'])}{': unavailable' if step['event'] == 'unavailable' else ''}"


def _steps(story: Story, shown: Sequence[str | None]) -> list[dict[str, Any]]:
    """The steps with what the page adds to them: names, money spent so far, warnings, bars."""
    spent = np.cumsum([step["cost"] for step in story.trace])
    return [
        {
            **step,
            "name": step_name(step, story.known),
            "spent": float(spent[t]),
            "warnings": warnings_of(step),
            "bars": [(label, _probability(step, label, shown)) for label in shown],
        }
        for t, step in enumerate(story.trace)
    ]
