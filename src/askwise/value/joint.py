"""What a set of features tells together, from the completions of a case."""

from __future__ import annotations

import numpy as np

from askwise.predict.similarity import UNRELATED
from askwise.table.schema import Schema
from askwise.uncertainty import SMALLEST

PRIOR = 3.0
"""In completions: how strongly the prediction after an answer is drawn to the one before it."""
LABEL_PRIOR = 0.5
"""The `prior` where the truth is the label of a training row."""


class JointGain:
    r"""The expected gain of features that are acquired together: what the predictions after them tell on average.

    Each completion :math:`l` in turn is taken for the truth. What the other completions that resemble it in the
    features :math:`T` answer, weighted by a kernel as the predictor does it, is the prediction :math:`p_T^l` after the
    results, and

    .. math:: gain(T) = \sum_l w_l \sum_y f_l(y) \log \frac{p_T^l(y)}{p_S(y)}

    A completion does not answer for itself, so that features that tell nothing lower the estimate.

    Parameters
    ----------
    cells
        (K, D) scores of the completions (see `Neighbors.scale`).
    weights, answers
        (K,) and (K, C): their weights and the model's answers.
    schema, bandwidth
        The features, and the width of the kernel.
    labels
        (K,) classes of the completions, as positions, which are then taken for the truth instead of the answers.
    prior
        Completions' worth of weight that the prediction before the set keeps in each prediction after it.
    """

    def __init__(
        self,
        cells: np.ndarray,
        weights: np.ndarray,
        answers: np.ndarray,
        schema: Schema,
        bandwidth: float,
        labels: np.ndarray | None = None,
        prior: float = PRIOR,
    ) -> None:
        self.cells = cells
        self.weights = weights
        self.answers = answers
        self.truth = answers if labels is None else np.eye(answers.shape[1])[labels]
        self.schema = schema
        self.bandwidth = bandwidth
        self.before = np.maximum(weights @ answers, SMALLEST)
        self._prior = prior * float((weights**2).sum())

    def distances(self, feature: int) -> np.ndarray:
        """(K, K) squared distances of the completions in one feature."""
        total = np.zeros((len(self.cells), len(self.cells)))
        for j in self.schema.feature_columns[feature]:
            cell = self.cells[:, j]
            unlike = cell[:, None] != cell if self.schema.is_category[j] else None
            squared = UNRELATED * unlike if unlike is not None else (cell[:, None] - cell) ** 2
            total += np.where(np.isnan(squared), UNRELATED, squared)
        return total

    def gain(self, squared: np.ndarray) -> float:
        """The gain of the features over which the completions have these squared distances (K, K)."""
        return float(self.weights @ self.gains(squared))

    def gains(self, squared: np.ndarray) -> np.ndarray:
        """(K,) the gain if each completion in turn is the truth."""
        kernel = np.exp(squared / (-2 * self.bandwidth**2)) * self.weights
        np.fill_diagonal(kernel, 0.0)
        mass = kernel.sum(axis=1, keepdims=True)
        after = (kernel @ self.answers + self._prior * self.before) / (mass + self._prior)
        ratio = np.log(np.maximum(after, SMALLEST) / self.before)
        return np.asarray((self.truth * ratio).sum(axis=1))
