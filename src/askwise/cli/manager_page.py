"""The page of `askwise evaluate`: one self-contained HTML file to show to a manager."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

import askwise
from askwise.cli.demo_report import POLICY_COLORS, WIDTH, draw_savings
from askwise.cli.findings import LEVEL, Findings
from askwise.explain.words import percent
from askwise.plotting import INK, SOFT, svg, template
from askwise.table.desk import Desk

NAMES = {"askwise": "askwise", "static": "one fixed order", "random": "random order"}
MOST_ASKED = 15
WIDTHS = {"wide": WIDTH, "narrow": 3.5}
"""Inches: each picture is drawn for a desk and for a phone, where a shrunk one could not be read."""


def render(title: str, found: Findings, desk: Desk, about: list[tuple[str, str]], seen: str | None = None) -> str:
    """The page as text; `seen` is said at the top where the cases were given to `fit`."""
    unit = f" ({desk.currency})" if desk.currency else ""
    drawn: dict[str, tuple[Callable[..., Figure], Any]] = {
        "savings": (partial(draw_savings, priced=True, unit=unit), _named(found.savings)),
        "curves": (partial(draw_curves, unit=unit), found),
        "rejection": (draw_rejection, found),
    }
    pictures = {
        name: {size: svg(f"{size}-{name}", partial(draw, width=width), of) for size, width in WIDTHS.items()}
        for name, (draw, of) in drawn.items()
    }
    return template("manager.html", money=desk.amount, percent=percent, price=desk.money).render(
        title=title,
        found=found,
        seen=seen,
        desk=desk,
        pictures=pictures,
        asked=found.asked[:MOST_ASKED],
        cheaper=found.cheaper,
        hindsight=_in_hindsight(found.savings),
        more=max(0, len(found.asked) - MOST_ASKED),
        rows=found.curves.to_dict("records"),
        names=NAMES,
        about=[*about, ("askwise", f"version {askwise.__version__}")],
    )


def _in_hindsight(savings: pd.DataFrame) -> dict[str, Any]:
    """What the stop per case that `Summary` tells of does to the class that loses most."""
    rows = savings[(savings["level"] == LEVEL) & (savings["way"] == "stop per case")]
    return {str(name): value for name, value in rows.iloc[0].items()}


def _named(savings: pd.DataFrame) -> pd.DataFrame:
    """The savings with the static order under the name that it has on the rest of the page."""
    return savings.replace({"way": {"static order": NAMES["static"]}})


def draw_curves(found: Findings, unit: str = "", width: float = WIDTH) -> Figure:
    """Accuracy above, calibration error below, by budget."""
    figure = Figure(figsize=(width, 5.2), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    full = {"accuracy": found.summary.full_accuracy, "ece": found.full_ece}
    for axes, measure, label in ((above, "accuracy", "right decisions"), (below, "ece", "calibration error (ECE)")):
        axes.axhline(full[measure], color=INK, linestyle="--", linewidth=1.2, label="everything known")
        for way, name in reversed(NAMES.items()):
            style: dict[str, Any] = {"marker": "o", "markersize": 4, "linewidth": 2.4 if way == "askwise" else 1.6}
            values = found.curves[f"{measure}_{way}"]
            axes.plot(found.curves["budget"], values, color=POLICY_COLORS[way], label=name, **style)
        axes.set_ylabel(label)
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
        axes.grid(axis="y")
    below.set_ylim(bottom=0)
    below.set_xlabel(f"budget per case{unit}")
    handles, labels = above.get_legend_handles_labels()
    ncols = 4 if width == WIDTH else 2
    figure.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=ncols, frameon=False)
    return figure


def draw_rejection(found: Findings, width: float = WIDTH) -> Figure:
    """Share of right decisions among the cases that are decided, by the share that is handed to a person."""
    figure = Figure(figsize=(width, 3.2), layout="constrained")
    axes = figure.subplots()
    for (name, (kept, accuracy)), color in zip(found.rejection.items(), (POLICY_COLORS["askwise"], SOFT), strict=True):
        shown = kept >= 0.1  # of a few cases, the share means nothing
        style: dict[str, Any] = {"linewidth": 2.4} if name == "askwise" else {"linewidth": 1.6, "linestyle": "--"}
        axes.plot(1 - kept[shown], accuracy[shown], color=color, label=name, **style)
    for ticks in (axes.xaxis, axes.yaxis):
        ticks.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.set_xlim(0, 0.9)
    axes.set_xlabel(f"cases handed to a person,{' ' if width == WIDTH else chr(10)}the least certain first")
    axes.set_ylabel("right among the others")
    axes.grid(axis="y")
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure
