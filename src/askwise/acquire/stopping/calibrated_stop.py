"""CalibratedStop: a stopping rule, what it promises, and the conditions under which it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from askwise.acquire.policies.base import Policy
from askwise.acquire.stopping.guarantee import (
    FullRuns,
    early_start,
    last_passed,
    p_values,
    price_thresholds,
    rows_needed,
    threshold_sequence,
)
from askwise.acquire.stopping.prediction_sets import PredictionSets
from askwise.acquire.stopping.rules import Stopping
from askwise.errors import InvalidInput
from askwise.parameters import POSITIVE, Flag, Number
from askwise.prices import Prices

if TYPE_CHECKING:
    from askwise.acquire.acquisition import Acquisition

INSIDE = Number(0, 1, above=True, below=True)


@dataclass(frozen=True)
class Goal:
    """What a rule is calibrated for: exactly one of the first three; see `calibrate_stop`."""

    agreement: float | None = None
    accuracy_gap: float | None = None
    average_price: float | None = None
    confidence: float = 0.9
    conditional: bool = False

    def __post_init__(self) -> None:
        goals = {name: getattr(self, name) for name in ("agreement", "accuracy_gap", "average_price")}
        given = [name for name, value in goals.items() if value is not None]
        if len(given) != 1:
            raise InvalidInput(
                f"calibrate_stop needs exactly one of agreement, accuracy_gap and average_price; got {given or 'none'}."
            )
        for name in ("confidence", *set(given) - {"average_price"}):
            if not INSIDE.allows(getattr(self, name)):
                raise InvalidInput(f"{name} must be between 0 and 1, both excluded; got {getattr(self, name)!r}.")
        if self.average_price is not None and not POSITIVE.allows(self.average_price):
            raise InvalidInput(f"average_price must be a finite number > 0; got {self.average_price!r}.")
        if not Flag().allows(self.conditional):
            raise InvalidInput(f"conditional must be True or False; got {self.conditional!r}.")
        if self.average_price is not None and self.conditional:
            raise InvalidInput("conditional=True is for agreement and accuracy_gap; average_price has no risk.")

    @property
    def risk(self) -> float:
        """The share of cases with a loss that is allowed."""
        return 1 - float(self.agreement) if self.agreement is not None else float(self.accuracy_gap or 0.0)

    @property
    def loss(self) -> str:
        """What counts as a loss, in words."""
        if self.agreement is not None:
            return "a decision that knowing all features would have changed"
        return "a wrong decision where all features would have led to the right one"

    def losses(self, runs: FullRuns) -> np.ndarray:
        """(n, T + 1) whether stopping at a state is a loss."""
        return runs.changed if self.agreement is not None else runs.worse

    def check_rows(self, n_rows: int) -> None:
        """Refuse rows too few to show anything: a promise that no result could break is none."""
        if self.average_price is not None:
            return
        needed = rows_needed(self.risk, self.confidence)
        if n_rows < needed:
            asked = f"agreement={self.agreement}" if self.agreement is not None else f"accuracy_gap={self.accuracy_gap}"
            raise InvalidInput(
                f"calibrate_stop: {asked} at confidence={self.confidence} needs at least {needed} rows; there "
                f"are {n_rows}. Pass more rows, or ask for less."
            )


@dataclass(frozen=True, eq=False)
class Conditions:
    """What must stay as it was at calibration.

    Attributes
    ----------
    policy, prices, risk_weight, budget
        Those of the selector; infinite = no budget.
    missing
        (M,) features that were unavailable in some calibration rows.
    """

    policy: Policy
    prices: Prices
    risk_weight: float
    budget: float
    missing: np.ndarray

    def check(self, policy: Policy, prices: Prices, risk_weight: float, budget: np.ndarray) -> None:
        """Refuse what differs from the calibration, with the reason."""
        differs = ""
        if policy is not self.policy:
            differs = "another policy or another fit"
        elif not _same_prices(prices, self.prices):
            differs = "other prices"
        elif risk_weight != self.risk_weight:
            differs = f"risk_weight={self.risk_weight:g}, not {risk_weight:g}"
        elif not np.all(budget == self.budget):
            differs = "no budget" if np.isinf(self.budget) else f"budget={self.budget:g}"
            differs += f", not {_shown_budget(budget)}"
        if differs:
            raise InvalidInput(f"This stopping rule was calibrated for {differs}; call calibrate_stop again.")


class CalibratedStop(Stopping):
    """Stop where the decision is final with a probability that was calibrated; made by `calibrate_stop`.

    Attributes
    ----------
    threshold
        The `decision_is_final` at which a case stops; infinite = never early.
    goal
        What was asked for.
    conditions
        What must not change after the calibration.
    estimated
        Whether the rows were cross-fitted training rows; the promise is then an estimate and not guaranteed.
    n_rows, n_losses, n_early
        Calibration rows, how many of them had a loss, and how many stopped early.
    price, everything
        Average price of the calibration rows with the rule, and with everything bought.
    prediction_sets
        Prediction sets of open and of stopped cases; None without labels.
    """

    def __init__(
        self,
        runs: FullRuns,
        threshold: float,
        goal: Goal,
        conditions: Conditions,
        estimated: bool = False,
        prediction_sets: PredictionSets | None = None,
    ) -> None:
        steps = runs.stops_at(np.array([threshold]))
        self.threshold = threshold
        self.goal = goal
        self.conditions = conditions
        self.estimated = estimated
        self.prediction_sets = prediction_sets
        self.n_rows, self.n_early = len(runs), int(runs.early(steps).sum())
        priced = goal.average_price is not None
        losses = runs.changed if priced else goal.losses(runs)
        self.n_losses = int(np.take_along_axis(losses, steps, axis=1).sum())
        self.price = float(np.take_along_axis(runs.spent, steps, axis=1).mean())
        self.everything = float(runs.spent[:, -1].mean())

    def stops(self, state: Acquisition) -> np.ndarray:
        return state.beliefs.decision_is_final(state.belief) >= self.threshold

    @property
    def promise(self) -> str:
        """What is promised, and under which conditions, in words."""
        rows = f"{self.n_rows} {'cross-fitted training' if self.estimated else 'calibration'} rows"
        budget = "" if np.isinf(self.conditions.budget) else f" and budget ({self.conditions.budget:g})"
        conditions = (
            f"Conditions: cases drawn like the {rows}, with only free features known at the start; the same policy, "
            f"prices{budget}, and features unavailable as often."
        )
        return f"{self._promise()} {conditions}"

    def _promise(self) -> str:
        goal = self.goal
        if goal.average_price is not None:
            return f"Estimated: cases cost {self.price:.4g} on average (asked for: {goal.average_price:.4g})."
        certainty = "Estimated" if self.estimated else "Guaranteed"
        among = "of all cases, and of those that stop early," if goal.conditional else "of all cases"
        risk = f"{100 * goal.risk:.4g}%"
        return (
            f"{certainty} with {100 * goal.confidence:.4g}% confidence: at most {risk} {among} stop with {goal.loss}."
        )

    def __repr__(self) -> str:
        loss = "changed" if self.goal.accuracy_gap is None else "made worse"
        return (
            f"<CalibratedStop at decision_is_final >= {self.threshold:.6g}. {self.promise} On these rows: "
            f"decisions {loss}: {self.n_losses}, early stops: {self.n_early}, average price {self.price:.4g} of "
            f"{self.everything:.4g}>"
        )


def calibrated_threshold(runs: FullRuns, goal: Goal, early_share: np.ndarray | None = None) -> float:
    """The threshold that reaches the goal on `runs`.

    `early_share` (K,) of other rows, for each threshold of the sequence, says where a conditional test starts.
    """
    if goal.average_price is not None:
        return _threshold_for_price(runs, goal.average_price)
    thresholds = threshold_sequence()
    steps = runs.stops_at(thresholds)
    lost = np.take_along_axis(goal.losses(runs), steps, axis=1)
    p = p_values(lost.sum(axis=0), len(runs), goal.risk)
    if last_passed(p[:1], goal.confidence) is None:
        raise InvalidInput(
            f"calibrate_stop cannot promise this: even without an early stop {int(lost[:, 0].sum())} of {len(runs)} "
            f"rows end with {goal.loss}, and at most {100 * goal.risk:.4g}% are allowed. Allow more, raise the budget, "
            "or pass more rows."
        )
    if goal.conditional:
        assert early_share is not None
        early = runs.early(steps)
        p = np.maximum(p, p_values((lost & early).sum(axis=0), early.sum(axis=0), goal.risk))
        start = early_start(early_share, len(runs), rows_needed(goal.risk, goal.confidence))
        thresholds, p = np.r_[np.inf, thresholds[start:]], np.r_[0.0, p[start:]]
    last = last_passed(p, goal.confidence)
    return float(thresholds[0 if last is None else last])


def _threshold_for_price(runs: FullRuns, price: float) -> float:
    thresholds, prices = price_thresholds(runs)
    if price > prices[-1] * (1 + 1e-9):
        raise InvalidInput(
            f"average_price={price:g}, but even without an early stop the calibration rows cost {prices[-1]:.6g} on "
            "average. Ask for less."
        )
    return float(thresholds[np.abs(prices - price).argmin()])


def _same_prices(one: Prices, other: Prices) -> bool:
    if not np.array_equal(one.costs, other.costs) or len(one.shared) != len(other.shared):
        return False
    pairs = zip(one.shared, other.shared, strict=True)
    return all(np.array_equal(a[0], b[0]) and a[1] == b[1] for a, b in pairs)


def _shown_budget(budget: np.ndarray) -> str:
    if len(np.unique(budget)) > 1:
        return "budgets that differ by case"
    return "no limit" if np.isinf(budget[0]) else f"budget={budget[0]:g}"
