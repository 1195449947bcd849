"""What is saved, and what a budget buys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from askwise.displays.base import POLICY_COLORS, Display
from askwise.plotting import COLORS, INK, SOFT

WAY_COLORS = ("#3b6fd4", "#e0793a", "#7a828c", "#3a9d6e")


class SavingsDisplay(Display):
    """Average price at which each share of the decisions is kept, with intervals, by ways of stopping.

    Parameters
    ----------
    savings
        The table of `DynamicFeatureSelector.savings`.
    priced
        Whether prices are money, or the number of features.
    unit
        The currency.

    Examples
    --------
    >>> import pandas as pd
    >>> table = {"level": [0.9, 0.9], "way": ["stop per case", "fixed budget"], "price": [3.0, 5.0]}
    >>> table |= {"low": [2.5, 4.0], "high": [3.5, 6.0], "share": [0.3, 0.5]}
    >>> display = SavingsDisplay(pd.DataFrame(table), unit="CAD").plot()
    >>> display.ax_.get_xlabel()
    'average price per case (CAD)'
    """

    legend_columns = (3, 1)
    legend_above = True

    def __init__(self, savings: pd.DataFrame, *, priced: bool = True, unit: str = "") -> None:
        self.savings = savings
        self.priced = priced
        self.unit = unit

    @classmethod
    def from_selector(
        cls,
        selector: Any,
        X: Any,
        levels: Sequence[float] = (0.9, 0.95, 0.98, 0.99),
        *,
        unit: str = "",
        ax: Axes | None = None,
    ) -> Self:
        """Measure what is saved on complete rows `X` that the model has not seen, and draw it."""
        return cls(selector.savings(X, levels), priced=not selector.prices_.uniform, unit=unit).plot(ax)

    def _height(self, narrow: bool) -> float:
        ways, levels = self.savings["way"].nunique(), self.savings["level"].nunique()
        return 1.1 + 0.62 * levels + 0.2 * ((ways + 1) // self.legend_columns[narrow])

    def _draw(self, ax: Axes, narrow: bool) -> None:
        savings = self.savings
        levels, ways = savings["level"].unique()[::-1], list(savings["way"].unique())
        everything = float((savings["price"] / savings["share"]).max())
        for k, way in enumerate(ways):
            rows = savings[savings["way"] == way].set_index("level").loc[levels]
            at = np.arange(len(levels)) + 0.78 / len(ways) * ((len(ways) - 1) / 2 - k)
            price = rows["price"].to_numpy()
            around = np.abs(np.stack([price - rows["low"], rows["high"] - price]))
            style: dict[str, Any] = {"xerr": around, "error_kw": {"ecolor": INK, "elinewidth": 1.2}}
            ax.barh(at, price, 0.72 / len(ways), color=WAY_COLORS[k], label=way, gid=f"savings-{k}", **style)
            for y, value in zip(at, price, strict=True):
                ax.text(1.01 * everything, y, "never" if np.isnan(value) else f"{value:.3g}", va="center", size=8)
        ax.axvline(everything, color=INK, linestyle="--", linewidth=1.2, label="everything")
        ax.set_yticks(range(len(levels)), [f"{level:.4g}%" for level in 100 * levels])
        ax.set_ylabel("decisions kept")
        unit = f" ({self.unit})" if self.unit else ""
        ax.set_xlabel(f"average price per case{unit}" if self.priced else "average number of features per case")
        ax.set_xlim(0, everything)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x")
        ax.xaxis.set_major_locator(MaxNLocator(4 if narrow else 6))


class BudgetDisplay(Display):
    """A measure by budget, a line for each way of asking.

    Parameters
    ----------
    budgets
        (B,) budgets.
    lines
        ``{name: (B,) values}``; the first one is drawn thickest, and all in the order given.
    full
        The value with everything known, drawn as a dashed line; None = not drawn.
    bands
        ``{name: (lowest, highest)}``, (B,) each: a range around a line.
    measure
        The label of the vertical axis.
    unit
        The label of the horizontal axis.

    Examples
    --------
    >>> display = BudgetDisplay([1, 2], {"askwise": [0.8, 0.9], "static": [0.7, 0.9]}, full=0.95).plot()
    >>> [line.get_label() for line in display.ax_.get_lines()]
    ['everything known', 'static', 'askwise']
    """

    def __init__(
        self,
        budgets: Any,
        lines: Mapping[str, Any],
        *,
        full: float | None = None,
        bands: Mapping[str, tuple[Any, Any]] | None = None,
        measure: str = "accuracy",
        unit: str = "budget",
        names: Mapping[str, str] | None = None,
        full_name: str = "everything known",
    ) -> None:
        self.budgets = budgets
        self.lines = lines
        self.full = full
        self.bands = bands or {}
        self.measure = measure
        self.unit = unit
        self.names = names or {}
        self.full_name = full_name

    @classmethod
    def from_selector(
        cls,
        selector: Any,
        X: Any,
        y: Any,
        budgets: Sequence[float] | None = None,
        *,
        policies: Mapping[str, Any] | Sequence[str] = ("static", "random"),
        measure: str = "accuracy",
        ax: Axes | None = None,
    ) -> Self:
        """Evaluate the selector, and beside it the same predictions with other `policies`, and draw it.

        `policies` are names, or ``{label: a policy, or a fitted rival with evaluate}``; `measure` is a column of
        `DynamicFeatureSelector.evaluate`.
        """
        own = selector.evaluate(X, y, budgets, missing="blocked")
        lines = {"askwise": own[measure].to_numpy()}
        others = policies if isinstance(policies, Mapping) else {name: name for name in policies}
        for name, policy in others.items():
            rival = policy if hasattr(policy, "evaluate") else selector.with_policy(policy)
            lines[name] = rival.evaluate(X, y, own["budget"].tolist(), missing="blocked")[measure].to_numpy()
        full = float(np.mean(selector.predict(X) == np.asarray(y))) if measure == "accuracy" else None
        unit = "features bought" if selector.prices_.uniform else "budget per case"
        return cls(own["budget"].to_numpy(), lines, full=full, measure=measure, unit=unit).plot(ax)

    def _draw(self, ax: Axes, narrow: bool) -> None:
        if self.full is not None:
            ax.axhline(self.full, color=INK, linestyle="--", linewidth=1.2, label=self.full_name)
        spare = iter(color for color in COLORS if color not in POLICY_COLORS.values())
        colors = {name: POLICY_COLORS.get(name) or next(spare, SOFT) for name in self.lines}
        for name, (low, high) in self.bands.items():
            band: dict[str, Any] = {"alpha": 0.2, "linewidth": 0, "gid": f"band-{name}"}
            ax.fill_between(self.budgets, low, high, color=colors[name], **band)
        for k, (name, values) in reversed(list(enumerate(self.lines.items()))):
            style: dict[str, Any] = {"marker": "o", "markersize": 4, "linewidth": 1.6 if k else 2.4}
            label = self.names.get(name, name)
            ax.plot(self.budgets, values, color=colors[name], label=label, gid=f"curve-{name}", **style)
        ax.set_xlabel(self.unit)
        ax.set_ylabel(self.measure)
        if max(np.max(values) for values in self.lines.values()) <= 1:
            ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.4g}%")
        whole = np.all(np.equal(np.mod(self.budgets, 1), 0))
        ax.xaxis.set_major_locator(MaxNLocator(integer=bool(whole)))
        ax.grid(axis="y")
