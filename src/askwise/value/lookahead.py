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
    levels = [_levels(scores[np.ix_(index, schema.feature_columns[a])], schema, a) for a in first]
    n_levels, n_features = max(int(level.max()) + 1 for level in levels), len(schema.features)
    chance = np.stack([np.bincount(level, weights, minlength=n_levels) for level in levels])
    widest = max(-(-int(np.bincount(level).max()) // 2) for level in levels)
    parts = [_halves(level, widest) for level in levels]
    after = np.zeros((2, len(first), n_levels, n_features))
    step = max(1, CELLS_AT_ONCE // (2 * n_levels * widest * n_features))
    for start in range(0, len(first), step):
        block = parts[start : start + step]
        rows, there = (np.concatenate(arrays) for arrays in zip(*block, strict=True))
        left = np.where(there, weights[rows], 0.0)
        some = np.any(left > 0, axis=1)
        left[~some, 0] = 1.0  # an outcome with one completion leaves a half without any: its gains stay 0
        left /= left.sum(axis=1, keepdims=True)
        wanted = np.repeat(some[:, None], n_features, axis=1)
        found = expected_reductions(index[rows], left, answers[rows], outcomes, wanted, n_classes=answers.shape[1])[0]
        ends = np.cumsum([len(part[0]) for part in block])
        for k, gains in enumerate(np.split(found, ends[:-1]), start):
            after[:, k, : len(gains) // 2] = gains.reshape(2, -1, n_features)
    return SecondGains(first, chance, after)


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
        level = _levels(self.scores[:, self.schema.feature_columns[first]], self.schema, first)
        rows, there = _halves(level)
        means = (gains[rows] * there[..., None]).sum(axis=1) / np.maximum(there.sum(axis=1), 1)[:, None]
        means = means.reshape(2, -1, len(others))  # by half and outcome
        best = means[::-1].argmax(axis=2)[..., None]
        adaptive = np.take_along_axis(means, best, axis=2)[..., 0] @ (np.bincount(level) / len(level))
        return adaptive, float(gains.mean(axis=0).max())


def outcomes_of_seconds(scores: np.ndarray, schema: Schema, n_completions: int, random_state: int) -> Outcomes:
    """The outcomes of second features, at the resolution that the completions after a first one allow."""
    return Outcomes.of_features(scores, schema, max(8, n_completions // (2 * LEVELS)), random_state)


def _halves(level: np.ndarray, width: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(2 L, W) every other completion of each outcome, then the rest, and which entries are not just filled up.

    The `width` W is by default as small as it can be.
    """
    by_level = [np.flatnonzero(level == b) for b in range(int(level.max()) + 1)]
    parts = [rows[half::2] for half in (0, 1) for rows in by_level]
    width = max(len(part) for part in parts) if width is None else width
    rows = np.array([np.pad(part, (0, width - len(part))) for part in parts])
    return rows, np.arange(width) < np.array([len(part) for part in parts])[:, None]


def _levels(cells: np.ndarray, schema: Schema, feature: int) -> np.ndarray:
    """(K,) the outcome of a first feature in each completion, rare ones joined with a neighbor."""
    columns = schema.feature_columns[feature]
    if len(columns) > 1 and schema.tabular:
        return _joined(_clusters(points_of_group(cells, schema.is_category[columns])))
    column = cells[:, 0]  # of an image patch, its first number
    code = np.unique(column, return_inverse=True)[1].reshape(-1)
    if code.max() >= MOST_LEVELS and not schema.is_category[schema.feature_columns[feature][0]]:
        rank = np.argsort(np.argsort(column, kind="stable"), kind="stable")
        code = rank * LEVELS // len(rank)
    return _joined(code)


def _clusters(points: np.ndarray) -> np.ndarray:
    """(K,) cluster of each point; each distinct point is one if there are few."""
    distinct, code = np.unique(points, axis=0, return_inverse=True)
    if len(distinct) <= MOST_LEVELS:
        return code.reshape(-1)
    found = KMeans(GROUP_LEVELS, n_init=1, random_state=0).fit_predict(points)
    return np.unique(found, return_inverse=True)[1].reshape(-1)


def _joined(code: np.ndarray) -> np.ndarray:
    """Outcomes with too few completions become one."""
    counts = np.bincount(code)
    rare = counts < 2 * ROWS_PER_LEVEL
    if rare.sum() < 2:
        return code
    number = np.cumsum(~rare) - 1
    return np.where(rare[code], number.max() + 1, number[code])


def total_effects(predictor: ConditionalPredictor, schema: Schema, n_answers: int) -> np.ndarray:
    """(M,) how far a feature alone changes the model's answers in complete rows, from about `n_answers` answers.

    A feature that only matters together with others changes them as well, though it tells little on its own.
    """
    pool = predictor.pool_[: max(20, n_answers // len(schema.features))]
    other = np.roll(pool, 1, axis=0)
    before = predictor.model_(EncodedRows(pool))
    changes = (np.where(schema.owner == i, other, pool) for i in range(len(schema.features)))
    return np.array([np.abs(predictor.model_(EncodedRows(cells)) - before).mean() for cells in changes])
