"""How far the predictions can be trusted: selective prediction, shift of the test rows, aleatoric against epistemic.

Deviations from the paper's protocol, numbered:

1. Budgets are shares of the price of everything, as the paper has them; the table of selective prediction (Appendix E)
   is measured from 10 % to 50 % in steps of 10 %.
2. Besides the six measures of Appendix E, e(x_S) of Eq. 13 is judged. Random rejection is given by its expectation:
   equal uncertainty for all rows.
3. e(x_S) is the divergence from the prediction mixed with 1 % of the class frequencies. A rule can rule a class out,
   and the mean of an infinite number says nothing.
4. The noise of the shift has the standard deviation of the column in the training rows times sigma. Half of the numeric
   columns have it, drawn from the seed; for all sigmas it is the same noise, only stronger.
5. "Epistemic variance" (Appendix F) and e are both measured; rivals have no members, and so neither of them.
6. The scatter is of single cases at 30 % and 70 % of the price, at most `MOST_CASES` of them.

A number that is not defined (the AUROC of predictions that are all right) is left out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import pearsonr, spearmanr

from askwise.acquire.acquirer import FeatureAcquirer
from askwise.acquire.acquisition import Trajectory
from askwise.bench.grid.tasks import Task
from askwise.bench.grid.trials import Measurement
from askwise.epistemic import assess
from askwise.errors import InvalidInput
from askwise.metrics import aurc, excess_aurc, expected_calibration_error, failure_auroc, risk_at_coverage
from askwise.predict.base import class_positions
from askwise.prices import AFFORDABLE_WITHIN
from askwise.subsets import extended
from askwise.uncertainty import Uncertainty, confidence_gap, entropy

SELECTIVE_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)
TARGETED_SHARES = (0.3, 0.7)
"""Budgets of Appendix F."""

SIGMAS = (0.0, 0.1, 0.2, 0.8, 2.0)
REJECTED = tuple(range(0, 100, 10))
"""Percent of the rows."""

NOISE = 1001
"""Sets the draws of the noise apart from others of the same seed."""

MOST_CASES = 100
FEWEST_POINTS = 3
"""A correlation of fewer is not given."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The test rows under one budget: the true classes (n,) and the predictions (n, C), and how far to trust these."""

    budget: float
    y: np.ndarray
    proba: np.ndarray
    uncertainty: Uncertainty

    @property
    def correct(self) -> np.ndarray:
        """(n,) whether each prediction is right."""
        return np.asarray(self.proba.argmax(axis=1) == self.y)


def selective(task: Task, method: FeatureAcquirer) -> Iterator[Measurement]:
    """What rejecting the most uncertain rows buys, by measure of uncertainty and budget.

    Table "Selective Prediction Metrics" and figure "accuracy rejection curves" of Appendix E:
    ``selective[total]/aurc``, ``excess_aurc``, ``auroc``, ``risk_at_80``, ``risk_at_90``, and the accuracy
    ``kept_accuracy_R`` with R percent of the rows rejected. Without members there are ``total``, ``confidence_gap`` and
    ``random``.
    """
    for outcome in outcomes(task, method, budgets_at(method, SELECTIVE_SHARES)):
        for name, values in _to_reject_by(outcome).items():
            for metric, value in rejection(outcome.correct, values).items():
                yield from defined(f"selective[{name}]/{metric}", value, outcome.budget)


def shift(task: Task, method: FeatureAcquirer) -> Iterator[Measurement]:
    """Accuracy, calibration and uncertainty when half of the numeric columns of the test rows are noisy.

    Table "Performance under distribution shift" of Appendix F: ``shift[sigma=0.8]/accuracy``, ``ece``, ``entropy``,
    ``variance``, ``epistemic``, and how well uncertainty finds the wrong predictions, ``auroc_total`` and
    ``auroc_epistemic``.
    """
    for sigma in SIGMAS:
        noisy = shifted(task, sigma)
        for outcome in outcomes(task, method, budgets_at(method, TARGETED_SHARES), noisy):
            for metric, value in _under_shift(outcome).items():
                yield from defined(f"shift[sigma={sigma:g}]/{metric}", value, outcome.budget)


def scatter(task: Task, method: FeatureAcquirer) -> Iterator[Measurement]:
    """Aleatoric (Eq. 16) against epistemic (Eq. 13) uncertainty of single cases, and their correlations.

    Figure "Relationship between aleatoric and epistemic uncertainty" of Appendix F: ``scatter/aleatoric[case=3]`` and
    ``scatter/epistemic[case=3]``; the correlations ``scatter/pearson`` and ``scatter/spearman`` are over all cases.
    """
    if method.epistemic_ is None:
        raise InvalidInput(f"scatter needs a method with members; {type(method).__name__} has none.")
    for outcome in outcomes(task, method, budgets_at(method, TARGETED_SHARES)):
        both = {name: getattr(outcome.uncertainty, name) for name in ("aleatoric", "epistemic")}
        for name, values in both.items():
            for case, value in enumerate(values[:MOST_CASES]):
                yield from defined(f"scatter/{name}[case={case}]", value, outcome.budget)
        for metric, value in correlations(*both.values()).items():
            yield Measurement(f"scatter/{metric}", value, outcome.budget)


def budgets_at(method: FeatureAcquirer, shares: Sequence[float]) -> list[float]:
    """Budgets that are `shares` of the price of everything."""
    return [round(method.prices_.total() * share, 10) for share in shares]


def outcomes(
    task: Task, method: FeatureAcquirer, budgets: Sequence[float], X: pd.DataFrame | None = None
) -> Iterator[Outcome]:
    """What is predicted of the test rows (or of `X` in their place) under each budget, and how far to trust it."""
    y = class_positions(method.classes_, task.y_test)
    known = known_within(method, task.X_test if X is None else X, budgets)
    for budget, values in zip(budgets, known, strict=True):
        yield Outcome(budget, y, *assessed(task, method, values))


def known_within(method: FeatureAcquirer, X: Any, budgets: Sequence[float]) -> list[np.ndarray]:
    """What the method buys of the rows `X` under each budget: (n, D) encoded cells, NaN where not bought."""
    buyer = copy.copy(method)
    buyer.epistemic_ = None  # members are not asked what to buy, and to record them at every step takes long
    truth = method.schema_.encode(X)
    if method.prices_.uniform and not method.policy_.reads_budget:
        run = buyer.acquire(X, max(budgets))
        return [_bought(run, truth, method, budget) for budget in budgets]
    return [_bought(buyer.acquire(X, budget), truth, method, budget) for budget in budgets]


def _bought(run: Trajectory, truth: np.ndarray, method: FeatureAcquirer, budget: float) -> np.ndarray:
    within = run.costs.cumsum(axis=1) <= budget + AFFORDABLE_WITHIN
    mask = run.start
    for features in np.where(within, run.order, -1).T:
        mask = extended(mask, features)
    return np.where(method.schema_.expand(mask), truth, np.nan)


def assessed(task: Task, method: FeatureAcquirer, values: np.ndarray) -> tuple[np.ndarray, Uncertainty]:
    """The predictions from encoded cells (n, D), NaN where not known, and their uncertainties, with a finite e."""
    observed = ~np.isnan(values)
    if method.epistemic_ is None:
        return assess(method.predictor_, None, values, observed)
    proba, found = method.epistemic_.assess(values, observed, smooth_with=class_frequencies(task, method))
    return proba, replace(found, total=entropy(proba), confidence_gap=confidence_gap(proba))


def class_frequencies(task: Task, method: FeatureAcquirer) -> np.ndarray:
    """(C,) shares of the classes in the training rows."""
    labels = class_positions(method.classes_, task.y_train)
    return np.bincount(labels, minlength=len(method.classes_)) / len(labels)


def shifted(task: Task, sigma: float) -> pd.DataFrame:
    """The test rows with noise of `sigma` standard deviations on half of the numeric columns."""
    numeric = task.X_test.select_dtypes("number").columns
    if not len(numeric):
        raise InvalidInput(f"{task.data} has no numeric column that noise could be added to; leave it out of shift.")
    rng = np.random.default_rng([task.seed, NOISE])
    picked = numeric[np.sort(rng.permutation(len(numeric))[: (len(numeric) + 1) // 2])]
    noise = rng.standard_normal((len(task.X_test), len(picked)))
    scale = task.X_train[picked].astype(float).std(ddof=0).to_numpy()
    clean = task.X_test[picked].astype(float)
    return task.X_test.assign(**{name: (clean + sigma * scale * noise)[name] for name in picked})


def rejection(correct: np.ndarray, uncertainty: np.ndarray) -> dict[str, float]:
    """The measures of selective prediction, and the accuracy on what is kept as more rows are rejected."""
    found = {
        "aurc": aurc(correct, uncertainty),
        "excess_aurc": excess_aurc(correct, uncertainty),
        "auroc": failure_auroc(correct, uncertainty),
        "risk_at_80": risk_at_coverage(correct, uncertainty, 0.8),
        "risk_at_90": risk_at_coverage(correct, uncertainty, 0.9),
    }
    for percent in REJECTED:
        found[f"kept_accuracy_{percent}"] = 1 - risk_at_coverage(correct, uncertainty, (100 - percent) / 100)
    return found


def correlations(first: np.ndarray, second: np.ndarray) -> dict[str, float]:
    """Pearson's and Spearman's coefficient and their p values; nothing where one of the two does not vary."""
    if len(first) < FEWEST_POINTS or np.ptp(first) == 0 or np.ptp(second) == 0:
        return {}
    by_value, by_rank = pearsonr(first, second), spearmanr(first, second)
    return {
        "pearson": float(by_value.statistic),
        "pearson_p": float(by_value.pvalue),
        "spearman": float(by_rank.statistic),
        "spearman_p": float(by_rank.pvalue),
    }


def defined(metric: str, value: float, budget: float | None = None) -> Iterator[Measurement]:
    """The measurement, unless the value is NaN."""
    if not np.isnan(value):
        yield Measurement(metric, float(value), budget)


def _to_reject_by(outcome: Outcome) -> dict[str, np.ndarray]:
    """Measures of uncertainty that are there, (n,) each."""
    named = {**outcome.uncertainty.as_dict(), "random": np.zeros(len(outcome.y))}
    return {name: values for name, values in named.items() if not np.isnan(values).any()}


def _under_shift(outcome: Outcome) -> dict[str, float]:
    found = outcome.uncertainty
    measured = {
        "accuracy": float(outcome.correct.mean()),
        "ece": expected_calibration_error(outcome.y, outcome.proba),
        "entropy": float(found.total.mean()),
        "variance": float(found.variance.mean()),
        "epistemic": float(found.epistemic.mean()),
        "auroc_total": failure_auroc(outcome.correct, found.total),
    }
    if not np.isnan(found.epistemic).any():
        measured["auroc_epistemic"] = failure_auroc(outcome.correct, found.epistemic)
    return measured
