"""What is saved, what a budget buys, and whether it is worth its price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from askwise.displays.base import POLICY_COLORS, Display
from askwise.errors import InvalidInput
from askwise.metrics import net_benefit
from askwise.parameters import Number, check_values
from askwise.plotting import COLORS, INK, SOFT
from askwise.predict.base import class_positions

WAY_COLORS = ("#3b6fd4", "#e0793a", "#7a828c", "#3a9d6e")

TREAT_ALL, TREAT_NONE = "treat all", "treat none"
LOWEST = 0.3
"""How far below 0 a decision curve is shown, as a share of its highest point: treating all falls without end."""


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
        budgets: Sequence[Any] | None = None,
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
        given = own["budget"].tolist() if budgets is None else budgets
        lines = {"askwise": own[measure].to_numpy()}
        others = policies if isinstance(policies, Mapping) else {name: name for name in policies}
        for name, policy in others.items():
            rival = policy if hasattr(policy, "evaluate") else selector.with_policy(policy)
            lines[name] = rival.evaluate(X, y, given, missing="blocked")[measure].to_numpy()
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


class DecisionCurveDisplay(Display):
    """A decision curve: the net benefit of acting on a class, by the probability from which one acts.

    The net benefit at the threshold t is ``TP / n - FP / n * t / (1 - t)``, as `askwise.metrics.net_benefit` has it: in
    true positives per case, of which a false one costs ``t / (1 - t)``. Beside the predictions are acting on all cases
    and on none: predictions are of use at the thresholds at which they are above both. With `price_per_benefit` the
    average price of the tests is taken off, so that tests are of use only where they are worth their price.

    Parameters
    ----------
    thresholds
        (T,) probabilities from which one acts, above 0 and below 1.
    curves
        ``{name: (T,) net benefit}``; the first one is drawn thickest.
    treat_all
        (T,) net benefit of acting on all cases; acting on none has 0.
    priced
        Whether the price of the tests is taken off.
    positive
        The name of the class that is acted on.

    Examples
    --------
    >>> display = DecisionCurveDisplay.from_predictions([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1], [0.2, 0.5], name="model")
    >>> display.curves["model"].tolist(), display.treat_all.tolist()
    ([0.4375, 0.0], [0.375, 0.0])
    """

    def __init__(
        self,
        thresholds: Any,
        curves: Mapping[str, Any],
        *,
        treat_all: Any,
        priced: bool = False,
        positive: str = "",
    ) -> None:
        self.thresholds = np.asarray(thresholds, dtype=float)
        self.curves = {name: np.asarray(curve, dtype=float) for name, curve in curves.items()}
        self.treat_all = np.asarray(treat_all, dtype=float)
        self.priced = priced
        self.positive = positive

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        proba: Any,
        thresholds: Any = None,
        *,
        price: Any = None,
        price_per_benefit: float | None = None,
        name: str = "predictions",
        positive: str = "",
        ax: Axes | None = None,
    ) -> Self:
        """From whether each case is of the class to act on, (n,), and the probability of that.

        `proba` is (n,), or ``{name: (n,)}`` for several curves; `thresholds` are 0.01 to 0.99 by default. `price` is
        what the tests behind a curve cost, per case or on average, ``{name: price}`` for several curves; it is taken
        off if `price_per_benefit` says what one true positive is worth, in the unit of the prices.
        """
        curves = proba if isinstance(proba, Mapping) else {name: proba}
        prices = price if isinstance(price, Mapping) else dict.fromkeys(curves, price)
        if price_per_benefit is not None:
            limits = {"price_per_benefit": Number(0, above=True)}
            check_values(cls.__name__, {"price_per_benefit": price_per_benefit}, limits)
            unpriced = [one for one in curves if prices.get(one) is None]
            if unpriced:
                raise InvalidInput(
                    f"{cls.__name__}: price_per_benefit needs the price of the tests behind each curve; "
                    f"price has none for {', '.join(map(repr, unpriced))}. 0 = no tests."
                )
        at = np.arange(1, 100) / 100 if thresholds is None else thresholds
        found = {one: net_benefit(y_true, values, at) for one, values in curves.items()}
        if price_per_benefit is not None:
            found = {one: curve - np.mean(prices[one]) / price_per_benefit for one, curve in found.items()}
        treat_all = net_benefit(y_true, np.ones(len(y_true)), at)
        priced = price_per_benefit is not None
        return cls(at, found, treat_all=treat_all, priced=priced, positive=positive).plot(ax)

    @classmethod
    def from_selector(
        cls,
        selector: Any,
        X: Any,
        y: Any,
        budget: float | None = None,
        *,
        stop: Any = None,
        positive: Any = None,
        thresholds: Any = None,
        price_per_benefit: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Acquire for rows `X` that hold the truth, and judge the last predictions beside those with everything known.

        `budget` and `stop` are those of `DynamicFeatureSelector.acquire`. `positive` is the class to act on: the second
        of two if it is not named; of more, one against the others.
        """
        labels = class_positions(selector.classes_, np.asarray(y))
        names = selector.classes_.tolist()
        if positive is None and len(names) != 2:
            raise InvalidInput(
                f"{cls.__name__}: with {len(names)} classes, name the one to act on: positive={names[-1]!r}."
            )
        if positive is not None and positive not in names:
            raise InvalidInput(f"{cls.__name__}: positive must be one of the classes {names}; got {positive!r}.")
        column = 1 if positive is None else names.index(positive)
        run = selector.acquire(X, budget, stop)
        recorded = selector.schema_.any_column(selector._encode(X).observed)
        proba = {"askwise": run.ends.proba[:, column], "everything known": selector.predict_proba(X)[:, column]}
        price = {"askwise": run.spent_after(-1), "everything known": selector.prices_.total(recorded)}
        given: dict[str, Any] = {"price": price, "price_per_benefit": price_per_benefit, "positive": str(names[column])}
        return cls.from_predictions(labels == column, proba, thresholds, **given, ax=ax)

    def _draw(self, ax: Axes, narrow: bool) -> None:
        spare = iter(color for color in COLORS if color not in POLICY_COLORS.values())
        style: dict[str, Any]
        for k, (name, curve) in reversed(list(enumerate(self.curves.items()))):
            color = POLICY_COLORS["askwise"] if k == 0 else INK if name == "everything known" else next(spare, SOFT)
            style = {"linewidth": 1.6, "linestyle": "--"} if k else {"linewidth": 2.4}
            ax.plot(self.thresholds, curve, color=color, label=name, gid=f"curve-{name}", **style)
        style = {"color": POLICY_COLORS["static"], "linewidth": 1.6}
        ax.plot(self.thresholds, self.treat_all, label=TREAT_ALL, gid=f"curve-{TREAT_ALL}", **style)
        ax.axhline(0, color=SOFT, linewidth=1.6, label=TREAT_NONE)
        highest = max(float(curve.max()) for curve in (*self.curves.values(), self.treat_all))
        lowest = min(float(curve.min()) for curve in (*self.curves.values(), self.treat_all))
        if highest > 0:
            ax.set_ylim(max(lowest, -LOWEST * highest) - 0.03 * highest, 1.05 * highest)
        of = f" of {self.positive}" if self.positive else ""
        ax.set_xlabel(f"probability{of} from which one acts")
        less = f"{chr(10) if narrow else ' '}less the price of the tests" if self.priced else ""
        ax.set_ylabel(f"net benefit{less}")
        ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
        ax.grid(axis="y")
