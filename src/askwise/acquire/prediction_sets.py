"""Prediction sets by split conformal prediction, one quantile per number of purchases along the policy."""

from __future__ import annotations

import numpy as np


class PredictionSets:
    """Sets of classes that hold the true one with probability `coverage`, after any number of purchases.

    The score of a class is 1 minus its probability. After k purchases a set holds the classes whose score is at most
    the ceil((n + 1) * coverage)-th smallest score of the true class among the n calibration rows with k purchases; with
    too few rows it holds all classes. The coverage is that of all cases after k purchases, on average over cases.

    Parameters
    ----------
    proba
        (n, T + 1, C) predictions for the calibration rows along the policy.
    labels
        (n,) positions of the true classes.
    n_steps
        (n,) number of purchases of each row.
    coverage
        The probability that a set holds the true class.
    by_class
        Whether this must hold for the cases of each class separately; sets are then larger.
    """

    def __init__(
        self, proba: np.ndarray, labels: np.ndarray, n_steps: np.ndarray, coverage: float, by_class: bool = False
    ) -> None:
        self.coverage = coverage
        self.by_class = by_class
        n_classes = proba.shape[2]
        scores = 1 - np.take_along_axis(proba, labels[:, None, None], axis=2)[:, :, 0]  # (n, T + 1)
        self.limits_ = np.full((proba.shape[1], n_classes), np.inf)
        for step, limits in enumerate(self.limits_):
            there = n_steps >= step
            for c in range(n_classes):
                limits[c] = conformal_quantile(scores[there & ((labels == c) | (not by_class)), step], coverage)

    def members(self, proba: np.ndarray, step: int) -> np.ndarray:
        """(n, C) classes in the set of each case after `step` purchases; the most probable one always is."""
        if step >= len(self.limits_):
            return np.ones(proba.shape, dtype=bool)
        within = 1 - proba <= self.limits_[step] + 1e-12  # one case and a batch may round differently
        within[np.arange(len(proba)), proba.argmax(axis=1)] = True
        return np.asarray(within)


def conformal_quantile(scores: np.ndarray, coverage: float) -> float:
    """The ceil((n + 1) * coverage)-th smallest score; infinite where there are too few.

    >>> conformal_quantile(np.arange(1.0, 10.0), 0.9), conformal_quantile(np.arange(1.0, 9.0), 0.9)
    (9.0, inf)
    """
    rank = int(np.ceil((len(scores) + 1) * coverage - 1e-9))
    return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else np.inf
