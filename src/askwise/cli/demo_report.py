"""One self-contained HTML page: savings, accuracy by budget, the order of acquisition, and the story of one case.

Pictures are inline SVG; the page loads nothing. The same numbers give the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

import askwise
from askwise.cli.comparison import Comparison, Story
from askwise.cli.options import check_report_path
from askwise.cli.wording import NONE_FIRES, NONE_POSSIBLE, shown_number, shown_value, step_name, warnings_of
from askwise.displays import AcquisitionOrderDisplay, BudgetDisplay, SavingsDisplay, TrajectoryDisplay
from askwise.displays.base import drawn_twice
from askwise.displays.cases import MOST_FEATURES_DRAWN, class_colors, class_probability, order_shares
from askwise.errors import AskwiseError
from askwise.explain import Flowchart
from askwise.files import write_whole
from askwise.plotting import template

SHARES = ("askwise", "static", "random", "random_low", "random_high", "balanced_accuracy", "kept", "kept_of_worst")
"""Columns of the table of numbers that are shown in percent."""

LEAST_EPISTEMIC = 0.01
"""Nats."""
FEWEST_QUESTIONS, FAITHFUL = 2, 0.8
"""Of a flowchart that is worth showing: its depth, and how often it decides like the policy on held-out rows."""


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

    @property
    def tells_epistemic(self) -> bool:
        """Whether epistemic uncertainty is worth a column: not where it is unknown, or as good as zero throughout."""
        found = [step["uncertainty"]["epistemic"] for step in self.story.trace]
        return any(value is not None and (isinstance(value, str) or value >= LEAST_EPISTEMIC) for value in found)

    @property
    def tells_policy(self) -> bool:
        """Whether the flowchart is worth showing: not where it asks next to nothing, or decides unlike the policy."""
        chart = self.flowchart
        return chart is not None and chart.depth >= FEWEST_QUESTIONS and chart.measured.policy >= FAITHFUL


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
    pictures = {"story": drawn_twice("story", TrajectoryDisplay(story.trace))}
    if comparison is not None:
        if comparison.savings is not None:
            pictures["savings"] = drawn_twice("savings", SavingsDisplay(comparison.savings, priced=comparison.priced))
        pictures["curves"] = drawn_twice("curves", _curves(comparison))
        pictures["order"] = drawn_twice("order", AcquisitionOrderDisplay(*order_shares(comparison.trajectory)))
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


def _curves(comparison: Comparison) -> BudgetDisplay:
    """Accuracy by budget: askwise, a static order, random orders with their range, and the model with everything."""
    curves = comparison.curves
    return BudgetDisplay(
        curves["budget"],
        {way: curves[way] for way in ("askwise", "static", "random")},
        full=comparison.full,
        bands={"random": (curves["random_low"], curves["random_high"])},
        measure="accuracy on held-out rows",
        unit="budget" if comparison.priced else f"{comparison.units} bought",
        names={"static": comparison.static, "random": "random order (mean and range)"},
        full_name="the model with everything",
    )


def _steps(story: Story, shown: Sequence[str | None]) -> list[dict[str, Any]]:
    """The steps with what the page adds to them: names, money spent so far, warnings, bars."""
    spent = np.cumsum([step["cost"] for step in story.trace])
    return [
        {
            **step,
            "name": step_name(step, story.known),
            "spent": float(spent[t]),
            "warnings": warnings_of(step),
            "bars": [(label, class_probability(step, label, shown)) for label in shown],
        }
        for t, step in enumerate(story.trace)
    ]
