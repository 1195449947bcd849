"""How far the predictions can be trusted: selective prediction, distribution shift, aleatoric against epistemic.

Deviations from the paper's protocol, numbered:

1. Budgets are shares of the price of everything, as the paper has them; the table of selective prediction (Appendix E)
   is measured from 10 % to 50 % in steps of 10 %.
2. Besides the six measures of Appendix E, e(x_S) of Eq. 13 is evaluated. Random rejection is given by its expectation:
   equal uncertainty for all rows.
3. e(x_S) is the divergence from the prediction mixed with 1 % of the class frequencies. A rule can rule a class out,
   and the mean of an infinite number says nothing.
4. The noise of the shift has the standard deviation of the column in the training rows times sigma. Half of the numeric
   columns have it, drawn with the seed; for all sigmas it is the same noise, only scaled.
5. "Epistemic variance" (Appendix F) and e are both measured; baselines have no members, and so neither of them.
6. The scatter is of single cases at 30 % and 70 % of the price, at most `MOST_CASES` of them.

A number that is not defined (the AUROC when every prediction is right) is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import pearsonr, spearmanr

from askwise.acquirer import FeatureAcquirer
from askwise.errors import InvalidInput
from askwise.evaluation import final_states
from askwise.metrics import aurc, excess_aurc, expected_calibration_error, failure_auroc, risk_at_coverage
from askwise.predict.base import class_positions
from askwise.uncertainty import Uncertainty, confidence_gap, entropy
from askwise_bench.grid.tasks import Task
from askwise_bench.grid.trials import Measurement

SELECTIVE_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)
TARGETED_SHARES = (0.3, 0.7)
"""Budgets of Appendix F."""

SIGMAS = (0.0, 0.1, 0.2, 0.8, 2.0)
REJECTED = tuple(range(0, 100, 10))
"""Percent of the rows."""

NOISE = 1001
"""Keeps the draws of the noise apart from others of the same seed."""

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
    """What rejecting the most uncertain rows gains, by measure of uncertainty and budget.

    Table "Selective Prediction Metrics" and figure "accuracy rejection curves" of Appendix E: by ``measure`` the
    ``aurc``, ``excess_aurc``, ``auroc``, ``risk_at_80`` and ``risk_at_90``, and ``kept_accuracy`` by the percentage of
    rows ``rejected``. Without members the measures are ``total``, ``confidence_gap`` and ``random``.
    """
    for outcome in outcomes(task, method, budgets_at(method, SELECTIVE_SHARES)):
        for name, values in _to_reject_by(outcome).items():
            for metric, value in selective_metrics(outcome.correct, values).items():
                yield from defined(metric, value, outcome.budget, measure=name)
            for percent in REJECTED:
                kept = 1 - risk_at_coverage(outcome.correct, values, (100 - percent) / 100)
                yield Measurement("kept_accuracy", kept, outcome.budget, measure=name, rejected=percent)


def shift(task: Task, method: FeatureAcquirer) -> Iterator[Measurement]:
    """Accuracy, calibration and uncertainty when half of the numeric columns of the test rows are noisy.

    Table "Performance under distribution shift" of Appendix F, by ``sigma``: ``accuracy``, ``ece``, ``entropy``,
    ``variance``, ``epistemic``, and how well uncertainty finds the wrong predictions, ``auroc`` by ``measure``.
    """
    for sigma in SIGMAS:
        noisy = shifted(task, sigma)
        for outcome in outcomes(task, method, budgets_at(method, TARGETED_SHARES), noisy):
            yield Measurement("accuracy", float(outcome.correct.mean()), outcome.budget, sigma=sigma)
            error = expected_calibration_error(outcome.y, outcome.proba)
            yield from defined("ece", error, outcome.budget, sigma=sigma)
            for metric, name in {"entropy": "total", "variance": "variance", "epistemic": "epistemic"}.items():
                mean = getattr(outcome.uncertainty, name).mean()
                yield from defined(metric, mean, outcome.budget, sigma=sigma)
            for name in ("total", "epistemic"):
                uncertain = getattr(outcome.uncertainty, name)
                if not np.isnan(uncertain).any():
                    area = failure_auroc(outcome.correct, uncertain)
                    yield from defined("auroc", area, outcome.budget, sigma=sigma, measure=name)


def scatter(task: Task, method: FeatureAcquirer) -> Iterator[Measurement]:
    """Aleatoric (Eq. 16) against epistemic (Eq. 13) uncertainty of single cases, and their correlations.

    Figure "Relationship between aleatoric and epistemic uncertainty" of Appendix F: ``aleatoric`` and ``epistemic`` by
    ``case``; the correlations ``pearson`` and ``spearman`` are over all cases.
    """
    if method.epistemic_ is None:
        raise InvalidInput(f"scatter needs a method with members; {type(method).__name__} has none.")
    for outcome in outcomes(task, method, budgets_at(method, TARGETED_SHARES)):
        both = {name: getattr(outcome.uncertainty, name) for name in ("aleatoric", "epistemic")}
        for name, values in both.items():
            for case, value in enumerate(values[:MOST_CASES]):
                yield from defined(name, value, outcome.budget, case=case)
        for metric, value in correlations(*both.values()).items():
            yield Measurement(metric, value, outcome.budget)


def budgets_at(method: FeatureAcquirer, shares: Sequence[float]) -> list[float]:
    """Budgets that are `shares` of the price of everything."""
    return [round(method.prices_.total() * share, 10) for share in shares]


def outcomes(
    task: Task, method: FeatureAcquirer, budgets: Sequence[float], X: pd.DataFrame | None = None
) -> Iterator[Outcome]:
    """What is predicted of the test rows (or of `X` in their place) under each budget, and how far to trust it."""
    X = task.X_test if X is None else X
    y = class_positions(method.classes_, task.y_test)
    for budget, end in zip(budgets, final_states(method, X, budgets), strict=True):
        yield Outcome(budget, y, *assessed(task, method, with_only(method, X, end.mask)))


def with_only(method: FeatureAcquirer, X: pd.DataFrame, mask: np.ndarray) -> pd.DataFrame:
    """The rows `X` with the features in `mask`, (n, M) or (M,), and nothing else: NaN elsewhere."""
    mask = np.broadcast_to(mask, (len(X), len(method.features_)))
    return X.where(method.schema_.expand(mask))


def assessed(task: Task, method: FeatureAcquirer, X: pd.DataFrame) -> tuple[np.ndarray, Uncertainty]:
    """The predictions from rows with NaN for what is not known, and their uncertainties, with a finite e."""
    if method.epistemic_ is None:
        return method.predict_proba(X), method.uncertainty(X)
    beliefs = method.beliefs_
    belief = beliefs.believe(method.schema_.encode(X))
    proba, found = belief.proba, beliefs.uncertainty(belief, smooth_with=class_frequencies(task, method))
    return proba, replace(found, total=entropy(proba), confidence_gap=confidence_gap(proba))


def class_frequencies(task: Task, method: FeatureAcquirer) -> np.ndarray:
    """(C,) shares of the classes in the training rows."""
    labels = class_positions(method.classes_, task.y_train)
    return np.bincount(labels, minlength=len(method.classes_)) / len(labels)


def shifted(task: Task, sigma: float) -> pd.DataFrame:
    """The test rows with noise of `sigma` standard deviations on half of the numeric columns."""
    numeric = task.X_test.select_dtypes("number").columns
    if not len(numeric):
        raise InvalidInput(f"{task.data} has no numeric column to add noise to; leave it out of the suite shift.")
    rng = np.random.default_rng([task.seed, NOISE])
    picked = numeric[np.sort(rng.permutation(len(numeric))[: (len(numeric) + 1) // 2])]
    noise = rng.standard_normal((len(task.X_test), len(picked)))
    scale = task.X_train[picked].astype(float).std(ddof=0).to_numpy()
    clean = task.X_test[picked].astype(float)
    return task.X_test.assign(**{name: (clean + sigma * scale * noise)[name] for name in picked})


def selective_metrics(correct: np.ndarray, uncertainty: np.ndarray) -> dict[str, float]:
    """How well rejecting the rows of the highest uncertainty works."""
    return {
        "aurc": aurc(correct, uncertainty),
        "excess_aurc": excess_aurc(correct, uncertainty),
        "auroc": failure_auroc(correct, uncertainty),
        "risk_at_80": risk_at_coverage(correct, uncertainty, 0.8),
        "risk_at_90": risk_at_coverage(correct, uncertainty, 0.9),
    }


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


def defined(metric: str, value: float, budget: float | None = None, **parameters: Any) -> Iterator[Measurement]:
    """The measurement, unless the value is NaN."""
    if not np.isnan(value):
        yield Measurement(metric, float(value), budget, **parameters)


def _to_reject_by(outcome: Outcome) -> dict[str, np.ndarray]:
    """The measures of uncertainty that the method has, (n,) each."""
    named = {**outcome.uncertainty.as_dict(), "random": np.zeros(len(outcome.y))}
    return {name: values for name, values in named.items() if not np.isnan(values).any()}
