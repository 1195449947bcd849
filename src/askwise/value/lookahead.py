"""The adaptive two-step value of a feature: what it tells, and what the best feature after each of its outcomes tells.

A feature that says which others matter tells little about the label itself, so its own gain misses its value. The
estimates after an outcome come from the completions that have it. Each half of them picks the best second feature, and
the other half says what that one is worth: the largest of many noisy estimates does not look like an interaction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans

from askwise.predict.belief import Completions
from askwise.predict.conditional import ConditionalPredictor
from askwise.table.rows import CELLS_AT_ONCE, EncodedRows
from askwise.table.schema import Schema
from askwise.value.gain import by_rule
from askwise.value.joint import LABEL_PRIOR, JointGain
from askwise.value.outcomes import Outcomes, points_of_group
from askwise.value.reductions import expected_reductions

LEVELS, GROUP_LEVELS = 4, 8
"""Bins of a number as a first feature, and clusters of a group of columns; a category, and a number with at most
`MOST_LEVELS` values, has its own."""
MOST_LEVELS = 12
ROWS_TO_CONFIRM = 600
"""Training rows whose labels must say as well that it pays to look ahead."""
ROWS_PER_LEVEL = 10
"""Completions that an outcome must have in each half; what is rarer counts as one outcome."""


@dataclass(frozen=True, eq=False)
class SecondGains:
    """The gains of all features after each outcome of some first features, for one case.

    Attributes
    ----------
    first
        (A,) the first features.
    chance
        (A, L) probability of each outcome, 0 beyond the last one.
    after
        (2, A, L, M) gain of each feature after it, from each half of the completions.
    """

    first: np.ndarray
    chance: np.ndarray
    after: np.ndarray

    def values(
        self, gain: np.ndarray, costs: np.ndarray, allowed: np.ndarray, rule: str, left: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Value of each first feature with its best followers, and what they are expected to cost: (2, A) each.

        Parameters
        ----------
        gain
            (M,) gain of each feature on its own.
        costs
            (A, M) price of each feature once the first one is known.
        allowed
            (A, M) features that can follow.
        rule, left
            The price rule by which followers are chosen, and the money left.
        """
        own = np.arange(len(gain)) == self.first[:, None]
        usable = (allowed & ~own)[:, None]  # (A, 1, M)
        value, cost = np.zeros((2, len(self.first))), np.zeros((2, len(self.first)))
        for half in (0, 1):
            ranked = np.where(usable, by_rule(self.after[1 - half], costs[:, None], rule, left), -np.inf)
            best = ranked.argmax(axis=2)[..., None]  # (A, L, 1)
            some = usable.any(axis=2)
            worth = np.take_along_axis(self.after[half], best, axis=2)[..., 0] * some
            price = np.take_along_axis(np.broadcast_to(costs[:, None], ranked.shape), best, axis=2)[..., 0] * some
            value[half] = gain[self.first] + (self.chance * worth).sum(axis=1)
            cost[half] = (self.chance * price).sum(axis=1)
        return value, cost


def second_gains(
    completions: Completions,
    answers: np.ndarray,
    scores: np.ndarray,
    schema: Schema,
    first: np.ndarray,
    outcomes: Outcomes,
) -> SecondGains:
    """From the completions of one case and the `answers` (K, C) on them; `scores` (N, D) are those of the pool."""
    index, weights = completions.index[0], completions.weights[0]
    level, n_features = levels_of(scores[index], schema, first), len(schema.features)
    counts = _counts(level)
    n_levels, widest = counts.shape[1], -(-int(counts.max()) // 2)
    after = np.zeros((len(first), 2, n_levels, n_features))
    step = max(1, CELLS_AT_ONCE // (2 * n_levels * widest * n_features))
    for block in (slice(start, start + step) for start in range(0, len(first), step)):
        rows, there = _halves(level[:, block], n_levels, widest)
        left = np.where(there, weights[rows], 0.0)
        some = np.any(left > 0, axis=-1)  # of an outcome with one completion, a half has none: its gains stay 0
        rows, left = rows[some], left[some]
        left /= left.sum(axis=1, keepdims=True)
        wanted = np.ones((len(rows), n_features), dtype=bool)
        found = expected_reductions(index[rows], left, answers[rows], outcomes, wanted, n_classes=answers.shape[1])[0]
        after[block][some] = found
    return SecondGains(first, _counts(level, weights), after.transpose(1, 0, 2, 3))


class LabelsAhead:
    """Whether the labels of training rows say as well that it pays to look ahead from a feature.

    A model that overfits makes features with many values look as if they said what to ask next. Here a row is predicted
    from the labels of the rows that resemble it, itself left out.
    """

    def __init__(self, predictor: ConditionalPredictor, schema: Schema) -> None:
        n = min(ROWS_TO_CONFIRM, len(predictor.pool_))  # the pool is shuffled
        neighbors, labels = predictor.neighbors_.first(n), np.eye(len(predictor.classes_))[predictor.pool_labels()[:n]]
        self.schema, self.scores = schema, neighbors.scores
        self.joint = JointGain(self.scores, np.full(n, 1 / n), labels, schema, neighbors.bandwidth, prior=LABEL_PRIOR)

    def confirmed(self, gates: np.ndarray, instead: np.ndarray, known: np.ndarray, clearly: float) -> np.ndarray:
        """The `gates` that tell more with the best followers of their outcomes than other pairs, by a share.

        The others are the features `instead`, which come first otherwise, each with its best follower for all outcomes.
        """
        otherwise = max(self._with_followers(i, known)[1] for i in np.unique(instead).tolist())
        found = {gate: self._with_followers(gate, known)[0] for gate in gates.tolist()}
        return np.array([gate for gate in found if (found[gate] > (1 + clearly) * otherwise).all()], dtype=int)

    def _with_followers(self, first: int, known: np.ndarray) -> tuple[np.ndarray, float]:
        """(2,) gain with the best follower after each outcome, chosen by the other half of the rows; with the best."""
        before = np.sum([self.joint.distances(i) for i in {first, *known.tolist()}], axis=0)
        others = [j for j in range(len(self.schema.features)) if j not in {first, *known.tolist()}]
        gains = np.stack([self.joint.gains(before + self.joint.distances(j)) for j in others], axis=1)  # (R, others)
        level = levels_of(self.scores, self.schema, np.array([first]))
        counts = _counts(level)[0]
        rows, there = (part[0] for part in _halves(level, len(counts), -(-int(counts.max()) // 2)))  # (2, L, W)
        means = (gains[rows] * there[..., None]).sum(axis=2) / np.maximum(there.sum(axis=2), 1)[..., None]
        best = means[::-1].argmax(axis=2)[..., None]
        adaptive = np.take_along_axis(means, best, axis=2)[..., 0] @ (counts / len(level))
        return adaptive, float(gains.mean(axis=0).max())


def outcomes_of_seconds(scores: np.ndarray, schema: Schema, n_completions: int, random_state: int) -> Outcomes:
    """The outcomes of second features, at the resolution that the completions after a first one allow."""
    return Outcomes.of_features(scores, schema, max(8, n_completions // (2 * LEVELS)), random_state)


def _halves(level: np.ndarray, n_levels: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """(A, 2, L, W) every other completion of each outcome in `level` (K, A), and the rest; and which are not filled up.

    The `width` W is that of the largest half.
    """
    order, a = np.argsort(level, axis=0, kind="stable"), np.arange(level.shape[1])
    ascending, counts = np.take_along_axis(level, order, axis=0), _counts(level, n_levels=n_levels)
    rank = np.arange(len(level))[:, None] - (counts.cumsum(axis=1) - counts)[a, ascending]  # within the outcome
    rows, there = np.zeros((2, len(a), 2, n_levels, width), dtype=int)
    at = np.broadcast_to(a, level.shape), rank % 2, ascending, rank // 2
    rows[at], there[at] = order, 1
    return rows, there > 0


def _counts(level: np.ndarray, weights: np.ndarray | None = None, n_levels: int | None = None) -> np.ndarray:
    """(A, L) how many of the K completions have each outcome in `level` (K, A), or their weights (K,)."""
    n_levels, n = int(level.max()) + 1 if n_levels is None else n_levels, level.shape[1]
    each = None if weights is None else np.repeat(weights, n)
    number = level + n_levels * np.arange(n)
    return np.bincount(number.ravel(), each, minlength=n * n_levels).reshape(n, n_levels)


def levels_of(scores: np.ndarray, schema: Schema, features: np.ndarray) -> np.ndarray:
    """(K, A) the outcome of first features in each completion, from its scores (K, D); rare ones are one outcome."""
    columns = [schema.feature_columns[a] for a in features]
    cells = scores[:, [of_feature[0] for of_feature in columns]]  # of an image patch, the first number
    order = np.argsort(cells, axis=0, kind="stable")
    ascending = np.take_along_axis(cells, order, axis=0)
    new = np.zeros(cells.shape, dtype=int)
    new[1:] = (ascending[1:] != ascending[:-1]) & ~np.isnan(ascending[:-1])
    code = new.cumsum(axis=0)
    many = (code[-1] >= MOST_LEVELS) & ~schema.is_category[[of_feature[0] for of_feature in columns]]
    code[:, many] = np.arange(len(code))[:, None] * LEVELS // len(code)
    level = np.empty_like(code)
    np.put_along_axis(level, order, code, axis=0)
    for k, of_feature in enumerate(columns):
        if len(of_feature) > 1 and schema.tabular:
            level[:, k] = _clusters(points_of_group(scores[:, of_feature], schema.is_category[of_feature]))
    return _joined(level)


def _clusters(points: np.ndarray) -> np.ndarray:
    """(K,) cluster of each point; each distinct point is one if there are few."""
    distinct, code = np.unique(points, axis=0, return_inverse=True)
    if len(distinct) <= MOST_LEVELS:
        return code.reshape(-1)
    found = KMeans(GROUP_LEVELS, n_init=1, random_state=0).fit_predict(points)
    return np.unique(found, return_inverse=True)[1].reshape(-1)


def _joined(level: np.ndarray) -> np.ndarray:
    """Outcomes (K, A) with too few completions become one."""
    counts = _counts(level)
    rare = (counts > 0) & (counts < 2 * ROWS_PER_LEVEL)
    number = np.cumsum((counts > 0) & ~rare, axis=1) - 1
    number = np.where(rare, number[:, -1:] + 1, number)
    few = rare.sum(axis=1) < 2
    return np.where(few, level, number[np.arange(level.shape[1]), level])


def total_effects(predictor: ConditionalPredictor, schema: Schema, n_answers: int) -> np.ndarray:
    """(M,) how far a feature alone changes the model's answers in complete rows, from about `n_answers` answers.

    A feature that only matters together with others changes them as well, though it tells little on its own.
    """
    pool = predictor.pool_[: max(20, n_answers // len(schema.features))]
    other = np.roll(pool, 1, axis=0)
    before = predictor.model_(EncodedRows(pool))
    changes = (np.where(schema.owner == i, other, pool) for i in range(len(schema.features)))
    return np.array([np.abs(predictor.model_(EncodedRows(cells)) - before).mean() for cells in changes])
