"""What is acquired when: of many cases, and step by step of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from askwise.displays.base import WIDTH, Display
from askwise.errors import InvalidInput, short
from askwise.plotting import COLORS, INK, PAPER
from askwise.trajectory import Trajectory

OTHER_COLOR = "#c9ced6"
ON_BLUE = "#fdfdfe"  # white on a light page and on a dark one, unlike the color of the paper
MOST_FEATURES_DRAWN = 30
MOST_STEPS_DRAWN = 30
MOST_STEPS_IN_FIGURES, MOST_STEPS_IN_NARROW_FIGURES = 15, 7
LONGEST_NAME = (30, 16)
"""Letters of a feature's name in a wide figure, and in a narrow one."""

_BLUE = (0.231, 0.435, 0.831)


class AcquisitionOrderDisplay(Display):
    """Share of the cases that acquired each feature at each step; features acquired early are on top.

    Parameters
    ----------
    features
        (M,) names, in the order of the rows.
    share
        (M, T) share of the cases.

    Examples
    --------
    >>> display = AcquisitionOrderDisplay(["age", "pulse"], [[1.0, 0.0], [0.0, 0.75]]).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['age', 'pulse']
    """

    def __init__(self, features: Sequence[str], share: Any) -> None:
        self.features = list(features)[:MOST_FEATURES_DRAWN]
        self.share = np.asarray(share, dtype=float)[:MOST_FEATURES_DRAWN, :MOST_STEPS_DRAWN]

    @classmethod
    def from_trajectory(cls, trajectory: Trajectory, *, ax: Axes | None = None) -> Self:
        """Draw what was acquired when in a run of `acquire`."""
        return cls(*order_shares(trajectory)).plot(ax)

    @classmethod
    def from_selector(
        cls, selector: Any, X: Any, budget: float | None = None, *, stop: Any = None, ax: Axes | None = None
    ) -> Self:
        """Acquire for rows `X` that hold the truth, and draw what was acquired when."""
        return cls.from_trajectory(selector.acquire(X, budget, stop), ax=ax)

    def _height(self, narrow: bool) -> float:
        return 1.0 + 0.29 * len(self.features)

    def _draw(self, ax: Axes, narrow: bool) -> None:
        rows, steps = self.share.shape
        darkest = max(0.5, self.share.max(initial=0))
        edges = np.arange(steps + 1) + 0.5, np.arange(rows + 1) - 0.5
        # From transparent to full, so that it can be read on a dark page too.
        blues = LinearSegmentedColormap.from_list("share", [(*_BLUE, 0.04), (*_BLUE, 1.0)])
        ax.pcolormesh(*edges, self.share, cmap=blues, vmin=0, vmax=darkest, edgecolors=PAPER, linewidth=1, gid="cells")
        for (i, t), value in np.ndenumerate(self.share):
            if round(100 * value) and steps <= (MOST_STEPS_IN_NARROW_FIGURES if narrow else MOST_STEPS_IN_FIGURES):
                color = ON_BLUE if value > 0.6 * darkest else INK
                ax.text(t + 1, i, f"{100 * value:.0f}", ha="center", va="center", color=color, size=8)
        ax.set_yticks(range(rows), [short(name, LONGEST_NAME[narrow]) for name in self.features])
        ax.set_ylim(rows - 0.5, -0.5)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("step" if narrow else "step (percent of the cases)")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)


class TrajectoryDisplay(Display):
    """One case from top to bottom: the probability of each class after each answer, and the entropy beside it.

    Parameters
    ----------
    trace
        The steps, as in ``Session.report()["trace"]``.

    Examples
    --------
    >>> start = {"feature": None, "event": "start", "probabilities": {"no": 0.6, "yes": 0.4}}
    >>> trace = [start | {"uncertainty": {"total": 0.67}}]
    >>> trace += [{**start, "feature": "age", "event": "answer", "value": 61, "uncertainty": {"total": 0.5}}]
    >>> display = TrajectoryDisplay(trace).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['before the first answer', '1. age']
    """

    legend_columns: ClassVar[tuple[int, int]] = (2, 2)

    def __init__(self, trace: Sequence[Mapping[str, Any]]) -> None:
        if not trace:
            raise InvalidInput('trace must have at least one step, as session.report()["trace"] has; got none.')
        self.trace = trace

    @classmethod
    def from_session(cls, session: Any, *, ax: Axes | None = None) -> Self:
        """Draw the case of a `Session` up to now."""
        return cls(session.report()["trace"]).plot(ax)

    @classmethod
    def from_trajectory(cls, trajectory: Trajectory, case: int = 0, *, ax: Axes | None = None) -> Self:
        """Draw one case of a run of `acquire`, by its position."""
        if not 0 <= case < len(trajectory.order):
            raise InvalidInput(f"case must be a position from 0 to {len(trajectory.order) - 1}; got {case!r}.")
        order = [None, *(trajectory.features[i] for i in trajectory.order[case] if i >= 0)]
        labels = [str(label) for label in trajectory.classes]
        total = trajectory.uncertainty.total[case]
        trace = [
            {
                "feature": feature,
                "event": "answer" if t else "start",
                "probabilities": dict(zip(labels, trajectory.proba[case, t].tolist(), strict=True)),
                "uncertainty": {"total": float(total[t])},
            }
            for t, feature in enumerate(order)
        ]
        return cls(trace).plot(ax)

    @classmethod
    def from_selector(
        cls,
        selector: Any,
        X: Any,
        case: int = 0,
        budget: float | None = None,
        *,
        stop: Any = None,
        ax: Axes | None = None,
    ) -> Self:
        """Acquire for rows `X` that hold the truth, and draw one of them, by its position."""
        return cls.from_trajectory(selector.acquire(X, budget, stop), case, ax=ax)

    def _height(self, narrow: bool) -> float:
        legend = 0.24 * ((len(class_colors(self.trace)[0]) + 1) // 2) if narrow else 0.0
        return 1.25 + 0.32 * len(self.trace) + legend

    def _fill(self, figure: Figure, width: float) -> Self:
        if width < WIDTH:  # no room for the entropy
            return super()._fill(figure, width)
        bars, entropy = figure.subplots(1, 2, sharey=True, width_ratios=[3, 1], gridspec_kw={"wspace": 0.12})
        self._keep(bars)
        self._draw(bars, narrow=False)
        total = [step["uncertainty"]["total"] for step in self.trace]
        entropy.plot(total, np.arange(len(total)), marker="o", markersize=4, color=INK, gid="story-entropy")
        entropy.set_xlim(0, max(np.log(len(self.trace[0]["probabilities"])), *total) * 1.06)
        entropy.xaxis.set_major_locator(MaxNLocator(2))
        entropy.set_title("entropy", loc="left")
        entropy.grid(axis="x")
        entropy.tick_params(axis="y", length=0)
        handles, labels = bars.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(5, len(handles)), frameon=False)
        return self

    def _draw(self, ax: Axes, narrow: bool) -> None:
        trace = self.trace
        shown, colors = class_colors(trace)
        at, left = np.arange(len(trace)), np.zeros(len(trace))
        for label in shown:
            width = np.array([class_probability(step, label, shown) for step in trace])
            name = "other" if label is None else short(label, 18)
            ax.barh(at, width, left=left, height=0.72, color=colors[label], label=name)
            left += width
        ax.set_yticks(at, [_step_label(number, step, LONGEST_NAME[narrow]) for number, step in enumerate(trace)])
        ax.set_ylim(len(trace) - 0.5, -0.5)
        ax.set_xlim(0, 1)
        ticks = np.linspace(0, 1, 3 if narrow else 5)
        ax.set_xticks(ticks, [f"{100 * tick:.0f}%" for tick in ticks])
        ax.set_title("probability of each class", loc="left")
        ax.tick_params(axis="y", length=0)


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


def class_colors(trace: Sequence[Mapping[str, Any]]) -> tuple[list[str | None], dict[str | None, str]]:
    """The classes that are shown, and the color of each; of very many the least likely are one, None: "other"."""
    labels = list(trace[0]["probabilities"])
    peak = {label: max(step["probabilities"][label] for step in trace) for label in labels}
    kept = sorted(labels, key=lambda label: -peak[label])[: len(COLORS)]
    colors: dict[str | None, str] = dict(zip(filter(kept.__contains__, labels), COLORS, strict=False))
    if len(kept) < len(labels):
        colors[None] = OTHER_COLOR
    return list(colors), colors


def class_probability(step: Mapping[str, Any], label: str | None, shown: Sequence[str | None]) -> float:
    """The probability of a class after a step; for None, of all classes that are not `shown`."""
    chances: dict[str, float] = step["probabilities"]
    return chances[label] if label is not None else sum(p for name, p in chances.items() if name not in shown)


def _step_label(number: int, step: Mapping[str, Any], longest: int) -> str:
    if step["feature"] is None:
        return "before the first answer" if longest > len("before the first answer") else "nothing yet"
    return f"{number}. {short(step['feature'], longest)}{': unavailable' if step['event'] == 'unavailable' else ''}"
