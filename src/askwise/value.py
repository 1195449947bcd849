"""What a feature is expected to be worth before it is bought: v_q of the paper's Eq. 8, and gain per cost."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from askwise.predict.conditional import Completions, ConditionalPredictor
from askwise.schema import Schema

N_OUTCOMES = 8
PRIOR_WEIGHT = 0.1
BIN_SIMILARITY = np.exp(-2.0 * np.subtract.outer(np.arange(N_OUTCOMES), np.arange(N_OUTCOMES)) ** 2)
ROWS_AT_ONCE = 512


def per_cost(gain: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Gain per unit of cost: a positive gain is divided by its cost, a negative one multiplied.

    Dividing a loss by a high price would make it look smaller. A cost of 0 leaves the gain as it is.

    >>> per_cost(np.array([1.0, -1.0, 1.0]), np.array([2.0, 2.0, 0.0])).tolist()
    [0.5, -2.0, 1.0]
    """
    priced = costs > 0
    safe = np.where(priced, costs, 1.0)
    return np.asarray(np.where(priced & (gain > 0), gain / safe, gain * safe))


class NeighbourValue:
    r"""Expected reduction of the discrepancy to the full prediction, straight from completions of the case.

    The K completions of a case (pool rows :math:`l` with weights :math:`w_l`) give the wrapped model's answers
    :math:`f_l`: each is the full prediction of one way the case may turn out. A feature's outcomes are bins of a
    number, categories, or clusters of a group's columns. After outcome :math:`b` of feature :math:`i` the prediction is
    the mean of the :math:`f_l` that share it, :math:`p_b`, shrunk towards :math:`p_S`, and by Lemma 1

    .. math:: v(i, x_S) = \sum_l w_l \sum_y f_l(y) \log \frac{p_{b(l)}(y)}{p_S(y)}

    One set of K model calls per case serves all candidates.

    Parameters
    ----------
    predictor
        A fitted `ConditionalPredictor`.
    schema
        The same columns, grouped into features.
    random_state
        Seed of the clusters of grouped columns.
    """

    def __init__(self, predictor: ConditionalPredictor, schema: Schema, random_state: int = 0) -> None:
        self.predictor = predictor
        self.schema = schema
        scores = predictor.neighbours_.scale(predictor.pool_)
        self._outcomes = [
            _outcomes(scores[:, members], schema.is_category[members], random_state) for members in schema.members
        ]

    def gains(self, values: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """(n, M) expected reduction of KL(p(y | x) || p(y | x_S)) from each feature that is not had."""
        gains = np.full(mask.shape, -np.inf)
        columns = self.schema.expand(mask) & ~np.isnan(values)
        for start in range(0, len(values), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            gains[rows] = self._gains(self.predictor.completions(values[rows], columns[rows]))
        return np.where(mask, -np.inf, gains)

    def _gains(self, completions: Completions) -> np.ndarray:
        before = np.maximum(completions.mean(), 1e-12)[:, None, :]  # (n, 1, C)
        weighted = completions.weights[:, :, None] * completions.proba  # (n, K, C)
        gains = np.empty((len(before), len(self._outcomes)))
        for i, (outcome, similarity) in enumerate(self._outcomes):
            happens = (outcome[completions.index][:, None, :] == np.arange(len(similarity))[:, None]).astype(float)
            joint = happens @ weighted  # (n, B, C): outcome and class together
            mass = similarity @ joint
            after = (mass + PRIOR_WEIGHT * before) / (mass.sum(axis=2, keepdims=True) + PRIOR_WEIGHT)
            gains[:, i] = (joint * np.log(after / before)).sum(axis=(1, 2))
        return gains


def _outcomes(scores: np.ndarray, is_category: np.ndarray, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """What a feature can turn out to be: the outcome of each pool row, (N,), and how alike outcomes are, (B, B)."""
    if len(is_category) > 1:
        return _clusters(scores, is_category, random_state)
    cells = scores[:, 0]
    missing = np.isnan(cells)
    if is_category[0]:
        codes, counts = np.unique(cells[~missing], return_counts=True)
        frequent = codes[np.argsort(-counts, kind="stable")][: 2 * N_OUTCOMES]
        rank = {code: r for r, code in enumerate(frequent)}
        outcome = np.array([rank.get(code, len(frequent)) for code in cells])
        return outcome, np.eye(len(frequent) + 1)
    edges = np.quantile(cells[~missing], np.linspace(0, 1, N_OUTCOMES + 1)[1:-1])
    outcome = np.searchsorted(edges, cells, side="right")
    similarity = np.eye(N_OUTCOMES + 1)  # the last outcome: not there
    similarity[:N_OUTCOMES, :N_OUTCOMES] = BIN_SIMILARITY
    return np.where(missing, N_OUTCOMES, outcome), similarity


def _clusters(scores: np.ndarray, is_category: np.ndarray, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    parts = [
        (scores[:, [j]] == np.unique(scores[:, j])).astype(float) if is_category[j] else np.nan_to_num(scores[:, [j]])
        for j in range(len(is_category))
    ]
    points = np.hstack(parts)
    k = min(N_OUTCOMES, len(np.unique(points, axis=0)))
    return np.asarray(KMeans(k, n_init=1, random_state=random_state).fit_predict(points)), np.eye(k)
