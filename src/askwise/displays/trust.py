"""How far to trust: calibration, and which cases to hand to a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from askwise.displays.base import POLICY_COLORS, Display
from askwise.metrics import expected_calibration_error, rejection_curve
from askwise.plotting import COLORS, SOFT

FEWEST_KEPT = 0.1
"""Share of the cases below which an accuracy among them means nothing."""


class ReliabilityDisplay(Display):
    """How often predictions are right, by how sure they are: on the diagonal, 90 % means nine times out of ten.

    Parameters
    ----------
    confidence, accuracy, counts
        (B,) each: mean confidence, share of right predictions, and number of rows of each bin that holds any.
    error
        The expected calibration error, named in the legend.
    name
        The name of the line in the legend.

    Examples
    --------
    >>> display = ReliabilityDisplay.from_predictions([0, 0, 1, 1], [[0.9, 0.1]] * 2 + [[0.3, 0.7]] * 2)
    >>> display.counts.tolist(), display.accuracy.tolist()
    ([2, 2], [1.0, 1.0])
    """

    def __init__(self, confidence: Any, accuracy: Any, counts: Any, *, error: float, name: str = "") -> None:
        self.confidence = np.asarray(confidence)
        self.accuracy = np.asarray(accuracy)
        self.counts = np.asarray(counts)
        self.error = error
        self.name = name

    @classmethod
    def from_predictions(
        cls, y_true: Any, proba: Any, n_bins: int = 10, *, name: str = "", ax: Axes | None = None
    ) -> Self:
        """From true classes as column indices (n,), and probabilities (n, C)."""
        proba, y_true = np.asarray(proba, dtype=float), np.asarray(y_true)
        error = expected_calibration_error(y_true, proba, n_bins)
        sure, right = proba.max(axis=1), proba.argmax(axis=1) == y_true
        bins = np.searchsorted(np.arange(1, n_bins) / n_bins, sure, side="left")
        counts = np.bincount(bins, minlength=n_bins)
        filled = counts > 0
        confidence, accuracy = (np.bincount(bins, of, n_bins)[filled] / counts[filled] for of in (sure, right))
        return cls(confidence, accuracy, counts[filled], error=error, name=name).plot(ax)

    @classmethod
    def from_selector(
        cls,
        selector: Any,
        X: Any,
        y: Any,
        budget: float | None = None,
        *,
        stop: Any = None,
        n_bins: int = 10,
        name: str = "",
        ax: Axes | None = None,
    ) -> Self:
        """Acquire for rows `X` that hold the truth, and judge all predictions on the way, after each answer."""
        run = selector.acquire(X, budget, stop)
        case, step = np.nonzero(np.column_stack([np.ones(len(run.order), dtype=bool), run.order >= 0]))
        truth = np.searchsorted(selector.classes_, np.asarray(y))
        return cls.from_predictions(truth[case], run.proba[case, step], n_bins, name=name, ax=ax)

    def _draw(self, ax: Axes, narrow: bool) -> None:
        ax.plot([0, 1], [0, 1], color=SOFT, linestyle="--", linewidth=1.2)
        label = f"{self.name}, " if self.name else ""
        sizes = 12 + 160 * self.counts / self.counts.max()
        (line,) = ax.plot(self.confidence, self.accuracy, linewidth=2, label=f"{label}ECE {self.error:.1%}")
        ax.scatter(self.confidence, self.accuracy, sizes, color=line.get_color(), alpha=0.85)
        ax.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="confidence", ylabel="share that is right")
        for ticks in (ax.xaxis, ax.yaxis):
            ticks.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
        ax.grid()


class RejectionDisplay(Display):
    """Share of right decisions among the others if the least certain cases are handed to a person.

    Parameters
    ----------
    curves
        ``{name: (share of the cases that is kept, accuracy among them)}``, as `askwise.metrics.rejection_curve` gives
        them; the first one is drawn thickest.

    Examples
    --------
    >>> display = RejectionDisplay.from_predictions([True, True, False, True], [0.1, 0.2, 0.9, 0.2])
    >>> display.ax_.get_ylabel()
    'right among the others'
    """

    def __init__(self, curves: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> None:
        self.curves = curves

    @classmethod
    def from_predictions(cls, correct: Any, uncertainty: Any, *, name: str = "", ax: Axes | None = None) -> Self:
        """From whether each decision is right, (n,), and how uncertain it is, (n,)."""
        return cls({name: rejection_curve(correct, uncertainty)}).plot(ax)

    @classmethod
    def from_selector(
        cls,
        selector: Any,
        X: Any,
        y: Any,
        budget: float | None = None,
        *,
        stop: Any = None,
        measures: Sequence[str] = ("confidence_gap", "total", "epistemic"),
        ax: Axes | None = None,
    ) -> Self:
        """Acquire for rows `X` that hold the truth, and rank the cases at the end by each uncertainty of `measures`."""
        run = selector.acquire(X, budget, stop)
        right = run.predict(-1) == np.asarray(y)
        known = {name: values[:, -1] for name, values in run.uncertainty.as_dict().items() if name in measures}
        ranked = {name: known[name] for name in measures if name in known and not np.isnan(known[name]).any()}
        return cls({name: rejection_curve(right, values) for name, values in ranked.items()}).plot(ax)

    def _height(self, narrow: bool) -> float:
        return 3.2

    def _draw(self, ax: Axes, narrow: bool) -> None:
        colors = (POLICY_COLORS["askwise"], SOFT, *COLORS[1:])
        for k, ((name, (kept, accuracy)), color) in enumerate(zip(self.curves.items(), colors, strict=False)):
            shown = kept >= FEWEST_KEPT
            style: dict[str, Any] = {"linewidth": 1.6, "linestyle": "--"} if k else {"linewidth": 2.4}
            ax.plot(1 - kept[shown], accuracy[shown], color=color, label=name or None, **style)
        for ticks in (ax.xaxis, ax.yaxis):
            ticks.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
        ax.xaxis.set_major_locator(MaxNLocator(6))
        ax.set_xlim(0, 1 - FEWEST_KEPT)
        ax.set_xlabel(f"cases handed to a person,{chr(10) if narrow else ' '}the least certain first")
        ax.set_ylabel("right among the others")
        ax.grid(axis="y")
