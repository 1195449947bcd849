"""Handover: which cases to hand to a person, so that the decisions on the others are as accurate as promised.

When nothing more is acquired for a case, its uncertainties say whether to decide it or to hand it over. Which of them
says that best is chosen on some of the calibration rows; on the others the share of cases that is decided grows, in an
order fixed beforehand, until the accuracy asked for can no longer be shown (learn then test, as in `guarantee`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from scipy.special import rel_entr
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from askwise.epistemic import Assessment
from askwise.errors import AskwiseWarning, InvalidInput
from askwise.parameters import POSITIVE
from askwise.stopping.calibrated_stop import FAR_BELOW, INSIDE
from askwise.stopping.guarantee import last_passed, rows_needed
from askwise.stopping.rules import Stopping
from askwise.table.columns import plain
from askwise.table.prices import budget_in_words

SHARE_TO_CHOOSE = 3
"""One of so many calibration rows is used to choose the measure and the order of the tests."""
DECIDED = np.arange(0.02, 1.001, 0.02)
"""Shares of decided cases that are tested."""
N_PARTS = 5
FEWEST_ERRORS = 10
"""A combination is fitted only with so many wrong and so many right decisions."""
LEAST_MEASURE = 1e-6
"""Added before the logarithm: measures below it, such as a novelty of 0, are alike."""
IN_WORDS = {
    "total": "the prediction is uncertain",
    "epistemic": "the model knows too little about such cases",
    "novelty": "the case is unlike the training rows",
    "open": "further features could change the decision",
    "combined": "the uncertainties of the case together are high",
}


@dataclass(frozen=True)
class HandoverGoal:
    """What is promised about decided cases: exactly one of the first two; see `calibrate_handover`."""

    accuracy: float | None = None
    error_cost: float | None = None
    confidence: float = 0.9

    def __post_init__(self) -> None:
        given = [name for name in ("accuracy", "error_cost") if getattr(self, name) is not None]
        if len(given) != 1:
            raise InvalidInput(
                f"calibrate_handover needs exactly one of accuracy and error_cost; got {given or 'none'}."
            )
        for name in ("confidence", "accuracy"):
            value = getattr(self, name)
            if value is not None and not INSIDE.allows(value):
                raise InvalidInput(f"{name} must be between 0 and 1, both excluded; got {value!r}.")
        if self.error_cost is not None and not POSITIVE.allows(self.error_cost):
            raise InvalidInput(f"error_cost must be a finite number > 0; got {self.error_cost!r}.")

    @property
    def weaker(self) -> str:
        """What to do for a promise that is easier to keep, in words."""
        return "ask for a lower accuracy" if self.accuracy is not None else "allow a higher error_cost"

    def losses(self, labels: np.ndarray, decision: np.ndarray, error_costs: np.ndarray | None) -> np.ndarray:
        """(n,) the loss of each decision, between 0 and 1."""
        if self.accuracy is not None:
            return np.asarray(labels != decision, dtype=float)
        assert error_costs is not None
        return np.asarray(error_costs[labels, decision] / error_costs.max())

    def risk(self, error_costs: np.ndarray | None) -> float:
        """The mean loss that is allowed."""
        if self.accuracy is not None:
            return 1 - self.accuracy
        assert error_costs is not None
        assert self.error_cost is not None
        return self.error_cost / float(error_costs.max())


@dataclass(frozen=True)
class HandoverClass:
    """What a hand-over does to the cases that truly are of one class, on the calibration rows of its test.

    Attributes
    ----------
    label
        The class.
    rows, decided
        How many cases there are of it, and how many of these are decided.
    right
        The share of the decided ones that is decided for it; NaN if none is.
    """

    label: Any
    rows: int
    decided: int
    right: float


@dataclass(frozen=True, eq=False)
class Handover:
    """Hand a case to a person where a measure of its uncertainty is above a threshold; see `calibrate_handover`.

    Attributes
    ----------
    measure
        What a case is judged by: "total", "epistemic", "novelty", "open" (1 less `decision_is_final`) or "combined".
    weights
        (5,) of the logarithms of the measures, in this order, and an intercept; their sum is the score of a case.
    threshold
        A case whose score is above it is handed over.
    goal
        What was asked for.
    stop, budget
        The stopping rule and the budget that the cases were acquired by; the promise holds for these only.
    n_rows, n_decided, mean_loss
        Calibration rows of the test, how many of them are decided, and the mean loss among these: the share of wrong
        decisions, or the mean cost of an error.
    shares
        The share handed over by each measure, as it was estimated when one was chosen; NaN: never accurate enough.
    classes
        What it does to the cases of each class; `by_class` has it as a table.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X[::2], y[::2])
    >>> rule = selector.calibrate_handover(X[1::2], y[1::2], accuracy=0.8)
    >>> print(rule.promise.partition("About")[0])
    Guaranteed with 90% confidence: of the cases that are decided, at least 80% are decided rightly.
    >>> selector.acquire(X[1::2]).handed_over.shape
    (75,)
    """

    measure: str
    weights: np.ndarray
    threshold: float
    goal: HandoverGoal
    stop: Stopping | None
    budget: Any
    n_rows: int
    n_decided: int
    mean_loss: float
    shares: dict[str, float]
    classes: list[HandoverClass]

    @property
    def by_class(self) -> pd.DataFrame:
        """What the rule does to the cases of each class, one row each; the columns are those of `HandoverClass`."""
        return pd.DataFrame([vars(one) for one in self.classes])

    @property
    def handed_over(self) -> float:
        """The share of the calibration rows that is handed over."""
        return 1 - self.n_decided / self.n_rows

    def scores(self, found: Assessment) -> np.ndarray:
        """(n,) the score of each case, higher for those to hand over."""
        return np.asarray(measures(found) @ self.weights[:-1] + self.weights[-1])

    def hands_over(self, found: Assessment) -> np.ndarray:
        """(n,) the cases to hand to a person, if nothing more is acquired for them."""
        return self.scores(found) > self.threshold

    @property
    def reason(self) -> str:
        """Why a case is handed over, in words."""
        return IN_WORDS[self.measure]

    @property
    def promise(self) -> str:
        """What is promised, in words."""
        said = f"Guaranteed with {100 * self.goal.confidence:.4g}% confidence: of the cases that are decided, "
        if self.goal.accuracy is not None:
            said += f"at least {100 * self.goal.accuracy:.4g}% are decided rightly."
        else:
            said += f"errors cost at most {self.goal.error_cost:g} on average."
        ends = " and stop" if self.budget == np.inf else f", stop and budget ({budget_in_words(self.budget)})"
        return (
            f"{said} About {self.handed_over:.0%} of the cases are handed to a person. Conditions: cases drawn like "
            f"the calibration rows, acquired with the same policy, prices{ends}."
        )

    def __repr__(self) -> str:
        seen = (
            f"{1 - self.mean_loss:.4g} right" if self.goal.accuracy is not None else f"{self.mean_loss:.4g} on average"
        )
        by_class = ", ".join(f"{one.label!r} {100 * one.right:.3g}% of {one.decided}" for one in self.classes)
        return (
            f"<Handover where {self.reason} ({self.measure}). {self.promise} On {self.n_rows} rows: "
            f"{self.n_decided} decided, {seen}; right by true class: {by_class}>"
        )

    def warn_of_lost_classes(self) -> None:
        """A warning for the classes whose decided cases are right much less often than all decided ones shall be."""
        if self.goal.accuracy is None:
            return
        far = [one for one in self.classes if one.right < self.goal.accuracy - FAR_BELOW]
        if far:
            seen = " and ".join(f"of {one.decided} cases of {one.label!r} {one.right:.0%}" for one in far)
            warnings.warn(
                f"Of the cases that are decided, {100 * self.goal.accuracy:.4g}% shall be right; {seen} are: they are "
                "too few to count among all. Say what such errors cost (error_costs of the selector, then "
                "calibrate_handover with error_cost=), or hand over by a measure of your own.",
                AskwiseWarning,
                stacklevel=3,
            )


def measures(found: Assessment) -> np.ndarray:
    """(n, 4) logarithms of total, epistemic, novelty and 1 - `decision_is_final`; what is unknown counts as 0."""
    known = found.uncertainty
    together = np.stack([known.total, known.epistemic, known.novelty, 1 - found.decision_is_final], axis=-1)
    return np.log(np.clip(np.nan_to_num(together, nan=0.0, posinf=1e6), 0.0, 1e6) + LEAST_MEASURE)


def calibrated_handover(
    found: Assessment,
    labels: np.ndarray,
    goal: HandoverGoal,
    error_costs: np.ndarray | None,
    stop: Stopping | None,
    budget: Any,
    classes: np.ndarray,
) -> Handover:
    """The rule for cases that end as `found`, with the true classes `labels` (n,), positions in `classes`."""
    if goal.error_cost is not None and error_costs is None:
        raise InvalidInput(
            "calibrate_handover: error_cost needs a selector with error_costs, such as "
            "DynamicFeatureSelector(model, error_costs={'ill': 2000, 'healthy': 500}); or ask for an accuracy."
        )
    losses, risk = goal.losses(labels, found.decision, error_costs), goal.risk(error_costs)
    if risk >= 1:
        raise InvalidInput(f"error_cost={goal.error_cost:g} is no less than the most that an error costs: decide all.")
    needed, n = rows_needed(risk, goal.confidence), len(labels)
    if n - n // SHARE_TO_CHOOSE < needed:
        raise InvalidInput(
            f"calibrate_handover needs at least {int(np.ceil(needed * SHARE_TO_CHOOSE / (SHARE_TO_CHOOSE - 1)))} rows "
            f"to promise this; there are {n}. Pass more rows, or {goal.weaker}."
        )
    order = np.random.default_rng(0).permutation(n)
    first, rest = order[: n // SHARE_TO_CHOOSE], order[n // SHARE_TO_CHOOSE :]
    known = measures(found)
    name, weights, shares, scores = _chosen(known[first], losses[first], risk)
    thresholds = np.quantile(scores, DECIDED, method="higher")
    thresholds[-1] = np.inf  # all cases, also those with a higher score than any of these rows
    start = _start(losses[first], scores, risk, len(rest), goal.confidence)
    own = known[rest] @ weights[:-1] + weights[-1]
    last = last_passed(p_values_of_means(losses[rest], own, thresholds[start:], risk), goal.confidence)
    if last is None:
        _refuse(goal, float(losses.mean()), error_costs)
    threshold = float(thresholds[start + last])
    decided = own <= threshold
    scale = 1.0 if error_costs is None or goal.error_cost is None else float(error_costs.max())
    mean_loss = float(losses[rest][decided].mean()) * scale
    right = found.decision[rest] == labels[rest]
    by_class = []
    for c in np.unique(labels[rest]):
        members = labels[rest] == c
        share = float(right[members & decided].mean()) if (members & decided).any() else np.nan
        by_class.append(HandoverClass(plain(classes[c]), int(members.sum()), int((members & decided).sum()), share))
    n_decided = int(decided.sum())
    return Handover(name, weights, threshold, goal, stop, budget, len(rest), n_decided, mean_loss, shares, by_class)


def p_values_of_means(losses: np.ndarray, scores: np.ndarray, thresholds: np.ndarray, risk: float) -> np.ndarray:
    """(K,) p values of the mean of losses in [0, 1] being above `risk` among cases with a score up to each threshold.

    Exact for losses of 0 and 1 (binomial); otherwise the bound of Hoeffding and Bentkus.
    """
    decided = scores[:, None] <= thresholds
    n, total = decided.sum(axis=0), losses @ decided
    if np.isin(losses, (0.0, 1.0)).all():
        return np.asarray(binom.cdf(total, n, risk))
    mean = np.minimum(total / np.maximum(n, 1), risk)
    hoeffding = np.exp(-n * (rel_entr(mean, risk) + rel_entr(1 - mean, 1 - risk)))
    return np.minimum(hoeffding, np.minimum(np.e * binom.cdf(np.ceil(total), n, risk), 1.0))


def _chosen(known: np.ndarray, losses: np.ndarray, risk: float) -> tuple[str, np.ndarray, dict[str, float], np.ndarray]:
    """The measure that hands over the fewest, its weights, the share by each, and its scores on these rows."""
    single = {name: np.append(np.eye(4)[k], 0.0) for k, name in enumerate(IN_WORDS) if k < 4}
    scores = {name: known @ weights[:-1] for name, weights in single.items() if np.ptp(known @ weights[:-1]) > 0}
    lost = losses > 0
    if min(lost.sum(), (~lost).sum()) >= FEWEST_ERRORS:
        center, scale = known.mean(axis=0), known.std(axis=0)
        scale[scale == 0] = 1.0
        model, parts = LogisticRegression(), StratifiedKFold(N_PARTS, shuffle=True, random_state=0)
        standardized = (known - center) / scale
        scores["combined"] = cross_val_predict(model, standardized, lost, cv=parts, method="decision_function")
        model.fit(standardized, lost)
        slopes = model.coef_[0] / scale
        single["combined"] = np.append(slopes, model.intercept_[0] - slopes @ center)
    shares = {name: _share_handed_over(values, losses, risk) for name, values in scores.items()}
    if not shares:
        raise InvalidInput("calibrate_handover: all cases look alike to the selector, so none can be told apart.")
    best = min(shares, key=lambda name: (np.nan_to_num(shares[name], nan=2.0), list(IN_WORDS).index(name)))
    weights = single[best]
    return best, weights, shares, known @ weights[:-1] + weights[-1]


def _start(losses: np.ndarray, scores: np.ndarray, risk: float, n_rest: int, confidence: float) -> int:
    """Position of the share of decided cases at which the promise is most probably shown on `n_rest` other rows."""
    order = np.argsort(scores, kind="stable")
    n_first = (DECIDED * len(losses)).astype(int).clip(1)
    # Half a loss more: no loss among a few rows does not mean that there will be none.
    expected = (losses[order].cumsum()[n_first - 1] + 0.5) / (n_first + 1)
    n_decided = np.round(DECIDED * n_rest)
    most = binom.ppf(1 - confidence, n_decided, risk)
    most -= binom.cdf(most, n_decided, risk) > 1 - confidence  # the most losses with which the test is passed
    power = binom.cdf(most, n_decided, expected)  # 0 where not even no loss suffices
    return int(len(power) - 1 - power[::-1].argmax())


def _share_handed_over(scores: np.ndarray, losses: np.ndarray, risk: float) -> float:
    """The smallest share to hand over for a mean loss of at most `risk` among the rest; NaN if there is none."""
    order = np.argsort(scores, kind="stable")
    mean = losses[order].cumsum() / np.arange(1, len(order) + 1)
    enough = np.flatnonzero(mean <= risk)
    return float(1 - (enough[-1] + 1) / len(order)) if len(enough) else np.nan


def _refuse(goal: HandoverGoal, mean_loss: float, error_costs: np.ndarray | None) -> NoReturn:
    if goal.accuracy is not None:
        asked, seen = f"accuracy={goal.accuracy}", f"{100 * (1 - mean_loss):.3g}% of all cases are decided rightly"
    else:
        assert error_costs is not None
        asked, seen = f"error_cost={goal.error_cost}", f"errors cost {mean_loss * error_costs.max():.4g} on average"
    if mean_loss <= goal.risk(error_costs):
        raise InvalidInput(
            f"calibrate_handover cannot promise {asked}: {seen}, but the rows are too few to show that it is no "
            f"chance. Pass more rows, or {goal.weaker}."
        )
    raise InvalidInput(
        f"calibrate_handover cannot promise {asked}: {seen}, and no measure of uncertainty finds enough cases among "
        f"them that are decided better. Pass more rows, acquire more (another stop or budget), or {goal.weaker}."
    )
