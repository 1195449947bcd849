"""The page of `askwise evaluate`: one self-contained HTML file to show to a manager."""

from __future__ import annotations

from typing import Self

import pandas as pd
from matplotlib.figure import Figure

import askwise
from askwise.cli.findings import Findings, in_hindsight
from askwise.displays import BudgetDisplay, RejectionDisplay, SavingsDisplay
from askwise.displays.base import WIDTH, Display, drawn_twice
from askwise.explain import percent
from askwise.plotting import template
from askwise.table.desk import Desk

NAMES = {"askwise": "askwise", "static": "one fixed order", "random": "random order"}
MOST_ASKED = 15


def render(title: str, found: Findings, desk: Desk, about: list[tuple[str, str]], seen: str | None = None) -> str:
    """The page as text; `seen` is said at the top where the cases were given to `fit`."""
    unit = f" ({desk.currency})" if desk.currency else ""
    displays: dict[str, Display] = {
        "savings": SavingsDisplay(_named(found.savings), unit=desk.currency or ""),
        "curves": _Curves(found, f"budget per case{unit}"),
        "rejection": RejectionDisplay(found.rejection),
    }
    pictures = {name: drawn_twice(name, display) for name, display in displays.items()}
    return template("manager.html", money=desk.amount, percent=percent, price=desk.money).render(
        title=title,
        found=found,
        seen=seen,
        desk=desk,
        pictures=pictures,
        asked=found.asked[:MOST_ASKED],
        cheaper=found.cheaper,
        hindsight=in_hindsight(found.savings).to_dict(),
        more=max(0, len(found.asked) - MOST_ASKED),
        rows=found.curves.to_dict("records"),
        names=NAMES,
        about=[*about, ("askwise", f"version {askwise.__version__}")],
    )


def _named(savings: pd.DataFrame) -> pd.DataFrame:
    """The savings with the static order under the name that it has on the rest of the page."""
    return savings.replace({"way": {"static order": NAMES["static"]}})


class _Curves(Display):
    """Accuracy above, calibration error below, by budget."""

    def __init__(self, found: Findings, unit: str) -> None:
        self.found = found
        self.unit = unit

    def _height(self, narrow: bool) -> float:
        return 5.2

    def _fill(self, figure: Figure, width: float) -> Self:
        curves, narrow = self.found.curves, width < WIDTH
        panels = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        measures = (
            ("accuracy", "right decisions", self.found.summary.full_accuracy),
            ("ece", "calibration error (ECE)", self.found.full_ece),
        )
        for axes, (measure, label, full) in zip(panels, measures, strict=True):
            lines = {way: curves[f"{measure}_{way}"] for way in NAMES}
            of = BudgetDisplay(curves["budget"], lines, full=full, measure=label, unit=self.unit, names=NAMES)
            of._draw(axes, narrow)
        panels[0].set_xlabel("")
        panels[1].set_ylim(bottom=0)
        self._keep(panels[0])
        self._legend(narrow, outside=True)
        return self
