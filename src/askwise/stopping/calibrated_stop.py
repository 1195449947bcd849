"""CalibratedStop: a stopping rule, what it promises, and the conditions under which it does."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pandas as pd

from askwise.errors import AskwiseWarning, InvalidInput
from askwise.parameters import POSITIVE, Flag, Number
from askwise.policy.base import Policy
from askwise.stopping.guarantee import (
    FullRuns,
    Requirement,
    class_certainty,
    early_start,
    exact_interval,
    last_passed,
    p_values,
    price_thresholds,
    rows_needed,
    threshold_sequence,
)
from askwise.stopping.monitor import StopMonitor
from askwise.stopping.prediction_sets import PredictionSets
from askwise.stopping.rules import Stopping
from askwise.table.columns import plain
from askwise.table.prices import Prices, budget_in_words

if TYPE_CHECKING:
    from askwise.acquisition import Acquisition

INSIDE = Number(0, 1, above=True, below=True)
GOALS = ("agreement", "accuracy_gap", "average_price", "recall")
GUARANTEE_VOID = "The guarantee of the stop does not hold for"
"""How the warning about cases begins that differ from those of the calibration."""

FAR_BELOW = 0.1
"""A class of which so much less is kept than promised overall gets a warning."""


@dataclass(frozen=True)
class Goal:
    """What a rule is calibrated for: exactly one of `GOALS`; see `calibrate_stop`."""

    agreement: float | None = None
    accuracy_gap: float | None = None
    average_price: float | None = None
    confidence: float = 0.9
    conditional: bool = False
    recall: Mapping[Any, float] | None = None
    per_class: bool | str = "auto"

    def __post_init__(self) -> None:
        given = [name for name in GOALS if getattr(self, name) is not None]
        if len(given) != 1:
            raise InvalidInput(
                "calibrate_stop needs exactly one of agreement, accuracy_gap, average_price and recall; got "
                f"{given or 'none'}."
            )
        for name in ("confidence", *set(given) - {"average_price", "recall"}):
            if not INSIDE.allows(getattr(self, name)):
                raise InvalidInput(f"{name} must be between 0 and 1, both excluded; got {getattr(self, name)!r}.")
        if self.average_price is not None and not POSITIVE.allows(self.average_price):
            raise InvalidInput(f"average_price must be a finite number > 0; got {self.average_price!r}.")
        if self.recall is not None and not (
            isinstance(self.recall, Mapping) and self.recall and all(map(INSIDE.allows, self.recall.values()))
        ):
            raise InvalidInput(
                f"recall must be a dict {{class: share between 0 and 1, both excluded}}; got {self.recall!r}."
            )
        if not Flag().allows(self.conditional):
            raise InvalidInput(f"conditional must be True or False; got {self.conditional!r}.")
        if self.conditional and given[0] in ("average_price", "recall"):
            raise InvalidInput(f"conditional=True is for agreement and accuracy_gap, not for {given[0]}.")
        if not (self.per_class == "auto" or Flag().allows(self.per_class)):
            raise InvalidInput(f'per_class must be "auto", True or False; got {self.per_class!r}.')

    @property
    def by_class(self) -> bool:
        """Whether cases stop by how rare each class is."""
        return self.average_price is None and (self.per_class is not False or self.recall is not None)

    @property
    def needs_labels(self) -> str:
        """The goal that needs labels, or nothing."""
        return "accuracy_gap" if self.accuracy_gap is not None else "recall" if self.recall is not None else ""

    @property
    def risk(self) -> float:
        """The share of cases with a loss that is allowed; of recall, that of the strictest class."""
        if self.recall is not None:
            return 1 - float(max(self.recall.values()))
        return 1 - float(self.agreement) if self.agreement is not None else float(self.accuracy_gap or 0.0)

    @property
    def loss(self) -> str:
        """What counts as a loss, in words."""
        if self.agreement is not None:
            return "a decision that knowing all features would have changed"
        return "a wrong decision where all features would have led to the right one"

    def losses(self, runs: FullRuns) -> np.ndarray:
        """(n, T + 1) whether stopping at a state is a loss."""
        return runs.changed if self.agreement is not None or self.average_price is not None else runs.worse

    def requirements(self, runs: FullRuns, classes: np.ndarray, groups: np.ndarray | None = None) -> list[Requirement]:
        """What must hold of all cases, of each of the `groups` (n,), and of each class; nothing for `average_price`."""
        if self.average_price is not None:
            return []
        losses = self.losses(runs)
        if self.recall is not None:
            assert runs.labels is not None
            wanted = [(class_position(classes, label), float(share)) for label, share in self.recall.items()]
            return [
                Requirement(
                    f"the cases of {plain(classes[c])!r} that all features find",
                    (runs.labels == c) & (runs.full == c),
                    losses,
                    1 - share,
                )
                for c, share in wanted
            ]
        required = [Requirement("all cases", np.ones(len(runs), dtype=bool), losses, self.risk)]
        if groups is not None:
            required += [
                Requirement(f"those of group {plain(one)!r}", groups == one, losses, self.risk)
                for one in pd.unique(groups)
            ]
        if self.per_class is not False:
            required += [self.of_class(c, runs, classes) for c in range(len(classes))]
        return required

    def of_class(self, c: int, runs: FullRuns, classes: np.ndarray) -> Requirement:
        """What must hold of one class: that all features decide for or, of an `accuracy_gap`, the true one."""
        label, optional = repr(plain(classes[c])), self.per_class == "auto"
        if self.accuracy_gap is not None:
            assert runs.labels is not None
            return Requirement(f"the cases of {label}", runs.labels == c, self.losses(runs), self.risk, optional)
        subject = f"those that all features decide for {label}"
        return Requirement(subject, runs.full == c, self.losses(runs), self.risk, optional)

    def check_rows(self, n_rows: int) -> None:
        """Refuse rows too few to show anything: a promise that no result could break is none."""
        if self.average_price is not None:
            return
        needed = rows_needed(self.risk, self.confidence)
        if n_rows < needed:
            name = next(name for name in GOALS if getattr(self, name) is not None)
            raise InvalidInput(
                f"calibrate_stop: {name}={getattr(self, name)} at confidence={self.confidence} needs at least "
                f"{needed} rows; there are {n_rows}. Pass more rows, or ask for less."
            )


def class_position(classes: np.ndarray, label: Any) -> int:
    """Where `label` is among the classes."""
    found = np.flatnonzero([bool(one == label) for one in classes])
    if not len(found):
        raise InvalidInput(f"recall: there is no class {label!r}; the classes are {classes.tolist()}.")
    return int(found[0])


@dataclass(frozen=True, eq=False)
class Conditions:
    """What must stay as it was at calibration.

    Attributes
    ----------
    policy, prices, risk_weight, budget
        Those of the selector; the budget is a number, infinite = no budget, or a dict with the limits by resource.
    missing
        (M,) features that were unavailable in some calibration rows.
    """

    policy: Policy
    prices: Prices
    risk_weight: float
    budget: Any
    missing: np.ndarray

    def check(self, policy: Policy, prices: Prices, risk_weight: float, limits: np.ndarray) -> None:
        """Refuse what differs from the calibration, with the reason; `limits` (n, R) are those of the budgets now."""
        differs = ""
        if policy is not self.policy:
            differs = "another policy or another fit"
        elif not self.prices.same_as(prices):
            differs = "other prices"
        elif risk_weight != self.risk_weight:
            differs = f"risk_weight={self.risk_weight:g}, not {risk_weight:g}"
        elif not np.all(limits == prices.limits(self.budget, 1)):
            apart = len(np.unique(limits, axis=0)) > 1
            now = "budgets that differ by case" if apart else _shown_budget(prices.plain(limits[0]), "no limit")
            differs = f"{_shown_budget(self.budget, 'no budget')}, not {now}"
        if differs:
            raise InvalidInput(f"This stopping rule was calibrated for {differs}; call calibrate_stop again.")

    def departures(self, known: np.ndarray, available: np.ndarray, features: Sequence[str]) -> list[str]:
        """How cases differ from those of the calibration, "" where they do not.

        Parameters
        ----------
        known, available
            (n, M) features known at the start, and those that can be had.
        """
        paid = known & (self.prices.weighed.costs > 0)
        lacking = ~available & ~known & ~self.missing
        found = []
        for row in range(len(known)):
            if paid[row].any():
                found.append(f"{features[int(paid[row].argmax())]!r} was known from the start")
            elif lacking[row].any():
                name = features[int(lacking[row].argmax())]
                found.append(f"{name!r}, never missing at calibration, is unavailable")
            else:
                found.append("")
        return found


def warn_of_departures(departures: Sequence[str]) -> None:
    """A warning if some cases differ from those of the calibration; see `Conditions.departures`."""
    apart = [why for why in departures if why]
    if apart:
        warnings.warn(
            f"{GUARANTEE_VOID} {len(apart)} of {len(departures)} cases (for example: "
            f"{apart[0]}). It holds for cases like those of the calibration, with only free features known at the "
            "start; Trajectory.departures says which these are.",
            AskwiseWarning,
            stacklevel=3,
        )


@dataclass(frozen=True)
class ClassReport:
    """What a stop does to the cases of one class, on the calibration rows.

    Attributes
    ----------
    label
        The class.
    rows
        Calibration rows that all features decide for it or, of an `accuracy_gap` or `recall`, that truly are.
    kept, low, high
        The share of them without a loss, and its exact interval at the confidence of the goal; NaN without rows.
    promised
        Whether the promise covers it.
    needed
        Rows that a promise needs.
    recall, recall_of_everything
        Of the true cases, the share decided for with the stop, and with all features; NaN without labels.
    """

    label: Any
    rows: int
    kept: float
    low: float
    high: float
    promised: bool
    needed: int
    recall: float
    recall_of_everything: float


class CalibratedStop(Stopping):
    """Stop where the decision is final with a probability that was calibrated; made by `calibrate_stop`.

    Attributes
    ----------
    threshold
        The certainty at which a case stops; infinite = never early. The certainty is `decision_is_final` or, where
        `shares` are given, `class_certainty`.
    shares
        (C,) usual shares of the decisions, by which a rare class is protected; None where classes do not count.
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
    subjects
        Whom the promise is about, in words, one part for each thing promised.
    rows
        Digests of the calibration rows, by which they are recognized; None for cross-fitted training rows.
    classes
        What the rule does to each class; `by_class` is the same as a table.
    assumption
        What the promise rests on besides, where missing cells of the rows were weighed or drawn.
    subgroups, grouped_by, usual_novelty
        The subgroups that the promise covers one by one, the column that holds them, if one does, and how novel each
        calibration row is, (n,), for `monitor`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from askwise import DynamicFeatureSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> selector = DynamicFeatureSelector(model, random_state=0).fit(X[::2], y[::2])
    >>> stop = selector.calibrate_stop(X[1::2], agreement=0.8)
    >>> stop.price < stop.everything
    True
    """

    assumption: str = ""
    subgroups: Sequence[Any] = ()
    grouped_by: str = ""
    usual_novelty: np.ndarray | None = None

    def __init__(
        self,
        runs: FullRuns,
        threshold: float,
        goal: Goal,
        conditions: Conditions,
        estimated: bool = False,
        prediction_sets: PredictionSets | None = None,
        *,
        classes: np.ndarray,
        shares: np.ndarray | None = None,
        promised: Sequence[Requirement] = (),
        rows: np.ndarray | None = None,
        assumption: str = "",
        subgroups: Sequence[Any] = (),
        grouped_by: str = "",
        usual_novelty: np.ndarray | None = None,
    ) -> None:
        steps = runs.stops_at(np.array([threshold]))
        self.threshold = threshold
        self.shares = shares
        self.goal = goal
        self.conditions = conditions
        self.estimated = estimated
        self.prediction_sets = prediction_sets
        self.rows = rows
        self.assumption = assumption
        self.subgroups = [plain(one) for one in subgroups]
        self.grouped_by = grouped_by
        self.usual_novelty = usual_novelty
        self.n_rows, self.n_early = len(runs), int(runs.early(steps).sum())
        self.n_losses = int(np.take_along_axis(goal.losses(runs), steps, axis=1).sum())
        self.price = float(np.take_along_axis(runs.spent, steps, axis=1).mean())
        self.everything = float(runs.spent[:, -1].mean())
        self.subjects = [one.subject for one in promised]
        self.classes = [_class_report(c, runs, steps, goal, classes, promised) for c in range(len(classes))]

    def stops(self, state: Acquisition) -> np.ndarray:
        beliefs, belief = state.beliefs, state.belief
        if self.shares is None:
            return beliefs.decision_is_final(belief) >= self.threshold
        decision = beliefs.decisions(belief.proba)
        return class_certainty(beliefs.final(belief), decision, self.shares) >= self.threshold

    def monitor(self, alpha: float | None = None) -> StopMonitor:
        """What watches the promise while cases are served: give it cases that were asked everything after the stop.

        `alpha` is the probability of ever giving a false alarm; None = 1 - confidence of the goal. Only an `agreement`
        or `accuracy_gap` can be watched.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from askwise import DynamicFeatureSelector
        >>> X, y = load_wine(return_X_y=True, as_frame=True)
        >>> selector = DynamicFeatureSelector(GaussianNB(), random_state=0).fit(X[::2], y[::2])
        >>> monitor = selector.calibrate_stop(X[1::2], agreement=0.9).monitor()
        >>> run = selector.acquire(X[1::2], stop="calibrated")
        >>> full = selector.predict(X[1::2])
        >>> monitor.update(run.predict() != full, decided=full)
        >>> monitor.advice
        'Nothing speaks against the promise.'
        """
        goal = self.goal
        if goal.agreement is None and goal.accuracy_gap is None:
            raise InvalidInput("monitor needs a stop that promises an agreement or an accuracy_gap.")
        return StopMonitor(
            goal.risk,
            1 - goal.confidence if alpha is None else alpha,
            classes=[one.label for one in self.classes if one.promised],
            subgroups=self.subgroups,
            usual_novelty=self.usual_novelty,
        )

    @property
    def by_class(self) -> pd.DataFrame:
        """What the rule does to the cases of each class, one row each; the columns are those of `ClassReport`."""
        return pd.DataFrame([vars(one) for one in self.classes])

    @property
    def promise(self) -> str:
        """What is promised, and under which conditions, in words."""
        rows = f"{self.n_rows} {'cross-fitted training' if self.estimated else 'calibration'} rows"
        limited = self.conditions.budget != np.inf
        budget = f" and budget ({budget_in_words(self.conditions.budget)})" if limited else ""
        conditions = (
            f"Conditions: cases drawn like the {rows}, with only free features known at the start; the same policy, "
            f"prices{budget}, and features unavailable as often."
        )
        if self.assumption:
            conditions = conditions.replace("features unavailable as often", "every test can be had")
            conditions += f" It is estimated from incomplete rows, and assumes that {self.assumption}."
        return " ".join(filter(None, [self._promise(), self._not_covered(), conditions]))

    def _promise(self) -> str:
        goal = self.goal
        if goal.average_price is not None:
            return f"Estimated: cases cost {self.price:.4g} on average (asked for: {goal.average_price:.4g})."
        certainty = "Estimated" if self.estimated or self.assumption else "Guaranteed"
        if goal.recall is not None:
            parts = [f"{100 * (1 - float(share)):.4g}% of {who}" for who, share in self._recalled()]
            lost = f"at most {' and '.join(parts)} are no longer found"
            return f"{certainty} with {100 * goal.confidence:.4g}% confidence: {lost}."
        among = ", and of ".join(self.subjects)
        among += ", and of those that stop early," if goal.conditional else ""
        risk = f"{100 * goal.risk:.4g}%"
        return (
            f"{certainty} with {100 * goal.confidence:.4g}% confidence: at most {risk} of {among} stop with "
            f"{goal.loss}."
        )

    def _recalled(self) -> list[tuple[str, float]]:
        assert self.goal.recall is not None
        return list(zip(self.subjects, self.goal.recall.values(), strict=True))

    def _not_covered(self) -> str:
        """The classes that the promise does not cover, and what was seen of them; empty if it covers all."""
        if self.goal.average_price is not None or self.goal.recall is not None or self.goal.per_class is False:
            return ""
        found = []
        for one in self.classes:
            if one.promised:
                continue
            seen = "none among these rows"
            if one.rows:
                kept = f"{100 * one.kept:.3g}% kept, {100 * one.low:.3g}% to {100 * one.high:.3g}%"
                seen = f"{one.rows} rows of the {one.needed} needed, {kept}"
            found.append(f"{one.label!r} ({seen})")
        return f"Not promised for each class: too little is known about {', '.join(found)}." if found else ""

    def __repr__(self) -> str:
        loss = "changed" if self.goal.accuracy_gap is None else "made worse"
        scale = "decision_is_final" if self.shares is None else "certainty, measured by how rare each class is,"
        kept = ", ".join(f"{one.label!r} {100 * one.kept:.3g}% of {one.rows}" for one in self.classes if one.rows)
        recall = ", ".join(
            f"{one.label!r} {one.recall:.3g} (with everything {one.recall_of_everything:.3g})"
            for one in self.classes
            if np.isfinite(one.recall)
        )
        return (
            f"<CalibratedStop at {scale} >= {self.threshold:.6g}. {self.promise} On these rows: "
            f"decisions {loss}: {self.n_losses}, early stops: {self.n_early}, average price {self.price:.4g} of "
            f"{self.everything:.4g}; kept by class: {kept}{'; recall: ' + recall if recall else ''}>"
        )

    def warn_of_lost_classes(self) -> None:
        """Warnings for classes of which much less is kept than of all cases is promised, and for those not seen."""
        if self.goal.average_price is not None:
            return
        level = 1 - self.goal.risk
        far = [one for one in self.classes if one.rows and one.kept < level - FAR_BELOW]
        if far:
            seen = ", ".join(f"{one.kept:.0%} of the {one.rows} cases of {one.label!r}" for one in far)
            warnings.warn(
                f"The stop keeps {seen}, far below the {level:.0%} asked for. Calibrate with per_class=True and more "
                "rows of these classes, or ask for their recall.",
                AskwiseWarning,
                stacklevel=3,
            )
        unseen = [repr(one.label) for one in self.classes if not one.rows]
        if unseen and self.goal.per_class == "auto" and self.goal.recall is None:
            warnings.warn(
                f"No calibration row is decided for {' or '.join(unseen)}, so nothing is known about what the stop "
                "does to such cases: they may all be decided otherwise. Calibrate with rows of every class, or with "
                "per_class=True, which refuses what cannot be promised.",
                AskwiseWarning,
                stacklevel=3,
            )


def _class_report(
    c: int, runs: FullRuns, steps: np.ndarray, goal: Goal, classes: np.ndarray, promised: Sequence[Requirement]
) -> ClassReport:
    label = plain(classes[c])
    if goal.recall is None:
        subject = goal.of_class(c, runs, classes)
    else:
        assert runs.labels is not None
        members = (runs.labels == c) & (runs.full == c)
        subject = Requirement(f"the cases of {label!r} that all features find", members, goal.losses(runs), 0.0)
    decision = np.take_along_axis(runs.decision, steps, axis=1)[:, 0]
    lost = np.take_along_axis(subject.losses, steps, axis=1)[subject.members, 0]
    rows = len(lost)
    low, high = exact_interval(int(lost.sum()), rows, goal.confidence)
    true = None if runs.labels is None else runs.labels == c
    found = true is not None and bool(true.any())
    return ClassReport(
        label=label,
        rows=rows,
        kept=float(1 - lost.mean()) if rows else np.nan,
        low=low if rows else np.nan,
        high=high if rows else np.nan,
        promised=any(one.subject == subject.subject for one in promised),
        needed=0 if goal.average_price is not None else rows_needed(goal.risk, goal.confidence),
        recall=float(np.mean(decision[true] == c)) if found else np.nan,
        recall_of_everything=float(np.mean(runs.full[true] == c)) if found else np.nan,
    )


def calibrated_threshold(
    runs: FullRuns, goal: Goal, required: Sequence[Requirement] = (), early_share: np.ndarray | None = None
) -> tuple[float, list[Requirement]]:
    """The threshold that reaches the goal on `runs`, and which of the requirements it keeps.

    `early_share` (K,) of other rows, for each threshold of the sequence, says where a conditional test starts.
    """
    if goal.average_price is not None:
        return _threshold_for_price(runs, goal.average_price), []
    thresholds = threshold_sequence()
    steps = runs.stops_at(thresholds)
    # Without a loss at the last step none can be broken there, and all are tested together, each at the full level.
    lossless = not np.take_along_axis(goal.losses(runs), steps[:, :1], axis=1).any()
    confidence = goal.confidence if lossless else 1 - (1 - goal.confidence) / len(required)
    found = [(one, one.p_values(steps)) for one in required]
    kept = [(one, p) for one, p in found if last_passed(p[:1], confidence) is not None]
    left_out = [one for one, p in found if last_passed(p[:1], confidence) is None]
    for one in left_out:
        if not one.optional:
            _refuse(one, steps, goal, confidence)
    p = np.max([p for _, p in kept], axis=0)
    for one in left_out:
        if one.members.any():
            # Too few to promise anything, but what they show is not ignored: no stop that keeps fewer of them.
            lost = np.take_along_axis(one.losses, steps, axis=1)[one.members].mean(axis=0)
            p = np.where(lost > max(one.risk, lost[0]), 1.0, p)
    if goal.conditional:
        assert early_share is not None
        early = runs.early(steps)
        lost = np.take_along_axis(goal.losses(runs), steps, axis=1)
        p = np.maximum(p, p_values((lost & early).sum(axis=0), early.sum(axis=0), goal.risk))
        start = early_start(early_share, len(runs), rows_needed(goal.risk, confidence))
        thresholds, p = np.r_[np.inf, thresholds[start:]], np.r_[0.0, p[start:]]
    last = last_passed(p, confidence)
    return float(thresholds[0 if last is None else last]), [one for one, _ in kept]


def _refuse(one: Requirement, steps: np.ndarray, goal: Goal, confidence: float) -> NoReturn:
    rows, needed = int(one.members.sum()), rows_needed(one.risk, confidence)
    if rows < needed:
        remedy = " or per_class='auto', which names such a class and protects it as far as it can"
        raise InvalidInput(
            f"calibrate_stop: a promise about {one.subject} needs at least {needed} of them at "
            f"confidence={goal.confidence}; there are {rows}. Pass more rows"
            f"{remedy if goal.per_class is True else ''}, or ask for less."
        )
    lost = int(np.take_along_axis(one.losses, steps[:, :1], axis=1)[one.members].sum())
    raise InvalidInput(
        f"calibrate_stop cannot promise this: even without an early stop {lost} of {rows} rows ({one.subject}) end "
        f"with {goal.loss}, and at most {100 * one.risk:.4g}% are allowed. Allow more, raise the budget, or "
        "pass more rows."
    )


def _threshold_for_price(runs: FullRuns, price: float) -> float:
    thresholds, prices = price_thresholds(runs)
    if price > prices[-1] * (1 + 1e-9):
        raise InvalidInput(
            f"average_price={price:g}, but even without an early stop the calibration rows cost {prices[-1]:.6g} on "
            "average. Ask for less."
        )
    return float(thresholds[np.abs(prices - price).argmin()])


def _shown_budget(budget: Any, unlimited: str) -> str:
    return unlimited if budget == np.inf else f"budget={budget_in_words(budget)}"
