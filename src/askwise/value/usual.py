"""What a feature usually tells: how much it reduced the discrepancy of other cases of which about as much was known.

The gain of a feature in a single case comes from the few rows that resemble it, and where features are many and noisy,
the largest of many such estimates is luck. The mean over all cases is not, but it does not look at the case. A mean of
the two, by a weight that is fitted on rows the model has not seen, is better than either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.predict.conditional import ConditionalPredictor
from askwise.predict.similarity import kernel
from askwise.table.rows import ByRow, EncodedRows

WIDTH = 0.5
"""Of the kernel over the logarithm of one plus the number of known features: how alike two numbers count as."""
PRIOR_STATES = 20.0
"""In states: how strongly the mean for a number of known features is drawn to that for all, and this one to 0."""
N_PARTS = 5
MOST_STATES = 1200
MOST_WEIGHTS = 60_000_000
"""Weights of pool rows computed for `MOST_STATES` states and all features; with many features, fewer rows answer."""
FEWEST_ROWS = 100
WEIGHTS_AT_ONCE = 200_000
"""Arrays of this size stay in the processor's cache."""
FLOOR = 0.05
"""Share of the mean answer in the answers that are compared, so that no loss is infinite."""
SIZES_SHOWN = (0, 1, 2, 5, 10)
MOST_SHOWN = 3


@dataclass(frozen=True, eq=False)
class SeenGains(ByRow):
    """The gains of all features in some states of cases that the model has not seen.

    Attributes
    ----------
    case, size
        (N,) number of the case, and how many of its features are known.
    expected, actual
        (N, M) the gain that the completions of the case promise, and by how much the feature in fact reduces the
        discrepancy; NaN where it cannot be acquired.

    Examples
    --------
    >>> gains = np.array([[0.2, 0.1], [0.0, 0.3]])
    >>> seen = SeenGains(np.arange(2), np.zeros(2, dtype=int), expected=gains, actual=gains)
    >>> seen.take(np.array([True, False])).actual.tolist()
    [[0.2, 0.1]]
    """

    case: np.ndarray
    size: np.ndarray
    expected: np.ndarray
    actual: np.ndarray


@dataclass(frozen=True, eq=False)
class UsualGains:
    r"""The usual gain of each feature, and how much of the case's own gain to keep beside it.

    .. math:: gain_i = r\, gain_i(x_S) + (1 - r)\, usual_i(|S|)

    The usual gain is the mean of the actual ones over the states in which about as many features are known. The weight
    of least squares, by which the mean of the two comes closest to the actual gains of the features of a state relative
    to each other, is fitted on cases without a part in their usual gain; :math:`r` is halfway between it and 1, so that
    the case itself always counts at least half.

    Attributes
    ----------
    by_size
        (M + 1, M) usual gain of each feature, by the number of known ones.
    own_share, fitted_share
        r, and the weight of least squares.
    n_states
        From how many states they were learned.

    Examples
    --------
    >>> usual = UsualGains(np.array([[0.4, 0.0], [0.2, 0.0], [0.0, 0.0]]), 0.5, 0.0, n_states=100)
    >>> usual.mixed(np.array([[0.1, 0.3]]), np.array([[False, False]])).tolist()
    [[0.25, 0.15]]
    """

    by_size: np.ndarray
    own_share: float
    fitted_share: float
    n_states: int

    @classmethod
    def learned(cls, seen: SeenGains) -> UsualGains:
        """From the gains in some states."""
        part, n_features = seen.case % N_PARTS, seen.actual.shape[1]
        usual = np.empty(seen.actual.shape)
        for k in np.unique(part):
            usual[part == k] = _usual(seen.take(part != k), seen.size[part == k])
        fitted = _least_squares(seen, usual)
        by_size = _usual(seen, np.arange(n_features + 1))
        return cls(by_size, (fitted + 1) / 2, fitted, len(seen.case))

    def mixed(self, gain: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """(n, M) the mean of the gains of cases with the features `mask` (n, M) and the usual ones."""
        return self.own_share * gain + (1 - self.own_share) * self.by_size[mask.sum(axis=1)]

    def described(self, features: list[str]) -> dict[str, Any]:
        """Ready for JSON: the weights in a sentence, and the features that usually tell most."""
        shown = [size for size in SIZES_SHOWN if size < len(features)]
        best = np.argsort(-self.by_size, axis=1, kind="stable")[:, :MOST_SHOWN]
        return {
            "in_words": f"A gain is {self.own_share:.0%} what similar rows promise for the case and "
            f"{1 - self.own_share:.0%} what the feature told about {self.n_states} states of other cases.",
            "own_share": self.own_share,
            "fitted_share": self.fitted_share,
            "states": self.n_states,
            "usually_best": [
                {"known": size, "gains": {features[i]: float(self.by_size[size, i]) for i in best[size]}}
                for size in shown
            ],
        }


def actual_gains(
    predictor: ConditionalPredictor, state: EncodedRows, truth: EncodedRows, wanted: np.ndarray
) -> np.ndarray:
    r"""(n, M) by how much each feature reduces the discrepancy of rows outside the pool, NaN if not `wanted`.

    .. math:: \sum_y p(y \mid x) \log \frac{p(y \mid x_{S + i})}{p(y \mid x_S)}

    where the wrapped model on the whole row is the truth, and similar rows of the pool alone predict: one row of
    weights for each feature instead of a call of the model.

    Parameters
    ----------
    state, truth
        n rows as far as they are known, and with all of their cells.
    wanted
        (n, M) features that are not known and available.
    """
    schema, pool = predictor.schema_, predictor.similar_ or predictor.neighbors_
    n_rows = min(len(pool.scores), max(FEWEST_ROWS, MOST_WEIGHTS // (MOST_STATES * wanted.shape[1])))
    near, assumed = pool.first(n_rows), predictor.full_proba(truth)
    assert predictor._pool_answers is not None
    answers = predictor._pool_answers[:n_rows, : assumed.shape[1]]

    def logs(rows: EncodedRows, squared: np.ndarray) -> np.ndarray:
        return _log_answers(squared, predictor._by_scott(rows.observed.sum(axis=1)), answers)

    squared = near.squared_distances(state)
    before, found = logs(state, squared), np.full(wanted.shape, np.nan)
    case, feature = np.nonzero(wanted)
    step = max(1, WEIGHTS_AT_ONCE // n_rows)
    for r, i in ((case[start : start + step], feature[start : start + step]) for start in range(0, len(case), step)):
        shown = state.observed[r]
        after = truth.take(r).masked(shown | (schema.owner == i[:, None]))
        gained = logs(after, near.squared_distances(after, squared[r], shown)) - before[r]
        found[r, i] = (assumed[r] * gained).sum(axis=1)
    return found


def _log_answers(squared: np.ndarray, widths: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """(n, C) logarithms of the mean answers (N, C) of pool rows at squared distances (n, N)."""
    weights = kernel((squared / (2 * widths[:, None] ** 2)).astype(np.float32))
    mean = (weights @ answers.astype(np.float32)) / weights.sum(axis=1, keepdims=True)
    return np.log((1 - FLOOR) * mean.astype(float) + FLOOR * answers.mean(axis=0))


def _usual(seen: SeenGains, size: np.ndarray) -> np.ndarray:
    """(n, M) mean actual gain of each feature where about `size` (n,) features are known."""
    there = ~np.isnan(seen.actual)
    actual = np.where(there, seen.actual, 0.0)
    mean = actual.sum(axis=0) / (there.sum(axis=0) + PRIOR_STATES)
    weights = np.exp(-(((np.log1p(size)[:, None] - np.log1p(seen.size)) / WIDTH) ** 2) / 2)
    return (weights @ actual + PRIOR_STATES * mean) / (weights @ there + PRIOR_STATES)


def _least_squares(seen: SeenGains, usual: np.ndarray) -> float:
    """The share of the expected gains, the rest being the usual ones, that comes closest to the actual ones, 0 to 1.

    Gains count relative to the mean of their state: a choice compares features.
    """
    there = ~np.isnan(seen.actual)
    actual, expected = (
        np.where(there, gains - usual, 0.0) for gains in (np.nan_to_num(seen.actual), np.nan_to_num(seen.expected))
    )
    count = np.maximum(there.sum(axis=1, keepdims=True), 1)
    actual, expected = (np.where(there, x - x.sum(axis=1, keepdims=True) / count, 0.0) for x in (actual, expected))
    square = (expected**2).sum()
    return float(np.clip((actual * expected).sum() / square, 0.0, 1.0)) if square > 0 else 1.0
