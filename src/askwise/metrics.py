"""Quality of confidence and uncertainty: calibration, and accuracy when uncertain rows are rejected.

Accuracies and risks are fractions between 0 and 1; the paper prints them as percentages. `correct` (n,) says whether
each prediction is right; rows of higher `uncertainty` (n,) are rejected earlier.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from askwise.errors import InvalidInput
from askwise.parameters import Whole
from askwise.uncertainty import ROUNDING, as_floats


def expected_calibration_error(y_true: ArrayLike, proba: ArrayLike, n_bins: int = 15) -> float:
    """Mean distance between confidence in the predicted class and its accuracy.

    ``ECE = sum_m |B_m| / n |acc(B_m) - conf(B_m)|``, Eq. 27 (Appendix E). Confidence is the largest probability
    of a row, and bin m of the M = `n_bins` holds the confidences in ((m - 1) / M, m / M]. Ties go to the first class.
    `y_true` (n,) are the true classes as column indices of `proba` (n, C).

    Four predictions made with 90 % confidence, of which three are right:

    >>> round(expected_calibration_error([0, 0, 0, 1], [[0.9, 0.1]] * 4), 3)
    0.15
    """
    return float(np.abs(calibration_surplus(y_true, proba, n_bins)).sum() / len(np.asarray(y_true)))


def share_by_class(holds: ArrayLike, classes: ArrayLike) -> dict[int, float]:
    """For each class that occurs, the share of its cases for which something holds, such as that a decision is kept.

    `holds` (n,) says for which cases it does, `classes` (n,) are their classes as column indices.

    >>> share_by_class([True, False, True], [2, 2, 0])
    {0: 1.0, 2: 0.5}
    """
    of, true = np.asarray(classes), np.asarray(holds)
    return {int(c): float(true[of == c].mean()) for c in np.unique(of)}


def calibration_surplus(y_true: ArrayLike, proba: ArrayLike, n_bins: int = 15) -> np.ndarray:
    """(n_bins,) number of correct predictions minus the sum of confidences, by bin of confidence.

    The calibration error is the sum of absolute values per row. Sums over several small test sets can be pooled before
    that: on 36 rows even a calibrated model has an error of .07.

    Examples
    --------
    >>> calibration_surplus([0, 0, 0, 1], [[0.9, 0.1]] * 4, n_bins=3).round(2).tolist()
    [0.0, 0.0, -0.6]
    """
    y_true, proba = _check_labeled(y_true, proba)
    if not Whole(1).allows(n_bins):
        raise InvalidInput(f"n_bins must be {Whole(1)}; got {n_bins!r}.")
    confidence = proba.max(axis=1)
    edges = np.arange(1, n_bins) / n_bins  # (n_bins - 1,): the inner edges
    bins = np.searchsorted(edges, confidence, side="left")  # a confidence on an edge belongs to the bin below
    surplus = (proba.argmax(axis=1) == y_true) - confidence
    return np.bincount(bins, weights=surplus, minlength=n_bins)


def rejection_curve(correct: ArrayLike, uncertainty: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Accuracy on the rows that are kept when the most uncertain ones are rejected (Appendix E).

    Ties are averaged: the curve is the mean over all orders in which rows of equal uncertainty could be rejected, and
    does not depend on the order of the input. `correct` (n,) says whether each prediction is right; `uncertainty` (n,)
    may be infinite but not NaN. Returns the fractions kept, 1/n, 2/n, ..., 1, and the accuracy on the rows kept.

    >>> coverage, accuracy = rejection_curve([True, True, False, True], [0.1, 0.2, 0.9, 0.2])
    >>> coverage.tolist(), accuracy.tolist()
    ([0.25, 0.5, 0.75, 1.0], [1.0, 1.0, 1.0, 0.75])
    """
    rows, right = _count_by_level(correct, uncertainty)
    n = int(rows.sum())
    kept = np.arange(1, n + 1)
    # Within a level of equal uncertainty the expected number of right rows grows linearly with those kept.
    right_kept = np.interp(kept, np.r_[0, rows.cumsum()], np.r_[0, right.cumsum()])
    return kept / n, right_kept / kept


def aurc(correct: ArrayLike, uncertainty: ArrayLike) -> float:
    """Area under the risk-coverage curve: the error rate averaged over coverages 1/n, ..., 1 (Appendix E).

    Lower is better. An uninformative uncertainty (equal for all rows) scores the plain error rate. Parameters as in
    `rejection_curve`.

    >>> aurc([True, True, False, True], [0.1, 0.2, 0.9, 0.3])
    0.0625
    """
    _, accuracy = rejection_curve(correct, uncertainty)
    return float(np.mean(1.0 - accuracy))


def excess_aurc(correct: ArrayLike, uncertainty: ArrayLike) -> float:
    """`aurc` above that of the oracle, which rejects wrong rows before right ones (E-AURC, Appendix E).

    Lower is better, 0 for a perfect order of the rows. Parameters as in `rejection_curve`.

    >>> excess_aurc([True, True, False, True], [0.1, 0.2, 0.9, 0.3])
    0.0
    """
    correct, uncertainty = _check_outcomes(correct, uncertainty)
    return aurc(correct, uncertainty) - aurc(correct, ~correct)


def failure_auroc(correct: ArrayLike, uncertainty: ArrayLike) -> float:
    """How well uncertainty separates wrong predictions from right ones (AUROC, Appendix E).

    The probability that a wrong prediction is more uncertain than a right one, ties counting one half: higher is
    better, 0.5 is chance; NaN when all predictions are right or all are wrong. Parameters as in `rejection_curve`.

    >>> failure_auroc([True, False, False, True], [0.1, 0.2, 0.3, 0.2])
    0.875
    """
    rows, right = _count_by_level(correct, uncertainty)
    wrong = rows - right
    pairs = right.sum() * wrong.sum()
    if pairs == 0:
        return float("nan")
    right_below = right.cumsum() - right / 2
    return float((wrong * right_below).sum() / pairs)


def risk_at_coverage(correct: ArrayLike, uncertainty: ArrayLike, coverage: float) -> float:
    """Error rate on the most certain rows when a fraction `coverage` of all is kept (Risk@X%, Appendix E).

    `coverage` is above 0 and at most 1; the number of rows kept is rounded up. Other parameters as in
    `rejection_curve`.

    >>> risk_at_coverage([True, True, False, True], [0.1, 0.2, 0.9, 0.3], coverage=0.75)
    0.0
    """
    if not isinstance(coverage, int | float | np.number) or not 0 < coverage <= 1:
        raise InvalidInput(f"coverage must be a fraction above 0 and at most 1 (0.8 for 80 %); got {coverage!r}.")
    _, accuracy = rejection_curve(correct, uncertainty)
    kept = max(1, math.ceil(coverage * len(accuracy) - 1e-9))  # 0.07 * 100 is a little more than 7
    return float(1.0 - accuracy[kept - 1])


def net_benefit(y_true: ArrayLike, proba: ArrayLike, thresholds: ArrayLike) -> np.ndarray:
    """Net benefit of acting where the probability reaches a threshold, (T,), in true positives per case.

    ``TP / n - FP / n * t / (1 - t)`` (Vickers and Elkin, 2006): whoever acts from the probability t on holds a false
    positive to be ``t / (1 - t)`` times as bad as a true positive is good. `y_true` (n,) are 0 or 1, `proba` (n,) the
    probability of 1, and `thresholds` (T,) are between 0 and 1.

    >>> net_benefit([1, 1, 0, 0], [0.9, 0.4, 0.6, 0.1], [0.2, 0.5]).tolist()
    [0.4375, 0.0]
    """
    y_true, proba, t = np.asarray(y_true), as_floats("proba", proba), as_floats("thresholds", thresholds)
    if proba.ndim != 1 or y_true.shape != proba.shape or len(proba) == 0:
        raise InvalidInput(
            "y_true and proba must be one-dimensional, equally long and not empty, with one probability per case; "
            f"got shapes {y_true.shape} and {proba.shape}."
        )
    if not ((y_true == 0) | (y_true == 1)).all():
        raise InvalidInput("y_true must be 0 or 1, or True where the class is the one to act on; got other values.")
    if not ((proba >= -ROUNDING) & (proba <= 1 + ROUNDING)).all():
        raise InvalidInput("proba must hold probabilities between 0 and 1; got other values, or NaN.")
    if t.ndim != 1 or not ((t > 0) & (t < 1)).all():
        raise InvalidInput(f"thresholds must be a list of probabilities above 0 and below 1; got {thresholds!r}.")
    acts, positive = proba[:, None] >= t, (y_true == 1)[:, None]  # (n, T) and (n, 1)
    return np.asarray((acts & positive).mean(axis=0) - (acts & ~positive).mean(axis=0) * t / (1 - t))


def _count_by_level(correct: ArrayLike, uncertainty: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """How many rows there are, and how many are right, at each level of uncertainty from the lowest up."""
    correct, uncertainty = _check_outcomes(correct, uncertainty)
    _, level, rows = np.unique(uncertainty, return_inverse=True, return_counts=True)
    return rows, np.bincount(level, weights=correct)


def _check_outcomes(correct: ArrayLike, uncertainty: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    correct, uncertainty = np.asarray(correct), as_floats("uncertainty", uncertainty)
    if correct.ndim != 1 or correct.shape != uncertainty.shape or len(correct) == 0:
        raise InvalidInput(
            "correct and uncertainty must be one-dimensional, equally long and not empty; "
            f"got shapes {correct.shape} and {uncertainty.shape}."
        )
    if not ((correct == 0) | (correct == 1)).all():
        raise InvalidInput(
            "correct must say for each prediction whether it is right (True or False, 1 or 0), as "
            f"y_pred == y_true does; got values of type {correct.dtype} that are neither."
        )
    if np.isnan(uncertainty).any():
        raise InvalidInput(
            f"uncertainty is NaN in {np.isnan(uncertainty).sum()} of {len(uncertainty)} rows, so they cannot "
            "be ordered. NaN means that it was not estimated (there were no ensemble members); choose "
            "another uncertainty or leave those rows out."
        )
    return correct.astype(bool), uncertainty


def _check_labeled(y_true: ArrayLike, proba: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    y_true, proba = np.asarray(y_true), as_floats("proba", proba)
    if proba.ndim != 2 or y_true.shape != proba.shape[:1] or len(proba) == 0:
        raise InvalidInput(
            "y_true (n,) and proba (n, C) must have the same rows, at least one; "
            f"got shapes {y_true.shape} and {proba.shape}."
        )
    if not ((proba >= -ROUNDING) & (proba <= 1 + ROUNDING)).all():
        raise InvalidInput("proba must hold probabilities between 0 and 1; got other values, or NaN.")
    n_classes = proba.shape[1]
    if y_true.dtype.kind not in "iub" or not ((y_true >= 0) & (y_true < n_classes)).all():
        raise InvalidInput(
            f"y_true must hold column indices of proba, integers from 0 to {n_classes - 1}; got other "
            f"values, of type {y_true.dtype}. For labels, pass np.searchsorted(classes, y)."
        )
    return y_true, proba
