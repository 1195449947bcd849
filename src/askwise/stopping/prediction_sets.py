"""Prediction sets by split conformal prediction: by number of purchases while a case is open, and at its stop."""

from __future__ import annotations

import numpy as np


class PredictionSets:
    """Sets of classes that hold the true one with probability `coverage`, along a policy with a stopping rule.

    The score of a class is 1 minus its probability. A set holds the classes whose score is at most the
    ceil((n + 1) * coverage)-th smallest score of the true class among n calibration rows; with too few rows, all
    classes. For a case that has stopped these are all rows at their stops; for a case that is still open after k
    purchases, the rows that were, too. One quantile for both would not do: cases that are easy stop early, and those
    that go on are the others. The coverage is that of cases in the same situation, on average.

    Parameters
    ----------
    proba
        (n, T + 1, C) predictions for the calibration rows along the policy.
    labels
        (n,) positions of the true classes.
    stops
        (n,) number of purchases at which the rule stops each row.
    coverage
        The probability that a set holds the true class.
    by_class
        Whether this must hold for the cases of each class separately; sets are then larger.
    """

    def __init__(
        self, proba: np.ndarray, labels: np.ndarray, stops: np.ndarray, coverage: float, by_class: bool = False
    ) -> None:
        self.coverage = coverage
        self.by_class = by_class
        scores = 1 - np.take_along_axis(proba, labels[:, None, None], axis=2)[:, :, 0]  # (n, T + 1)
        at_stop = np.take_along_axis(scores, stops[:, None], axis=1)[:, 0]
        groups = [(labels == c) | (not by_class) for c in range(proba.shape[2])]
        self.limits_at_stop_ = np.array([conformal_quantile(at_stop[group], coverage) for group in groups])
        self.limits_while_open_ = np.array(
            [
                [conformal_quantile(scores[group & (stops > step), step], coverage) for group in groups]
                for step in range(int(stops.max()))
            ]
        ).reshape(-1, proba.shape[2])

    def members(self, proba: np.ndarray, step: int, stopped: bool) -> np.ndarray:
        """(n, C) classes in the set of each case after `step` purchases; the most probable one always is."""
        if not stopped and step >= len(self.limits_while_open_):
            return np.ones(proba.shape, dtype=bool)
        limits = self.limits_at_stop_ if stopped else self.limits_while_open_[step]
        within = 1 - proba <= limits + 1e-12  # one case and a batch may round differently
        within[np.arange(len(proba)), proba.argmax(axis=1)] = True
        return np.asarray(within)


def conformal_quantile(scores: np.ndarray, coverage: float) -> float:
    """The ceil((n + 1) * coverage)-th smallest score; infinite where there are too few.

    >>> conformal_quantile(np.arange(1.0, 10.0), 0.9), conformal_quantile(np.arange(1.0, 9.0), 0.9)
    (9.0, inf)
    """
    rank = int(np.ceil((len(scores) + 1) * coverage - 1e-9))
    return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else np.inf
