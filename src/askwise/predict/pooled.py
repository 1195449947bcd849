"""The answer from completions pooled with a second opinion that is learned from the labels."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from askwise.predict.belief import Completions
from askwise.predict.class_gaussians import LEAST_SHARE, ClassGaussians, chosen_gaussians
from askwise.predict.conditional import ConditionalPredictor
from askwise.randomness import generator
from askwise.table.rows import EncodedRows

PENALTY = 25.0
"""In cases: how strongly both weights are drawn to 1/2."""
EQUAL = (0.5, 0.5)
N_FOLDS = 5
"""Of the training rows, where a row is left out."""


class PooledPredictor(ConditionalPredictor):
    r"""Accuracy before faithfulness: the answer from completions P, pooled with a model Q of the columns per class.

    .. math:: p(y \mid x_S) \propto P(y \mid x_S)^a \, Q(y \mid x_S)^b

    Q are Gaussians for each class (`ClassGaussians`), whose marginals on any subset are exact; they are learned from
    the labels and do not know the wrapped model. How far the covariances of the classes differ is chosen by
    cross-validation. Complete rows get the wrapped model's own answer. Where the wrapped model is much better than
    Gaussians, pooling changes little; where it overfits, Q takes over, and the answers agree less often with the
    model's. Completions, gains and agreement are those of `ConditionalPredictor`.

    Parameters as in `ConditionalPredictor`.

    Attributes
    ----------
    pooling_weights_ : (a, b), 1/2 each, or what a selector fits on unseen rows
    gaussians_ : Q

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import numpy as np
    >>> from askwise.predict import PooledPredictor
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> predictor = PooledPredictor(model).fit(X, y)
    >>> only_first = np.array([[True, False, False, False]])
    >>> proba = predictor.predict_proba(X[[120]], only_first)
    >>> proba.round(1).tolist()
    [[0.0, 0.2, 0.8]]
    """

    chosen_on_unseen_rows: ClassVar[tuple[str, ...]] = ("answer_factor_", "pooling_weights_")
    pooling_weights_: tuple[float, float] = EQUAL
    gaussians_: ClassGaussians

    def _fit(self, rows: EncodedRows, y: np.ndarray) -> None:
        super()._fit(rows, y)
        scores = self.neighbors_.scale(rows.values)
        rng = generator(self.random_state)
        self.gaussians_ = chosen_gaussians(scores, y, self.schema_.is_category, len(self.classes_), rng)

    def second_opinion(self, rows: EncodedRows, leave_out: np.ndarray | None = None) -> np.ndarray:
        """(n, C) log Q(y | x_S), without the training row `leave_out` (n,) and others that share its fold."""
        scores = self.neighbors_.scale(rows.values)
        if leave_out is None:
            return self.gaussians_.log_proba(scores)
        logs, fold = np.empty((len(rows), len(self.classes_))), leave_out % N_FOLDS
        for k in np.unique(fold):
            logs[fold == k] = self._gaussians_without(k).log_proba(scores[fold == k])
        return logs

    def _gaussians_without(self, fold: int) -> ClassGaussians:
        rest = np.arange(len(self.training_labels_)) % N_FOLDS != fold
        scores, y = self.neighbors_.scale(self.training_rows_.values[rest]), self.training_labels_[rest]
        return ClassGaussians(scores, y, self.schema_.is_category, len(self.classes_), self.gaussians_.common_rows)

    def _answers(
        self, completions: Completions, similar: np.ndarray | None, rows: EncodedRows, leave_out: np.ndarray | None
    ) -> np.ndarray:
        answers = super()._answers(completions, similar, rows, leave_out)
        return pooled(answers, self.second_opinion(rows, leave_out)[:, None], self.pooling_weights_)


def pooled(first: np.ndarray, second: np.ndarray, weights: tuple[float, float]) -> np.ndarray:
    """P^a Q^b, normalized over the last axis, from P and log Q."""
    return np.asarray(softmax(weights[0] * _logs(first) + weights[1] * _bounded(second), axis=-1))


def fit_weights(first: np.ndarray, second: np.ndarray, labels: np.ndarray, n_cases: int) -> tuple[float, float]:
    """The weights (a, b) of least penalized log loss.

    Parameters
    ----------
    first, second
        (N, C) P and log Q of states of cases that neither has seen.
    labels
        (N,) true classes, as positions.
    n_cases
        The states of one case say much the same: they count as one.
    """
    parts = np.stack([_logs(first), _bounded(second)])  # (2, N, C)
    at, equal = np.arange(len(labels)), np.array(EQUAL)
    true = parts[:, at, labels]

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        logs = log_softmax(np.tensordot(weights, parts, axes=1), axis=1)
        slope = np.einsum("knc,nc->k", parts, np.exp(logs)) - true.sum(axis=1)
        pull = PENALTY * (weights - equal)
        scale = n_cases / len(labels)
        return -scale * logs[at, labels].sum() + pull @ (weights - equal) / 2, scale * slope + pull

    found = minimize(loss, equal, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * 2).x
    return float(found[0]), float(found[1])


def _logs(proba: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(np.maximum(proba, LEAST_SHARE)))


def _bounded(logs: np.ndarray) -> np.ndarray:
    return np.maximum(logs, np.log(LEAST_SHARE))
